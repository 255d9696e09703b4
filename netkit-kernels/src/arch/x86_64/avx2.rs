//! AVX2 with FMA: eight lanes.

use crate::isa::Avx2;
use crate::simd::{Kernel, Simd};
use core::arch::x86_64::*;

const LANES: usize = 8;

/// `MASKS[LANES − n..]` starts with `n` lanes of ones.
static MASKS: [i32; 2 * LANES] = {
    let mut masks = [0; 2 * LANES];
    let mut i = 0;
    while i < LANES {
        masks[i] = -1;
        i += 1;
    }
    masks
};

/// A mask whose first `n < LANES` lanes are set.
#[inline(always)]
fn first_lanes(_: Avx2, n: usize) -> __m256i {
    let start = MASKS.as_ptr().wrapping_add(LANES - n % LANES);
    // SAFETY: the token proves AVX2; LANES entries follow every start in 1..=LANES.
    unsafe { _mm256_loadu_si256(start.cast()) }
}

impl Simd for Avx2 {
    type Vector = __m256;

    const LANES: usize = LANES;
    const TILE_PIXELS: [usize; 3] = [12, 6, 0];
    const DEPTHWISE_PIXELS: usize = 4;
    const DEPTHWISE_EDGES: bool = true;
    // 3 × 4 and 4 × 3 are as fast, but most batches are even; 2 × 4 loads more for a product and is a tenth slower.
    const DENSE_TILE: [usize; 2] = [2, 6];

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma")]
        #[inline(never)]
        fn enter<K: Kernel>(token: Avx2, kernel: K) -> K::Output {
            kernel.run(token)
        }
        // SAFETY: the token proves the features.
        unsafe { enter(self, kernel) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Vector {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> Self::Vector {
        match from.first_chunk::<LANES>() {
            // SAFETY: the chunk has LANES floats.
            Some(chunk) => unsafe { self.load_pointer(chunk.as_ptr()) },
            // SAFETY: the token proves AVX2; only the lanes that the slice has are read.
            None => unsafe { _mm256_maskload_ps(from.as_ptr(), first_lanes(self, from.len())) },
        }
    }

    #[inline(always)]
    fn store(self, to: &mut [f32], vector: Self::Vector) {
        match to.first_chunk_mut::<LANES>() {
            // SAFETY: the chunk has LANES floats.
            Some(chunk) => unsafe { self.store_pointer(chunk.as_mut_ptr(), vector) },
            // SAFETY: the token proves AVX2; only the lanes that the slice has are written.
            None => unsafe {
                _mm256_maskstore_ps(to.as_mut_ptr(), first_lanes(self, to.len()), vector)
            },
        }
    }

    #[inline(always)]
    unsafe fn load_pointer(self, from: *const f32) -> Self::Vector {
        // SAFETY: the token proves AVX2; the caller vouches for LANES readable floats.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store_pointer(self, to: *mut f32, vector: Self::Vector) {
        // SAFETY: the token proves AVX2; the caller vouches for LANES writable floats.
        unsafe { _mm256_storeu_ps(to, vector) }
    }

    #[inline(always)]
    fn prefetch(self, from: *const f32) {
        // SAFETY: a hint reads nothing; the token proves SSE.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
    }

    #[inline(always)]
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    fn sqrt(self, x: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_sqrt_ps(x) }
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves FMA.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    // The instruction answers its second operand when the comparison fails: the definition asked for.
    #[inline(always)]
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    fn select_greater(
        self,
        a: Self::Vector,
        b: Self::Vector,
        yes: Self::Vector,
        no: Self::Vector,
    ) -> Self::Vector {
        // SAFETY: the token proves AVX.
        let mask = unsafe { _mm256_cmp_ps::<_CMP_GT_OQ>(a, b) };
        // SAFETY: the token proves AVX.
        unsafe { _mm256_blendv_ps(no, yes, mask) }
    }

    #[inline(always)]
    fn power_of_two(self, t: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX2.
        let bits = unsafe { _mm256_castps_si256(t) };
        // SAFETY: the token proves AVX2.
        let exponent = unsafe { _mm256_slli_epi32::<23>(bits) };
        // SAFETY: the token proves AVX2.
        let one = unsafe { _mm256_set1_epi32(0x3f80_0000) };
        // SAFETY: the token proves AVX2.
        let sum = unsafe { _mm256_add_epi32(exponent, one) };
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_castsi256_ps(sum) }
    }

    #[inline(always)]
    fn reduce_sum(self, vector: Self::Vector) -> f32 {
        // SAFETY: the token proves AVX.
        let low = unsafe { _mm256_castps256_ps128(vector) };
        // SAFETY: the token proves AVX.
        let high = unsafe { _mm256_extractf128_ps::<1>(vector) };
        // SAFETY: the token proves AVX.
        let half = unsafe { _mm_add_ps(low, high) };
        // SAFETY: the token proves AVX.
        let swapped = unsafe { _mm_movehl_ps(half, half) };
        // SAFETY: the token proves AVX.
        let pair = unsafe { _mm_add_ps(half, swapped) };
        // SAFETY: the token proves AVX.
        let odd = unsafe { _mm_shuffle_ps::<1>(pair, pair) };
        // SAFETY: the token proves AVX.
        let one = unsafe { _mm_add_ss(pair, odd) };
        // SAFETY: the token proves AVX.
        unsafe { _mm_cvtss_f32(one) }
    }

    #[inline(always)]
    fn reduce_sums(self, vectors: [Self::Vector; 4]) -> [f32; 4] {
        let [a, b, c, d] = vectors;
        // SAFETY: the token proves AVX.
        let ab = unsafe { _mm256_hadd_ps(a, b) };
        // SAFETY: the token proves AVX.
        let cd = unsafe { _mm256_hadd_ps(c, d) };
        // SAFETY: the token proves AVX.
        let abcd = unsafe { _mm256_hadd_ps(ab, cd) };
        // SAFETY: the token proves AVX.
        let low = unsafe { _mm256_castps256_ps128(abcd) };
        // SAFETY: the token proves AVX.
        let high = unsafe { _mm256_extractf128_ps::<1>(abcd) };
        // SAFETY: the token proves AVX.
        let total = unsafe { _mm_add_ps(low, high) };
        let mut sums = [0.0; 4];
        // SAFETY: the token proves AVX; the array has four floats.
        unsafe { _mm_storeu_ps(sums.as_mut_ptr(), total) };
        sums
    }

    #[inline(always)]
    fn reduce_max(self, vector: Self::Vector) -> f32 {
        // SAFETY: the token proves AVX.
        let low = unsafe { _mm256_castps256_ps128(vector) };
        // SAFETY: the token proves AVX.
        let high = unsafe { _mm256_extractf128_ps::<1>(vector) };
        // SAFETY: the token proves AVX.
        let half = unsafe { _mm_max_ps(low, high) };
        // SAFETY: the token proves AVX.
        let swapped = unsafe { _mm_movehl_ps(half, half) };
        // SAFETY: the token proves AVX.
        let pair = unsafe { _mm_max_ps(half, swapped) };
        // SAFETY: the token proves AVX.
        let odd = unsafe { _mm_shuffle_ps::<1>(pair, pair) };
        // SAFETY: the token proves AVX.
        let one = unsafe { _mm_max_ss(pair, odd) };
        // SAFETY: the token proves AVX.
        unsafe { _mm_cvtss_f32(one) }
    }
}
