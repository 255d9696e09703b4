//! Scratch memory of each door, in bytes, on the target being compiled.
//!
//! These are `const`, so that generated code sizes its arena with them, and the interpreter calls the
//! same functions. Where the instruction set is chosen at run time the answer serves every one. A door
//! takes scratch of at least this size, aligned to [`ALIGNMENT`]; a door that is not here needs none.

use crate::filter::FilterForm;
use netkit_core::op::{Conv2d, DepthwiseConv2d, PerChannel};
use netkit_core::pack::{PANEL, WINOGRAD_POSITIONS, WINOGRAD_TILE};

#[cfg(feature = "cmsis-nn")]
pub use crate::cmsis_nn::workspace::{conv2d_s8, dense_s8, depthwise_conv2d_s8};
#[cfg(not(netkit_micro))]
pub(crate) use crate::workspace_pooled::{LARGEST_POOL, pools_sums};
pub(crate) use crate::workspace_pooled::{
    band_plan_f32, band_plan_s8, conv2d_band_plan_f32, conv2d_band_plan_s8,
};
pub use crate::workspace_pooled::{
    conv2d_max_pool2d_f32, conv2d_max_pool2d_s8, depthwise_conv2d_max_pool2d_f32,
    depthwise_conv2d_max_pool2d_s8,
};
#[cfg(not(netkit_micro))]
pub(crate) use crate::workspace_s8::max_pooled_plan_s8;
#[cfg(not(feature = "cmsis-nn"))]
pub use crate::workspace_s8::{conv2d_s8, dense_s8, depthwise_conv2d_s8};

/// Alignment of scratch: a cache line, and the widest vector.
pub const ALIGNMENT: usize = 64;

/// Whether this build has kernels that pack weights in file order a panel at a time.
pub(crate) const PACKS: bool = cfg!(netkit_packs);

/// Rows of the filter matrix packed at once from file order; partial sums wait in the output.
pub(crate) const DEPTH_BLOCK: usize = 256;

/// Panels packed at once from file order: two vectors of AVX-512.
pub(crate) const PANELS_AT_ONCE: usize = 2;

/// Bytes of padded input that a convolution prepares at once, if one row of output does not need more.
const PADDED_BYTES: usize = 256 * 1024;

/// How a convolution reads its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conv2dPlan {
    /// Whether input rows are copied into scratch with their padding around them.
    pub(crate) padded: bool,
    /// Output rows computed from one block of input rows.
    pub(crate) block_rows: usize,
    /// Floats between two rows of the block.
    pub(crate) row_pitch: usize,
    /// Floats of a padded block; 0 where the input is read where it lies.
    pub(crate) padded_len: usize,
}

/// Rows of each block where `rows` are cut into as few blocks of at most `most` as can be, all of about one size. Never
/// 0, and without a division that could be by 0.
pub(crate) const fn even_rows(rows: usize, most: usize) -> usize {
    let blocks = match most {
        0 => rows,
        most => rows.div_ceil(most),
    };
    match blocks {
        0 => 1,
        blocks => rows.div_ceil(blocks),
    }
}

/// The plan of a convolution: the same for every instruction set.
pub(crate) const fn conv2d_plan(conv: &Conv2d) -> Conv2dPlan {
    let w = &conv.window;
    let columns = w.columns_read(w.out_w);
    let padded =
        w.pad_top > 0 || w.pad_left > 0 || columns > w.in_w || w.rows_read(w.out_h) > w.in_h;
    let row_pitch = if padded { columns } else { w.in_w }.saturating_mul(conv.in_channels);
    // The most rows whose input fits the budget, at least one.
    let affordable = match PADDED_BYTES.checked_div(row_pitch.saturating_mul(4)) {
        Some(rows) => rows,
        None => usize::MAX,
    };
    let spare = affordable.saturating_sub(w.span().0);
    let stride = if w.stride_h == 0 { 1 } else { w.stride_h };
    let mut block_rows = (spare / stride).saturating_add(1);
    if block_rows >= w.out_h {
        block_rows = if w.out_h == 0 { 1 } else { w.out_h };
    } else {
        // Blocks of about one size, rather than a short one at the end.
        block_rows = even_rows(w.out_h, block_rows);
    }
    let padded_len = if padded { row_pitch.saturating_mul(w.rows_read(block_rows)) } else { 0 };
    Conv2dPlan { padded, block_rows, row_pitch, padded_len }
}

