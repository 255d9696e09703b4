//! AVX-512 for int8, with and without VNNI: sixteen lanes of 32 bits.

use crate::arch::blocks_s8::BlocksS8;
use crate::arch::rows_s8::FoldS8;
use crate::generic::dense_s8::DenseS8;
use crate::generic::depthwise_conv2d_s8::DepthwiseConv2dS8;
use crate::isa::{Avx512, Avx512Vnni};
use crate::simd_s8::{KernelOn, SimdS8};
use core::arch::asm;
use core::arch::x86_64::*;
use netkit_core::pack::PANEL;
use netkit_core::quant::{Multiplier, OutputStage};

/// Multipliers of sixteen channels, as [`mbqm`](Multiplier::apply) takes them apart.
#[derive(Clone, Copy)]
pub(crate) struct Scales {
    left: __m512i,
    right: __m512i,
    /// Of even and odd lanes apart: products have 64 bits.
    multiplier: [__m512i; 2],
    /// Half of what each of the two right shifts drops, likewise: 2^30 + 2^(30 + right). Of moderate multipliers.
    halves: [__m512i; 2],
}

/// Dwords of four rows and four columns: exchanges 128-bit lanes with positions in them. What
/// in-lane packing and unpacking put in their own order comes back into the order of memory.
#[target_feature(enable = "avx512f")]
#[inline]
fn transposition() -> __m512i {
    _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn scales(pairs: [__m512i; 2]) -> Scales {
    let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    let multiplier = _mm512_permutex2var_epi32(pairs[0], even, pairs[1]);
    let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    let shift = _mm512_permutex2var_epi32(pairs[0], odd, pairs[1]);
    let zero = _mm512_setzero_si512();
    let right = _mm512_max_epi32(_mm512_sub_epi32(zero, shift), zero);
    let first = _mm512_set1_epi64(1 << 30);
    let halves = |right| _mm512_add_epi64(first, _mm512_sllv_epi64(first, right));
    Scales {
        left: _mm512_max_epi32(shift, zero),
        right,
        multiplier: [multiplier, _mm512_srli_epi64::<32>(multiplier)],
        halves: [
            halves(_mm512_and_si512(right, _mm512_set1_epi64(0xffff_ffff))),
            halves(_mm512_srli_epi64::<32>(right)),
        ],
    }
}

/// Those of 32 lanes that are below `len`.
#[inline]
fn first_lanes(len: usize) -> u32 {
    if len < 32 { (1 << len) - 1 } else { u32::MAX }
}

/// Whether every shift is one to the right by 1 to 29, and every sum is nearer to zero than `room`.
#[target_feature(enable = "avx512f")]
#[inline]
fn are_moderate(sums: __m512i, scales: &Scales, room: i32) -> bool {
    let right = _mm512_sub_epi32(scales.right, _mm512_set1_epi32(1));
    let shifts = _mm512_cmplt_epu32_mask(right, _mm512_set1_epi32(29));
    // The smallest number is its own absolute value, and unsigned the largest.
    let near = _mm512_set1_epi32(room);
    _mm512_mask_cmplt_epu32_mask(shifts, _mm512_abs_epi32(sums), near) == u16::MAX
}

/// The 64-bit products of the even lanes.
///
/// As assembly: of the intrinsic, which is a multiplication of sign-extended halves, the compiler moves
/// the extension of the multiplier out of loops, forgets it there, and multiplies 64 bits by 64.
#[target_feature(enable = "avx512f")]
#[inline]
fn multiply(a: __m512i, b: __m512i) -> __m512i {
    let product;
    // SAFETY: computes its output from its inputs; the features are those of this function.
    unsafe {
        asm!(
            "vpmuldq {product}, {a}, {b}",
            product = lateout(zmm_reg) product,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    product
}

#[target_feature(enable = "avx512f")]
#[inline]
fn rescale(sums: __m512i, scales: &Scales) -> __m512i {
    let sums = _mm512_sllv_epi32(sums, scales.left);
    let half = _mm512_set1_epi64(1 << 30);
    let even = multiply(sums, scales.multiplier[0]);
    let odd = multiply(_mm512_srli_epi64::<32>(sums), scales.multiplier[1]);
    // Bits 31 to 62. The left shift may have filled the sums, so they cannot be doubled first.
    let even = _mm512_srli_epi64::<31>(_mm512_add_epi64(even, half));
    let odd = _mm512_add_epi64(odd, half);
    let high = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_add_epi64(odd, odd));
    // The rounding right shift: up if more than half is dropped, of a negative number half or more.
    let one = _mm512_set1_epi32(1);
    let mask = _mm512_sub_epi32(_mm512_sllv_epi32(one, scales.right), one);
    let dropped = _mm512_and_si512(high, mask);
    let half = _mm512_srli_epi32::<1>(mask);
    let threshold = _mm512_sub_epi32(half, _mm512_srai_epi32::<31>(high));
    let up = _mm512_cmpgt_epi32_mask(dropped, threshold);
    let shifted = _mm512_srav_epi32(high, scales.right);
    _mm512_mask_add_epi32(shifted, up, shifted, one)
}

/// The high halves of two vectors of 64-bit lanes: of the first in even lanes, of the second in odd ones.
///
/// As assembly: the compiler makes two shuffles of it, of which the processor does half as many at a time.
#[target_feature(enable = "avx512f")]
#[inline]
fn merge_high_halves(even: __m512i, odd: __m512i) -> __m512i {
    let mut merged = odd;
    // SAFETY: computes its output from its inputs; the features are those of this function.
    unsafe {
        asm!(
            "vmovshdup {merged}{{{lanes}}}, {even}",
            merged = inout(zmm_reg) merged,
            even = in(zmm_reg) even,
            lanes = in(kreg) 0x5555u16,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    merged
}

/// See [`moderate`](crate::simd_s8::moderate).
///
/// With `h = ⌊(p + 2^30) / 2^31⌋` for the product `p` and `r ≥ 1` the second step is
/// `⌊(h + 2^(r−1) − [h < 0]) / 2^r⌋`. All that is added is a multiple of 2^30, so both steps are
/// `⌊(q + 1 + 2^r − 2 [h < 0]) / 2^(r+1)⌋` with `q = ⌊p / 2^30⌋`, the high half of 4 `p`. `[p < 0]` may stand for
/// `[h < 0]`: they differ only where `h = 0`, which stays 0 either way.
#[target_feature(enable = "avx512f")]
#[inline]
fn rescale_moderate(sums: __m512i, scales: &Scales) -> __m512i {
    let one = _mm512_set1_epi32(1);
    let not_negative = _mm512_add_epi32(one, _mm512_sllv_epi32(one, scales.right));
    let negative = _mm512_sub_epi32(not_negative, _mm512_set1_epi32(2));
    let right = _mm512_add_epi32(scales.right, one);
    let fourfold = _mm512_slli_epi32::<2>(sums);
    let even = multiply(fourfold, scales.multiplier[0]);
    let odd = multiply(_mm512_srli_epi64::<32>(fourfold), scales.multiplier[1]);
    let sign = _mm512_srai_epi32::<31>(sums);
    let addend = _mm512_ternarylogic_epi32::<0xca>(sign, negative, not_negative);
    _mm512_srav_epi32(_mm512_add_epi32(merge_high_halves(even, odd), addend), right)
}

/// [`rescale_moderate`] where it is positive, and elsewhere what is not.
///
/// There both steps are `⌊(p + 2^30 + 2^(30 + r)) / 2^(31 + r)⌋`. The choice of the high half is 32 of the shift.
#[target_feature(enable = "avx512f")]
#[inline]
fn rescale_positive(sums: __m512i, scales: &Scales) -> __m512i {
    let even = multiply(sums, scales.multiplier[0]);
    let odd = multiply(_mm512_srli_epi64::<32>(sums), scales.multiplier[1]);
    let even = _mm512_add_epi64(even, scales.halves[0]);
    let odd = _mm512_add_epi64(odd, scales.halves[1]);
    let right = _mm512_sub_epi32(scales.right, _mm512_set1_epi32(1));
    _mm512_srav_epi32(merge_high_halves(even, odd), right)
}

/// Within lanes of 128 bits: each has four bytes of every vector.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn pack(sums: [__m512i; 4], stage: &OutputStage) -> __m512i {
    // Saturation cannot be seen: it starts where the result is past every clamp.
    let zero_point = _mm512_set1_epi16(stage.zero_point as i16);
    let halves = [
        _mm512_adds_epi16(_mm512_packs_epi32(sums[0], sums[1]), zero_point),
        _mm512_adds_epi16(_mm512_packs_epi32(sums[2], sums[3]), zero_point),
    ];
    let bytes = _mm512_packs_epi16(halves[0], halves[1]);
    let bytes = _mm512_max_epi8(bytes, _mm512_set1_epi8(stage.low));
    _mm512_min_epi8(bytes, _mm512_set1_epi8(stage.high))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn narrow(sums: [__m512i; 4], stage: &OutputStage) -> __m512i {
    _mm512_permutexvar_epi32(transposition(), pack(sums, stage))
}

/// One vector of moderate sums, which have room for a zero point.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn narrow_moderate(sums: __m512i, stage: &OutputStage) -> __m128i {
    let bytes = _mm512_cvtsepi32_epi8(_mm512_add_epi32(sums, _mm512_set1_epi32(stage.zero_point)));
    let bytes = _mm_max_epi8(bytes, _mm_set1_epi8(stage.low));
    _mm_min_epi8(bytes, _mm_set1_epi8(stage.high))
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn interleave(rows: [__m512i; 4]) -> [__m512i; 4] {
    unpack(rows.map(|row| _mm512_permutexvar_epi32(transposition(), row)))
}

/// Within lanes of 128 bits: each vector has four positions of every lane.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn unpack(rows: [__m512i; 4]) -> [__m512i; 4] {
    let [a, b, c, d] = rows.map(|row| _mm512_xor_si512(row, _mm512_set1_epi8(-128)));
    let low = [_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d)];
    let high = [_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d)];
    [
        _mm512_unpacklo_epi16(low[0], low[1]),
        _mm512_unpackhi_epi16(low[0], low[1]),
        _mm512_unpacklo_epi16(high[0], high[1]),
        _mm512_unpackhi_epi16(high[0], high[1]),
    ]
}

#[target_feature(enable = "avx512f")]
#[inline]
fn fractions(bytes: __m128i, zero_point: __m512i) -> __m512i {
    _mm512_slli_epi32::<20>(_mm512_sub_epi32(_mm512_cvtepi8_epi32(bytes), zero_point))
}

/// The sums of the lanes of four vectors, still apart in each quarter.
#[target_feature(enable = "avx512f")]
#[inline]
fn fold_quarters(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd))
}

