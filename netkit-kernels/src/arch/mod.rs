//! What an instruction set supplies: its vectors, and the microkernels that work on pointers.
//!
//! Only here (and nowhere in [`generic`](crate::generic)) is `unsafe` allowed.

mod scalar;
pub(crate) mod tile_f32;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64;
