//! Int8 convolution whose map is pooled before it is one: of the sums under a window the largest becomes the output, and the
//! others are never requantized, stored or read.

use super::block_s8::{Aligned, BlockS8, PixelGrid, SUMS, starts, sums_of};
use super::conv2d_s8::{Conv2dS8, copy_rows, gather};
use crate::arch::max_sums_s8::{MaxOutputsOf, MaxSums};
use crate::arch::store_s8::{Channels, StoreS8};
use crate::arch::tile_s8::{GroupRuns, TileS8};
use crate::filter_s8::FilterS8;
use crate::simd_s8::{KernelS8, SimdS8};
use crate::workspace::{LARGEST_POOL, max_pooled_plan_s8};
use crate::workspace_s8::PANELS_AT_ONCE;
use core::ops::Range;
use netkit_core::op::{Conv2d, Pool2d};
use netkit_core::pack::{PANEL, Runs, pack_panel_s8};
use netkit_core::quant::Multiplier;

/// Output rows of the maximum pool of a convolution, where [`pools_sums`](crate::workspace::pools_sums) says that its windows
/// suit and all multipliers [keep the order](keeps_order).
pub(crate) struct MaxPooledConv2dS8<'a> {
    pub(crate) pool: Pool2d,
    /// The convolution; but rows and output are the pool's.
    pub(crate) call: Conv2dS8<'a>,
}

/// Whether no sum is below another whose output is above.
pub(crate) fn keeps_order(multipliers: &[Multiplier]) -> bool {
    multipliers.iter().all(|m| m.multiplier >= 0 && (-31..=0).contains(&m.shift))
}

impl KernelS8 for MaxPooledConv2dS8<'_> {
    /// Whether it was computed: not on a set that reads weights where they lie.
    type Output = bool;

    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) -> bool {
        let Self { pool, call } = self;
        if S::READS_FILE_ORDER && matches!(call.filter, FilterS8::File(_)) {
            return false;
        }
        let plan = max_pooled_plan_s8(&call.conv, &pool, S::INPUT_BYTES);
        let Conv2d { window: w, in_channels, out_channels } = call.conv;
        let p = pool.window;
        let split = (plan.block_len * S::INPUT_BYTES).min(call.scratch.len());
        let (bytes, panels) = call.scratch.split_at_mut(split);
        let packed_runs = Runs::of_conv2d(&call.conv);
        let dilated = packed_runs.count != w.kernel_h;
        let runs = GroupRuns {
            rows: w.kernel_h,
            row_pitch: plan.row_pitch * w.dilation_h * S::INPUT_BYTES,
            columns: if dilated { w.kernel_w } else { 1 },
            column_pitch: w.dilation_w * in_channels * S::INPUT_BYTES,
            groups: packed_runs.groups(),
        };
        let steps = if plan.gathered { (1, 1) } else { (w.stride_h, w.stride_w) };
        let block_rows = (plan.block_rows / p.kernel_h.max(1)).max(1);
        let mut output = call.output;
        let mut row = call.rows.start;
        while row < call.rows.end {
            let end = (row + block_rows).min(call.rows.end);
            let rows = row * p.kernel_h..end * p.kernel_h;
            let count = rows.len();
            if plan.gathered {
                gather::<S>(&call.conv, &plan, call.input, call.input_zero_point, rows, bytes);
            } else {
                copy_rows::<S>(&call.conv, &plan, call.input, call.input_zero_point, rows, bytes);
            }
            let here = ((end - row) * p.out_w * out_channels).min(output.len());
            let (now, rest) = output.split_at_mut(here);
            output = rest;
            let block = BlockS8 {
                input: bytes,
                runs,
                grid: PixelGrid {
                    rows: count,
                    columns: p.out_w * p.kernel_w,
                    row_step: steps.0 * plan.row_pitch * S::INPUT_BYTES,
                    column_step: steps.1 * in_channels * S::INPUT_BYTES,
                },
                input_zero_point: call.input_zero_point,
                stage: call.stage,
                output: now,
                pitch: out_channels,
            };
            let mut block = MaxPooledBlock {
                block,
                window: [p.kernel_h, p.kernel_w],
                bias: call.bias,
                multipliers: call.multipliers,
            };
            block.filter(simd, packed_runs, call.filter, panels, out_channels);
            row = end;
        }
        true
    }
}

