//! Operators that only move data.

use netkit_core::op::{Concat, Upsample2x};

/// Output pixel `(h, w)` is input pixel `(h / 2, w / 2)`.
pub fn upsample2x<T: Copy>(upsample: &Upsample2x, input: &[T], output: &mut [T]) {
    let Upsample2x { in_h, in_w, channels } = *upsample;
    for h in 0..2 * in_h {
        for w in 0..2 * in_w {
            for c in 0..channels {
                output[(h * 2 * in_w + w) * channels + c] =
                    input[(h / 2 * in_w + w / 2) * channels + c];
            }
        }
    }
}

/// Row by row, the rows of each input one after the other.
pub fn concat<T: Copy>(concat: &Concat, inputs: &[&[T]], output: &mut [T]) {
    let total: usize = concat.inner.iter().sum();
    let mut start = 0;
    for (which, input) in inputs.iter().enumerate() {
        let inner = concat.inner[which];
        for row in 0..concat.outer {
            for i in 0..inner {
                output[row * total + start + i] = input[row * inner + i];
            }
        }
        start += inner;
    }
}
