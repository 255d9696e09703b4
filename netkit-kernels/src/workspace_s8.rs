//! Scratch memory of the int8 doors, published by [`workspace`](crate::workspace).

use crate::filter::FilterForm;
use crate::workspace::{PACKS, even_rows};
use netkit_core::op::{Conv2d, Dense, DepthwiseConv2d, Pool2d};
use netkit_core::pack::{PANEL, RowGroups, Runs};

/// Panels packed at once from file order: as many as the widest tile has vectors.
pub(crate) const PANELS_AT_ONCE: usize = 4;

/// Inputs that a convolution prepares at once, if one row of output does not need more: where each is
/// wide, part of a first-level cache.
const fn block_inputs(conv: &Conv2d, input_bytes: usize, form: FilterForm) -> usize {
    let taps = conv.window.kernel_h.saturating_mul(conv.window.kernel_w);
    let weights = taps.saturating_mul(conv.in_channels).saturating_mul(conv.out_channels);
    match form {
        _ if input_bytes > 1 => 12 * 1024,
        // Weights that are read once more for every block, beside it.
        FilterForm::Packed if weights <= 16 * 1024 => 24 * 1024,
        _ => 64 * 1024,
    }
}

/// Bytes of an input as some instruction set of this target prepares it.
const INPUT_BYTES: usize =
    if cfg!(all(target_arch = "x86_64", target_feature = "sse2")) { 2 } else { 1 };

/// Inputs that reading in groups may touch behind the last run of a block.
const SLACK: usize = 64;

/// How a convolution prepares its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conv2dPlanS8 {
    /// Whether each output pixel's one input pixel is copied, rather than whole rows.
    pub(crate) gathered: bool,
    /// Output rows computed from one block of input.
    pub(crate) block_rows: usize,
    /// Inputs between two rows of the block.
    pub(crate) row_pitch: usize,
    /// Inputs of the block, a multiple of 64.
    pub(crate) block_len: usize,
}

#[inline]
const fn round_up(bytes: usize) -> usize {
    bytes.saturating_add(63) / 64 * 64
}

/// The plan of a convolution whose inputs are `input_bytes` bytes each.
pub(crate) const fn conv2d_plan_s8(
    conv: &Conv2d,
    input_bytes: usize,
    form: FilterForm,
) -> Conv2dPlanS8 {
    let w = &conv.window;
    let gathered = w.kernel_h == 1 && w.kernel_w == 1;
    let columns = if gathered { w.out_w } else { w.columns_read(w.out_w) };
    let row_pitch = columns.saturating_mul(conv.in_channels);
    let (stride, span) =
        if gathered { (1, 1) } else { (if w.stride_h == 0 { 1 } else { w.stride_h }, w.span().0) };
    // The most rows whose input fits the budget, at least one.
    let affordable =
        block_inputs(conv, input_bytes, form) / if row_pitch == 0 { 1 } else { row_pitch };
    let mut block_rows = (affordable.saturating_sub(span) / stride).saturating_add(1);
    if block_rows >= w.out_h {
        block_rows = if w.out_h == 0 { 1 } else { w.out_h };
    } else {
        // Blocks of about one size, rather than a short one at the end.
        block_rows = even_rows(w.out_h, block_rows);
    }
    Conv2dPlanS8 { gathered, block_rows, row_pitch, block_len: 0 }.with_rows(conv, block_rows)
}

impl Conv2dPlanS8 {
    /// The same with blocks of this many output rows.
    pub(crate) const fn with_rows(self, conv: &Conv2d, block_rows: usize) -> Self {
        let rows = if self.gathered { block_rows } else { conv.window.rows_read(block_rows) };
        let block_len = round_up(self.row_pitch.saturating_mul(rows).saturating_add(SLACK));
        Self { block_rows, block_len, ..self }
    }
}

/// Bytes of panels packed at once.
#[inline]
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
    let mut block = conv2d_plan_s8(conv, 1, form).block_len;
    let wide = conv2d_plan_s8(conv, INPUT_BYTES, form).block_len.saturating_mul(INPUT_BYTES);
    if block < wide {
        block = wide;
    }
    block.saturating_add(panels)
}

