//! AVX2 for int8, with and without AVX-VNNI: eight lanes of 32 bits.

use crate::arch::blocks_s8::BlocksS8;
use crate::arch::pairs_s8::{PairsS8, SHORT_GROUPS, ShortSumsOf};
use crate::arch::tile_s8::TileS8;
use crate::generic::dense_s8::DenseS8;
use crate::generic::depthwise_conv2d_s8::DepthwiseConv2dS8;
use crate::isa::{Avx2, AvxVnni};
use crate::simd_s8::{KernelOn, SimdS8};
use core::arch::asm;
use core::arch::x86_64::*;
use netkit_core::pack::PANEL;
use netkit_core::quant::{Multiplier, OutputStage};

/// Multipliers of eight channels, as [`mbqm`](Multiplier::apply) takes them apart.
#[derive(Clone, Copy)]
pub(crate) struct Scales {
    left: __m256i,
    right: __m256i,
    /// Of even and odd lanes apart: products have 64 bits.
    multiplier: [__m256i; 2],
    /// Half of what each of the two right shifts drops, likewise: 2^30 + 2^(30 + right).
    halves: [__m256i; 2],
}

#[target_feature(enable = "avx2")]
#[inline]
fn scales(pairs: [__m256i; 2]) -> Scales {
    // (m0 s0 m1 s1 | m2 s2 m3 s3) and (m4 s4 … ) to m0…m7 and s0…s7.
    let sorted = [
        _mm256_shuffle_epi32::<0b11_01_10_00>(pairs[0]),
        _mm256_shuffle_epi32::<0b11_01_10_00>(pairs[1]),
    ];
    let multiplier = _mm256_unpacklo_epi64(sorted[0], sorted[1]);
    let shift = _mm256_unpackhi_epi64(sorted[0], sorted[1]);
    let multiplier = _mm256_permute4x64_epi64::<0b11_01_10_00>(multiplier);
    let shift = _mm256_permute4x64_epi64::<0b11_01_10_00>(shift);
    let zero = _mm256_setzero_si256();
    let right = _mm256_max_epi32(_mm256_sub_epi32(zero, shift), zero);
    let first = _mm256_set1_epi64x(1 << 30);
    let halves = |right| _mm256_add_epi64(first, _mm256_sllv_epi64(first, right));
    Scales {
        left: _mm256_max_epi32(shift, zero),
        right,
        multiplier: [multiplier, _mm256_srli_epi64::<32>(multiplier)],
        halves: [
            halves(_mm256_and_si256(right, _mm256_set1_epi64x(0xffff_ffff))),
            halves(_mm256_srli_epi64::<32>(right)),
        ],
    }
}

/// The first eight values, zeros where there are fewer.
#[target_feature(enable = "avx2")]
#[inline]
fn load_sums_of(from: &[i32]) -> __m256i {
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let some = _mm256_cmpgt_epi32(_mm256_set1_epi32(from.len().min(8) as i32), lanes);
    // SAFETY: of the slice no more is read than it has.
    unsafe { _mm256_maskload_epi32(from.as_ptr(), some) }
}

/// The first eight multipliers; where there are fewer, zero and a shift to the right, which is moderate.
#[target_feature(enable = "avx2")]
#[inline]
fn load_pairs(from: &[Multiplier]) -> [__m256i; 2] {
    let none = _mm256_set1_epi64x(-1 << 32);
    let len = _mm256_set1_epi64x(from.len().min(8) as i64);
    let some = [
        _mm256_cmpgt_epi64(len, _mm256_setr_epi64x(0, 1, 2, 3)),
        _mm256_cmpgt_epi64(len, _mm256_setr_epi64x(4, 5, 6, 7)),
    ];
    let from: *const i64 = from.as_ptr().cast();
    // SAFETY: of the slice no more is read than it has, which is pairs.
    let first = unsafe { _mm256_maskload_epi64(from, some[0]) };
    // SAFETY: as above.
    let second = unsafe { _mm256_maskload_epi64(from.wrapping_add(4), some[1]) };
    [_mm256_blendv_epi8(none, first, some[0]), _mm256_blendv_epi8(none, second, some[1])]
}

