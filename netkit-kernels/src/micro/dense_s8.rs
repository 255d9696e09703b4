//! Dense layers: four output features at a time.

use super::finish::{Finish, is_usual};
use super::{Passes, offset_pair};
use crate::generic::dense_s8::DenseS8;
use netkit_core::op::Dense;
use netkit_core::quant::Multiplier;

/// Output features of a block.
pub(crate) const BLOCK: usize = 4;

/// Computes the layer, or returns false where these passes cannot and has written nothing.
pub(crate) fn dense_s8<P: Passes>(call: &mut DenseS8<'_>, weights: &[i8]) -> bool {
    let Dense { in_features: taps, out_features, .. } = call.dense;
    let lengths_fit = Some(weights.len()) == taps.checked_mul(out_features)
        && (call.bias.len(), call.multipliers.len()) == (out_features, out_features);
    let in_reach = taps >= 4 && out_features >= BLOCK;
    if !(lengths_fit && in_reach && is_usual(call.bias, call.multipliers, taps)) {
        return false;
    }
    let groups = taps.div_ceil(4);
    let back = groups * 4 - taps;
    // Bytes of the last group that the group before has not counted.
    let [a, b, c, d] = (u32::MAX << (8 * back)).to_le_bytes().map(u32::from);
    let input = call.input.chunks_exact(taps);
    for (input, output) in input.zip(call.output.chunks_exact_mut(out_features)) {
        let mut pass = Pass {
            weights: weights.as_ptr(),
            taps,
            input: input.as_ptr(),
            offset: offset_pair(call.input_zero_point),
            whole_groups: groups - 1,
            back,
            fresh_even: a * 0x101 + c * 0x101_0000,
            fresh_odd: b * 0x101 + d * 0x101_0000,
            bias: call.bias.as_ptr(),
            multipliers: call.multipliers.as_ptr(),
            output: output.as_mut_ptr(),
            blocks: out_features / BLOCK,
            finish: Finish::new(call.stage),
        };
        // SAFETY: the lengths fit, so for every feature the weights, bias, multiplier and output are there; there are
        // `taps` inputs, at least four.
        unsafe { P::dense(&mut pass) };
        let rest = out_features % BLOCK;
        if rest != 0 {
            // The last features once more, some of them for the second time.
            pass.back_by(BLOCK - rest);
            // SAFETY: as above; there are at least as many features as a block has.
            unsafe { P::dense(&mut pass) };
        }
    }
    true
}

/// What [`Passes::dense`] reads and writes.
#[repr(C)]
pub(crate) struct Pass {
    pub(crate) weights: *const i8,
    /// Weights of one output feature.
    pub(crate) taps: usize,
    pub(crate) input: *const i8,
    /// The negated zero point in both halves.
    pub(crate) offset: u32,
    /// Groups of four taps before the last.
    pub(crate) whole_groups: usize,
    /// How many of the last group's taps are also in the group before it.
    pub(crate) back: usize,
    /// Ones where the last group's taps are not, in halves as `sxtb16` gives them.
    pub(crate) fresh_even: u32,
    pub(crate) fresh_odd: u32,
    pub(crate) bias: *const i32,
    pub(crate) multipliers: *const Multiplier,
    pub(crate) output: *mut i8,
    /// Blocks of output features, at least one.
    pub(crate) blocks: usize,
    pub(crate) finish: Finish,
}

impl Pass {
    /// Prepares for one more block that begins `features` features earlier.
    fn back_by(&mut self, features: usize) {
        self.weights = self.weights.wrapping_sub(features * self.taps);
        self.bias = self.bias.wrapping_sub(features);
        self.multipliers = self.multipliers.wrapping_sub(features);
        self.output = self.output.wrapping_sub(features);
        self.blocks = 1;
    }
}
