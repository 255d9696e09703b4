//! Normalisations over the channels of a pixel or over the pixels of a channel.

use crate::simd::{Kernel, Simd};
use netkit_core::op::PerChannel;
use netkit_core::pack::PANEL;

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
        // 1 where the last vector has a channel.
        let ones = [1.0; PANEL];
        let present = simd.load(ones.get(..channels % S::LANES).unwrap_or(&ones));
        let blocks = self.input.chunks(BLOCK * channels);
        for (input, output) in blocks.zip(self.output.chunks_mut(BLOCK * channels)) {
            // One pass after the other: within each, no pixel waits for another.
            let groups = input.chunks(PIXELS * channels);
            let mut means = [0.0; BLOCK];
            for (group, means) in groups.clone().zip(means.chunks_exact_mut(PIXELS)) {
                let mut lanes = [simd.splat(0.0); PIXELS];
                each_vector::<S>(group, channels, |p, x, _| {
                    lanes[p] = simd.add(lanes[p], simd.load(x));
                });
                means.copy_from_slice(&simd.reduce_sums(lanes).map(|sum| sum / count));
            }
            // A second pass: the sum of squares minus the square of the sum would cancel.
            let mut factors = [0.0; BLOCK];
            let constants = means.chunks_exact(PIXELS).zip(factors.chunks_exact_mut(PIXELS));
            for (group, (means, variances)) in groups.zip(constants) {
                let mut lanes = [simd.splat(0.0); PIXELS];
                each_vector::<S>(group, channels, |p, x, whole| {
                    let mut deviation = simd.sub(simd.load(x), simd.splat(means[p]));
                    if !whole {
                        deviation = simd.mul(deviation, present);
                    }
                    lanes[p] = simd.mul_add(deviation, deviation, lanes[p]);
                });
                variances.copy_from_slice(&simd.reduce_sums(lanes).map(|sum| sum / count));
            }
            for factors in factors.chunks_exact_mut(S::LANES) {
                let variances = simd.add(simd.load(factors), simd.splat(self.epsilon));
                simd.store(factors, simd.div(simd.splat(1.0), simd.sqrt(variances)));
            }
            let pixels = input.chunks_exact(channels).zip(output.chunks_exact_mut(channels));
            for ((x, y), (mean, factor)) in pixels.zip(means.into_iter().zip(factors)) {
                let normal = Some((simd.splat(mean), simd.splat(factor)));
                affine(simd, normal, x, self.gamma, self.beta, y);
            }
        }
    }
}

/// Pixels normalised together: their roots are taken at once.
const BLOCK: usize = PANEL;

/// Pixels whose sums are reduced at once.
const PIXELS: usize = 4;

/// Calls `f` with each vector of up to four pixels: the pixel's number, the vector, whether it is a whole one. Pixels past
/// the last repeat it.
#[inline(always)]
fn each_vector<S: Simd>(pixels: &[f32], channels: usize, mut f: impl FnMut(usize, &[f32], bool)) {
    let last = pixels.len().saturating_sub(channels);
    let pixel = |p: usize| {
        let start = (p * channels).min(last);
        pixels.get(start..start + channels).unwrap_or(&[]).chunks_exact(S::LANES)
    };
    let (a, b, c, d) = (pixel(0), pixel(1), pixel(2), pixel(3));
    let tails = [a.remainder(), b.remainder(), c.remainder(), d.remainder()];
    for (((a, b), c), d) in a.zip(b).zip(c).zip(d) {
        f(0, a, true);
        f(1, b, true);
        f(2, c, true);
        f(3, d, true);
    }
    if let [[_, ..], ..] = tails {
        for (p, tail) in tails.into_iter().enumerate() {
            f(p, tail, false);
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
    fn run<S: Simd>(mut self, simd: S) {
        let channels = self.shape.channels.max(1);
        let mut first = 0;
        while first + VECTORS * S::LANES <= channels {
            self.squares::<S, VECTORS>(simd, first);
            first += VECTORS * S::LANES;
        }
        while first < channels {
            self.squares::<S, 1>(simd, first);
            first += S::LANES;
        }
        let mut lanes = simd.splat(0.0);
        for factors in self.factors.chunks_mut(S::LANES) {
            let roots = simd.sqrt(simd.load(factors));
            simd.store(factors, roots);
            lanes = simd.add(lanes, roots);
        }
        let total = simd.reduce_sum(lanes);
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

/// Vectors of channels whose sums pass over the pixels together.
const VECTORS: usize = 5;

impl GlobalResponseNormF32<'_> {
    /// Sums of squares of `V` vectors of channels from `first` on; with one vector, of as many channels as there are.
    #[inline(always)]
    fn squares<S: Simd, const V: usize>(&mut self, simd: S, first: usize) {
        let channels = self.shape.channels.max(1);
        let end = (first + V * S::LANES).min(channels);
        let mut sums = [simd.splat(0.0); V];
        for pixel in self.input.chunks_exact(channels) {
            let pixel = pixel.get(first..end).unwrap_or(&[]);
            if let [sum] = sums.as_mut_slice() {
                let x = simd.load(pixel);
                *sum = simd.mul_add(x, x, *sum);
                continue;
            }
            for (sum, x) in sums.iter_mut().zip(pixel.chunks_exact(S::LANES)) {
                let x = simd.load(x);
                *sum = simd.mul_add(x, x, *sum);
            }
        }
        let factors = self.factors.get_mut(first..end).unwrap_or(&mut []);
        for (sum, factors) in sums.into_iter().zip(factors.chunks_mut(S::LANES)) {
            simd.store(factors, sum);
        }
    }
}
