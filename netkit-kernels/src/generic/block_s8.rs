//! The matrix product inside convolutions and dense layers: the pixels of a block of input bytes times
//! panels of weights.

use crate::arch::short_s8::ShortOutputsOf;
use crate::arch::store_s8::{Channels, StoreS8};
use crate::arch::tile_s8::{GroupRuns, OutputsOf, SumsOf, TileS8};
use crate::arch::transpose::PackPanelS8;
use crate::filter_s8::FilterS8;
use crate::simd_s8::SimdS8;
use crate::workspace_s8::PANELS_AT_ONCE;
use core::ops::Range;
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL, Runs};
use netkit_core::quant::{Multiplier, OutputStage};

/// Sums that wait to be stored: those of four of the largest tiles of any instruction set.
pub(super) const SUMS: usize = 4 * 14 * 2 * PANEL;

/// Pixels, such as the one of a dense layer, for which less room will do.
const FEW_PIXELS: usize = 2;

/// Pixels whose sums are computed at once where there are few taps.
const SHORT_PIXELS: usize = 64;

/// On a cache line of its own.
#[repr(align(64))]
pub(crate) struct Aligned<T>(pub(crate) T);

/// Rows of pixels in a block of input bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PixelGrid {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Bytes from one row of pixels to the next.
    pub(crate) row_step: usize,
    /// Bytes from one pixel to the next.
    pub(crate) column_step: usize,
}

impl PixelGrid {
    /// As one row, if the last pixel of each row is a step away from the first of the next.
    #[inline(always)]
    pub(super) fn joined(self) -> Self {
        if self.columns.checked_mul(self.column_step) == Some(self.row_step) {
            Self { rows: 1, columns: self.rows * self.columns, ..self }
        } else {
            self
        }
    }
}

/// Pixels whose inputs lie in `input`, and what becomes of their sums.
pub(crate) struct BlockS8<'a> {
    /// Inputs, offset to be unsigned; pixel (0, 0) starts at the first. What lies behind a run
    /// is multiplied with 0.
    pub(crate) input: &'a [u8],
    pub(crate) runs: GroupRuns,
    pub(crate) grid: PixelGrid,
    pub(crate) input_zero_point: i32,
    /// Of all channels.
    pub(crate) bias: &'a [i32],
    /// Of all channels.
    pub(crate) multipliers: &'a [Multiplier],
    pub(crate) stage: OutputStage,
    /// `[pixels][pitch]`
    pub(crate) output: &'a mut [i8],
    /// Channels of an output pixel.
    pub(crate) pitch: usize,
}

/// What is computed some channels at a time, from the panels of their weights.
pub(super) trait ByPanels {
    /// Pixels whose sums wait to be stored, if there is room for them.
    fn pixels<S: SimdS8>(&self) -> usize;

    /// Bytes from one panel to the next.
    fn panel_stride(&self) -> usize;

    /// How many vectors of channels a tile has where `left` are left: 1, 2 or 4.
    fn vectors<S: SimdS8>(&self, left: usize) -> usize;

    /// All pixels, `V` vectors of channels; `panels` starts with the panel of the first.
    fn tiles<S: SimdS8, const V: usize>(
        &mut self,
        simd: S,
        panels: &[i8],
        channels: Range<usize>,
        sums: &mut [i32],
    );

    /// Computes `channels` of all pixels. `panels` starts with the panel of the first, a multiple of 16.
    #[inline(always)]
    fn compute<S: SimdS8>(&mut self, simd: S, panels: &[i8], channels: Range<usize>) {
        // Once, and no more than is used: filling it takes as long as a tile.
        let (mut few, mut many);
        let sums: &mut [i32] = if self.pixels::<S>() <= FEW_PIXELS {
            few = Aligned([0; FEW_PIXELS * 4 * PANEL]);
            &mut few.0
        } else {
            many = Aligned([0; SUMS]);
            &mut many.0
        };
        let mut channel = channels.start;
        while channel < channels.end {
            let vectors = self.vectors::<S>((channels.end - channel).div_ceil(S::LANES));
            let here = channel..(channel + vectors * S::LANES).min(channels.end);
            let panel = (channel - channels.start) / PANEL * self.panel_stride();
            let panels = panels.get(panel..).unwrap_or(&[]);
            channel = here.end;
            match vectors {
                4 => self.tiles::<S, 4>(simd, panels, here, sums),
                2 => self.tiles::<S, 2>(simd, panels, here, sums),
                _ => self.tiles::<S, 1>(simd, panels, here, sums),
            }
        }
    }

