//! The doors as functions, on the kernels of this machine.

use crate::dispatch::Kernels;
use crate::filter::Filter;
use core::ops::Range;
use netkit_core::op::{Activation, Conv2d, Dense, DepthwiseConv2d, PerChannel, Pool2d};

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
    depthwise_conv2d_f32(
        conv: &DepthwiseConv2d, input: &[f32], filter: Filter<'_>, bias: &[f32],
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
}
