//! Convolutions straight from the definition, weights where they lie in the file: for processors
//! without vectors, whose memory has no room for panels, and for depthwise convolutions with a
//! multiplier, which are rare.
//!
//! The sums are formed in the order of the panel kernels, so that both give the same bits.

use super::activation::apply;
use super::window::taps_inside;
use crate::simd::Simd;
use core::ops::Range;
use netkit_core::op::{Activation, Conv2d, DepthwiseConv2d};

/// Output rows `rows` of a convolution, weights `[out, kernel_h, kernel_w, in]`.
pub(crate) struct DirectConv2dF32<'a> {
    pub(crate) conv: Conv2d,
    pub(crate) input: &'a [f32],
    pub(crate) weights: &'a [f32],
    pub(crate) scale: Option<&'a [f32]>,
    pub(crate) bias: &'a [f32],
    pub(crate) residual: Option<&'a [f32]>,
    pub(crate) activation: Activation,
    pub(crate) rows: Range<usize>,
    pub(crate) output: &'a mut [f32],
}

/// Output channels computed together, so that each input is loaded once for as many products.
const CHANNELS: usize = 4;

impl DirectConv2dF32<'_> {
    #[inline(always)]
    pub(crate) fn run<S: Simd>(self, simd: S) {
        let (w, inputs, outputs) =
            (&self.conv.window, self.conv.in_channels, self.conv.out_channels.max(1));
        let depth = w.taps() * inputs;
        let row_len = (w.out_w * outputs).max(1);
        let first = self.rows.start;
        for (oh, row) in self.rows.clone().zip(self.output.chunks_exact_mut(row_len)) {
            let is = taps_inside(oh, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
            for (ow, pixel) in row.chunks_exact_mut(outputs).enumerate() {
                let js = taps_inside(ow, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
                for (block, to) in pixel.chunks_mut(CHANNELS).enumerate() {
                    let channel = block * CHANNELS;
                    let mut sums = [0.0; CHANNELS];
                    let mut scales = [1.0; CHANNELS];
                    let mut filters: [&[f32]; CHANNELS] = [&[]; CHANNELS];
                    for lane in 0..to.len().min(CHANNELS) {
                        let o = channel + lane;
                        // −0 becomes 0, as it does where padded taps are added.
                        sums[lane] = self.bias.get(o).copied().unwrap_or(0.0) + 0.0;
                        scales[lane] = self.scale.and_then(|s| s.get(o)).copied().unwrap_or(1.0);
                        filters[lane] = self.weights.get(o * depth..).unwrap_or(&[]);
                    }
                    for lane in to.len()..CHANNELS {
                        // A lane past the last channel repeats the first; its sum is not stored.
                        filters[lane] = filters[0];
                    }
                    for i in is.clone() {
                        let ih = oh * w.stride_h + i * w.dilation_h - w.pad_top;
                        for j in js.clone() {
                            let iw = ow * w.stride_w + j * w.dilation_w - w.pad_left;
                            let start = (ih * w.in_w + iw) * inputs;
                            let x = self.input.get(start..start + inputs).unwrap_or(&[]);
                            let tap = (i * w.kernel_w + j) * inputs;
                            let taps = filters.map(|f| f.get(tap..tap + inputs).unwrap_or(&[]));
                            let [a, b, c, d] = taps;
                            for ((((&x, &a), &b), &c), &d) in x.iter().zip(a).zip(b).zip(c).zip(d) {
                                // Times 1 where nothing is folded: exact.
                                sums[0] += x * (a * scales[0]);
                                sums[1] += x * (b * scales[1]);
                                sums[2] += x * (c * scales[2]);
                                sums[3] += x * (d * scales[3]);
                            }
                        }
                    }
                    let at = ((oh - first) * w.out_w + ow) * outputs + channel;
                    if let Some(residual) = self.residual {
                        for (sum, &x) in sums.iter_mut().zip(residual.get(at..).unwrap_or(&[])) {
                            *sum += x;
                        }
                    }
                    let sums = simd.load(&sums);
                    simd.store(to, apply(simd, self.activation, sums));
                }
            }
        }
    }
}

/// Output rows `rows` of a depthwise convolution with any multiplier.
pub(crate) struct DirectDepthwiseConv2dF32<'a> {
    pub(crate) conv: DepthwiseConv2d,
    pub(crate) input: &'a [f32],
    pub(crate) weights: &'a [f32],
    /// Whether the weights are `[taps, channels]` rather than `[channels, taps]`.
    pub(crate) taps_first: bool,
    pub(crate) scale: Option<&'a [f32]>,
    pub(crate) bias: &'a [f32],
    pub(crate) activation: Activation,
    pub(crate) rows: Range<usize>,
    pub(crate) output: &'a mut [f32],
}

impl DirectDepthwiseConv2dF32<'_> {
    #[inline(always)]
    pub(crate) fn run<S: Simd>(self, simd: S) {
        let (w, inputs, multiplier) =
            (&self.conv.window, self.conv.channels, self.conv.multiplier.max(1));
        let outputs = (inputs * multiplier).max(1);
        let (tap_step, channel_step) = if self.taps_first { (outputs, 1) } else { (1, w.taps()) };
        let row_len = (w.out_w * outputs).max(1);
        for (oh, row) in self.rows.zip(self.output.chunks_exact_mut(row_len)) {
            let is = taps_inside(oh, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
            for (ow, pixel) in row.chunks_exact_mut(outputs).enumerate() {
                let js = taps_inside(ow, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
                for (o, to) in pixel.iter_mut().enumerate() {
                    let mut sum = self.bias.get(o).copied().unwrap_or(0.0) + 0.0;
                    let scale = self.scale.and_then(|s| s.get(o)).copied().unwrap_or(1.0);
                    for i in is.clone() {
                        let ih = oh * w.stride_h + i * w.dilation_h - w.pad_top;
                        for j in js.clone() {
                            let iw = ow * w.stride_w + j * w.dilation_w - w.pad_left;
                            let x = self.input.get((ih * w.in_w + iw) * inputs + o / multiplier);
                            let tap = (i * w.kernel_w + j) * tap_step + o * channel_step;
                            let weight = self.weights.get(tap);
                            sum += x.copied().unwrap_or(0.0)
                                * (weight.copied().unwrap_or(0.0) * scale);
                        }
                    }
                    *to = sum;
                }
                for to in pixel.chunks_mut(S::LANES) {
                    let y = apply(simd, self.activation, simd.load(to));
                    simd.store(to, y);
                }
            }
        }
    }
}
