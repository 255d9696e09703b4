//! Scratch memory of the int8 doors, published by [`workspace`](crate::workspace).

use crate::filter::FilterForm;
use crate::workspace::{PACKS, even_rows};
use netkit_core::op::{Conv2d, Dense, DepthwiseConv2d, Window};
use netkit_core::pack::{PANEL, RowGroups, Runs};

/// Panels packed at once from file order: as many as the widest tile has vectors.
pub(crate) const PANELS_AT_ONCE: usize = 4;

/// Input bytes that a convolution prepares at once, if one row of output does not need more.
const BLOCK_BYTES: usize = 64 * 1024;

/// Bytes that reading in groups may touch behind the last run of a block.
const SLACK: usize = 64;

/// How a convolution prepares its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conv2dPlanS8 {
    /// Whether each output pixel's one input pixel is copied, rather than whole rows.
    pub(crate) gathered: bool,
    /// Output rows computed from one block of input.
    pub(crate) block_rows: usize,
    /// Bytes between two rows of the block.
    pub(crate) row_pitch: usize,
    /// Bytes of the block, a multiple of 64.
    pub(crate) block_len: usize,
}

/// Columns (or rows) of input that `out` outputs of a window read, padding included.
const fn extent(out: usize, stride: usize, kernel: usize, dilation: usize) -> usize {
    let steps = out.saturating_sub(1).saturating_mul(stride);
    let span = kernel.saturating_sub(1).saturating_mul(dilation);
    steps.saturating_add(span).saturating_add(1)
}

/// Input rows that `rows` output rows read, padding included.
pub(crate) const fn input_rows(window: &Window, rows: usize) -> usize {
    extent(rows, window.stride_h, window.kernel_h, window.dilation_h)
}

/// Input columns that a row of output reads, padding included.
pub(crate) const fn input_columns(window: &Window) -> usize {
    extent(window.out_w, window.stride_w, window.kernel_w, window.dilation_w)
}

const fn round_up(bytes: usize) -> usize {
    bytes.saturating_add(63) / 64 * 64
}

/// The plan of a convolution: the same for every instruction set.
pub(crate) const fn conv2d_plan_s8(conv: &Conv2d) -> Conv2dPlanS8 {
    let w = &conv.window;
    let gathered = w.kernel_h == 1 && w.kernel_w == 1;
    let columns = if gathered { w.out_w } else { input_columns(w) };
    let row_pitch = columns.saturating_mul(conv.in_channels);
    let (stride, span) = if gathered {
        (1, 1)
    } else {
        (if w.stride_h == 0 { 1 } else { w.stride_h }, input_rows(w, 1))
    };
    // The most rows whose input fits the budget, at least one.
    let affordable = BLOCK_BYTES / if row_pitch == 0 { 1 } else { row_pitch };
    let mut block_rows = (affordable.saturating_sub(span) / stride).saturating_add(1);
    if block_rows >= w.out_h {
        block_rows = if w.out_h == 0 { 1 } else { w.out_h };
    } else {
        // Blocks of about one size, rather than a short one at the end.
        block_rows = even_rows(w.out_h, block_rows);
    }
    let rows = if gathered { block_rows } else { input_rows(w, block_rows) };
    let block_len = round_up(row_pitch.saturating_mul(rows).saturating_add(SLACK));
    Conv2dPlanS8 { gathered, block_rows, row_pitch, block_len }
}

/// Bytes of panels packed at once.
const fn panels_len(runs: &Runs, channels: usize) -> usize {
    let panels = channels.div_ceil(PANEL);
    let panels = if panels < PANELS_AT_ONCE { panels } else { PANELS_AT_ONCE };
    runs.panel_len().saturating_mul(panels)
}

