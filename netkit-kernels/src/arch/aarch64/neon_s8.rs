//! NEON for int8: eight channels, whose sums are two vectors of 32 bits. Bytes are widened to 16 bits and multiplied
//! into the sums (`smlal`): a product of two bytes fits 16 bits, but the sum of two such products need not.

use crate::arch::tile_s8::unrolled;
use crate::isa::Neon;
use crate::simd_s8::{KernelOn, SimdS8};
use core::arch::aarch64::*;
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL};
use netkit_core::quant::{Multiplier, OutputStage};

/// Of a vector, in channels.
pub(super) const LANES: usize = 8;

/// The sums of eight channels.
pub(super) type Sums = [int32x4_t; 2];

/// Multipliers of eight channels, as [`mbqm`](Multiplier::apply) takes them apart.
#[derive(Clone, Copy)]
pub(crate) struct Scales {
    left: [int32x4_t; 2],
    /// As `srshl` takes it: right shifts are negative.
    right: [int32x4_t; 2],
    multiplier: [int32x4_t; 2],
}

#[target_feature(enable = "neon")]
#[inline]
fn prepare(pairs: [int32x4x2_t; 2]) -> Scales {
    let zero = vdupq_n_s32(0);
    let [low, high] = pairs;
    Scales {
        left: [vmaxq_s32(low.1, zero), vmaxq_s32(high.1, zero)],
        right: [vminq_s32(low.1, zero), vminq_s32(high.1, zero)],
        multiplier: [low.0, high.0],
    }
}

/// Prepares the first eight multipliers.
#[inline(always)]
pub(super) fn scales(_: Neon, multipliers: &[Multiplier; PANEL]) -> Scales {
    let from: *const i32 = multipliers.as_ptr().cast();
    // SAFETY: the token proves NEON; the first four of sixteen pairs.
    let low = unsafe { vld2q_s32(from) };
    // SAFETY: the token proves NEON; the next four.
    let high = unsafe { vld2q_s32(from.wrapping_add(8)) };
    // SAFETY: the token proves NEON.
    unsafe { prepare([low, high]) }
}

