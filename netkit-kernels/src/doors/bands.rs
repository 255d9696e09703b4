//! A map that is never whole in memory: computed in bands of rows, each pooled before the next is.

use core::ops::Range;
use netkit_core::op::{Pool2d, Window};

/// The window that computes output rows `rows` from just the input rows they read, and those rows.
pub(super) fn alone(window: &Window, rows: &Range<usize>) -> (Window, Range<usize>) {
    let w = window;
    let top = rows.start * w.stride_h;
    let end = rows.end.saturating_sub(1) * w.stride_h + w.span().0;
    let first = top.saturating_sub(w.pad_top).min(w.in_h);
    let last = end.saturating_sub(w.pad_top).clamp(first, w.in_h);
    let pad_top = (first + w.pad_top).saturating_sub(top);
    let alone = Window { in_h: last - first, out_h: rows.len(), pad_top, ..*window };
    (alone, first..last)
}

/// As [`alone`]; all output rows of that window, and of the map `input`, whose pixels have `channels` channels, what it reads.
#[cfg(feature = "cmsis-nn")]
pub(super) fn alone_with_input<'a, T>(
    window: &Window,
    rows: &Range<usize>,
    input: &'a [T],
    channels: usize,
) -> (Window, Range<usize>, &'a [T]) {
    let (window, needed) = alone(window, rows);
    let row_len = window.in_w * channels;
    let input = input.get(needed.start * row_len..needed.end * row_len);
    (window, 0..window.out_h, input.unwrap_or(&[]))
}

/// Pools rows `rows` of an int8 map, each of whose rows `compute` gives once; `output` is just these rows of the pool.
///
/// Every row raises the outputs that read it, so none is kept: less code than [`in_bands`], for microcontrollers. `band`
/// has room for what one row of the pool reads.
#[cfg(any(test, netkit_micro))]
#[inline]
pub(super) fn as_computed(
    pool: &Pool2d,
    rows: Range<usize>,
    band: &mut [i8],
    output: &mut [i8],
    mut compute: impl FnMut(Range<usize>, &mut [i8]),
) {
    output.fill(i8::MIN);
    let row_len = pool.window.in_w * pool.channels;
    let mut done = 0;
    for row in rows.clone() {
        let needed = alone(&pool.window, &(row..row + 1)).1;
        let fresh = needed.start.max(done)..needed.end;
        if fresh.is_empty() {
            continue;
        }
        done = fresh.end;
        let Some(map) = band.get_mut(..fresh.len() * row_len) else { return };
        compute(fresh.clone(), map);
        crate::micro::raise(pool, &rows, fresh, map, output);
    }
}

