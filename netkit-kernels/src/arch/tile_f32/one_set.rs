//! Tiles of programs that hold those of one instruction set: every size has all of its own.

use super::*;
use crate::generic::activation::apply_simple;
use crate::simd::Kernel;

impl<const P: usize, const V: usize, const LISTED: bool> Kernel for TilesOf<'_, '_, P, V, LISTED> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        const { assert!(V * S::LANES <= WIDTH) };
        let t = self.0;
        if !is_sound(t, V * S::LANES, S::LANES) {
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