/// The two roundings of [`mbqm`](Multiplier::apply): `sqrdmulh` is the first; the second, `srshl`, rounds ties up, and
/// of a negative number that is to be shifted one is taken away before, so that they round away from zero.
///
/// Nothing wraps: no product with a multiplier, which is positive, has −2^31 for its high half.
#[target_feature(enable = "neon")]
#[inline]
fn rescale_half<const MODERATE: bool>(sums: int32x4_t, scales: &Scales, half: usize) -> int32x4_t {
    let shifted = if MODERATE { sums } else { vshlq_s32(sums, scales.left[half]) };
    let high = vqrdmulhq_s32(shifted, scales.multiplier[half]);
    let negative = vandq_s32(high, scales.right[half]);
    vrshlq_s32(vsraq_n_s32::<31>(high, negative), scales.right[half])
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn rescale<const MODERATE: bool>(sums: Sums, scales: &Scales) -> Sums {
    [rescale_half::<MODERATE>(sums[0], scales, 0), rescale_half::<MODERATE>(sums[1], scales, 1)]
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn narrow(sums: [Sums; 4], stage: &OutputStage) -> [int8x16_t; 2] {
    // Saturation cannot be seen: it starts where the result is past every clamp.
    let zero_point = vdupq_n_s16(stage.zero_point as i16);
    let (low, high) = (vdupq_n_s8(stage.low), vdupq_n_s8(stage.high));
    let eight = |sums: Sums| vqaddq_s16(vqmovn_high_s32(vqmovn_s32(sums[0]), sums[1]), zero_point);
    let sixteen = |first, second| {
        let bytes = vqmovn_high_s16(vqmovn_s16(eight(first)), eight(second));
        vminq_s8(vmaxq_s8(bytes, low), high)
    };
    let [a, b, c, d] = sums;
    [sixteen(a, b), sixteen(c, d)]
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn fractions(bytes: int8x8_t, zero_point: Sums) -> Sums {
    let wide = vmovl_s8(bytes);
    let fraction = |x, zero_point| vshlq_n_s32::<20>(vsubq_s32(x, zero_point));
    [
        fraction(vmovl_s16(vget_low_s16(wide)), zero_point[0]),
        fraction(vmovl_high_s16(wide), zero_point[1]),
    ]
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn add(a: Sums, b: Sums) -> Sums {
    [vaddq_s32(a[0], b[0]), vaddq_s32(a[1], b[1])]
}

#[target_feature(enable = "neon")]
#[inline]
pub(super) fn max(a: Sums, b: Sums) -> Sums {
    [vmaxq_s32(a[0], b[0]), vmaxq_s32(a[1], b[1])]
}

/// Stores eight of the outputs.
///
/// # Safety
/// `to` is valid for writing 8 bytes.
#[inline(always)]
unsafe fn store_eight<const HIGH: bool>(_: Neon, to: *mut i8, outputs: int8x16_t) {
    let half = if HIGH {
        // SAFETY: the token proves NEON.
        unsafe { vget_high_s8(outputs) }
    } else {
        // SAFETY: the token proves NEON.
        unsafe { vget_low_s8(outputs) }
    };
    // SAFETY: the token proves NEON; the caller vouches for 8 writable bytes.
    unsafe { vst1_s8(to, half) };
}

/// [`SimdS8::store_outputs`].
///
/// # Safety
/// `to` is valid for writing `8 · LEN` bytes.
#[inline(always)]
pub(super) unsafe fn store_outputs<const START: usize, const LEN: usize>(
    neon: Neon,
    to: *mut i8,
    outputs: [int8x16_t; 2],
) {
    let here = if START < 2 { outputs[0] } else { outputs[1] };
    match LEN {
        1 if START % 2 == 0 => {
            // SAFETY: the caller vouches for 8 writable bytes.
            unsafe { store_eight::<false>(neon, to, here) };
        }
        1 => {
            // SAFETY: the caller vouches for 8 writable bytes.
            unsafe { store_eight::<true>(neon, to, here) };
        }
        2 => {
            // SAFETY: the token proves NEON; the caller vouches for 16 writable bytes.
            unsafe { vst1q_s8(to, here) };
        }
        _ => {
            // SAFETY: the token proves NEON; the caller vouches for 32 writable bytes.
            unsafe { vst1q_s8(to, outputs[0]) };
            // SAFETY: as above.
            unsafe { vst1q_s8(to.wrapping_add(16), outputs[1]) };
        }
    }
}

/// [`SimdS8::interleave`]: what `st4` does.
///
/// # Safety
/// Each row is valid for reading 32 bytes, `to` for writing 128.
#[inline(always)]
pub(super) unsafe fn interleave(_: Neon, rows: [*const i8; 4], to: *mut u8) {
    let [a, b, c, d] = rows;
    for half in [0, 16] {
        let rows = int8x16x4_t(
            // SAFETY: the token proves NEON; the caller vouches for 32 bytes of each row.
            unsafe { vld1q_s8(a.wrapping_add(half)) },
            // SAFETY: as above.
            unsafe { vld1q_s8(b.wrapping_add(half)) },
            // SAFETY: as above.
            unsafe { vld1q_s8(c.wrapping_add(half)) },
            // SAFETY: as above.
            unsafe { vld1q_s8(d.wrapping_add(half)) },
        );
        // SAFETY: the token proves NEON; the caller vouches for 128 writable bytes.
        unsafe { vst4q_s8(to.wrapping_add(4 * half).cast(), rows) };
    }
}

/// What the sets of AArch64 share of [`SimdS8`]; `$neon` turns the token into that of NEON.
macro_rules! shared {
    ($token:ident, $features:literal, $neon:expr) => {
        type Sums = Sums;
        type Parts = Sums;
        type Scales = Scales;
        type Outputs = [int8x16_t; 2];

        const LANES: usize = LANES;
        const INPUT_OFFSET: i32 = 0;

        #[inline(always)]
        fn call<K: KernelOn<Self>>(self, kernel: K) -> K::Output {
            #[target_feature(enable = $features)]
            fn enter<K: KernelOn<$token>>(token: $token, kernel: K) -> K::Output {
                kernel.run_on(token)
            }
            // Kernels call kernels, which must stay functions: registers are scarce in the inner ones.
            #[inline(never)]
            fn stay_outside<K: KernelOn<$token>>(token: $token, kernel: K) -> K::Output {
                // SAFETY: the token proves the features.
                unsafe { enter(token, kernel) }
            }
            stay_outside(self, kernel)
        }

        #[inline(always)]
        fn parts(self, sums: Sums) -> Sums {
            sums
        }

        #[inline(always)]
        fn total(self, sums: Sums) -> Sums {
            sums
        }

        #[inline(always)]
        fn splat(self, x: i32) -> Sums {
            // SAFETY: the token proves NEON.
            [unsafe { vdupq_n_s32(x) }; 2]
        }

        #[inline(always)]
        unsafe fn splat_inputs(self, from: *const u8) -> Self::Inputs {
            // SAFETY: the caller vouches for 4 readable bytes.
            let four = unsafe { from.cast::<u32>().read_unaligned() };
            // SAFETY: the token proves NEON.
            unsafe { broadcast(four) }
        }

        #[inline(always)]
        unsafe fn load_inputs(self, from: *const u8) -> Self::Inputs {
            // SAFETY: the caller vouches for 32 readable bytes, which lie as weights do.
            unsafe { self.load_weights(from.cast()) }
        }

        #[inline(always)]
        unsafe fn load_sums(self, from: *const i32) -> Sums {
            // SAFETY: the token proves NEON; the caller vouches for LANES readable values.
            let low = unsafe { vld1q_s32(from) };
            // SAFETY: as above.
            let high = unsafe { vld1q_s32(from.wrapping_add(4)) };
            [low, high]
        }

        #[inline(always)]
        unsafe fn store_sums(self, to: *mut i32, sums: Sums) {
            // SAFETY: the token proves NEON; the caller vouches for LANES writable values.
            unsafe { vst1q_s32(to, sums[0]) };
            // SAFETY: as above.
            unsafe { vst1q_s32(to.wrapping_add(4), sums[1]) };
        }

        #[inline(always)]
        fn add(self, a: Sums, b: Sums) -> Sums {
            // SAFETY: the token proves NEON.
            unsafe { neon_s8::add(a, b) }
        }

        #[inline(always)]
        fn max(self, a: Sums, b: Sums) -> Sums {
            // SAFETY: the token proves NEON.
            unsafe { neon_s8::max(a, b) }
        }

        #[inline(always)]
        unsafe fn load_fractions(self, from: *const i8, zero_point: Sums) -> Sums {
            // SAFETY: the token proves NEON; the caller vouches for 8 readable bytes.
            let bytes = unsafe { vld1_s8(from) };
            // SAFETY: the token proves NEON.
            unsafe { neon_s8::fractions(bytes, zero_point) }
        }

        #[inline(always)]
        fn scales(self, multipliers: &[Multiplier; PANEL]) -> Scales {
            neon_s8::scales($neon(self), multipliers)
        }

        #[inline(always)]
        fn rescale<const MODERATE: bool>(self, sums: Sums, scales: &Scales) -> Sums {
            // SAFETY: the token proves NEON.
            unsafe { neon_s8::rescale::<MODERATE>(sums, scales) }
        }

        #[inline(always)]
        fn narrow(self, sums: [Sums; 4], stage: &OutputStage) -> [int8x16_t; 2] {
            // SAFETY: the token proves NEON.
            unsafe { neon_s8::narrow(sums, stage) }
        }

        #[inline(always)]
        unsafe fn store_outputs<const START: usize, const LEN: usize>(
            self,
            to: *mut i8,
            outputs: [int8x16_t; 2],
        ) {
            // SAFETY: the caller vouches for LANES · LEN writable bytes.
            unsafe { neon_s8::store_outputs::<START, LEN>($neon(self), to, outputs) };
        }

        #[inline(always)]
        unsafe fn interleave(self, rows: [*const i8; 4], to: *mut u8) {
            // SAFETY: the caller vouches for 4 · LANES bytes of each row and 16 · LANES of `to`.
            unsafe { neon_s8::interleave($neon(self), rows, to) };
        }
    };
}
pub(super) use shared;

use super::neon_s8;

/// Bytes of eight channels sorted by their place in the group, as 16 bits.
#[target_feature(enable = "neon")]
#[inline]
fn widen(bytes: int8x8x4_t) -> [int16x8_t; 4] {
    [vmovl_s8(bytes.0), vmovl_s8(bytes.1), vmovl_s8(bytes.2), vmovl_s8(bytes.3)]
}

/// Four bytes, each in every lane of its vector. Where products follow, the instruction takes the lane.
#[target_feature(enable = "neon")]
#[inline]
fn broadcast(four: u32) -> [int16x8_t; 4] {
    let x = vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four))));
    [vdupq_lane_s16::<0>(x), vdupq_lane_s16::<1>(x), vdupq_lane_s16::<2>(x), vdupq_lane_s16::<3>(x)]
}

