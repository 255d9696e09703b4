//! Int8 depthwise convolution in blocks, for instruction sets with dot products of four bytes. As
//! [by fours](super::depthwise_conv2d_s8), four interleaved rows serve several output rows; but input is read
//! where it lies, a whole row of outputs is one loop, and requantization is part of it.
//!
//! Columns that the kernel's steps part (those of even and odd number, if it moves by two) are kept apart: taps
//! of neighbouring outputs are then neighbours, too.

use super::block_s8::{Aligned, starts};
use super::depthwise_conv2d_s8::DepthwiseConv2dS8;
use crate::arch::blocks_s8::{BlockRows, BlockRowsOf, BlocksS8, ColumnsOf, Pieces, block_len};
use crate::arch::store_s8::{ANY, Channels, MODERATE, POSITIVE};
use crate::simd_s8::offset_input;
use crate::workspace_s8::{BlocksPlanS8, LANE, MOST_GROUPS, blocks_fit, blocks_plan_s8};
use core::ops::Range;
use netkit_core::op::DepthwiseConv2d;
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL, RowGroups};
use netkit_core::quant::Multiplier;

impl DepthwiseConv2dS8<'_> {
    /// The convolution, in blocks where it can be, by fours otherwise.
    #[inline(always)]
    pub(crate) fn by_dots<S: BlocksS8>(self, simd: S) {
        if blocks_fit(&self.conv) {
            self.by_blocks(simd);
        } else {
            self.by_fours(simd);
        }
    }

    /// The convolution, if [blocks fit](blocks_fit).
    #[inline(always)]
    fn by_blocks<S: BlocksS8>(mut self, simd: S) {
        let mut first = 0;
        while first < self.conv.channels {
            let mut width = block_len::<S>();
            while width > self.conv.channels - first && width > LANE {
                width /= 2;
            }
            self.blocks(simd, first..first + width);
            first += width;
        }
    }

    /// All rows of some channels: those of a block, or of a whole part of one.
    #[inline(always)]
    fn blocks<S: BlocksS8>(&mut self, simd: S, channels: Range<usize>) {
        let w = self.conv.window;
        let width = channels.len();
        let plan = blocks_plan_s8(&self.conv, block_len::<S>(), width);
        let rows = RowGroups::of(&self.conv);
        let scratch = core::mem::take(&mut self.scratch);
        let (weights, rest) = scratch.split_at_mut(plan.weights_len.min(scratch.len()));
        let weights: &mut [i8] = bytemuck::cast_slice_mut(weights);
        let (interleaved, packing) = rest.split_at_mut(plan.interleaved_len.min(rest.len()));
        // Inputs leave the padding as it is.
        interleaved.fill(offset_input::<S>(self.input_zero_point as i8));

        let mut start = Aligned([0; 4 * PANEL]);
        self.prepare(simd, channels.clone(), packing, weights, &mut start.0);
        let mut multipliers = [Multiplier { multiplier: 0, shift: -1 }; 4 * PANEL];
        let here = self.multipliers.get(channels.clone()).unwrap_or(&[]);
        for (panel, from) in here.as_chunks::<PANEL>().0.iter().enumerate() {
            spread::<S, _>(from, panel, width, &mut multipliers);
        }
        let multipliers = multipliers.get(..block_len::<S>()).unwrap_or(&[]);
        let finish = Channels::<S, 4>::new(simd, multipliers, &start.0, w.taps(), self.stage);

        let row_groups = w.kernel_w * rows.groups;
        let phase_len = row_groups * 4 * block_len::<S>();
        let mut groups = [0; MOST_GROUPS];
        let groups = groups.get_mut(..row_groups).unwrap_or(&mut []);
        // Where the rows that follow start a group later, all groups but the last are there already.
        let rolls = rows.phases * w.stride_h == GROUP && w.dilation_h == 1;
        // Otherwise rows past the last placement of the kernel are not read: they meet zero weights.
        let used =
            if rolls { rows.groups * GROUP } else { (rows.phases - 1) * w.stride_h + w.kernel_h };
        let (mut row, mut slot, mut ready) = (self.rows.start, 0, 0);
        group_starts(&self.conv, &plan, width, slot, groups);
        while row < self.rows.end {
            let end = (row + rows.phases).min(self.rows.end);
            for group in ready..rows.groups {
                let in_order = slot + group;
                let of_slot =
                    if in_order < rows.groups { in_order } else { in_order - rows.groups };
                let at = of_slot * plan.group_len;
                let to = interleaved.get_mut(at..at + plan.group_len).unwrap_or(&mut []);
                self.columns(simd, &plan, row, group, used, channels.clone(), to);
            }
            let row_pitch = w.out_w * self.conv.channels;
            let output = (row - self.rows.start) * row_pitch + channels.start;
            let kernel = BlockRows {
                input: interleaved,
                stream: plan.stream_len,
                groups,
                weights: weights.get(..rows.phases * phase_len).unwrap_or(&[]),
                start: &start.0,
                count: end - row,
                output: self.output.get_mut(output..).unwrap_or(&mut []),
                row_pitch,
                pieces: w.out_w,
                width,
                pitch: self.conv.channels,
            };
            run(simd, kernel, &finish);
            row = end;
            if rolls && rows.groups > 1 {
                slot = (slot + 1) % rows.groups;
                ready = rows.groups - 1;
                group_starts(&self.conv, &plan, width, slot, groups);
            }
        }
        self.scratch = scratch;
    }

    /// Interleaves the rows of a group: four of those that output row `row` starts with, of which `used` are read.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "one step of a longer function")]
    fn columns<S: BlocksS8>(
        &self,
        simd: S,
        plan: &BlocksPlanS8,
        row: usize,
        group: usize,
        used: usize,
        channels: Range<usize>,
        to: &mut [u8],
    ) {
        let (w, all) = (&self.conv.window, self.conv.channels);
        let padding = [self.input_zero_point as i8; 4 * PANEL];
        let width = channels.len();
        for plane in 0..plan.planes {
            if w.dilation_w == 1 && plane >= w.kernel_w {
                // Between the kernel's placements.
                break;
            }
            // The first input column of those that the plane has, its place there, and their number.
            let (column, place, there) = if plan.planes == 1 {
                (0, w.pad_left, w.in_w)
            } else {
                let column = (plane + plan.planes - w.pad_left % plan.planes) % plan.planes;
                let place = (column + w.pad_left) / plan.planes;
                (column, place, w.in_w.saturating_sub(column).div_ceil(plan.planes))
            };
            let count = there.min(plan.columns.saturating_sub(place));
            let mut rows = [Pieces { values: &padding, step: 0 }; GROUP];
            for (i, to) in rows.iter_mut().enumerate() {
                let i = group * GROUP + i;
                let position = (row * w.stride_h + i * w.dilation_h).checked_sub(w.pad_top);
                let Some(position) = position.filter(|&row| row < w.in_h && i < used) else {
                    continue;
                };
                let at = (position * w.in_w + column) * all + channels.start;
                let values = self.input.get(at..).unwrap_or(&[]);
                *to = Pieces { values, step: plan.planes * all };
            }
            let at = plane * plan.plane_len + place * width;
            let to = to.get_mut(at..).unwrap_or(&mut []);
            let stream = plan.stream_len;
            if plan.planes == 1 && width == all && count * width >= block_len::<S>() {
                // One stretch, whatever pixels it holds.
                for row in &mut rows {
                    row.step = row.step.min(LANE);
                }
                let count = count * (width / LANE);
                simd.call(ColumnsOf::<1> { rows, count, width: LANE, to, stream });
                continue;
            }
            match block_len::<S>() / width.max(1) {
                pieces if pieces > count => {
                    columns_one_by_one::<S>(&rows, count, width, to, stream);
                }
                1 => simd.call(ColumnsOf::<1> { rows, count, width, to, stream }),
                2 => simd.call(ColumnsOf::<2> { rows, count, width, to, stream }),
                _ => simd.call(ColumnsOf::<4> { rows, count, width, to, stream }),
            }
        }
    }

    /// Weights, `[phases][kernel_w][groups][4]` vectors, and what sums start from. `packing` has room for the
    /// panels of the channels where they are not packed beforehand.
    #[inline(always)]
    fn prepare<S: BlocksS8>(
        &self,
        simd: S,
        channels: Range<usize>,
        packing: &mut [u8],
        weights: &mut [i8],
        start: &mut [i32; 4 * PANEL],
    ) {
        let w = &self.conv.window;
        let panel_len = RowGroups::of(&self.conv).panel_len(w.kernel_w);
        let width = channels.len();
        let panels = self.panels(simd, channels.clone(), packing);
        let bias = self.bias.get(channels).unwrap_or(&[]);
        let mut natural = [0; 4 * PANEL];
        starts::<S>(panels, panel_len, self.input_zero_point, bias, 0, &mut natural);
        for (panel, from) in natural.as_chunks::<PANEL>().0.iter().take(width / PANEL).enumerate() {
            spread::<S, _>(from, panel, width, start);
        }
        if width == block_len::<S>() {
            return match S::LANES / GROUP {
                1 => whole_block::<1>(panels, panel_len, weights),
                2 => whole_block::<2>(panels, panel_len, weights),
                _ => whole_block::<4>(panels, panel_len, weights),
            };
        }
        let vectors = weights.as_chunks_mut::<GROUP>().0.chunks_exact_mut(block_len::<S>());
        for (i, to) in vectors.enumerate() {
            let panels = panels.chunks_exact(panel_len).take(width / PANEL);
            for (panel, from) in panels.enumerate() {
                // The sums of the weights are in front.
                let group = from.as_chunks::<GROUP_BYTES>().0.get(i + 1);
                let group = group.and_then(|group| group.as_chunks::<GROUP>().0.first_chunk());
                let Some(group) = group else { break };
                spread::<S, _>(group, panel, width, to);
            }
        }
    }
}

