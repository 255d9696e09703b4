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
            let deviation = simd.sqrt(simd.splat(variance + self.epsilon));
            let factor = simd.div(simd.splat(1.0), deviation);
            let normal = Some((simd.splat(mean), factor));
            affine(simd, normal, x, self.gamma, self.beta, y);
        }
    }
}

/// `y = x · scale + shift`, `x` first taken relative to a mean and multiplied by a factor where they are given.
#[inline(always)]
fn affine<S: Simd>(
    simd: S,
    normal: Option<(S::Vector, S::Vector)>,
    x: &[f32],
    scale: &[f32],
    shift: &[f32],
    y: &mut [f32],
) {
    // Whole vectors apart from what is left: their slices need not be asked for their lengths.
    let rest = y.len() - y.len() % S::LANES;
    let constants = scale.chunks_exact(S::LANES).zip(shift.chunks_exact(S::LANES));
    let data = x.chunks_exact(S::LANES).zip(y.chunks_exact_mut(S::LANES));
    for ((scale, shift), (x, y)) in constants.zip(data) {
        let value = affine_vector(simd, normal, x, scale, shift);
        simd.store(y, value);
    }
    if let (Some(x), Some(scale), Some(shift), Some(y @ [_, ..])) =
        (x.get(rest..), scale.get(rest..), shift.get(rest..), y.get_mut(rest..))
    {
        let value = affine_vector(simd, normal, x, scale, shift);
        simd.store(y, value);
    }
}

#[inline(always)]
fn affine_vector<S: Simd>(
    simd: S,
    normal: Option<(S::Vector, S::Vector)>,
    x: &[f32],
    scale: &[f32],
    shift: &[f32],
) -> S::Vector {
    let mut x = simd.load(x);
    if let Some((mean, factor)) = normal {
        x = simd.mul(simd.sub(x, mean), factor);
    }
    simd.mul_add(x, simd.load(scale), simd.load(shift))
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
            let rest = channels - channels % S::LANES;
            let (sums, last_sums) = self.factors.split_at_mut(rest.min(self.factors.len()));
            let (whole, last) = pixel.split_at(rest);
            for (sum, x) in sums.chunks_exact_mut(S::LANES).zip(whole.chunks_exact(S::LANES)) {
                let x = simd.load(x);
                let total = simd.mul_add(x, x, simd.load(sum));
                simd.store(sum, total);
            }
            if !last.is_empty() {
                let x = simd.load(last);
                let total = simd.mul_add(x, x, simd.load(last_sums));
                simd.store(last_sums, total);
            }
        }
        let mut total = 0.0;
        for factors in self.factors.chunks_mut(S::LANES) {
            let roots = simd.sqrt(simd.load(factors));
            simd.store(factors, roots);
            total += factors.iter().sum::<f32>();
        }
        // y = x · (gamma · N + 1) + beta
        let scale = 1.0 / (total / channels as f32 + self.epsilon);
        for (factor, gamma) in self.factors.iter_mut().zip(self.gamma) {
            *factor = *factor * scale * gamma + 1.0;
        }
        let pixels = self.input.chunks_exact(channels);
        for (x, y) in pixels.zip(self.output.chunks_exact_mut(channels)) {
            affine(simd, None, x, self.factors, self.beta, y);
        }
    }
}
