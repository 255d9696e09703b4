//! Quantization: the one definition of int8 arithmetic that every kernel matches to the last bit.
//!
//! A quantized value `q` stands for the real number `scale · (q − zero_point)`. Sections cited are
//! those of `docs/format.md`.

use crate::op::Activation;

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
        // NaN, which no checked file produces, must not reach the bit pattern.
        if factor.is_nan() || factor <= 0.0 {
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
    // Within 32 bits: a shift of 64 is a library call on the smallest processors.
    let mask = (1u32 << (exponent & 31)).wrapping_sub(1) as i32;
    let remainder = x & mask;
    let threshold = (mask >> 1) + (x < 0) as i32;
    (x >> exponent) + (remainder > threshold) as i32
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

impl OutputStage {
    /// The clamp range of a fused activation (section 8.4); `None` for those that int8 arithmetic
    /// cannot fuse (section 8.6).
    #[must_use]
    pub fn new(output: Quant, activation: Activation) -> Option<Self> {
        let zero_point = output.zero_point;
        let floor = zero_point.clamp(-128, 127) as i8;
        let (low, high) = match activation {
            Activation::None => (i8::MIN, i8::MAX),
            Activation::Relu => (floor, i8::MAX),
            Activation::Relu6 => {
                let steps = 6.0 / f64::from(output.scale);
                // Casts truncate and saturate: half rounds away from zero, and a tiny scale ends at 127.
                let whole = steps as i32;
                let rounded = whole.saturating_add((steps - f64::from(whole) >= 0.5) as i32);
                let six = rounded.saturating_add(zero_point).clamp(i32::from(floor), 127);
                (floor, six as i8)
            }
            _ => return None,
        };
        Some(Self { zero_point, low, high })
    }

    /// Adds the zero point to a rescaled sum and clamps.
    #[must_use]
    #[inline(always)]
    pub const fn clamp(&self, rescaled: i32) -> i8 {
        let value = rescaled.saturating_add(self.zero_point);
        let value = if value < self.low as i32 { self.low as i32 } else { value };
        if value > self.high as i32 { self.high } else { value as i8 }
    }
}

/// `clamp(multiplier · accumulator + zero_point, low, high)` (section 8.4).
#[must_use]
#[inline(always)]
pub const fn requantize(accumulator: i32, multiplier: Multiplier, stage: OutputStage) -> i8 {
    stage.clamp(multiplier.apply(accumulator))
}

/// `sum / count` to the nearest integer, ties away from zero: the mean of raw int8 values of one
/// average-pooling window (section 8.5). `count` must be positive.
#[must_use]
#[inline(always)]
pub const fn rounding_mean(sum: i32, count: i32) -> i8 {
    let half = count / 2;
    let mean = if sum > 0 { (sum + half) / count } else { (sum - half) / count };
    if mean < -128 {
        -128
    } else if mean > 127 {
        127
    } else {
        mean as i8
    }
}

/// The element-wise sum of two quantized tensors (section 8.7).
///
/// Both inputs are brought to a common scale, twice the larger of theirs, with 20 fractional bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddStage {
    /// Zero points of the two inputs.
    pub input_zero_points: [i32; 2],
    /// From each input's scale to the common one; never above 1/2.
    pub input_multipliers: [Multiplier; 2],
    /// From the common scale and its fractional bits to the output's scale.
    pub output_multiplier: Multiplier,
    /// Zero point and clamp of the output.
    pub output: OutputStage,
}

impl AddStage {
    const FRACTIONAL_BITS: i32 = 20;

    /// The parameters of `left + right`; `None` where [`OutputStage::new`] knows no such activation.
    #[must_use]
    pub fn new(left: Quant, right: Quant, output: Quant, activation: Activation) -> Option<Self> {
        let (left_scale, right_scale) = (f64::from(left.scale), f64::from(right.scale));
        let common = 2.0 * if left_scale > right_scale { left_scale } else { right_scale };
        let unit = f64::from(1 << Self::FRACTIONAL_BITS);
        Some(Self {
            input_zero_points: [left.zero_point, right.zero_point],
            input_multipliers: [
                Multiplier::from_real(left_scale / common),
                Multiplier::from_real(right_scale / common),
            ],
            output_multiplier: Multiplier::from_real(common / (unit * f64::from(output.scale))),
            output: OutputStage::new(output, activation)?,
        })
    }