/// Whether every shift is one to the right by 1 to 29, and every sum is nearer to zero than `room`.
#[target_feature(enable = "avx2")]
#[inline]
fn are_moderate(sums: __m256i, scales: &Scales, room: i32) -> bool {
    let least = _mm256_cmpgt_epi32(scales.right, _mm256_setzero_si256());
    let most = _mm256_cmpgt_epi32(_mm256_set1_epi32(30), scales.right);
    let below = _mm256_cmpgt_epi32(_mm256_set1_epi32(room), sums);
    let above = _mm256_cmpgt_epi32(sums, _mm256_set1_epi32(-room));
    let shifts = _mm256_and_si256(least, most);
    let all = _mm256_and_si256(shifts, _mm256_and_si256(below, above));
    _mm256_movemask_epi8(all) == -1
}

/// The 64-bit products of the even lanes.
///
/// As assembly: of the intrinsic, which is a multiplication of sign-extended halves, the compiler moves
/// the extension of the multiplier out of loops, forgets it there, and multiplies 64 bits by 64.
#[target_feature(enable = "avx2")]
#[inline]
fn multiply(a: __m256i, b: __m256i) -> __m256i {
    let product;
    // SAFETY: computes its output from its inputs; the features are those of this function.
    unsafe {
        asm!(
            "vpmuldq {product}, {a}, {b}",
            product = lateout(ymm_reg) product,
            a = in(ymm_reg) a,
            b = in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    product
}

/// Bits 31 to 62 of the products of even and odd lanes after `addends` are added to them.
#[target_feature(enable = "avx2")]
#[inline]
fn high_halves(sums: __m256i, scales: &Scales, addends: [__m256i; 2]) -> __m256i {
    let even = multiply(sums, scales.multiplier[0]);
    let odd = multiply(_mm256_srli_epi64::<32>(sums), scales.multiplier[1]);
    let even = _mm256_srli_epi64::<31>(_mm256_add_epi64(even, addends[0]));
    let odd = _mm256_add_epi64(odd, addends[1]);
    _mm256_blend_epi32::<0b1010_1010>(even, _mm256_add_epi64(odd, odd))
}

#[target_feature(enable = "avx2")]
#[inline]
fn rescale(sums: __m256i, scales: &Scales) -> __m256i {
    let sums = _mm256_sllv_epi32(sums, scales.left);
    let high = high_halves(sums, scales, [_mm256_set1_epi64x(1 << 30); 2]);
    // The rounding right shift: up if more than half is dropped, of a negative number half or more.
    let one = _mm256_set1_epi32(1);
    let mask = _mm256_sub_epi32(_mm256_sllv_epi32(one, scales.right), one);
    let dropped = _mm256_and_si256(high, mask);
    let half = _mm256_srli_epi32::<1>(mask);
    let threshold = _mm256_sub_epi32(half, _mm256_srai_epi32::<31>(high));
    let up = _mm256_cmpgt_epi32(dropped, threshold);
    _mm256_sub_epi32(_mm256_srav_epi32(high, scales.right), up)
}

/// See [`moderate`](crate::simd_s8::moderate).
///
/// With `h = ⌊(p + 2^30) / 2^31⌋` for the product `p` and `r ≥ 1` the second step is
/// `⌊(h + 2^(r−1) − [h < 0]) / 2^r⌋`. The first addition joins that of the first step. `[p < 0]` may
/// stand for `[h < 0]`: they differ only where `h = 0`, which stays 0 either way.
#[target_feature(enable = "avx2")]
#[inline]
fn rescale_moderate(sums: __m256i, scales: &Scales) -> __m256i {
    let high = high_halves(sums, scales, scales.halves);
    let high = _mm256_add_epi32(high, _mm256_srai_epi32::<31>(sums));
    _mm256_srav_epi32(high, scales.right)
}

/// [`rescale_moderate`] where it is positive, and elsewhere what is not.
///
/// There both steps are `⌊(p + 2^30 + 2^(30 + r)) / 2^(31 + r)⌋`. The choice of the high half is 32 of the shift.
#[target_feature(enable = "avx2")]
#[inline]
fn rescale_positive(sums: __m256i, scales: &Scales) -> __m256i {
    let even = multiply(sums, scales.multiplier[0]);
    let odd = multiply(_mm256_srli_epi64::<32>(sums), scales.multiplier[1]);
    let even = _mm256_srli_epi64::<32>(_mm256_add_epi64(even, scales.halves[0]));
    let odd = _mm256_add_epi64(odd, scales.halves[1]);
    let high = _mm256_blend_epi32::<0b1010_1010>(even, odd);
    _mm256_srav_epi32(high, _mm256_sub_epi32(scales.right, _mm256_set1_epi32(1)))
}

/// Within lanes of 128 bits: each has four bytes of every vector.
#[target_feature(enable = "avx2")]
#[inline]
fn pack(sums: [__m256i; 4], stage: &OutputStage) -> __m256i {
    // Saturation cannot be seen: it starts where the result is past every clamp.
    let zero_point = _mm256_set1_epi16(stage.zero_point as i16);
    let low = _mm256_adds_epi16(_mm256_packs_epi32(sums[0], sums[1]), zero_point);
    let high = _mm256_adds_epi16(_mm256_packs_epi32(sums[2], sums[3]), zero_point);
    let bytes = _mm256_packs_epi16(low, high);
    let bytes = _mm256_max_epi8(bytes, _mm256_set1_epi8(stage.low));
    _mm256_min_epi8(bytes, _mm256_set1_epi8(stage.high))
}

#[target_feature(enable = "avx2")]
#[inline]
fn narrow(sums: [__m256i; 4], stage: &OutputStage) -> __m256i {
    let bytes = pack(sums, stage);
    // Packing worked in each half: its dwords are vectors 0 to 3, first half, then second half.
    _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

#[target_feature(enable = "avx2")]
#[inline]
fn order_row(row: __m256i) -> __m256i {
    // Unpacking works in each half: what it takes from one half must end side by side.
    _mm256_permutevar8x32_epi32(row, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7))
}

#[target_feature(enable = "avx2")]
#[inline]
fn interleave(rows: [__m256i; 4]) -> [__m256i; 4] {
    unpack(rows.map(|row| order_row(row)))
}

/// Within lanes of 128 bits: each vector has four positions of both lanes.
#[target_feature(enable = "avx2")]
#[inline]
fn unpack(rows: [__m256i; 4]) -> [__m256i; 4] {
    let [a, b, c, d] = rows.map(|row| _mm256_xor_si256(row, _mm256_set1_epi8(-128)));
    let low = [_mm256_unpacklo_epi8(a, b), _mm256_unpacklo_epi8(c, d)];
    let high = [_mm256_unpackhi_epi8(a, b), _mm256_unpackhi_epi8(c, d)];
    [
        _mm256_unpacklo_epi16(low[0], low[1]),
        _mm256_unpackhi_epi16(low[0], low[1]),
        _mm256_unpacklo_epi16(high[0], high[1]),
        _mm256_unpackhi_epi16(high[0], high[1]),
    ]
}

#[target_feature(enable = "avx2")]
#[inline]
fn fractions(bytes: __m128i, zero_point: __m256i) -> __m256i {
    _mm256_slli_epi32::<20>(_mm256_sub_epi32(_mm256_cvtepi8_epi32(bytes), zero_point))
}

/// Eight sums as the even lanes of two vectors: channels 0 to 3, and 4 to 7.
#[target_feature(enable = "avx2")]
#[inline]
fn halve(sums: __m256i) -> [__m256i; 2] {
    [
        _mm256_cvtepu32_epi64(_mm256_castsi256_si128(sums)),
        _mm256_cvtepu32_epi64(_mm256_extracti128_si256::<1>(sums)),
    ]
}

/// The sums of even and odd lanes.
#[target_feature(enable = "avx2")]
#[inline]
fn join(halves: [__m256i; 2]) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(halves[0], halves[1]))
}