#[target_feature(enable = "neon")]
#[inline]
fn dot(mut sums: Sums, inputs: [int16x8_t; 4], weights: [int16x8_t; 4]) -> Sums {
    unrolled!(k < 4 {
        let (x, w) = (inputs[k], weights[k]);
        sums[0] = vmlal_s16(sums[0], vget_low_s16(w), vget_low_s16(x));
        sums[1] = vmlal_high_s16(sums[1], w, x);
    });
    sums
}

/// Adds the products of one place in a group.
#[target_feature(enable = "neon")]
#[inline]
fn multiply_lane<const LANE: i32>(sums: Sums, x: int16x8_t, weights: int16x8_t) -> Sums {
    [
        vmlal_laneq_s16::<LANE>(sums[0], vget_low_s16(weights), x),
        vmlal_high_laneq_s16::<LANE>(sums[1], weights, x),
    ]
}

/// Adds the products of the first (of lanes 0 to 3) or the second group of inputs.
#[target_feature(enable = "neon")]
#[inline]
fn dot_half<const SECOND: bool>(mut sums: Sums, x: int16x8_t, weights: [int16x8_t; 4]) -> Sums {
    let [a, b, c, d] = weights;
    if SECOND {
        sums = multiply_lane::<4>(sums, x, a);
        sums = multiply_lane::<5>(sums, x, b);
        sums = multiply_lane::<6>(sums, x, c);
        multiply_lane::<7>(sums, x, d)
    } else {
        sums = multiply_lane::<0>(sums, x, a);
        sums = multiply_lane::<1>(sums, x, b);
        sums = multiply_lane::<2>(sums, x, c);
        multiply_lane::<3>(sums, x, d)
    }
}

