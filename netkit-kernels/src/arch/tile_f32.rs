//! The register tile of the float convolution: some pixels times some vectors of output channels.
//!
//! Accumulators stay in registers over the whole depth; each step loads the channels' weights once and
//! broadcasts one input of each pixel. Every output has one accumulator, started at the bias, to which
//! the products are added in the order of the depth, whatever the tile: so neither the tile's size nor
//! where the weights come from shows in the result.
//!
//! What is around the depth is here twice, for the same bits: x86-64, where programs hold the tiles of several sets, shares it
//! between sizes of tiles; elsewhere each size has its own, which is fewer instructions.

#[cfg(not(target_arch = "x86_64"))]
mod one_set;
#[cfg(target_arch = "x86_64")]
mod several_sets;

use super::tile_s8::unrolled;
use crate::simd::Simd;
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

/// Weights that are wanted soon, in panels that lie as the tile's own: a hint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next<'a> {
    /// First row of the first panel.
    pub(crate) panels: &'a [f32],
    pub(crate) rows: usize,
    /// Rows to ask for at each [`STEPS`] steps of the depth.
    pub(crate) at_once: usize,
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
    /// What is read next, if it is known: it is asked for beforehand.
    pub(crate) next: Next<'a>,
    pub(crate) start: Start<'a>,
    pub(crate) finish: Finish<'a>,
    /// The block's output, `[pixels][channel_pitch]`.
    pub(crate) output: &'a mut [f32],
    pub(crate) channel_pitch: usize,
    /// The tile's channels: at most `V · LANES`.
    pub(crate) channels: Range<usize>,
}

/// [`Tiles`], `P` pixels times `V` vectors at a time; what remains of the pixels is left to the caller.
///
/// With `LISTED`, the taps' offsets are listed beforehand: where runs are short, as in a first layer, one
/// loop over the list beats loops of a few turns each. Such tiles take a depth of at most
/// [`LISTED_DEPTH`].
pub(crate) struct TilesOf<'a, 'b, const P: usize, const V: usize, const LISTED: bool>(
    pub(crate) &'b mut Tiles<'a>,
);

/// The greatest depth whose taps can be listed.
pub(crate) const LISTED_DEPTH: usize = 64;

/// Steps of the depth at a turn, for tiles of one pixel or at least so many: 8 instead of 1 gained 1 to 3 % on Zen 3.
pub(crate) const STEPS: usize = 8;
const UNROLLED_PIXELS: usize = 4;

/// Floats of the widest tile's channels.
const WIDTH: usize = 3 * PANEL;

/// The part of the depth that a tile sums.
struct Depth {
    panels: *const f32,
    panel_pitch: usize,
    runs: Runs,
    /// Run of taps, and position in it, at which it starts: its row and column.
    row: usize,
    column: usize,
    within: usize,
    len: usize,
}

impl Depth {
    #[inline(always)]
    fn of(t: &Tiles<'_>) -> Self {
        let (index, within) = divide(t.depth.start, t.runs.len);
        let (row, column) = divide(index, t.runs.columns);
        let (panels, panel_pitch) = (t.panels.as_ptr(), t.panel_pitch);
        Self { panels, panel_pitch, runs: t.runs, row, column, within, len: t.depth.len() }
    }
}

/// All that the unchecked loads and stores below rely on.
#[inline(always)]
fn is_sound(t: &Tiles<'_>, width: usize, lanes: usize) -> bool {
    let check = || {
        // Weights: of each panel all rows, of the last row as far as the tile is wide.
        let rows = t.depth.len().checked_sub(1)?.checked_mul(PANEL)?;
        let panels = (width.div_ceil(PANEL) - 1).checked_mul(t.panel_pitch)?;
        let weights = panels.checked_add(rows)?.checked_add(width.min(PANEL))?;
        // Input: the last tap of the last pixel of the last row.
        let last_row = t.range.end.checked_sub(1)?.checked_div(t.pixels.width)?;
        let last_row = last_row.checked_mul(t.pixels.row_step)?;
        let last_column = (t.pixels.width - 1).checked_mul(t.pixels.column_step)?;
        let input = last_row.checked_add(last_column)?.checked_add(t.runs.extent()?)?;
        // Output: the tile's channels of the last pixel.
        let output = (t.range.end - 1).checked_mul(t.channel_pitch)?.checked_add(t.channels.end)?;
        let residual = match t.finish {
            Finish::Activate(Some(residual), _) => residual.len(),
            _ => output,
        };
        let holds = t.depth.end <= t.runs.depth()?
            && t.channels.start <= t.channels.end
            && t.channels.len() <= width
            && t.channels.len() > width.saturating_sub(lanes)
            && weights <= t.panels.len()
            && input <= t.input.len()
            && output <= t.output.len()
            && output <= residual;
        Some(holds)
    };
    check().unwrap_or(false)
}

/// Quotient and rest. A divisor of 0, which no sound tile has, gives no panic but 0 and 0.
#[inline(always)]
fn divide(dividend: usize, divisor: usize) -> (usize, usize) {
    match divisor {
        0 => (0, 0),
        divisor => (dividend / divisor, dividend % divisor),
    }
}

