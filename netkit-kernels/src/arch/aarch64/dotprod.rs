//! The dot products of Armv8.2: `sdot` adds four products of signed bytes to each lane of 32 bits.

use super::neon_s8::{self, LANES, Scales, Sums, shared};
use crate::arch::tile_s8::unrolled;
use crate::isa::Dotprod;
use crate::simd_s8::{KernelOn, SimdS8};
use core::arch::aarch64::*;
use core::arch::asm;
use netkit_core::pack::{GROUP_BYTES, PANEL};
use netkit_core::quant::{Multiplier, OutputStage};

/// To each lane of `sum` the products of four bytes.
///
/// As assembly: the intrinsics are not stable (rustc 1.96).
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn sdot(mut sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: computes its output from its inputs; the features are those of this function.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
            sum = inout(vreg) sum,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}

/// [`sdot`] with the same four bytes of `b`, those of `LANE`, for each lane.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn sdot_lane<const LANE: i32>(mut sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: computes its output from its inputs; the features are those of this function.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {a:v}.16b, {b:v}.4b[{lane}]",
            sum = inout(vreg) sum,
            a = in(vreg) a,
            b = in(vreg) b,
            lane = const LANE,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}

#[target_feature(enable = "neon,dotprod")]
#[inline]
fn dot(sums: Sums, inputs: [int8x16_t; 2], weights: [int8x16_t; 2]) -> Sums {
    [sdot(sums[0], weights[0], inputs[0]), sdot(sums[1], weights[1], inputs[1])]
}

#[target_feature(enable = "neon")]
#[inline]
fn broadcast(four: u32) -> [int8x16_t; 2] {
    [vreinterpretq_s8_u32(vdupq_n_u32(four)); 2]
}

/// One group of a tile: the products of each pixel's bytes in lane `GROUP` of `x` with the weights at `from`.
///
/// # Safety
/// `from` is valid for reading 32 weights.
#[inline(always)]
unsafe fn dot_lane<const GROUP: i32, const P: usize, const V: usize>(
    _: Dotprod,
    from: *const i8,
    v: usize,
    x: &[int8x16_t; P],
    sums: &mut [[Sums; V]; P],
) {
    unrolled!(half < 2 {
        // SAFETY: the token proves NEON; the caller vouches for 32 weights.
        let w = unsafe { vld1q_s8(from.wrapping_add(16 * half)) };
        unrolled!(p < P {
            // SAFETY: the token proves the features.
            sums[p][v][half] = unsafe { sdot_lane::<GROUP>(sums[p][v][half], w, x[p]) };
        });
    });
}

impl SimdS8 for Dotprod {
    type Inputs = [int8x16_t; 2];
    type Weights = [int8x16_t; 2];

    // Sums, one vector of inputs a pixel, and one or two of weights in 32 registers.
    const TILE_PIXELS: [usize; 3] = [9, 6, 0];
    const DEPTHWISE_PIXELS: usize = 8;
    const GROUPS_AT_ONCE: usize = 4;

    shared!(Dotprod, "neon,dotprod", Dotprod::neon);

    #[inline(always)]
    unsafe fn load_weights(self, from: *const i8) -> [int8x16_t; 2] {
        // SAFETY: the caller vouches for 32 readable bytes.
        unsafe { neon_s8::load_pair(self.neon(), from) }
    }

    #[inline(always)]
    fn dot(self, sums: Sums, inputs: [int8x16_t; 2], weights: [int8x16_t; 2]) -> Sums {
        // SAFETY: the token proves the features.
        unsafe { dot(sums, inputs, weights) }
    }

    /// Four groups of each pixel fill a vector, whose lanes are multiplied one by one.
    #[inline(always)]
    unsafe fn dot_groups<const P: usize, const V: usize>(
        self,
        pixels: &[*const u8; P],
        offset: usize,
        weights: &[*const i8; V],
        sums: &mut [[Sums; V]; P],
    ) {
        // SAFETY: the token proves NEON; the caller vouches for four groups of the first pixel.
        let mut x = [unsafe { vld1q_s8(pixels[0].wrapping_add(offset).cast()) }; P];
        unrolled!(p < P {
            // SAFETY: as above, of each pixel.
            x[p] = unsafe { vld1q_s8(pixels[p].wrapping_add(offset).cast()) };
        });
        macro_rules! groups {
            ($($group:literal)+) => {$(
                unrolled!(v < V <= 4 {
                    let from = weights[v].wrapping_add($group * GROUP_BYTES);
                    // SAFETY: the caller vouches for the weights of four groups.
                    unsafe { dot_lane::<$group, P, V>(self, from, v, &x, sums) };
                });
            )+};
        }
        groups!(0 1 2 3);
    }
}
