//! Dense layers: each output is the dot product of a row of weights with the input, the weights read
//! once, in the order of the file.

#[cfg(target_arch = "x86_64")]
use super::activation::is_simple;
use super::activation::{apply, apply_simple};
#[cfg(not(netkit_micro))]
use super::dense_rows_f32::SeveralRowsF32;
use crate::arch::dot_f32::{DotsF32, SECOND_CACHE};
#[cfg(target_arch = "x86_64")]
use crate::filter::Filter;
use crate::simd::{Kernel, Simd};
use netkit_core::op::{Activation, Dense};

/// All rows of a dense layer, weights `[out, in]`. With `ANY` of any; without, of one that [is common](is_common), so its only row.
pub(crate) struct DenseF32<'a, const ANY: bool> {
    pub(crate) dense: Dense,
    pub(crate) input: &'a [f32],
    pub(crate) weights: &'a [f32],
    pub(crate) scale: Option<&'a [f32]>,
    pub(crate) bias: &'a [f32],
    pub(crate) activation: Activation,
    pub(crate) output: &'a mut [f32],
}

/// Whether a dense layer has one row, an activation that is little code, and weights as they are.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) const fn is_common(dense: &Dense, filter: Filter<'_>, activation: Activation) -> bool {
    let scaled = matches!(filter, Filter::File { scale: Some(_), .. });
    dense.rows == 1 && is_simple(activation) && !scaled
}

impl<const ANY: bool> Kernel for DenseF32<'_, ANY> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        #[cfg(not(netkit_micro))]
        if ANY && const { S::DENSE_TILE[0] > 0 } && self.dense.rows > 1 {
            // `ANY` is true here, which the type does not say.
            let Self { dense, input, weights, scale, bias, activation, output } = self;
            let any = DenseF32 { dense, input, weights, scale, bias, activation, output };
            return simd.call(SeveralRowsF32(any));
        }
        let (inputs, outputs) = (self.dense.in_features, self.dense.out_features.max(1));
        for (row, output) in self.output.chunks_exact_mut(outputs).enumerate() {
            DotsF32 {
                input: self.input.get(row * inputs..(row + 1) * inputs).unwrap_or(&[]),
                weights: self.weights,
                scale: if ANY { self.scale } else { None },
                bias: self.bias,
                near: self.weights.len() <= SECOND_CACHE,
                output,
            }
            .run(simd);
            if self.activation != Activation::None {
                for y in output.chunks_mut(S::LANES) {
                    let value = simd.load(y);
                    let value = if ANY {
                        apply(simd, self.activation, value)
                    } else {
                        apply_simple(simd, self.activation, value)
                    };
                    simd.store(y, value);
                }
            }
        }
    }
}
