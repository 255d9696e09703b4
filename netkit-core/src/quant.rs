//! Quantization: the one definition of int8 arithmetic that every kernel matches to the last bit.
//!
//! A quantized value `q` stands for the real number `scale · (q − zero_point)`. Sections cited are
//! those of the format specification (`docs/format.md`).

/// How int8 values of one tensor map to real numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quant {
    /// Distance between two neighbouring values; finite and positive.
    pub scale: f32,
    /// The value that stands for real zero, in −128..=127.
    pub zero_point: i32,
}

impl Quant {
    /// The quantization of a softmax output: 1/256, −128 (section 8.8).
    pub const SOFTMAX: Self = Self { scale: 1.0 / 256.0, zero_point: -128 };

    /// `clamp(round_half_even(x / scale) + zero_point)`, the division in f32 (section 8.9).
    ///
    /// NaN becomes the zero point; infinities saturate.
    #[must_use]
    pub fn quantize(self, real: f32) -> i8 {
        let steps = real / self.scale;
        if steps.is_nan() {
            return self.zero_point as i8;
        }
        // Adding and taking away 1.5·2^23 rounds to nearest, ties to even, for |x| < 2^22; beyond ±512
        // the result saturates whatever the zero point.
        const ROUND: f32 = 12_582_912.0;
        let rounded = (steps.clamp(-512.0, 512.0) + ROUND) - ROUND;
        (rounded as i32 + self.zero_point).clamp(-128, 127) as i8
    }

    /// `scale · (q − zero_point)`.
    #[must_use]
    pub fn dequantize(self, q: i8) -> f32 {
        (i32::from(q) - self.zero_point) as f32 * self.scale
    }
}

/// A positive real factor as `multiplier · 2^(shift − 31)` (section 8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Multiplier {
    /// In `2^30..2^31`, or 0 for the factor 0.
    pub multiplier: i32,
    /// In −31..=30; positive shifts left before the multiplication, negative right after it.
    pub shift: i32,
}

impl Multiplier {
    /// The fixed-point form of a factor, `quantize_multiplier` of section 8.2.
    #[must_use]
    pub fn from_real(factor: f64) -> Self {
        // Not `factor <= 0.0`: NaN, which no checked file produces, must not reach the bit pattern.
        if !(factor > 0.0) {
            return Self { multiplier: 0, shift: 0 };
        }
        if factor == f64::INFINITY {
            return Self { multiplier: i32::MAX, shift: 30 };
        }
        // frexp: factor = fraction · 2^shift, fraction in [0.5, 1). Subnormal factors are far below the
        // smallest shift and end as 0.
        let bits = factor.to_bits();
        let exponent = (bits >> 52) as i32;
        if exponent == 0 {
            return Self { multiplier: 0, shift: 0 };
        }
        let mut shift = exponent - 1022;
        // The 53-bit significand stands for fraction · 2^53; keep 31 bits, half rounds away from zero.
        let significand = (bits & ((1 << 52) - 1)) | (1 << 52);
        let mut multiplier = ((significand + (1 << 21)) >> 22) as i64;
        if multiplier == 1 << 31 {
            multiplier = 1 << 30;
            shift += 1;
        }
        if shift < -31 {
            return Self { multiplier: 0, shift: 0 };
        }
        if shift > 30 {
            return Self { multiplier: i32::MAX, shift: 30 };
        }
        Self { multiplier: multiplier as i32, shift }
    }

    /// The factor of one output channel: `input · weight / output`, evaluated left to right in f64
    /// (section 8.2).
    #[must_use]
    pub fn for_channel(input_scale: f32, weight_scale: f32, output_scale: f32) -> Self {
        Self::from_real(f64::from(input_scale) * f64::from(weight_scale) / f64::from(output_scale))
    }

    /// `x` times this factor, with the two roundings of section 8.3 (`mbqm`).
    #[must_use]
    #[inline(always)]
    pub const fn apply(self, x: i32) -> i32 {
        let left = if self.shift > 0 { self.shift } else { 0 };
        let right = if self.shift > 0 { 0 } else { -self.shift };
        let shifted = x.wrapping_shl(left as u32);
        rounding_divide_by_power_of_two(
            saturating_rounding_doubling_high_mul(shifted, self.multiplier),
            right,
        )
    }
}

/// The high half of `2·a·b`, to nearest with ties toward +∞; `a = b = −2^31` saturates (section 8.3).
#[must_use]
#[inline(always)]
pub const fn saturating_rounding_doubling_high_mul(a: i32, b: i32) -> i32 {
    if a == i32::MIN && b == i32::MIN {
        return i32::MAX;
    }
    // Truncating division after adding ±2^30 is floor((p + 2^30) / 2^31), for either sign of p.
    ((a as i64 * b as i64 + (1 << 30)) >> 31) as i32
}

