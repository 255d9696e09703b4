//! Normalisations over the channels of a pixel or over the pixels of a channel.

use crate::simd::{Kernel, Simd};
use netkit_core::op::PerChannel;

/// `(x − mean) / √(variance + ε) · gamma[c] + beta[c]` over the channels of each pixel.
pub(crate) struct LayerNormF32<'a> {
    pub(crate) shape: PerChannel,
    pub(crate) epsilon: f32,
    pub(crate) input: &'a [f32],
    pub(crate) gamma: &'a [f32],
    pub(crate) beta: &'a [f32],
    pub(crate) output: &'a mut [f32],
}

impl Kernel for LayerNormF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let channels = self.shape.channels.max(1);
        let count = channels as f32;
        let pixels = self.input.chunks_exact(channels);
        for (x, y) in pixels.zip(self.output.chunks_exact_mut(channels)) {
            let (whole, tail) = x.split_at(channels - channels % S::LANES);
            let mut lanes = simd.splat(0.0);
            for chunk in whole.chunks_exact(S::LANES) {
                lanes = simd.add(lanes, simd.load(chunk));
            }
            let mean = (simd.reduce_sum(lanes) + tail.iter().sum::<f32>()) / count;
            // A second pass: the sum of squares minus the square of the sum would cancel.
            let mut lanes = simd.splat(0.0);
            for chunk in whole.chunks_exact(S::LANES) {
                let deviation = simd.sub(simd.load(chunk), simd.splat(mean));
                lanes = simd.mul_add(deviation, deviation, lanes);
            }
            let squares: f32 = tail.iter().map(|x| (x - mean) * (x - mean)).sum();
            let variance = (simd.reduce_sum(lanes) + squares) / count;
            let factor = simd.splat(1.0 / libm::sqrtf(variance + self.epsilon));
            let constants = self.gamma.chunks(S::LANES).zip(self.beta.chunks(S::LANES));
            let data = x.chunks(S::LANES).zip(y.chunks_mut(S::LANES));
            for ((gamma, beta), (x, y)) in constants.zip(data) {
                let deviation = simd.sub(simd.load(x), simd.splat(mean));
                let normal = simd.mul(deviation, factor);
                simd.store(y, simd.mul_add(normal, simd.load(gamma), simd.load(beta)));
            }
        }
    }
}

/// `G[c] = √(Σ_pixels x²)`, `N[c] = G[c] / (mean_c G + ε)`, `y = gamma[c] · x · N[c] + beta[c] + x`.
pub(crate) struct GlobalResponseNormF32<'a> {
    pub(crate) shape: PerChannel,
    pub(crate) epsilon: f32,
    pub(crate) input: &'a [f32],
    pub(crate) gamma: &'a [f32],
    pub(crate) beta: &'a [f32],
    pub(crate) output: &'a mut [f32],
    /// One float a channel.
    pub(crate) factors: &'a mut [f32],
}

impl Kernel for GlobalResponseNormF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let channels = self.shape.channels.max(1);
        self.factors.fill(0.0);
        for pixel in self.input.chunks_exact(channels) {
            for (sum, x) in self.factors.chunks_mut(S::LANES).zip(pixel.chunks(S::LANES)) {
                let x = simd.load(x);
                let total = simd.mul_add(x, x, simd.load(sum));
                simd.store(sum, total);
            }
        }
        let mut total = 0.0;
        for factor in &mut *self.factors {
            *factor = libm::sqrtf(*factor);
            total += *factor;
        }
        // y = x · (gamma · N + 1) + beta
        let scale = 1.0 / (total / channels as f32 + self.epsilon);
        for (factor, gamma) in self.factors.iter_mut().zip(self.gamma) {
            *factor = *factor * scale * gamma + 1.0;
        }
        let pixels = self.input.chunks_exact(channels);
        for (x, y) in pixels.zip(self.output.chunks_exact_mut(channels)) {
            let constants = self.factors.chunks(S::LANES).zip(self.beta.chunks(S::LANES));
            let data = x.chunks(S::LANES).zip(y.chunks_mut(S::LANES));
            for ((factor, beta), (x, y)) in constants.zip(data) {
                let value = simd.mul_add(simd.load(x), simd.load(factor), simd.load(beta));
                simd.store(y, value);
            }
        }
    }
}
