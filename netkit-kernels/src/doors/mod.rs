//! The doors: the only way to a kernel. Each checks the lengths of its slices once.

mod bands;
mod check;
mod conv2d_f32;
mod conv2d_s8;
mod conv2d_winograd_f32;
mod dense_f32;
mod dense_s8;
mod depthwise_conv2d_f32;
mod depthwise_conv2d_s8;
mod elementwise_f32;
mod elementwise_s8;
mod max_pooled_f32;
mod max_pooled_s8;
mod move_data;
mod native;
mod norm_f32;
mod pool2d_f32;
mod pool2d_s8;
mod probe;

#[cfg(any(test, all(netkit_micro, not(netkit_mve))))]
pub(crate) use check::window_is_sane;
pub use native::*;
