//! Every kernel against the reference, on every instruction set this machine has.

mod activation_f32;
mod conv2d_f32;
mod conv2d_s8;
mod conv2d_winograd_f32;
mod dense_f32;
mod dense_s8;
mod depthwise_conv2d_f32;
mod depthwise_conv2d_s8;
mod edge_numbers;
mod elementwise_f32;
mod elementwise_s8;
mod guard_pages;
mod harness;
mod max_pooled;
mod move_data;
mod norm_f32;
mod parallel;
mod pool2d_f32;
mod pool2d_s8;
mod present;
mod sanitizer;
mod sound;
mod tails;
