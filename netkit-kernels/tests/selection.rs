//! Which kernels the build script chooses: by the target's name and the crate's features, and what it says where these do
//! not fit.

#[path = "../build.rs"]
mod build_script;

use build_script::{kernels, packs, portable};

#[test]
fn the_target_decides() {
    for (target, expected) in [
        ("thumbv6m-none-eabi", &["micro", "thumb1"][..]),
        ("thumbv8m.base-none-eabi", &["micro", "thumb1"]),
        ("thumbv7m-none-eabi", &["micro", "thumb2"]),
        ("thumbv7em-none-eabi", &["micro", "dsp"]),
        ("thumbv7em-none-eabihf", &["micro", "dsp"]),
        ("thumbv8m.main-none-eabihf", &["micro", "thumb2"]),
        ("riscv32imac-unknown-none-elf", &["micro", "rv32m"]),
        ("riscv32i-unknown-none-elf", &["micro"]),
        ("riscv64gc-unknown-none-elf", &[]),
        ("aarch64-unknown-none", &[]),
        ("x86_64-unknown-linux-gnu", &[]),
        ("wasm32-unknown-unknown", &[]),
    ] {
        assert_eq!(kernels(target, false, false, "").unwrap(), expected, "{target}");
    }
}

#[test]
fn flags_alone_choose_nothing() {
    let flags = "-Ctarget-cpu=cortex-m55";
    assert_eq!(
        kernels("thumbv8m.main-none-eabi", false, false, flags).unwrap(),
        ["micro", "thumb2"]
    );
}

#[test]
fn features_choose_where_extensions_are_optional() {
    let main = "thumbv8m.main-none-eabihf";
    for (dsp, mve, flags, expected) in [
        (true, false, "-Ctarget-cpu=cortex-m33", "dsp"),
        (true, false, "-C\u{1f}target-cpu=cortex-m33", "dsp"),
        (true, false, "-Ctarget-feature=+dsp", "dsp"),
        (true, false, "-Ctarget-cpu=cortex-m55", "dsp"),
        (false, true, "-Ctarget-cpu=cortex-m55", "mve"),
        (true, true, "-Ctarget-cpu=cortex-m85", "mve"),
    ] {
        assert_eq!(kernels(main, dsp, mve, flags).unwrap(), ["micro", expected], "{flags}");
    }
    // Where it is always there, asking for it changes nothing.
    assert_eq!(kernels("thumbv7em-none-eabi", true, false, "").unwrap(), ["micro", "dsp"]);
}

#[test]
fn a_feature_that_does_not_fit_is_an_error_that_says_what_does() {
    for target in [
        "x86_64-unknown-linux-gnu",
        "thumbv6m-none-eabi",
        "thumbv7m-none-eabi",
        "thumbv8m.base-none-eabi",
        "riscv32imac-unknown-none-elf",
    ] {
        for (dsp, mve) in [(true, false), (false, true)] {
            let error = kernels(target, dsp, mve, "-Ctarget-cpu=cortex-m55").unwrap_err();
            assert!(error.contains(target) && error.contains("thumbv8m.main"), "{error}");
        }
    }
    assert!(kernels("thumbv7em-none-eabihf", false, true, "").is_err());
    let main = "thumbv8m.main-none-eabihf";
    assert!(kernels(main, true, false, "").unwrap_err().contains("target-cpu=cortex-m33"));
    assert!(kernels(main, false, true, "").unwrap_err().contains("target-cpu=cortex-m55"));
    assert!(kernels(main, false, true, "-Ctarget-cpu=cortex-m33").is_err());
}

#[test]
fn weights_are_packed_where_every_processor_has_vectors() {
    assert!(packs("x86_64", "fxsr,sse,sse2", ""));
    assert!(packs("aarch64", "neon", ""));
    assert!(packs("wasm32", "bulk-memory,simd128", ""));
    assert!(!packs("x86_64", "fxsr,sse,sse2", "scalar"));
    assert!(!packs("wasm32", "bulk-memory", ""));
    // What a stable compiler says of Cortex-M, and what one that shows all features does.
    assert!(!packs("arm", "", ""));
    assert!(!packs("arm", "dsp,mclass,v7", ""));
}

#[test]
fn portable_kernels_are_left_out_where_no_machine_needs_them() {
    for (arch, features, pinned, expected) in [
        ("x86_64", "fxsr,sse,sse2", "", false),
        ("x86_64", "fxsr,sse,sse2", "scalar", true),
        ("x86_64", "", "", true),
        ("aarch64", "neon", "", true),
        ("wasm32", "simd128", "", true),
        ("arm", "", "", true),
    ] {
        let packs = packs(arch, features, pinned);
        assert_eq!(portable(arch, packs, false), expected, "{arch} {features} {pinned}");
        assert!(portable(arch, packs, true));
    }
}
