//! Layers that the faster kernels decline, in as little code as does: every tap is asked whether it is inside.

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

impl Textbook<'_> {
    /// Output rows from `first` on.
    #[cold]
    #[inline(never)]
    pub(super) fn compute(&self, first: usize, output: &mut [i8]) {
        let Shape { window: w, in_channels, depth, group } = &self.shape;
        let LayerS8 { input_zero_point, bias, multipliers, stage } = self.layer;
        let width = w.out_w.max(1);
        for (pixel, output) in output.chunks_exact_mut(bias.len().max(1)).enumerate() {
            let top = ((first + pixel / width) * w.stride_h).wrapping_sub(w.pad_top);
            let left = (pixel % width * w.stride_w).wrapping_sub(w.pad_left);
            let channels = output.iter_mut().zip(bias).zip(multipliers).enumerate();
            for (channel, ((output, &bias), &multiplier)) in channels {
                let mut sum = bias;
                let mut weight = channel * w.taps() * depth;
                for i in 0..w.kernel_h {
                    let y = top.wrapping_add(i * w.dilation_h);
                    for j in 0..w.kernel_w {
                        let x = left.wrapping_add(j * w.dilation_w);
                        if y < w.in_h && x < w.in_w {
                            let from = (y * w.in_w + x) * in_channels + channel / (*group).max(1);
                            let inputs = self.input.get(from..).unwrap_or(&[]);
                            let weights = self.weights.get(weight..).unwrap_or(&[]);
                            for (&x, &w) in inputs.iter().zip(weights).take(*depth) {
                                let x = i32::from(x) - input_zero_point;
                                sum = sum.wrapping_add(x * i32::from(w));
                            }
                        }
                        weight += depth;
                    }
                }
                *output = requantize(sum, multiplier, stage);
            }
        }
    }
}
