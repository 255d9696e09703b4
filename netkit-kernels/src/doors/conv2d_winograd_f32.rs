//! `conv2d_winograd_f32`.

use super::check::{floats, has, require, rows_exist, window_is_sane};
use crate::dispatch::Kernels;
use crate::generic::winograd_f32::WinogradConv2dF32;
use crate::parallel::{Piece, compute, product};
use crate::workspace;
use core::ops::Range;
use netkit_core::op::{Activation, Conv2d};
use netkit_core::pack;

impl Kernels {
    /// Rows `rows` of `activation(conv(input) + bias + residual)` for a 3×3 convolution without stride and dilation, in
    /// Winograd's form F(2×2, 3×3): four products for each output instead of nine.
    ///
    /// `input` is the whole NHWC map, `output` and `residual` are just the output rows asked for; `filter` is as
    /// [`pack_conv2d_winograd_f32`](pack::pack_conv2d_winograd_f32) writes it; `scratch` is at least
    /// [`workspace::conv2d_winograd_f32`] bytes. The result is the same to the last bit for any choice of `rows`.
    ///
    /// An output is one of a tile of 2×2, which is computed from the 4×4 inputs under it, padding included. With `X` the
    /// largest magnitude among these, in all `c` input channels, and `Σ|w|` over the weights of the output's channel, the
    /// result differs from exact arithmetic by at most
    ///
    /// `(c + 9) · 2^−24 · (16 · X · Σ|w| + |bias| + |residual|)`
    ///
    /// to first order, plus what the activation adds. An output can so inherit the error of a larger neighbour, which
    /// [`conv2d_f32`](Self::conv2d_f32) rules out. The reason: a transformed weight is rounded once, a transformed input at
    /// most twice, a sum of `c` products at most `c + 1` times, and the transform of the sums and the residual add five
    /// roundings, each at most `2^−24` of `|A|ᵀ [Σ (|G| |w| |G|ᵀ) ⊙ (|B|ᵀ |x| |B|)] |A|`. Rows of `|B|ᵀ` sum to 2, so the
    /// inner factor is at most `4X`; entries of `|A|ᵀ |G|` are at most 2, which makes `4 Σ|w|` of the rest. (The norms are
    /// those of B. Barabasz, A. Anderson, K. M. Soodhalter and D. Gregg, Error Analysis and Improving the Accuracy of Winograd
    /// Convolution for Deep Neural Networks, ACM TOMS 46, 2020.)
    ///
    /// NaN or ±∞ in an input may make NaN of every output of the tiles that read it.
    #[allow(clippy::too_many_arguments, reason = "what a convolution reads and writes")]
    pub fn conv2d_winograd_f32(
        self,
        conv: &Conv2d,
        input: &[f32],
        filter: &[f32],
        bias: &[f32],
        residual: Option<&[f32]>,
        activation: Activation,
        rows: Range<usize>,
        output: &mut [f32],
        scratch: &mut [u8],
    ) {
        let w = &conv.window;
        require!(window_is_sane(w), "conv2d_winograd_f32: a window of {w:?}");
        require!(pack::has_winograd_form(conv), "conv2d_winograd_f32: no such form of {w:?}");
        require!(rows_exist(&rows, w.out_h), "conv2d_winograd_f32: rows {rows:?} of {}", w.out_h);
        let inputs = [w.in_h, w.in_w, conv.in_channels];
        require!(conv.in_channels > 0, "conv2d_winograd_f32: nothing to sum");
        require!(has(input.len(), &inputs), "conv2d_winograd_f32: input length");
        let outputs = [rows.len(), w.out_w, conv.out_channels];
        require!(has(output.len(), &outputs), "conv2d_winograd_f32: output length");
        let added = residual.is_none_or(|r| has(r.len(), &outputs));
        require!(added, "conv2d_winograd_f32: residual length");
        require!(bias.len() == conv.out_channels, "conv2d_winograd_f32: bias length");
        let filter_len = pack::packed_conv2d_winograd_f32_len(conv);
        require!(filter.len() == filter_len, "conv2d_winograd_f32: filter length");
        let scratch_bytes = workspace::conv2d_winograd_f32(conv);
        let fits = floats(scratch, scratch_bytes).is_some();
        require!(fits, "conv2d_winograd_f32: scratch too short or not aligned");
        let conv = *conv;
        let row_macs = product([w.out_w, 9, conv.in_channels, conv.out_channels]);
        compute(Piece { rows, output, residual, scratch }, row_macs, |piece| {
            let Piece { rows, output, residual, scratch } = piece;
            let Some(scratch) = floats(scratch, scratch_bytes) else { return };
            self.run(WinogradConv2dF32 {
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
