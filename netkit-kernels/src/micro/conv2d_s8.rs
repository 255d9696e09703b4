//! Convolution: two output pixels at a time, all channels of both.

use super::finish::{Finish, is_usual};
use super::gather::{Gather, has_borders};
use super::{Passes, offset_pair, words};
use crate::generic::conv2d_s8::Conv2dS8;
use netkit_core::op::Conv2d;
use netkit_core::quant::Multiplier;

/// A group of four taps: two words for each of the two pixels.
type Group = [u32; 4];

/// Where the second pixel's words begin in a group.
const SECOND: usize = 2;

/// Weights of one output channel.
const fn taps(conv: &Conv2d) -> usize {
    conv.window.taps().saturating_mul(conv.in_channels)
}

/// Whether taps are copied before they are widened: where groups do not fall on pixels, or pixels on the
/// map's border.
const fn copies(conv: &Conv2d) -> bool {
    !conv.in_channels.is_multiple_of(4) || has_borders(conv)
}

/// Bytes of scratch: the taps of two pixels in 16 bits, and if they are copied first, of one in 8.
pub(crate) const fn scratch(conv: &Conv2d) -> usize {
    let bytes = if copies(conv) { 4 } else { 0 };
    // The second pixel's words begin two later, and are seen as groups too.
    taps(conv).div_ceil(4).saturating_mul(size_of::<Group>() + bytes).saturating_add(SECOND * 4)
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
    let Some((columns, bytes)) = scratch.split_at_mut_checked(groups * 4 + SECOND) else {
        return false;
    };
    let bytes: &mut [[i8; 4]] = bytemuck::cast_slice_mut(bytes);
    let back = groups * 4 - taps;
    let fill = Columns {
        gather: Gather::new(&call.conv, call.input, call.input_zero_point),
        zero_point: call.input_zero_point as i8,
        offset: offset_pair(call.input_zero_point),
        row_groups: if in_channels.is_multiple_of(4) {
            window.kernel_w * in_channels / 4
        } else {
            0
        },
        back,
    };
    let mut pass = Pass {
        weights: weights.as_ptr(),
        taps,
        columns: columns.as_ptr().cast(),
        whole_groups: groups - 1,
        back,
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
        // A loop, lest the code be there twice.
        let pair = (pixels - first).min(2);
        for second in 0..pair {
            let words = columns.get_mut(second * SECOND..).unwrap_or(&mut []);
            fill.fill::<P>(next(), words, bytes);
        }
        if pair == 1 {
            // A last pixel without a partner is computed twice, the second time from whatever is there,
            // and stored in one place, the first result last.
            pass.output_step = 0;
        }
        pass.columns = columns.as_ptr().cast();
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

/// What turns the taps of pixels into columns.
struct Columns<'a> {
    gather: Gather<'a>,
    zero_point: i8,
    offset: u32,
    /// Groups of one row of the window, where pixels are whole groups; else 0.
    row_groups: usize,
    /// Of the last group, the taps that are also in the group before.
    back: usize,
}

impl Columns<'_> {
    /// Writes the taps of the output pixel at `(row, column)` as the first two words of every four.
    ///
    /// The last group is the last four taps, those zero that are in the group before: so no weight past
    /// a row's end is ever read. `bytes` are as many groups of scratch, where they are needed.
    #[inline(always)]
    fn fill<P: Passes>(&self, position: (usize, usize), words: &mut [u32], bytes: &mut [[i8; 4]]) {
        let groups: &mut [Group] = words.as_chunks_mut().0;
        let widen = |bytes: &[[i8; 4]], groups: &mut [Group]| {
            for (&bytes, [even, odd, ..]) in bytes.iter().zip(groups) {
                [*even, *odd] = P::widen(self.offset, bytes);
            }
        };
        if self.row_groups > 0
            && let Some(rows) = self.gather.rows(position)
        {
            for (row, groups) in rows.zip(groups.chunks_exact_mut(self.row_groups)) {
                widen(row.as_chunks().0, groups);
            }
            return;
        }
        self.gather.copy(position, bytes.as_flattened_mut());
        if let Some(last) = bytes.last_mut() {
            let word = u32::from_le_bytes(last.map(i8::cast_unsigned));
            let padding = u32::from_le_bytes([self.zero_point.cast_unsigned(); 4]);
            // Moved to the end, what is in front replaced.
            let fresh = u32::MAX << (8 * self.back);
            let word = (word << (8 * self.back)) | (padding & !fresh);
            *last = word.to_le_bytes().map(u8::cast_signed);
        }
        widen(bytes, groups);
    }
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