    /// One input, `0` or `1`, at the common scale.
    #[must_use]
    #[inline(always)]
    pub const fn widen(&self, input: usize, value: i8) -> i32 {
        let steps = value as i32 - self.input_zero_points[input];
        self.input_multipliers[input].apply(steps << Self::FRACTIONAL_BITS)
    }

    /// The sum of two values.
    #[must_use]
    #[inline(always)]
    pub const fn apply(&self, left: i8, right: i8) -> i8 {
        let sum = self.widen(0, left).wrapping_add(self.widen(1, right));
        requantize(sum, self.output_multiplier, self.output)
    }
}

/// Fixed-point softmax over int8 logits; the output is quantized as [`Quant::SOFTMAX`] (section 8.8).
///
/// The exponential of a difference to the largest logit and the reciprocal of the sum are computed in
/// Q0.31, the same on every machine. A row has at most [`SoftmaxStage::MAX_LEN`] logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftmaxStage {
    /// From logit steps to Q5.26.
    pub multiplier: Multiplier,
    /// Logits further below the largest than this are zero.
    pub min_difference: i32,
}

impl SoftmaxStage {
    /// The longest row: more equal logits would overflow the sum.
    pub const MAX_LEN: usize = 4095;

    /// The parameters for logits of a scale.
    #[must_use]
    pub fn new(logit_scale: f32) -> Self {
        let scaled = f64::from(logit_scale) * f64::from(1 << 26);
        let limit = f64::from(i32::MAX);
        let multiplier = Multiplier::from_real(if scaled < limit { scaled } else { limit });
        // ⌊31 · 2^26 / 2^shift⌋, kept within i32: no difference is below −255.
        let radius = if multiplier.shift >= 0 {
            (31i64 << 26) >> multiplier.shift
        } else {
            ((31i64 << 26) << -multiplier.shift).min(i64::from(i32::MAX))
        };
        Self { multiplier, min_difference: -(radius as i32) }
    }

    /// `e^difference` in Q0.31 for a difference to the largest logit, from `min_difference` to 0.
    #[must_use]
    #[inline(always)]
    pub const fn exp(&self, difference: i32) -> i32 {
        exp_of_non_positive(self.multiplier.apply(difference))
    }

    /// What an exponential adds to the sum: 12 integer bits make room for 4095 ones.
    #[must_use]
    #[inline(always)]
    pub const fn term(exp: i32) -> i32 {
        rounding_divide_by_power_of_two(exp, 12)
    }

    /// The factor that turns an exponential into an output, from the sum of all terms.
    #[must_use]
    pub const fn normaliser(sum: i32) -> SoftmaxNormaliser {
        // The largest logit adds 2^19; only a row without logits has no sum.
        let headroom = if sum > 0 { sum.leading_zeros() } else { 0 };
        // sum · 2^headroom is 1 + f with f in [0, 1) as Q0.31; `half` is (1 + f) / 2.
        let fraction = ((sum as u32) << headroom).wrapping_sub(1 << 31) as i64;
        let half = ((fraction + (1 << 31)) >> 1) as i32;
        // Newton's iteration for 1 / half in Q2.29, from the line 48/17 − 32/17 · half.
        let mut x = 1_515_870_810_i32
            .wrapping_add(saturating_rounding_doubling_high_mul(half, -1_010_580_540));
        let mut step = 0;
        while step < 3 {
            let error = (1 << 29) - saturating_rounding_doubling_high_mul(half, x);
            let delta = saturating_rounding_doubling_high_mul(x, error).saturating_mul(4);
            x = x.wrapping_add(delta);
            step += 1;
        }
        SoftmaxNormaliser { reciprocal: x.saturating_mul(2), shift: 35 - headroom as i32 }
    }
}

/// The reciprocal of a softmax's sum, see [`SoftmaxStage::normaliser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftmaxNormaliser {
    /// In Q0.31.
    pub reciprocal: i32,
    /// Right shift to the output's scale.
    pub shift: i32,
}

