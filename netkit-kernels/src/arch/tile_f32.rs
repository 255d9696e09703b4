//! The register tile of the float convolution: some pixels times some vectors of output channels.
//!
//! Accumulators stay in registers over the whole depth; each step loads the channels' weights once and
//! broadcasts one input of each pixel. Every output has one accumulator, started at the bias, to which
//! the products are added in the order of the depth, whatever the tile: so neither the tile's size nor
//! where the weights come from shows in the result.

use super::tile_s8::unrolled;
use crate::generic::activation::apply_simple;
use crate::simd::{Kernel, Simd, call_apart};
use core::mem::MaybeUninit;
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

    // There are many of these, and all of them in every program: what is done once, or seldom, is in functions that they share,
    // on x86-64 even where a call costs a small layer some of its instructions.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        const { assert!(V * S::LANES <= WIDTH) };
        const { assert!(size_of::<S::Vector>() == S::LANES * size_of::<f32>()) };
        let t = self.0;
        let Some(plan) = Plan::of(t, V, S::LANES) else { return };
        let mut list = [0; LISTED_DEPTH];
        if LISTED && !list_taps(t, &mut list) {
            return;
        }
        let list = list.get(..t.depth.len()).unwrap_or(&list);
        let Plan { bias, last, depth, mut walk } = plan;
        // Whether rows of the tile are loaded and stored where they lie. If not, `aside`.
        let whole = S::MASKS || last == S::LANES;
        // What the loop reads is copied out of the borrow: stores through pointers might change it for all the compiler
        // knows.
        let Pixels { width, column_step, .. } = t.pixels;
        let (input, channel_pitch) = (t.input.as_ptr(), t.channel_pitch);
        let mut first = t.range.start * channel_pitch + t.channels.start;
        let mut left = t.range.end.saturating_sub(t.range.start);
        let start = t.start;
        let (residual, activation) = match t.finish {
            Finish::Store => (None, Activation::None),
            Finish::Activate(residual, activation) => (residual, activation),
        };
        let output = t.output.as_mut_ptr();
        // Room for a tile, where rows do not end with a vector.
        let mut aside = MaybeUninit::<[[S::Vector; V]; P]>::uninit();
        let aside = aside.as_mut_ptr().cast::<f32>();
        // Tiles before these have asked for their share.
        let next = t.next;
        let mut asked = t.range.start / P * (t.depth.len() / STEPS) * next.at_once;
        while left >= P {
            let mut pixels = [input.wrapping_add(walk.offset); P];
            if const { lists_itself::<S>() } && walk.column + P < width {
                for (p, pixel) in pixels.iter_mut().enumerate() {
                    *pixel = pixel.wrapping_add(p * column_step);
                }
                walk.column += P;
                walk.offset += P * column_step;
            } else {
                // A copy, so that `pixels` itself has no address and stays in registers.
                let mut listed = pixels;
                walk.list(&t.pixels, input, &mut listed);
                pixels = listed;
            }
            let to = output.wrapping_add(first);
            let mut sums = match start {
                // SAFETY: the array is as wide as V vectors (asserted above).
                Start::Bias(_) => unsafe { load_tile::<S, P, V>(simd, bias.as_ptr(), 0, last) },
                Start::Output => {
                    let (mut from, mut pitch) = (to.cast_const(), channel_pitch);
                    if !whole {
                        let len = (V - 1) * S::LANES + last;
                        // SAFETY: `Plan::of` checked that the output reaches to the last pixel's last channel; `aside` has
                        // room for P rows of V vectors.
                        unsafe { copy_rows(from, pitch, len, aside, V * S::LANES, P) };
                        (from, pitch) = (aside.cast_const(), V * S::LANES);
                    }
                    // SAFETY: `copy_rows` has written all P rows of V vectors of `aside`. Or `Plan::of` checked that the
                    // output reaches to the last pixel's last channel, and that the tile's channels end in its last vector.
                    unsafe { load_tile::<S, P, V>(simd, from, pitch, last) }
                }
            };
            if LISTED {
                // SAFETY: `Plan::of` checked the tiles, whose depth this is and of whose range the pixels are; the list holds
                // the taps of their runs.
                unsafe { accumulate_listed::<S, P, V>(simd, &depth, &pixels, list, &mut sums) };
            } else {
                // SAFETY: `Plan::of` checked the tiles, whose depth this is and of whose range the pixels are.
                unsafe {
                    accumulate::<S, P, V>(simd, &depth, &pixels, next, &mut asked, &mut sums)
                };
            }
            if whole && let Some(residual) = residual {
                let from = residual.as_ptr().wrapping_add(first);
                // SAFETY: `Plan::of` checked that the residual is as long as the output.
                let added = unsafe { load_tile::<S, P, V>(simd, from, channel_pitch, last) };
                for (sums, added) in sums.iter_mut().zip(added) {
                    for (sum, added) in sums.iter_mut().zip(added) {
                        *sum = simd.add(*sum, added);
                    }
                }
            }
            if whole || residual.is_none() {
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
            if whole {
                // SAFETY: as where the output is loaded.
                unsafe { store_tile::<S, P, V>(simd, to, channel_pitch, last, &sums) };
            } else {
                // SAFETY: `aside` has room for P rows of V vectors.
                unsafe { store_tile::<S, P, V>(simd, aside, V * S::LANES, last, &sums) };
                let rest = FromAside {
                    aside,
                    pixels: P,
                    vectors: V,
                    last,
                    residual: residual.map(|residual| residual.as_ptr().wrapping_add(first)),
                    activation,
                    to,
                    pitch: channel_pitch,
                };
                call_apart(simd, rest);
            }
            first += P * channel_pitch;
            left -= P;
        }
        t.range.start = t.range.end.saturating_sub(left);
    }
}