    /// Computes all channels, from panels or from weights in file order: of these a few panels are
    /// packed into `room`, used for all pixels, and overwritten by the next.
    #[inline(always)]
    fn filter<S: SimdS8>(
        &mut self,
        simd: S,
        runs: Runs,
        filter: FilterS8<'_>,
        room: &mut [u8],
        channels: usize,
    ) {
        match filter {
            #[cfg(not(netkit_micro))]
            FilterS8::Packed(panels) => self.compute(simd, panels, 0..channels),
            FilterS8::File(weights) => {
                let panels: &mut [i8] = bytemuck::cast_slice_mut(room);
                let at_once = PANELS_AT_ONCE * PANEL;
                for first in (0..channels).step_by(at_once) {
                    let here = first..(first + at_once).min(channels);
                    let to = panels.chunks_exact_mut(runs.panel_len());
                    for (first, panel) in here.clone().step_by(PANEL).zip(to) {
                        simd.call(PackPanelS8 { runs, channels: first..channels, weights, panel });
                    }
                    self.compute(simd, panels, here);
                }
            }
        }
    }
}

impl BlockS8<'_> {
    /// Whether there are so few taps that whole rows are computed at once.
    #[inline(always)]
    pub(super) fn is_short<S: SimdS8, const V: usize>(&self) -> bool {
        V == 1 && self.runs.all_groups() <= S::SHORT_GROUPS
    }

    /// Pixels of the largest tile of `V` vectors of channels.
    #[inline(always)]
    pub(super) fn largest_tile<S: SimdS8, const V: usize>(&self) -> usize {
        let largest = match V {
            1 if self.is_short::<S, V>() => SHORT_PIXELS,
            4 => S::TILE_PIXELS[2],
            _ => S::TILE_PIXELS[V - 1],
        };
        largest.max(1)
    }

    /// What the sums of `channels` start from, and what becomes of them.
    #[inline(always)]
    pub(super) fn ends<S: SimdS8, const V: usize>(
        &self,
        simd: S,
        panels: &[i8],
        channels: &Range<usize>,
        start: &mut [i32],
    ) -> Channels<S, V> {
        let lane = channels.start % PANEL;
        let bias = self.bias.get(channels.clone()).unwrap_or(&[]);
        starts::<S>(panels, self.runs.panel_stride(), self.input_zero_point, bias, lane, start);
        let multipliers = self.multipliers.get(channels.clone()).unwrap_or(&[]);
        Channels::new(simd, multipliers, start, self.runs.taps(), self.stage)
    }
}

