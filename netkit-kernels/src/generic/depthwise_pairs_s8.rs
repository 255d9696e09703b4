//! Int8 depthwise convolution in pairs of kernel rows, for instruction sets whose multiplications add
//! two products of 16 bits. Up to four vectors of channels at a time: their pairs of one output row lie
//! in a first-level cache.

use super::block_s8::{Aligned, starts};
use super::depthwise_conv2d_s8::DepthwiseConv2dS8;
use crate::arch::pairs_s8::{
    PAIR_BYTES, PairRows, PairSumsOf, PairTile, PairWeights, PairsS8, Pixels, ROW_STEP, RowSumsOf,
};
use crate::arch::store_s8::{Channels, StoreS8};
use crate::simd_s8::offset_input;
use crate::workspace_s8::{PairsPlanS8, pairs_plan_s8};
use core::ops::Range;
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL, RowGroups};

/// Pixels whose sums are computed at once: more are cut into parts of about one size, each at least half
/// of this.
const ROW_PIXELS: usize = 32;

/// Sums of as many pixels and four vectors of channels.
const ROW_SUMS: usize = ROW_PIXELS * 2 * PANEL;

/// Some channels of a convolution.
struct Part<'a> {
    plan: PairsPlanS8,
    channels: Range<usize>,
    start: &'a [i32],
    /// Pairs of weights.
    weights: &'a [u8],
}

