//! `depthwise_conv2d_f32`.

use super::check::{floats, has, require, rows_exist, window_is_sane};
use crate::dispatch::Kernels;
use crate::filter::{Filter, FilterForm};
use crate::generic::depthwise_conv2d_f32::DepthwiseConv2dF32;
use crate::parallel::{Piece, compute, product};
use crate::workspace;
use core::ops::Range;
use netkit_core::op::{Activation, DepthwiseConv2d};

/// The form of the filter, if the lengths of all that a convolution reads are right.
#[inline]
pub(super) fn checked_form(
    conv: &DepthwiseConv2d,
    input: &[f32],
    filter: Filter<'_>,
    bias: &[f32],
) -> Option<FilterForm> {
    let w = &conv.window;
    require!(or None, window_is_sane(w), "depthwise_conv2d_f32: a window of {w:?}");
    let inputs = [w.in_h, w.in_w, conv.channels];
    require!(or None, has(input.len(), &inputs), "depthwise_conv2d_f32: input length");
    let channels = [conv.channels, conv.multiplier];
    require!(or None, has(bias.len(), &channels), "depthwise_conv2d_f32: bias length");
    let weights = [conv.channels, conv.multiplier, w.kernel_h, w.kernel_w];
    let (form, values) = match filter {
        Filter::File { values, scale } => {
            let scaled = scale.is_none_or(|s| has(s.len(), &channels));
            require!(or None, scaled, "depthwise_conv2d_f32: scale length");
            (FilterForm::File, values)
        }
        #[cfg(not(netkit_micro))]
        Filter::Packed(values) => (FilterForm::Packed, values),
    };
    require!(or None, has(values.len(), &weights), "depthwise_conv2d_f32: filter length");
    Some(form)
}

impl Kernels {
    /// Rows `rows` of `activation(depthwise(input) + bias)`: output channel `c · multiplier + m` reads
    /// input channel `c`.
    ///
    /// `input` is the whole NHWC map, `output` just the output rows asked for; `scratch` is at least
    /// [`workspace::depthwise_conv2d_f32`] bytes. A padded tap contributes 0.
    ///
    /// The result differs from exact arithmetic by at most `(n + 3) · 2^−24 · (|bias| + Σ|w·x|)` plus
    /// what the activation adds, `n` being the number of taps. It is the same to the last bit for both
    /// forms of the filter and for any choice of `rows`.
    #[allow(clippy::too_many_arguments, reason = "what a convolution reads and writes")]
    pub fn depthwise_conv2d_f32(
        self,
        conv: &DepthwiseConv2d,
        input: &[f32],
        filter: Filter<'_>,
        bias: &[f32],
        activation: Activation,
        rows: Range<usize>,
        output: &mut [f32],
        scratch: &mut [u8],
    ) {
        let w = &conv.window;
        let Some(form) = checked_form(conv, input, filter, bias) else { return };
        require!(rows_exist(&rows, w.out_h), "depthwise_conv2d_f32: rows {rows:?} of {}", w.out_h);
        let outputs = [rows.len(), w.out_w, conv.channels, conv.multiplier];
        require!(has(output.len(), &outputs), "depthwise_conv2d_f32: output length");
        let scratch_bytes = workspace::depthwise_conv2d_f32(conv, form);
        let fits = floats(scratch, scratch_bytes).is_some();
        require!(fits, "depthwise_conv2d_f32: scratch too short or not aligned");
        let conv = *conv;
        let row_macs = product([w.out_w, w.kernel_h, w.kernel_w, conv.channels, conv.multiplier]);
        compute(Piece { rows, output, residual: None, scratch }, row_macs, |piece| {
            let Piece { rows, output, scratch, .. } = piece;
            let Some(scratch) = floats(scratch, scratch_bytes) else { return };
            self.run(DepthwiseConv2dF32 {
                conv,
                input,
                filter,
                bias,
                activation,
                rows,
                output,
                scratch,
            });
        });
    }
}
