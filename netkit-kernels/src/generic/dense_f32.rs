//! Dense layers: each output is the dot product of a row of weights with the input, the weights read
//! once, in the order of the file.

use super::activation::apply;
#[cfg(not(netkit_micro))]
use super::dense_rows_f32::SeveralRowsF32;
use crate::arch::dot_f32::{DotsF32, SECOND_CACHE};
use crate::simd::{Kernel, Simd};
use netkit_core::op::{Activation, Dense};

/// All rows of a dense layer, weights `[out, in]`.
pub(crate) struct DenseF32<'a> {
    pub(crate) dense: Dense,
    pub(crate) input: &'a [f32],
    pub(crate) weights: &'a [f32],
    pub(crate) scale: Option<&'a [f32]>,
    pub(crate) bias: &'a [f32],
    pub(crate) activation: Activation,
    pub(crate) output: &'a mut [f32],
}

impl Kernel for DenseF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        #[cfg(not(netkit_micro))]
        if const { S::DENSE_TILE[0] > 0 } && self.dense.rows > 1 {
            return simd.call(SeveralRowsF32(self));
        }
        let (inputs, outputs) = (self.dense.in_features, self.dense.out_features.max(1));
        for (row, output) in self.output.chunks_exact_mut(outputs).enumerate() {
            DotsF32 {
                input: self.input.get(row * inputs..(row + 1) * inputs).unwrap_or(&[]),
                weights: self.weights,
                scale: self.scale,
                bias: self.bias,
                near: self.weights.len() <= SECOND_CACHE,
                output,
            }
            .run(simd);
            if self.activation != Activation::None {
                for y in output.chunks_mut(S::LANES) {
                    let value = apply(simd, self.activation, simd.load(y));
                    simd.store(y, value);
                }
            }
        }
    }
}
