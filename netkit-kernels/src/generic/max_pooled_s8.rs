//! Int8 convolution whose map is pooled before it is one: of the sums under a window the largest becomes the output, and the
//! others are never requantized, stored or read.

use super::block_s8::{Aligned, BlockS8, ByPanels, SUMS, sums_of};
use super::conv2d_s8::{Blocks, Conv2dS8};
use crate::arch::max_sums_s8::{MaxOutputsOf, MaxSums};
use crate::arch::store_s8::StoreS8;
use crate::arch::tile_s8::TileS8;
use crate::filter_s8::FilterS8;
use crate::simd_s8::{KernelS8, SimdS8};
use crate::workspace::{LARGEST_POOL, max_pooled_plan_s8};
use core::ops::Range;
use netkit_core::op::Pool2d;
use netkit_core::pack::PANEL;
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
        let (p, out_channels) = (pool.window, call.conv.out_channels);
        let blocks = Blocks::<S>::of(&call.conv, plan, call.input, call.input_zero_point);
        let (bytes, panels) = call.scratch.split_at_mut(blocks.len().min(call.scratch.len()));
        let block_rows = (plan.block_rows / p.kernel_h.max(1)).max(1);
        let mut output = call.output;
        let mut row = call.rows.start;
        while row < call.rows.end {
            let end = (row + block_rows).min(call.rows.end);
            let rows = row * p.kernel_h..end * p.kernel_h;
            let count = rows.len();
            let here = ((end - row) * p.out_w * out_channels).min(output.len());
            let (now, rest) = output.split_at_mut(here);
            output = rest;
            let block = BlockS8 {
                input: blocks.copied(rows, bytes),
                runs: blocks.runs,
                grid: blocks.grid(count, p.out_w * p.kernel_w),
                input_zero_point: call.input_zero_point,
                bias: call.bias,
                multipliers: call.multipliers,
                stage: call.stage,
                output: now,
                pitch: out_channels,
            };
            let mut block = MaxPooledBlock { block, window: [p.kernel_h, p.kernel_w] };
            block.filter(simd, blocks.packed_runs, call.filter, panels, out_channels);
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
}

impl MaxPooledBlock<'_> {
    /// Whether sums stay in registers until the largest of each window are found.
    #[inline(always)]
    fn in_registers<S: SimdS8>(&self) -> bool {
        S::STORES_EACH_TILE && self.window == [2, 2]
    }
}

impl ByPanels for MaxPooledBlock<'_> {
    #[inline(always)]
    fn pixels<S: SimdS8>(&self) -> usize {
        const { assert!(LARGEST_POOL * 4 * PANEL <= SUMS) };
        if self.in_registers::<S>() { 0 } else { self.block.pixels::<S>() }
    }

    #[inline(always)]
    fn panel_stride(&self) -> usize {
        self.block.panel_stride()
    }

    #[inline(always)]
    fn vectors<S: SimdS8>(&self, left: usize) -> usize {
        match left {
            // A tile has the pixels of a window, so it takes many channels to fill the registers with sums.
            4.. if self.in_registers::<S>() => 4,
            2.. if self.in_registers::<S>() => 2,
            _ => self.block.vectors::<S>(left),
        }
    }

    #[inline(always)]
    fn tiles<S: SimdS8, const V: usize>(
        &mut self,
        simd: S,
        panels: &[i8],
        channels: Range<usize>,
        sums: &mut [i32],
    ) {
        let in_registers = self.in_registers::<S>();
        let block = &mut self.block;
        let lane = channels.start % PANEL;
        let mut start = Aligned([0; 4 * PANEL]);
        let finish = block.ends::<S, V>(simd, panels, &channels, &mut start.0);
        let [rows, columns] = self.window;
        let all = block.grid.columns / columns.max(1);
        // The constant keeps kernels of other sets from being compiled.
        if const { S::STORES_EACH_TILE } && in_registers {
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
                } else if const { V < 4 } {
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
