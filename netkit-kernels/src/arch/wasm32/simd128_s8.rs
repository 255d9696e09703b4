//! WebAssembly's vectors for int8: four channels. `i32x4.dot_i16x8_s` adds products of 16 bits in pairs, so bytes are
//! split into even and odd ones.

use crate::isa::Simd128;
use crate::simd_s8::{KernelOn, SimdS8};
use core::arch::wasm32::*;
use netkit_core::pack::PANEL;
use netkit_core::quant::{Multiplier, OutputStage};

const LANES: usize = 4;

/// Multipliers of four channels, as [`mbqm`](Multiplier::apply) takes them apart. There are no shifts by lane: products
/// with powers of two stand for them.
#[derive(Clone, Copy)]
pub(crate) struct Scales {
    multiplier: v128,
    /// `2^left`
    left: v128,
    /// `2^(31 − right)`; anything where `right` is 0.
    right: v128,
    /// Ones where `right` is 0.
    unshifted: v128,
}

fn scales(multipliers: [Multiplier; LANES]) -> Scales {
    let [a, b, c, d] = multipliers.map(|multiplier| multiplier.multiplier);
    let [e, f, g, h] =
        multipliers.map(|Multiplier { shift, .. }| 1i32.wrapping_shl(shift.max(0) as u32));
    let right = multipliers.map(|multiplier| multiplier.shift.min(0));
    let [i, j, k, l] = right.map(|shift| 1i32.wrapping_shl((31 + shift) as u32));
    let [m, n, o, p] = right.map(|shift| if shift == 0 { -1 } else { 0 });
    Scales {
        multiplier: i32x4(a, b, c, d),
        left: i32x4(e, f, g, h),
        right: i32x4(i, j, k, l),
        unshifted: i32x4(m, n, o, p),
    }
}

/// `⌊(a · b + 2^30) / 2^31⌋` of each lane, of which 32 bits are kept.
#[inline(always)]
fn rounded_high_half(a: v128, b: v128) -> v128 {
    let half = i64x2_splat(1 << 30);
    let low = i64x2_add(i64x2_extmul_low_i32x4(a, b), half);
    let high = i64x2_add(i64x2_extmul_high_i32x4(a, b), half);
    // The bits that are kept are the same whether the sign is shifted in or not, which costs less on x86-64.
    i32x4_shuffle::<0, 2, 4, 6>(u64x2_shr(low, 31), u64x2_shr(high, 31))
}

/// [`mbqm`](Multiplier::apply). The rounding right shift by `r ≥ 1` is `⌊(h − [h < 0] + 2^(r−1)) / 2^r⌋`; with both sides
/// times `2^(31−r)` that is a rounded high half, as the first step. `h` is never −2^31, the multiplier being positive.
#[inline(always)]
fn rescale<const MODERATE: bool>(sums: v128, scales: &Scales) -> v128 {
    let sums = if MODERATE { sums } else { i32x4_mul(sums, scales.left) };
    let high = rounded_high_half(sums, scales.multiplier);
    let shifted = rounded_high_half(i32x4_add(high, i32x4_shr(high, 31)), scales.right);
    if MODERATE { shifted } else { v128_bitselect(high, shifted, scales.unshifted) }
}

#[inline(always)]
fn narrow(sums: [v128; 4], stage: &OutputStage) -> v128 {
    // Saturation cannot be seen: it starts where the result is past every clamp.
    let zero_point = i16x8_splat(stage.zero_point as i16);
    let [a, b, c, d] = sums;
    let first = i16x8_add_sat(i16x8_narrow_i32x4(a, b), zero_point);
    let second = i16x8_add_sat(i16x8_narrow_i32x4(c, d), zero_point);
    let bytes = i8x16_narrow_i16x8(first, second);
    i8x16_min(i8x16_max(bytes, i8x16_splat(stage.low)), i8x16_splat(stage.high))
}

/// Four unsigned bytes of each lane as two pairs of 16 bits: the even bytes and the odd ones.
#[inline(always)]
fn split_inputs(bytes: v128) -> [v128; 2] {
    [v128_and(bytes, i16x8_splat(0xff)), u16x8_shr(bytes, 8)]
}

/// The same of signed bytes.
#[inline(always)]
fn split_weights(bytes: v128) -> [v128; 2] {
    [i16x8_shr(i16x8_shl(bytes, 8), 8), i16x8_shr(bytes, 8)]
}

impl SimdS8 for Simd128 {
    type Sums = v128;
    type Parts = v128;
    type Inputs = [v128; 2];
    type Weights = [v128; 2];
    type Scales = Scales;
    type Outputs = v128;

    const LANES: usize = LANES;
    // What engines have on x86-64: 16 registers.
    const TILE_PIXELS: [usize; 3] = [4, 4, 1];
    const DEPTHWISE_PIXELS: usize = 4;

    #[inline(always)]
    fn call<K: KernelOn<Self>>(self, kernel: K) -> K::Output {
        #[inline(never)]
        fn enter<K: KernelOn<Simd128>>(token: Simd128, kernel: K) -> K::Output {
            kernel.run_on(token)
        }
        enter(self, kernel)
    }

    #[inline(always)]
    fn parts(self, sums: v128) -> v128 {
        sums
    }

