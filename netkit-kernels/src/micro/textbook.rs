//! Layers that the faster kernels decline, in little code: few channels or taps, several outputs for each input channel.

use crate::generic::window::taps_inside;
use crate::reference::LayerS8;
use netkit_core::op::{Conv2d, Dense, DepthwiseConv2d, Window};
use netkit_core::quant::requantize;

/// A layer that is some kind of convolution.
pub(super) struct Textbook<'a> {
    pub(super) shape: Shape,
    pub(super) input: &'a [i8],
    pub(super) weights: &'a [i8],
    pub(super) layer: LayerS8<'a>,
}

/// Which inputs an output sums over.
pub(super) struct Shape {
    window: Window,
    in_channels: usize,
    /// Input channels that an output channel sums over.
    depth: usize,
    /// Output channels that begin with the same input channel: all, if each sums over all input channels.
    group: usize,
}

impl Shape {
    pub(super) fn conv2d(conv: &Conv2d) -> Self {
        let Conv2d { window, in_channels, out_channels } = *conv;
        Self { window, in_channels, depth: in_channels, group: out_channels }
    }

    pub(super) fn depthwise(conv: &DepthwiseConv2d) -> Self {
        let DepthwiseConv2d { window, channels, multiplier } = *conv;
        Self { window, in_channels: channels, depth: 1, group: multiplier }
    }

    /// A dense layer is a convolution of a map of one column.
    pub(super) fn dense(dense: &Dense) -> Self {
        let Dense { rows, in_features, out_features } = *dense;
        let window = Window {
            in_h: rows,
            in_w: 1,
            out_h: rows,
            out_w: 1,
            kernel_h: 1,
            kernel_w: 1,
            stride_h: 1,
            stride_w: 1,
            dilation_h: 1,
            dilation_w: 1,
            pad_top: 0,
            pad_left: 0,
        };
        Self { window, in_channels: in_features, depth: in_features, group: out_features }
    }
}

/// The taps of a window on one axis that lie inside the map.
struct Inside {
    first: usize,
    count: usize,
    /// Where the first lies in the map.
    position: usize,
}

/// The taps inside: a function of its own, lest the code be there twice.
#[inline(never)]
fn inside(
    output: usize,
    input: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    pad: usize,
) -> Inside {
    let taps = taps_inside(output, input, kernel, stride, dilation, pad);
    let position = (output * stride + taps.start * dilation).wrapping_sub(pad);
    Inside { first: taps.start, count: taps.len(), position }
}

impl Textbook<'_> {
    /// Output rows from `first` on.
    #[cold]
    #[inline(never)]
    pub(super) fn compute(&self, first: usize, output: &mut [i8]) {
        let Shape { window: w, in_channels, depth, group } = &self.shape;
        let LayerS8 { input_zero_point, bias, multipliers, stage } = self.layer;
        let width = w.out_w.max(1);
        let row_step = w.dilation_h * w.in_w * in_channels;
        let tap_step = w.dilation_w * in_channels;
        for (pixel, output) in output.chunks_exact_mut(bias.len().max(1)).enumerate() {
            let (y, x) = (first + pixel / width, pixel % width);
            let rows = inside(y, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
            let columns = inside(x, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
            let corner = (rows.position.wrapping_mul(w.in_w).wrapping_add(columns.position))
                .wrapping_mul(*in_channels);
            // Taps of one value each are a run; of several, each is.
            let (runs, len, stride) = match depth {
                1 => (1, columns.count, tap_step),
                _ => (columns.count, *depth, 1),
            };
            let skipped = rows.first * w.kernel_w + columns.first;
            let channels = output.iter_mut().zip(bias).zip(multipliers).enumerate();
            for (channel, ((output, &bias), &multiplier)) in channels {
                let mut sum = bias;
                let mut row = corner.wrapping_add(channel / (*group).max(1));
                let mut weight = (channel * w.taps() + skipped) * depth;
                for _ in 0..rows.count {
                    let mut run = row;
                    let mut weights = self.weights.get(weight..).unwrap_or(&[]).iter();
                    for _ in 0..runs {
                        let mut from = run;
                        for &w in weights.by_ref().take(len) {
                            let x = self
                                .input
                                .get(from)
                                .map_or(0, |&x| i32::from(x) - input_zero_point);
                            sum = sum.wrapping_add(x * i32::from(w));
                            from = from.wrapping_add(stride);
                        }
                        run = run.wrapping_add(tap_step);
                    }
                    row = row.wrapping_add(row_step);
                    weight += w.kernel_w * depth;
                }
                *output = requantize(sum, multiplier, stage);
            }
        }
    }
}