/// Whether a tile whose pixels are in one row lists them without a call. With sixteen lanes products outlast the call; with eight it
/// cost networks of small layers 4 % of their time.
const fn lists_itself<S: Simd>() -> bool {
    cfg!(target_arch = "x86_64") && S::LANES < PANEL && !S::FEW_TILES
}

/// What every tile begins with; made only of tiles that are sound.
struct Plan {
    bias: [f32; WIDTH],
    /// Channels of the last vector.
    last: usize,
    depth: Depth,
    walk: Walk,
}

impl Plan {
    /// The plan of tiles of `vectors` vectors; `None` if a load or a store would be outside of a slice.
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn of(t: &Tiles<'_>, vectors: usize, lanes: usize) -> Option<Self> {
        let width = vectors * lanes;
        if !is_sound(t, width, lanes) {
            return None;
        }
        let mut bias = [0.0f32; WIDTH];
        if let Start::Bias(from) = t.start {
            for (to, &from) in bias.iter_mut().zip(from).take(t.channels.len()) {
                // A bias of −0 becomes 0, as it does where padded taps are skipped instead of added.
                *to = from + 0.0;
            }
        }
        let last = t.channels.len().saturating_sub(width.saturating_sub(lanes));
        let (row, column) = divide(t.range.start, t.pixels.width);
        let row_start = row * t.pixels.row_step;
        let offset = row_start + column * t.pixels.column_step;
        Some(Self { bias, last, depth: Depth::of(t), walk: Walk { column, row_start, offset } })
    }
}

/// The pixel that a tile begins with: its column, and where in the input its row and it begin.
struct Walk {
    column: usize,
    row_start: usize,
    offset: usize,
}

impl Walk {
    /// Where this pixel and the next ones begin. Goes on to the one behind them.
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn list(&mut self, pixels: &Pixels, input: *const f32, to: &mut [*const f32]) {
        if self.column + to.len() < pixels.width {
            // All in one row, and the next tile starts there too: no need to look for its end at each.
            self.column += to.len();
            for pixel in to {
                *pixel = input.wrapping_add(self.offset);
                self.offset += pixels.column_step;
            }
            return;
        }
        for pixel in to {
            *pixel = input.wrapping_add(self.offset);
            self.column += 1;
            self.offset += pixels.column_step;
            if self.column == pixels.width {
                self.column = 0;
                self.row_start += pixels.row_step;
                self.offset = self.row_start;
            }
        }
    }
}

/// Lists the taps of a depth; `false` if there are more than fit.
#[cfg_attr(target_arch = "x86_64", inline(never))]
#[cfg_attr(not(target_arch = "x86_64"), inline(always))]
fn list_taps(t: &Tiles<'_>, list: &mut [usize; LISTED_DEPTH]) -> bool {
    for (k, offset) in t.depth.clone().zip(list) {
        let (run, within) = divide(k, t.runs.len);
        let (row, column) = divide(run, t.runs.columns);
        *offset = row * t.runs.row_pitch + column * t.runs.column_pitch + within;
    }
    t.depth.len() <= LISTED_DEPTH
}

