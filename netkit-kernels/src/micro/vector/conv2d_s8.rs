//! Convolution: two output pixels and two channels at a time.

use super::{is_usual, products, rescale, starts};
use crate::generic::conv2d_s8::Conv2dS8;
use crate::micro::gather::Gather;
use crate::micro::words;
use netkit_core::op::Conv2d;

/// Bytes of the taps of a pixel, whole words.
const fn column_len(conv: &Conv2d) -> usize {
    conv.window.taps().saturating_mul(conv.in_channels).next_multiple_of(4)
}

/// Bytes of scratch: what sums start from and the sums of two pixels, and the taps of both.
pub(crate) const fn scratch(conv: &Conv2d) -> usize {
    conv.out_channels.saturating_mul(12).saturating_add(column_len(conv).saturating_mul(2))
}

/// Computes the convolution, or returns false where it cannot and has written nothing.
pub(crate) fn conv2d_s8(call: &mut Conv2dS8<'_>, weights: &[i8]) -> bool {
    let Conv2d { window, in_channels, out_channels } = call.conv;
    let taps = window.taps().saturating_mul(in_channels);
    if taps == 0 || out_channels == 0 || !is_usual(call.multipliers) {
        return false;
    }
    let Some(scratch) = words(call.scratch, scratch(&call.conv)) else { return false };
    let (start, rest) = scratch.split_at_mut(out_channels);
    let (sums, columns) = rest.split_at_mut(2 * out_channels);
    let start: &mut [i32] = bytemuck::cast_slice_mut(start);
    let (first_sums, second_sums) = bytemuck::cast_slice_mut(sums).split_at_mut(out_channels);
    let (first_column, second_column) =
        bytemuck::cast_slice_mut::<_, i8>(columns).split_at_mut(column_len(&call.conv));
    starts(weights, taps, call.bias, call.input_zero_point, start);
    let start = &*start;

    let gather = Gather::new(&call.conv, call.input, call.input_zero_point);
    let Some(first) = first_column.get_mut(..taps) else { return false };
    let Some(second) = second_column.get_mut(..taps) else { return false };
    let mut positions = call.rows.clone().flat_map(|y| (0..window.out_w).map(move |x| (y, x)));
    let mut outputs = call.output.chunks_exact_mut(out_channels);
    while let (Some(position), Some(output)) = (positions.next(), outputs.next()) {
        gather.copy(position, first);
        let second_output = outputs.next();
        // Without a second pixel its sums are those of whatever is there, and are not used.
        if let Some(position) = positions.next() {
            gather.copy(position, second);
        }
        products(weights, [first, second], [&mut *first_sums, &mut *second_sums]);
        rescale(first_sums, start, call.multipliers, call.stage, output);
        if let Some(output) = second_output {
            rescale(second_sums, start, call.multipliers, call.stage, output);
        }
    }
    true
}