/// `x / 2^exponent` to nearest, ties away from zero (section 8.3); `exponent` in 0..=31.
#[must_use]
#[inline(always)]
pub const fn rounding_divide_by_power_of_two(x: i32, exponent: i32) -> i32 {
    let mask = ((1i64 << exponent) - 1) as i32;
    let remainder = x & mask;
    let threshold = (mask >> 1) + (x < 0) as i32;
    (x >> if exponent > 31 { 31 } else { exponent }) + (remainder > threshold) as i32
}

/// How an int32 accumulator becomes an int8 output: `clamp(mbqm(acc) + zero_point, low, high)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputStage {
    /// Zero point of the output, −128..=127.
    pub zero_point: i32,
    /// Lower clamp; relu raises it to the zero point.
    pub low: i8,
    /// Upper clamp; relu6 lowers it.
    pub high: i8,
}

/// `clamp(multiplier · accumulator + zero_point, low, high)` (section 8.4).
#[must_use]
#[inline(always)]
pub const fn requantize(accumulator: i32, multiplier: Multiplier, stage: OutputStage) -> i8 {
    let value = multiplier.apply(accumulator).saturating_add(stage.zero_point);
    if value < stage.low as i32 {
        stage.low
    } else if value > stage.high as i32 {
        stage.high
    } else {
        value as i8
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn multipliers_of_section_12() {
        for (factor, multiplier, shift) in [
            (1.0, 1_073_741_824, 1),
            (0.5, 1_073_741_824, 0),
            (0.75, 1_610_612_736, 0),
            (0.001, 1_099_511_628, -9),
            (2.5, 1_342_177_280, 2),
            (1.999_999_999_9, 1_073_741_824, 2),
            (1e-12, 0, 0),
            (1e10, i32::MAX, 30),
            (0.0, 0, 0),
            (-1.0, 0, 0),
            (f64::NAN, 0, 0),
            (f64::INFINITY, i32::MAX, 30),
            (f64::MIN_POSITIVE / 2.0, 0, 0),
        ] {
            assert_eq!(Multiplier::from_real(factor), Multiplier { multiplier, shift }, "{factor}");
        }
    }

    #[test]
    fn rescaling_of_section_12() {
        for (x, factor, expected) in [
            (1000, 0.001, 1),
            (1500, 0.001, 2),
            (-1500, 0.001, -2),
            (2500, 0.001, 3),
            (12345, 0.0123, 152),
            (-12345, 0.0123, -152),
            (7, 2.5, 18),
            (-7, 2.5, -17),
            (1, 0.5, 1),
            (-1, 0.5, 0),
            (3, 0.5, 2),
            (-3, 0.5, -1),
        ] {
            assert_eq!(Multiplier::from_real(factor).apply(x), expected, "{x} · {factor}");
        }
    }

    /// Pitfall B14: one rounding instead of two differs for 138 of 140 001 accumulators.
    #[test]
    fn two_roundings_are_not_one() {
        let m = Multiplier { multiplier: 0x5A82_799A, shift: -9 };
        let single = |x: i32| {
            let total = 31 - m.shift;
            ((i64::from(x) * i64::from(m.multiplier) + (1 << (total - 1))) >> total) as i32
        };
        let differing: Vec<i32> = (-70_000..=70_000).filter(|&x| m.apply(x) != single(x)).collect();
        assert_eq!(differing.len(), 138);
        assert_eq!(differing[..4], [-69_873, -69_149, -68_425, -67_701]);
    }

    /// Pitfall B15: extremes neither overflow nor change sign.
    #[test]
    fn extremes_saturate() {
        let m = |shift| Multiplier { multiplier: i32::MAX, shift };
        assert_eq!(m(0).apply(i32::MAX), i32::MAX - 1);
        assert_eq!(m(0).apply(i32::MIN), i32::MIN + 1);
        assert_eq!(Multiplier { multiplier: i32::MIN, shift: 0 }.apply(i32::MIN), i32::MAX);
        assert_eq!(m(-31).apply(i32::MAX), 1);
        assert_eq!(m(-31).apply(i32::MIN), -1);
        assert_eq!(m(-30).apply(1 << 29), 1);
        assert_eq!(m(-30).apply(-(1 << 29)), -1);
    }

    #[test]
    fn quantize_rounds_half_to_even_and_saturates() {
        let q = Quant { scale: 1.0, zero_point: 3 };
        for (x, expected) in [
            (0.5, 3),
            (1.5, 5),
            (2.5, 5),
            (-0.5, 3),
            (-1.5, 1),
            (1e30, 127),
            (-1e30, -128),
            (f32::INFINITY, 127),
            (f32::NEG_INFINITY, -128),
            (f32::NAN, 3),
        ] {
            assert_eq!(q.quantize(x), expected, "{x}");
        }
        assert_eq!(Quant { scale: 0.5, zero_point: -128 }.dequantize(-126), 1.0);
    }
}
