//! The oracle: operators straight from their definitions, in `f64`, one loop a dimension, never tuned.
//!
//! Tests compare every kernel with these; programs should call the doors. A slice that is too short
//! panics.

#![allow(clippy::needless_range_loop, reason = "indices as in the formulas")]

mod conv2d;
mod convolution_s8;
mod dense;
mod elementwise;
mod elementwise_s8;
mod max_pooled;
mod move_data;
mod norm;
mod pool2d;
mod pool2d_s8;

pub use conv2d::{conv2d_f32, depthwise_conv2d_f32};
pub use convolution_s8::{LayerS8, conv2d_s8, dense_s8, depthwise_conv2d_s8};
pub use dense::dense_f32;
pub use elementwise::{activation, activation_f32, add_f32, batch_norm_f32};
pub use elementwise_s8::{add_s8, softmax_s8};
pub use max_pooled::{
    conv2d_max_pool2d_f32, conv2d_max_pool2d_s8, depthwise_conv2d_max_pool2d_f32,
    depthwise_conv2d_max_pool2d_s8,
};
pub use move_data::{concat, upsample2x};
pub use norm::{global_response_norm_f32, layer_norm_f32, softmax_f32};
pub use pool2d::{average_pool2d_f32, max_pool2d_f32};
pub use pool2d_s8::{average_pool2d_s8, max_pool2d_s8};