/// Scratch of a convolution that pools its sums.
pub(crate) const fn max_pooled_conv2d_s8(conv: &Conv2d, pool: &Pool2d, form: FilterForm) -> usize {
    let panels = match form {
        FilterForm::File if !PACKS => return 0,
        FilterForm::File => panels_len(&Runs::of_conv2d(conv), conv.out_channels),
        FilterForm::Packed => 0,
    };
    let block = max_pooled_plan_s8(conv, pool, 1).block_len;
    let wide = max_pooled_plan_s8(conv, pool, INPUT_BYTES).block_len.saturating_mul(INPUT_BYTES);
    let block = if block < wide { wide } else { block };
    block.saturating_add(panels)
}

/// The plan of a convolution that pools its sums: that of the convolution, in blocks of whole rows of the pool.
pub(crate) const fn max_pooled_plan_s8(
    conv: &Conv2d,
    pool: &Pool2d,
    input_bytes: usize,
) -> Conv2dPlanS8 {
    // One plan for both forms: outputs are fewer than inputs by the pool, so larger blocks fit a cache, too.
    let plan = conv2d_plan_s8(conv, input_bytes, FilterForm::File);
    let least = if pool.window.kernel_h == 0 { 1 } else { pool.window.kernel_h };
    let rows = plan.block_rows / least * least;
    plan.with_rows(conv, if rows < least { least } else { rows })
}

/// Inputs of a dense layer as the tiles read them.
#[inline]
pub(crate) const fn dense_block_len(dense: &Dense) -> usize {
    round_up(dense.rows.saturating_mul(dense.in_features).saturating_add(SLACK))
}

/// Scratch of [`dense_s8`](crate::Kernels::dense_s8).
#[inline]
#[must_use]
pub const fn dense_s8(dense: &Dense, form: FilterForm) -> usize {
    let panels = match form {
        FilterForm::File if !PACKS => return 0,
        FilterForm::File => panels_len(&Runs::of_dense(dense), dense.out_features),
        FilterForm::Packed => 0,
    };
    dense_block_len(dense).saturating_mul(INPUT_BYTES).saturating_add(panels)
}

/// Inputs of interleaved rows that a depthwise convolution keeps at once, if 64 channels do not need
/// more: part of a first-level cache.
const INTERLEAVED_INPUTS: usize = 24 * 1024;

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
    /// Inputs of one group of four interleaved rows, likewise.
    pub(crate) group_len: usize,
}

/// The plan of a depthwise convolution: the same for every instruction set.
pub(crate) const fn depthwise_plan_s8(conv: &DepthwiseConv2d) -> DepthwisePlanS8 {
    let columns = conv.window.columns_read(conv.window.out_w);
    let all = conv.channels.saturating_mul(conv.multiplier);
    let groups = RowGroups::of(conv).groups;
    let per_channel = columns.saturating_mul(groups).saturating_mul(4);
    let affordable = INTERLEAVED_INPUTS / if per_channel == 0 { 1 } else { per_channel };
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

/// Channels that a depthwise convolution in pairs computes at once, at most: four vectors of AVX2.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
const PAIR_CHANNELS: usize = 32;

/// How a depthwise convolution in pairs prepares its input and weights.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairsPlanS8 {
    /// Pairs of rows that an output row reads, each of them from a slot of its own.
    pub(crate) pairs: usize,
    /// Whether pairs start at even rows of padded input, so that output rows share them: odd output rows
    /// then have weights that are shifted down by one.
    pub(crate) shared: bool,
    /// Placements of the weights in pairs.
    pub(crate) phases: usize,
    /// Columns of padded input.
    pub(crate) columns: usize,
    /// Bytes of the pairs of weights.
    pub(crate) weights_len: usize,
    /// Bytes of the pairs of one output row's input.
    pub(crate) pairs_len: usize,
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
impl PairsPlanS8 {
    const fn len(&self) -> usize {
        self.weights_len.saturating_add(self.pairs_len)
    }
}

/// The plan of a depthwise convolution in pairs.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) const fn pairs_plan_s8(conv: &DepthwiseConv2d) -> PairsPlanS8 {
    let columns = conv.window.columns_read(conv.window.out_w);
    let w = &conv.window;
    let odd = w.stride_h == 1 && w.out_h > 1;
    // The shifted weights are those that packing shifts by a stride of 1.
    let shared = w.dilation_h == 1
        && (w.stride_h.is_multiple_of(2)
            || (w.stride_h == 1 && (!odd || RowGroups::of(conv).phases > 1)));
    let phases = if shared && odd { 2 } else { 1 };
    let pairs = (w.kernel_h + phases - 1).div_ceil(2);
    let channels = if conv.channels < PAIR_CHANNELS { conv.channels } else { PAIR_CHANNELS };
    // Two values of 16 bits.
    let row = channels.saturating_mul(pairs).saturating_mul(4);
    PairsPlanS8 {
        pairs,
        shared,
        phases,
        columns,
        weights_len: round_up(row.saturating_mul(w.kernel_w).saturating_mul(phases)),
        pairs_len: round_up(row.saturating_mul(columns)),
    }
}

