//! Operators that only move data: `upsample2x`, `concat`, `copy`. They are the same for every element
//! type and instruction set.

use super::check::{has, require, rows_exist};
use core::ops::Range;
use netkit_core::op::{Concat, Upsample2x};

/// Rows `rows` of the output of a nearest-neighbour upsampling by two, NHWC: output pixel `(h, w)` is
/// input pixel `(h / 2, w / 2)`. `input` is the whole map, `output` just the rows asked for.
pub fn upsample2x<T: Copy>(
    upsample: &Upsample2x,
    input: &[T],
    rows: Range<usize>,
    output: &mut [T],
) {
    let Upsample2x { in_h, in_w, channels } = *upsample;
    require!(has(input.len(), &[in_h, in_w, channels]), "upsample2x: input length");
    require!(rows_exist(&rows, in_h.saturating_mul(2)), "upsample2x: rows {rows:?}");
    require!(has(output.len(), &[rows.len(), 2, in_w, channels]), "upsample2x: output length");
    let row_len = in_w * channels;
    if row_len == 0 {
        return;
    }
    for (row, to) in rows.zip(output.chunks_exact_mut(2 * row_len)) {
        let from = input.get(row / 2 * row_len..).unwrap_or(&[]);
        for (from, to) in from.chunks_exact(channels).zip(to.chunks_exact_mut(2 * channels)) {
            let (left, right) = to.split_at_mut(channels);
            left.copy_from_slice(from);
            right.copy_from_slice(from);
        }
    }
}

/// Concatenation along the last axis: row by row, the rows of each input one after the other. `inputs`
/// holds as many tensors as `concat.inner` has lengths that are not 0.
pub fn concat<T: Copy>(concat: &Concat, inputs: &[&[T]], output: &mut [T]) {
    let present = concat.inner.iter().take_while(|&&inner| inner != 0).count();
    require!(inputs.len() == present, "concat: {} inputs instead of {present}", inputs.len());
    let mut total = 0usize;
    for (input, &inner) in inputs.iter().zip(&concat.inner) {
        require!(has(input.len(), &[concat.outer, inner]), "concat: input length");
        total = total.saturating_add(inner);
    }
    require!(has(output.len(), &[concat.outer, total]), "concat: output length");
    let mut start = 0;
    for (input, &inner) in inputs.iter().zip(&concat.inner) {
        let rows = output.chunks_exact_mut(total.max(1));
        for (from, to) in input.chunks_exact(inner.max(1)).zip(rows) {
            if let Some(to) = to.get_mut(start..start + inner) {
                to.copy_from_slice(from);
            }
        }
        // Only where there are no rows can it wrap.
        start = start.wrapping_add(inner);
    }
}

/// Copies a tensor.
pub fn copy<T: Copy>(input: &[T], output: &mut [T]) {
    require!(input.len() == output.len(), "copy: output length");
    output.copy_from_slice(input);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upsampling_repeats_each_pixel_in_both_directions() {
        let upsample = Upsample2x { in_h: 2, in_w: 1, channels: 2 };
        let mut output = [0; 16];
        upsample2x(&upsample, &[1, 2, 3, 4], 0..4, &mut output);
        assert_eq!(output, [1, 2, 1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 3, 4]);
        let mut middle = [0; 8];
        upsample2x(&upsample, &[1, 2, 3, 4], 1..3, &mut middle);
        assert_eq!(middle, output[4..12]);
    }

    #[test]
    fn concatenation_interleaves_rows() {
        let three = Concat { outer: 2, inner: [1, 2, 1, 0] };
        let mut output = [0i8; 8];
        concat(&three, &[&[1, 2], &[3, 4, 5, 6], &[7, 8]], &mut output);
        assert_eq!(output, [1, 3, 4, 7, 2, 5, 6, 8]);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "concat: input length")]
    fn a_wrong_length_is_reported_in_debug_builds() {
        concat(&Concat { outer: 2, inner: [1, 2, 0, 0] }, &[&[1, 2], &[3, 4, 5]], &mut [0; 6]);
    }
}