impl ByPanels for BlockS8<'_> {
    #[inline(always)]
    fn pixels<S: SimdS8>(&self) -> usize {
        self.grid.rows.saturating_mul(self.grid.columns)
    }

    #[inline(always)]
    fn panel_stride(&self) -> usize {
        self.runs.panel_stride()
    }

    #[inline(always)]
    fn vectors<S: SimdS8>(&self, left: usize) -> usize {
        let [one, two, four] = S::TILE_PIXELS;
        match left {
            0 | 1 => 1,
            // Wide tiles for short rows: as many independent sums, fewer tiles.
            4.. if self.grid.columns <= four => 4,
            // Two vectors for more sums in registers, or for a row that one cannot fill them with.
            _ if 2 * two > one || (two > 0 && self.grid.columns <= two) => 2,
            _ => 1,
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
        let lane = channels.start % PANEL;
        let mut start = Aligned([0; 4 * PANEL]);
        let finish = self.ends::<S, V>(simd, panels, &channels, &mut start.0);
        let short = self.is_short::<S, V>();
        let largest = self.largest_tile::<S, V>();
        let width = V * S::LANES;
        let (mut waiting, mut stored) = (0, 0);
        // Tiles of about one size rather than a small one at the end: first those of one pixel more.
        let columns = self.grid.columns;
        let tiles = columns.div_ceil(largest).max(1);
        let (size, larger) = (columns / tiles, columns % tiles);
        if V < 4 && self.runs.all_groups() <= S::REGISTER_GROUPS && finish.are_simple() {
            let tile = TileS8 {
                input: self.input,
                step: self.grid.column_step,
                count: columns,
                runs: self.runs,
                panels,
                lane,
                start: &start.0,
                sums: &mut [],
            };
            let output = self.output.get_mut(channels.start..).unwrap_or(&mut []);
            if self.grid.short_outputs::<S, V>(simd, tile, &finish, output, self.pitch) {
                return;
            }
        }
        if S::STORES_EACH_TILE && !short {
            let mut column = 0;
            for (size, count) in [(size + 1, larger), (size, tiles - larger)] {
                let tile = TileS8 {
                    input: self.input.get(column * self.grid.column_step..).unwrap_or(&[]),
                    step: self.grid.column_step,
                    count: if size > 0 { count } else { 0 },
                    runs: self.runs,
                    panels,
                    lane,
                    start: &start.0,
                    sums: &mut *sums,
                };
                let at = column * self.pitch + channels.start;
                let output = self.output.get_mut(at..).unwrap_or(&mut []);
                self.grid.outputs::<S, V>(simd, size, tile, &finish, output, self.pitch);
                column += size * count;
            }
            return;
        }
        for row in 0..self.grid.rows {
            let mut column = 0;
            for (size, count) in [(size + 1, larger), (size, tiles - larger)] {
                let mut left = if size > 0 { count } else { 0 };
                while left > 0 {
                    let room = (sums.len() / width).saturating_sub(waiting) / size.max(1);
                    let now = left.min(room).max(1);
                    let input = row * self.grid.row_step + column * self.grid.column_step;
                    let tile = TileS8 {
                        input: self.input.get(input..).unwrap_or(&[]),
                        step: self.grid.column_step,
                        count: now,
                        runs: self.runs,
                        panels,
                        lane,
                        start: &start.0,
                        sums: sums.get_mut(waiting * width..).unwrap_or(&mut []),
                    };
                    if short {
                        simd.short_sums(tile, size * now);
                    } else {
                        sums_of::<S, V>(simd, size, tile);
                    }
                    waiting += size * now;
                    column += size * now;
                    left -= now;
                    let done = row + 1 == self.grid.rows && column == columns;
                    if done || (waiting + largest) * width > sums.len() {
                        let at = stored * self.pitch + channels.start;
                        simd.call(StoreS8 {
                            channels: &finish,
                            pixels: waiting,
                            sums,
                            output: self.output.get_mut(at..).unwrap_or(&mut []),
                            pitch: self.pitch,
                        });
                        stored += waiting;
                        waiting = 0;
                    }
                }
            }
        }
    }
}

