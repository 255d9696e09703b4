//! AVX-512: sixteen lanes, tails by mask.

use crate::isa::Avx512;
use crate::simd::{Kernel, Simd};
use core::arch::x86_64::*;

const LANES: usize = 16;

/// A mask whose first `n < LANES` lanes are set.
#[inline(always)]
const fn first_lanes(n: usize) -> __mmask16 {
    ((1u32 << (n % LANES)) - 1) as __mmask16
}

/// A mask whose first `n ≤ LANES` lanes are set.
#[inline(always)]
const fn up_to(n: usize) -> __mmask16 {
    ((1u32 << (n % 32)) - 1) as __mmask16
}

/// The upper eight lanes added to the lower.
#[inline(always)]
fn halves_added(_: Avx512, vector: __m512) -> __m256 {
    // SAFETY: the token proves AVX-512.
    let lower = unsafe { _mm512_castps512_ps256(vector) };
    // SAFETY: the token proves AVX-512.
    let upper = unsafe { _mm512_extractf32x8_ps::<1>(vector) };
    // SAFETY: the token proves AVX-512.
    unsafe { _mm256_add_ps(lower, upper) }
}

/// `sums[v] = x[index] · weights[v] + sums[v]`
///
/// In assembly so that each broadcast stays beside the products it feeds: the compiler would rather hoist
/// the broadcasts of all pixels of a tile, and spill them for want of registers. Not declared `pure`,
/// which is what keeps the order.
///
/// # Safety
/// `x + index` is valid for reading.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn mul_add_broadcast_2(
    x: *const f32,
    index: usize,
    weights: &[__m512; 2],
    sums: &mut [__m512; 2],
) {
    let [mut a, mut b] = *sums;
    // Named, although nothing reads it: its type is what tells the width of the register.
    let broadcast: __m512;
    // SAFETY: reads the float that the caller vouches for, writes registers.
    unsafe {
        core::arch::asm!(
            "vbroadcastss {x}, dword ptr [{p} + 4*{i}]",
            "vfmadd231ps {a}, {x}, {v}",
            "vfmadd231ps {b}, {x}, {w}",
            x = out(zmm_reg) broadcast,
            p = in(reg) x,
            i = in(reg) index,
            a = inout(zmm_reg) a,
            b = inout(zmm_reg) b,
            v = in(zmm_reg) weights[0],
            w = in(zmm_reg) weights[1],
            options(readonly, nostack, preserves_flags)
        );
    }
    _ = broadcast;
    *sums = [a, b];
}

/// `sum = x[index] · weight + sum`, as [`mul_add_broadcast_2`]; the instruction broadcasts by itself.
///
/// # Safety
/// `x + index` is valid for reading.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn mul_add_broadcast_1(x: *const f32, index: usize, weight: &__m512, sum: &mut __m512) {
    let mut a = *sum;
    // SAFETY: reads the float that the caller vouches for, writes registers.
    unsafe {
        core::arch::asm!(
            "vfmadd231ps {a}, {v}, dword ptr [{p} + 4*{i}]{{1to16}}",
            p = in(reg) x,
            i = in(reg) index,
            a = inout(zmm_reg) a,
            v = in(zmm_reg) *weight,
            options(readonly, nostack, preserves_flags)
        );
    }
    *sum = a;
}

impl Simd for Avx512 {
    type Vector = __m512;