/// Products of 16 bits, of which two add up to at most 2 · 255 · 128: nothing saturates, as `maddubs`
/// would.
#[target_feature(enable = "avx2")]
#[inline]
fn dot(sums: [__m256i; 2], inputs: [__m256i; 2], weights: [__m256i; 2]) -> [__m256i; 2] {
    [
        _mm256_add_epi32(sums[0], _mm256_madd_epi16(inputs[0], weights[0])),
        _mm256_add_epi32(sums[1], _mm256_madd_epi16(inputs[1], weights[1])),
    ]
}

/// [`dot`] of the four inputs at `from + at`.
///
/// As assembly: the compiler reads the inputs of all pixels of a tile first, and runs out of registers.
///
/// # Safety
/// `from + at` is valid for reading 8 bytes.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn dot_splat(
    sums: [__m256i; 2],
    from: *const u8,
    at: usize,
    weights: [__m256i; 2],
) -> [__m256i; 2] {
    let [mut first, mut second] = sums;
    // SAFETY: reads the bytes that the caller vouches for; the features are those of this function.
    unsafe {
        asm!(
            "vpbroadcastq {inputs}, qword ptr [{from} + {at}]",
            "vpmaddwd {products}, {inputs}, {weights}",
            "vpmaddwd {inputs}, {inputs}, {more_weights}",
            "vpaddd {first}, {first}, {products}",
            "vpaddd {second}, {second}, {inputs}",
            inputs = out(ymm_reg) _,
            products = out(ymm_reg) _,
            from = in(reg) from,
            at = in(reg) at,
            weights = in(ymm_reg) weights[0],
            more_weights = in(ymm_reg) weights[1],
            first = inout(ymm_reg) first,
            second = inout(ymm_reg) second,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    [first, second]
}

/// Pairs of bytes, each plus 128, in 16 bits each.
#[target_feature(enable = "avx2")]
#[inline]
fn pair(a: __m128i, b: __m128i) -> __m256i {
    let pairs = _mm_xor_si128(_mm_unpacklo_epi8(a, b), _mm_set1_epi8(-128));
    _mm256_cvtepu8_epi16(pairs)
}

/// Four weights of each of eight channels: the first two of each, and the last two.
#[target_feature(enable = "avx2")]
#[inline]
fn pair_weights(fours: __m256i) -> [__m256i; 2] {
    let order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
    ));
    let halves = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_shuffle_epi8(fours, order));
    [
        _mm256_cvtepi8_epi16(_mm256_castsi256_si128(halves)),
        _mm256_cvtepi8_epi16(_mm256_extracti128_si256::<1>(halves)),
    ]
}

