//! Convolutions whose map is pooled: one after the other, the map in memory that the caller lends.

use super::{
    LayerS8, conv2d_f32, conv2d_s8, depthwise_conv2d_f32, depthwise_conv2d_s8, max_pool2d_f32,
    max_pool2d_s8,
};
use netkit_core::op::{Activation, Conv2d, DepthwiseConv2d, Pool2d};

/// [`conv2d_f32`] without a residual into `map`, then [`max_pool2d_f32`].
#[allow(clippy::too_many_arguments, reason = "those of both")]
pub fn conv2d_max_pool2d_f32(
    conv: &Conv2d,
    pool: &Pool2d,
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
    function: Activation,
    map: &mut [f32],
    output: &mut [f32],
) {
    conv2d_f32(conv, input, weights, bias, None, function, map);
    max_pool2d_f32(pool, map, output);
}

/// [`depthwise_conv2d_f32`] into `map`, then [`max_pool2d_f32`].
#[allow(clippy::too_many_arguments, reason = "those of both")]
pub fn depthwise_conv2d_max_pool2d_f32(
    conv: &DepthwiseConv2d,
    pool: &Pool2d,
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
    function: Activation,
    map: &mut [f32],
    output: &mut [f32],
) {
    depthwise_conv2d_f32(conv, input, weights, bias, function, map);
    max_pool2d_f32(pool, map, output);
}

/// [`conv2d_s8`] into `map`, then [`max_pool2d_s8`].
pub fn conv2d_max_pool2d_s8(
    conv: &Conv2d,
    pool: &Pool2d,
    input: &[i8],
    weights: &[i8],
    layer: LayerS8<'_>,
    map: &mut [i8],
    output: &mut [i8],
) {
    conv2d_s8(conv, input, weights, layer, map);
    max_pool2d_s8(pool, map, output);
}

/// [`depthwise_conv2d_s8`] into `map`, then [`max_pool2d_s8`].
pub fn depthwise_conv2d_max_pool2d_s8(
    conv: &DepthwiseConv2d,
    pool: &Pool2d,
    input: &[i8],
    weights: &[i8],
    layer: LayerS8<'_>,
    map: &mut [i8],
    output: &mut [i8],
) {
    depthwise_conv2d_s8(conv, input, weights, layer, map);
    max_pool2d_s8(pool, map, output);
}
