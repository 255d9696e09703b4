//! Int8 softmax.

use crate::simd_s8::{KernelS8, SimdS8};
use netkit_core::quant::SoftmaxStage;

/// Logits computed together: the compiler turns the loops over them into vectors. It has none for them on
/// microcontrollers, and would only write the exponential sixteen times.
const BLOCK: usize = if cfg!(netkit_micro) { 1 } else { 16 };

/// Softmax over all elements.
pub(crate) struct SoftmaxS8<'a> {
    pub(crate) stage: SoftmaxStage,
    pub(crate) input: &'a [i8],
    pub(crate) output: &'a mut [i8],
}

impl KernelS8 for SoftmaxS8<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: SimdS8>(self, _: S) {
        let max = self.input.iter().copied().max().map_or(0, i32::from);
        let mut sum = 0i32;
        let mut last = [0; BLOCK];
        for block in self.input.chunks(BLOCK) {
            last = exps(&self.stage, block, max);
            for &exp in last.iter().take(block.len()) {
                sum = sum.wrapping_add(SoftmaxStage::term(exp));
            }
        }
        let normaliser = SoftmaxStage::normaliser(sum);
        let one_block = self.input.len() <= BLOCK;
        for (block, output) in self.input.chunks(BLOCK).zip(self.output.chunks_mut(BLOCK)) {
            // Computed again rather than kept: a row may be long, and there is no scratch.
            let exps = if one_block { last } else { exps(&self.stage, block, max) };
            for (to, exp) in output.iter_mut().zip(exps) {
                *to = normaliser.apply(exp);
            }
        }
    }
}

/// The exponentials of a block. Logits too far below the largest get 0, which adds nothing to the sum
/// and becomes −128.
#[cfg_attr(netkit_micro, inline(never))]
#[cfg_attr(not(netkit_micro), inline(always))]
fn exps(stage: &SoftmaxStage, block: &[i8], max: i32) -> [i32; BLOCK] {
    let mut differences = [0; BLOCK];
    for (to, &q) in differences.iter_mut().zip(block) {
        *to = i32::from(q) - max;
    }
    let mut exps = [0; BLOCK];
    for (exp, difference) in exps.iter_mut().zip(differences) {
        let here = stage.exp(difference);
        *exp = if difference < stage.min_difference { 0 } else { here };
    }
    exps
}
