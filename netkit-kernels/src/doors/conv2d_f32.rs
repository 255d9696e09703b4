//! `conv2d_f32`.

use super::check::{floats, has, require, rows_exist, window_is_sane};
use crate::dispatch::Kernels;
use crate::filter::{Filter, FilterForm};
use crate::generic::conv2d_f32::Conv2dF32;
#[cfg(target_arch = "x86_64")]
use crate::generic::conv2d_f32::{is_common, wants_three_vectors};
use crate::parallel::{Piece, compute, product};
use crate::workspace;
use core::ops::Range;
use netkit_core::op::{Activation, Conv2d};

/// The form of the filter, if the lengths of all that a convolution reads are right.
#[inline]
pub(super) fn checked_form(
    conv: &Conv2d,
    input: &[f32],
    filter: Filter<'_>,
    bias: &[f32],
) -> Option<FilterForm> {
    let w = &conv.window;
    require!(or None, window_is_sane(w), "conv2d_f32: a window of {w:?}");
    let inputs = [w.in_h, w.in_w, conv.in_channels];
    require!(or None, conv.in_channels > 0, "conv2d_f32: nothing to sum");
    require!(or None, has(input.len(), &inputs), "conv2d_f32: input length");
    require!(or None, bias.len() == conv.out_channels, "conv2d_f32: bias length");
    Some(match filter {
        Filter::File { values, scale } => {
            let weights = [conv.out_channels, w.kernel_h, w.kernel_w, conv.in_channels];
            require!(or None, has(values.len(), &weights), "conv2d_f32: filter length");
            let scaled = scale.is_none_or(|s| s.len() == conv.out_channels);
            require!(or None, scaled, "conv2d_f32: scale length");
            FilterForm::File
        }
        #[cfg(not(netkit_micro))]
        Filter::Packed(values) => {
            let len = netkit_core::pack::packed_conv2d_f32_len(conv);
            require!(or None, values.len() == len, "conv2d_f32: packed filter length");
            FilterForm::Packed
        }
    })
}

/// What `conv2d_f32` is given.
struct Given<'a> {
    conv: &'a Conv2d,
    input: &'a [f32],
    filter: Filter<'a>,
    bias: &'a [f32],
    residual: Option<&'a [f32]>,
    activation: Activation,
    rows: Range<usize>,
    output: &'a mut [f32],
    scratch: &'a mut [u8],
}

impl Kernels {
    /// Rows `rows` of `activation(conv(input) + bias + residual)`.
    ///
    /// `input` is the whole NHWC map, `output` and `residual` are just the output rows asked for;
    /// `scratch` is at least [`workspace::conv2d_f32`] bytes. A padded tap contributes 0.
    ///
    /// The result differs from exact arithmetic by at most `(n + 3) · 2^−24 · (|bias| + Σ|w·x|)` plus
    /// what the activation adds, `n` being the number of taps times input channels. It is the same to
    /// the last bit for both forms of the filter and for any choice of `rows`.
    #[cfg_attr(target_arch = "x86_64", inline)]
    #[allow(clippy::too_many_arguments, reason = "what a convolution reads and writes")]
    pub fn conv2d_f32(
        self,
        conv: &Conv2d,
        input: &[f32],
        filter: Filter<'_>,
        bias: &[f32],
        residual: Option<&[f32]>,
        activation: Activation,
        rows: Range<usize>,
        output: &mut [f32],
        scratch: &mut [u8],
    ) {
        // Inlined: a caller that knows all of this holds the kernels it has a use for. Behind it are two functions rather than a
        // generic one, which would be compiled with the caller, and the kernels with it.
        let given =
            Given { conv, input, filter, bias, residual, activation, rows, output, scratch };
        #[cfg(target_arch = "x86_64")]
        if is_common(conv, filter, activation) && !wants_three_vectors(conv) {
            return self.common_conv2d_f32(given);
        }
        self.any_conv2d_f32(given);
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    fn common_conv2d_f32(self, given: Given<'_>) {
        self.conv2d_f32_of::<false>(given);
    }

    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn any_conv2d_f32(self, given: Given<'_>) {
        self.conv2d_f32_of::<true>(given);
    }

    /// Any layer, or one that is common.
    #[inline(always)]
    fn conv2d_f32_of<const ANY: bool>(self, given: Given<'_>) {
        let Given { conv, input, filter, bias, residual, activation, rows, output, scratch } =
            given;
        let w = &conv.window;
        let Some(form) = checked_form(conv, input, filter, bias) else { return };
        require!(rows_exist(&rows, w.out_h), "conv2d_f32: rows {rows:?} of {}", w.out_h);
        let outputs = [rows.len(), w.out_w, conv.out_channels];
        require!(has(output.len(), &outputs), "conv2d_f32: output length");
        require!(residual.is_none_or(|r| has(r.len(), &outputs)), "conv2d_f32: residual length");
        let scratch_bytes = workspace::conv2d_f32(conv, form);
        let fits = floats(scratch, scratch_bytes).is_some();
        require!(fits, "conv2d_f32: scratch too short or not aligned");
        let conv = *conv;
        let row_macs =
            product([w.out_w, w.kernel_h, w.kernel_w, conv.in_channels, conv.out_channels]);
        compute(Piece { rows, output, residual, scratch }, row_macs, |piece| {
            let Piece { rows, output, residual, scratch } = piece;
            let Some(scratch) = floats(scratch, scratch_bytes) else { return };
            self.run(Conv2dF32::<'_, ANY> {
                conv,
                input,
                filter,
                bias,
                residual,
                activation,
                rows,
                output,
                scratch,
            });
        });
    }
}
