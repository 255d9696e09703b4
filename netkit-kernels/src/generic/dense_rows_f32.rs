//! Float dense layers of several rows, which share the reading of weights.

use super::dense_f32::DenseF32;
use super::elementwise_f32::ActivationInPlaceF32;
use crate::arch::dot_f32::SECOND_CACHE;
use crate::arch::dots_of_inputs_f32::DotsOfInputsF32;
use crate::simd::{Kernel, Simd};
use netkit_core::op::{Activation, Dense};

/// A dense layer of more rows than one. A kernel of its own, so that the one for a single row stays as it is.
pub(crate) struct SeveralRowsF32<'a>(pub(crate) DenseF32<'a, true>);

impl Kernel for SeveralRowsF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        const { assert!(matches!(S::DENSE_TILE, [4, 4] | [2, 6] | [2, 4] | [0, 0])) };
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
            simd.call(DenseF32::<'_, true> { dense, input, output: last, ..self.0 });
        }
    }
}

/// Features from which a tile takes less time than most of its rows alone: 1.7 times less with 784, 1.1 times more with 128.
const LONG: usize = 256;

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
