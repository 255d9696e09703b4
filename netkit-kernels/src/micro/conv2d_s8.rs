//! Convolution: two output pixels at a time, all channels of both.

use super::finish::{Finish, is_usual};
use super::{Passes, offset_pair, words};
use crate::generic::conv2d_s8::Conv2dS8;
use crate::generic::window::taps_inside;
use core::ops::Range;
use netkit_core::op::Conv2d;
use netkit_core::quant::Multiplier;

/// A group of four taps: two words for each of the two pixels.
type Group = [u32; 4];

/// Weights of one output channel.
const fn taps(conv: &Conv2d) -> usize {
    conv.window.taps().saturating_mul(conv.in_channels)
}

/// Bytes of scratch: the taps of two pixels in 16 bits, and where groups do not fall on pixels, of one
/// in 8.
pub(crate) const fn scratch(conv: &Conv2d) -> usize {
    let groups = taps(conv).div_ceil(4);
    let bytes = if conv.in_channels.is_multiple_of(4) { 0 } else { 4 };
    groups.saturating_mul(size_of::<Group>() + bytes)
}

/// Computes the convolution, or returns false where these passes cannot and has written nothing.
pub(crate) fn conv2d_s8<P: Passes>(call: &mut Conv2dS8<'_>, weights: &[i8]) -> bool {
    let Conv2d { window, in_channels, out_channels } = call.conv;
    let taps = taps(&call.conv);
    let Some(pixels) = call.rows.len().checked_mul(window.out_w) else { return false };
    let lengths_fit = Some(weights.len()) == taps.checked_mul(out_channels)
        && Some(call.output.len()) == pixels.checked_mul(out_channels)
        && (call.bias.len(), call.multipliers.len()) == (out_channels, out_channels);
    let in_reach = taps >= 4 && out_channels >= P::CONV2D_CHANNELS;
    if !(lengths_fit && in_reach && is_usual(call.bias, call.multipliers, taps)) {
        return false;
    }
    let Some(scratch) = words(call.scratch, scratch(&call.conv)) else { return false };
    let groups = taps.div_ceil(4);
    let Some((columns, bytes)) = scratch.split_at_mut_checked(groups * 4) else { return false };
    let columns: &mut [Group] = columns.as_chunks_mut().0;
    let gather = Gather {
        conv: &call.conv,
        input: call.input,
        zero_point: call.input_zero_point as i8,
        offset: offset_pair(call.input_zero_point),
        row_len: window.kernel_w * in_channels,
        taps,
    };
    let mut pass = Pass {
        weights: weights.as_ptr(),
        taps,
        columns: columns.as_ptr(),
        whole_groups: groups - 1,
        back: groups * 4 - taps,
        bias: call.bias.as_ptr(),
        multipliers: call.multipliers.as_ptr(),
        output: call.output.as_mut_ptr(),
        output_step: out_channels,
        blocks: out_channels / P::CONV2D_CHANNELS,
        finish: Finish::new(call.stage),
    };
    let mut position = (call.rows.start, 0);
    let mut next = || {
        let here = position;
        position.1 += 1;
        if position.1 == window.out_w {
            position = (position.0 + 1, 0);
        }
        here
    };
    for first in (0..pixels).step_by(2) {
        gather.pixel::<P, 0>(next(), columns, bytes);
        if first + 1 < pixels {
            gather.pixel::<P, 1>(next(), columns, bytes);
        } else {
            // A last pixel without a partner is computed twice, the second time from whatever is there,
            // and stored in one place, the first result last.
            pass.output_step = 0;
        }
        pass.columns = columns.as_ptr();
        // SAFETY: the lengths fit, so for every channel the weights, bias, multiplier and output are
        // there; the columns have all groups of at least four taps.
        unsafe { P::conv2d(&mut pass) };
        let rest = out_channels % P::CONV2D_CHANNELS;
        if rest != 0 {
            // The last channels once more, some of them for the second time.
            pass.back_by(P::CONV2D_CHANNELS - rest);
            // SAFETY: as above; there are at least as many channels as a block has.
            unsafe { P::conv2d(&mut pass) };
        }
        pass.weights = weights.as_ptr();
        pass.bias = call.bias.as_ptr();
        pass.multipliers = call.multipliers.as_ptr();
        pass.output = pass.output.wrapping_add(out_channels);
        pass.blocks = out_channels / P::CONV2D_CHANNELS;
    }
    true
}

/// Where the taps of a pixel come from.
struct Gather<'a> {
    conv: &'a Conv2d,
    input: &'a [i8],
    zero_point: i8,
    offset: u32,
    /// Taps of one row of the window.
    row_len: usize,
    /// Taps of the window.
    taps: usize,
}