/// One step of the depth: `weights` is a row of the first panel, `offset` a tap.
///
/// # Safety
/// The row exists in every panel of the tile, and the tap for every pixel: what [`is_sound`] checks for
/// rows of the depth and the taps of its runs.
#[inline(always)]
pub(crate) unsafe fn step<S: Simd, const P: usize, const V: usize>(
    simd: S,
    weights: *const f32,
    panel_pitch: usize,
    pixels: &[*const f32; P],
    offset: usize,
    sums: &mut [[S::Vector; V]; P],
) {
    let mut w = [simd.splat(0.0); V];
    for (v, w) in w.iter_mut().enumerate() {
        let lane = v * S::LANES;
        let from = weights.wrapping_add(lane / PANEL * panel_pitch + lane % PANEL);
        // SAFETY: the caller vouches for the row in each panel; LANES divides PANEL.
        *w = unsafe { simd.load_pointer(from) };
    }
    if S::TAPS_AT_ONCE > 1 {
        // Loops of both kinds of steps are too much for the compiler to unroll both.
        unrolled!(p < P {
            // SAFETY: the caller vouches for the tap.
            let x = simd.splat(unsafe { *pixels[p].wrapping_add(offset) });
            unrolled!(v < V <= 4 {
                sums[p][v] = simd.mul_add(x, w[v], sums[p][v]);
            });
        });
        return;
    }
    for (pixel, sums) in pixels.iter().zip(sums) {
        // SAFETY: the caller vouches for the tap.
        unsafe { simd.mul_add_broadcast(*pixel, offset, &w, sums) };
    }
}

/// Adds the products of the depth, run by run.
///
/// # Safety
/// `depth` is that of tiles that [are sound](is_sound), and `pixels` are some of theirs.
#[inline(always)]
unsafe fn accumulate<S: Simd, const P: usize, const V: usize>(
    simd: S,
    depth: &Depth,
    pixels: &[*const f32; P],
    next: Next<'_>,
    asked: &mut usize,
    sums: &mut [[S::Vector; V]; P],
) {
    let runs = &depth.runs;
    let mut weights = depth.panels;
    let mut acc = *sums;
    let (mut within, mut row, mut column) = (depth.within, depth.row, depth.column);
    let mut left = depth.len;
    while left > 0 {
        let len = (runs.len - within).min(left);
        let first = row * runs.row_pitch + column * runs.column_pitch + within;
        let (mut offset, end) = (first, first + len);
        while S::TAPS_AT_ONCE > 1 && end - offset >= S::TAPS_AT_ONCE {
            // SAFETY: as below, of as many steps.
            unsafe { simd.mul_add_taps(weights, depth.panel_pitch, pixels, offset, &mut acc) };
            weights = weights.wrapping_add(S::TAPS_AT_ONCE * PANEL);
            offset += S::TAPS_AT_ONCE;
        }
        // Several steps at a turn: the end of a loop of fewer turns is foreseen.
        let unrolled = S::TAPS_AT_ONCE == 1 && !S::FEW_TILES && (P >= UNROLLED_PIXELS || P == 1);
        while unrolled && end - offset >= STEPS {
            for ahead in 0..STEPS {
                let weights = weights.wrapping_add(ahead * PANEL);
                // SAFETY: the caller vouches for the tiles; `weights` has advanced one row for each step of the depth, and
                // `offset + ahead` is one of the taps of run (row, column).
                unsafe { step(simd, weights, depth.panel_pitch, pixels, offset + ahead, &mut acc) };
            }
            weights = weights.wrapping_add(STEPS * PANEL);
            offset += STEPS;
            if P >= UNROLLED_PIXELS && *asked < next.rows {
                for _ in 0..next.at_once {
                    let row = next.panels.as_ptr().wrapping_add(*asked * PANEL);
                    for panel in 0..(V * S::LANES).div_ceil(PANEL) {
                        simd.prefetch(row.wrapping_add(panel * depth.panel_pitch));
                    }
                    *asked += 1;
                }
            }
        }
        for offset in offset..end {
            // SAFETY: as above.
            unsafe { step(simd, weights, depth.panel_pitch, pixels, offset, &mut acc) };
            weights = weights.wrapping_add(PANEL);
        }
        left -= len;
        within = 0;
        column += 1;
        if column == runs.columns {
            column = 0;
            row += 1;
        }
    }
    *sums = acc;
}

/// [`accumulate`], the taps being listed.
///
/// # Safety
/// As there, and `list` holds the taps of the depth, no more than it has.
#[inline(always)]
unsafe fn accumulate_listed<S: Simd, const P: usize, const V: usize>(
    simd: S,
    depth: &Depth,
    pixels: &[*const f32; P],
    list: &[usize],
    sums: &mut [[S::Vector; V]; P],
) {
    let mut weights = depth.panels;
    let mut acc = *sums;
    for &offset in list {
        // SAFETY: the caller vouches for the list; `weights` has advanced one row for each step of the depth.
        unsafe { step(simd, weights, depth.panel_pitch, pixels, offset, &mut acc) };
        weights = weights.wrapping_add(PANEL);
    }
    *sums = acc;
}

#[inline(always)]
fn map<T: Copy, const P: usize, const V: usize>(sums: &mut [[T; V]; P], f: impl Fn(T) -> T) {
    for row in sums {
        for sum in row {
            *sum = f(*sum);
        }
    }
}
