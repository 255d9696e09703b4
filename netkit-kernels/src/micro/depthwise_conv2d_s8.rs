//! Depthwise convolution: four channels of one output pixel at a time.

use super::finish::{Finish, is_usual};
use super::{Passes, offset_pair, words};
use crate::doors::window_is_sane;
use crate::generic::depthwise_conv2d_s8::DepthwiseConv2dS8;
use crate::generic::window::taps_inside;
use netkit_core::op::DepthwiseConv2d;
use netkit_core::quant::Multiplier;

/// Channels of a block.
pub(crate) const BLOCK: usize = 4;

/// The weights of one tap, widened, in the order 0, 2, 1, 3.
type Tap = [i16; BLOCK];

/// Bytes of scratch: the weights in 16 bits, `[block][tap][channel]`.
pub(crate) const fn scratch(conv: &DepthwiseConv2d) -> usize {
    let blocks = conv.channels.div_ceil(BLOCK);
    blocks.saturating_mul(conv.window.taps()).saturating_mul(size_of::<Tap>())
}

/// Computes the convolution, or returns false where these passes cannot and has written nothing.
pub(crate) fn depthwise_conv2d_s8<P: Passes>(
    call: &mut DepthwiseConv2dS8<'_>,
    weights: &[i8],
) -> bool {
    let DepthwiseConv2d { window: w, channels, multiplier } = call.conv;
    let taps = w.taps();
    let Some(pixels) = call.rows.len().checked_mul(w.out_w) else { return false };
    let Some(in_pixels) = w.in_h.checked_mul(w.in_w) else { return false };
    let lengths_fit = window_is_sane(&w)
        && Some(call.input.len()) == in_pixels.checked_mul(channels)
        && Some(weights.len()) == taps.checked_mul(channels)
        && Some(call.output.len()) == pixels.checked_mul(channels)
        && (call.bias.len(), call.multipliers.len()) == (channels, channels);
    let in_reach = multiplier == 1 && channels >= BLOCK;
    if !(lengths_fit && in_reach && is_usual(call.bias, call.multipliers, taps)) {
        return false;
    }
    let Some(scratch) = words(call.scratch, scratch(&call.conv)) else { return false };
    let arranged: &mut [Tap] = bytemuck::cast_slice_mut(scratch);
    arrange(weights, channels, taps, arranged);
    let tap_step = w.dilation_w * channels;
    let row_step = w.dilation_h * w.in_w * channels;
    let tap_len = size_of::<Tap>();
    let mut pass = Pass {
        input: call.input.as_ptr(),
        tap_step,
        row_step,
        offset: offset_pair(call.input_zero_point),
        weights: arranged.as_ptr(),
        rows: 0,
        columns: 0,
        block_step: taps * tap_len,
        first_weight: 0,
        input_skip: 0,
        weights_skip: 0,
        bias: call.bias.as_ptr(),
        multipliers: call.multipliers.as_ptr(),
        output: call.output.as_mut_ptr(),
        blocks: 0,
        finish: Finish::new(call.stage),
    };
    for y in call.rows.clone() {
        let rows = taps_inside(y, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
        let row = (y * w.stride_h + rows.start * w.dilation_h).wrapping_sub(w.pad_top);
        for x in 0..w.out_w {
            let columns = taps_inside(x, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
            let column = (x * w.stride_w + columns.start * w.dilation_w).wrapping_sub(w.pad_left);
            let first = row.wrapping_mul(w.in_w).wrapping_add(column).wrapping_mul(channels);
            pass.input = call.input.as_ptr().wrapping_add(first);
            pass.weights = arranged.as_ptr();
            pass.rows = rows.len();
            pass.columns = columns.len();
            pass.first_weight = (rows.start * w.kernel_w + columns.start) * tap_len;
            pass.input_skip = row_step.wrapping_sub(columns.len() * tap_step);
            pass.weights_skip = (w.kernel_w - columns.len()) * tap_len;
            pass.bias = call.bias.as_ptr();
            pass.multipliers = call.multipliers.as_ptr();
            pass.blocks = channels / BLOCK;
            // SAFETY: the lengths fit, so for every channel an input at each tap inside the map, the
            // weights, bias, multiplier and output are there.
            unsafe { P::depthwise_conv2d(&mut pass) };
            let rest = channels % BLOCK;
            if rest != 0 {
                // The last four channels once more, some of them for the second time.
                pass.back_by(BLOCK - rest);
                // SAFETY: as above; there are at least four channels.
                unsafe { P::depthwise_conv2d(&mut pass) };
            }
        }
    }
    true
}

/// Widens the weights, which lie channel by channel, and puts those of four channels side by side, in the order 0, 2,
/// 1, 3. The last block is the last four channels, whatever the number.
fn arrange(weights: &[i8], channels: usize, taps: usize, blocks: &mut [Tap]) {
    for (block, to) in blocks.chunks_exact_mut(taps.max(1)).enumerate() {
        let first = (block * BLOCK).min(channels - BLOCK) * taps;
        let mut rows = weights.get(first..).unwrap_or(&[]).chunks_exact(taps.max(1));
        for place in [0, 2, 1, 3] {
            let row = rows.next().unwrap_or(&[]);
            for (&weight, to) in row.iter().zip(to.iter_mut()) {
                to[place] = weight.into();
            }
        }
    }
}

/// What [`Passes::depthwise_conv2d`] reads and writes.
#[repr(C)]
pub(crate) struct Pass {
    /// The first tap inside the map, of the next channel.
    pub(crate) input: *const i8,
    pub(crate) tap_step: usize,
    pub(crate) row_step: usize,
    /// The negated zero point in both halves.
    pub(crate) offset: u32,
    /// Of the next block, its first tap, be it inside or not.
    pub(crate) weights: *const Tap,
    /// Taps inside the map.
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Bytes of a block's weights.
    pub(crate) block_step: usize,
    /// Bytes of weights before the first tap inside.
    pub(crate) first_weight: usize,
    /// From the end of a row's taps to the next.
    pub(crate) input_skip: usize,
    pub(crate) weights_skip: usize,
    pub(crate) bias: *const i32,
    pub(crate) multipliers: *const Multiplier,
    pub(crate) output: *mut i8,
    /// Blocks of four channels, at least one.
    pub(crate) blocks: usize,
    pub(crate) finish: Finish,
}

impl Pass {
    /// Prepares for one more block that begins `channels` earlier. Its weights are a block of their own.
    fn back_by(&mut self, channels: usize) {
        self.input = self.input.wrapping_sub(channels);
        self.bias = self.bias.wrapping_sub(channels);
        self.multipliers = self.multipliers.wrapping_sub(channels);
        self.output = self.output.wrapping_sub(channels);
        self.blocks = 1;
    }
}