/// The sums of all lanes of each vector.
#[target_feature(enable = "avx512f")]
#[inline]
fn fold(sums: [__m512i; PANEL]) -> __m512i {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = sums;
    let (first, second) = (fold_quarters(a, b, c, d), fold_quarters(e, f, g, h));
    let (third, fourth) = (fold_quarters(i, j, k, l), fold_quarters(m, n, o, p));
    let add_halves = |a, b| {
        _mm512_add_epi32(
            _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b),
        )
    };
    add_halves(add_halves(first, second), add_halves(third, fourth))
}

/// Four unsigned bytes of each lane as two pairs of 16 bits: the even bytes and the odd ones.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn split_inputs(bytes: __m512i) -> [__m512i; 2] {
    [_mm512_and_si512(bytes, _mm512_set1_epi16(0xff)), _mm512_srli_epi16::<8>(bytes)]
}

/// The same of signed bytes.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn split_weights(bytes: __m512i) -> [__m512i; 2] {
    [_mm512_srai_epi16::<8>(_mm512_slli_epi16::<8>(bytes)), _mm512_srai_epi16::<8>(bytes)]
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn dot(sums: __m512i, inputs: [__m512i; 2], weights: [__m512i; 2]) -> __m512i {
    // At most 2 · 255 · 128 a pair: nothing to saturate.
    let even = _mm512_madd_epi16(inputs[0], weights[0]);
    let odd = _mm512_madd_epi16(inputs[1], weights[1]);
    _mm512_add_epi32(_mm512_add_epi32(sums, even), odd)
}

