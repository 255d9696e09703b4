//! x86-64: SSE2, which every such machine has, AVX2 with FMA, AVX-512.

mod avx2;
mod avx512;
mod sse2;