    const LANES: usize = LANES;
    const TILE_PIXELS: [usize; 3] = [14, 14, 9];
    const MASKS: bool = true;
    const DEPTHWISE_PIXELS: usize = 8;
    const DEPTHWISE_PAIRS: usize = 7;
    const DEPTHWISE_EDGES: bool = true;
    // 2 × 8 is slower, 6 × 4 faster only where rows are not aligned.
    const DENSE_TILE: [usize; 2] = [4, 4];

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
        #[inline(never)]
        fn enter<K: Kernel>(token: Avx512, kernel: K) -> K::Output {
            kernel.run(token)
        }
        // SAFETY: the token proves the features.
        unsafe { enter(self, kernel) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> Self::Vector {
        match from.first_chunk::<LANES>() {
            // SAFETY: the chunk has LANES floats.
            Some(chunk) => unsafe { self.load_pointer(chunk.as_ptr()) },
            // SAFETY: the token proves AVX-512; only the lanes that the slice has are read.
            None => unsafe { _mm512_maskz_loadu_ps(first_lanes(from.len()), from.as_ptr()) },
        }
    }

    #[inline(always)]
    fn store(self, to: &mut [f32], vector: Self::Vector) {
        match to.first_chunk_mut::<LANES>() {
            // SAFETY: the chunk has LANES floats.
            Some(chunk) => unsafe { self.store_pointer(chunk.as_mut_ptr(), vector) },
            // SAFETY: the token proves AVX-512; only the lanes that the slice has are written.
            None => unsafe {
                _mm512_mask_storeu_ps(to.as_mut_ptr(), first_lanes(to.len()), vector)
            },
        }
    }

    #[inline(always)]
    unsafe fn load_pointer(self, from: *const f32) -> Self::Vector {
        // SAFETY: the token proves AVX-512; the caller vouches for LANES readable floats.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store_pointer(self, to: *mut f32, vector: Self::Vector) {
        // SAFETY: the token proves AVX-512; the caller vouches for LANES writable floats.
        unsafe { _mm512_storeu_ps(to, vector) }
    }

    #[inline(always)]
    unsafe fn load_part(self, from: *const f32, lanes: usize) -> Self::Vector {
        // SAFETY: the token proves AVX-512; the caller vouches for the lanes that are read.
        unsafe { _mm512_maskz_loadu_ps(up_to(lanes), from) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, lanes: usize, vector: Self::Vector) {
        // SAFETY: the token proves AVX-512; the caller vouches for the lanes that are written.
        unsafe { _mm512_mask_storeu_ps(to, up_to(lanes), vector) }
    }

    // Into the first level. On Zen 5 hints for the second alone were no help with what lies beyond the reach of the TLB.
    #[inline(always)]
    fn prefetch(self, from: *const f32) {
        // SAFETY: a hint reads nothing; the token proves SSE.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }

    #[inline(always)]
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    fn sqrt(self, x: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_sqrt_ps(x) }
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn mul_add_broadcast<const V: usize>(
        self,
        x: *const f32,
        index: usize,
        weights: &[__m512; V],
        sums: &mut [__m512; V],
    ) {
        let (pairs, single) = sums.as_chunks_mut::<2>();
        let (weight_pairs, single_weight) = weights.as_chunks::<2>();
        for (sums, weights) in pairs.iter_mut().zip(weight_pairs) {
            // SAFETY: the token proves AVX-512; the caller vouches for the pointer.
            unsafe { mul_add_broadcast_2(x, index, weights, sums) };
        }
        for (sum, weight) in single.iter_mut().zip(single_weight) {
            // SAFETY: the token proves AVX-512; the caller vouches for the pointer.
            unsafe { mul_add_broadcast_1(x, index, weight, sum) };
        }
    }

    // The instruction answers its second operand when the comparison fails: the definition asked for.
    #[inline(always)]
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    fn select_greater(
        self,
        a: Self::Vector,
        b: Self::Vector,
        yes: Self::Vector,
        no: Self::Vector,
    ) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        let mask = unsafe { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b) };
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_mask_blend_ps(mask, no, yes) }
    }

