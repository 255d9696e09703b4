//! Dot products of rows of weights in file order with one row of input.

use super::one_row_s8::RowEnd;
use super::pairs_s8::PairsS8;
use super::tile_s8::unrolled;
use crate::simd_s8::{KernelOn, SimdS8};
use netkit_core::pack::{GROUP_BYTES, PANEL};

/// Adds to each of `rows` sums the products of a row of weights with the input.
pub(crate) struct RowDots<'a> {
    /// Values of 16 bits.
    pub(crate) input: &'a [u8],
    /// `[rows][len]`
    pub(crate) weights: &'a [i8],
    pub(crate) len: usize,
    pub(crate) rows: usize,
    pub(crate) sums: &'a mut [i32],
}

/// Rows that are multiplied together: one for each lane of 8.
const ROWS: usize = 8;

impl<S: PairsS8> KernelOn<S> for RowDots<'_> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run_on(self, simd: S) {
        const { assert!(S::LANES == ROWS) };
        let Self { input, weights, len, rows, sums } = self;
        let fits = len.checked_mul(rows).is_some_and(|all| all <= weights.len())
            && len.checked_mul(2).is_some_and(|bytes| bytes <= input.len())
            && rows.checked_next_multiple_of(ROWS).is_some_and(|rows| rows <= sums.len());
        if !fits {
            return;
        }
        let step = 2 * ROWS;
        let whole = len / step * step;
        for first in (0..rows).step_by(ROWS) {
            let mut from = [weights.as_ptr(); ROWS];
            for (i, from) in from.iter_mut().enumerate() {
                // Rows that do not exist repeat the last one.
                *from = from.wrapping_add((first + i).min(rows - 1) * len);
            }
            let mut acc = [simd.splat(0); ROWS];
            let mut at = 0;
            while at < whole {
                // SAFETY: `fits`: the input has `len` values, and `at + step ≤ len`.
                let x = unsafe { simd.load_sums(input.as_ptr().wrapping_add(2 * at).cast()) };
                unrolled!(r < ROWS {
                    // SAFETY: `fits`: each row has `len` weights.
                    let w = unsafe { simd.load_wide(from[r].wrapping_add(at)) };
                    acc[r] = simd.dot_pairs(acc[r], x, w);
                });
                at += step;
            }
            let mut all = [0; ROWS];
            let dots = simd.fold(acc);
            // SAFETY: the array has LANES values.
            unsafe { simd.store_sums(all.as_mut_ptr(), dots) };
            let tail = input.get(2 * whole..2 * len).unwrap_or(&[]).as_chunks().0;
            for (i, (to, dot)) in sums.iter_mut().skip(first).zip(all).enumerate() {
                let row = (first + i).min(rows - 1) * len;
                let tail_weights = weights.get(row + whole..row + len).unwrap_or(&[]);
                *to = to.wrapping_add(dot);
                for (x, &w) in tail.iter().zip(tail_weights) {
                    *to = to.wrapping_add(i32::from(i16::from_le_bytes(*x)) * i32::from(w));
                }
            }
        }
    }
}

/// Half as many vectors as are added up together.
const HALF: usize = PANEL / 2;

/// Sets that add up the lanes of sixteen vectors.
pub(crate) trait FoldS8: SimdS8 {
    /// The sums of all lanes of each.
    fn fold(self, sums: [Self::Sums; PANEL]) -> Self::Sums;

    /// The first `len` of four weights for each lane, less than all, and zeros.
    ///
    /// # Safety
    /// `from` is valid for reading `len` weights.
    unsafe fn load_some_weights(self, from: *const i8, len: usize) -> Self::Weights;
}

/// The outputs of one row from weights in file order: dot products of two stretches of memory. With `CORRECTS` the excess of
/// the inputs is taken out again, for which the weights are added up as well.
pub(crate) struct RowOfFile<'a, const CORRECTS: bool> {
    /// Inputs as tiles read them, padded with zeros to a multiple of 64.
    pub(crate) input: &'a [u8],
    /// `[outputs][len]`
    pub(crate) weights: &'a [i8],
    pub(crate) len: usize,
    pub(crate) end: RowEnd<'a>,
    pub(crate) output: &'a mut [i8],
}

