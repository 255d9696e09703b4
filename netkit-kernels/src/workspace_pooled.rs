//! Scratch memory of the doors that pool as they compute, published by [`workspace`](crate::workspace).

use crate::filter::FilterForm;
use crate::workspace::{self, PACKS, even_rows};
use crate::workspace_s8::max_pooled_conv2d_s8;
use netkit_core::op::{Conv2d, DepthwiseConv2d, Pool2d};
use netkit_core::pack::PANEL;

/// How a map that is pooled as it is computed is cut into bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BandPlan {
    /// Rows of the pool's output that a band gives.
    pub(crate) rows: usize,
    /// Elements of a band.
    pub(crate) len: usize,
}

/// Bytes of a band that gives more than one row.
///
/// Where memory is scarce a band is as low as can be. Elsewhere it stays in a first-level cache, but where every band
/// means packing the weights again, it is large enough for that to be little beside the products.
const fn band_bytes(form: FilterForm) -> usize {
    match form {
        _ if !PACKS => 0,
        FilterForm::File => 128 * 1024,
        FilterForm::Packed => 16 * 1024,
    }
}

/// The bands of a map of `channels` channels of which `room` elements fit.
const fn band_plan(pool: &Pool2d, channels: usize, room: usize) -> BandPlan {
    let w = &pool.window;
    let row_len = w.in_w.saturating_mul(channels);
    let affordable = match room.checked_div(row_len) {
        Some(rows) => rows,
        None => 0,
    };
    let more = match affordable.saturating_sub(w.span().0).checked_div(w.stride_h) {
        Some(more) => more,
        None => 0,
    };
    let rows = even_rows(w.out_h, more.saturating_add(1));
    let read = w.rows_read(rows);
    let read = if read < w.in_h { read } else { w.in_h };
    BandPlan { rows, len: read.saturating_mul(row_len) }
}

/// The bands of an int8 map.
pub(crate) const fn band_plan_s8(pool: &Pool2d, form: FilterForm) -> BandPlan {
    band_plan(pool, pool.channels, band_bytes(form))
}

/// The bands of an int8 convolution's map: low where they are an exception.
pub(crate) const fn conv2d_band_plan_s8(pool: &Pool2d, form: FilterForm) -> BandPlan {
    let bytes = if pools_sums(pool) { 0 } else { band_bytes(form) };
    band_plan(pool, pool.channels, bytes)
}

/// Pixels of the largest window whose sums are pooled.
pub(crate) const LARGEST_POOL: usize = 16;

/// Whether a pool's windows lie side by side and inside the map, so that each sum is under one of them, and are so small
/// that the sums under several wait together.
pub(crate) const fn pools_sums(pool: &Pool2d) -> bool {
    const fn tiles(input: usize, output: usize, kernel: usize, stride: usize) -> bool {
        (kernel == stride || output == 1) && output.saturating_mul(kernel) <= input
    }
    let w = &pool.window;
    w.pad_top == 0
        && w.pad_left == 0
        && w.dilation_h == 1
        && w.dilation_w == 1
        && w.kernel_h.saturating_mul(w.kernel_w) <= LARGEST_POOL
        && tiles(w.in_h, w.out_h, w.kernel_h, w.stride_h)
        && tiles(w.in_w, w.out_w, w.kernel_w, w.stride_w)
}

/// The bands of a float map, `channels` of its channels at a time.
pub(crate) const fn band_plan_f32(pool: &Pool2d, channels: usize, form: FilterForm) -> BandPlan {
    band_plan(pool, channels, band_bytes(form) / 4)
}

/// Channels of a convolution that are pooled together, and the bands of their map.
pub(crate) const fn conv2d_band_plan_f32(
    conv: &Conv2d,
    pool: &Pool2d,
    form: FilterForm,
) -> (usize, BandPlan) {
    const AT_ONCE: usize = PANEL * workspace::PANELS_AT_ONCE;
    let all = if conv.out_channels == 0 { 1 } else { conv.out_channels };
    let group = if PACKS && AT_ONCE < all { AT_ONCE } else { all };
    (group, band_plan_f32(pool, group, form))
}

/// Scratch of [`conv2d_max_pool2d_f32`](crate::Kernels::conv2d_max_pool2d_f32).
#[must_use]
pub const fn conv2d_max_pool2d_f32(conv: &Conv2d, pool: &Pool2d, form: FilterForm) -> usize {
    let (group, plan) = conv2d_band_plan_f32(conv, pool, form);
    let some = Conv2d { out_channels: group, ..*conv };
    workspace::conv2d_f32(&some, form).saturating_add(plan.len.saturating_mul(4))
}

/// Scratch of [`depthwise_conv2d_max_pool2d_f32`](crate::Kernels::depthwise_conv2d_max_pool2d_f32).
#[must_use]
pub const fn depthwise_conv2d_max_pool2d_f32(
    conv: &DepthwiseConv2d,
    pool: &Pool2d,
    form: FilterForm,
) -> usize {
    let plan = band_plan_f32(pool, pool.channels, form);
    workspace::depthwise_conv2d_f32(conv, form).saturating_add(plan.len.saturating_mul(4))
}

/// Scratch of [`conv2d_max_pool2d_s8`](crate::Kernels::conv2d_max_pool2d_s8).
#[must_use]
pub const fn conv2d_max_pool2d_s8(conv: &Conv2d, pool: &Pool2d, form: FilterForm) -> usize {
    let bands =
        workspace::conv2d_s8(conv, form).saturating_add(conv2d_band_plan_s8(pool, form).len);
    let sums = if pools_sums(pool) { max_pooled_conv2d_s8(conv, pool, form) } else { 0 };
    if bands < sums { sums } else { bands }
}

/// Scratch of [`depthwise_conv2d_max_pool2d_s8`](crate::Kernels::depthwise_conv2d_max_pool2d_s8).
#[must_use]
pub const fn depthwise_conv2d_max_pool2d_s8(
    conv: &DepthwiseConv2d,
    pool: &Pool2d,
    form: FilterForm,
) -> usize {
    workspace::depthwise_conv2d_s8(conv, form).saturating_add(band_plan_s8(pool, form).len)
}
