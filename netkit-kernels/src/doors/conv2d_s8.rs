//! `conv2d_s8`.

use super::check::{has, require, rows_exist, window_is_sane};
use crate::dispatch::Kernels;
use crate::filter::FilterForm;
use crate::filter_s8::FilterS8;
use crate::generic::conv2d_s8::Conv2dS8;
use crate::parallel::{Piece, compute, product};
use crate::workspace;
use core::ops::Range;
use netkit_core::op::Conv2d;
use netkit_core::quant::{Multiplier, OutputStage};

/// The form of the filter, if the lengths of all that a convolution reads are right.
#[inline]
pub(super) fn checked_form(
    conv: &Conv2d,
    input: &[i8],
    filter: FilterS8<'_>,
    bias: &[i32],
    multipliers: &[Multiplier],
) -> Option<FilterForm> {
    let w = &conv.window;
    require!(or None, window_is_sane(w), "conv2d_s8: a window of {w:?}");
    let inputs = [w.in_h, w.in_w, conv.in_channels];
    require!(or None, conv.in_channels > 0, "conv2d_s8: nothing to sum");
    require!(or None, has(input.len(), &inputs), "conv2d_s8: input length");
    require!(or None, bias.len() == conv.out_channels, "conv2d_s8: bias length");
    require!(or None, multipliers.len() == conv.out_channels, "conv2d_s8: multipliers length");
    Some(match filter {
        FilterS8::File(weights) => {
            let len = [conv.out_channels, w.kernel_h, w.kernel_w, conv.in_channels];
            require!(or None, has(weights.len(), &len), "conv2d_s8: filter length");
            FilterForm::File
        }
        #[cfg(not(netkit_micro))]
        FilterS8::Packed(panels) => {
            let len = netkit_core::pack::packed_conv2d_s8_len(conv);
            require!(or None, panels.len() == len, "conv2d_s8: packed filter length");
            FilterForm::Packed
        }
    })
}

impl Kernels {
    /// Rows `rows` of a convolution in int8: `requantize(bias + Σ w · (x − input_zero_point))`.
    ///
    /// `input` is the whole NHWC map, `output` just the output rows asked for; `bias` and `multipliers`
    /// have one element for each output channel; `scratch` is at least [`workspace::conv2d_s8`] bytes.
    /// A padded tap contributes 0.
    ///
    /// Exact: [`requantize`](netkit_core::quant::requantize) of the sum modulo 2^32, whatever the
    /// instruction set, the form of the filter and the choice of `rows`.
    #[allow(clippy::too_many_arguments, reason = "what a convolution reads and writes")]
    pub fn conv2d_s8(
        self,
        conv: &Conv2d,
        input: &[i8],
        input_zero_point: i32,
        filter: FilterS8<'_>,
        bias: &[i32],
        multipliers: &[Multiplier],
        stage: OutputStage,
        rows: Range<usize>,
        output: &mut [i8],
        scratch: &mut [u8],
    ) {
        let w = &conv.window;
        let form = checked_form(conv, input, filter, bias, multipliers);
        let Some(form) = form else { return };
        require!(rows_exist(&rows, w.out_h), "conv2d_s8: rows {rows:?} of {}", w.out_h);
        let outputs = [rows.len(), w.out_w, conv.out_channels];
        require!(has(output.len(), &outputs), "conv2d_s8: output length");
        let scratch = scratch.get_mut(..workspace::conv2d_s8(conv, form));
        require!(scratch.is_some(), "conv2d_s8: scratch too short");
        let Some(scratch) = scratch else { return };
        let conv = *conv;
        let row_macs =
            product([w.out_w, w.kernel_h, w.kernel_w, conv.in_channels, conv.out_channels]);
        compute(Piece { rows, output, residual: None, scratch }, row_macs, |piece| {
            let Piece { rows, output, scratch, .. } = piece;
            let call = Conv2dS8 {
                conv,
                input,
                input_zero_point,
                filter,
                bias,
                multipliers,
                stage,
                rows,
                output,
                scratch,
            };
            #[cfg(feature = "cmsis-nn")]
            let Some(call) = self.offer(call) else { return };
            self.run_s8(call);
        });
    }
}
