//! SSE2 for int8: four lanes of 32 bits. It has neither a signed 64-bit product nor shifts by lane, so
//! rescaling goes through general registers.

use crate::isa::Sse2;
use crate::simd_s8::{KernelOn, SimdS8};
use core::arch::x86_64::*;
use netkit_core::pack::PANEL;
use netkit_core::quant::{Multiplier, OutputStage};

const LANES: usize = 4;

impl SimdS8 for Sse2 {
    type Sums = __m128i;
    type Parts = __m128i;
    type Inputs = [__m128i; 2];
    type Weights = [__m128i; 2];
    type Scales = [Multiplier; LANES];
    type Outputs = __m128i;

    const LANES: usize = LANES;
    const TILE_PIXELS: [usize; 3] = [4, 4, 1];
    const DEPTHWISE_PIXELS: usize = 4;

    #[inline(always)]
    fn call<K: KernelOn<Self>>(self, kernel: K) -> K::Output {
        #[inline(never)]
        fn enter<K: KernelOn<Sse2>>(token: Sse2, kernel: K) -> K::Output {
            kernel.run_on(token)
        }
        enter(self, kernel)
    }

    #[inline(always)]
    fn splat(self, x: i32) -> __m128i {
        // SAFETY: the token proves SSE2.
        unsafe { _mm_set1_epi32(x) }
    }

    #[inline(always)]
    unsafe fn load_sums(self, from: *const i32) -> __m128i {
        // SAFETY: the token proves SSE2; the caller vouches for LANES readable values.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_sums(self, to: *mut i32, sums: __m128i) {
        // SAFETY: the token proves SSE2; the caller vouches for LANES writable values.
        unsafe { _mm_storeu_si128(to.cast(), sums) }
    }

    #[inline(always)]
    fn add(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the token proves SSE2.
        unsafe { _mm_add_epi32(a, b) }
    }

    #[inline(always)]
    fn max(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the token proves SSE2.
        unsafe { larger(a, b) }
    }

    #[inline(always)]
    unsafe fn load_fractions(self, from: *const i8, zero_point: __m128i) -> __m128i {
        // SAFETY: the caller vouches for 4 readable bytes.
        let four = unsafe { from.cast::<i32>().read_unaligned() };
        // SAFETY: the token proves SSE2.
        unsafe { fractions(four, zero_point) }
    }

    #[inline(always)]
    unsafe fn splat_inputs(self, from: *const u8) -> [__m128i; 2] {
        // SAFETY: the caller vouches for 4 readable bytes.
        let four = unsafe { from.cast::<i32>().read_unaligned() };
        // SAFETY: the token proves SSE2.
        let bytes = unsafe { _mm_set1_epi32(four) };
        // SAFETY: the token proves SSE2.
        unsafe { split_inputs(bytes) }
    }

    #[inline(always)]
    unsafe fn load_inputs(self, from: *const u8) -> [__m128i; 2] {
        // SAFETY: the token proves SSE2; the caller vouches for 16 readable bytes.
        let bytes = unsafe { _mm_loadu_si128(from.cast()) };
        // SAFETY: the token proves SSE2.
        unsafe { split_inputs(bytes) }
    }

    #[inline(always)]
    unsafe fn load_weights(self, from: *const i8) -> [__m128i; 2] {
        // SAFETY: the token proves SSE2; the caller vouches for 16 readable bytes.
        let bytes = unsafe { _mm_loadu_si128(from.cast()) };
        // SAFETY: the token proves SSE2.
        unsafe { split_weights(bytes) }
    }

    #[inline(always)]
    fn parts(self, sums: __m128i) -> __m128i {
        sums
    }

    #[inline(always)]
    fn total(self, sums: __m128i) -> __m128i {
        sums
    }

    #[inline(always)]
    fn dot(self, sums: __m128i, inputs: [__m128i; 2], weights: [__m128i; 2]) -> __m128i {
        // SAFETY: the token proves SSE2.
        unsafe { dot(sums, inputs, weights) }
    }

    #[inline(always)]
    fn scales(self, multipliers: &[Multiplier; PANEL]) -> [Multiplier; LANES] {
        let [a, b, c, d, ..] = *multipliers;
        [a, b, c, d]
    }

    #[inline(always)]
    fn rescale<const MODERATE: bool>(self, sums: __m128i, scales: &[Multiplier; LANES]) -> __m128i {
        let mut lanes = [0; LANES];
        // SAFETY: the array has LANES values.
        unsafe { self.store_sums(lanes.as_mut_ptr(), sums) };
        for (lane, scale) in lanes.iter_mut().zip(scales) {
            *lane = scale.apply(*lane);
        }
        // SAFETY: the array has LANES values.
        unsafe { self.load_sums(lanes.as_ptr()) }
    }

    #[inline(always)]
    fn narrow(self, sums: [__m128i; 4], stage: &OutputStage) -> __m128i {
        // SAFETY: the token proves SSE2.
        unsafe { narrow(sums, stage) }
    }

