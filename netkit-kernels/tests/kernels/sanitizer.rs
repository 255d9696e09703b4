//! Does the sanitizer that other tests are run under see what a kernel does?
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;
use std::hint::black_box;
use std::process::Command;

/// Set in the process that is to end by reading past a slice.
const READ: &str = "NETKIT_READ_PAST_END";

/// As kernels do: what the instruction reads is behind a pointer of the slice.
///
/// # Safety
///
/// None: `lanes` are more than the slice has, and the sanitizer is to end the process here.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn masked_512(from: &[f32], lanes: u32) -> f32 {
    // SAFETY: none, see above.
    let vector = unsafe { _mm512_maskz_loadu_ps((1 << lanes) - 1, from.as_ptr()) };
    _mm512_reduce_add_ps(vector)
}

/// # Safety
///
/// As [`masked_512`].
#[target_feature(enable = "avx2")]
unsafe fn masked_256(from: &[f32], lanes: u32) -> f32 {
    let some = _mm256_cmpgt_epi32(
        _mm256_set1_epi32(lanes as i32),
        _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
    );
    // SAFETY: none, see above.
    let vector = unsafe { _mm256_maskload_ps(from.as_ptr(), some) };
    _mm256_cvtss_f32(vector)
}

/// # Safety
///
/// As [`masked_512`].
#[target_feature(enable = "avx2")]
unsafe fn whole_256(from: &[f32]) -> f32 {
    // SAFETY: none, see above.
    _mm256_cvtss_f32(unsafe { _mm256_loadu_ps(from.as_ptr()) })
}

/// # Safety
///
/// As [`masked_512`].
#[target_feature(enable = "sse2")]
unsafe fn whole_128(from: &[f32]) -> f32 {
    // SAFETY: none, see above.
    let vector = unsafe { _mm_loadu_ps(from.as_ptr()) };
    _mm_cvtss_f32(vector)
}

/// Reads four bytes past the end of a slice, the way that is named. `None` where the machine has no such instruction.
fn read_past_end(way: &str) -> Option<f32> {
    let values: Box<[f32]> = black_box(vec![1.0; 7].into_boxed_slice());
    match way {
        // SAFETY: none, here and below: the test expects a report.
        "loadu 128" => Some(unsafe { whole_128(&values[4..]) }),
        "loadu 256" if is_x86_feature_detected!("avx2") => {
            // SAFETY: none.
            Some(unsafe { whole_256(&values) })
        }
        "maskload 256" if is_x86_feature_detected!("avx2") => {
            // SAFETY: none.
            Some(unsafe { masked_256(&values, 8) })
        }
        "maskz loadu 512" if is_x86_feature_detected!("avx512bw") => {
            // SAFETY: none.
            Some(unsafe { masked_512(&values, 8) })
        }
        _ => None,
    }
}

/// `.ci/sanitize` names the sanitizer in `NETKIT_SANITIZER`; without one there is nothing to look at.
#[test]
fn b30_the_sanitizer_reports_a_load_past_the_end() {
    if let Ok(way) = std::env::var(READ) {
        match read_past_end(&way) {
            Some(value) => println!("unseen: {}", black_box(value)),
            None => println!("no such instruction"),
        }
        return;
    }
    if std::env::var("NETKIT_SANITIZER").as_deref() != Ok("address") {
        println!("skipped: no sanitizer");
        return;
    }
    for way in ["loadu 128", "loadu 256", "maskload 256", "maskz loadu 512"] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sanitizer::b30_the_sanitizer_reports_a_load_past_the_end"])
            .arg("--nocapture")
            .env(READ, way)
            .output()
            .unwrap();
        if String::from_utf8_lossy(&output.stdout).contains("no such instruction") {
            println!("{way}: skipped, the machine has no such instruction");
            continue;
        }
        let report = String::from_utf8_lossy(&output.stderr);
        let seen = report.contains("AddressSanitizer: heap-buffer-overflow on address");
        assert!(seen && !output.status.success(), "{way}: {output:?}");
        println!("{way}: reported");
    }
}
