//! What must hold whatever the bytes: one [`Target`] for each surface that takes data from outside.
//!
//! A target gets bytes and panics where a promise of `docs/safety.md` is broken: that is its whole interface, so the
//! fuzzer (`fuzz/`) and the mutation tests on stable Rust (`tests/mutations.rs`) run the same code. What a target
//! cannot see by itself (reads out of bounds, leaks) is for the sanitizers it runs under.
#![forbid(unsafe_code)]

mod cli;
mod expand;
mod file;
pub mod found;
mod kernels;
pub mod mutate;
mod onnx;
pub mod random;
mod runtime;
pub mod seeds;

use random::Random;

/// A surface that takes data from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also that of the fuzz target.
    pub name: &'static str,
    /// Does with some bytes what the surface does. `true` if they got as far as they can get.
    pub run: fn(&[u8]) -> bool,
    /// Inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Changes an input in ways that matter to the surface.
    pub mutate: fn(&mut Random, &mut Vec<u8>),
}

// A constant for each: a fuzz target names its own, so that its program holds, and instruments, nothing of the others.

/// Reading a `.nk` file.
pub const PARSE: Target =
    Target { name: "parse", run: file::parse, seeds: seeds::nk, mutate: mutate::nk };
/// Compiling one.
pub const COMPILE: Target =
    Target { name: "compile", run: file::compile_whole, seeds: seeds::nk, mutate: mutate::nk };
/// Writing what was read.
pub const ROUNDTRIP: Target =
    Target { name: "roundtrip", run: file::roundtrip, seeds: seeds::nk, mutate: mutate::nk };
/// `netkit::model!` on a file.
pub const EXPAND: Target =
    Target { name: "expand", run: expand::run, seeds: seeds::nk, mutate: mutate::nk };
/// Loading a file and running it.
pub const RUNTIME: Target =
    Target { name: "runtime", run: runtime::run, seeds: seeds::nk, mutate: mutate::nk };
/// Operators of any geometry.
pub const KERNELS: Target =
    Target { name: "kernels", run: kernels::run, seeds: seeds::noise, mutate: mutate::bytes };
/// Converting an ONNX file.
pub const ONNX: Target =
    Target { name: "onnx", run: onnx::run, seeds: seeds::onnx, mutate: mutate::protobuf };
/// A command line.
pub const CLI: Target =
    Target { name: "cli", run: cli::run, seeds: seeds::cli, mutate: mutate::arguments };

/// Every target.
pub const TARGETS: [Target; 8] = [PARSE, COMPILE, ROUNDTRIP, EXPAND, RUNTIME, KERNELS, ONNX, CLI];

/// The target of a name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
