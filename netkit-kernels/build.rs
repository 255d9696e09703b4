//! Tells the kernels what the target is that `cfg` does not say.
//!
//! No extension of Arm's M profile shows in `cfg(target_feature)` on a stable compiler, so what is there follows from the
//! target's name, and for ARMv8-M Mainline, where extensions are optional, from the features `dsp` and `mve` of this crate.
//! Code for an extension is only made where the compiler has been told of it too, so the flags must say the same.
//!
//! And names for what several conditions of `cfg` say together: that there are kernels which read packed filters, and that there
//! are portable ones.

#[path = "build/cmsis_nn.rs"]
#[allow(dead_code, reason = "the tests of `kernels` do not link it")]
mod cmsis_nn;

use std::env;

/// Processors of ARMv8-M with vectors (Helium, MVE).
const WITH_MVE: &[&str] = &["cortex-m52", "cortex-m55", "cortex-m85"];

/// Others that have the DSP extension, or can have it and are compiled for as if they had.
const WITH_DSP: &[&str] = &["cortex-m33", "cortex-m35p", "star-mc1"];

/// Everything that may be set, each with the prefix `netkit_`.
#[allow(dead_code, reason = "the tests of `kernels` do not print it")]
const ALL: &[&str] = &[
    "packs",
    "portable",
    "micro",
    "mve",
    "dsp",
    "thumb2",
    "thumb1",
    "rv32m",
    "cmsis_nn_7",
    "cmsis_nn_dsp",
    "cmsis_nn_mve",
];

/// The kernels for a target: those of microcontrollers are in `micro`.
pub(crate) fn kernels(
    target: &str,
    dsp: bool,
    mve: bool,
    flags: &str,
) -> Result<Vec<&'static str>, String> {
    let told = |feature: &str, processors: &[&str]| {
        flags.contains(&format!("+{feature}"))
            || processors.iter().any(|name| flags.contains(&format!("target-cpu={name}")))
    };
    let mainline = target.starts_with("thumbv8m.main-");
    if mve && !mainline {
        return Err(format!(
            "the feature `mve` is for ARMv8.1-M (thumbv8m.main-none-eabi and -eabihf), and this target is {target}; ask for \
             it under [target.thumbv8m.main-none-eabihf.dependencies]"
        ));
    }
    if dsp && !mainline && !target.starts_with("thumbv7em-") {
        return Err(format!(
            "the feature `dsp` is for ARMv8-M Mainline (thumbv8m.main-none-eabi and -eabihf; ARMv7E-M has the extension \
             anyway), and this target is {target}; ask for it under [target.thumbv8m.main-none-eabihf.dependencies]"
        ));
    }
    if mve && !told("mve", WITH_MVE) {
        return Err(format!(
            "the feature `mve` is on, but the compiler does not know that the processor has vectors: add \
             \"-Ctarget-cpu=cortex-m55\" (or one of {}) to rustflags in .cargo/config.toml",
            WITH_MVE.join(", ")
        ));
    }
    if dsp && mainline && !told("dsp", WITH_DSP) && !told("mve", WITH_MVE) {
        return Err(format!(
            "the feature `dsp` is on, but the compiler does not know that the processor has the extension: add \
             \"-Ctarget-cpu=cortex-m33\" (or one of {}), or \"-Ctarget-feature=+dsp\", to rustflags in .cargo/config.toml",
            WITH_DSP.join(", ")
        ));
    }
    let family = if target.starts_with("thumbv6m-") || target.starts_with("thumbv8m.base-") {
        "thumb1"
    } else if target.starts_with("thumbv7em-") {
        "dsp"
    } else if mainline {
        match (mve, dsp) {
            (true, _) => "mve",
            (false, true) => "dsp",
            (false, false) => "thumb2",
        }
    } else if target.starts_with("thumbv7m-") {
        "thumb2"
    } else if target.starts_with("riscv32im") || target.starts_with("riscv32g") {
        // The others have no multiplication.
        "rv32m"
    } else if target.starts_with("thumb") || target.starts_with("riscv32") {
        return Ok(vec!["micro"]);
    } else {
        return Ok(vec![]);
    };
    Ok(vec!["micro", family])
}

/// Whether the build has vector kernels whichever processor it meets, for which weights are packed beforehand. Of many targets a
/// stable compiler names no feature at all.
pub(crate) fn packs(arch: &str, features: &str, pinned: &str) -> bool {
    let baseline = match arch {
        "x86_64" => "sse2",
        "aarch64" => "neon",
        "wasm32" => "simd128",
        _ => return false,
    };
    features.split(',').any(|feature| feature == baseline) && pinned != "scalar"
}

/// Whether the build has the portable kernels: where they may be chosen, and where they are asked for. On x86-64 every machine has
/// better ones, and a program holds the kernels of all sets that it may meet.
pub(crate) fn portable(arch: &str, packs: bool, asked_for: bool) -> bool {
    arch != "x86_64" || !packs || asked_for
}

#[allow(dead_code, reason = "the tests of `kernels` do not run it")]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    for cfg in ALL {
        println!("cargo:rustc-check-cfg=cfg(netkit_{cfg})");
    }
    let target = env::var("TARGET").unwrap_or_default();
    let has = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let set = |cfg: &str| println!("cargo:rustc-cfg=netkit_{cfg}");
    let cfg = |name: &str| env::var(format!("CARGO_CFG_{name}")).unwrap_or_default();
    let packs = packs(&cfg("TARGET_ARCH"), &cfg("TARGET_FEATURE"), &cfg("NETKIT_ISA"));
    if packs {
        set("packs");
    }
    if portable(&cfg("TARGET_ARCH"), packs, has("PORTABLE")) {
        set("portable");
    }
    match kernels(&target, has("DSP"), has("MVE"), &flags) {
        Ok(kernels) => kernels.into_iter().for_each(set),
        Err(message) => refuse(&message),
    }
    if has("CMSIS_NN") {
        link_cmsis_nn(target);
    }
}

/// Has cargo say what is wrong, and fail.
fn refuse(message: &str) {
    for line in message.lines() {
        println!("cargo::error={line}");
    }
}

/// Links the library of the feature `cmsis-nn`, or says why not.
#[allow(dead_code, reason = "the tests of `kernels` do not run it")]
fn link_cmsis_nn(triple: String) {
    println!("cargo:rerun-if-env-changed={}", cmsis_nn::VARIABLE);
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let target = cmsis_nn::Target { triple, arch };
    let folder = env::var_os(cmsis_nn::VARIABLE).map(Into::into);
    let library = match cmsis_nn::find(folder, &target) {
        Ok(library) => library,
        Err(refusal) => return refuse(&refusal.to_string()),
    };
    println!("cargo:rerun-if-changed={}", cmsis_nn::file(&library).display());
    println!("cargo:rustc-link-search=native={}", library.folder.display());
    println!("cargo:rustc-link-lib=static=cmsis-nn");
    let set = |cfg: &str| println!("cargo:rustc-cfg=netkit_cmsis_nn_{cfg}");
    if library.is_version_7 {
        set("7");
    }
    if library.has_mve {
        set("mve");
    }
    if ["thumbv7em-", "thumbv8m.main-"].iter().any(|name| target.triple.starts_with(name)) {
        set("dsp");
    }
}
