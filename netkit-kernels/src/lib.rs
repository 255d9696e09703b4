//! Neural-network kernels: portable, SIMD and bare metal.
//!
//! What a network computes is a list of operators ([`netkit_core::op`]); each has a *door* here, a safe
//! function that takes the operator's attributes, its tensors as slices (NHWC, channels last), and
//! scratch memory. A door exists as a method of [`Kernels`], the kernels of one instruction set, and as
//! a function that uses the best set of this machine.
//!
//! ```
//! use netkit_core::op::{Activation, Dense};
//! use netkit_kernels::{Filter, Kernels, dense_f32};
//!
//! let dense = Dense { rows: 1, in_features: 2, out_features: 3 };
//! let filter = Filter::File { values: &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], scale: None };
//! let mut output = [0.0; 3];
//! dense_f32(&dense, &[3.0, -4.0], filter, &[0.5; 3], Activation::Relu, &mut output);
//! assert_eq!(output, [3.5, 0.0, 0.0]);
//!
//! for kernels in Kernels::all() {
//!     kernels.dense_f32(&dense, &[3.0, -4.0], filter, &[0.5; 3], Activation::Relu, &mut output);
//!     assert_eq!(output, [3.5, 0.0, 0.0], "{}", kernels.isa().name());
//! }
//! ```
//!
//! # What a door checks
//!
//! The lengths of its slices against the operator's attributes, once. If one does not fit, a build with
//! debug assertions panics and says which; any other returns with the output untouched. No door has a
//! panic path in a release build, none allocates, and all are sound for any argument. (With the feature
//! `parallel`, the threads of the pool allocate scratch of their own, once.)
//!
//! # Rows
//!
//! Doors of windowed operators take the range of output rows to compute, and an output that holds just
//! these. The result does not depend on how the rows are cut. The feature `parallel` makes use of that: an operator of
//! millions of multiply-accumulates is cut into ranges of rows for the threads of rayon's pool.
//!
//! # The same result everywhere?
//!
//! A float door has an error bound, stated in its documentation and tested on every instruction set
//! against the textbook loops of [`mod@reference`]. Between instruction sets the last bits differ (fused
//! multiply-add, widths of partial sums). On one instruction set they do not depend on how the filter
//! arrives ([`Filter`]), how rows are cut, or where slices lie. Denormal numbers are computed as such.
//!
//! An int8 door is exact: on every instruction set it gives what [`netkit_core::quant`] defines, to the
//! last bit.
//!
//! # Choosing an instruction set
//!
//! [`Kernels::native`] says how the choice is made and how to pin it. `std` adds detection at run time;
//! without it a program holds the kernels of what it is compiled for and no others.
//!
//! # Adding an instruction set
//!
//! 1. A token in [`isa`] and a variant of [`Isa`]: `detect` tests *every* feature the kernels are
//!    compiled with.
//! 2. A variant of `Choice` in `dispatch.rs`; the compiler lists the matches that miss it. Put it into
//!    `STRONGEST_FIRST` and, if it is an architecture's first, among the baselines of `build.rs`: weights
//!    are then packed for it.
//! 3. `arch/<architecture>/<set>.rs`: `Simd` for the token. `TILE_PIXELS` are the most accumulators the
//!    registers hold beside the weights of one step; `call` is a function with the set's
//!    `#[target_feature]`. `max`, `min` and `select_greater` must treat NaN as `simd.rs` says.
//! 4. `arch/<architecture>/<set>_s8.rs`: `SimdS8` for the token; an instruction set that adds nothing to
//!    float arithmetic has only this.
//! 5. Nothing for the tests: `tests/` runs every kernel on each of [`Kernels::all`]. A machine that has the
//!    set, if CI's has not, goes into `tests/emulated/run.sh`.
#![no_std]
// Where it may be: the modules below that allow it, and no other.
#![deny(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!("netkit reads weights where they lie, as little-endian; this target is big-endian");

#[cfg(any(feature = "std", test))]
extern crate std;

#[allow(unsafe_code)]
mod arch;
#[cfg(feature = "cmsis-nn")]
#[allow(unsafe_code)]
mod cmsis_nn;
mod dispatch;
mod doors;
mod filter;
mod filter_s8;
mod generic;
pub mod isa;
mod layout;
#[cfg(any(netkit_micro, test))]
#[allow(unsafe_code)]
mod micro;
mod parallel;
pub mod reference;
#[allow(unsafe_code)]
mod simd;
#[allow(unsafe_code)]
mod simd_s8;
pub mod workspace;
mod workspace_pooled;
#[cfg_attr(feature = "cmsis-nn", allow(unreachable_pub, reason = "behind those of the library"))]
mod workspace_s8;

pub use dispatch::Kernels;
pub use doors::*;
pub use filter::{Filter, FilterForm};
pub use filter_s8::FilterS8;
pub use isa::Isa;
pub use layout::ROW_SUMS;