/// The sums of all lanes of each vector.
#[target_feature(enable = "avx2")]
#[inline]
fn fold(sums: [__m256i; 8]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = sums;
    let first = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    let second = _mm256_hadd_epi32(_mm256_hadd_epi32(e, f), _mm256_hadd_epi32(g, h));
    // Halves of the sums a to d, and e to h, in either half of a vector.
    _mm256_add_epi32(
        _mm256_permute2x128_si256::<0x20>(first, second),
        _mm256_permute2x128_si256::<0x31>(first, second),
    )
}

/// Adds two products of 16 bits to each lane.
#[target_feature(enable = "avx2")]
#[inline]
fn dot_pairs(sums: __m256i, inputs: __m256i, weights: __m256i) -> __m256i {
    _mm256_add_epi32(sums, _mm256_madd_epi16(inputs, weights))
}

/// Bytes in 16 bits each.
#[target_feature(enable = "avx2")]
#[inline]
fn widen(bytes: __m256i) -> [__m256i; 2] {
    [
        _mm256_cvtepu8_epi16(_mm256_castsi256_si128(bytes)),
        _mm256_cvtepu8_epi16(_mm256_extracti128_si256::<1>(bytes)),
    ]
}

#[target_feature(enable = "avx2,avxvnni")]
#[inline]
fn dot_vnni(sums: __m256i, inputs: __m256i, weights: __m256i) -> __m256i {
    _mm256_dpbusd_avx_epi32(sums, inputs, weights)
}

