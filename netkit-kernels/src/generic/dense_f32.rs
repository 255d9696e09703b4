//! Dense layers: each output is the dot product of a row of weights with the input, the weights read
//! once, in the order of the file.

use super::activation::apply;
#[cfg(not(netkit_micro))]
use super::elementwise_f32::ActivationInPlaceF32;
#[cfg(not(netkit_micro))]
use crate::arch::dot_f32::DotsOfInputsF32;
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

/// A dense layer of more rows than one. A kernel of its own, so that the one for a single row stays as it is.
#[cfg(not(netkit_micro))]
struct SeveralRowsF32<'a>(DenseF32<'a>);

#[cfg(not(netkit_micro))]
impl Kernel for SeveralRowsF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let done = if const { matches!(S::DENSE_TILE, [4, 4]) } {
            let done = self.tiles::<S, 4, 4>(simd, 0);
            // Up to three may be left.
            if self.0.dense.rows > done + 1 { self.tiles::<S, 2, 6>(simd, done) } else { done }
        } else if const { matches!(S::DENSE_TILE, [2, 6]) } {
            self.tiles::<S, 2, 6>(simd, 0)
        } else {
            self.tiles::<S, 2, 4>(simd, 0)
        };
        let DenseF32 { dense, input, activation, output, .. } = self.0;
        let done_len = (done * dense.out_features).min(output.len());
        let (data, last) = output.split_at_mut(done_len);
        if activation != Activation::None {
            simd.call(ActivationInPlaceF32 { activation, data });
        }
        if done < dense.rows {
            let dense = Dense { rows: 1, ..dense };
            let input = input.get(done * dense.in_features..).unwrap_or(&[]);
            simd.call(DenseF32 { dense, input, output: last, ..self.0 });
        }
    }
}

/// Features from which a tile takes less time than most of its rows alone: 1.7 times less with 784, 1.1 times more with 128.
#[cfg(not(netkit_micro))]
const LONG: usize = 256;

#[cfg(not(netkit_micro))]
impl SeveralRowsF32<'_> {
    /// The dot products of rows `first` and after: whole tiles, and one that pays although rows are missing, which repeat the
    /// last. Says what row is the first that is not computed.
    #[inline(always)]
    fn tiles<S: Simd, const INPUTS: usize, const ROWS: usize>(
        &mut self,
        simd: S,
        first: usize,
    ) -> usize {
        let DenseF32 { dense, input, weights, scale, bias, .. } = self.0;
        let Dense { rows, in_features: features, out_features: outputs } = dense;
        let near = weights.len() <= SECOND_CACHE;
        let left = (rows - first) % INPUTS;
        // Beyond the cache it is reading the weights that takes the time, so they are read once.
        let pays = !near || left * 2 > INPUTS && features >= LONG;
        let end = if pays { rows } else { rows - left };
        let inputs = input.get(first * features..end * features);
        let output = self.0.output.get_mut(first * outputs..end * outputs);
        if let (Some(inputs), Some(output)) = (inputs, output)
            && end > first
        {
            simd.call(DotsOfInputsF32::<INPUTS, ROWS> {
                features,
                inputs,
                weights,
                scale,
                bias,
                near,
                output,
            });
        }
        end
    }
}
