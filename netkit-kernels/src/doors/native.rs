//! The doors as functions, on the kernels of this machine.

use crate::dispatch::Kernels;
use crate::filter::Filter;
use crate::filter_s8::FilterS8;
use core::ops::Range;
use netkit_core::op::{Activation, Conv2d, Dense, DepthwiseConv2d, PerChannel, Pool2d};
use netkit_core::quant::{AddStage, Multiplier, OutputStage, SoftmaxStage};

pub use super::move_data::{concat, copy, upsample2x};

/// Declares functions that call the method of the same name on [`Kernels::native`].
macro_rules! native {
    ($($name:ident($($argument:ident: $type:ty),+);)+) => {$(
        #[doc = concat!("[`Kernels::", stringify!($name), "`] on [`Kernels::native`].")]
        #[inline]
        #[allow(clippy::too_many_arguments, reason = "those of the method")]
        pub fn $name($($argument: $type),+) {
            Kernels::native().$name($($argument),+);
        }
    )+};
}

native! {
    conv2d_f32(
        conv: &Conv2d, input: &[f32], filter: Filter<'_>, bias: &[f32], residual: Option<&[f32]>,
        activation: Activation, rows: Range<usize>, output: &mut [f32], scratch: &mut [u8]
    );
    conv2d_max_pool2d_f32(
        conv: &Conv2d, pool: &Pool2d, input: &[f32], filter: Filter<'_>, bias: &[f32],
        activation: Activation, rows: Range<usize>, output: &mut [f32], scratch: &mut [u8]
    );
    conv2d_winograd_f32(
        conv: &Conv2d, input: &[f32], filter: &[f32], bias: &[f32], residual: Option<&[f32]>,
        activation: Activation, rows: Range<usize>, output: &mut [f32], scratch: &mut [u8]
    );
    depthwise_conv2d_f32(
        conv: &DepthwiseConv2d, input: &[f32], filter: Filter<'_>, bias: &[f32],
        activation: Activation, rows: Range<usize>, output: &mut [f32], scratch: &mut [u8]
    );
    depthwise_conv2d_max_pool2d_f32(
        conv: &DepthwiseConv2d, pool: &Pool2d, input: &[f32], filter: Filter<'_>, bias: &[f32],
        activation: Activation, rows: Range<usize>, output: &mut [f32], scratch: &mut [u8]
    );
    dense_f32(
        dense: &Dense, input: &[f32], filter: Filter<'_>, bias: &[f32], activation: Activation,
        output: &mut [f32]
    );
    max_pool2d_f32(pool: &Pool2d, input: &[f32], rows: Range<usize>, output: &mut [f32]);
    average_pool2d_f32(pool: &Pool2d, input: &[f32], rows: Range<usize>, output: &mut [f32]);
    batch_norm_f32(
        shape: &PerChannel, input: &[f32], scale: &[f32], shift: &[f32], activation: Activation,
        output: &mut [f32]
    );
    layer_norm_f32(
        shape: &PerChannel, epsilon: f32, input: &[f32], gamma: &[f32], beta: &[f32],
        output: &mut [f32]
    );
    global_response_norm_f32(
        shape: &PerChannel, epsilon: f32, input: &[f32], gamma: &[f32], beta: &[f32],
        output: &mut [f32], scratch: &mut [u8]
    );
    softmax_f32(input: &[f32], output: &mut [f32]);
    activation_f32(activation: Activation, input: &[f32], output: &mut [f32]);
    add_f32(a: &[f32], b: &[f32], activation: Activation, output: &mut [f32]);
    conv2d_s8(
        conv: &Conv2d, input: &[i8], input_zero_point: i32, filter: FilterS8<'_>, bias: &[i32],
        multipliers: &[Multiplier], stage: OutputStage, rows: Range<usize>, output: &mut [i8],
        scratch: &mut [u8]
    );
    conv2d_max_pool2d_s8(
        conv: &Conv2d, pool: &Pool2d, input: &[i8], input_zero_point: i32, filter: FilterS8<'_>,
        bias: &[i32], multipliers: &[Multiplier], stage: OutputStage, rows: Range<usize>,
        output: &mut [i8], scratch: &mut [u8]
    );
    depthwise_conv2d_s8(
        conv: &DepthwiseConv2d, input: &[i8], input_zero_point: i32, filter: FilterS8<'_>,
        bias: &[i32], multipliers: &[Multiplier], stage: OutputStage, rows: Range<usize>,
        output: &mut [i8], scratch: &mut [u8]
    );
    depthwise_conv2d_max_pool2d_s8(
        conv: &DepthwiseConv2d, pool: &Pool2d, input: &[i8], input_zero_point: i32,
        filter: FilterS8<'_>, bias: &[i32], multipliers: &[Multiplier], stage: OutputStage,
        rows: Range<usize>, output: &mut [i8], scratch: &mut [u8]
    );
    dense_s8(
        dense: &Dense, input: &[i8], input_zero_point: i32, filter: FilterS8<'_>, bias: &[i32],
        multipliers: &[Multiplier], stage: OutputStage, output: &mut [i8], scratch: &mut [u8]
    );
    max_pool2d_s8(pool: &Pool2d, input: &[i8], rows: Range<usize>, output: &mut [i8]);
    average_pool2d_s8(pool: &Pool2d, input: &[i8], rows: Range<usize>, output: &mut [i8]);
    add_s8(stage: &AddStage, left: &[i8], right: &[i8], output: &mut [i8]);
    softmax_s8(stage: &SoftmaxStage, input: &[i8], output: &mut [i8]);
}