/// What sums start from: the bias, less what offset and zero point of the input add. Wraps as sums do:
/// only their final value is known to fit.
///
/// `panels` are those of the channels of `bias`, `pitch` bytes from one to the next, and the first
/// channel's lane is `lane`.
#[inline(always)]
pub(crate) fn starts<S: SimdS8>(
    panels: &[i8],
    pitch: usize,
    input_zero_point: i32,
    bias: &[i32],
    lane: usize,
    start: &mut [i32],
) {
    let offset = input_zero_point.wrapping_add(S::INPUT_OFFSET);
    let mut lane = lane;
    let (mut bias, mut start) = (bias, start);
    for panel in panels.chunks(pitch.max(1)) {
        let sums = panel.get(..GROUP_BYTES).unwrap_or(&[]).as_chunks::<GROUP>().0;
        let sums = sums.get(lane..).unwrap_or(&[]);
        let len = sums.len().min(bias.len()).min(start.len());
        // A whole panel, without counting.
        let whole = start.first_chunk_mut::<PANEL>().zip(sums.first_chunk::<PANEL>());
        if let Some(((start, sums), bias)) = whole.zip(bias.first_chunk::<PANEL>()) {
            // A copy, which is known to be apart from what is stored: vectors then do it.
            let mut sums = sums.map(panel_sum);
            for (to, &bias) in sums.iter_mut().zip(bias) {
                *to = bias.wrapping_sub(offset.wrapping_mul(*to));
            }
            *start = sums;
        } else {
            for ((to, &sum), &bias) in start.iter_mut().zip(sums).zip(bias) {
                *to = bias.wrapping_sub(offset.wrapping_mul(panel_sum(sum)));
            }
        }
        bias = bias.get(len..).unwrap_or(&[]);
        start = start.get_mut(len..).unwrap_or(&mut []);
        if bias.is_empty() {
            break;
        }
        lane = 0;
    }
}

/// One of the sums in front of a panel.
#[inline(always)]
const fn panel_sum([a, b, c, d]: [i8; GROUP]) -> i32 {
    i32::from_le_bytes([a as u8, b as u8, c as u8, d as u8])
}

/// `body` with the constant `$p` equal to `pixels`, one of the sizes of tiles.
macro_rules! tile_of {
    ($p:ident = $pixels:expr, $body:expr) => {
        tile_of!($p = $pixels, $body, 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
    };
    ($p:ident = $pixels:expr, $body:expr, $($size:literal)+) => {
        match $pixels {
            $($size if const { $size <= S::TILE_PIXELS[if V == 4 { 2 } else { V - 1 }] } => {
                const $p: usize = $size;
                $body
            })+
            pixels => debug_assert!(false, "no tile of {pixels} pixels"),
        }
    };
}

/// Runs tiles of `pixels` pixels.
#[inline(always)]
pub(super) fn sums_of<S: SimdS8, const V: usize>(simd: S, pixels: usize, tile: TileS8<'_>) {
    tile_of!(P = pixels, simd.call(SumsOf::<P, V>(tile)));
}

impl PixelGrid {
    /// Stores the outputs of all pixels, `tile` being the first row of them, if weights of so few groups as these can stay in
    /// registers.
    #[inline(always)]
    fn short_outputs<S: SimdS8, const V: usize>(
        self,
        simd: S,
        tile: TileS8<'_>,
        channels: &Channels<S, V>,
        output: &mut [i8],
        pitch: usize,
    ) -> bool {
        let (rows, row_step, row_pitch) = (self.rows, self.row_step, self.columns * pitch);
        macro_rules! run {
            ($($groups:literal)+) => {
                match tile.runs.all_groups() {
                    $($groups if const { $groups <= S::REGISTER_GROUPS } => {
                        simd.call(ShortOutputsOf::<S, $groups, V> {
                            tile,
                            rows,
                            row_step,
                            channels,
                            output,
                            pitch,
                            row_pitch,
                        });
                        true
                    })+
                    _ => false,
                }
            };
        }
        run!(1 2 3 4)
    }

    /// Runs tiles of `pixels` pixels, `tile` being the first row of them, and stores their outputs.
    #[inline(always)]
    fn outputs<S: SimdS8, const V: usize>(
        self,
        simd: S,
        pixels: usize,
        tile: TileS8<'_>,
        channels: &Channels<S, V>,
        output: &mut [i8],
        pitch: usize,
    ) {
        if tile.count == 0 {
            return;
        }
        let (rows, row_step, row_pitch) = (self.rows, self.row_step, self.columns * pitch);
        tile_of!(
            P = pixels,
            simd.call(OutputsOf::<S, P, V> {
                tile,
                rows,
                row_step,
                channels,
                output,
                pitch,
                row_pitch
            })
        );
    }
}
