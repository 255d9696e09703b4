//! `batch_norm_f32`, `layer_norm_f32`, `global_response_norm_f32`, `softmax_f32`.

use super::check::{floats, has, require};
use crate::dispatch::Kernels;
use crate::generic::elementwise_f32::BatchNormF32;
use crate::generic::norm_f32::{GlobalResponseNormF32, LayerNormF32};
use crate::generic::softmax_f32::SoftmaxF32;
use crate::workspace;
use netkit_core::op::{Activation, PerChannel};

impl Kernels {
    /// `activation(input · scale[c] + shift[c])`, channels last.
    ///
    /// The result differs from exact arithmetic by at most `2^−23 · (|x · scale| + |shift|)` plus what
    /// the activation adds.
    pub fn batch_norm_f32(
        self,
        shape: &PerChannel,
        input: &[f32],
        scale: &[f32],
        shift: &[f32],
        activation: Activation,
        output: &mut [f32],
    ) {
        let len = [shape.pixels, shape.channels];
        require!(has(input.len(), &len), "batch_norm_f32: input length");
        require!(has(output.len(), &len), "batch_norm_f32: output length");
        require!(scale.len() == shape.channels, "batch_norm_f32: scale length");
        require!(shift.len() == shape.channels, "batch_norm_f32: shift length");
        self.run(BatchNormF32 { shape: *shape, input, scale, shift, activation, output });
    }

    /// `(x − mean) / √(variance + epsilon) · gamma[c] + beta[c]`, mean and biased variance over the
    /// channels of each pixel.
    ///
    /// The result differs from exact arithmetic by at most `(n + 8) · 2^−24 · (|gamma| · (1 + max|x| /
    /// √(variance + epsilon)) + |beta|)`, `n` being the number of channels. NaN or ±∞ makes NaN of its
    /// whole pixel; deviations whose squares overflow leave `beta`.
    pub fn layer_norm_f32(
        self,
        shape: &PerChannel,
        epsilon: f32,
        input: &[f32],
        gamma: &[f32],
        beta: &[f32],
        output: &mut [f32],
    ) {
        let len = [shape.pixels, shape.channels];
        require!(has(input.len(), &len), "layer_norm_f32: input length");
        require!(has(output.len(), &len), "layer_norm_f32: output length");
        require!(gamma.len() == shape.channels, "layer_norm_f32: gamma length");
        require!(beta.len() == shape.channels, "layer_norm_f32: beta length");
        self.run(LayerNormF32 { shape: *shape, epsilon, input, gamma, beta, output });
    }

    /// `G[c] = √(Σ x²)` over the pixels, `N[c] = G[c] / (mean_c G + epsilon)`,
    /// `y = gamma[c] · x · N[c] + beta[c] + x`. `scratch` is at least
    /// [`workspace::global_response_norm_f32`] bytes.
    ///
    /// The result differs from exact arithmetic by at most `(n + 8) · 2^−24 · (|x · (gamma · N + 1)| +
    /// |x · gamma · N| + |beta|)`, `n` being the larger of the numbers of pixels and channels. A channel
    /// whose sum of squares overflows is NaN; NaN in one channel is NaN in all.
    #[allow(clippy::too_many_arguments, reason = "what the operator reads and writes")]
    pub fn global_response_norm_f32(
        self,
        shape: &PerChannel,
        epsilon: f32,
        input: &[f32],
        gamma: &[f32],
        beta: &[f32],
        output: &mut [f32],
        scratch: &mut [u8],
    ) {
        let len = [shape.pixels, shape.channels];
        require!(has(input.len(), &len), "global_response_norm_f32: input length");
        require!(has(output.len(), &len), "global_response_norm_f32: output length");
        require!(gamma.len() == shape.channels, "global_response_norm_f32: gamma length");
        require!(beta.len() == shape.channels, "global_response_norm_f32: beta length");
        let factors = floats(scratch, workspace::global_response_norm_f32(shape));
        require!(factors.is_some(), "global_response_norm_f32: scratch too short or not aligned");
        let Some(factors) = factors else { return };
        let shape = *shape;
        self.run(GlobalResponseNormF32 { shape, epsilon, input, gamma, beta, output, factors });
    }

    /// `e^(x − max) / Σ e^(x − max)` over all elements.
    ///
    /// The result differs from exact arithmetic by at most `(n + 8 + max − x) · 2^−24` times itself
    /// plus `2^−125`, `n` being the number of elements. −∞ gives 0; NaN or +∞ anywhere, or −∞ everywhere,
    /// makes all of it NaN.
    pub fn softmax_f32(self, input: &[f32], output: &mut [f32]) {
        require!(input.len() == output.len(), "softmax_f32: output length");
        self.run(SoftmaxF32 { input, output });
    }
}
