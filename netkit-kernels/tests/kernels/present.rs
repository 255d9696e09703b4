//! Was an instruction set there to be tested at all?

use netkit_kernels::{Isa, Kernels};

/// `NETKIT_REQUIRE_ISA`, a list of names, fails where one is missing, so that a CI job which is there
/// for an instruction set cannot pass without it.
#[test]
fn required_instruction_sets_are_present() {
    let present: Vec<_> = Kernels::all().map(|kernels| kernels.isa().name()).collect();
    println!("instruction sets: {}", present.join(" "));
    for name in std::env::var("NETKIT_REQUIRE_ISA").unwrap_or_default().split([' ', ',']) {
        assert!(
            name.is_empty() || present.contains(&name),
            "{name} is required, not in {present:?}"
        );
    }
}

/// The tests run the portable kernels, which on x86-64 only a feature brings.
#[test]
fn portable_kernels_are_present() {
    assert!(Kernels::for_isa(Isa::Scalar).is_some());
}

/// Set in the process that runs on an emulated machine.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const EMULATED: &str = "NETKIT_EMULATED_ISAS";

/// Pitfall B33: AVX2 does not imply FMA, and a machine without either is still one. This program runs itself on
/// machines that do not exist any more; where there is no emulator only the real machine is looked at.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn b33_every_feature_is_asked_for() {
    use std::arch::is_x86_feature_detected as has;
    use std::process::Command;

    let present: Vec<_> = Kernels::all().map(|kernels| kernels.isa().name()).collect();
    assert_eq!(present.contains(&"avx2"), has!("avx2") && has!("fma"), "{present:?}");
    if let Ok(expected) = std::env::var(EMULATED) {
        assert_eq!(present.join(" "), expected);
        let native = Kernels::native().isa().name();
        assert!(expected.ends_with(native), "{native} of {expected}");
        return;
    }
    if Command::new("qemu-x86_64").arg("--version").output().is_err() {
        println!("skipped: no qemu-x86_64");
        return;
    }
    for (cpu, expected) in [
        ("qemu64,-avx,-avx2,-fma", "scalar sse2"),
        ("Haswell,-avx512f", "scalar sse2 avx2"),
        ("Haswell,-fma", "scalar sse2"),
        ("Haswell,-avx2", "scalar sse2"),
        ("Haswell,-xsave", "scalar sse2"),
    ] {
        // Beside the choice, a few kernels: an instruction that the machine lacks ends the process. Not those of AVX2,
        // whose masked loads stop in front of a guard page on a processor; QEMU 7.2 reads all lanes.
        let kernels =
            ["dense_f32::rows_are_independent", "elementwise_s8::softmax_of_the_specification"];
        let kernels = if expected.ends_with("avx2") { &kernels[1..] } else { &kernels };
        for tests in [&["present::b33_every_feature_is_asked_for"][..], kernels] {
            let output = Command::new("qemu-x86_64")
                .args(["-cpu", cpu])
                .arg(std::env::current_exe().unwrap())
                .arg("--exact")
                .args(tests)
                .env(EMULATED, expected)
                .env_remove("NETKIT_ISA")
                .env_remove("NETKIT_REQUIRE_ISA")
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && !text.contains(" 0 passed"), "{cpu}: {text}");
        }
    }
}

#[test]
fn names_are_unique_and_found() {
    for isa in Isa::ALL {
        assert_eq!(Isa::from_name(isa.name()), Some(isa));
    }
    assert_eq!(Isa::from_name("AVX2"), None);
}
