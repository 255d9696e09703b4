//! `dense_s8`.

use super::check::{has, require};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::arch::short_row_s8::{MOST_INPUTS, ShortRow};
use crate::dispatch::Kernels;
use crate::filter::FilterForm;
use crate::filter_s8::FilterS8;
use crate::generic::dense_s8::DenseS8;
use crate::workspace;
use netkit_core::op::Dense;
use netkit_core::quant::{Multiplier, OutputStage};

impl Kernels {
    /// `requantize(bias + weights · (x − input_zero_point))` for each row `x` of `input`, `[rows, in]`
    /// to `[rows, out]`.
    ///
    /// `bias` and `multipliers` have one element for each output feature; `scratch` is at least
    /// [`workspace::dense_s8`] bytes.
    ///
    /// Exact: [`requantize`](netkit_core::quant::requantize) of the sum modulo 2^32, whatever the
    /// instruction set and the form of the filter.
    #[allow(clippy::too_many_arguments, reason = "what a dense layer reads and writes")]
    pub fn dense_s8(
        self,
        dense: &Dense,
        input: &[i8],
        input_zero_point: i32,
        filter: FilterS8<'_>,
        bias: &[i32],
        multipliers: &[Multiplier],
        stage: OutputStage,
        output: &mut [i8],
        scratch: &mut [u8],
    ) {
        self.dense_s8_with_row_sums(
            dense,
            input,
            input_zero_point,
            filter,
            bias,
            &[],
            multipliers,
            stage,
            output,
            scratch,
        );
    }

    /// [`dense_s8`](Self::dense_s8) with what [`row_sums`](netkit_core::pack::row_sums) makes of `filter`, `bias` and
    /// `input_zero_point`, or nothing.
    ///
    /// Only CMSIS-NN for processors with vectors wants them, see [`ROW_SUMS`](crate::ROW_SUMS), and does not compute
    /// the layer without. If they are other numbers, so may the output be.
    // What a compiled model gives is constant, and so are the checks of it, which in a small layer take as long as the sums.
    #[cfg_attr(target_arch = "x86_64", inline)]
    #[allow(clippy::too_many_arguments, reason = "what a dense layer reads and writes")]
    pub fn dense_s8_with_row_sums(
        self,
        dense: &Dense,
        input: &[i8],
        input_zero_point: i32,
        filter: FilterS8<'_>,
        bias: &[i32],
        row_sums: &[i32],
        multipliers: &[Multiplier],
        stage: OutputStage,
        output: &mut [i8],
        scratch: &mut [u8],
    ) {
        let summed = row_sums.is_empty() || row_sums.len() == dense.out_features;
        require!(summed, "dense_s8: row sums length");
        require!(dense.in_features > 0, "dense_s8: nothing to sum");
        require!(has(input.len(), &[dense.rows, dense.in_features]), "dense_s8: input length");
        require!(has(output.len(), &[dense.rows, dense.out_features]), "dense_s8: output length");
        require!(bias.len() == dense.out_features, "dense_s8: bias length");
        require!(multipliers.len() == dense.out_features, "dense_s8: multipliers length");
        let form = match filter {
            FilterS8::File(weights) => {
                let len = [dense.out_features, dense.in_features];
                require!(has(weights.len(), &len), "dense_s8: filter length");
                FilterForm::File
            }
            #[cfg(not(netkit_micro))]
            FilterS8::Packed(panels) => {
                let len = netkit_core::pack::packed_dense_s8_len(dense);
                require!(panels.len() == len, "dense_s8: packed filter length");
                FilterForm::Packed
            }
        };
        let scratch = scratch.get_mut(..workspace::dense_s8(dense, form));
        require!(scratch.is_some(), "dense_s8: scratch too short");
        let Some(scratch) = scratch else { return };
        // Not behind CMSIS-NN, which is asked below; what it declines goes the general way.
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if let (false, 1, ..=MOST_INPUTS, FilterS8::Packed(panels)) =
            (self.has_library(), dense.rows, dense.in_features, filter)
        {
            return self.short_row_s8(ShortRow {
                input,
                panels,
                bias,
                multipliers,
                output,
                input_zero_point,
                stage,
            });
        }
        let dense = *dense;
        let call = DenseS8 {
            dense,
            input,
            input_zero_point,
            filter,
            bias,
            multipliers,
            stage,
            output,
            scratch,
        };
        #[cfg(feature = "cmsis-nn")]
        let Some((call, _)) = self.offer((call, row_sums)) else { return };
        self.checked_dense_s8(call);
    }

    /// A dense layer that is checked. Apart from the checks where these are compiled into callers.
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn checked_dense_s8(self, layer: DenseS8<'_>) {
        self.run_s8(layer);
    }

    /// The same of few inputs.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(never)]
    fn short_row_s8(self, layer: ShortRow<'_>) {
        self.run_s8(layer);
    }
}
