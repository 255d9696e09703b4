//! Neural networks embedded into Rust programs at compile time.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(target_endian = "big")]
compile_error!(
    "netkit reads weights where they lie, as little-endian numbers, so big-endian targets are not supported"
);

pub mod aligned;
pub mod arena;
#[cfg(feature = "alloc")]
mod boxed;
mod edges;
pub mod error;
#[cfg(feature = "mmap")]
mod mmap;
mod model;
#[doc(hidden)]
pub mod private;
pub mod runtime;
mod self_test;

pub use model::{Layer, Model, QuantizedModel};
pub use netkit_core::quant::Quant;
pub use self_test::{Mismatch, SelfTest, SelfTestError};

/// Embeds a model into the program.
#[macro_export]
macro_rules! model {
    ($($invocation:tt)*) => {
        $crate::private::model! { [$crate] $($invocation)* }
    };
}

/// The bytes of a model file, aligned to a cache line, for [`runtime::Network::load`]. The path is
/// relative to the package's manifest. The file is not looked at: use [`model!`] to have it checked when the program is
/// compiled.
///
/// ```
/// static MODEL: &[u8] = netkit::include_model!("models/mnist_mlp.nk");
/// assert_eq!(MODEL[..4], *b"NKIT");
/// ```
#[macro_export]
macro_rules! include_model {
    ($path:literal) => {{
        const FILE: &[$crate::private::u8] = $crate::private::include_bytes!(
            $crate::private::concat!($crate::private::env!("CARGO_MANIFEST_DIR"), "/", $path)
        );
        static ALIGNED: $crate::aligned::Aligned<$crate::aligned::Align64, { FILE.len() }> =
            $crate::aligned::Aligned::part_of(FILE, 0);
        let bytes: &'static [$crate::private::u8] = ALIGNED.as_bytes();
        bytes
    }};
}

#[doc(hidden)]
pub use netkit_macros::model as __model;

/// Keeps generated items that need a heap where this crate has one.
#[cfg(feature = "alloc")]
#[doc(hidden)]
#[macro_export]
macro_rules! __if_alloc {
    ($($items:tt)*) => { $($items)* };
}

/// Drops generated items that need a heap where this crate has none.
#[cfg(not(feature = "alloc"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __if_alloc {
    ($($items:tt)*) => {};
}

/// The README's code is compiled with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
