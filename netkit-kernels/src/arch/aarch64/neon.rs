//! NEON: four lanes, fused multiply-add, products with any one lane.

use crate::arch::tile_s8::unrolled;
use crate::isa::Neon;
use crate::simd::{Kernel, Simd};
use core::arch::aarch64::*;
use netkit_core::pack::PANEL;

const LANES: usize = 4;

/// The taps of a tile that are multiplied one after the other.
macro_rules! for_each_lane {
    ($lane:ident $body:block) => {{
        for_each_lane!(@one $lane 0 $body);
        for_each_lane!(@one $lane 1 $body);
        for_each_lane!(@one $lane 2 $body);
        for_each_lane!(@one $lane 3 $body);
    }};
    (@one $lane:ident $value:literal $body:block) => {{
        const $lane: i32 = $value;
        $body
    }};
}

/// `x[LANE] · weights + sum`
#[target_feature(enable = "neon")]
#[inline]
fn mul_add_lane<const LANE: i32>(
    sum: float32x4_t,
    weights: float32x4_t,
    x: float32x4_t,
) -> float32x4_t {
    vfmaq_laneq_f32::<LANE>(sum, weights, x)
}

/// `a > b ? yes : no`
#[target_feature(enable = "neon")]
#[inline]
fn select_greater(
    a: float32x4_t,
    b: float32x4_t,
    yes: float32x4_t,
    no: float32x4_t,
) -> float32x4_t {
    vbslq_f32(vcgtq_f32(a, b), yes, no)
}

#[target_feature(enable = "neon")]
#[inline]
fn power_of_two(t: float32x4_t) -> float32x4_t {
    let exponent = vshlq_n_s32::<23>(vreinterpretq_s32_f32(t));
    vreinterpretq_f32_s32(vaddq_s32(exponent, vdupq_n_s32(0x3f80_0000)))
}

#[target_feature(enable = "neon")]
#[inline]
fn reduce_sum(vector: float32x4_t) -> f32 {
    let halves = vadd_f32(vget_low_f32(vector), vget_high_f32(vector));
    vaddv_f32(halves)
}

#[target_feature(enable = "neon")]
#[inline]
fn reduce_sums(vectors: [float32x4_t; 4]) -> float32x4_t {
    let [a, b, c, d] = vectors;
    vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d))
}

impl Simd for Neon {
    type Vector = float32x4_t;

    const LANES: usize = LANES;
    // Sums, one vector of inputs a pixel, and weights in 32 registers.
    const TILE_PIXELS: [usize; 3] = [14, 9, 0];
    const DEPTHWISE_PIXELS: usize = 8;
    const DENSE_TILE: [usize; 2] = [4, 4];
    const TAPS_AT_ONCE: usize = LANES;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "neon")]
        #[inline(never)]
        fn enter<K: Kernel>(token: Neon, kernel: K) -> K::Output {
            kernel.run(token)
        }
        // SAFETY: the token proves the features.
        unsafe { enter(self, kernel) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Vector {
        // SAFETY: the token proves NEON.
        unsafe { vdupq_n_f32(x) }
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
        // SAFETY: the token proves NEON; the caller vouches for LANES readable floats.
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn store_pointer(self, to: *mut f32, vector: Self::Vector) {
        // SAFETY: the token proves NEON; the caller vouches for LANES writable floats.
        unsafe { vst1q_f32(to, vector) }
    }

    #[inline(always)]
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves NEON.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves NEON.
        unsafe { vsubq_f32(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves NEON.
        unsafe { vmulq_f32(a, b) }
    }

    #[inline(always)]
    fn div(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves NEON.
        unsafe { vdivq_f32(a, b) }
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves NEON.
        unsafe { vfmaq_f32(c, a, b) }
    }

    /// Four taps of each pixel are loaded once and multiplied lane by lane: no broadcast is left.
    #[inline(always)]
    unsafe fn mul_add_taps<const P: usize, const V: usize>(
        self,
        weights: *const f32,
        panel_pitch: usize,
        pixels: &[*const f32; P],
        offset: usize,
        sums: &mut [[Self::Vector; V]; P],
    ) {
        let mut x = [self.splat(0.0); P];
        unrolled!(p < P {
            // SAFETY: the caller vouches for LANES taps.
            x[p] = unsafe { self.load_pointer(pixels[p].wrapping_add(offset)) };
        });
        for_each_lane!(LANE {
            let row = weights.wrapping_add(LANE as usize * PANEL);
            unrolled!(v < V <= 4 {
                let lane = v * LANES;
                let from = row.wrapping_add(lane / PANEL * panel_pitch + lane % PANEL);
                // SAFETY: the caller vouches for the row in each panel; LANES divides PANEL.
                let w = unsafe { self.load_pointer(from) };
                unrolled!(p < P {
                    // SAFETY: the token proves NEON.
                    sums[p][v] = unsafe { mul_add_lane::<LANE>(sums[p][v], w, x[p]) };
                });
            });
        });
    }

    // Not `fmax` and `fmin`, which treat NaN and −0 otherwise.
    #[inline(always)]
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        self.select_greater(a, b, a, b)
    }

    #[inline(always)]
    fn min(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        self.select_greater(b, a, a, b)
    }

    #[inline(always)]
    fn select_greater(
        self,
        a: Self::Vector,
        b: Self::Vector,
        yes: Self::Vector,
        no: Self::Vector,
    ) -> Self::Vector {
        // SAFETY: the token proves NEON.
        unsafe { select_greater(a, b, yes, no) }
    }

    #[inline(always)]
    fn power_of_two(self, t: Self::Vector) -> Self::Vector {
        // SAFETY: the token proves NEON.
        unsafe { power_of_two(t) }
    }

    #[inline(always)]
    fn reduce_sum(self, vector: Self::Vector) -> f32 {
        // SAFETY: the token proves NEON.
        unsafe { reduce_sum(vector) }
    }

    #[inline(always)]
    fn reduce_sums(self, vectors: [Self::Vector; 4]) -> [f32; 4] {
        // SAFETY: the token proves NEON.
        let total = unsafe { reduce_sums(vectors) };
        let mut sums = [0.0; 4];
        self.store(&mut sums, total);
        sums
    }

    #[inline(always)]
    fn reduce_max(self, vector: Self::Vector) -> f32 {
        let mut lanes = [0.0; LANES];
        self.store(&mut lanes, vector);
        let max = |a: f32, b: f32| if a > b { a } else { b };
        max(max(lanes[0], lanes[2]), max(lanes[1], lanes[3]))
    }
}
