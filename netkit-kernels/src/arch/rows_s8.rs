//! Dot products of rows of weights in file order with one row of input.

use super::pairs_s8::PairsS8;
use super::tile_s8::unrolled;
use crate::simd_s8::KernelOn;

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