/// Bytes of a vector's lane, within which it unpacks.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) const LANE: usize = 16;

/// The most groups of taps of a depthwise convolution in blocks.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) const MOST_GROUPS: usize = 64;

/// Whether a depthwise convolution can be computed in blocks.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) const fn blocks_fit(conv: &DepthwiseConv2d) -> bool {
    let w = &conv.window;
    conv.multiplier == 1
        && conv.channels.is_multiple_of(LANE)
        && w.stride_w > 0
        && RowGroups::of(conv).groups.saturating_mul(w.kernel_w) <= MOST_GROUPS
}

/// How a depthwise convolution in blocks prepares its input.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlocksPlanS8 {
    /// Planes of columns, as many as the kernel moves by.
    pub(crate) planes: usize,
    /// Columns of a plane that are read.
    pub(crate) columns: usize,
    /// The padding on the left in columns of a plane, and how many planes have one more: the first ones.
    pub(crate) padding: (usize, usize),
    /// The columns of the input, likewise.
    pub(crate) inputs: (usize, usize),
    /// Bytes of a plane: four of each position.
    pub(crate) plane_len: usize,
    /// Bytes of four interleaved rows.
    pub(crate) group_len: usize,
    /// Bytes of all interleaved rows.
    pub(crate) interleaved_len: usize,
}

/// The plan for `width` channels of a depthwise convolution in blocks of `block` positions.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) const fn blocks_plan_s8(
    conv: &DepthwiseConv2d,
    block: usize,
    width: usize,
) -> BlocksPlanS8 {
    let w = &conv.window;
    let planes = if w.stride_w == 0 { 1 } else { w.stride_w };
    let taps = w.span().1.saturating_sub(1) / planes;
    // The last block may reach over the end of its row.
    let outputs = w.out_w.saturating_mul(width).div_ceil(block).saturating_mul(block);
    let plane_len = round_up(outputs.saturating_add(taps.saturating_mul(width)).saturating_mul(4));
    let group_len = plane_len.saturating_mul(planes);
    BlocksPlanS8 {
        planes,
        columns: w.out_w.saturating_add(taps),
        padding: (w.pad_left / planes, w.pad_left % planes),
        inputs: (w.in_w / planes, w.in_w % planes),
        plane_len,
        group_len,
        interleaved_len: group_len.saturating_mul(RowGroups::of(conv).groups),
    }
}

/// Bytes of scratch of a depthwise convolution in blocks.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
const fn blocks_len(conv: &DepthwiseConv2d) -> usize {
    let mut most = 0;
    let mut block = LANE;
    while block < 4 * LANE && blocks_fit(conv) {
        block *= 2;
        let width = if conv.channels < block { conv.channels } else { block };
        let len = blocks_plan_s8(conv, block, width).interleaved_len;
        if len > most {
            most = len;
        }
    }
    most
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
    let interleaved = plan.group_len.saturating_mul(groups.groups).saturating_mul(INPUT_BYTES);
    let fours = rows.saturating_add(interleaved);
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    let fours = {
        let pairs = pairs_plan_s8(conv).len();
        let blocks = blocks_len(conv);
        let most = if fours > pairs { fours } else { pairs };
        if most > blocks { most } else { blocks }
    };
    fours.saturating_add(panels)
}