/// Implements [`SimdS8`] for a token of AVX2: what the two sets share, and the items given.
macro_rules! avx2_s8 {
    ($token:ident, $features:literal, $($own:tt)*) => {
        impl SimdS8 for $token {
            type Sums = __m256i;
            type Scales = Scales;
            type Outputs = __m256i;

            const LANES: usize = 8;
            const RESCALES_POSITIVE: bool = true;
            const TELLS_MODERATE: bool = true;

            $($own)*

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
            fn splat(self, x: i32) -> __m256i {
                // SAFETY: the token proves AVX2.
                unsafe { _mm256_set1_epi32(x) }
            }

            #[inline(always)]
            unsafe fn load_sums(self, from: *const i32) -> __m256i {
                // SAFETY: the token proves AVX2; the caller vouches for LANES readable values.
                unsafe { _mm256_loadu_si256(from.cast()) }
            }

            #[inline(always)]
            unsafe fn store_sums(self, to: *mut i32, sums: __m256i) {
                // SAFETY: the token proves AVX2; the caller vouches for LANES writable values.
                unsafe { _mm256_storeu_si256(to.cast(), sums) }
            }

            #[inline(always)]
            fn add(self, a: __m256i, b: __m256i) -> __m256i {
                // SAFETY: the token proves AVX2.
                unsafe { _mm256_add_epi32(a, b) }
            }

            #[inline(always)]
            fn max(self, a: __m256i, b: __m256i) -> __m256i {
                // SAFETY: the token proves AVX2.
                unsafe { _mm256_max_epi32(a, b) }
            }

            #[inline(always)]
            unsafe fn load_fractions(self, from: *const i8, zero_point: __m256i) -> __m256i {
                // SAFETY: the token proves AVX2; the caller vouches for 8 readable bytes.
                let bytes = unsafe { _mm_loadl_epi64(from.cast()) };
                // SAFETY: the token proves AVX2.
                unsafe { fractions(bytes, zero_point) }
            }

            #[inline(always)]
            fn scales(self, multipliers: &[Multiplier; PANEL]) -> Scales {
                let from: *const __m256i = multipliers.as_ptr().cast();
                // SAFETY: the token proves AVX2; the first four of the pairs.
                let first = unsafe { _mm256_loadu_si256(from) };
                // SAFETY: the next four.
                let second = unsafe { _mm256_loadu_si256(from.wrapping_add(1)) };
                // SAFETY: the token proves AVX2.
                unsafe { scales([first, second]) }
            }

            #[inline(always)]
            fn load_sums_of(self, from: &[i32]) -> __m256i {
                // SAFETY: the token proves AVX2.
                unsafe { load_sums_of(from) }
            }

            #[inline(always)]
            fn multiply(self, a: __m256i, b: __m256i) -> __m256i {
                // SAFETY: the token proves AVX2.
                unsafe { _mm256_mullo_epi32(a, b) }
            }

            #[inline(always)]
            fn scales_of(self, multipliers: &[Multiplier]) -> Scales {
                // SAFETY: the token proves AVX2.
                let pairs = unsafe { load_pairs(multipliers) };
                // SAFETY: the token proves AVX2.
                unsafe { scales(pairs) }
            }

            #[inline(always)]
            fn are_moderate(self, sums: __m256i, scales: &Scales, room: i32) -> bool {
                // SAFETY: the token proves AVX2.
                unsafe { are_moderate(sums, scales, room) }
            }

            #[inline(always)]
            fn rescale<const MODERATE: bool>(self, sums: __m256i, scales: &Scales) -> __m256i {
                if MODERATE {
                    // SAFETY: the token proves AVX2.
                    unsafe { rescale_moderate(sums, scales) }
                } else {
                    // SAFETY: the token proves AVX2.
                    unsafe { rescale(sums, scales) }
                }
            }

            #[inline(always)]
            fn rescale_positive(self, sums: __m256i, scales: &Scales) -> __m256i {
                // SAFETY: the token proves AVX2.
                unsafe { rescale_positive(sums, scales) }
            }

            /// Halves, which are multiples of 2 here, without multiplying.
            #[inline(always)]
            fn half(self, sums: __m256i, _scales: &Scales) -> __m256i {
                // SAFETY: the token proves AVX2.
                unsafe { _mm256_srai_epi32::<1>(sums) }
            }

            #[inline(always)]
            fn narrow(self, sums: [__m256i; 4], stage: &OutputStage) -> __m256i {
                // SAFETY: the token proves AVX2.
                unsafe { narrow(sums, stage) }
            }

            #[inline(always)]
            unsafe fn store_outputs<const START: usize, const LEN: usize>(
                self,
                to: *mut i8,
                outputs: __m256i,
            ) {
                if LEN == 4 {
                    // SAFETY: the token proves AVX2; the caller vouches for 32 writable bytes.
                    return unsafe { _mm256_storeu_si256(to.cast(), outputs) };
                }
                let half = if START < 2 {
                    // SAFETY: the token proves AVX2.
                    unsafe { _mm256_castsi256_si128(outputs) }
                } else {
                    // SAFETY: the token proves AVX2.
                    unsafe { _mm256_extracti128_si256::<1>(outputs) }
                };
                if LEN == 2 {
                    // SAFETY: the token proves AVX2; the caller vouches for 16 writable bytes.
                    return unsafe { _mm_storeu_si128(to.cast(), half) };
                }
                let quarter = if START % 2 == 0 {
                    // SAFETY: the token proves AVX2.
                    unsafe { _mm_cvtsi128_si64(half) }
                } else {
                    // SAFETY: the token proves AVX2.
                    unsafe { _mm_extract_epi64::<1>(half) }
                };
                // SAFETY: the caller vouches for 8 writable bytes.
                unsafe { to.cast::<i64>().write_unaligned(quarter) };
            }
        }
    };
}

