//! The int8 sum of two tensors.

use crate::arch::add_s8::add;
use crate::simd_s8::{KernelS8, SimdS8};
use netkit_core::quant::AddStage;

/// Element-wise sum.
pub(crate) struct AddS8<'a> {
    pub(crate) stage: AddStage,
    pub(crate) left: &'a [i8],
    pub(crate) right: &'a [i8],
    pub(crate) output: &'a mut [i8],
}

impl KernelS8 for AddS8<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        add(simd, &self.stage, self.left, self.right, self.output);
    }
}
