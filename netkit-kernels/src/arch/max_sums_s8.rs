//! The largest of the sums under each window of a pool, before they become outputs: requantizing keeps their order, so
//! the largest sum gives the largest output.

use crate::simd_s8::{KernelS8, SimdS8};

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
