//! Depthwise convolution, vectors along the channels.

use super::activation::{apply_simple, is_simple};
use super::direct_f32::DirectDepthwiseConv2dF32;
use super::elementwise_f32::ActivationInPlaceF32;
use super::window::taps_inside;
use crate::arch::depthwise_f32::DepthwiseRowsF32;
use crate::arch::transpose::PackTapsF32;
use crate::filter::Filter;
use crate::simd::{Kernel, Simd};
use crate::workspace::DEPTHWISE_BLOCK;
use core::ops::Range;
use netkit_core::op::{Activation, DepthwiseConv2d};

/// Output rows `rows` of a depthwise convolution.
pub(crate) struct DepthwiseConv2dF32<'a> {
    pub(crate) conv: DepthwiseConv2d,
    pub(crate) input: &'a [f32],
    pub(crate) filter: Filter<'a>,
    pub(crate) bias: &'a [f32],
    pub(crate) activation: Activation,
    pub(crate) rows: Range<usize>,
    pub(crate) output: &'a mut [f32],
    pub(crate) scratch: &'a mut [f32],
}

impl Kernel for DepthwiseConv2dF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let direct = self.conv.multiplier != 1
            || (S::READS_FILE_ORDER && matches!(self.filter, Filter::File { .. }));
        if direct {
            let (weights, taps_first, scale) = match self.filter {
                Filter::File { values, scale } => (values, false, scale),
                #[cfg(not(netkit_micro))]
                Filter::Packed(values) => (values, true, None),
            };
            let direct = DirectDepthwiseConv2dF32 {
                conv: self.conv,
                input: self.input,
                weights,
                taps_first,
                scale,
                bias: self.bias,
                activation: self.activation,
                rows: self.rows,
                output: self.output,
            };
            return direct.run(simd);
        }
        let channels = self.conv.channels;
        match self.filter {
            #[cfg(not(netkit_micro))]
            Filter::Packed(values) => {
                for block in blocks(channels, block_channels(&self.conv.window)) {
                    let weights = values.get(block.start..).unwrap_or(&[]);
                    self.block(simd, weights, channels, block);
                }
            }
            Filter::File { values, scale } => {
                let taps = self.conv.window.taps();
                let scratch = core::mem::take(&mut self.scratch);
                for block in blocks(channels, DEPTHWISE_BLOCK) {
                    let Some(packed) = scratch.get_mut(..taps * block.len()) else { return };
                    simd.call(PackTapsF32 {
                        taps,
                        channels: block.clone(),
                        weights: values,
                        scale,
                        packed: &mut *packed,
                    });
                    self.block(simd, packed, block.len(), block);
                }
            }
        }
        if !is_simple(self.activation) {
            simd.call(ActivationInPlaceF32 { activation: self.activation, data: self.output });
        }
    }
}

/// `0..channels` in blocks of a size; the last may be longer, but for a whole vector's sake not shorter.
fn blocks(channels: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    let count = (channels / size).max(1);
    (0..count).map(move |i| i * size..if i + 1 == count { channels } else { (i + 1) * size })
}

/// Channels whose input rows under one row of windows stay in the first-level cache.
#[cfg(not(netkit_micro))]
fn block_channels(window: &netkit_core::op::Window) -> usize {
    use netkit_core::pack::PANEL;
    const BYTES: usize = 24 * 1024;
    let bytes_a_channel = window.kernel_h.saturating_mul(window.in_w).saturating_mul(4);
    let affordable = BYTES.checked_div(bytes_a_channel).unwrap_or(0);
    (affordable / PANEL * PANEL).max(PANEL)
}

impl DepthwiseConv2dF32<'_> {
    /// Channels `block`, whose weights are `[taps][pitch]`, without activations that are not simple.
    #[inline(always)]
    fn block<S: Simd>(&mut self, simd: S, weights: &[f32], pitch: usize, block: Range<usize>) {
        let w = &self.conv.window;
        macro_rules! tiles {
            ($width:literal, $stride:literal) => {
                simd.call(DepthwiseRowsF32::<'_, $width, $stride> {
                    window: w,
                    input: self.input,
                    channels: self.conv.channels,
                    bias: self.bias.get(block.clone()).unwrap_or(&[]),
                    block,
                    weights,
                    weight_pitch: pitch,
                    activation: self.activation,
                    rows: self.rows.clone(),
                    output: self.output,
                })
            };
        }
        let tiled = block.len() >= S::LANES && w.dilation_w == 1;
        match (w.kernel_w, w.stride_w) {
            (3, 1) if tiled => tiles!(3, 1),
            (3, 2) if tiled => tiles!(3, 2),
            (5, 1) if tiled => tiles!(5, 1),
            (5, 2) if tiled => tiles!(5, 2),
            (7, 1) if tiled => tiles!(7, 1),
            _ => self.any_window(simd, weights, pitch, block),
        }
    }

    /// As [`block`](Self::block), any window and any number of channels.
    #[inline(always)]
    fn any_window<S: Simd>(&mut self, simd: S, weights: &[f32], pitch: usize, block: Range<usize>) {
        let (w, channels) = (&self.conv.window, self.conv.channels.max(1));
        let row_len = (w.out_w * channels).max(1);
        let bias = self.bias.get(block.clone()).unwrap_or(&[]);
        for (oh, row) in self.rows.clone().zip(self.output.chunks_exact_mut(row_len)) {
            let is = taps_inside(oh, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
            for (ow, pixel) in row.chunks_exact_mut(channels).enumerate() {
                let js = taps_inside(ow, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
                let pixel = pixel.get_mut(block.clone()).unwrap_or(&mut []);
                let outputs = pixel.chunks_mut(S::LANES).zip(bias.chunks(S::LANES));
                for (vector, (y, bias)) in outputs.enumerate() {
                    let lane = vector * S::LANES;
                    let mut sum = simd.add(simd.load(bias), simd.splat(0.0));
                    for i in is.clone() {
                        let ih = oh * w.stride_h + i * w.dilation_h - w.pad_top;
                        for j in js.clone() {
                            let iw = ow * w.stride_w + j * w.dilation_w - w.pad_left;
                            let start = (ih * w.in_w + iw) * channels + block.start + lane;
                            let x = self.input.get(start..start + y.len()).unwrap_or(&[]);
                            let tap = (i * w.kernel_w + j) * pitch + lane;
                            let weight = weights.get(tap..tap + y.len()).unwrap_or(&[]);
                            sum = simd.mul_add(simd.load(x), simd.load(weight), sum);
                        }
                    }
                    simd.store(y, apply_simple(simd, self.activation, sum));
                }
            }
        }
    }
}
