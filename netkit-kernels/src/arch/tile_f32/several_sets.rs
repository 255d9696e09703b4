//! Tiles of programs that hold those of several instruction sets: every size shares what is done once or seldom.

use super::*;
use crate::generic::activation::apply_simple;
use crate::simd::{Kernel, call_apart};
use core::mem::MaybeUninit;

impl<const P: usize, const V: usize, const LISTED: bool> Kernel for TilesOf<'_, '_, P, V, LISTED> {
    type Output = ();

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
    S::LANES < PANEL && !S::FEW_TILES
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
    #[inline(never)]
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
    #[inline(never)]
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
#[inline(never)]
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