/// # Safety
/// Each row is valid for reading 32 bytes.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load_interleaved(rows: [*const i8; 4]) -> [__m256i; 4] {
    let [a, b, c, d] = rows;
    // SAFETY: the caller vouches for 32 bytes of each row.
    let a = unsafe { _mm256_loadu_si256(a.cast()) };
    // SAFETY: as above.
    let b = unsafe { _mm256_loadu_si256(b.cast()) };
    // SAFETY: as above.
    let c = unsafe { _mm256_loadu_si256(c.cast()) };
    // SAFETY: as above.
    let d = unsafe { _mm256_loadu_si256(d.cast()) };
    interleave([a, b, c, d])
}

avx2_s8! { Avx2, "avx2,fma",
    /// Each sum in two parts: a channel's four weights, widened, are two pairs of 16 bits. Eight
    /// channels' worth are two vectors, four channels each.
    type Parts = [__m256i; 2];
    type Inputs = [__m256i; 2];
    type Weights = [__m256i; 2];

    const TILE_PIXELS: [usize; 3] = [6, 2, 1];
    const DEPTHWISE_PIXELS: usize = 6;
    const INPUT_BYTES: usize = 2;
    const SHORT_GROUPS: usize = SHORT_GROUPS;

    #[inline(always)]
    unsafe fn splat_inputs(self, from: *const u8) -> [__m256i; 2] {
        // SAFETY: the caller vouches for 8 readable bytes.
        let four = unsafe { from.cast::<i64>().read_unaligned() };
        // SAFETY: the token proves AVX2.
        [unsafe { _mm256_set1_epi64x(four) }; 2]
    }

    #[inline(always)]
    unsafe fn load_inputs(self, from: *const u8) -> [__m256i; 2] {
        let from: *const __m256i = from.cast();
        // SAFETY: the token proves AVX2; the caller vouches for 64 readable bytes.
        let first = unsafe { _mm256_loadu_si256(from) };
        // SAFETY: the second half of them.
        let second = unsafe { _mm256_loadu_si256(from.wrapping_add(1)) };
        [first, second]
    }

    #[inline(always)]
    unsafe fn load_weights(self, from: *const i8) -> [__m256i; 2] {
        let from: *const __m128i = from.cast();
        // SAFETY: the token proves AVX2; the caller vouches for 32 readable bytes.
        let first = unsafe { _mm_loadu_si128(from) };
        // SAFETY: the second half of them.
        let second = unsafe { _mm_loadu_si128(from.wrapping_add(1)) };
        // SAFETY: the token proves AVX2.
        let first = unsafe { _mm256_cvtepi8_epi16(first) };
        // SAFETY: the token proves AVX2.
        let second = unsafe { _mm256_cvtepi8_epi16(second) };
        [first, second]
    }

    #[inline(always)]
    fn parts(self, sums: __m256i) -> [__m256i; 2] {
        // SAFETY: the token proves AVX2.
        unsafe { halve(sums) }
    }

    #[inline(always)]
    fn dot(self, parts: [__m256i; 2], inputs: [__m256i; 2], weights: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: the token proves AVX2.
        unsafe { dot(parts, inputs, weights) }
    }

    #[inline(always)]
    unsafe fn dot_splat(
        self,
        parts: [__m256i; 2],
        from: *const u8,
        at: usize,
        weights: [__m256i; 2],
    ) -> [__m256i; 2] {
        // SAFETY: the token proves AVX2; the caller vouches for 8 readable bytes.
        unsafe { dot_splat(parts, from, at, weights) }
    }

    #[inline(always)]
    fn total(self, parts: [__m256i; 2]) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { join(parts) }
    }

    #[inline(always)]
    fn short_sums(self, tile: TileS8<'_>, pixels: usize) {
        match tile.runs.all_groups() {
            1 => self.call(ShortSumsOf::<1> { tile, pixels }),
            2 => self.call(ShortSumsOf::<2> { tile, pixels }),
            3 => self.call(ShortSumsOf::<3> { tile, pixels }),
            SHORT_GROUPS => self.call(ShortSumsOf::<SHORT_GROUPS> { tile, pixels }),
            groups => debug_assert!(false, "{groups} groups are not few"),
        }
    }

    #[inline(always)]
    fn dense_file(self, layer: DenseS8<'_>, weights: &[i8]) {
        if layer.has_rows() {
            layer.by_rows(self, weights);
        } else {
            layer.by_tiles(self);
        }
    }

    #[inline(always)]
    fn depthwise(self, layer: DepthwiseConv2dS8<'_>) {
        if layer.has_pairs::<Self>() {
            layer.by_pairs(self);
        } else {
            layer.by_fours(self);
        }
    }

    #[inline(always)]
    unsafe fn interleave(self, rows: [*const i8; 4], to: *mut u8) {
        // SAFETY: the token proves AVX2; the caller vouches for 32 readable bytes of each row.
        let groups = unsafe { load_interleaved(rows) };
        for (i, group) in groups.into_iter().enumerate() {
            // SAFETY: the token proves AVX2.
            let [first, second] = unsafe { widen(group) };
            let to = to.wrapping_add(64 * i);
            // SAFETY: the caller vouches for 256 writable bytes.
            unsafe { _mm256_storeu_si256(to.cast(), first) };
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(to.wrapping_add(32).cast(), second) };
        }
    }
}