/// Pools rows `rows`, `at_once` of them at a time: `compute` computes rows of the map that `pool` reads, `store` gets
/// each band as the map of a pool of its own, and which of `rows` it gives, counted from the first.
///
/// Rows that two bands read are kept. `band` has room for what `at_once` rows read.
#[inline]
pub(super) fn in_bands<T: Copy>(
    pool: &Pool2d,
    rows: Range<usize>,
    at_once: usize,
    band: &mut [T],
    mut compute: impl FnMut(Range<usize>, &mut [T]),
    mut store: impl FnMut(&Pool2d, Range<usize>, &[T]),
) {
    let row_len = pool.window.in_w * pool.channels;
    let mut done: Range<usize> = 0..0;
    let mut first = rows.start;
    while first < rows.end {
        let end = first.saturating_add(at_once.max(1)).min(rows.end);
        let (window, needed) = alone(&pool.window, &(first..end));
        let kept = done.end.saturating_sub(needed.start);
        let before = needed.start.saturating_sub(done.start) * row_len;
        for row in 0..if before > 0 { kept } else { 0 } {
            // A row at a time, so that none overlaps where it goes: a function for those that do would be code for this.
            let to = row * row_len;
            let (front, back) = band.split_at_mut((before + to).min(band.len()));
            if let (Some(to), Some(from)) = (front.get_mut(to..to + row_len), back.get(..row_len)) {
                to.copy_from_slice(from);
            }
        }
        let fresh = needed.start + kept..needed.end;
        if let Some(to) = band.get_mut(kept * row_len..needed.len() * row_len)
            && !fresh.is_empty()
        {
            compute(fresh, to);
        }
        let map = band.get(..needed.len() * row_len).unwrap_or(&[]);
        store(&Pool2d { window, ..*pool }, first - rows.start..end - rows.start, map);
        done = needed;
        first = end;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use netkit_core::op::Padding;
    use std::vec;
    use std::vec::Vec;

    /// Every row of the map is computed once, in order, and each band is what its rows of the pool read.
    #[test]
    fn every_row_is_computed_once_and_pooled_as_the_whole_map_is() {
        for (in_h, kernel, stride, padding) in
            [(11, 2, 2, 0), (12, 3, 2, 1), (9, 3, 1, 1), (10, 1, 3, 0), (2, 3, 2, 2), (7, 7, 1, 0)]
        {
            let padding = Padding::symmetric(padding, 0);
            let window = Window::new((in_h, 3), (kernel, 1), stride, padding).unwrap();
            let pool = Pool2d { window, channels: 2 };
            let row_of = |row: usize| [10 * row; 6];
            let largest = |w: &Window, map: &[usize], row: usize| {
                let taps =
                    (0..w.kernel_h).filter_map(|i| (row * w.stride_h + i).checked_sub(w.pad_top));
                taps.filter(|&row| row < w.in_h).map(|row| map[6 * row]).max()
            };
            let whole: Vec<usize> = (0..in_h).flat_map(row_of).collect();
            for at_once in 1..5 {
                for rows in [0..window.out_h, 1.min(window.out_h - 1)..window.out_h] {
                    let (needed, mut computed) = (alone(&window, &rows).1, Vec::new());
                    let (one, _) = alone(&window, &(0..at_once.min(window.out_h)));
                    let room = one.rows_read(at_once).min(in_h);
                    let mut band = vec![0; 6 * room];
                    let mut pooled = Vec::new();
                    in_bands(
                        &pool,
                        rows.clone(),
                        at_once,
                        &mut band,
                        |rows, to| {
                            assert_eq!(to.len(), 6 * rows.len());
                            let values = rows.clone().flat_map(row_of);
                            to.iter_mut().zip(values).for_each(|(to, value)| *to = value);
                            computed.extend(rows);
                        },
                        |pool, at, map| {
                            assert_eq!(map.len(), 6 * pool.window.in_h);
                            assert_eq!(at.start, pooled.len());
                            pooled.extend((0..at.len()).map(|row| largest(&pool.window, map, row)));
                        },
                    );
                    let expected: Vec<_> = rows.map(|row| largest(&window, &whole, row)).collect();
                    assert_eq!(pooled, expected, "{window:?} {at_once}");
                    if window.stride_h <= window.kernel_h {
                        assert!(computed.into_iter().eq(needed), "{window:?} {at_once}");
                    }
                }
            }
        }
    }

    /// Channels that are no whole blocks, windows that overlap, lie apart, are dilated, or read nothing.
    #[test]
    fn outputs_raised_row_by_row_are_those_of_the_whole_map() {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        for turn in 0..400 {
            let mut up_to = |most: u32| (next() % most) as usize;
            let (in_h, in_w) = (1 + up_to(9), 1 + up_to(9));
            let kernel = (1 + up_to(3) as u32, 1 + up_to(3) as u32);
            let (stride, padding) = (1 + up_to(3) as u32, up_to(4) as u32);
            let padding = Padding::symmetric(padding, 0);
            let window = Window::new((in_h, in_w), kernel, stride, padding);
            let Some(mut window) = window else { continue };
            (window.stride_w, window.dilation_h) = (1 + up_to(3), 1 + up_to(2));
            window.out_w = 1 + up_to(6);
            let pool = Pool2d { window, channels: 1 + up_to(21) };
            let rows = up_to(window.out_h as u32)..window.out_h;
            let row_len = in_w * pool.channels;
            let map: Vec<i8> = (0..in_h * row_len).map(|_| next() as i8).collect();
            let line = window.out_w * pool.channels;
            let mut pooled = vec![7; rows.len() * line];
            let mut band = vec![0; window.span().0.min(in_h) * row_len];
            let mut done = 0;
            as_computed(&pool, rows.clone(), &mut band, &mut pooled, |rows, to| {
                assert!(rows.start >= done);
                done = rows.end;
                to.copy_from_slice(&map[rows.start * row_len..rows.end * row_len]);
            });
            let w = &window;
            for (at, &largest) in pooled.iter().enumerate() {
                let (y, x) = (rows.start + at / line, at % line / pool.channels);
                let taps = (0..w.kernel_h).flat_map(|i| (0..w.kernel_w).map(move |j| (i, j)));
                let expected = taps.filter_map(|(i, j)| {
                    let row = (y * w.stride_h + i * w.dilation_h).checked_sub(w.pad_top)?;
                    let column = (x * w.stride_w + j * w.dilation_w).checked_sub(w.pad_left)?;
                    let inside = row < in_h && column < in_w;
                    inside.then(|| map[row * row_len + column * pool.channels + at % pool.channels])
                });
                assert_eq!(largest, expected.max().unwrap_or(i8::MIN), "{turn} {pool:?} {rows:?}");
            }
        }
    }

    #[test]
    fn rows_that_read_nothing_have_a_map_of_no_rows() {
        let padding = Padding::symmetric(4, 0);
        let window = Window::new((3, 3), (2, 1), 1, padding).unwrap();
        for rows in [0..2, 9..10] {
            let (alone, needed) = alone(&window, &rows);
            assert_eq!((alone.in_h, needed.len()), (0, 0), "{rows:?}");
        }
    }
}