/// Scratch of [`conv2d_s8`](crate::Kernels::conv2d_s8).
#[must_use]
pub const fn conv2d_s8(conv: &Conv2d, form: FilterForm) -> usize {
    #[cfg(netkit_micro)]
    if matches!(form, FilterForm::File) {
        return crate::micro::conv2d_s8_scratch(conv);
    }
    let panels = match form {
        FilterForm::File if !PACKS => return 0,
        FilterForm::File => panels_len(&Runs::of_conv2d(conv), conv.out_channels),
        FilterForm::Packed => 0,
    };
    conv2d_plan_s8(conv).block_len.saturating_add(panels)
}

/// Bytes of a dense layer's input as the tiles read it.
pub(crate) const fn dense_block_len(dense: &Dense) -> usize {
    round_up(dense.rows.saturating_mul(dense.in_features).saturating_add(SLACK))
}

/// Scratch of [`dense_s8`](crate::Kernels::dense_s8).
#[must_use]
pub const fn dense_s8(dense: &Dense, form: FilterForm) -> usize {
    let panels = match form {
        FilterForm::File if !PACKS => return 0,
        FilterForm::File => panels_len(&Runs::of_dense(dense), dense.out_features),
        FilterForm::Packed => 0,
    };
    dense_block_len(dense).saturating_add(panels)
}

/// Bytes of interleaved rows that a depthwise convolution keeps at once, if 64 channels do not need
/// more: part of a first-level cache.
const INTERLEAVED_BYTES: usize = 24 * 1024;

/// Channels whose rows are interleaved at once where not all are: a multiple of every set's step.
const CHANNEL_STEP: usize = 64;

/// How a depthwise convolution prepares its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DepthwisePlanS8 {
    /// Output channels computed at once.
    pub(crate) channels: usize,
    /// Columns of padded input.
    pub(crate) columns: usize,
    /// Bytes of one row: its padding around it, and what interleaving reads behind it.
    pub(crate) row_len: usize,
    /// Bytes of one group of four interleaved rows, likewise.
    pub(crate) group_len: usize,
}

/// The plan of a depthwise convolution: the same for every instruction set.
pub(crate) const fn depthwise_plan_s8(conv: &DepthwiseConv2d) -> DepthwisePlanS8 {
    let columns = input_columns(&conv.window);
    let all = conv.channels.saturating_mul(conv.multiplier);
    let groups = RowGroups::of(conv).groups;
    let per_channel = columns.saturating_mul(groups).saturating_mul(4);
    let affordable = INTERLEAVED_BYTES / if per_channel == 0 { 1 } else { per_channel };
    let channels = if affordable < CHANNEL_STEP {
        CHANNEL_STEP
    } else {
        affordable / CHANNEL_STEP * CHANNEL_STEP
    };
    let channels = if channels < all { channels } else { all };
    let row_len = round_up(columns.saturating_mul(channels));
    // A vector of the last pixel's channels may reach over its end.
    let group_len = row_len.saturating_mul(4).saturating_add(SLACK);
    DepthwisePlanS8 { channels, columns, row_len, group_len }
}

/// Scratch of [`depthwise_conv2d_s8`](crate::Kernels::depthwise_conv2d_s8).
#[must_use]
pub const fn depthwise_conv2d_s8(conv: &DepthwiseConv2d, form: FilterForm) -> usize {
    #[cfg(netkit_micro)]
    if matches!(form, FilterForm::File) {
        return crate::micro::depthwise_conv2d_s8_scratch(conv);
    }
    let plan = depthwise_plan_s8(conv);
    let groups = RowGroups::of(conv);
    let panels = match form {
        FilterForm::File if !PACKS => return 0,
        FilterForm::File => {
            plan.channels.div_ceil(PANEL).saturating_mul(groups.panel_len(conv.window.kernel_w))
        }
        FilterForm::Packed => 0,
    };
    let rows = plan.row_len.saturating_mul(4);
    let interleaved = plan.group_len.saturating_mul(groups.groups);
    rows.saturating_add(interleaved).saturating_add(panels)
}