impl SoftmaxNormaliser {
    /// The output that belongs to an exponential.
    #[must_use]
    #[inline(always)]
    pub const fn apply(&self, exp: i32) -> i8 {
        let scaled = saturating_rounding_doubling_high_mul(self.reciprocal, exp);
        // Sums of 1024 and more ask for shifts past 31, which leave less than half a step.
        let steps =
            if self.shift > 31 { 0 } else { rounding_divide_by_power_of_two(scaled, self.shift) };
        let value = steps - 128;
        if value < -128 {
            -128
        } else if value > 127 {
            127
        } else {
            value as i8
        }
    }
}

/// `e^v` in Q0.31 for `v ≤ 0` in Q5.26 (section 8.8).
#[must_use]
#[inline(always)]
pub const fn exp_of_non_positive(v: i32) -> i32 {
    // e^(−1/8), and 1/3 in Q0.31.
    const EXP_MINUS_EIGHTH: i32 = 1_895_147_668;
    const THIRD: i32 = 715_827_883;
    /// `e^(−2^k)` in Q0.31 for k = −2..=4.
    const POWERS: [i32; 7] =
        [1_672_461_947, 1_302_514_674, 790_015_084, 290_630_308, 39_332_535, 720_401, 242];
    // v = modulus − remainder, modulus in [−1/4, 0) and remainder a multiple of 1/4. The polynomial is
    // a Taylor series about −1/8; the remainder's bits select factors.
    let modulus = (v & ((1 << 24) - 1)) - (1 << 24);
    let remainder = modulus.wrapping_sub(v);
    let x = modulus * 32 + (1 << 28);
    let x2 = saturating_rounding_doubling_high_mul(x, x);
    let x3 = saturating_rounding_doubling_high_mul(x2, x);
    let x4 = saturating_rounding_doubling_high_mul(x2, x2);
    let t = rounding_divide_by_power_of_two(x4, 2) + x3;
    let t = saturating_rounding_doubling_high_mul(t, THIRD) + x2;
    let t = x + rounding_divide_by_power_of_two(t, 1);
    let mut y = EXP_MINUS_EIGHTH + saturating_rounding_doubling_high_mul(EXP_MINUS_EIGHTH, t);
    let mut bit = 0;
    while bit < POWERS.len() {
        let scaled = saturating_rounding_doubling_high_mul(y, POWERS[bit]);
        y = if remainder & (1 << (24 + bit)) != 0 { scaled } else { y };
        bit += 1;
    }
    if v == 0 { i32::MAX } else { y }
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
    fn b14_two_roundings_are_not_one() {
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
    fn b15_extremes_saturate() {
        let m = |shift| Multiplier { multiplier: i32::MAX, shift };
        assert_eq!(m(0).apply(i32::MAX), i32::MAX - 1);
        assert_eq!(m(0).apply(i32::MIN), i32::MIN + 1);
        assert_eq!(Multiplier { multiplier: i32::MIN, shift: 0 }.apply(i32::MIN), i32::MAX);
        assert_eq!(m(-31).apply(i32::MAX), 1);
        assert_eq!(m(-31).apply(i32::MIN), -1);
        assert_eq!(m(-30).apply(1 << 29), 1);
        assert_eq!(m(-30).apply(-(1 << 29)), -1);
        // To the left, step 1 of section 8.3 wraps; the product behind it has 64 bits.
        for shift in 1..=7 {
            for x in [i32::MAX, i32::MIN, i32::MAX - 1, -1, 1, 1 << (30 - shift)] {
                let wrapped = ((i64::from(x) << shift) as u32).cast_signed();
                let product = i128::from(wrapped) * i128::from(i32::MAX);
                let half = if product >= 0 { 1 << 30 } else { 1 - (1 << 30) };
                let expected = (product + half) / (1 << 31);
                assert_eq!(i128::from(m(shift).apply(x)), expected, "{x} · 2^{shift}");
            }
        }
    }

    #[test]
    fn clamps_of_section_12() {
        let stage = |activation, scale, zero_point| {
            let stage = OutputStage::new(Quant { scale, zero_point }, activation).unwrap();
            (stage.low, stage.high)
        };
        assert_eq!(stage(Activation::None, 0.05, 5), (-128, 127));
        assert_eq!(stage(Activation::Relu6, 0.05, -128), (-128, -8));
        assert_eq!(stage(Activation::Relu6, 0.02, -128), (-128, 127));
        assert_eq!(stage(Activation::Relu, 0.02, -10), (-10, 127));
        // 6 / 4 = 1.5 rounds away from zero.
        assert_eq!(stage(Activation::Relu6, 0.75, 0), (0, 8));
        assert_eq!(stage(Activation::Relu6, 4.0, 100), (100, 102));
        assert_eq!(stage(Activation::Relu6, 100.0, 127), (127, 127));
        assert_eq!(stage(Activation::Relu6, f32::MIN_POSITIVE, 127), (127, 127));
    }

    #[test]
    fn activations_without_an_integer_form_are_refused() {
        let quant = Quant { scale: 1.0, zero_point: 0 };
        for activation in [Activation::Sigmoid, Activation::Tanh, Activation::LeakyRelu(0.5)] {
            assert_eq!(OutputStage::new(quant, activation), None);
            assert_eq!(AddStage::new(quant, quant, quant, activation), None);
        }
    }

    /// Pitfall B17: ties go away from zero.
    #[test]
    fn b17_means_of_section_12() {
        for (values, mean) in [
            (&[3, -2][..], 1),
            (&[-5, -4, -4, -5], -5),
            (&[-3, -3, -2, -2], -3),
            (&[3, 3, 2, 2], 3),
            (&[1, 0, 0, 0], 0),
            (&[-128; 9], -128),
            (&[127; 9], 127),
        ] {
            assert_eq!(rounding_mean(values.iter().sum(), values.len() as i32), mean, "{values:?}");
        }
    }

    #[test]
    fn sums_of_section_12() {
        let left = Quant { scale: 0.02, zero_point: -3 };
        let right = Quant { scale: 0.05, zero_point: 10 };
        let output = Quant { scale: 0.06, zero_point: -1 };
        let stage = AddStage::new(left, right, output, Activation::None).unwrap();
        let sums: Vec<i8> = [(-128, 127), (-5, 4), (0, 0), (1, -1), (100, 100), (127, 127)]
            .map(|(a, b)| stage.apply(a, b))
            .to_vec();
        assert_eq!(sums, [55, -7, -8, -9, 108, 127]);
    }

    fn softmax(logits: &[i8], scale: f32) -> Vec<i8> {
        let stage = SoftmaxStage::new(scale);
        let max = i32::from(*logits.iter().max().unwrap());
        let exps = logits.iter().map(|&q| i32::from(q) - max).map(|difference| {
            if difference < stage.min_difference { None } else { Some(stage.exp(difference)) }
        });
        let sum = exps.clone().flatten().map(SoftmaxStage::term).sum();
        let normaliser = SoftmaxStage::normaliser(sum);
        exps.map(|exp| exp.map_or(-128, |exp| normaliser.apply(exp))).collect()
    }

    #[test]
    fn softmax_of_section_12() {
        for (scale, expected) in [
            (1.0, [-128, -128, -128, -101, -101, 73]),
            (0.75, [-128, -128, -127, -89, -89, 48]),
            (0.3, [-128, -122, -114, -66, -66, -15]),
            (0.1, [-128, -101, -92, -68, -68, -55]),
            (0.05, [-128, -90, -84, -72, -72, -66]),
            (0.004, [-101, -83, -83, -82, -82, -81]),
            (0.0039, [-101, -83, -83, -82, -82, -82]),
            (0.001, [-90, -85, -85, -84, -84, -84]),
        ] {
            assert_eq!(softmax(&[-128, -3, 0, 5, 5, 7], scale), expected, "{scale}");
        }
    }

    /// The longest row of equal logits, and scales at both ends, stay within 32 bits.
    #[test]
    fn softmax_survives_extremes() {
        assert_eq!(softmax(&[3], 1.0), [127]);
        for (len, expected) in [(255, -127), (511, -127), (512, -128), (1025, -128), (4095, -128)] {
            let outputs = softmax(&std::vec![5; len], 1.0);
            assert!(outputs.iter().all(|&q| q == expected), "{len}: {}", outputs[0]);
        }
        assert_eq!(softmax(&[-128, 127], f32::MAX), [-128, 127]);
        assert_eq!(softmax(&[-128, 127], f32::MIN_POSITIVE), [0, 0]);
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
