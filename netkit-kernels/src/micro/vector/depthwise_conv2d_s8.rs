//! Depthwise convolution: all channels of one output pixel, tap by tap.

use super::{is_usual, rescale};
use crate::generic::depthwise_conv2d_s8::DepthwiseConv2dS8;
use crate::generic::window::taps_inside;
use crate::micro::words;
use netkit_core::op::DepthwiseConv2d;

/// Bytes of scratch: the sums, and the weights with channels innermost.
pub(crate) const fn scratch(conv: &DepthwiseConv2d) -> usize {
    let weights = conv.window.taps().saturating_mul(conv.channels).next_multiple_of(4);
    conv.channels.saturating_mul(4).saturating_add(weights)
}

/// Computes the convolution, or returns false where it cannot and has written nothing.
pub(crate) fn depthwise_conv2d_s8(call: &mut DepthwiseConv2dS8<'_>, weights: &[i8]) -> bool {
    let DepthwiseConv2d { window: w, channels, multiplier } = call.conv;
    let taps = w.taps();
    if multiplier != 1 || channels == 0 || taps == 0 || !is_usual(call.multipliers) {
        return false;
    }
    let Some(scratch) = words(call.scratch, scratch(&call.conv)) else { return false };
    let (sums, arranged) = scratch.split_at_mut(channels);
    let sums: &mut [i32] = bytemuck::cast_slice_mut(sums);
    let arranged: &mut [i8] = bytemuck::cast_slice_mut(arranged);
    for (channel, row) in weights.chunks_exact(taps).enumerate() {
        let to = arranged.get_mut(channel..).unwrap_or(&mut []).iter_mut().step_by(channels);
        for (to, &weight) in to.zip(row) {
            *to = weight;
        }
    }
    let positions = call.rows.clone().flat_map(|y| (0..w.out_w).map(move |x| (y, x)));
    for ((y, x), output) in positions.zip(call.output.chunks_exact_mut(channels)) {
        let rows = taps_inside(y, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
        let columns = taps_inside(x, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
        let mut fresh = true;
        for i in rows {
            let y = (y * w.stride_h + i * w.dilation_h).wrapping_sub(w.pad_top);
            let x = (x * w.stride_w + columns.start * w.dilation_w).wrapping_sub(w.pad_left);
            let input = y.wrapping_mul(w.in_w).wrapping_add(x).wrapping_mul(channels);
            let input = call.input.get(input..).unwrap_or(&[]);
            let weights =
                arranged.get((i * w.kernel_w + columns.start) * channels..).unwrap_or(&[]);
            if (columns.len(), w.dilation_w) == (3, 1) {
                three_taps(input, weights, call.input_zero_point, fresh, sums);
                fresh = false;
                continue;
            }
            let taps = input.chunks(w.dilation_w * channels).zip(weights.chunks(channels));
            for (input, weights) in taps.take(columns.len()) {
                one_tap(input, weights, call.input_zero_point, fresh, sums);
                fresh = false;
            }
        }
        if fresh {
            sums.fill(0);
        }
        rescale(sums, call.bias, call.multipliers, call.stage, output);
    }
    true
}

/// Adds to the sum of each channel its product at one tap; the first, `fresh`, replaces it.
#[inline(never)]
fn one_tap(inputs: &[i8], weights: &[i8], zero_point: i32, fresh: bool, sums: &mut [i32]) {
    let keep = if fresh { 0 } else { !0 };
    for ((sum, &x), &w) in sums.iter_mut().zip(inputs).zip(weights) {
        *sum = (*sum & keep).wrapping_add((i32::from(x) - zero_point) * i32::from(w));
    }
}

/// Adds to the sum of each channel its products at three adjacent taps; the first, `fresh`, replace it.
///
/// The sums are loaded and stored a third as often as tap by tap.
#[inline(never)]
fn three_taps(inputs: &[i8], weights: &[i8], zero_point: i32, fresh: bool, sums: &mut [i32]) {
    let keep = if fresh { 0 } else { !0 };
    let channels = sums.len();
    let inputs = inputs.iter().zip(after(inputs, channels)).zip(after(inputs, 2 * channels));
    let weights = weights.iter().zip(after(weights, channels)).zip(after(weights, 2 * channels));
    for ((sum, ((&x, &y), &z)), ((&u, &v), &w)) in sums.iter_mut().zip(inputs).zip(weights) {
        let product = |x: i8, w: i8| (i32::from(x) - zero_point) * i32::from(w);
        *sum = (*sum & keep).wrapping_add(product(x, u) + product(y, v) + product(z, w));
    }
}

#[inline(always)]
fn after(values: &[i8], start: usize) -> &[i8] {
    values.get(start..).unwrap_or(&[])
}
