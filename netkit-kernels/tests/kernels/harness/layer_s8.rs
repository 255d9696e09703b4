//! Parameters of int8 layers: the ordinary, and every extreme.

use super::Random;
use netkit_core::quant::{Multiplier, OutputStage};
use netkit_kernels::reference::LayerS8;

/// What an int8 layer with weights has beside them.
pub(crate) struct Layer {
    pub(crate) input_zero_point: i32,
    pub(crate) bias: Vec<i32>,
    pub(crate) multipliers: Vec<Multiplier>,
    pub(crate) stage: OutputStage,
}

impl Layer {
    /// For `channels` output channels whose sums have `taps` products.
    pub(crate) fn new(random: &mut Random, channels: usize, taps: usize) -> Self {
        let zero_point = |random: &mut Random| match random.below(4) {
            0 => -128,
            1 => 127,
            _ => random.below(256) as i32 - 128,
        };
        let input_zero_point = zero_point(random);
        let kind = random.below(4);
        let bias = |random: &mut Random| match kind {
            0 => random.choose(&[i32::MIN, i32::MAX, 0]),
            _ => random.next() as i32 >> (12 + random.below(20)),
        };
        let bias = (0..channels).map(|_| bias(random)).collect();
        // Products of random bytes are about 2^12.5, sums of them grow with the root of their number;
        // outputs should spread over the range of a byte.
        let bits = usize::BITS - taps.leading_zeros();
        let spread = -8 - bits as i32 / 2;
        let kind = random.below(3);
        let multiplier = |random: &mut Random| Multiplier {
            multiplier: match random.below(16) {
                0 => 1 << 30,
                1 => i32::MAX,
                2 => 0,
                _ => (1 << 30) + random.below(1 << 30) as i32,
            },
            shift: match kind {
                0 => random.below(62) as i32 - 31,
                _ => spread + random.below(4) as i32,
            },
        };
        let multipliers = (0..channels).map(|_| multiplier(random)).collect();
        let out_zero_point = zero_point(random);
        let (low, high) = random.choose(&[
            (-128, 127),
            (out_zero_point as i8, 127),
            (out_zero_point as i8, (out_zero_point + 40).min(127) as i8),
        ]);
        let stage = OutputStage { zero_point: out_zero_point, low, high };
        Self { input_zero_point, bias, multipliers, stage }
    }

    /// As the reference takes it.
    pub(crate) fn reference(&self) -> LayerS8<'_> {
        LayerS8 {
            input_zero_point: self.input_zero_point,
            bias: &self.bias,
            multipliers: &self.multipliers,
            stage: self.stage,
        }
    }
}