/// A tile that does not go to the output as it is, made by [`TilesOf`] alone: `aside` are the vectors of its pixels, the last of
/// each pixel `last` lanes, and the output has so many channels at `to` and each `pitch` floats behind it, the residual too.
struct FromAside {
    aside: *const f32,
    pixels: usize,
    vectors: usize,
    last: usize,
    residual: Option<*const f32>,
    /// Applied already where there is no residual.
    activation: Activation,
    to: *mut f32,
    pitch: usize,
}

impl Kernel for FromAside {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for pixel in 0..self.pixels {
            for v in 0..self.vectors {
                let lanes = if v + 1 < self.vectors { S::LANES } else { self.last };
                let from = self.aside.wrapping_add((pixel * self.vectors + v) * S::LANES);
                let at = pixel * self.pitch + v * S::LANES;
                // SAFETY: `TilesOf` stored the tile there.
                let mut x = unsafe { simd.load_part(from, lanes) };
                if let Some(residual) = self.residual {
                    // SAFETY: `TilesOf` points to as many floats of the residual, which `is_sound` found as long as the output.
                    x = simd.add(x, unsafe { simd.load_part(residual.wrapping_add(at), lanes) });
                    x = apply_simple(simd, self.activation, x);
                }
                // SAFETY: `TilesOf` points to as many floats of the output, which `is_sound` checked.
                unsafe { simd.store_part(self.to.wrapping_add(at), lanes, x) };
            }
        }
    }
}

/// Copies `rows` rows of `len` floats to rows of `width`, and zeros behind them.
///
/// # Safety
/// Rows of `len` floats, `pitch` floats apart, can be read at `from`; rows of `width` can be written at `to`.
#[inline(never)]
unsafe fn copy_rows(
    from: *const f32,
    pitch: usize,
    len: usize,
    to: *mut f32,
    width: usize,
    rows: usize,
) {
    for row in 0..rows {
        for i in 0..width {
            let from = from.wrapping_add(row * pitch + i);
            // SAFETY: the caller vouches for `len` floats of each row.
            let x = if i < len { unsafe { *from } } else { 0.0 };
            // SAFETY: the caller vouches for `width` floats of each row.
            unsafe { *to.wrapping_add(row * width + i) = x };
        }
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

/// Loads of the last vector of each row `last` lanes, if that is as fast as all.
///
/// # Safety
/// `P` rows of `V` vectors, `pitch` floats apart, can be read at `from`; where [`Simd::MASKS`] of the last vector `last` lanes,
/// which are at most `LANES`.
#[inline(always)]
unsafe fn load_tile<S: Simd, const P: usize, const V: usize>(
    simd: S,
    from: *const f32,
    pitch: usize,
    last: usize,
) -> [[S::Vector; V]; P] {
    let mut tile = [[simd.splat(0.0); V]; P];
    for (p, row) in tile.iter_mut().enumerate() {
        for (v, to) in row.iter_mut().enumerate() {
            let from = from.wrapping_add(p * pitch + v * S::LANES);
            *to = if S::MASKS && v + 1 == V {
                // SAFETY: the caller vouches for the first lanes of the last vector.
                unsafe { simd.load_part(from, last) }
            } else {
                // SAFETY: the caller vouches for vector `v` of row `p`.
                unsafe { simd.load_pointer(from) }
            };
        }
    }
    tile
}

/// As [`load_tile`].
///
/// # Safety
/// `P` rows of `V` vectors, `pitch` floats apart, can be written at `to`; with [`Simd::MASKS`] of the last vector only `last`
/// lanes, at most `LANES`.
#[inline(always)]
unsafe fn store_tile<S: Simd, const P: usize, const V: usize>(
    simd: S,
    to: *mut f32,
    pitch: usize,
    last: usize,
    tile: &[[S::Vector; V]; P],
) {
    for (p, row) in tile.iter().enumerate() {
        for (v, &vector) in row.iter().enumerate() {
            let to = to.wrapping_add(p * pitch + v * S::LANES);
            if S::MASKS && v + 1 == V {
                // SAFETY: the caller vouches for the first lanes of the last vector.
                unsafe { simd.store_part(to, last, vector) };
            } else {
                // SAFETY: the caller vouches for vector `v` of row `p`.
                unsafe { simd.store_pointer(to, vector) };
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
/// `depth` is that of a [`Plan`] of some tiles, and `pixels` are some of theirs.
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
