//! Int8 convolution, depthwise convolution and dense layers (section 8.4).

use super::conv2d::pixel_under;
use netkit_core::op::{Conv2d, Dense, DepthwiseConv2d};
use netkit_core::quant::{Multiplier, OutputStage, requantize};

/// Zero point of the input, bias and multiplier of each output channel, and the output: what every int8
/// layer with weights has.
#[derive(Clone, Copy, Debug)]
pub struct LayerS8<'a> {
    /// Zero point of the input.
    pub input_zero_point: i32,
    /// In units of input scale times weight scale, one an output channel.
    pub bias: &'a [i32],
    /// From those units to the output's, one an output channel.
    pub multipliers: &'a [Multiplier],
    /// Zero point and clamp of the output.
    pub stage: OutputStage,
}

impl LayerS8<'_> {
    /// The output of channel `channel` for its taps, pairs of input and weight.
    fn output(&self, channel: usize, taps: impl Iterator<Item = (i8, i8)>) -> i8 {
        let mut sum = self.bias[channel];
        for (x, w) in taps {
            sum = sum.wrapping_add((i32::from(x) - self.input_zero_point) * i32::from(w));
        }
        requantize(sum, self.multipliers[channel], self.stage)
    }
}

/// A whole convolution; `weights` are `[out, kernel_h, kernel_w, in]`.
pub fn conv2d_s8(
    conv: &Conv2d,
    input: &[i8],
    weights: &[i8],
    layer: LayerS8<'_>,
    output: &mut [i8],
) {
    let w = &conv.window;
    for oh in 0..w.out_h {
        for ow in 0..w.out_w {
            for o in 0..conv.out_channels {
                let taps = (0..w.kernel_h).flat_map(|i| (0..w.kernel_w).map(move |j| (i, j)));
                let pairs = taps.flat_map(|(i, j)| {
                    let pixel = pixel_under(w, (oh, ow), (i, j));
                    let tap = ((o * w.kernel_h + i) * w.kernel_w + j) * conv.in_channels;
                    (0..conv.in_channels).filter_map(move |c| {
                        Some((input[pixel? * conv.in_channels + c], weights[tap + c]))
                    })
                });
                output[(oh * w.out_w + ow) * conv.out_channels + o] = layer.output(o, pairs);
            }
        }
    }
}

/// A whole depthwise convolution; `weights` are `[channels · multiplier, kernel_h, kernel_w]`.
pub fn depthwise_conv2d_s8(
    conv: &DepthwiseConv2d,
    input: &[i8],
    weights: &[i8],
    layer: LayerS8<'_>,
    output: &mut [i8],
) {
    let w = &conv.window;
    let channels = conv.channels * conv.multiplier;
    for oh in 0..w.out_h {
        for ow in 0..w.out_w {
            for o in 0..channels {
                let taps = (0..w.kernel_h).flat_map(|i| (0..w.kernel_w).map(move |j| (i, j)));
                let pairs = taps.filter_map(|(i, j)| {
                    let pixel = pixel_under(w, (oh, ow), (i, j))?;
                    let x = input[pixel * conv.channels + o / conv.multiplier];
                    Some((x, weights[(o * w.kernel_h + i) * w.kernel_w + j]))
                });
                output[(oh * w.out_w + ow) * channels + o] = layer.output(o, pairs);
            }
        }
    }
}

/// A dense layer; `weights` are `[out, in]`.
pub fn dense_s8(
    dense: &Dense,
    input: &[i8],
    weights: &[i8],
    layer: LayerS8<'_>,
    output: &mut [i8],
) {
    for row in 0..dense.rows {
        let x = &input[row * dense.in_features..][..dense.in_features];
        for o in 0..dense.out_features {
            let w = &weights[o * dense.in_features..][..dense.in_features];
            let pairs = x.iter().copied().zip(w.iter().copied());
            output[row * dense.out_features + o] = layer.output(o, pairs);
        }
    }
}
