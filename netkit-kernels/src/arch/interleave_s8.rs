//! Four rows into one, byte by byte.

use crate::simd_s8::{KernelS8, SimdS8};
use netkit_core::pack::GROUP;

/// Interleaves the first `len` bytes of four rows; what is written behind them is left open.
pub(crate) struct InterleaveS8<'a> {
    /// Four rows of int8, `row_len` bytes each.
    pub(crate) rows: &'a [i8],
    pub(crate) row_len: usize,
    /// Rounded up to whole vectors, it fits a row.
    pub(crate) len: usize,
    pub(crate) to: &'a mut [u8],
}

impl KernelS8 for InterleaveS8<'_> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        let step = GROUP * S::LANES;
        let fits = |len: usize| {
            let (rows, inputs) = (self.row_len.checked_mul(4)?, len.checked_mul(GROUP)?);
            let fits = len <= self.row_len
                && rows <= self.rows.len()
                && inputs.checked_mul(S::INPUT_BYTES)? <= self.to.len();
            fits.then_some(len)
        };
        let Some(len) = self.len.checked_next_multiple_of(step).and_then(fits) else { return };
        let first = self.rows.as_ptr();
        let rows = [
            first,
            first.wrapping_add(self.row_len),
            first.wrapping_add(2 * self.row_len),
            first.wrapping_add(3 * self.row_len),
        ];
        for at in (0..len).step_by(step) {
            let [a, b, c, d] = rows;
            let here =
                [a.wrapping_add(at), b.wrapping_add(at), c.wrapping_add(at), d.wrapping_add(at)];
            let to = self.to.as_mut_ptr().wrapping_add(GROUP * S::INPUT_BYTES * at);
            // SAFETY: `fits`: rows have `len` bytes and `to` four inputs for each; `at + step ≤ len`.
            unsafe { simd.interleave(here, to) };
        }
    }
}
