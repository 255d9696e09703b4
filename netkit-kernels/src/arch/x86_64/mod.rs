//! x86-64: SSE2, which every such machine has, AVX2 with FMA, AVX-512.

mod avx2;
mod avx2_s8;
mod avx512;
mod avx512_s8;
pub(super) mod probe;
mod sse2;
mod sse2_s8;
mod transpose;
