//! Convolution and depthwise convolution.

use super::activation;
use netkit_core::op::{Activation, Conv2d, DepthwiseConv2d, Window};

/// The input pixel under a tap, or `None` in the padding.
pub(super) fn pixel_under(
    w: &Window,
    (oh, ow): (usize, usize),
    (i, j): (usize, usize),
) -> Option<usize> {
    let ih = (oh * w.stride_h + i * w.dilation_h).checked_sub(w.pad_top)?;
    let iw = (ow * w.stride_w + j * w.dilation_w).checked_sub(w.pad_left)?;
    (ih < w.in_h && iw < w.in_w).then_some(ih * w.in_w + iw)
}

/// `activation(conv(input) + bias + residual)`; `weights` are `[out, kernel_h, kernel_w, in]`.
pub fn conv2d_f32(
    conv: &Conv2d,
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
    residual: Option<&[f32]>,
    function: Activation,
    output: &mut [f32],
) {
    let w = &conv.window;
    for oh in 0..w.out_h {
        for ow in 0..w.out_w {
            for o in 0..conv.out_channels {
                let mut sum = f64::from(bias[o]);
                for i in 0..w.kernel_h {
                    for j in 0..w.kernel_w {
                        let Some(pixel) = pixel_under(w, (oh, ow), (i, j)) else { continue };
                        for c in 0..conv.in_channels {
                            let tap =
                                ((o * w.kernel_h + i) * w.kernel_w + j) * conv.in_channels + c;
                            sum += f64::from(weights[tap])
                                * f64::from(input[pixel * conv.in_channels + c]);
                        }
                    }
                }
                let at = (oh * w.out_w + ow) * conv.out_channels + o;
                if let Some(residual) = residual {
                    sum += f64::from(residual[at]);
                }
                output[at] = activation(function, sum) as f32;
            }
        }
    }
}

/// `activation(depthwise(input) + bias)`; `weights` are `[channels · multiplier, kernel_h, kernel_w]`.
pub fn depthwise_conv2d_f32(
    conv: &DepthwiseConv2d,
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
    function: Activation,
    output: &mut [f32],
) {
    let w = &conv.window;
    let outputs = conv.channels * conv.multiplier;
    for oh in 0..w.out_h {
        for ow in 0..w.out_w {
            for o in 0..outputs {
                let mut sum = f64::from(bias[o]);
                for i in 0..w.kernel_h {
                    for j in 0..w.kernel_w {
                        let Some(pixel) = pixel_under(w, (oh, ow), (i, j)) else { continue };
                        sum += f64::from(weights[(o * w.kernel_h + i) * w.kernel_w + j])
                            * f64::from(input[pixel * conv.channels + o / conv.multiplier]);
                    }
                }
                output[(oh * w.out_w + ow) * outputs + o] = activation(function, sum) as f32;
            }
        }
    }
}