/// VNNI takes bytes as they are.
#[target_feature(enable = "avx512f")]
#[inline]
fn whole(bytes: __m512i) -> __m512i {
    bytes
}

#[target_feature(enable = "avx512f,avx512vnni")]
#[inline]
fn dot_vnni(sums: __m512i, inputs: __m512i, weights: __m512i) -> __m512i {
    _mm512_dpbusd_epi32(sums, inputs, weights)
}

/// A vector from `PIECES` pieces, each `step` bytes after the one before.
///
/// # Safety
/// Each piece is valid for reading.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
#[inline]
unsafe fn load_pieces<const PIECES: usize>(from: *const i8, step: usize) -> __m512i {
    let at = |piece: usize| from.wrapping_add(piece * step);
    match PIECES {
        // SAFETY: the caller vouches for 64 bytes.
        1 => unsafe { _mm512_loadu_si512(from.cast()) },
        2 => {
            // SAFETY: the caller vouches for 32 bytes.
            let first = unsafe { _mm256_loadu_si256(from.cast()) };
            // SAFETY: as above.
            let second = unsafe { _mm256_loadu_si256(at(1).cast()) };
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second)
        }
        _ => {
            // SAFETY: the caller vouches for 16 bytes.
            let first = unsafe { _mm_loadu_si128(from.cast()) };
            // SAFETY: as above.
            let second = unsafe { _mm_loadu_si128(at(1).cast()) };
            // SAFETY: as above.
            let third = unsafe { _mm_loadu_si128(at(2).cast()) };
            // SAFETY: as above.
            let fourth = unsafe { _mm_loadu_si128(at(3).cast()) };
            let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(first), second);
            let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(third), fourth);
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
        }
    }
}

