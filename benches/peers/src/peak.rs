//! What this machine can do at most, measured in the same run: the denominator of every "per cent of peak".

use std::time::Instant;

/// One thread's limits; zero where the machine lacks the instruction.
#[derive(Clone, Copy, Default, Debug, serde::Serialize)]
pub struct Peaks {
    /// f32 multiply-accumulates a second, 256-bit FMA.
    pub avx2_f32: f64,
    /// f32 multiply-accumulates a second, 512-bit FMA.
    pub avx512_f32: f64,
    /// int8 multiply-accumulates a second through 256-bit widening `vpmaddwd`.
    pub avx2_int8: f64,
    /// int8 multiply-accumulates a second, 512-bit `vpdpbusd`.
    pub vnni_int8: f64,
    /// Bytes a second read from a block that fits the second-level cache only.
    pub l2_bytes: f64,
}

impl Peaks {
    pub fn f32(&self) -> f64 {
        self.avx2_f32.max(self.avx512_f32)
    }

    pub fn int8(&self) -> f64 {
        self.avx2_int8.max(self.vnni_int8)
    }
}

/// Independent accumulators: more than latency × throughput of any multiply-add here, fewer than the registers.
const CHAINS: usize = 12;
const STEPS: usize = 4096;
const TRIES: usize = 200;

/// `work(units)` units per call, best of many calls, in units a second.
fn best(work: f64, mut call: impl FnMut()) -> f64 {
    let mut shortest = f64::INFINITY;
    for _ in 0..TRIES {
        let start = Instant::now();
        call();
        shortest = shortest.min(start.elapsed().as_secs_f64());
    }
    work / shortest
}

#[cfg(target_arch = "x86_64")]
pub fn measure() -> Peaks {
    use std::arch::is_x86_feature_detected as has;
    let mut peaks = Peaks::default();
    let steps = (CHAINS * STEPS) as f64;
    if has!("avx2") && has!("fma") {
        // SAFETY: AVX2 and FMA were detected.
        peaks.avx2_f32 = best(steps * 8.0, || unsafe { x86::fma_256() });
        // SAFETY: AVX2 was detected.
        peaks.avx2_int8 = best(steps * 16.0, || unsafe { x86::madd_256() });
    }
    if has!("avx512f") {
        // SAFETY: AVX-512F was detected.
        peaks.avx512_f32 = best(steps * 16.0, || unsafe { x86::fma_512() });
    }
    if has!("avx512f") && has!("avx512vnni") {
        // SAFETY: AVX-512F and VNNI were detected.
        peaks.vnni_int8 = best(steps * 64.0, || unsafe { x86::dot_512() });
    }
    // Larger than any first-level cache, well inside any second-level one of the last ten years.
    let block = vec![1.0f32; 192 * 1024 / 4];
    if has!("avx512f") {
        // SAFETY: AVX-512F was detected.
        peaks.l2_bytes = best((block.len() * 4) as f64, || unsafe { x86::read_512(&block) });
    } else if has!("avx2") {
        // SAFETY: AVX2 was detected.
        peaks.l2_bytes = best((block.len() * 4) as f64, || unsafe { x86::read_256(&block) });
    }
    peaks
}

#[cfg(not(target_arch = "x86_64"))]
pub fn measure() -> Peaks {
    Peaks::default()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    use super::{CHAINS, STEPS};

    #[target_feature(enable = "avx2,fma")]
    pub fn fma_256() {
        let (a, b) = (_mm256_set1_ps(black_box(0.5)), _mm256_set1_ps(black_box(0.25)));
        let mut sums = [_mm256_setzero_ps(); CHAINS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, a, b);
            }
        }
        black_box(sums);
    }

    #[target_feature(enable = "avx512f")]
    pub fn fma_512() {
        let (a, b) = (_mm512_set1_ps(black_box(0.5)), _mm512_set1_ps(black_box(0.25)));
        let mut sums = [_mm512_setzero_ps(); CHAINS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, a, b);
            }
        }
        black_box(sums);
    }

    /// 16 products a step: a multiply-add of int16 pairs and the addition to the sum.
    #[target_feature(enable = "avx2")]
    pub fn madd_256() {
        let b = _mm256_set1_epi16(black_box(3));
        let mut sums = [_mm256_set1_epi16(black_box(1)); CHAINS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(*sum, b));
            }
        }
        black_box(sums);
    }

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub fn dot_512() {
        let (a, b) = (_mm512_set1_epi8(black_box(3)), _mm512_set1_epi8(black_box(5)));
        let mut sums = [_mm512_setzero_si512(); CHAINS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = _mm512_dpbusd_epi32(*sum, a, b);
            }
        }
        black_box(sums);
    }

    #[target_feature(enable = "avx512f")]
    pub fn read_512(block: &[f32]) {
        let mut sums = [_mm512_setzero_ps(); 8];
        for lines in block.chunks_exact(16 * 8) {
            for (sum, line) in sums.iter_mut().zip(lines.chunks_exact(16)) {
                // SAFETY: the chunk has exactly the sixteen values that are read.
                let values = unsafe { _mm512_loadu_ps(line.as_ptr()) };
                *sum = _mm512_max_ps(*sum, values);
            }
        }
        black_box(sums);
    }

    #[target_feature(enable = "avx2")]
    pub fn read_256(block: &[f32]) {
        let mut sums = [_mm256_setzero_ps(); 8];
        for lines in block.chunks_exact(8 * 8) {
            for (sum, line) in sums.iter_mut().zip(lines.chunks_exact(8)) {
                // SAFETY: the chunk has exactly the eight values that are read.
                let values = unsafe { _mm256_loadu_ps(line.as_ptr()) };
                *sum = _mm256_max_ps(*sum, values);
            }
        }
        black_box(sums);
    }
}