impl PairsS8 for Avx2 {
    const PAIR_PIXELS: usize = 8;

    #[inline(always)]
    unsafe fn pair(self, a: *const i8, b: *const i8, to: *mut u8) {
        // SAFETY: the token proves AVX2; the caller vouches for 8 readable bytes.
        let a = unsafe { _mm_loadl_epi64(a.cast()) };
        // SAFETY: as above.
        let b = unsafe { _mm_loadl_epi64(b.cast()) };
        // SAFETY: the token proves AVX2.
        let pairs = unsafe { pair(a, b) };
        // SAFETY: the token proves AVX2; the caller vouches for 32 writable bytes.
        unsafe { _mm256_storeu_si256(to.cast(), pairs) };
    }

    #[inline(always)]
    unsafe fn pair_weights(self, from: *const i8) -> [__m256i; 2] {
        // SAFETY: the token proves AVX2; the caller vouches for 32 readable weights.
        let fours = unsafe { _mm256_loadu_si256(from.cast()) };
        // SAFETY: the token proves AVX2.
        unsafe { pair_weights(fours) }
    }

    #[inline(always)]
    unsafe fn load_wide(self, from: *const i8) -> __m256i {
        // SAFETY: the token proves AVX2; the caller vouches for 16 readable weights.
        let bytes = unsafe { _mm_loadu_si128(from.cast()) };
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_cvtepi8_epi16(bytes) }
    }

    #[inline(always)]
    fn fold(self, sums: [__m256i; 8]) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { fold(sums) }
    }

    #[inline(always)]
    unsafe fn splat_pair(self, from: *const u8) -> __m256i {
        // SAFETY: the caller vouches for 4 readable bytes.
        let pair = unsafe { from.cast::<i32>().read_unaligned() };
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_set1_epi32(pair) }
    }

    #[inline(always)]
    fn dot_pairs(self, sums: __m256i, inputs: __m256i, weights: __m256i) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { dot_pairs(sums, inputs, weights) }
    }
}