/// Adds the products of two groups of one pixel: `x` are the four bytes of each group, four times over, `weights` the
/// sixteen first and the sixteen last of each.
///
/// Products are summed in pairs (`smull`, `sadalp`) instead of being widened before: for a single pixel, as in a dense
/// layer, the weights would be widened for it alone.
#[target_feature(enable = "neon")]
#[inline]
fn dot_pairs(sums: Sums, x: [int8x16_t; 2], weights: [[int8x16_t; 2]; 2]) -> Sums {
    let four = |first: int8x16_t, second: int8x16_t| {
        let low = vpaddlq_s16(vmull_s8(vget_low_s8(first), vget_low_s8(x[0])));
        let high = vpaddlq_s16(vmull_high_s8(first, x[0]));
        let low = vpadalq_s16(low, vmull_s8(vget_low_s8(second), vget_low_s8(x[1])));
        let high = vpadalq_s16(high, vmull_high_s8(second, x[1]));
        vpaddq_s32(low, high)
    };
    let [first, second] = weights;
    [vaddq_s32(sums[0], four(first[0], second[0])), vaddq_s32(sums[1], four(first[1], second[1]))]
}

/// Four bytes, four times over.
///
/// # Safety
/// `from` is valid for reading 4 bytes.
#[inline(always)]
unsafe fn repeat(_: Neon, from: *const u8) -> int8x16_t {
    // SAFETY: the caller vouches for 4 readable bytes.
    let four = unsafe { from.cast::<u32>().read_unaligned() };
    // SAFETY: the token proves NEON.
    let bytes = unsafe { vdupq_n_u32(four) };
    // SAFETY: the token proves NEON.
    unsafe { vreinterpretq_s8_u32(bytes) }
}

