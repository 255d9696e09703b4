//! Softmax over all elements.

use super::activation::exp;
use crate::simd::{Kernel, Simd};

/// `output = e^(input − max) / Σ e^(input − max)`
pub(crate) struct SoftmaxF32<'a> {
    pub(crate) input: &'a [f32],
    pub(crate) output: &'a mut [f32],
}

impl Kernel for SoftmaxF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // The maximum starts at an element, not at a constant: all may be far below any constant.
        let (chunks, tail) = self.input.split_at(self.input.len() - self.input.len() % S::LANES);
        let mut max = self.input.first().copied().unwrap_or(0.0);
        if let Some(first) = chunks.get(..S::LANES) {
            let mut lanes = simd.load(first);
            for chunk in chunks.chunks_exact(S::LANES) {
                lanes = simd.max(simd.load(chunk), lanes);
            }
            max = simd.reduce_max(lanes);
        }
        for &x in tail {
            max = if x > max { x } else { max };
        }

        let mut lanes = simd.splat(0.0);
        for (x, y) in self.input.chunks(S::LANES).zip(self.output.chunks_mut(S::LANES)) {
            let e = exp(simd, simd.sub(simd.load(x), simd.splat(max)));
            simd.store(y, e);
            // Read back so that lanes past the end count as 0.
            lanes = simd.add(lanes, simd.load(y));
        }
        let sum = simd.splat(simd.reduce_sum(lanes));
        for y in self.output.chunks_mut(S::LANES) {
            let quotient = simd.div(simd.load(y), sum);
            simd.store(y, quotient);
        }
    }
}
