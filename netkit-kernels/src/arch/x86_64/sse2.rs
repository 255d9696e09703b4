//! SSE2: four lanes, no fused multiply-add.

use crate::isa::Sse2;
use crate::simd::{Kernel, Simd};
use core::arch::x86_64::*;

const LANES: usize = 4;

impl Simd for Sse2 {
    type Vector = __m128;

    const LANES: usize = LANES;
    const TILE_PIXELS: [usize; 3] = [8, 6, 0];
    const FEW_TILES: bool = true;
    const DEPTHWISE_PIXELS: usize = 4;
    const DEPTHWISE_EDGES: bool = true;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "sse2")]
        #[inline(never)]
        fn enter<K: Kernel>(token: Sse2, kernel: K) -> K::Output {
            kernel.run(token)
        }
        // SAFETY: the token proves the features.
        unsafe { enter(self, kernel) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Vector {
        // SAFETY: the token proves SSE2.
        unsafe { _mm_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> Self::Vector {
        match from.first_chunk::<LANES>() {
            // SAFETY: the chunk has LANES floats.
            Some(chunk) => unsafe { self.load_pointer(chunk.as_ptr()) },
            None => {
                let mut chunk = [0.0; LANES];
                for (to, &from) in chunk.iter_mut().zip(from) {
                    *to = from;
                }
                // SAFETY: the chunk has LANES floats.
                unsafe { self.load_pointer(chunk.as_ptr()) }
            }
        }
    }

    #[inline(always)]
    fn store(self, to: &mut [f32], vector: Self::Vector) {
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
    unsafe fn load_pointer(self, from: *const f32) -> Self::Vector {
        // SAFETY: the token proves SSE2; the caller vouches for LANES readable floats.
        unsafe { _mm_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store_pointer(self, to: *mut f32, vector: Self::Vector) {
        // SAFETY: the token proves SSE2; the caller vouches for LANES writable floats.
        unsafe { _mm_storeu_ps(to, vector) }
    }

    #[inline(always)]
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves SSE2.
        unsafe { _mm_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves SSE2.
        unsafe { _mm_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves SSE2.
        unsafe { _mm_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves SSE2.
        unsafe { _mm_div_ps(a, b) }
    }

    #[inline(always)]
    fn sqrt(self, x: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves SSE2.
        unsafe { _mm_sqrt_ps(x) }
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves SSE2.
        let product = unsafe { _mm_mul_ps(a, b) };
        // SAFETY: the token proves SSE2.
        unsafe { _mm_add_ps(product, c) }
    }

    // The instruction answers its second operand when the comparison fails: the definition asked for.
    #[inline(always)]
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves SSE2.
        unsafe { _mm_max_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves SSE2.
        unsafe { _mm_min_ps(a, b) }
    }

    #[inline(always)]
    fn select_greater(
        self,
        a: Self::Vector,
        b: Self::Vector,
        yes: Self::Vector,
        no: Self::Vector,
    ) -> Self::Vector {
        // SAFETY: the token proves SSE2.
        let mask = unsafe { _mm_cmpgt_ps(a, b) };
        // SAFETY: the token proves SSE2.
        let yes = unsafe { _mm_and_ps(mask, yes) };
        // SAFETY: the token proves SSE2.
        let no = unsafe { _mm_andnot_ps(mask, no) };
        // SAFETY: the token proves SSE2.
        unsafe { _mm_or_ps(yes, no) }
    }

    #[inline(always)]
    fn power_of_two(self, t: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves SSE2.
        let bits = unsafe { _mm_castps_si128(t) };
        // SAFETY: the token proves SSE2.
        let exponent = unsafe { _mm_slli_epi32::<23>(bits) };
        // SAFETY: the token proves SSE2.
        let one = unsafe { _mm_set1_epi32(0x3f80_0000) };
        // SAFETY: the token proves SSE2.
        let sum = unsafe { _mm_add_epi32(exponent, one) };
        // SAFETY: the token proves SSE2.
        unsafe { _mm_castsi128_ps(sum) }
    }

    #[inline(always)]
    fn reduce_sum(self, vector: Self::Vector) -> f32 {
        let half = vector;
        // SAFETY: the token proves SSE2.
        let swapped = unsafe { _mm_movehl_ps(half, half) };
        // SAFETY: the token proves SSE2.
        let pair = unsafe { _mm_add_ps(half, swapped) };
        // SAFETY: the token proves SSE2.
        let odd = unsafe { _mm_shuffle_ps::<1>(pair, pair) };
        // SAFETY: the token proves SSE2.
        let one = unsafe { _mm_add_ss(pair, odd) };
        // SAFETY: the token proves SSE2.
        unsafe { _mm_cvtss_f32(one) }
    }

    #[inline(always)]
    fn reduce_sums(self, vectors: [Self::Vector; 4]) -> [f32; 4] {
        let [a, b, c, d] = vectors;
        // Transposed: lane i of the sum of the four rows is the sum of vector i.
        // SAFETY: the token proves SSE2.
        let ab_low = unsafe { _mm_unpacklo_ps(a, b) };
        // SAFETY: the token proves SSE2.
        let ab_high = unsafe { _mm_unpackhi_ps(a, b) };
        // SAFETY: the token proves SSE2.
        let cd_low = unsafe { _mm_unpacklo_ps(c, d) };
        // SAFETY: the token proves SSE2.
        let cd_high = unsafe { _mm_unpackhi_ps(c, d) };
        let ab = self.add(ab_low, ab_high);
        let cd = self.add(cd_low, cd_high);
        // SAFETY: the token proves SSE2.
        let even = unsafe { _mm_movelh_ps(ab, cd) };
        // SAFETY: the token proves SSE2.
        let odd = unsafe { _mm_movehl_ps(cd, ab) };
        let mut sums = [0.0; 4];
        self.store(&mut sums, self.add(even, odd));
        sums
    }

    #[inline(always)]
    fn reduce_max(self, vector: Self::Vector) -> f32 {
        let half = vector;
        // SAFETY: the token proves SSE2.
        let swapped = unsafe { _mm_movehl_ps(half, half) };
        // SAFETY: the token proves SSE2.
        let pair = unsafe { _mm_max_ps(half, swapped) };
        // SAFETY: the token proves SSE2.
        let odd = unsafe { _mm_shuffle_ps::<1>(pair, pair) };
        // SAFETY: the token proves SSE2.
        let one = unsafe { _mm_max_ss(pair, odd) };
        // SAFETY: the token proves SSE2.
        unsafe { _mm_cvtss_f32(one) }
    }
}