    #[inline(always)]
    fn total(self, sums: v128) -> v128 {
        sums
    }

    #[inline(always)]
    fn splat(self, x: i32) -> v128 {
        i32x4_splat(x)
    }

    #[inline(always)]
    unsafe fn load_sums(self, from: *const i32) -> v128 {
        // SAFETY: the caller vouches for LANES readable values; the instruction asks for no alignment.
        unsafe { v128_load(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_sums(self, to: *mut i32, sums: v128) {
        // SAFETY: the caller vouches for LANES writable values; the instruction asks for no alignment.
        unsafe { v128_store(to.cast(), sums) };
    }

    #[inline(always)]
    fn add(self, a: v128, b: v128) -> v128 {
        i32x4_add(a, b)
    }

    #[inline(always)]
    fn max(self, a: v128, b: v128) -> v128 {
        i32x4_max(a, b)
    }

    #[inline(always)]
    unsafe fn load_fractions(self, from: *const i8, zero_point: v128) -> v128 {
        // SAFETY: the caller vouches for 4 readable bytes; the instruction asks for no alignment.
        let four = unsafe { v128_load32_zero(from.cast()) };
        let values = i32x4_extend_low_i16x8(i16x8_extend_low_i8x16(four));
        i32x4_shl(i32x4_sub(values, zero_point), 20)
    }

    #[inline(always)]
    unsafe fn splat_inputs(self, from: *const u8) -> [v128; 2] {
        // SAFETY: the caller vouches for 4 readable bytes; the instruction asks for no alignment.
        split_inputs(unsafe { v128_load32_splat(from.cast()) })
    }

    #[inline(always)]
    unsafe fn load_inputs(self, from: *const u8) -> [v128; 2] {
        // SAFETY: the caller vouches for 16 readable bytes; the instruction asks for no alignment.
        split_inputs(unsafe { v128_load(from.cast()) })
    }

    #[inline(always)]
    unsafe fn load_weights(self, from: *const i8) -> [v128; 2] {
        // SAFETY: the caller vouches for 16 readable bytes; the instruction asks for no alignment.
        split_weights(unsafe { v128_load(from.cast()) })
    }

    #[inline(always)]
    fn dot(self, sums: v128, inputs: [v128; 2], weights: [v128; 2]) -> v128 {
        // At most 2 · 255 · 128 a pair: nothing wraps.
        let even = i32x4_dot_i16x8(inputs[0], weights[0]);
        let odd = i32x4_dot_i16x8(inputs[1], weights[1]);
        i32x4_add(i32x4_add(sums, even), odd)
    }

    #[inline(always)]
    fn scales(self, multipliers: &[Multiplier; PANEL]) -> Scales {
        let [a, b, c, d, ..] = *multipliers;
        scales([a, b, c, d])
    }

    #[inline(always)]
    fn rescale<const MODERATE: bool>(self, sums: v128, factors: &Scales) -> v128 {
        rescale::<MODERATE>(sums, factors)
    }

    #[inline(always)]
    fn narrow(self, sums: [v128; 4], stage: &OutputStage) -> v128 {
        narrow(sums, stage)
    }

    #[inline(always)]
    unsafe fn store_outputs<const START: usize, const LEN: usize>(
        self,
        to: *mut i8,
        outputs: v128,
    ) {
        if LEN == 4 {
            // SAFETY: the caller vouches for 16 writable bytes; the instruction asks for no alignment.
            return unsafe { v128_store(to.cast(), outputs) };
        }
        let half = if START < 2 {
            i64x2_extract_lane::<0>(outputs)
        } else {
            i64x2_extract_lane::<1>(outputs)
        };
        if LEN == 2 {
            // SAFETY: the caller vouches for 8 writable bytes.
            return unsafe { to.cast::<i64>().write_unaligned(half) };
        }
        let quarter = if START % 2 == 0 { half as i32 } else { (half >> 32) as i32 };
        // SAFETY: the caller vouches for 4 writable bytes.
        unsafe { to.cast::<i32>().write_unaligned(quarter) };
    }

    #[inline(always)]
    unsafe fn interleave(self, rows: [*const i8; 4], to: *mut u8) {
        let offset = i8x16_splat(i8::MIN);
        let [a, b, c, d] = rows.map(|row| {
            // SAFETY: the caller vouches for 16 bytes of each row; the instruction asks for no alignment.
            v128_xor(unsafe { v128_load(row.cast()) }, offset)
        });
        let low = [unpack_low(a, b), unpack_low(c, d)];
        let high = [unpack_high(a, b), unpack_high(c, d)];
        let groups = [
            i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(low[0], low[1]),
            i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(low[0], low[1]),
            i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(high[0], high[1]),
            i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(high[0], high[1]),
        ];
        for (i, group) in groups.into_iter().enumerate() {
            // SAFETY: the caller vouches for 64 writable bytes; the instruction asks for no alignment.
            unsafe { v128_store(to.wrapping_add(16 * i).cast(), group) };
        }
    }
}

/// The first eight bytes of each, in turns.
#[inline(always)]
fn unpack_low(a: v128, b: v128) -> v128 {
    i8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b)
}

/// The last eight bytes of each, in turns.
#[inline(always)]
fn unpack_high(a: v128, b: v128) -> v128 {
    i8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b)
}