/// Where the groups of a row's first block start, if the first group of rows is in `slot`.
#[inline(always)]
fn group_starts(
    conv: &DepthwiseConv2d,
    plan: &BlocksPlanS8,
    width: usize,
    slot: usize,
    groups: &mut [usize],
) {
    let all = RowGroups::of(conv).groups.max(1);
    for (tap, groups) in groups.chunks_exact_mut(all).enumerate() {
        let column = tap * conv.window.dilation_w;
        let at = column % plan.planes * plan.plane_len + column / plan.planes * width;
        for (group, to) in groups.iter_mut().enumerate() {
            *to = (slot + group) % all * plan.group_len + at;
        }
    }
}

/// Puts what belongs to sixteen channels where a block wants it: wherever they are, and in the order of its vectors.
#[inline(always)]
fn spread<S: BlocksS8, T: Copy>(from: &[T; PANEL], panel: usize, width: usize, to: &mut [T]) {
    let lanes = S::LANES / GROUP;
    let to = to.as_chunks_mut::<GROUP>().0;
    let (from, _) = from.as_chunks::<GROUP>();
    for lane in (panel..lanes).step_by((width / PANEL).max(1)) {
        for (vector, from) in from.iter().enumerate() {
            if let Some(to) = to.get_mut(vector * lanes + lane) {
                *to = *from;
            }
        }
    }
}

