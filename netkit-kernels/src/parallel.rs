//! Operators in pieces: ranges of output rows, computed by the threads of a pool where the feature `parallel` is on.
//!
//! The results of a door do not depend on how rows are cut, so those of a network do not depend on the number of threads.

use core::ops::Range;

/// Rows of an operator's output, and the memory to compute them with.
pub(crate) struct Piece<'a, T> {
    pub(crate) rows: Range<usize>,
    /// Just these rows.
    pub(crate) output: &'a mut [T],
    /// Just these rows of what is added, if anything is.
    pub(crate) residual: Option<&'a [T]>,
    pub(crate) scratch: &'a mut [u8],
}

/// The product, saturating.
#[inline(always)]
pub(crate) fn product<const N: usize>(factors: [usize; N]) -> usize {
    factors.into_iter().fold(1, usize::saturating_mul)
}

/// Computes a piece, in as many smaller ones as pay where there are threads. `row_macs` are the multiply-accumulates of one
/// row.
#[cfg(not(feature = "parallel"))]
#[inline(always)]
pub(crate) fn compute<T>(whole: Piece<'_, T>, _row_macs: usize, work: impl FnOnce(Piece<'_, T>)) {
    work(whole);
}

#[cfg(feature = "parallel")]
pub(crate) use threads::compute;

#[cfg(feature = "parallel")]
mod threads {
    use super::Piece;
    use crate::workspace;
    use core::cell::Cell;
    use std::vec::Vec;

    /// Multiply-accumulates below which a piece is not worth handing over. Waking a thread and waiting for it costs 35 to
    /// 130 µs on a virtual machine; a piece of this size takes more. With half of it, a network of layers that were just
    /// large enough for two pieces lost a tenth of its speed.
    const LEAST_MACS: usize = 8_000_000;

    /// See [`compute`](super::compute): the caller's thread computes the first piece, and helps the pool it is in.
    pub(crate) fn compute<T: Send + Sync>(
        whole: Piece<'_, T>,
        row_macs: usize,
        work: impl Fn(Piece<'_, T>) + Sync,
    ) {
        let rows = whole.rows.len();
        let worth = rows.saturating_mul(row_macs) / LEAST_MACS;
        // The pool is made on first use, so ask for it last.
        let pieces =
            if worth < 2 { 1 } else { worth.min(rows).min(rayon_core::current_num_threads()) };
        if pieces < 2 {
            return work(whole);
        }
        in_pieces(whole, pieces, &work);
    }

    /// `pieces` is at least 1 and at most the number of rows.
    fn in_pieces<T: Send + Sync>(
        whole: Piece<'_, T>,
        pieces: usize,
        work: &(impl Fn(Piece<'_, T>) + Sync),
    ) {
        let Piece { mut rows, mut output, mut residual, scratch } = whole;
        let row_len = output.len() / rows.len().max(1);
        let scratch_len = scratch.len();
        rayon_core::in_place_scope(|scope| {
            // The last ones go to the pool; what remains is the first.
            for left in (2..=pieces).rev() {
                let start = rows.start + rows.len() - rows.len() / left;
                let kept = (start - rows.start) * row_len;
                let (before, behind) = core::mem::take(&mut output).split_at_mut(kept);
                output = before;
                let added = residual.and_then(|residual| residual.get(kept..));
                residual = residual.and_then(|residual| residual.get(..kept));
                let piece = start..rows.end;
                rows.end = start;
                scope.spawn(move |_| {
                    with_scratch(scratch_len, |scratch| {
                        work(Piece { rows: piece, output: behind, residual: added, scratch });
                    });
                });
            }
            work(Piece { rows, output, residual, scratch });
        });
    }

    std::thread_local! {
        /// Scratch of a pool's thread: as much as the largest operator so far wanted.
        static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }

    fn with_scratch(len: usize, work: impl FnOnce(&mut [u8])) {
        SCRATCH.with(|cell| {
            let mut memory = cell.take();
            if memory.len() < len + workspace::ALIGNMENT {
                memory.resize(len + workspace::ALIGNMENT, 0);
            }
            let start = memory.as_ptr().align_offset(workspace::ALIGNMENT);
            work(memory.get_mut(start..).and_then(|tail| tail.get_mut(..len)).unwrap_or(&mut []));
            cell.set(memory);
        });
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::sync::Mutex;
        use std::vec;

        /// Which rows each call got, in order, and whether every output row was written once by its own piece.
        fn cut(rows: core::ops::Range<usize>, pieces: usize) -> Vec<core::ops::Range<usize>> {
            const ROW: usize = 3;
            let mut output = vec![0usize; rows.len() * ROW];
            let residual: Vec<usize> = (rows.start * ROW..rows.end * ROW).collect();
            let seen = Mutex::new(Vec::new());
            let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
            pool.install(|| {
                let whole = Piece {
                    rows: rows.clone(),
                    output: &mut output,
                    residual: Some(&residual),
                    scratch: &mut [0; 100],
                };
                in_pieces(whole, pieces, &|piece: Piece<'_, usize>| {
                    assert!(piece.scratch.len() == 100);
                    assert_eq!(piece.output.len(), piece.rows.len() * ROW);
                    let residual = piece.residual.unwrap();
                    assert_eq!(residual.len(), piece.output.len());
                    for (y, added) in piece.output.iter_mut().zip(residual) {
                        *y += added + 1;
                    }
                    assert_eq!(residual[0], piece.rows.start * ROW);
                    seen.lock().unwrap().push(piece.rows);
                });
            });
            let first = rows.start * ROW + 1;
            assert!(output.iter().enumerate().all(|(i, &y)| y == first + i), "{output:?}");
            let mut seen = seen.into_inner().unwrap();
            seen.sort_by_key(|rows| rows.start);
            seen
        }

        #[test]
        fn pieces_are_about_equal_and_cover_all_rows() {
            assert_eq!(cut(2..9, 1), core::iter::once(2..9).collect::<Vec<_>>());
            assert_eq!(cut(2..9, 2), [2..6, 6..9]);
            assert_eq!(cut(0..7, 3), [0..3, 3..5, 5..7]);
            assert_eq!(cut(0..3, 3), [0..1, 1..2, 2..3]);
        }

        #[test]
        fn only_what_pays_is_cut() {
            let calls = |rows: usize, row_macs: usize| {
                let calls = Mutex::new(0);
                let pool = rayon_core::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
                pool.install(|| {
                    let mut output = vec![0u8; rows];
                    let whole = Piece {
                        rows: 0..rows,
                        output: &mut output,
                        residual: None,
                        scratch: &mut [],
                    };
                    compute(whole, row_macs, |_| *calls.lock().unwrap() += 1);
                });
                calls.into_inner().unwrap()
            };
            assert_eq!(calls(100, 10), 1);
            assert_eq!(calls(100, 2 * LEAST_MACS / 100 - 1), 1);
            assert_eq!(calls(100, 2 * LEAST_MACS / 100), 2);
            assert_eq!(calls(100, LEAST_MACS), 4);
            assert_eq!(calls(3, usize::MAX), 3);
            assert_eq!(calls(1, usize::MAX), 1);
            assert_eq!(calls(0, usize::MAX), 1);
        }
    }
}
