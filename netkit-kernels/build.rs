//! Tells the kernels what the target is that `cfg` does not say.
//!
//! No extension of Arm's M profile shows in `cfg(target_feature)` on a stable compiler. What shows is the target's name,
//! and for ARMv8-M, where the DSP extension is optional, the processor among the compiler's flags.
//!
//! And one name for what several conditions of `cfg` say together: that there are kernels which read packed filters.

use std::env;

/// Processors of ARMv8-M with vectors (Helium, MVE) for integers.
const WITH_MVE: &[&str] = &["cortex-m52", "cortex-m55", "cortex-m85"];

/// Others that have the DSP extension, or can have it and are compiled for as if they had.
const WITH_DSP: &[&str] = &["cortex-m33", "cortex-m35p"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!(
        "cargo:rustc-check-cfg=cfg(netkit_packs, netkit_micro, netkit_mve, netkit_dsp, netkit_thumb2)"
    );
    let target = env::var("TARGET").unwrap_or_default();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let has = |feature: &str, processors: &[&str]| {
        flags.contains(&format!("+{feature}"))
            || processors.iter().any(|name| flags.contains(&format!("target-cpu={name}")))
    };
    let set = |cfg: &str| println!("cargo:rustc-cfg=netkit_{cfg}");
    let cfg = |name: &str| env::var(format!("CARGO_CFG_{name}")).unwrap_or_default();
    let baseline = match cfg("TARGET_ARCH").as_str() {
        "x86_64" => "sse2",
        "aarch64" => "neon",
        "wasm32" => "simd128",
        _ => "",
    };
    let features = cfg("TARGET_FEATURE");
    if features.split(',').any(|feature| feature == baseline) && cfg("NETKIT_ISA") != "scalar" {
        set("packs");
    }
    // Microcontrollers, whose kernels are in `micro`.
    if target.starts_with("thumb") || target.starts_with("riscv32") {
        set("micro");
    }
    if target.starts_with("thumbv7em-") {
        set("dsp");
    } else if target.starts_with("thumbv7m-") {
        set("thumb2");
    } else if target.starts_with("thumbv8m.main-") {
        if has("mve", WITH_MVE) {
            set("mve");
        } else if has("dsp", WITH_DSP) {
            set("dsp");
        } else {
            set("thumb2");
        }
    }
}