/// Pixels that are pooled: the grid is that of their sums, and the output what remains.
struct MaxPooledBlock<'a> {
    block: BlockS8<'a>,
    /// Rows and columns under a window of the pool; the grid has a multiple of them.
    window: [usize; 2],
    bias: &'a [i32],
    multipliers: &'a [Multiplier],
}

impl MaxPooledBlock<'_> {
    /// Computes all channels; see [`BlockS8::filter`].
    #[inline(always)]
    fn filter<S: SimdS8>(
        &mut self,
        simd: S,
        runs: Runs,
        filter: FilterS8<'_>,
        panels: &mut [u8],
        channels: usize,
    ) {
        match filter {
            #[cfg(not(netkit_micro))]
            FilterS8::Packed(panels) => self.compute(simd, panels, 0..channels),
            FilterS8::File(weights) => {
                let panels: &mut [i8] = bytemuck::cast_slice_mut(panels);
                let at_once = PANELS_AT_ONCE * PANEL;
                for first in (0..channels).step_by(at_once) {
                    let here = first..(first + at_once).min(channels);
                    let to = panels.chunks_exact_mut(runs.panel_len());
                    for (first, panel) in here.clone().step_by(PANEL).zip(to) {
                        let packed = pack_panel_s8(runs, first, weights, panel);
                        debug_assert!(packed.is_some());
                    }
                    self.compute(simd, panels, here);
                }
            }
        }
    }

    /// Computes `channels`; see [`BlockS8::compute`].
    #[inline(always)]
    fn compute<S: SimdS8>(&mut self, simd: S, panels: &[i8], channels: Range<usize>) {
        const { assert!(LARGEST_POOL * 4 * PANEL <= SUMS) };
        let mut sums = Aligned([0; SUMS]);
        let mut channel = channels.start;
        while channel < channels.end {
            let left = (channels.end - channel).div_ceil(S::LANES);
            let vectors = match left {
                // A tile has the pixels of a window, so it takes many channels to fill the registers with sums.
                4.. if self.in_registers::<S>() => 4,
                2.. if self.in_registers::<S>() => 2,
                _ => self.block.vectors::<S>(left),
            };
            let end = (channel + vectors * S::LANES).min(channels.end);
            let panel = (channel - channels.start) / PANEL * self.block.runs.panel_stride();
            let panels = panels.get(panel..).unwrap_or(&[]);
            match vectors {
                4 => self.pixels::<S, 4>(simd, panels, channel..end, &mut sums.0),
                2 => self.pixels::<S, 2>(simd, panels, channel..end, &mut sums.0),
                _ => self.pixels::<S, 1>(simd, panels, channel..end, &mut sums.0),
            }
            channel = end;
        }
    }

    /// Whether sums stay in registers until the largest of each window are found.
    #[inline(always)]
    fn in_registers<S: SimdS8>(&self) -> bool {
        S::STORES_EACH_TILE && self.window == [2, 2]
    }

    /// All pixels, `V` vectors of channels.
    #[inline(always)]
    fn pixels<S: SimdS8, const V: usize>(
        &mut self,
        simd: S,
        panels: &[i8],
        channels: Range<usize>,
        sums: &mut [i32],
    ) {
        let block = &mut self.block;
        let lane = channels.start % PANEL;
        let mut start = Aligned([0; 4 * PANEL]);
        let bias = self.bias.get(channels.clone()).unwrap_or(&[]);
        let stride = block.runs.panel_stride();
        starts::<S>(panels, stride, block.input_zero_point, bias, lane, &mut start.0);
        let multipliers = self.multipliers.get(channels.clone()).unwrap_or(&[]);
        let taps = block.runs.taps();
        let finish = Channels::<S, V>::new(simd, multipliers, &start.0, taps, block.stage);
        let [rows, columns] = self.window;
        let all = block.grid.columns / columns.max(1);
        if S::STORES_EACH_TILE && self.window == [2, 2] {
            let most = if V == 4 { 1 } else { 2 };
            for (size, tiles, before) in [(most, all / most, 0), (1, all % most, all / most * most)]
            {
                if tiles == 0 {
                    continue;
                }
                let input = before * 2 * block.grid.column_step;
                let tile = TileS8 {
                    input: block.input.get(input..).unwrap_or(&[]),
                    step: block.grid.column_step,
                    count: tiles,
                    runs: block.runs,
                    panels,
                    lane,
                    start: &start.0,
                    sums: &mut *sums,
                };
                let at = before * block.pitch + channels.start;
                let output = block.output.get_mut(at..).unwrap_or(&mut []);
                let (rows, row_step) = (block.grid.rows / 2, block.grid.row_step);
                let (pitch, row_pitch) = (block.pitch, all * block.pitch);
                let channels = &finish;
                macro_rules! windows {
                    ($p:literal, $q:literal) => {
                        simd.call(MaxOutputsOf::<S, $p, $q, V> {
                            tile,
                            rows,
                            row_step,
                            channels,
                            output,
                            pitch,
                            row_pitch,
                        })
                    };
                }
                if size == 1 {
                    windows!(4, 1);
                } else if V < 4 {
                    windows!(8, 2);
                }
            }
            return;
        }
        let largest = block.largest_tile::<S, V>();
        let width = V * S::LANES;
        // As many windows side by side as there is room for the sums of.
        let room = (sums.len() / width / (rows * columns).max(1)).max(1);
        let at_once = all.div_ceil(all.div_ceil(room).max(1)).max(1);
        let mut done = 0;
        for row in (0..block.grid.rows).step_by(rows.max(1)) {
            for first in (0..all).step_by(at_once) {
                let count = at_once.min(all - first);
                let pixels = count * columns;
                for i in 0..rows {
                    let mut input =
                        (row + i) * block.grid.row_step + first * columns * block.grid.column_step;
                    let mut to = i * pixels * width;
                    // Tiles of about one size, those of one pixel more first.
                    let tiles = pixels.div_ceil(largest).max(1);
                    let (size, larger) = (pixels / tiles, pixels % tiles);
                    for (size, tiles) in [(size + 1, larger), (size, tiles - larger)] {
                        if tiles * size == 0 {
                            continue;
                        }
                        let tile = TileS8 {
                            input: block.input.get(input..).unwrap_or(&[]),
                            step: block.grid.column_step,
                            count: tiles,
                            runs: block.runs,
                            panels,
                            lane,
                            start: &start.0,
                            sums: sums.get_mut(to..).unwrap_or(&mut []),
                        };
                        if block.is_short::<S, V>() {
                            simd.short_sums(tile, size * tiles);
                        } else {
                            sums_of::<S, V>(simd, size, tile);
                        }
                        input += size * tiles * block.grid.column_step;
                        to += size * tiles * width;
                    }
                }
                simd.call(MaxSums { sums: &mut *sums, count, rows, columns, width });
                let at = done * block.pitch + channels.start;
                simd.call(StoreS8 {
                    channels: &finish,
                    pixels: count,
                    sums,
                    output: block.output.get_mut(at..).unwrap_or(&mut []),
                    pitch: block.pitch,
                });
                done += count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::keeps_order;
    use netkit_core::quant::Multiplier;

    #[test]
    fn the_order_of_sums_is_kept_by_what_neither_turns_nor_wraps() {
        let keeps = |multiplier, shift| keeps_order(&[Multiplier { multiplier, shift }]);
        assert!(keeps(1 << 30, -8) && keeps(i32::MAX, 0) && keeps(0, -31));
        assert!(!keeps(-1, -8), "the largest sum gives the least output");
        assert!(!keeps(1 << 30, 1), "a sum that is doubled may change its sign");
        assert!(!keeps(1 << 30, -32), "not a multiplier");
    }
}
