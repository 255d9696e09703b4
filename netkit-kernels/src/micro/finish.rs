//! From sums to outputs: rescaling, zero point, clamp.

use netkit_core::quant::{Multiplier, OutputStage};

/// What turns sums into outputs, in the form passes read.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Finish {
    /// `2 · zero_point + 1`: added before the last of the right shifts, it rounds and moves at once.
    pub(crate) doubled_zero_point: i32,
    /// The clamp's bounds, each in all four bytes.
    pub(crate) low: u32,
    pub(crate) high: u32,
    /// Whether they are narrower than int8: else saturation is all the clamp there is.
    pub(crate) clamps: u32,
}

impl Finish {
    pub(crate) fn new(stage: OutputStage) -> Self {
        let OutputStage { zero_point, low, high } = stage;
        Self {
            doubled_zero_point: 2 * zero_point + 1,
            low: u32::from(low as u8) * 0x0101_0101,
            high: u32::from(high as u8) * 0x0101_0101,
            clamps: u32::from(low > i8::MIN || high < i8::MAX),
        }
    }

    /// The output of a sum for which [`is_usual`] holds; the same as
    /// [`requantize`](netkit_core::quant::requantize).
    #[cfg(any(test, not(any(netkit_dsp, netkit_thumb2))))]
    #[inline(always)]
    pub(crate) fn apply(&self, sum: i32, multiplier: Multiplier) -> i8 {
        #[cfg(not(netkit_thumb1))]
        let product = doubled_high(sum, multiplier.multiplier);
        #[cfg(netkit_thumb1)]
        let product = doubled_high_by_halves(sum, multiplier.multiplier);
        // Ties away from zero: one less before rounding up, if negative. The last of the shifts comes after the zero
        // point is added, doubled, and with it the one that rounds.
        let rounded = product + (product >> 31);
        let shift = !multiplier.shift as u32 & 31;
        let value = ((rounded >> shift) + self.doubled_zero_point) >> 1;
        value.clamp((self.low as i8).into(), (self.high as i8).into()) as i8
    }
}

/// The high half of the doubled product, to nearest, ties up.
///
/// Twice the high word, bit 31 of the low word, and bit 30 of it for rounding: no addition is wider than a word.
#[cfg(any(test, not(any(netkit_dsp, netkit_thumb2, netkit_thumb1))))]
#[inline(always)]
fn doubled_high(a: i32, b: i32) -> i32 {
    let product = i64::from(a) * i64::from(b);
    let (high, low) = ((product >> 32) as i32, product as u32);
    (high << 1).wrapping_add((((low >> 30) + 1) >> 1) as i32)
}

/// The same for `|a| ≤ 2^30` and `b ≥ 0`, from four products of halves, for processors without a wider product: a
/// library would be asked for one of 64 by 64 bits.
///
/// The low half of `a` is taken as signed, so that the middle products are below 2^30 each and their sum, rounding
/// included, fits a word. What is below it does not reach the result.
#[cfg(any(test, netkit_thumb1))]
#[inline(always)]
fn doubled_high_by_halves(a: i32, b: i32) -> i32 {
    let a_low = i32::from(a as i16);
    let a_high = a.wrapping_sub(a_low) >> 16;
    let (b_low, b_high) = (b & 0xffff, b >> 16);
    let middle = a_low.wrapping_mul(b_high).wrapping_add(a_high.wrapping_mul(b_low));
    let middle = middle.wrapping_add(a_low.wrapping_mul(b_low) >> 16);
    (a_high.wrapping_mul(b_high) << 1).wrapping_add(middle.wrapping_add(1 << 14) >> 15)
}

/// Whether the rescaling of the passes is exact for these channels, which it is for nearly every model.
///
/// They double sums before they multiply, so sums must stay below 2^30, and they shift right by at least one. `taps` is
/// how many products a sum has.
pub(crate) fn is_usual(bias: &[i32], multipliers: &[Multiplier], taps: usize) -> bool {
    // A product is at most 255 · 128.
    let products = taps.saturating_mul(255 * 128);
    let limit = (1usize << 30).saturating_sub(products.saturating_add(1));
    bias.iter().all(|bias| (bias.unsigned_abs() as usize) < limit)
        && multipliers.iter().all(|multiplier| multiplier.shift < 0)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{Finish, doubled_high, doubled_high_by_halves, is_usual};
    use netkit_core::quant::saturating_rounding_doubling_high_mul;
    use netkit_core::quant::{Multiplier, OutputStage, requantize};
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn agrees_with_the_definition() {
        let stages = [(0, -128, 127), (-128, -128, 127), (127, 127, 127), (5, 5, 90)];
        for (zero_point, low, high) in stages {
            let stage = OutputStage { zero_point, low, high };
            let finish = Finish::new(stage);
            for shift in -31..0 {
                for multiplier in [1 << 30, 0x5a82_799a, i32::MAX, (1 << 30) + 1] {
                    let multiplier = Multiplier { multiplier, shift };
                    // Around every tie near zero, and the extremes.
                    let sums = (-2000..2000).chain((-1000..1000).map(|i| i * 1_073_741 + 7));
                    for sum in sums {
                        let expected = requantize(sum, multiplier, stage);
                        assert_eq!(
                            finish.apply(sum, multiplier),
                            expected,
                            "{sum} {multiplier:?} {stage:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn doubled_products_are_those_of_the_definition() {
        let halves = [0, 1, 2, 0x3fff, 0x4000, 0x7fff, 0x8000, 0x8001, 0xc000, 0xffff];
        let factors = [0x4000, 0x4001, 0x5a82, 0x7ffe, 0x7fff];
        let mut sums: Vec<i32> = vec![1 << 30, -(1 << 30), (1 << 30) - 1, 1 - (1 << 30)];
        for high in [0, 1, 2, 0x1234, 0x3ffe, 0x3fff, -1, -2, -0x1234, -0x3fff, -0x4000] {
            sums.extend(halves.map(|low| (high << 16) | low));
        }
        for multiplier in factors.into_iter().flat_map(|high| halves.map(|low| (high << 16) | low))
        {
            for &sum in &sums {
                let expected = saturating_rounding_doubling_high_mul(sum, multiplier);
                assert_eq!(doubled_high(sum, multiplier), expected, "{sum} {multiplier}");
                assert_eq!(doubled_high_by_halves(sum, multiplier), expected, "{sum} {multiplier}");
            }
        }
        assert_eq!(doubled_high_by_halves(1 << 30, 0), 0);
    }

    #[test]
    fn sums_that_could_reach_2_30_are_not_usual() {
        let halve = [Multiplier { multiplier: 1 << 30, shift: -1 }];
        assert!(is_usual(&[0], &halve, 30_000));
        assert!(!is_usual(&[0], &halve, 40_000));
        assert!(!is_usual(&[1 << 30], &halve, 1));
        assert!(!is_usual(&[i32::MIN], &halve, 1));
        assert!(!is_usual(&[0], &[Multiplier { multiplier: 1 << 30, shift: 0 }], 1));
    }
}
