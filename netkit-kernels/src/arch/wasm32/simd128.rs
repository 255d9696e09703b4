//! WebAssembly's vectors: four lanes, no fused multiply-add.

use crate::isa::Simd128;
use crate::simd::{Kernel, Simd};
use core::arch::wasm32::*;

const LANES: usize = 4;

impl Simd for Simd128 {
    type Vector = v128;

    const LANES: usize = LANES;
    // What engines have on x86-64: 16 registers.
    const TILE_PIXELS: [usize; 3] = [8, 6, 0];
    const DEPTHWISE_PIXELS: usize = 4;

    // The whole module is compiled for vectors, or this one is not there: no function needs the feature of its own.
    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        #[inline(never)]
        fn enter<K: Kernel>(token: Simd128, kernel: K) -> K::Output {
            kernel.run(token)
        }
        enter(self, kernel)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> v128 {
        f32x4_splat(x)
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> v128 {
        match from {
            [a, b, c, d, ..] => f32x4(*a, *b, *c, *d),
            [a, b, c] => f32x4(*a, *b, *c, 0.0),
            [a, b] => f32x4(*a, *b, 0.0, 0.0),
            [a] => f32x4(*a, 0.0, 0.0, 0.0),
            [] => f32x4_splat(0.0),
        }
    }

    #[inline(always)]
    fn store(self, to: &mut [f32], vector: v128) {
        match to.first_chunk_mut::<LANES>() {
            // SAFETY: the chunk has LANES floats.
            Some(chunk) => unsafe { self.store_pointer(chunk.as_mut_ptr(), vector) },
            None => {
                let mut chunk = [0.0; LANES];
                // SAFETY: the chunk has LANES floats.
                unsafe { self.store_pointer(chunk.as_mut_ptr(), vector) };
                for (to, from) in to.iter_mut().zip(chunk) {
                    *to = from;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn load_pointer(self, from: *const f32) -> v128 {
        // SAFETY: the caller vouches for LANES readable floats; the instruction asks for no alignment.
        unsafe { v128_load(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_pointer(self, to: *mut f32, vector: v128) {
        // SAFETY: the caller vouches for LANES writable floats; the instruction asks for no alignment.
        unsafe { v128_store(to.cast(), vector) };
    }

    #[inline(always)]
    fn add(self, a: v128, b: v128) -> v128 {
        f32x4_add(a, b)
    }

    #[inline(always)]
    fn sub(self, a: v128, b: v128) -> v128 {
        f32x4_sub(a, b)
    }

    #[inline(always)]
    fn mul(self, a: v128, b: v128) -> v128 {
        f32x4_mul(a, b)
    }

    #[inline(always)]
    fn div(self, a: v128, b: v128) -> v128 {
        f32x4_div(a, b)
    }

    // Not the relaxed multiply-add, whose rounding is the host's choice.
    #[inline(always)]
    fn mul_add(self, a: v128, b: v128, c: v128) -> v128 {
        f32x4_add(f32x4_mul(a, b), c)
    }

    // `pmax(x, y)` is `x < y ? y : x`: the definition asked for, sides exchanged.
    #[inline(always)]
    fn max(self, a: v128, b: v128) -> v128 {
        f32x4_pmax(b, a)
    }

    #[inline(always)]
    fn min(self, a: v128, b: v128) -> v128 {
        f32x4_pmin(b, a)
    }

    #[inline(always)]
    fn select_greater(self, a: v128, b: v128, yes: v128, no: v128) -> v128 {
        v128_bitselect(yes, no, f32x4_gt(a, b))
    }

    #[inline(always)]
    fn power_of_two(self, t: v128) -> v128 {
        i32x4_add(i32x4_shl(t, 23), i32x4_splat(0x3f80_0000))
    }

    #[inline(always)]
    fn reduce_sum(self, vector: v128) -> f32 {
        let swapped = i32x4_shuffle::<2, 3, 0, 1>(vector, vector);
        let pair = f32x4_add(vector, swapped);
        f32x4_extract_lane::<0>(pair) + f32x4_extract_lane::<1>(pair)
    }

    #[inline(always)]
    fn reduce_sums(self, vectors: [v128; 4]) -> [f32; 4] {
        let [a, b, c, d] = vectors;
        // Transposed: lane i of the sum of the four rows is the sum of vector i.
        let ab = f32x4_add(i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b));
        let cd = f32x4_add(i32x4_shuffle::<0, 4, 1, 5>(c, d), i32x4_shuffle::<2, 6, 3, 7>(c, d));
        let even = i32x4_shuffle::<0, 1, 4, 5>(ab, cd);
        let odd = i32x4_shuffle::<2, 3, 6, 7>(ab, cd);
        let mut sums = [0.0; 4];
        self.store(&mut sums, f32x4_add(even, odd));
        sums
    }

    #[inline(always)]
    fn reduce_max(self, vector: v128) -> f32 {
        let pair = self.max(vector, i32x4_shuffle::<2, 3, 0, 1>(vector, vector));
        let one = self.max(pair, i32x4_shuffle::<1, 0, 3, 2>(pair, pair));
        f32x4_extract_lane::<0>(one)
    }
}