/// Floats of panels that a convolution packs at once from file order.
pub(crate) const fn conv2d_panels_len(conv: &Conv2d) -> usize {
    let depth = conv.window.taps().saturating_mul(conv.in_channels);
    let rows = if depth < DEPTH_BLOCK { depth } else { DEPTH_BLOCK };
    let panels = conv.out_channels.div_ceil(PANEL);
    let panels = if panels < PANELS_AT_ONCE { panels } else { PANELS_AT_ONCE };
    rows * PANEL * panels
}

/// Scratch of [`conv2d_f32`](crate::conv2d_f32).
#[must_use]
pub const fn conv2d_f32(conv: &Conv2d, form: FilterForm) -> usize {
    let panels = match form {
        FilterForm::File if !PACKS || conv.window.is_whole_map() => return 0,
        FilterForm::File => conv2d_panels_len(conv),
        FilterForm::Packed => 0,
    };
    panels.saturating_add(conv2d_plan(conv).padded_len).saturating_mul(4)
}

/// Output channels that a convolution in Winograd's form computes at a time: two vectors of AVX-512.
pub(crate) const WINOGRAD_CHUNK: usize = 2 * PANEL;

/// Bytes of transformed inputs that a convolution in Winograd's form prepares at once, if [`LEAST_TILES`] do not need more.
/// Any size from 28 tiles to the whole map took the same time within 3 %, so the scratch may be small.
const TRANSFORMED_BYTES: usize = 256 * 1024;

/// Tiles of a block that are worth reading all weights for.
const LEAST_TILES: usize = 28;

/// How a convolution in Winograd's form is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WinogradPlan {
    /// The most tiles of a block.
    pub(crate) tiles: usize,
    /// Floats from one tile's transformed inputs to the next tile's: more than there are channels, so that tiles do not
    /// lie a power of two apart, where they would want the same lines of the cache.
    pub(crate) pitch: usize,
    /// Floats of a block's transformed inputs.
    pub(crate) inputs_len: usize,
    /// Floats of a block's products.
    pub(crate) products_len: usize,
}

/// The plan of a convolution in Winograd's form: the same for every instruction set.
pub(crate) const fn winograd_plan(conv: &Conv2d) -> WinogradPlan {
    let w = &conv.window;
    let total = w.out_h.div_ceil(WINOGRAD_TILE).saturating_mul(w.out_w.div_ceil(WINOGRAD_TILE));
    let pitch = (conv.in_channels / PANEL).saturating_add(2).saturating_mul(PANEL);
    let tile_len = pitch.saturating_mul(WINOGRAD_POSITIONS);
    let most = TRANSFORMED_BYTES / 4 / tile_len;
    let tiles = even_rows(total, if most < LEAST_TILES { LEAST_TILES } else { most });
    WinogradPlan {
        tiles,
        pitch,
        inputs_len: tiles.saturating_mul(tile_len),
        products_len: tiles.saturating_mul(WINOGRAD_POSITIONS * WINOGRAD_CHUNK),
    }
}

/// Scratch of [`conv2d_winograd_f32`](crate::conv2d_winograd_f32).
#[must_use]
pub const fn conv2d_winograd_f32(conv: &Conv2d) -> usize {
    let plan = winograd_plan(conv);
    plan.inputs_len.saturating_add(plan.products_len).saturating_mul(4)
}

/// Channels of a depthwise filter packed at once from file order; the last block may have up to twice as
/// many, less one.
pub(crate) const DEPTHWISE_BLOCK: usize = 64;

/// Scratch of [`depthwise_conv2d_f32`](crate::depthwise_conv2d_f32).
#[must_use]
pub const fn depthwise_conv2d_f32(conv: &DepthwiseConv2d, form: FilterForm) -> usize {
    match form {
        FilterForm::File if PACKS && conv.multiplier == 1 => {
            let channels = if conv.channels < 2 * DEPTHWISE_BLOCK {
                conv.channels
            } else {
                DEPTHWISE_BLOCK + conv.channels % DEPTHWISE_BLOCK
            };
            conv.window.taps().saturating_mul(channels).saturating_mul(4)
        }
        _ => 0,
    }
}

/// Scratch of [`global_response_norm_f32`](crate::global_response_norm_f32): one float a channel.
#[must_use]
pub const fn global_response_norm_f32(shape: &PerChannel) -> usize {
    shape.channels.saturating_mul(4)
}