impl Gather<'_> {
    /// Writes the taps of the output pixel at `(row, column)` as column `COLUMN` of the groups.
    ///
    /// The last group is the last four taps, those zero that are in the group before: so no weight past
    /// a row's end is ever read.
    #[inline(always)]
    fn pixel<P: Passes, const COLUMN: usize>(
        &self,
        (row, column): (usize, usize),
        groups: &mut [Group],
        bytes: &mut [u32],
    ) {
        let w = &self.conv.window;
        let rows = taps_inside(row, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
        let columns = taps_inside(column, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
        if bytes.is_empty() {
            let mut to = groups.iter_mut();
            self.spans((row, column), rows, columns, |span| match span {
                Span::Input(input) => {
                    for (&bytes, to) in input.as_chunks().0.iter().zip(&mut to) {
                        [to[2 * COLUMN], to[2 * COLUMN + 1]] = P::widen(self.offset, bytes);
                    }
                }
                Span::Padding(len) => {
                    for (_, to) in (0..len / 4).zip(&mut to) {
                        [to[2 * COLUMN], to[2 * COLUMN + 1]] = [0, 0];
                    }
                }
            });
            return;
        }
        let bytes: &mut [i8] = bytemuck::cast_slice_mut(bytes);
        let back = bytes.len() - self.taps;
        let mut to = bytes.iter_mut();
        self.spans((row, column), rows, columns, |span| match span {
            Span::Input(input) => {
                for (&from, to) in input.iter().zip(&mut to) {
                    *to = from;
                }
            }
            Span::Padding(len) => {
                for (_, to) in (0..len).zip(&mut to) {
                    *to = self.zero_point;
                }
            }
        });
        let bytes: &mut [[i8; 4]] = bytes.as_chunks_mut().0;
        if let Some(last) = bytes.last_mut() {
            let word = u32::from_le_bytes(last.map(i8::cast_unsigned));
            let zero_points = u32::from_le_bytes([self.zero_point.cast_unsigned(); 4]);
            // Moved to the end, what is in front replaced.
            let moved = word << (8 * back) | zero_points & !(u32::MAX << (8 * back));
            *last = moved.to_le_bytes().map(u8::cast_signed);
        }
        for (&bytes, to) in bytes.iter().zip(groups) {
            [to[2 * COLUMN], to[2 * COLUMN + 1]] = P::widen(self.offset, bytes);
        }
    }

    /// The taps in order, as stretches that are adjacent in the input and stretches of padding; `rows`
    /// and `columns` are the taps inside the map.
    #[inline(always)]
    fn spans(
        &self,
        (row, column): (usize, usize),
        rows: Range<usize>,
        columns: Range<usize>,
        mut each: impl FnMut(Span<'_>),
    ) {
        let w = &self.conv.window;
        let channels = self.conv.in_channels;
        let in_len = w.in_w * channels;
        // Position of tap (0, 0), which may lie before the map; of those inside it does not.
        let top = (row * w.stride_h).wrapping_sub(w.pad_top);
        let left = (column * w.stride_w).wrapping_sub(w.pad_left);
        let inside = |from: usize, len: usize| {
            Span::Input(self.input.get(from..from.wrapping_add(len)).unwrap_or(&[]))
        };
        for i in 0..w.kernel_h {
            if !rows.contains(&i) {
                each(Span::Padding(self.row_len));
                continue;
            }
            let start = top.wrapping_add(i * w.dilation_h).wrapping_mul(in_len);
            let at = |j: usize| {
                start.wrapping_add(left.wrapping_add(j * w.dilation_w).wrapping_mul(channels))
            };
            if w.dilation_w == 1 && columns.len() == w.kernel_w {
                each(inside(at(0), self.row_len));
                continue;
            }
            for j in 0..w.kernel_w {
                each(if columns.contains(&j) {
                    inside(at(j), channels)
                } else {
                    Span::Padding(channels)
                });
            }
        }
    }
}

/// A stretch of taps.
enum Span<'a> {
    Input(&'a [i8]),
    Padding(usize),
}

/// What [`Passes::conv2d`] reads and writes.
#[repr(C)]
pub(crate) struct Pass {
    pub(crate) weights: *const i8,
    /// Weights of one output channel.
    pub(crate) taps: usize,
    pub(crate) columns: *const Group,
    /// Groups before the last.
    pub(crate) whole_groups: usize,
    /// How many of the last group's taps are also in the group before it; the columns have 0 for them.
    pub(crate) back: usize,
    pub(crate) bias: *const i32,
    pub(crate) multipliers: *const Multiplier,
    /// The next channel of the first pixel.
    pub(crate) output: *mut i8,
    /// From there to the second pixel. If they are one, the first is stored last.
    pub(crate) output_step: usize,
    /// Blocks of output channels, at least one.
    pub(crate) blocks: usize,
    pub(crate) finish: Finish,
}

impl Pass {
    /// Prepares for one more block that begins `channels` channels earlier.
    fn back_by(&mut self, channels: usize) {
        self.weights = self.weights.wrapping_sub(channels * self.taps);
        self.bias = self.bias.wrapping_sub(channels);
        self.multipliers = self.multipliers.wrapping_sub(channels);
        self.output = self.output.wrapping_sub(channels);
        self.blocks = 1;
    }
}