impl<S: FoldS8, const CORRECTS: bool> KernelOn<S> for RowOfFile<'_, CORRECTS> {
    type Output = ();

    /// Does nothing if input or weights are too short.
    #[inline(always)]
    fn run_on(self, simd: S) {
        const { assert!(S::LANES == PANEL && S::INPUT_BYTES == 1) };
        let Self { input, weights, len, end, output } = self;
        let step = GROUP_BYTES;
        let fits = len > 0
            && len.checked_next_multiple_of(step).is_some_and(|len| len <= input.len())
            && len.checked_mul(output.len()).is_some_and(|all| all <= weights.len());
        if !fits {
            return;
        }
        // With sums of weights, half of the lanes are theirs.
        let at_once = if CORRECTS { HALF } else { PANEL };
        let whole = len / step * step;
        let ones = [1; GROUP_BYTES];
        for (chunk, output) in output.chunks_mut(at_once).enumerate() {
            let first = chunk * at_once;
            let mut rows = [weights.as_ptr(); PANEL];
            for (i, row) in rows.iter_mut().enumerate() {
                // Rows that do not exist repeat the last one.
                *row = row.wrapping_add((first + i.min(output.len() - 1)) * len);
            }
            let mut acc = [simd.parts(simd.splat(0)); PANEL];
            // SAFETY: the array has as many bytes.
            let one = unsafe { simd.load_inputs(ones.as_ptr()) };
            let mut at = 0;
            while at < whole {
                // SAFETY: `fits`: the input reaches to behind `len`.
                let x = unsafe { simd.load_inputs(input.as_ptr().wrapping_add(at)) };
                unrolled!(r < HALF {
                    // SAFETY: `fits`: each row has `len` weights, of which these are some.
                    let w = unsafe { simd.load_weights(rows[r].wrapping_add(at)) };
                    acc[r] = simd.dot(acc[r], x, w);
                    if CORRECTS {
                        acc[r + HALF] = simd.dot(acc[r + HALF], one, w);
                    } else {
                        // SAFETY: as above.
                        let w = unsafe { simd.load_weights(rows[r + HALF].wrapping_add(at)) };
                        acc[r + HALF] = simd.dot(acc[r + HALF], x, w);
                    }
                });
                at += step;
            }
            if whole < len {
                let left = len - whole;
                // SAFETY: `fits`: the input reaches to the next multiple of `step`.
                let x = unsafe { simd.load_inputs(input.as_ptr().wrapping_add(whole)) };
                unrolled!(r < HALF {
                    let row = rows[r].wrapping_add(whole);
                    // SAFETY: `fits`: what is left of the row.
                    let w = unsafe { simd.load_some_weights(row, left) };
                    acc[r] = simd.dot(acc[r], x, w);
                    if CORRECTS {
                        acc[r + HALF] = simd.dot(acc[r + HALF], one, w);
                    } else {
                        let row = rows[r + HALF].wrapping_add(whole);
                        // SAFETY: as above.
                        let w = unsafe { simd.load_some_weights(row, left) };
                        acc[r + HALF] = simd.dot(acc[r + HALF], x, w);
                    }
                });
            }
            let mut totals = [simd.splat(0); PANEL];
            unrolled!(r < HALF {
                totals[r] = simd.total(acc[r]);
                totals[r + HALF] = simd.total(acc[r + HALF]);
            });
            let sums = simd.fold(totals);
            let mut weights = [0; PANEL];
            if CORRECTS {
                // SAFETY: the array has room for LANES sums.
                unsafe { simd.store_sums(weights.as_mut_ptr(), sums) };
                weights.rotate_left(HALF);
            }
            end.store(simd, first, sums, &weights, output);
        }
    }
}
