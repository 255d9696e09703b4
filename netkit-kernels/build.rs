//! Tells the kernels what the target is that `cfg` does not say.
//!
//! No extension of Arm's M profile shows in `cfg(target_feature)` on a stable compiler. What shows is the target's name,
//! and for ARMv8-M, where the DSP extension is optional, the processor among the compiler's flags.

use std::env;

/// Processors of ARMv8-M that have the DSP extension, or can have it and are compiled for as if they had.
const WITH_DSP: [&str; 5] = ["cortex-m33", "cortex-m35p", "cortex-m52", "cortex-m55", "cortex-m85"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(netkit_micro, netkit_dsp, netkit_thumb2)");
    let target = env::var("TARGET").unwrap_or_default();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let with_dsp = || {
        let feature = flags.contains("+dsp");
        feature
            || WITH_DSP.iter().any(|processor| flags.contains(&format!("target-cpu={processor}")))
    };
    // Processors without vectors; `micro` has the kernels.
    if target.starts_with("thumb") || target.starts_with("riscv32") {
        println!("cargo:rustc-cfg=netkit_micro");
    }
    if target.starts_with("thumbv7em-") || (target.starts_with("thumbv8m.main-") && with_dsp()) {
        println!("cargo:rustc-cfg=netkit_dsp");
    } else if target.starts_with("thumbv7m-") || target.starts_with("thumbv8m.main-") {
        println!("cargo:rustc-cfg=netkit_thumb2");
    }
}
