//! The largest of the sums under each window of a pool, before they become outputs: requantizing keeps their order, so
//! the largest sum gives the largest output.

use super::store_s8::{Channels, StoreS8};
use super::tile_s8::{TileS8, accumulate_groups, unrolled};
use crate::simd_s8::{KernelOn, KernelS8, SimdS8};

/// Replaces sums by the largest under each of `count` windows side by side.
pub(crate) struct MaxSums<'a> {
    /// `[rows][count · columns][width]`, then `[count][width]`.
    pub(crate) sums: &'a mut [i32],
    /// Windows.
    pub(crate) count: usize,
    /// Rows of a window.
    pub(crate) rows: usize,
    /// Columns of a window, at least 1.
    pub(crate) columns: usize,
    /// Sums of a pixel, a multiple of `LANES`.
    pub(crate) width: usize,
}

impl KernelS8 for MaxSums<'_> {
    type Output = ();

    /// Does nothing if there are fewer sums.
    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        if !self.is_sound(S::LANES) {
            return;
        }
        // The commonest window has no loops.
        if (self.rows, self.columns) == (2, 2) {
            // SAFETY: `is_sound` holds.
            unsafe { self.maxima::<S, 2>(simd) };
        } else {
            // SAFETY: `is_sound` holds.
            unsafe { self.maxima::<S, 0>(simd) };
        }
    }
}

impl MaxSums<'_> {
    /// All that the unchecked loads and stores rely on.
    #[inline(always)]
    fn is_sound(&self, lanes: usize) -> bool {
        let len = || {
            let row = self.count.checked_mul(self.columns)?.checked_mul(self.width)?;
            row.checked_mul(self.rows)
        };
        self.rows >= 1
            && self.columns >= 1
            && self.width.is_multiple_of(lanes)
            && len().is_some_and(|len| len <= self.sums.len())
    }

    /// If `K` is not 0, a window has `K` rows and columns.
    ///
    /// Maxima are stored where sums have been read: those of a window are not behind its first row of sums.
    ///
    /// # Safety
    /// [`is_sound`](Self::is_sound) holds for `S::LANES`.
    #[inline(always)]
    unsafe fn maxima<S: SimdS8, const K: usize>(self, simd: S) {
        let (rows, columns) = if K > 0 { (K, K) } else { (self.rows, self.columns) };
        let window = columns * self.width;
        let pitch = self.count * window;
        let sums = self.sums.as_mut_ptr();
        for i in 0..self.count {
            let (first, to) = (sums.wrapping_add(i * window), sums.wrapping_add(i * self.width));
            for lane in (0..self.width).step_by(S::LANES) {
                let mut row = first.wrapping_add(lane);
                // SAFETY: a window has a sum of every lane for each of its rows and columns.
                let mut largest = unsafe { simd.load_sums(row) };
                for _ in 0..rows {
                    let mut sum = row;
                    for _ in 0..columns {
                        // SAFETY: as above.
                        largest = simd.max(largest, unsafe { simd.load_sums(sum) });
                        sum = sum.wrapping_add(self.width);
                    }
                    row = row.wrapping_add(pitch);
                }
                // SAFETY: there are no fewer sums than maxima.
                unsafe { simd.store_sums(to.wrapping_add(lane), largest) };
            }
        }
    }
}

/// Outputs of `Q` windows of 2 × 2 side by side, `P` pixels, and of as many behind and below them, tile by tile: the sums of
/// a tile are in registers until the largest are found.
pub(crate) struct MaxOutputsOf<'a, S: SimdS8, const P: usize, const Q: usize, const V: usize> {
    /// Its `sums` are those of one tile's outputs, `count` the tiles side by side.
    pub(crate) tile: TileS8<'a>,
    /// Rows of windows.
    pub(crate) rows: usize,
    /// Input bytes from one row of pixels to the next, no less than those of a row's pixels.
    pub(crate) row_step: usize,
    pub(crate) channels: &'a Channels<S, V>,
    /// From the first window's first channel on.
    pub(crate) output: &'a mut [i8],
    /// Channels of an output pixel.
    pub(crate) pitch: usize,
    /// Channels of a row of output pixels.
    pub(crate) row_pitch: usize,
}

impl<S: SimdS8, const P: usize, const Q: usize, const V: usize> KernelOn<S>
    for MaxOutputsOf<'_, S, P, Q, V>
{
    type Output = ();

    /// Does nothing if a slice of the input is too short. What does not fit the output is left out.
    #[inline(always)]
    fn run_on(self, simd: S) {
        const { assert!(P == 4 * Q) };
        let Self { tile, rows, row_step, channels, output, pitch, row_pitch } = self;
        let columns = tile.count.saturating_mul(2 * Q);
        let last = rows.checked_mul(2).and_then(|rows| rows.checked_sub(1)?.checked_mul(row_step));
        let last = last.filter(|&last| tile.reaches_from(last, columns, S::INPUT_BYTES));
        let (Some((weights, start)), Some(_), true) =
            (tile.begin::<S, P, V>(simd), last, Q * V * S::LANES <= tile.sums.len())
        else {
            return;
        };
        for row in 0..rows {
            let mut upper = tile.input.as_ptr().wrapping_add(2 * row * row_step);
            let mut output = output.get_mut(row * row_pitch..).unwrap_or(&mut []);
            for _ in 0..tile.count {
                let mut pixels = [upper; P];
                unrolled!(p < P {
                    // Both of a window's columns, then below.
                    let column = p / 4 * 2 + p % 2;
                    let below = if p % 4 < 2 { 0 } else { row_step };
                    pixels[p] = upper.wrapping_add(column * tile.step + below);
                });
                // SAFETY: `begin`, and `reaches_from` for both rows of each window's pixels.
                let acc: [[S::Parts; V]; P] =
                    unsafe { accumulate_groups(simd, &tile, pixels, weights, start) };
                unrolled!(q < Q <= 4 {
                    unrolled!(v < V <= 4 {
                        let at = |i: usize| simd.total(acc[4 * q + i][v]);
                        let largest = simd.max(simd.max(at(0), at(1)), simd.max(at(2), at(3)));
                        let to = tile.sums.as_mut_ptr().wrapping_add((q * V + v) * S::LANES);
                        // SAFETY: `sums` has Q · V · LANES values.
                        unsafe { simd.store_sums(to, largest) };
                    });
                });
                StoreS8 { channels, pixels: Q, sums: tile.sums, output: &mut *output, pitch }
                    .run_on(simd);
                upper = upper.wrapping_add(2 * Q * tile.step);
                let done = (Q * pitch).min(output.len());
                output = output.get_mut(done..).unwrap_or(&mut []);
            }
        }
    }
}
