//! WebAssembly's vectors of 128 bits.

mod simd128;
mod simd128_s8;
mod transpose;