/// 32 bytes.
///
/// # Safety
/// `from` is valid for reading 32 bytes.
#[inline(always)]
pub(super) unsafe fn load_pair(_: Neon, from: *const i8) -> [int8x16_t; 2] {
    // SAFETY: the token proves NEON; the caller vouches for 32 readable bytes.
    let low = unsafe { vld1q_s8(from) };
    // SAFETY: as above.
    let high = unsafe { vld1q_s8(from.wrapping_add(16)) };
    [low, high]
}

/// Eight bytes as 16 bits.
///
/// # Safety
/// `from` is valid for reading 8 bytes.
#[inline(always)]
unsafe fn load_wide(_: Neon, from: *const u8) -> int16x8_t {
    // SAFETY: the token proves NEON; the caller vouches for 8 readable bytes.
    let bytes = unsafe { vld1_s8(from.cast()) };
    // SAFETY: the token proves NEON.
    unsafe { vmovl_s8(bytes) }
}

impl SimdS8 for Neon {
    type Inputs = [int16x8_t; 4];
    type Weights = [int16x8_t; 4];

    // Sums, one vector of inputs a pixel, and eight of weights, bytes and words, in 32 registers. Of the instructions of
    // a step 0.74 are products; with one more pixel 0.62, sums going through memory.
    const TILE_PIXELS: [usize; 3] = [6, 3, 0];
    const DEPTHWISE_PIXELS: usize = 8;
    const GROUPS_AT_ONCE: usize = 2;

    shared!(Neon, "neon", core::convert::identity);

    #[inline(always)]
    unsafe fn load_weights(self, from: *const i8) -> [int16x8_t; 4] {
        // SAFETY: the token proves NEON; the caller vouches for 32 readable bytes.
        let sorted = unsafe { vld4_s8(from) };
        // SAFETY: the token proves NEON.
        unsafe { widen(sorted) }
    }

    #[inline(always)]
    fn dot(self, sums: Sums, inputs: [int16x8_t; 4], weights: [int16x8_t; 4]) -> Sums {
        // SAFETY: the token proves NEON.
        unsafe { dot(sums, inputs, weights) }
    }

    /// Two groups of each pixel fill a vector of 16 bits, whose lanes are multiplied one by one.
    #[inline(always)]
    unsafe fn dot_groups<const P: usize, const V: usize>(
        self,
        pixels: &[*const u8; P],
        offset: usize,
        weights: &[*const i8; V],
        sums: &mut [[Sums; V]; P],
    ) {
        if P == 1 {
            let from = pixels[0].wrapping_add(offset);
            // SAFETY: the caller vouches for two groups of the pixel.
            let x = unsafe { repeat(self, from) };
            // SAFETY: as above.
            let x = [x, unsafe { repeat(self, from.wrapping_add(GROUP)) }];
            unrolled!(v < V <= 4 {
                // SAFETY: the caller vouches for the weights of the first group.
                let first = unsafe { load_pair(self, weights[v]) };
                // SAFETY: the caller vouches for the weights of the second.
                let second = unsafe { load_pair(self, weights[v].wrapping_add(GROUP_BYTES)) };
                // SAFETY: the token proves NEON.
                sums[0][v] = unsafe { dot_pairs(sums[0][v], x, [first, second]) };
            });
            return;
        }
        // SAFETY: the caller vouches for two groups of the first pixel.
        let mut x = [unsafe { load_wide(self, pixels[0].wrapping_add(offset)) }; P];
        unrolled!(p < P {
            // SAFETY: the caller vouches for two groups of each pixel.
            x[p] = unsafe { load_wide(self, pixels[p].wrapping_add(offset)) };
        });
        unrolled!(v < V <= 4 {
            // SAFETY: the caller vouches for the weights of the first group.
            let w = unsafe { self.load_weights(weights[v]) };
            unrolled!(p < P {
                // SAFETY: the token proves NEON.
                sums[p][v] = unsafe { dot_half::<false>(sums[p][v], x[p], w) };
            });
            // SAFETY: the caller vouches for the weights of the second.
            let w = unsafe { self.load_weights(weights[v].wrapping_add(GROUP_BYTES)) };
            unrolled!(p < P {
                // SAFETY: the token proves NEON.
                sums[p][v] = unsafe { dot_half::<true>(sums[p][v], x[p], w) };
            });
        });
    }
}