    #[inline(always)]
    fn power_of_two(self, t: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        let bits = unsafe { _mm512_castps_si512(t) };
        // SAFETY: the token proves AVX-512.
        let exponent = unsafe { _mm512_slli_epi32::<23>(bits) };
        // SAFETY: the token proves AVX-512.
        let one = unsafe { _mm512_set1_epi32(0x3f80_0000) };
        // SAFETY: the token proves AVX-512.
        let sum = unsafe { _mm512_add_epi32(exponent, one) };
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_castsi512_ps(sum) }
    }

    // Neither needs bounds: the fraction of an infinity is 0, and `scale` saturates.
    #[inline(always)]
    fn split_integer(self, x: Self::Vector) -> (Self::Vector, Self::Vector) {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        // SAFETY: the token proves AVX-512.
        let fraction = unsafe { _mm512_reduce_ps::<NEAREST>(x) };
        // SAFETY: the token proves AVX-512.
        let integer = unsafe { _mm512_roundscale_ps::<NEAREST>(x) };
        (fraction, integer)
    }

    #[inline(always)]
    fn scale(self, x: Self::Vector, n: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_scalef_ps(x, n) }
    }

    #[inline(always)]
    fn reduce_sum(self, vector: Self::Vector) -> f32 {
        // SAFETY: the token proves AVX-512.
        let lower = unsafe { _mm512_castps512_ps256(vector) };
        // SAFETY: the token proves AVX-512.
        let upper = unsafe { _mm512_extractf32x8_ps::<1>(vector) };
        // SAFETY: the token proves AVX-512.
        let eight = unsafe { _mm256_add_ps(lower, upper) };
        // SAFETY: the token proves AVX-512.
        let low = unsafe { _mm256_castps256_ps128(eight) };
        // SAFETY: the token proves AVX-512.
        let high = unsafe { _mm256_extractf128_ps::<1>(eight) };
        // SAFETY: the token proves AVX-512.
        let half = unsafe { _mm_add_ps(low, high) };
        // SAFETY: the token proves AVX-512.
        let swapped = unsafe { _mm_movehl_ps(half, half) };
        // SAFETY: the token proves AVX-512.
        let pair = unsafe { _mm_add_ps(half, swapped) };
        // SAFETY: the token proves AVX-512.
        let odd = unsafe { _mm_shuffle_ps::<1>(pair, pair) };
        // SAFETY: the token proves AVX-512.
        let one = unsafe { _mm_add_ss(pair, odd) };
        // SAFETY: the token proves AVX-512.
        unsafe { _mm_cvtss_f32(one) }
    }

    #[inline(always)]
    fn reduce_sums(self, vectors: [Self::Vector; 4]) -> [f32; 4] {
        let [a, b, c, d] = vectors;
        let (a, b) = (halves_added(self, a), halves_added(self, b));
        let (c, d) = (halves_added(self, c), halves_added(self, d));
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
        // SAFETY: the token proves AVX-512.
        let lower = unsafe { _mm512_castps512_ps256(vector) };
        // SAFETY: the token proves AVX-512.
        let upper = unsafe { _mm512_extractf32x8_ps::<1>(vector) };
        // SAFETY: the token proves AVX-512.
        let eight = unsafe { _mm256_max_ps(lower, upper) };
        // SAFETY: the token proves AVX-512.
        let low = unsafe { _mm256_castps256_ps128(eight) };
        // SAFETY: the token proves AVX-512.
        let high = unsafe { _mm256_extractf128_ps::<1>(eight) };
        // SAFETY: the token proves AVX-512.
        let half = unsafe { _mm_max_ps(low, high) };
        // SAFETY: the token proves AVX-512.
        let swapped = unsafe { _mm_movehl_ps(half, half) };
        // SAFETY: the token proves AVX-512.
        let pair = unsafe { _mm_max_ps(half, swapped) };
        // SAFETY: the token proves AVX-512.
        let odd = unsafe { _mm_shuffle_ps::<1>(pair, pair) };
        // SAFETY: the token proves AVX-512.
        let one = unsafe { _mm_max_ss(pair, odd) };
        // SAFETY: the token proves AVX-512.
        unsafe { _mm_cvtss_f32(one) }
    }
}
