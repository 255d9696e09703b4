//! AArch64: Advanced SIMD (NEON), which every such machine with floats has, and the dot products of Armv8.2.

mod dotprod;
mod neon;
mod neon_s8;
mod transpose;