/// Implements [`SimdS8`] for a token of AVX-512: what the two sets share.
macro_rules! avx512_s8 {
    ($token:ident, $features:literal, $operand:ty, $inputs:expr, $weights:expr, $dot:expr, { $($own:tt)* }) => {
        impl SimdS8 for $token {
            type Sums = __m512i;
            type Parts = __m512i;
            type Inputs = $operand;
            type Weights = $operand;
            type Scales = Scales;
            type Outputs = __m512i;

            const LANES: usize = 16;
            // Registers would hold the sums of 14, 14 and 6. Those of smaller tiles take no longer, and more of their
            // rescaling happens beside the next tile's products.
            const TILE_PIXELS: [usize; 3] = [14, 8, 4];
            const STORES_EACH_TILE: bool = true;
            const ROW_GROUPS: usize = if size_of::<$operand>() == 64 { usize::MAX } else { 256 };
            const INTERLEAVES: bool = size_of::<$operand>() == 64;
            const REGISTER_GROUPS: usize = if size_of::<$operand>() == 64 { 4 } else { 0 };
            const DEPTHWISE_PIXELS: usize = 8;
            const RESCALES_POSITIVE: bool = true;
            const TELLS_MODERATE: bool = true;

            #[inline(always)]
            fn call<K: KernelOn<Self>>(self, kernel: K) -> K::Output {
                #[target_feature(enable = $features)]
                fn enter<K: KernelOn<$token>>(token: $token, kernel: K) -> K::Output {
                    kernel.run_on(token)
                }
                // Kernels call kernels, which must stay functions: registers are scarce in the
                // inner ones. On `enter` itself, `inline(never)` has no effect (rustc 1.95).
                #[inline(never)]
                fn stay_outside<K: KernelOn<$token>>(token: $token, kernel: K) -> K::Output {
                    // SAFETY: the token proves the features.
                    unsafe { enter(token, kernel) }
                }
                stay_outside(self, kernel)
            }

            #[inline(always)]
            fn splat(self, x: i32) -> __m512i {
                // SAFETY: the token proves AVX-512.
                unsafe { _mm512_set1_epi32(x) }
            }

            #[inline(always)]
            unsafe fn load_sums(self, from: *const i32) -> __m512i {
                // SAFETY: the token proves AVX-512; the caller vouches for LANES readable values.
                unsafe { _mm512_loadu_epi32(from) }
            }

            #[inline(always)]
            unsafe fn store_sums(self, to: *mut i32, sums: __m512i) {
                // SAFETY: the token proves AVX-512; the caller vouches for LANES writable values.
                unsafe { _mm512_storeu_epi32(to, sums) }
            }

            #[inline(always)]
            fn add(self, a: __m512i, b: __m512i) -> __m512i {
                // SAFETY: the token proves AVX-512.
                unsafe { _mm512_add_epi32(a, b) }
            }

            #[inline(always)]
            fn max(self, a: __m512i, b: __m512i) -> __m512i {
                // SAFETY: the token proves AVX-512.
                unsafe { _mm512_max_epi32(a, b) }
            }

            #[inline(always)]
            unsafe fn load_fractions(self, from: *const i8, zero_point: __m512i) -> __m512i {
                // SAFETY: the token proves AVX-512; the caller vouches for 16 readable bytes.
                let bytes = unsafe { _mm_loadu_si128(from.cast()) };
                // SAFETY: the token proves AVX-512.
                unsafe { fractions(bytes, zero_point) }
            }

            #[inline(always)]
            unsafe fn splat_inputs(self, from: *const u8) -> $operand {
                // SAFETY: the caller vouches for 4 readable bytes.
                let four = unsafe { from.cast::<i32>().read_unaligned() };
                // SAFETY: the token proves AVX-512.
                let bytes = unsafe { _mm512_set1_epi32(four) };
                // SAFETY: the token proves AVX-512.
                unsafe { $inputs(bytes) }
            }

            #[inline(always)]
            unsafe fn load_inputs(self, from: *const u8) -> $operand {
                // SAFETY: the token proves AVX-512; the caller vouches for 64 readable bytes.
                let bytes = unsafe { _mm512_loadu_si512(from.cast()) };
                // SAFETY: the token proves AVX-512.
                unsafe { $inputs(bytes) }
            }

            #[inline(always)]
            unsafe fn load_weights(self, from: *const i8) -> $operand {
                // SAFETY: the token proves AVX-512; the caller vouches for 64 readable bytes.
                let bytes = unsafe { _mm512_loadu_si512(from.cast()) };
                // SAFETY: the token proves AVX-512.
                unsafe { $weights(bytes) }
            }

            #[inline(always)]
            fn parts(self, sums: __m512i) -> __m512i {
                sums
            }

            #[inline(always)]
            fn total(self, sums: __m512i) -> __m512i {
                sums
            }

            #[inline(always)]
            fn dot(self, sums: __m512i, inputs: $operand, weights: $operand) -> __m512i {
                // SAFETY: the token proves the features.
                unsafe { $dot(sums, inputs, weights) }
            }

            #[inline(always)]
            fn scales(self, multipliers: &[Multiplier; PANEL]) -> Scales {
                let from = multipliers.as_ptr().cast::<i32>();
                // SAFETY: the token proves AVX-512; the first half of the 16 pairs.
                let first = unsafe { _mm512_loadu_epi32(from) };
                // SAFETY: the second half.
                let second = unsafe { _mm512_loadu_epi32(from.wrapping_add(16)) };
                // SAFETY: the token proves AVX-512.
                unsafe { scales([first, second]) }
            }

            #[inline(always)]
            fn load_sums_of(self, from: &[i32]) -> __m512i {
                // SAFETY: the token proves AVX-512; of the slice no more is read than it has.
                unsafe { _mm512_maskz_loadu_epi32(first_lanes(from.len()) as u16, from.as_ptr()) }
            }

            #[inline(always)]
            fn multiply(self, a: __m512i, b: __m512i) -> __m512i {
                // SAFETY: the token proves AVX-512.
                unsafe { _mm512_mullo_epi32(a, b) }
            }

            #[inline(always)]
            fn scales_of(self, multipliers: &[Multiplier]) -> Scales {
                let mask = first_lanes(2 * multipliers.len().min(PANEL));
                let from = multipliers.as_ptr().cast::<i32>();
                // Without a multiplier, zero and a shift to the right, which is moderate.
                // SAFETY: the token proves AVX-512.
                let none = unsafe { _mm512_set1_epi64(-1 << 32) };
                // SAFETY: the token proves AVX-512; no more pairs are read than there are.
                let first = unsafe { _mm512_mask_loadu_epi32(none, mask as u16, from) };
                let (mask, from) = ((mask >> 16) as u16, from.wrapping_add(16));
                // SAFETY: as above.
                let second = unsafe { _mm512_mask_loadu_epi32(none, mask, from) };
                // SAFETY: the token proves AVX-512.
                unsafe { scales([first, second]) }
            }

            #[inline(always)]
            fn are_moderate(self, sums: __m512i, scales: &Scales, room: i32) -> bool {
                // SAFETY: the token proves AVX-512.
                unsafe { are_moderate(sums, scales, room) }
            }

            #[inline(always)]
            fn rescale<const MODERATE: bool>(self, sums: __m512i, scales: &Scales) -> __m512i {
                if MODERATE {
                    // SAFETY: the token proves AVX-512.
                    unsafe { rescale_moderate(sums, scales) }
                } else {
                    // SAFETY: the token proves AVX-512.
                    unsafe { rescale(sums, scales) }
                }
            }

            #[inline(always)]
            fn rescale_positive(self, sums: __m512i, scales: &Scales) -> __m512i {
                // SAFETY: the token proves AVX-512.
                unsafe { rescale_positive(sums, scales) }
            }

            /// Halves, which are multiples of 2 here, without multiplying.
            #[inline(always)]
            fn half(self, sums: __m512i, _scales: &Scales) -> __m512i {
                // SAFETY: the token proves AVX-512.
                unsafe { _mm512_srai_epi32::<1>(sums) }
            }

            #[inline(always)]
            fn narrow(self, sums: [__m512i; 4], stage: &OutputStage) -> __m512i {
                // SAFETY: the token proves AVX-512.
                unsafe { narrow(sums, stage) }
            }

            #[inline(always)]
            unsafe fn store_outputs<const START: usize, const LEN: usize>(
                self,
                to: *mut i8,
                outputs: __m512i,
            ) {
                match (START, LEN) {
                    // SAFETY: the token proves AVX-512; the caller vouches for 64 writable bytes.
                    (_, 4) => unsafe { _mm512_storeu_si512(to.cast(), outputs) },
                    (_, 2) => {
                        let half = if START == 0 {
                            // SAFETY: the token proves AVX-512.
                            unsafe { _mm512_castsi512_si256(outputs) }
                        } else {
                            // SAFETY: the token proves AVX-512.
                            unsafe { _mm512_extracti64x4_epi64::<1>(outputs) }
                        };
                        // SAFETY: the caller vouches for 32 writable bytes.
                        unsafe { _mm256_storeu_si256(to.cast(), half) }
                    }
                    _ => {
                        let quarter = match START {
                            // SAFETY: the token proves AVX-512.
                            0 => unsafe { _mm512_castsi512_si128(outputs) },
                            // SAFETY: the token proves AVX-512.
                            1 => unsafe { _mm512_extracti32x4_epi32::<1>(outputs) },
                            // SAFETY: the token proves AVX-512.
                            2 => unsafe { _mm512_extracti32x4_epi32::<2>(outputs) },
                            // SAFETY: the token proves AVX-512.
                            _ => unsafe { _mm512_extracti32x4_epi32::<3>(outputs) },
                        };
                        // SAFETY: the caller vouches for 16 writable bytes.
                        unsafe { _mm_storeu_si128(to.cast(), quarter) }
                    }
                }
            }

            #[inline(always)]
            unsafe fn store_moderate(self, to: *mut i8, sums: __m512i, stage: &OutputStage) {
                // SAFETY: the token proves AVX-512.
                let bytes = unsafe { narrow_moderate(sums, stage) };
                // SAFETY: the caller vouches for 16 writable bytes.
                unsafe { _mm_storeu_si128(to.cast(), bytes) };
            }

            #[inline(always)]
            fn dense_file(self, layer: DenseS8<'_>, weights: &[i8]) {
                if layer.has_few_rows() {
                    layer.row_by_row(self, weights);
                } else {
                    layer.by_tiles(self);
                }
            }

            #[inline(always)]
            unsafe fn interleave(self, rows: [*const i8; 4], to: *mut u8) {
                // SAFETY: the token proves AVX-512; the caller vouches for 64 readable bytes a row.
                let rows = rows.map(|row| unsafe { _mm512_loadu_si512(row.cast()) });
                // SAFETY: the token proves AVX-512.
                let groups = unsafe { interleave(rows) };
                for (i, group) in groups.into_iter().enumerate() {
                    // SAFETY: the caller vouches for 256 writable bytes.
                    unsafe { _mm512_storeu_si512(to.wrapping_add(64 * i).cast(), group) };
                }
            }

            $($own)*
        }

        impl FoldS8 for $token {
            #[inline(always)]
            fn fold(self, sums: [__m512i; PANEL]) -> __m512i {
                // SAFETY: the token proves AVX-512.
                unsafe { fold(sums) }
            }

            #[inline(always)]
            unsafe fn load_some_weights(self, from: *const i8, len: usize) -> $operand {
                let some = (1 << len) - 1;
                // SAFETY: the token proves AVX-512; the caller vouches for `len` readable bytes.
                let bytes = unsafe { _mm512_maskz_loadu_epi8(some, from) };
                // SAFETY: the token proves AVX-512.
                unsafe { $weights(bytes) }
            }
        }
    };
}

