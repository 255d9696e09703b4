//! The register tile of the float convolution: some pixels times some vectors of output channels.
//!
//! Accumulators stay in registers over the whole depth; each step loads the channels' weights once and
//! broadcasts one input of each pixel. Every output has one accumulator, started at the bias, to which
//! the products are added in the order of the depth, whatever the tile: so neither the tile's size nor
//! where the weights come from shows in the result.

use crate::generic::activation::apply_simple;
use crate::simd::{Kernel, Simd};
use core::ops::Range;
use netkit_core::op::Activation;
use netkit_core::pack::PANEL;

/// Where the taps of a pixel lie relative to its first: `rows · columns` runs of `len` floats, which
/// together are the depth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub(crate) rows: usize,
    pub(crate) row_pitch: usize,
    pub(crate) columns: usize,
    pub(crate) column_pitch: usize,
    pub(crate) len: usize,
}

impl Runs {
    /// Floats from a pixel's first tap to the end of its last; `None` if no address space holds them.
    fn extent(&self) -> Option<usize> {
        let rows = self.rows.checked_sub(1)?.checked_mul(self.row_pitch)?;
        let columns = self.columns.checked_sub(1)?.checked_mul(self.column_pitch)?;
        rows.checked_add(columns)?.checked_add(self.len)
    }

    /// Number of taps times channels.
    fn depth(&self) -> Option<usize> {
        self.rows.checked_mul(self.columns)?.checked_mul(self.len)
    }
}

/// The pixels of an output block: `width` in a row, each a step apart in the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pixels {
    pub(crate) width: usize,
    pub(crate) column_step: usize,
    pub(crate) row_step: usize,
}

/// What a sum starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a> {
    /// The bias of each channel of the tile.
    Bias(&'a [f32]),
    /// What an earlier part of the depth left in the output.
    Output,
}

/// What happens to a sum.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finish<'a> {
    /// It is stored as it is, to be resumed.
    Store,
    /// A residual of the output's shape is added, then the activation applied if it is a simple one.
    Activate(Option<&'a [f32]>, Activation),
}

/// Consecutive pixels of an output block, and the channels of one tile.
pub(crate) struct Tiles<'a> {
    /// Input rows of the block; pixel (0, 0) of the output starts at its first element.
    pub(crate) input: &'a [f32],
    pub(crate) runs: Runs,
    pub(crate) pixels: Pixels,
    /// First pixel and the one past the last.
    pub(crate) range: Range<usize>,
    /// The part of the depth to sum.
    pub(crate) depth: Range<usize>,
    /// Panels of the tile's channels, each `[depth.len()][16]`.
    pub(crate) panels: &'a [f32],
    /// Floats from one panel to the next.
    pub(crate) panel_pitch: usize,
    pub(crate) start: Start<'a>,
    pub(crate) finish: Finish<'a>,
    /// The block's output, `[pixels][channel_pitch]`.
    pub(crate) output: &'a mut [f32],
    pub(crate) channel_pitch: usize,
    /// The tile's channels: at most `V · LANES`.
    pub(crate) channels: Range<usize>,
}

/// [`Tiles`], `P` pixels times `V` vectors at a time; what remains of the pixels is left to the caller.
pub(crate) struct TilesOf<'a, 'b, const P: usize, const V: usize>(pub(crate) &'b mut Tiles<'a>);

impl<const P: usize, const V: usize> Kernel for TilesOf<'_, '_, P, V> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let t = self.0;
        let lanes = t.channels.len();
        // All that the loads below rely on, once for all tiles.
        let (Some(extent), Some(depth)) = (t.runs.extent(), t.runs.depth()) else { return };
        let width = V * S::LANES;
        let last_panel = t.depth.len().saturating_sub(1).checked_mul(PANEL);
        let panels_end = (width.div_ceil(PANEL) - 1)
            .checked_mul(t.panel_pitch)
            .zip(last_panel)
            .and_then(|(before, rows)| before.checked_add(rows)?.checked_add(width.min(PANEL)));
        let fits = t.depth.start < t.depth.end
            && t.depth.end <= depth
            && lanes <= width
            && panels_end.is_some_and(|end| end <= t.panels.len());
        if !fits || t.pixels.width == 0 || extent > t.input.len() {
            return;
        }
        let last_start = t.input.len() - extent;

        let mut row = t.range.start / t.pixels.width;
        let mut column = t.range.start % t.pixels.width;
        while t.range.end.saturating_sub(t.range.start) >= P {
            let mut offsets = [0; P];
            for offset in &mut offsets {
                *offset = row * t.pixels.row_step + column * t.pixels.column_step;
                if *offset > last_start {
                    return;
                }
                column += 1;
                if column == t.pixels.width {
                    column = 0;
                    row += 1;
                }
            }
            let first = t.range.start;
            let mut sums = start::<S, P, V>(simd, t, first);
            accumulate::<S, P, V>(simd, t, &offsets, &mut sums);
            finish::<S, P, V>(simd, t, first, sums);
            t.range.start += P;
        }
    }
}

