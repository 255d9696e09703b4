//! The register tile of the float convolution: some pixels times some vectors of output channels.
//!
//! Accumulators stay in registers over the whole depth; each step loads the channels' weights once and
//! broadcasts one input of each pixel. Every output has one accumulator, started at the bias, to which
//! the products are added in the order of the depth, whatever the tile: so neither the tile's size nor
//! where the weights come from shows in the result.

use super::tile_s8::unrolled;
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

impl<const P: usize, const V: usize, const LISTED: bool> Kernel for TilesOf<'_, '_, P, V, LISTED> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        const { assert!(V * S::LANES <= WIDTH) };
        let t = self.0;
        if !is_sound::<S, V>(t) {
            return;
        }
        let mut list = [0; LISTED_DEPTH];
        if LISTED {
            if t.depth.len() > LISTED_DEPTH {
                return;
            }
            for (k, offset) in t.depth.clone().zip(&mut list) {
                let (run, within) = divide(k, t.runs.len);
                let (row, column) = divide(run, t.runs.columns);
                *offset = row * t.runs.row_pitch + column * t.runs.column_pitch + within;
            }
        }
        let list = list.get(..t.depth.len()).unwrap_or(&list);
        // Channels of the last vector.
        let last = t.channels.len().saturating_sub((V - 1) * S::LANES);
        let mut bias = [0.0f32; WIDTH];
        if let Start::Bias(from) = t.start {
            for (to, &from) in bias.iter_mut().zip(from).take(t.channels.len()) {
                // A bias of −0 becomes 0, as it does where padded taps are skipped instead of added.
                *to = from + 0.0;
            }
        }

        let (row, mut column) = divide(t.range.start, t.pixels.width);
        // What the loop reads is copied out of the borrow: stores through pointers might change it for all the compiler
        // knows.
        let Pixels { width, column_step, row_step } = t.pixels;
        let (input, channel_pitch) = (t.input.as_ptr(), t.channel_pitch);
        let mut row_start = row * row_step;
        let mut offset = row_start + column * column_step;
        let mut first = t.range.start * channel_pitch + t.channels.start;
        let mut left = t.range.end.saturating_sub(t.range.start);
        let (start, finish) = (t.start, t.finish);
        let output = t.output.as_mut_ptr();
        let depth = Depth::of(t);
        // Tiles before these have asked for their share.
        let next = t.next;
        let mut asked = t.range.start / P * (t.depth.len() / STEPS) * next.at_once;
        while left >= P {
            let mut pixels = [input.wrapping_add(offset); P];
            if column + P < width {
                // All in one row, and the next tile starts there too: no need to look for its end at each.
                for (p, pixel) in pixels.iter_mut().enumerate() {
                    *pixel = pixel.wrapping_add(p * column_step);
                }
                column += P;
                offset += P * column_step;
            } else {
                for pixel in &mut pixels {
                    *pixel = input.wrapping_add(offset);
                    column += 1;
                    offset += column_step;
                    if column == width {
                        column = 0;
                        row_start += row_step;
                        offset = row_start;
                    }
                }
            }
            let mut sums = match start {
                // SAFETY: the array is as wide as V vectors (asserted above).
                Start::Bias(_) => unsafe { load_tile::<S, P, V>(simd, bias.as_ptr(), 0) },
                Start::Output => {
                    let from = output.cast_const().wrapping_add(first);
                    // SAFETY: `is_sound` checked that the output reaches to the last pixel's last channel, and that the
                    // tile's channels end in its last vector.
                    unsafe { load_channels::<S, P, V>(simd, from, channel_pitch, last) }
                }
            };
            if LISTED {
                // SAFETY: `is_sound`, and the list holds the taps of the tile's runs.
                unsafe { accumulate_listed::<S, P, V>(simd, &depth, &pixels, list, &mut sums) };
            } else {
                // SAFETY: `is_sound`.
                unsafe {
                    accumulate::<S, P, V>(simd, &depth, &pixels, next, &mut asked, &mut sums)
                };
            }
            if let Finish::Activate(Some(residual), _) = finish {
                let from = residual.as_ptr().wrapping_add(first);
                // SAFETY: `is_sound` checked that the residual is as long as the output.
                let added = unsafe { load_channels::<S, P, V>(simd, from, channel_pitch, last) };
                for (sums, added) in sums.iter_mut().zip(added) {
                    for (sum, added) in sums.iter_mut().zip(added) {
                        *sum = simd.add(*sum, added);
                    }
                }
            }
            if let Finish::Activate(_, activation) = finish {
                // One comparison for all sums rather than one for each.
                match activation {
                    Activation::Relu => map(&mut sums, |x| apply_simple(simd, Activation::Relu, x)),
                    Activation::Relu6 => {
                        map(&mut sums, |x| apply_simple(simd, Activation::Relu6, x));
                    }
                    Activation::LeakyRelu(_) => {
                        map(&mut sums, |x| apply_simple(simd, activation, x));
                    }
                    _ => {}
                }
            }
            let to = output.wrapping_add(first);
            // SAFETY: as where the output is loaded.
            unsafe { store_channels::<S, P, V>(simd, to, channel_pitch, last, &sums) };
            first += P * channel_pitch;
            left -= P;
        }
        t.range.start = t.range.end.saturating_sub(left);
    }
}

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
fn is_sound<S: Simd, const V: usize>(t: &Tiles<'_>) -> bool {
    let width = V * S::LANES;
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
            && t.channels.len() > width - S::LANES
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

/// # Safety
/// `P` rows of `V` vectors, `pitch` floats apart, can be read at `from`.
#[inline(always)]
unsafe fn load_tile<S: Simd, const P: usize, const V: usize>(
    simd: S,
    from: *const f32,
    pitch: usize,
) -> [[S::Vector; V]; P] {
    let mut tile = [[simd.splat(0.0); V]; P];
    for (p, row) in tile.iter_mut().enumerate() {
        for (v, to) in row.iter_mut().enumerate() {
            // SAFETY: the caller vouches for vector `v` of row `p`.
            *to = unsafe { simd.load_pointer(from.wrapping_add(p * pitch + v * S::LANES)) };
        }
    }
    tile
}

/// # Safety
/// `P` rows of `V` vectors, `pitch` floats apart, can be written at `to`.
#[inline(always)]
unsafe fn store_tile<S: Simd, const P: usize, const V: usize>(
    simd: S,
    to: *mut f32,
    pitch: usize,
    tile: &[[S::Vector; V]; P],
) {
    for (p, row) in tile.iter().enumerate() {
        for (v, &vector) in row.iter().enumerate() {
            // SAFETY: the caller vouches for vector `v` of row `p`.
            unsafe { simd.store_pointer(to.wrapping_add(p * pitch + v * S::LANES), vector) };
        }
    }
}

/// As [`load_tile`], of the last vector `last` lanes.
///
/// # Safety
/// `P` rows of so many lanes, `pitch` floats apart, can be read at `from`; `last` is at most `LANES`.
#[inline(always)]
unsafe fn load_channels<S: Simd, const P: usize, const V: usize>(
    simd: S,
    from: *const f32,
    pitch: usize,
    last: usize,
) -> [[S::Vector; V]; P] {
    if last == S::LANES {
        // SAFETY: the caller vouches for whole vectors.
        return unsafe { load_tile::<S, P, V>(simd, from, pitch) };
    }
    let mut tile = [[simd.splat(0.0); V]; P];
    for (p, row) in tile.iter_mut().enumerate() {
        for (v, to) in row.iter_mut().enumerate() {
            let from = from.wrapping_add(p * pitch + v * S::LANES);
            *to = if v + 1 < V {
                // SAFETY: the caller vouches for vector `v` of row `p`.
                unsafe { simd.load_pointer(from) }
            } else {
                // SAFETY: the caller vouches for the first lanes of the last vector.
                unsafe { simd.load_part(from, last) }
            };
        }
    }
    tile
}

/// As [`store_tile`], of the last vector `last` lanes.
///
/// # Safety
/// `P` rows of so many lanes, `pitch` floats apart, can be written at `to`; `last` is at most `LANES`.
#[inline(always)]
unsafe fn store_channels<S: Simd, const P: usize, const V: usize>(
    simd: S,
    to: *mut f32,
    pitch: usize,
    last: usize,
    tile: &[[S::Vector; V]; P],
) {
    if last == S::LANES {
        // SAFETY: the caller vouches for whole vectors.
        return unsafe { store_tile::<S, P, V>(simd, to, pitch, tile) };
    }
    for (p, row) in tile.iter().enumerate() {
        for (v, &vector) in row.iter().enumerate() {
            let to = to.wrapping_add(p * pitch + v * S::LANES);
            if v + 1 < V {
                // SAFETY: the caller vouches for vector `v` of row `p`.
                unsafe { simd.store_pointer(to, vector) };
            } else {
                // SAFETY: the caller vouches for the first lanes of the last vector.
                unsafe { simd.store_part(to, last, vector) };
            }
        }
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