avx2_s8! { AvxVnni, "avx2,fma,avxvnni",
    type Parts = __m256i;
    type Inputs = __m256i;
    type Weights = __m256i;

    const TILE_PIXELS: [usize; 3] = [10, 6, 3];
    const DEPTHWISE_PIXELS: usize = 8;
    const ROW_GROUPS: usize = 256;

    #[inline(always)]
    unsafe fn splat_inputs(self, from: *const u8) -> __m256i {
        // SAFETY: the caller vouches for 4 readable bytes.
        let four = unsafe { from.cast::<i32>().read_unaligned() };
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_set1_epi32(four) }
    }

    #[inline(always)]
    unsafe fn load_inputs(self, from: *const u8) -> __m256i {
        // SAFETY: the token proves AVX2; the caller vouches for 32 readable bytes.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_weights(self, from: *const i8) -> __m256i {
        // SAFETY: the token proves AVX2; the caller vouches for 32 readable bytes.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    fn parts(self, sums: __m256i) -> __m256i {
        sums
    }

    #[inline(always)]
    fn dot(self, sums: __m256i, inputs: __m256i, weights: __m256i) -> __m256i {
        // SAFETY: the token proves the features.
        unsafe { dot_vnni(sums, inputs, weights) }
    }

    #[inline(always)]
    fn total(self, sums: __m256i) -> __m256i {
        sums
    }

    #[inline(always)]
    fn dense_file(self, layer: DenseS8<'_>, weights: &[i8]) {
        if layer.has_rows() {
            layer.by_rows(self.avx2(), weights);
        } else {
            layer.by_tiles(self);
        }
    }

    #[inline(always)]
    unsafe fn interleave(self, rows: [*const i8; 4], to: *mut u8) {
        // SAFETY: the token proves AVX2; the caller vouches for 32 readable bytes of each row.
        let groups = unsafe { load_interleaved(rows) };
        for (i, group) in groups.into_iter().enumerate() {
            // SAFETY: the caller vouches for 128 writable bytes.
            unsafe { _mm256_storeu_si256(to.wrapping_add(32 * i).cast(), group) };
        }
    }

    #[inline(always)]
    fn depthwise(self, layer: DepthwiseConv2dS8<'_>) {
        layer.by_dots(self);
    }
}

impl BlocksS8 for AvxVnni {
    #[inline(always)]
    unsafe fn interleave_pieces<const PIECES: usize>(
        self,
        rows: [*const i8; 4],
        steps: [usize; 4],
        to: *mut u8,
    ) {
        let rows = [
            // SAFETY: the token proves AVX2; the caller vouches for every piece.
            unsafe { load_pieces::<PIECES>(rows[0], steps[0]) },
            // SAFETY: as above.
            unsafe { load_pieces::<PIECES>(rows[1], steps[1]) },
            // SAFETY: as above.
            unsafe { load_pieces::<PIECES>(rows[2], steps[2]) },
            // SAFETY: as above.
            unsafe { load_pieces::<PIECES>(rows[3], steps[3]) },
        ];
        // SAFETY: the token proves AVX2.
        let vectors = unsafe { interleave(rows) };
        for (i, vector) in vectors.into_iter().enumerate() {
            // SAFETY: the caller vouches for 128 writable bytes.
            unsafe { _mm256_storeu_si256(to.wrapping_add(32 * i).cast(), vector) };
        }
    }
}

/// A vector from `PIECES` pieces, each `step` bytes after the one before.
///
/// # Safety
/// Each piece is valid for reading.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load_pieces<const PIECES: usize>(from: *const i8, step: usize) -> __m256i {
    let at = |piece: usize| from.wrapping_add(piece * step);
    match PIECES {
        // SAFETY: the caller vouches for 32 bytes.
        1 => unsafe { _mm256_loadu_si256(from.cast()) },
        2 => {
            // SAFETY: the caller vouches for 16 bytes.
            let first = unsafe { _mm_loadu_si128(from.cast()) };
            // SAFETY: as above.
            let second = unsafe { _mm_loadu_si128(at(1).cast()) };
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(first), second)
        }
        _ => {
            let four = |piece: usize| {
                // SAFETY: the caller vouches for 8 bytes.
                unsafe { at(piece).cast::<i64>().read_unaligned() }
            };
            _mm256_setr_epi64x(four(0), four(1), four(2), four(3))
        }
    }
}
