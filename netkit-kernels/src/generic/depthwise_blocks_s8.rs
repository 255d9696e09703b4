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
use crate::simd_s8::{NO_MULTIPLIER, offset_input};
use crate::workspace_s8::{BlocksPlanS8, LANE, MOST_GROUPS, blocks_fit, blocks_plan_s8};
use core::ops::Range;
use netkit_core::op::DepthwiseConv2d;
use netkit_core::pack::{GROUP, PANEL, RowGroups};

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
        let (mut first, mut padded_width) = (0, 0);
        while first < self.conv.channels {
            let mut width = block_len::<S>();
            while width > self.conv.channels - first && width > LANE {
                width /= 2;
            }
            self.blocks(simd, first..first + width, padded_width == width);
            (first, padded_width) = (first + width, width);
        }
    }

    /// All rows of some channels: those of a block, or of a whole part of one. `padded`: the padding is
    /// there already, from as many channels just before.
    #[inline(always)]
    fn blocks<S: BlocksS8>(&mut self, simd: S, channels: Range<usize>, padded: bool) {
        let w = self.conv.window;
        let width = channels.len();
        let plan = blocks_plan_s8(&self.conv, block_len::<S>(), width);
        let rows = RowGroups::of(&self.conv);
        let scratch = core::mem::take(&mut self.scratch);
        let (interleaved, packing) = scratch.split_at_mut(plan.interleaved_len.min(scratch.len()));
        if !padded {
            // Inputs leave the padding as it is.
            interleaved.fill(offset_input::<S>(self.input_zero_point as i8));
        }

        let panels = self.panels(simd, channels.clone(), packing);
        let panel_len = rows.panel_len(w.kernel_w);
        let mut start = Aligned([0; 4 * PANEL]);
        let bias = self.bias.get(channels.clone()).unwrap_or(&[]);
        starts::<S>(panels, panel_len, self.input_zero_point, bias, 0, &mut start.0);
        repeat(&mut start.0, width);
        let here = self.multipliers.get(channels.clone()).unwrap_or(&[]);
        let mut repeated;
        let multipliers = if width == block_len::<S>() {
            here
        } else {
            repeated = [NO_MULTIPLIER; 4 * PANEL];
            for (to, from) in repeated.iter_mut().zip(here) {
                *to = *from;
            }
            repeat(&mut repeated, width);
            repeated.get(..block_len::<S>()).unwrap_or(&[])
        };
        let finish = Channels::<S, 4>::new(simd, multipliers, &start.0, w.taps(), self.stage);

        let row_groups = w.kernel_w * rows.groups;
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
                groups,
                panels,
                panel_len,
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
            let (pads, rest) = plan.padding;
            let (column, place) = if plane < rest {
                (plane + plan.planes - rest, pads + 1)
            } else {
                (plane - rest, pads)
            };
            let (inputs, rest) = plan.inputs;
            let there = if column < rest { inputs + 1 } else { inputs };
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
            let at = plane * plan.plane_len + GROUP * place * width;
            let to = to.get_mut(at..).unwrap_or(&mut []);
            if plan.planes == 1 && width == all && count * width >= block_len::<S>() {
                // One stretch, whatever pixels it holds.
                for row in &mut rows {
                    row.step = row.step.min(LANE);
                }
                let count = count * (width / LANE);
                simd.call(ColumnsOf::<1> { rows, count, width: LANE, to });
                continue;
            }
            match block_len::<S>() / width.max(1) {
                pieces if pieces > count => {
                    columns_one_by_one::<S>(&rows, count, width, to);
                }
                1 => simd.call(ColumnsOf::<1> { rows, count, width, to }),
                2 => simd.call(ColumnsOf::<2> { rows, count, width, to }),
                _ => simd.call(ColumnsOf::<4> { rows, count, width, to }),
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
    let planes = plan.planes.max(1);
    let step = (conv.window.dilation_w % planes, conv.window.dilation_w / planes);
    let (mut plane, mut place) = (0, 0usize);
    for groups in groups.chunks_exact_mut(all) {
        let column = plane * plan.plane_len + GROUP * place * width;
        let mut slot = slot;
        for to in groups {
            *to = slot * plan.group_len + column;
            slot = if slot + 1 == all { 0 } else { slot + 1 };
        }
        // Behind the last tap it may wrap: it is not used.
        (plane, place) = (plane + step.0, place.wrapping_add(step.1));
        if plane >= planes {
            (plane, place) = (plane - planes, place.wrapping_add(1));
        }
    }
}

/// Repeats the first `width` values in the rest.
#[inline(always)]
fn repeat<T: Copy>(values: &mut [T; 4 * PANEL], width: usize) {
    let (first, rest) = values.split_at_mut(width.min(4 * PANEL));
    for rest in rest.chunks_mut(width.max(1)) {
        for (to, from) in rest.iter_mut().zip(&*first) {
            *to = *from;
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
) {
    let inputs = to.as_chunks_mut::<GROUP>().0;
    for (position, to) in inputs.iter_mut().take(count * width).enumerate() {
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
