//! `dense_f32`.

use super::check::{has, require};
use crate::dispatch::Kernels;
use crate::filter::Filter;
use crate::generic::dense_f32::DenseF32;
#[cfg(target_arch = "x86_64")]
use crate::generic::dense_f32::is_common;
use crate::parallel::{Piece, compute, product};
use netkit_core::op::{Activation, Dense};

/// What `dense_f32` is given.
struct Given<'a> {
    dense: &'a Dense,
    input: &'a [f32],
    filter: Filter<'a>,
    bias: &'a [f32],
    activation: Activation,
    output: &'a mut [f32],
}

impl Kernels {
    /// `activation(weights · x + bias)` for each row `x` of `input`, `[rows, in]` to `[rows, out]`.
    ///
    /// File order is what a matrix times a vector wants, so both forms of the filter are `[out, in]`,
    /// and there is no scratch.
    ///
    /// The result differs from exact arithmetic by at most `(n + 6) · 2^−24 · (|bias| + Σ|w·x|)` plus
    /// what the activation adds, `n` being the input features.
    #[cfg_attr(target_arch = "x86_64", inline)]
    pub fn dense_f32(
        self,
        dense: &Dense,
        input: &[f32],
        filter: Filter<'_>,
        bias: &[f32],
        activation: Activation,
        output: &mut [f32],
    ) {
        // As in `conv2d_f32`.
        let given = Given { dense, input, filter, bias, activation, output };
        #[cfg(target_arch = "x86_64")]
        if is_common(dense, filter, activation) {
            return self.common_dense_f32(given);
        }
        self.any_dense_f32(given);
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    fn common_dense_f32(self, given: Given<'_>) {
        self.dense_f32_of::<false>(given);
    }

    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn any_dense_f32(self, given: Given<'_>) {
        self.dense_f32_of::<true>(given);
    }

    /// Any layer, or one that is common.
    #[inline(always)]
    fn dense_f32_of<const ANY: bool>(self, given: Given<'_>) {
        let Given { dense, input, filter, bias, activation, output } = given;
        require!(dense.in_features > 0, "dense_f32: nothing to sum");
        require!(has(input.len(), &[dense.rows, dense.in_features]), "dense_f32: input length");
        require!(has(output.len(), &[dense.rows, dense.out_features]), "dense_f32: output length");
        require!(bias.len() == dense.out_features, "dense_f32: bias length");
        let (weights, scale) = match filter {
            Filter::File { values, scale } => (values, scale),
            #[cfg(not(netkit_micro))]
            Filter::Packed(values) => (values, None),
        };
        let len = [dense.out_features, dense.in_features];
        require!(has(weights.len(), &len), "dense_f32: filter length");
        let scaled = scale.is_none_or(|s| s.len() == dense.out_features);
        require!(scaled, "dense_f32: scale length");
        let row_macs = product([dense.in_features, dense.out_features]);
        let whole = Piece { rows: 0..dense.rows, output, residual: None, scratch: &mut [] };
        compute(whole, row_macs, |piece| {
            let Piece { rows, output, .. } = piece;
            let dense = Dense { rows: rows.len(), ..*dense };
            let input = input.get(rows.start * dense.in_features..).unwrap_or(&[]);
            self.run(DenseF32::<'_, ANY> {
                dense,
                input,
                weights,
                scale,
                bias,
                activation,
                output,
            });
        });
    }
}