impl DepthwiseConv2dS8<'_> {
    /// Whether [`by_pairs`](Self::by_pairs) knows how.
    #[inline(always)]
    pub(crate) fn has_pairs<S: PairsS8>(&self) -> bool {
        self.conv.multiplier == 1 && self.conv.channels.is_multiple_of(S::LANES)
    }

    /// The convolution, if it [`has_pairs`](Self::has_pairs).
    #[inline(always)]
    pub(crate) fn by_pairs<S: PairsS8>(mut self, simd: S) {
        const { assert!(4 * S::LANES <= 2 * PANEL) };
        // Once: filling it takes as long as a tile.
        let mut sums = Aligned([0; ROW_SUMS]);
        let mut first = 0;
        while first < self.conv.channels {
            let vectors = match (self.conv.channels - first) / S::LANES {
                0 => break,
                1 => 1,
                2 | 3 => 2,
                _ => 4,
            };
            let channels = first..first + vectors * S::LANES;
            match vectors {
                4 => self.part::<S, 4>(simd, channels, &mut sums),
                2 => self.part::<S, 2>(simd, channels, &mut sums),
                _ => self.part::<S, 1>(simd, channels, &mut sums),
            }
            first += vectors * S::LANES;
        }
    }

    /// All rows, `V` vectors of channels.
    #[inline(always)]
    fn part<S: PairsS8, const V: usize>(
        &mut self,
        simd: S,
        channels: Range<usize>,
        sums: &mut Aligned<[i32; ROW_SUMS]>,
    ) {
        let w = self.conv.window;
        let plan = pairs_plan_s8(&self.conv);
        let groups = RowGroups::of(&self.conv);
        let panel_len = groups.panel_len(w.kernel_w);
        let scratch = core::mem::take(&mut self.scratch);
        let (weights, rest) = scratch.split_at_mut(plan.weights_len.min(scratch.len()));
        let (pairs, rest) = rest.split_at_mut(plan.pairs_len.min(rest.len()));

        let lane = channels.start % PANEL;
        let panels = self.panels(simd, channels.start - lane..channels.end, rest);
        let vector_len = w.kernel_w * plan.pairs * S::LANES * PAIR_BYTES;
        let vectors = weights.chunks_exact_mut(vector_len.max(1)).take(plan.phases * V);
        for (i, to) in vectors.enumerate() {
            let (phase, lane) = (i / V, lane + i % V * S::LANES);
            let at = lane / PANEL * panel_len + GROUP_BYTES + lane % PANEL * GROUP;
            let at = at + phase * w.kernel_w * groups.groups * GROUP_BYTES;
            simd.call(PairWeights {
                panel: panels.get(at..).unwrap_or(&[]),
                groups: groups.groups,
                kernel_w: w.kernel_w,
                pairs: plan.pairs,
                to,
            });
        }
        let bias = self.bias.get(channels.clone()).unwrap_or(&[]);
        let mut start = Aligned([0; 4 * PANEL]);
        starts::<S>(panels, panel_len, self.input_zero_point, bias, lane, &mut start.0);
        let multipliers = self.multipliers.get(channels.clone()).unwrap_or(&[]);
        let finish = Channels::<S, V>::new(simd, multipliers, &start.0, w.taps(), self.stage);
        let part =
            Part { plan, channels, start: start.0.get(..V * S::LANES).unwrap_or(&[]), weights };
        let slot_len = plan.columns * V * S::LANES * PAIR_BYTES;
        let mut ready = 0;
        for row in self.rows.clone() {
            let top = row * w.stride_h;
            let first = if plan.shared { top / 2 } else { row * plan.pairs };
            for i in first.max(ready)..first + plan.pairs {
                let slot = i % plan.pairs.max(1) * slot_len;
                let to = pairs.get_mut(slot..slot + slot_len).unwrap_or(&mut []);
                if plan.shared {
                    self.pair(simd, &part, [2 * i, 2 * i + 1], V, to);
                } else {
                    let upper = top + 2 * (i - first) * w.dilation_h;
                    // The row below the last of the kernel meets weights that are 0.
                    self.pair(simd, &part, [upper, upper + w.dilation_h], V, to);
                }
            }
            ready = first + plan.pairs;
            self.row_of_pairs::<S, V>(simd, &part, &finish, row, first, pairs, sums);
        }
        self.scratch = scratch;
    }

    /// Pairs of two rows of padded input.
    #[inline(always)]
    fn pair<S: PairsS8>(
        &self,
        simd: S,
        part: &Part<'_>,
        positions: [usize; 2],
        vectors: usize,
        to: &mut [u8],
    ) {
        let (w, channels) = (&self.conv.window, self.conv.channels);
        let padding = [self.input_zero_point as i8; 4 * PANEL];
        let padding = Pixels { values: &padding, step: 0 };
        let source = |position: usize| {
            let row = position.checked_sub(w.pad_top).filter(|&row| row < w.in_h);
            let at = row.map(|row| row * w.in_w * channels + part.channels.start);
            let values = at.and_then(|at| self.input.get(at..));
            values.map_or(padding, |values| Pixels { values, step: channels })
        };
        let pixel = S::LANES * PAIR_BYTES;
        let left = w.pad_left.min(part.plan.columns);
        let count = w.in_w.min(part.plan.columns - left);
        let pitch = part.plan.columns * pixel;
        let padding = [offset_input::<S>(self.input_zero_point as i8), 0];
        for line in to.chunks_exact_mut(pitch.max(1)) {
            let before = line.get_mut(..left * pixel).unwrap_or(&mut []);
            before.as_chunks_mut().0.fill(padding);
            let after = line.get_mut((left + count) * pixel..).unwrap_or(&mut []);
            after.as_chunks_mut().0.fill(padding);
        }
        let to = to.get_mut(left * pixel..).unwrap_or(&mut []);
        let [upper, lower] = positions;
        let rows = [source(upper), source(lower)];
        simd.call(PairRows { rows, count, vectors, pitch, to });
    }

    /// One output row.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "one step of a longer function")]
    fn row_of_pairs<S: PairsS8, const V: usize>(
        &mut self,
        simd: S,
        part: &Part<'_>,
        finish: &Channels<S, V>,
        row: usize,
        first_pair: usize,
        pairs: &[u8],
        sums: &mut Aligned<[i32; ROW_SUMS]>,
    ) {
        let w = &self.conv.window;
        let column = S::LANES * PAIR_BYTES;
        let plan = &part.plan;
        let phase = if plan.phases > 1 { row % 2 } else { 0 };
        let weights = phase * V * w.kernel_w * plan.pairs * column;
        let kernel = (w.kernel_w, plan.pairs, w.stride_w);
        let by_rows = matches!(kernel, (3, 2, 1 | 2) | (5, 3, 1 | 2))
            && w.dilation_w == 1
            && w.out_w >= ROW_STEP;
        let largest = if by_rows { ROW_PIXELS } else { S::PAIR_PIXELS };
        let mut pixel = 0;
        while pixel < w.out_w {
            let left = w.out_w - pixel;
            let size = left.div_ceil(left.div_ceil(largest).max(1));
            let tile = PairTile {
                input: pairs,
                at: pixel * w.stride_w * column,
                slots: plan.pairs,
                first_slot: first_pair % plan.pairs.max(1),
                slot_pitch: V * plan.columns * column,
                vector_pitch: plan.columns * column,
                dilation: w.dilation_w,
                stride: w.stride_w,
                kernel_w: w.kernel_w,
                pairs: plan.pairs,
                weights: part.weights.get(weights..).unwrap_or(&[]),
                start: part.start,
                sums: &mut sums.0,
            };
            match kernel {
                (3, 2, 1) if by_rows => simd.call(RowSumsOf::<3, 2, 1> { tile, pixels: size }),
                (3, 2, 2) if by_rows => simd.call(RowSumsOf::<3, 2, 2> { tile, pixels: size }),
                (5, 3, 1) if by_rows => simd.call(RowSumsOf::<5, 3, 1> { tile, pixels: size }),
                (5, 3, 2) if by_rows => simd.call(RowSumsOf::<5, 3, 2> { tile, pixels: size }),
                _ => sums_of(simd, size, tile),
            }
            let at = ((row - self.rows.start) * w.out_w + pixel) * self.conv.channels;
            simd.call(StoreS8 {
                channels: finish,
                pixels: size,
                sums: &sums.0,
                output: self.output.get_mut(at + part.channels.start..).unwrap_or(&mut []),
                pitch: self.conv.channels,
            });
            pixel += size;
        }
    }
}

/// Runs the tile of `pixels` pixels.
#[inline(always)]
fn sums_of<S: PairsS8>(simd: S, pixels: usize, tile: PairTile<'_>) {
    macro_rules! sizes {
        ($($p:literal)+) => {
            match pixels {
                $($p if const { $p <= S::PAIR_PIXELS } => {
                    simd.call(PairSumsOf::<$p>(tile));
                })+
                _ => debug_assert!(false, "no tile of {pixels} pixels"),
            }
        };
    }
    sizes!(1 2 3 4 5 6 7 8);
}
