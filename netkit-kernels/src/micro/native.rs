//! The kernels of the processor that is compiled for, and the textbook where they decline.

#[cfg(not(netkit_mve))]
use super as layers;
use super::textbook::{Shape, Textbook};
#[cfg(netkit_mve)]
use super::vector as layers;
use crate::generic::conv2d_s8::Conv2dS8;
use crate::generic::dense_s8::DenseS8;
use crate::generic::depthwise_conv2d_s8::DepthwiseConv2dS8;
use crate::reference::LayerS8;

pub(crate) use super::max_pool2d_s8::max_pool2d_s8;
pub(crate) use layers::conv2d_s8::scratch as conv2d_s8_scratch;
pub(crate) use layers::depthwise_conv2d_s8::scratch as depthwise_conv2d_s8_scratch;

#[cfg(netkit_dsp)]
type Native = crate::arch::arm::dsp::Dsp;
#[cfg(netkit_thumb2)]
type Native = crate::arch::arm::thumb2::Thumb2;
#[cfg(netkit_thumb1)]
type Native = super::plain::Plain<2, crate::arch::arm::thumb1::Thumb1>;
#[cfg(netkit_rv32m)]
type Native = super::plain::Plain<4, crate::arch::riscv32::Rv32>;
#[cfg(not(any(netkit_mve, netkit_dsp, netkit_thumb2, netkit_thumb1, netkit_rv32m)))]
type Native = super::plain::Plain<2>;

/// Computes a convolution.
#[inline]
pub(crate) fn conv2d_s8(mut call: Conv2dS8<'_>, weights: &[i8]) {
    #[cfg(netkit_mve)]
    let done = layers::conv2d_s8::conv2d_s8(&mut call, weights);
    #[cfg(not(netkit_mve))]
    let done = layers::conv2d_s8::conv2d_s8::<Native>(&mut call, weights);
    if !done {
        let textbook = Textbook {
            shape: Shape::conv2d(&call.conv),
            input: call.input,
            weights,
            layer: LayerS8 {
                input_zero_point: call.input_zero_point,
                bias: call.bias,
                multipliers: call.multipliers,
                stage: call.stage,
            },
        };
        textbook.compute(call.rows.start, call.output);
    }
}

/// Computes a dense layer.
#[inline]
pub(crate) fn dense_s8(mut call: DenseS8<'_>, weights: &[i8]) {
    #[cfg(netkit_mve)]
    let done = layers::dense_s8::dense_s8(&mut call, weights);
    #[cfg(not(netkit_mve))]
    let done = layers::dense_s8::dense_s8::<Native>(&mut call, weights);
    if !done {
        let textbook = Textbook {
            shape: Shape::dense(&call.dense),
            input: call.input,
            weights,
            layer: LayerS8 {
                input_zero_point: call.input_zero_point,
                bias: call.bias,
                multipliers: call.multipliers,
                stage: call.stage,
            },
        };
        textbook.compute(0, call.output);
    }
}

/// Computes a depthwise convolution.
#[inline]
pub(crate) fn depthwise_conv2d_s8(mut call: DepthwiseConv2dS8<'_>, weights: &[i8]) {
    #[cfg(netkit_mve)]
    let done = layers::depthwise_conv2d_s8::depthwise_conv2d_s8(&mut call, weights);
    #[cfg(not(netkit_mve))]
    let done = layers::depthwise_conv2d_s8::depthwise_conv2d_s8::<Native>(&mut call, weights);
    if !done {
        let textbook = Textbook {
            shape: Shape::depthwise(&call.conv),
            input: call.input,
            weights,
            layer: LayerS8 {
                input_zero_point: call.input_zero_point,
                bias: call.bias,
                multipliers: call.multipliers,
                stage: call.stage,
            },
        };
        textbook.compute(call.rows.start, call.output);
    }
}
