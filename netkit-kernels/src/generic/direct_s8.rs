//! Int8 layers straight from weights in file order, without scratch: for small machines, where weights
//! stay in flash and every byte of memory counts.
//!
//! Four output channels share each input byte that is loaded. Taps in the padding are left out.

use super::window::taps_inside;
use core::ops::Range;
use netkit_core::op::{Conv2d, Dense, DepthwiseConv2d};
use netkit_core::quant::{Multiplier, OutputStage, requantize};

/// Output channels computed together.
const CHANNELS: usize = 4;

/// What every layer with weights has.
#[derive(Clone, Copy)]
pub(crate) struct DirectS8<'a> {
    pub(crate) input: &'a [i8],
    pub(crate) input_zero_point: i32,
    pub(crate) weights: &'a [i8],
    pub(crate) bias: &'a [i32],
    pub(crate) multipliers: &'a [Multiplier],
    pub(crate) stage: OutputStage,
}

impl DirectS8<'_> {
    /// Output rows `rows` of a convolution.
    #[inline(always)]
    pub(crate) fn conv2d(&self, conv: &Conv2d, rows: Range<usize>, output: &mut [i8]) {
        let (w, channels) = (&conv.window, conv.in_channels);
        let taps = w.taps() * channels;
        let pixels = output.chunks_exact_mut(conv.out_channels.max(1));
        let positions = rows.flat_map(|oh| (0..w.out_w).map(move |ow| (oh, ow)));
        for ((oh, ow), pixel) in positions.zip(pixels) {
            let is = taps_inside(oh, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
            let js = taps_inside(ow, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
            // Neighbouring taps of a row are neighbours in the map, too.
            let (step, run) = if w.dilation_w == 1 { (js.len().max(1), js.len()) } else { (1, 1) };
            self.channels(taps, pixel, |rows, sums| {
                for i in is.clone() {
                    let ih = oh * w.stride_h + i * w.dilation_h - w.pad_top;
                    for j in js.clone().step_by(step) {
                        let iw = ow * w.stride_w + j * w.dilation_w - w.pad_left;
                        let at = (ih * w.in_w + iw) * channels;
                        let x = self.input.get(at..at + run * channels).unwrap_or(&[]);
                        let tap = (i * w.kernel_w + j) * channels;
                        self.accumulate(x, rows, tap, sums);
                    }
                }
            });
        }
    }

    /// A dense layer.
    #[inline(always)]
    pub(crate) fn dense(&self, dense: &Dense, output: &mut [i8]) {
        let inputs = self.input.chunks_exact(dense.in_features.max(1));
        for (x, y) in inputs.zip(output.chunks_exact_mut(dense.out_features.max(1))) {
            self.channels(dense.in_features, y, |rows, sums| self.accumulate(x, rows, 0, sums));
        }
    }

    /// The channels of one output pixel, whose weights are `taps` each: `add` adds the products of the
    /// channels whose weights it is given to their sums.
    #[inline(always)]
    fn channels(
        &self,
        taps: usize,
        pixel: &mut [i8],
        mut add: impl FnMut(&[&[i8]; CHANNELS], &mut [i32; CHANNELS]),
    ) {
        for (block, y) in pixel.chunks_mut(CHANNELS).enumerate() {
            let first = block * CHANNELS;
            let mut rows: [&[i8]; CHANNELS] = [&[]; CHANNELS];
            let mut sums = [0; CHANNELS];
            for (o, (row, sum)) in rows.iter_mut().zip(&mut sums).enumerate() {
                // Channels that do not exist repeat the last one.
                let channel = first + o.min(y.len() - 1);
                *row = self.weights.get(channel * taps..(channel + 1) * taps).unwrap_or(&[]);
                *sum = self.bias.get(channel).copied().unwrap_or(0);
            }
            add(&rows, &mut sums);
            let multipliers = self.multipliers.get(first..).unwrap_or(&[]);
            for ((y, sum), &multiplier) in y.iter_mut().zip(sums).zip(multipliers) {
                *y = requantize(sum, multiplier, self.stage);
            }
        }
    }

    /// Adds a run of products: input bytes times the weights of each row from `tap` on.
    #[inline(always)]
    fn accumulate(
        &self,
        x: &[i8],
        rows: &[&[i8]; CHANNELS],
        tap: usize,
        sums: &mut [i32; CHANNELS],
    ) {
        let run = tap..tap + x.len();
        let [a, b, c, d] = *rows;
        let (a, b) = (a.get(run.clone()).unwrap_or(&[]), b.get(run.clone()).unwrap_or(&[]));
        let (c, d) = (c.get(run.clone()).unwrap_or(&[]), d.get(run).unwrap_or(&[]));
        let [mut sum_a, mut sum_b, mut sum_c, mut sum_d] = *sums;
        for ((((&x, &a), &b), &c), &d) in x.iter().zip(a).zip(b).zip(c).zip(d) {
            let x = i32::from(x).wrapping_sub(self.input_zero_point);
            sum_a = sum_a.wrapping_add(x.wrapping_mul(i32::from(a)));
            sum_b = sum_b.wrapping_add(x.wrapping_mul(i32::from(b)));
            sum_c = sum_c.wrapping_add(x.wrapping_mul(i32::from(c)));
            sum_d = sum_d.wrapping_add(x.wrapping_mul(i32::from(d)));
        }
        *sums = [sum_a, sum_b, sum_c, sum_d];
    }

    /// Output rows `rows` of a depthwise convolution.
    #[inline(always)]
    pub(crate) fn depthwise(&self, conv: &DepthwiseConv2d, rows: Range<usize>, output: &mut [i8]) {
        let (w, taps) = (&conv.window, conv.window.taps());
        let multiplier = conv.multiplier.max(1);
        let pixels = output.chunks_exact_mut((conv.channels * multiplier).max(1));
        let positions = rows.flat_map(|oh| (0..w.out_w).map(move |ow| (oh, ow)));
        for ((oh, ow), pixel) in positions.zip(pixels) {
            let is = taps_inside(oh, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
            let js = taps_inside(ow, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
            let channels = pixel.iter_mut().zip(self.bias).zip(self.multipliers).enumerate();
            for (o, ((y, &bias), &factor)) in channels {
                let filter = self.weights.get(o * taps..(o + 1) * taps).unwrap_or(&[]);
                let c = if multiplier == 1 { o } else { o / multiplier };
                let mut sum = bias;
                for i in is.clone() {
                    let ih = oh * w.stride_h + i * w.dilation_h - w.pad_top;
                    let weights = filter.get(i * w.kernel_w..).unwrap_or(&[]);
                    let weights = weights.get(js.clone()).unwrap_or(&[]);
                    let iw = (ow * w.stride_w + js.start * w.dilation_w).saturating_sub(w.pad_left);
                    let at = (ih * w.in_w + iw) * conv.channels + c;
                    let x = self.input.get(at..).unwrap_or(&[]);
                    let x = x.iter().step_by((conv.channels * w.dilation_w).max(1));
                    for (&x, &weight) in x.zip(weights) {
                        let x = i32::from(x).wrapping_sub(self.input_zero_point);
                        sum = sum.wrapping_add(x.wrapping_mul(i32::from(weight)));
                    }
                }
                *y = requantize(sum, factor, self.stage);
            }
        }
    }
}
