//! A crate as strict as crates get, with names that get in the way.
#![no_std]
#![no_implicit_prelude]
#![forbid(unsafe_code)]
#![deny(
    warnings,
    missing_docs,
    unused,
    nonstandard_style,
    future_incompatible,
    rust_2018_idioms,
    let_underscore,
    unreachable_pub,
    unused_qualifications,
    unused_lifetimes,
    unused_import_braces,
    trivial_casts,
    trivial_numeric_casts,
    single_use_lifetimes,
    elided_lifetimes_in_paths,
    explicit_outlives_requirements,
    missing_debug_implementations,
    missing_copy_implementations,
    variant_size_differences
)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery)]
#![allow(missing_copy_implementations, reason = "a model is not to be copied")]
#![allow(non_camel_case_types, dead_code, reason = "names that get in the way")]

/// Names that generated code must not take for the real ones.
pub mod core {}
/// As above.
pub mod std {}
/// As above.
pub mod alloc {}
#[derive(Debug)]
struct Vec;
#[derive(Debug)]
struct Box;
#[derive(Debug)]
struct Option;
#[derive(Debug)]
struct Result;
#[derive(Debug)]
struct Some;
#[derive(Debug)]
struct None;
#[derive(Debug)]
struct String;
#[derive(Debug)]
struct Arena;
#[derive(Debug)]
struct Model;
#[derive(Debug)]
struct nk;
trait Default {}
#[allow(unused_macros)]
macro_rules! include_bytes {
    () => {};
}
#[allow(unused_macros)]
macro_rules! concat {
    () => {};
}
#[allow(unused_macros)]
macro_rules! env {
    () => {};
}
#[allow(unused_macros)]
macro_rules! assert {
    () => {};
}

// Two models side by side, named and by their files.
NETKIT::model!(#[derive(Debug)] "models/mlp.nk");
NETKIT::model!(
    /// With documentation of its own.
    #[derive(Debug)]
    pub Documented = "models/cnn.nk"
);
NETKIT::model!(#[derive(Debug)] pub(crate) Quantized = "models/cnn_int8.nk",);
// The same file twice.
NETKIT::model!(#[derive(Debug)] pub Again = "models/cnn.nk");
// Names that the generated code uses itself.
NETKIT::model!(#[derive(Debug)] pub Layer = "models/mlp.nk");
NETKIT::model!(#[derive(Debug)] pub Kernels = "models/cnn_int8.nk");
NETKIT::model!(#[derive(Debug)] pub FILE = "models/mlp.nk");
// For several inputs at once.
NETKIT::model!(#[derive(Debug)] pub Batches = "models/cnn.nk", batch = 3);
NETKIT::model!(#[derive(Debug)] pub QuantizedBatches = "models/cnn_int8.nk", batch = 2);
// Deprecated, which is for those to hear who use it.
NETKIT::model!(#[derive(Debug)] #[deprecated] pub Deprecated = "models/cnn_int8.nk");
// Left out.
NETKIT::model!(#[cfg(any())] pub Absent = "models/mlp.nk");
NETKIT::model!(#[cfg(all())] #[derive(Debug)] pub Present = "models/mlp.nk");

/// In a module, and from it.
pub mod inner {
    NETKIT::model!(#[derive(Debug)] pub(super) Mlp = "models/mlp.nk");
}

/// In a function, and in a block in it; through another macro.
#[must_use]
pub const fn total() -> usize {
    NETKIT::model!(#[derive(Debug)] Mlp = "models/mlp.nk");
    let outer = Mlp::INPUT_LEN;
    {
        NETKIT::model!(#[derive(Debug)] Mlp = "models/cnn.nk");
        outer + Mlp::INPUT_LEN
    }
}

macro_rules! declare {
    ($(#[$attribute:meta])* $visibility:vis $name:ident, $path:expr) => {
        NETKIT::model!($(#[$attribute])* $visibility $name = $path);
    };
}
declare!(#[derive(Debug)] pub Declared, "models/cnn.nk");

/// Sizes are constants of the type.
pub const ARENA_BYTES: usize = Documented::ARENA_BYTES + inner::Mlp::ARENA_BYTES;

/// A model in `.bss`.
pub static NETWORK: Again = Again::new();

/// Everything that a model can do.
#[must_use]
pub fn run() -> f32 {
    let mut float = Mlp::new();
    let input = [0.5; Mlp::INPUT_LEN];
    let mut output = float.forward(&input);
    float.forward_into(&input, &mut output);
    let mut quantized = Quantized::new();
    let bytes = quantized.forward_i8(&[1; Quantized::INPUT_LEN]);
    let real = quantized.forward(&[0.5; Quantized::INPUT_LEN]);
    let passed = float.self_test().is_ok() && quantized.self_test().is_ok();
    let from_boxed = Documented::new_boxed().forward(&[0.0; Documented::INPUT_LEN]);
    let by_default = <Present as ::core::default::Default>::default().forward(&input);
    let zero = Quantized::OUTPUT_QUANT.dequantize(bytes[0]);
    if passed { output[0] + real[0] + from_boxed[0] + by_default[0] + zero } else { 0.0 }
}
