//! Kernels written once over [`Simd`](crate::simd::Simd), in safe code that has no panic path: slices
//! are taken with `get`, and what does not fit is left undone. The doors have checked that all fits.

pub(crate) mod activation;
pub(crate) mod average_pool2d_f32;
pub(crate) mod average_pool2d_s8;
pub(crate) mod block_s8;
pub(crate) mod conv2d_f32;
pub(crate) mod conv2d_s8;
pub(crate) mod dense_f32;
#[cfg(not(netkit_micro))]
pub(crate) mod dense_rows_f32;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod dense_rows_s8;
pub(crate) mod dense_s8;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod depthwise_blocks_s8;
pub(crate) mod depthwise_conv2d_f32;
pub(crate) mod depthwise_conv2d_s8;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod depthwise_pairs_s8;
pub(crate) mod direct_f32;
#[cfg(not(netkit_micro))]
pub(crate) mod direct_s8;
pub(crate) mod elementwise_f32;
pub(crate) mod elementwise_s8;
pub(crate) mod max_pool2d_f32;
pub(crate) mod max_pool2d_s8;
#[cfg(not(netkit_micro))]
pub(crate) mod max_pooled_s8;
pub(crate) mod norm_f32;
pub(crate) mod softmax_f32;
pub(crate) mod softmax_s8;
pub(crate) mod window;
pub(crate) mod winograd_f32;