/// [`spread`] of all groups of `N` panels that fill a block: of as many vectors as there are fours of a panel's channels, each
/// has one four of each panel. Nothing depends on the width, and so all are copied without a question.
#[inline(always)]
fn whole_block<const N: usize>(panels: &[i8], panel_len: usize, to: &mut [i8]) {
    let mut groups: [&[[[i8; PANEL]; GROUP]]; N] = [&[]; N];
    for (groups, panel) in groups.iter_mut().zip(panels.chunks_exact(panel_len)) {
        // The sums of the weights are in front.
        let (_, behind) = panel.split_at(GROUP_BYTES.min(panel.len()));
        *groups = behind.as_chunks().0.as_chunks().0;
    }
    let vectors = to.as_chunks_mut::<PANEL>().0.as_chunks_mut::<N>().0;
    for (i, vectors) in vectors.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
        for (panel, groups) in groups.iter().enumerate() {
            let Some(group) = groups.get(i) else { return };
            for (vector, four) in vectors.iter_mut().zip(group) {
                vector[panel] = *four;
            }
        }
    }
}

/// What [`ColumnsOf`] does, of pieces that are less than a block.
#[inline(always)]
fn columns_one_by_one<S: BlocksS8>(
    rows: &[Pieces<'_>; GROUP],
    count: usize,
    width: usize,
    to: &mut [u8],
    stream: usize,
) {
    for position in 0..count * width {
        let vector = position % LANE / GROUP;
        let at = vector * stream + position / LANE * LANE + position % GROUP * GROUP;
        let Some(to) = to.get_mut(at..).and_then(|to| to.first_chunk_mut::<GROUP>()) else {
            return;
        };
        for (to, row) in to.iter_mut().zip(rows) {
            let x = row.values.get(position / width.max(1) * row.step + position % width.max(1));
            *to = offset_input::<S>(x.copied().unwrap_or(0));
        }
    }
}

/// Runs the kernel for what is known of the channels.
#[inline(always)]
fn run<S: BlocksS8>(simd: S, rows: BlockRows<'_>, channels: &Channels<S, 4>) {
    match channels.how {
        POSITIVE if S::RESCALES_POSITIVE => run_groups::<S, POSITIVE>(simd, rows, channels),
        ANY => simd.call(BlockRowsOf::<S, 0, 1, ANY> { rows, channels }),
        _ => run_groups::<S, MODERATE>(simd, rows, channels),
    }
}

/// Runs the kernel of as many groups.
#[inline(always)]
fn run_groups<S: BlocksS8, const HOW: u8>(simd: S, rows: BlockRows<'_>, channels: &Channels<S, 4>) {
    match rows.groups.len() {
        3 => simd.call(BlockRowsOf::<S, 3, 1, HOW> { rows, channels }),
        10 => simd.call(BlockRowsOf::<S, 10, 2, HOW> { rows, channels }),
        _ => simd.call(BlockRowsOf::<S, 0, 1, HOW> { rows, channels }),
    }
}
