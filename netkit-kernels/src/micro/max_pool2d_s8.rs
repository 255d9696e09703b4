//! Maximum over a window: all channels of one output pixel, a few taps at a time.

use crate::generic::max_pool2d_s8::MaxPool2dS8;
use crate::generic::window::taps_inside;
use core::ops::Range;
use netkit_core::op::Pool2d;

/// Channels computed together: with the DSP extension they are one register, with vectors one of those.
const BLOCK: usize = if cfg!(netkit_mve) { 16 } else { 4 };

/// Computes the maxima.
pub(crate) fn max_pool2d_s8(call: MaxPool2dS8<'_>) {
    let (w, channels) = (&call.pool.window, call.pool.channels.max(1));
    let row_step = w.dilation_h * w.in_w * channels;
    let column_step = w.dilation_w * channels;
    let mut outputs = call.output.chunks_exact_mut(channels);
    for y in call.rows {
        let rows = taps_inside(y, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
        let top = (y * w.stride_h + rows.start * w.dilation_h).wrapping_sub(w.pad_top);
        for x in 0..w.out_w {
            let columns = taps_inside(x, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
            let left = (x * w.stride_w + columns.start * w.dilation_w).wrapping_sub(w.pad_left);
            let first = top.wrapping_mul(w.in_w).wrapping_add(left).wrapping_mul(channels);
            let Some(output) = outputs.next() else { return };
            let tap =
                |from: usize| call.input.get(from..from.wrapping_add(channels)).unwrap_or(&[]);
            if (rows.len(), columns.len()) == (2, 2) {
                let below = first.wrapping_add(row_step);
                let taps = [first, first + column_step, below, below.wrapping_add(column_step)];
                four(taps.map(tap), output);
                continue;
            }
            output.fill(i8::MIN);
            for i in 0..rows.len() {
                for j in 0..columns.len() {
                    one(tap(first + i * row_step + j * column_step), output);
                }
            }
        }
    }
}

/// Raises the outputs of rows `rows` of a pool, which are all of `output`, to rows `fresh` of the map, which are all of
/// `map`.
#[inline]
pub(crate) fn raise(
    pool: &Pool2d,
    rows: &Range<usize>,
    fresh: Range<usize>,
    map: &[i8],
    output: &mut [i8],
) {
    let (w, channels) = (&pool.window, pool.channels.max(1));
    let row_len = w.in_w * channels;
    let lines = output.chunks_exact_mut((w.out_w * channels).max(1));
    for (y, line) in rows.clone().zip(lines) {
        for i in 0..w.kernel_h {
            // Rows before the first of the map or of these are far behind the last.
            let row = (y * w.stride_h + i * w.dilation_h).wrapping_sub(w.pad_top + fresh.start);
            if row >= fresh.len() {
                continue;
            }
            let row = map.get(row * row_len..).unwrap_or(&[]);
            for (x, output) in line.chunks_exact_mut(channels).enumerate() {
                for j in 0..w.kernel_w {
                    let column = (x * w.stride_w + j * w.dilation_w).wrapping_sub(w.pad_left);
                    if column < w.in_w {
                        let at = column * channels;
                        one(row.get(at..at + channels).unwrap_or(&[]), output);
                    }
                }
            }
        }
    }
}

/// Raises outputs to a tap, channel by channel.
#[inline(never)]
fn one(tap: &[i8], output: &mut [i8]) {
    let (taps, outputs) = (tap.as_chunks::<BLOCK>(), output.as_chunks_mut::<BLOCK>());
    for (output, &tap) in outputs.0.iter_mut().zip(taps.0) {
        *output = larger(*output, tap);
    }
    for (output, &tap) in outputs.1.iter_mut().zip(taps.1) {
        *output = tap.max(*output);
    }
}

/// The maxima of the four taps of the most usual window, read once and together.
#[inline(never)]
fn four(taps: [&[i8]; 4], output: &mut [i8]) {
    let [a, b, c, d] = taps.map(<[i8]>::as_chunks::<BLOCK>);
    let (blocks, rest) = output.as_chunks_mut::<BLOCK>();
    let taps = a.0.iter().zip(b.0).zip(c.0).zip(d.0);
    for (output, (((&a, &b), &c), &d)) in blocks.iter_mut().zip(taps) {
        *output = larger(larger(a, b), larger(c, d));
    }
    let taps = a.1.iter().zip(b.1).zip(c.1).zip(d.1);
    for (output, (((&a, &b), &c), &d)) in rest.iter_mut().zip(taps) {
        *output = a.max(b).max(c.max(d));
    }
}

/// The larger of each pair.
#[cfg(not(netkit_dsp))]
#[inline(always)]
fn larger(a: [i8; BLOCK], b: [i8; BLOCK]) -> [i8; BLOCK] {
    core::array::from_fn(|i| a[i].max(b[i]))
}

#[cfg(netkit_dsp)]
use crate::arch::arm::dsp::maximum as larger;