avx512_s8!(
    Avx512,
    "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl",
    [__m512i; 2],
    split_inputs,
    split_weights,
    dot,
    {}
);
avx512_s8!(
    Avx512Vnni,
    "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni",
    __m512i,
    whole,
    whole,
    dot_vnni,
    {
        #[inline(always)]
        fn depthwise(self, layer: DepthwiseConv2dS8<'_>) {
            layer.by_dots(self);
        }
    }
);

impl BlocksS8 for Avx512Vnni {
    #[inline(always)]
    unsafe fn interleave_pieces<const PIECES: usize>(
        self,
        rows: [*const i8; 4],
        steps: [usize; 4],
        to: *mut u8,
    ) {
        let rows = [
            // SAFETY: the token proves AVX-512; the caller vouches for every piece.
            unsafe { load_pieces::<PIECES>(rows[0], steps[0]) },
            // SAFETY: as above.
            unsafe { load_pieces::<PIECES>(rows[1], steps[1]) },
            // SAFETY: as above.
            unsafe { load_pieces::<PIECES>(rows[2], steps[2]) },
            // SAFETY: as above.
            unsafe { load_pieces::<PIECES>(rows[3], steps[3]) },
        ];
        // SAFETY: the token proves AVX-512.
        let vectors = unsafe { interleave(rows) };
        for (i, vector) in vectors.into_iter().enumerate() {
            // SAFETY: the caller vouches for 256 writable bytes.
            unsafe { _mm512_storeu_si512(to.wrapping_add(64 * i).cast(), vector) };
        }
    }
}
