//! Int8 depthwise convolution. Four input rows are interleaved, byte by byte, so that each 32-bit lane
//! holds a column of four taps of one channel; a dot product then sums them. Interleaved once, the rows
//! serve every horizontal tap and, if the kernel is lower than four, several output rows.
//! [`depthwise_pairs_s8`](super::depthwise_pairs_s8) is for instruction sets without such dot products.

use super::block_s8::{Aligned, starts};
#[cfg(not(netkit_micro))]
use super::direct_s8::DirectS8;
use crate::arch::depthwise_s8::{DepthwiseSumsOf, DepthwiseTileS8};
use crate::arch::interleave_s8::InterleaveS8;
use crate::arch::store_s8::{Channels, StoreS8};
use crate::arch::transpose::PackDepthwisePanelS8;
use crate::filter_s8::FilterS8;
use crate::simd_s8::{KernelS8, SimdS8};
use crate::workspace_s8::{DepthwisePlanS8, depthwise_plan_s8};
use core::ops::Range;
use netkit_core::op::DepthwiseConv2d;
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL, RowGroups};
use netkit_core::quant::{Multiplier, OutputStage};

/// Sums of the largest tile: pixels times four vectors of 16 lanes.
const TILE_SUMS: usize = 8 * 4 * PANEL;

/// Output rows `rows` of a depthwise convolution.
pub(crate) struct DepthwiseConv2dS8<'a> {
    pub(crate) conv: DepthwiseConv2d,
    pub(crate) input: &'a [i8],
    pub(crate) input_zero_point: i32,
    pub(crate) filter: FilterS8<'a>,
    pub(crate) bias: &'a [i32],
    pub(crate) multipliers: &'a [Multiplier],
    pub(crate) stage: OutputStage,
    pub(crate) rows: Range<usize>,
    pub(crate) output: &'a mut [i8],
    pub(crate) scratch: &'a mut [u8],
}

impl KernelS8 for DepthwiseConv2dS8<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        if let (true, FilterS8::File(weights)) = (S::READS_FILE_ORDER, self.filter) {
            #[cfg(netkit_micro)]
            return crate::micro::depthwise_conv2d_s8(self, weights);
            #[cfg(not(netkit_micro))]
            return DirectS8 {
                input: self.input,
                input_zero_point: self.input_zero_point,
                weights,
                bias: self.bias,
                multipliers: self.multipliers,
                stage: self.stage,
            }
            .depthwise(&self.conv, self.rows, self.output);
        }
        // Rows without columns may be any number, and so may the columns of input between two of output.
        if !self.output.is_empty() {
            simd.depthwise(self);
        }
    }
}

impl<'a> DepthwiseConv2dS8<'a> {
    /// The panels of `channels`, the first of which is a multiple of 16, packed into `room` where they are not beforehand.
    #[inline(always)]
    pub(super) fn panels<'p, S: SimdS8>(
        &self,
        simd: S,
        channels: Range<usize>,
        room: &'p mut [u8],
    ) -> &'p [i8]
    where
        'a: 'p,
    {
        let panel_len = RowGroups::of(&self.conv).panel_len(self.conv.window.kernel_w);
        match self.filter {
            #[cfg(not(netkit_micro))]
            FilterS8::Packed(packed) => {
                packed.get(channels.start / PANEL * panel_len..).unwrap_or(&[])
            }
            FilterS8::File(weights) => {
                let panels: &mut [i8] = bytemuck::cast_slice_mut(room);
                let to = panels.chunks_exact_mut(panel_len);
                for (first, panel) in channels.step_by(PANEL).zip(to) {
                    simd.call(PackDepthwisePanelS8 {
                        conv: &self.conv,
                        channels: first..self.conv.channels * self.conv.multiplier,
                        weights,
                        panel,
                    });
                }
                panels
            }
        }
    }
}

