//! Dense layers: each output is the dot product of a row of weights with the input, the weights read
//! once, in the order of the file.

use super::activation::apply;
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

/// Outputs computed together, so that each vector of input is loaded once for as many products.
const OUTPUTS: usize = 4;

impl Kernel for DenseF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (inputs, outputs) = (self.dense.in_features, self.dense.out_features.max(1));
        let rows = self.input.chunks_exact(inputs.max(1));
        for (x, row) in rows.zip(self.output.chunks_exact_mut(outputs)) {
            for (block, to) in row.chunks_mut(OUTPUTS).enumerate() {
                let first = block * OUTPUTS;
                let mut sums = [simd.splat(0.0); OUTPUTS];
                let mut filters: [&[f32]; OUTPUTS] = [&[]; OUTPUTS];
                let mut scales = [1.0; OUTPUTS];
                for lane in 0..OUTPUTS {
                    // A lane past the last output repeats it; its sum is not stored.
                    let o = (first + lane).min(outputs - 1);
                    filters[lane] = self.weights.get(o * inputs..(o + 1) * inputs).unwrap_or(&[]);
                    scales[lane] = self.scale.and_then(|s| s.get(o)).copied().unwrap_or(1.0);
                }
                let [a, b, c, d] = filters.map(|f| f.chunks(S::LANES));
                for ((((x, a), b), c), d) in x.chunks(S::LANES).zip(a).zip(b).zip(c).zip(d) {
                    let x = simd.load(x);
                    let mut weights = [a, b, c, d].map(
                        #[inline(always)]
                        |w| simd.load(w),
                    );
                    if self.scale.is_some() {
                        for (weight, scale) in weights.iter_mut().zip(scales) {
                            *weight = simd.mul(*weight, simd.splat(scale));
                        }
                    }
                    for (sum, weight) in sums.iter_mut().zip(weights) {
                        *sum = simd.mul_add(x, weight, *sum);
                    }
                }
                for ((to, sum), bias) in
                    to.iter_mut().zip(sums).zip(self.bias.get(first..).unwrap_or(&[]))
                {
                    *to = simd.reduce_sum(sum) + bias;
                }
            }
            for y in row.chunks_mut(S::LANES) {
                let value = apply(simd, self.activation, simd.load(y));
                simd.store(y, value);
            }
        }
    }
}
