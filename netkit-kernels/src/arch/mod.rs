//! What an instruction set supplies: its vectors, and the microkernels that work on pointers.
//!
//! Only here and in `micro`, its counterpart for microcontrollers (and nowhere in
//! [`generic`](crate::generic)), is `unsafe` allowed.

#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod aarch64;
pub(crate) mod add_s8;
#[cfg(any(netkit_dsp, netkit_thumb1, netkit_thumb2, netkit_mve))]
pub(crate) mod arm;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod blocks_s8;
pub(crate) mod depthwise_f32;
pub(crate) mod depthwise_s8;
pub(crate) mod dot_f32;
#[cfg(not(netkit_micro))]
pub(crate) mod dots_of_inputs_f32;
pub(crate) mod interleave_s8;
#[cfg(not(netkit_micro))]
pub(crate) mod max_sums_s8;
#[cfg(not(netkit_micro))]
pub(crate) mod one_row_s8;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod pairs_s8;
pub(crate) mod pool_f32;
pub(crate) mod probe;
#[cfg(test)]
mod refused;
#[cfg(netkit_rv32m)]
pub(crate) mod riscv32;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod rows_s8;
#[cfg(netkit_portable)]
mod scalar;
#[cfg(netkit_portable)]
mod scalar_s8;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod short_row_s8;
pub(crate) mod short_s8;
pub(crate) mod store_s8;
pub(crate) mod tile_f32;
pub(crate) mod tile_s8;
pub(crate) mod transpose;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm32;
pub(crate) mod winograd_f32;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64;