impl DepthwiseConv2dS8<'_> {
    /// The convolution by dot products of four.
    #[inline(always)]
    pub(crate) fn by_fours<S: SimdS8>(mut self, simd: S) {
        let plan = depthwise_plan_s8(&self.conv);
        let groups = RowGroups::of(&self.conv);
        let scratch = core::mem::take(&mut self.scratch);
        let (rows, scratch) = scratch.split_at_mut((4 * plan.row_len).min(scratch.len()));
        let rows: &mut [i8] = bytemuck::cast_slice_mut(rows);
        let split = (groups.groups * plan.group_len * S::INPUT_BYTES).min(scratch.len());
        let (interleaved, panels) = scratch.split_at_mut(split);

        let channels = self.conv.channels * self.conv.multiplier;
        for first in (0..channels).step_by(plan.channels.max(1)) {
            let block = first..(first + plan.channels).min(channels);
            let weights = self.panels(simd, block.clone(), panels);
            let mut row = self.rows.start;
            while row < self.rows.end {
                let end = (row + groups.phases).min(self.rows.end);
                for group in 0..groups.groups {
                    let at = group * plan.group_len * S::INPUT_BYTES;
                    let to = interleaved.get_mut(at..).unwrap_or(&mut []);
                    self.interleave(simd, &plan, row, group, block.clone(), rows, to);
                }
                for (phase, row) in (row..end).enumerate() {
                    self.row(simd, &plan, &groups, phase, row, block.clone(), interleaved, weights);
                }
                row = end;
            }
        }
    }

    /// Interleaves the rows of a group: four of those that output row `row` starts with.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "one step of a longer function")]
    fn interleave<S: SimdS8>(
        &self,
        simd: S,
        plan: &DepthwisePlanS8,
        row: usize,
        group: usize,
        block: Range<usize>,
        rows: &mut [i8],
        to: &mut [u8],
    ) {
        let w = &self.conv.window;
        let len = plan.columns * block.len();
        // Rows past the last placement of the kernel meet zero weights: what stands there is left.
        let used = (RowGroups::of(&self.conv).phases - 1) * w.stride_h + w.kernel_h;
        let lines = rows.chunks_exact_mut(plan.row_len.max(1));
        for (i, line) in (group * GROUP..used).zip(lines) {
            let line = line.get_mut(..len).unwrap_or(&mut []);
            self.copy_row(row * w.stride_h + i * w.dilation_h, block.clone(), line);
        }
        simd.call(InterleaveS8 { rows, row_len: plan.row_len, len, to });
    }

    /// One row of padded input, just the channels of the block.
    #[inline(always)]
    fn copy_row(&self, position: usize, block: Range<usize>, line: &mut [i8]) {
        let (w, channels) = (&self.conv.window, self.conv.channels);
        let padding = self.input_zero_point as i8;
        let source = position
            .checked_sub(w.pad_top)
            .filter(|&row| row < w.in_h)
            .and_then(|row| self.input.get(row * w.in_w * channels..(row + 1) * w.in_w * channels));
        let Some(source) = source else {
            line.fill(padding);
            return;
        };
        let width = block.len().max(1);
        let left = (w.pad_left * width).min(line.len());
        let (before, rest) = line.split_at_mut(left);
        before.fill(padding);
        let copied = (w.in_w * width).min(rest.len());
        let (middle, after) = rest.split_at_mut(copied);
        after.fill(padding);
        let multiplier = self.conv.multiplier;
        if multiplier == 1 && width == channels {
            for (to, from) in middle.iter_mut().zip(source) {
                *to = *from;
            }
            return;
        }
        let pixels = source.chunks_exact(channels.max(1)).zip(middle.chunks_exact_mut(width));
        for (from, to) in pixels {
            if multiplier == 1 {
                for (to, from) in to.iter_mut().zip(from.get(block.clone()).unwrap_or(&[])) {
                    *to = *from;
                }
            } else {
                for (channel, to) in block.clone().zip(to) {
                    *to = from.get(channel / multiplier.max(1)).copied().unwrap_or(0);
                }
            }
        }
    }

    /// One output row, the channels of the block.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "one step of a longer function")]
    fn row<S: SimdS8>(
        &mut self,
        simd: S,
        plan: &DepthwisePlanS8,
        groups: &RowGroups,
        phase: usize,
        row: usize,
        block: Range<usize>,
        interleaved: &[u8],
        weights: &[i8],
    ) {
        let mut channel = block.start;
        while channel < block.end {
            let left = (block.end - channel).div_ceil(S::LANES);
            let vectors = match left {
                0 | 1 => 1,
                2 | 3 => 2,
                _ => 4,
            };
            let end = (channel + vectors * S::LANES).min(block.end);
            let tiles = Tiles {
                plan,
                groups,
                phase,
                row,
                block: block.clone(),
                channels: channel..end,
                interleaved,
                weights,
            };
            match vectors {
                4 => self.tiles::<S, 4>(simd, &tiles),
                2 => self.tiles::<S, 2>(simd, &tiles),
                _ => self.tiles::<S, 1>(simd, &tiles),
            }
            channel = end;
        }
    }

    #[inline(always)]
    fn tiles<S: SimdS8, const V: usize>(&mut self, simd: S, t: &Tiles<'_>) {
        let w = &self.conv.window;
        let all_channels = self.conv.channels * self.conv.multiplier;
        let panel_pitch = t.groups.panel_len(w.kernel_w);
        let local = t.channels.start - t.block.start;
        let lane = local % PANEL;
        let panel = t.weights.get(local / PANEL * panel_pitch..).unwrap_or(&[]);
        let mut start = Aligned([0; 4 * PANEL]);
        let bias = self.bias.get(t.channels.clone()).unwrap_or(&[]);
        starts::<S>(panel, panel_pitch, self.input_zero_point, bias, lane, &mut start.0);
        let multipliers = self.multipliers.get(t.channels.clone()).unwrap_or(&[]);
        let finish = Channels::<S, V>::new(simd, multipliers, &start.0, w.taps(), self.stage);
        let width = V * S::LANES;

        let at = GROUP_BYTES + t.phase * w.kernel_w * t.groups.groups * GROUP_BYTES;
        let first_row = t.phase * w.stride_h;
        let used = first_row / GROUP..(first_row + w.kernel_h).div_ceil(GROUP);
        let column_pitch = t.block.len() * GROUP * S::INPUT_BYTES;
        let largest = S::DEPTHWISE_PIXELS;
        let mut sums = Aligned([0; TILE_SUMS]);
        let mut pixel = 0;
        while pixel < w.out_w {
            let left = w.out_w - pixel;
            let size = left.div_ceil(left.div_ceil(largest));
            let input = pixel * w.stride_w * column_pitch + local * GROUP * S::INPUT_BYTES;
            let tile = DepthwiseTileS8 {
                input: t.interleaved.get(input..).unwrap_or(&[]),
                group_pitch: t.plan.group_len * S::INPUT_BYTES,
                tap_pitch: w.dilation_w * column_pitch,
                pixel_pitch: w.stride_w * column_pitch,
                groups: used.clone(),
                kernel_w: w.kernel_w,
                weights: panel.get(at..).unwrap_or(&[]),
                all_groups: t.groups.groups,
                panel_pitch,
                lane,
                start: start.0.get(..width).unwrap_or(&[]),
                sums: &mut sums.0,
            };
            sums_of(simd, size, tile);
            let output = ((t.row - self.rows.start) * w.out_w + pixel) * all_channels;
            simd.call(StoreS8 {
                channels: &finish,
                pixels: size,
                sums: &sums.0,
                output: self.output.get_mut(output + t.channels.start..).unwrap_or(&mut []),
                pitch: all_channels,
            });
            pixel += size;
        }
    }
}

/// Some channels of an output row.
struct Tiles<'a> {
    plan: &'a DepthwisePlanS8,
    groups: &'a RowGroups,
    phase: usize,
    row: usize,
    block: Range<usize>,
    channels: Range<usize>,
    interleaved: &'a [u8],
    /// Panels of the block.
    weights: &'a [i8],
}

/// Runs the tile of `pixels` pixels.
#[inline(always)]
fn sums_of<S: SimdS8>(simd: S, pixels: usize, tile: DepthwiseTileS8<'_>) {
    macro_rules! sizes {
        ($($p:literal)+) => {
            match pixels {
                $($p if const { $p <= S::DEPTHWISE_PIXELS } => {
                    simd.call(DepthwiseSumsOf::<$p>(tile));
                })+
                _ => debug_assert!(false, "no tile of {pixels} pixels"),
            }
        };
    }
    sizes!(1 2 3 4 5 6 7 8);
}