/// The channels of pixel `pixel` that the tile writes, from vector `vector` on.
#[inline(always)]
fn position<S: Simd>(t: &Tiles<'_>, pixel: usize, vector: usize) -> Range<usize> {
    let start = pixel * t.channel_pitch + t.channels.start;
    start + vector * S::LANES..start + t.channels.len().min((vector + 1) * S::LANES)
}

#[inline(always)]
fn start<S: Simd, const P: usize, const V: usize>(
    simd: S,
    t: &Tiles<'_>,
    first: usize,
) -> [[S::Vector; V]; P] {
    let mut sums = [[simd.splat(0.0); V]; P];
    match t.start {
        Start::Bias(bias) => {
            let mut row = [simd.splat(0.0); V];
            for (v, to) in row.iter_mut().enumerate() {
                let bias = simd.load(bias.get(v * S::LANES..).unwrap_or(&[]));
                // A bias of −0 becomes 0, as it does where padded taps are skipped instead of added.
                *to = simd.add(bias, simd.splat(0.0));
            }
            sums = [row; P];
        }
        Start::Output => {
            for (p, row) in sums.iter_mut().enumerate() {
                for (v, to) in row.iter_mut().enumerate() {
                    let range = position::<S>(t, first + p, v);
                    *to = simd.load(t.output.get(range).unwrap_or(&[]));
                }
            }
        }
    }
    sums
}

#[inline(always)]
fn accumulate<S: Simd, const P: usize, const V: usize>(
    simd: S,
    t: &Tiles<'_>,
    offsets: &[usize; P],
    sums: &mut [[S::Vector; V]; P],
) {
    let pointers: [*const f32; P] =
        core::array::from_fn(|p| t.input.as_ptr().wrapping_add(offsets[p]));
    let mut weights = t.panels.as_ptr();
    let mut acc = *sums;
    let run = t.runs.len.max(1);
    let mut k = t.depth.start;
    // Where the part of the depth starts: run and position in it.
    let (mut in_run, run_index) = (k % run, k / run);
    let columns = t.runs.columns.max(1);
    let (mut row, mut column) = (run_index / columns, run_index % columns);
    while k < t.depth.end {
        let len = (run - in_run).min(t.depth.end - k);
        let base = row * t.runs.row_pitch + column * t.runs.column_pitch + in_run;
        for offset in base..base + len {
            let mut w = [simd.splat(0.0); V];
            for (v, to) in w.iter_mut().enumerate() {
                let lane = v * S::LANES;
                let from = weights.wrapping_add(lane / PANEL * t.panel_pitch + lane % PANEL);
                // SAFETY: `run` checked that each panel has `depth.len()` rows of PANEL floats, of
                // which this is one; LANES divides PANEL.
                *to = unsafe { simd.load_pointer(from) };
            }
            for p in 0..P {
                // SAFETY: `run` checked that the extent of the runs fits behind each pixel's offset;
                // `offset` lies in a run.
                let x = unsafe { *pointers[p].wrapping_add(offset) };
                let x = simd.splat(x);
                for v in 0..V {
                    acc[p][v] = simd.mul_add(x, w[v], acc[p][v]);
                }
            }
            weights = weights.wrapping_add(PANEL);
        }
        k += len;
        in_run = 0;
        column += 1;
        if column == columns {
            column = 0;
            row += 1;
        }
    }
    *sums = acc;
}

#[inline(always)]
fn finish<S: Simd, const P: usize, const V: usize>(
    simd: S,
    t: &mut Tiles<'_>,
    first: usize,
    mut sums: [[S::Vector; V]; P],
) {
    if let Finish::Activate(residual, activation) = t.finish {
        if let Some(residual) = residual {
            for (p, row) in sums.iter_mut().enumerate() {
                for (v, sum) in row.iter_mut().enumerate() {
                    let range = position::<S>(t, first + p, v);
                    let x = simd.load(residual.get(range).unwrap_or(&[]));
                    *sum = simd.add(*sum, x);
                }
            }
        }
        for row in &mut sums {
            for sum in row {
                *sum = apply_simple(simd, activation, *sum);
            }
        }
    }
    for (p, row) in sums.into_iter().enumerate() {
        for (v, sum) in row.into_iter().enumerate() {
            let range = position::<S>(t, first + p, v);
            if let Some(to) = t.output.get_mut(range) {
                simd.store(to, sum);
            }
        }
    }
}
