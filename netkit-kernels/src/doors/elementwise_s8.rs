//! `add_s8`, `softmax_s8`.

use super::check::require;
use crate::dispatch::Kernels;
use crate::generic::elementwise_s8::AddS8;
use crate::generic::softmax_s8::SoftmaxS8;
use netkit_core::quant::{AddStage, SoftmaxStage};

impl Kernels {
    /// The sum of two tensors of one shape, each with its own quantization. Exact:
    /// [`AddStage::apply`].
    pub fn add_s8(self, stage: &AddStage, left: &[i8], right: &[i8], output: &mut [i8]) {
        require!(left.len() == output.len(), "add_s8: length of the first input");
        require!(right.len() == output.len(), "add_s8: length of the second input");
        self.run_s8(AddS8 { stage: *stage, left, right, output });
    }

    /// Softmax over all elements, at most [`SoftmaxStage::MAX_LEN`]. Exact: the fixed-point arithmetic
    /// of [`SoftmaxStage`].
    pub fn softmax_s8(self, stage: &SoftmaxStage, input: &[i8], output: &mut [i8]) {
        require!(input.len() == output.len(), "softmax_s8: output length");
        require!(input.len() <= SoftmaxStage::MAX_LEN, "softmax_s8: {} elements", input.len());
        self.run_s8(SoftmaxS8 { stage: *stage, input, output });
    }
}