    #[inline(always)]
    unsafe fn store_outputs<const START: usize, const LEN: usize>(
        self,
        to: *mut i8,
        outputs: __m128i,
    ) {
        if LEN == 4 {
            // SAFETY: the token proves SSE2; the caller vouches for 16 writable bytes.
            return unsafe { _mm_storeu_si128(to.cast(), outputs) };
        }
        let half = if START < 2 {
            // SAFETY: the token proves SSE2.
            unsafe { _mm_cvtsi128_si64(outputs) }
        } else {
            // SAFETY: the token proves SSE2.
            let swapped = unsafe { _mm_unpackhi_epi64(outputs, outputs) };
            // SAFETY: the token proves SSE2.
            unsafe { _mm_cvtsi128_si64(swapped) }
        };
        if LEN == 2 {
            // SAFETY: the caller vouches for 8 writable bytes.
            return unsafe { to.cast::<i64>().write_unaligned(half) };
        }
        let quarter = if START == 0 || START == 2 { half as i32 } else { (half >> 32) as i32 };
        // SAFETY: the caller vouches for 4 writable bytes.
        unsafe { to.cast::<i32>().write_unaligned(quarter) };
    }

    #[inline(always)]
    unsafe fn interleave(self, rows: [*const i8; 4], to: *mut u8) {
        let [a, b, c, d] = rows;
        let rows = [
            // SAFETY: the token proves SSE2; the caller vouches for 16 bytes of each row.
            unsafe { _mm_loadu_si128(a.cast()) },
            // SAFETY: as above.
            unsafe { _mm_loadu_si128(b.cast()) },
            // SAFETY: as above.
            unsafe { _mm_loadu_si128(c.cast()) },
            // SAFETY: as above.
            unsafe { _mm_loadu_si128(d.cast()) },
        ];
        // SAFETY: the token proves SSE2.
        let groups = unsafe { interleave(rows) };
        for (i, group) in groups.into_iter().enumerate() {
            // SAFETY: the caller vouches for 64 writable bytes.
            unsafe { _mm_storeu_si128(to.wrapping_add(16 * i).cast(), group) };
        }
    }
}

/// The larger of each pair: there is an instruction for 16 bits only.
#[target_feature(enable = "sse2")]
#[inline]
fn larger(a: __m128i, b: __m128i) -> __m128i {
    let first = _mm_cmpgt_epi32(a, b);
    _mm_or_si128(_mm_and_si128(first, a), _mm_andnot_si128(first, b))
}

#[target_feature(enable = "sse2")]
#[inline]
fn narrow(sums: [__m128i; 4], stage: &OutputStage) -> __m128i {
    // Saturation cannot be seen: it starts where the result is past every clamp.
    let zero_point = _mm_set1_epi16(stage.zero_point as i16);
    let low = _mm_set1_epi16(i16::from(stage.low));
    let high = _mm_set1_epi16(i16::from(stage.high));
    let clamp = |pair| _mm_min_epi16(_mm_max_epi16(_mm_adds_epi16(pair, zero_point), low), high);
    let first = clamp(_mm_packs_epi32(sums[0], sums[1]));
    let second = clamp(_mm_packs_epi32(sums[2], sums[3]));
    _mm_packs_epi16(first, second)
}

#[target_feature(enable = "sse2")]
#[inline]
fn interleave(rows: [__m128i; 4]) -> [__m128i; 4] {
    let offset = _mm_set1_epi8(-128);
    let (a, b) = (_mm_xor_si128(rows[0], offset), _mm_xor_si128(rows[1], offset));
    let (c, d) = (_mm_xor_si128(rows[2], offset), _mm_xor_si128(rows[3], offset));
    let low = [_mm_unpacklo_epi8(a, b), _mm_unpacklo_epi8(c, d)];
    let high = [_mm_unpackhi_epi8(a, b), _mm_unpackhi_epi8(c, d)];
    [
        _mm_unpacklo_epi16(low[0], low[1]),
        _mm_unpackhi_epi16(low[0], low[1]),
        _mm_unpacklo_epi16(high[0], high[1]),
        _mm_unpackhi_epi16(high[0], high[1]),
    ]
}

#[target_feature(enable = "sse2")]
#[inline]
fn fractions(four: i32, zero_point: __m128i) -> __m128i {
    // Each byte on top of a lane of its own, then shifted down with its sign.
    let bytes = _mm_cvtsi32_si128(four);
    let pairs = _mm_unpacklo_epi8(bytes, bytes);
    let values = _mm_srai_epi32::<24>(_mm_unpacklo_epi16(pairs, pairs));
    _mm_slli_epi32::<20>(_mm_sub_epi32(values, zero_point))
}

/// Four unsigned bytes of each lane as two pairs of 16 bits: the even bytes and the odd ones.
#[target_feature(enable = "sse2")]
#[inline]
fn split_inputs(bytes: __m128i) -> [__m128i; 2] {
    [_mm_and_si128(bytes, _mm_set1_epi16(0xff)), _mm_srli_epi16::<8>(bytes)]
}

/// The same of signed bytes.
#[target_feature(enable = "sse2")]
#[inline]
fn split_weights(bytes: __m128i) -> [__m128i; 2] {
    [_mm_srai_epi16::<8>(_mm_slli_epi16::<8>(bytes)), _mm_srai_epi16::<8>(bytes)]
}

#[target_feature(enable = "sse2")]
#[inline]
fn dot(sums: __m128i, inputs: [__m128i; 2], weights: [__m128i; 2]) -> __m128i {
    // At most 2 · 255 · 128 a pair: nothing to saturate.
    let even = _mm_madd_epi16(inputs[0], weights[0]);
    let odd = _mm_madd_epi16(inputs[1], weights[1]);
    _mm_add_epi32(_mm_add_epi32(sums, even), odd)
}
