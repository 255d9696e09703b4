//! Dot products of several rows of weights with one input: the whole of a dense layer.

use crate::simd::{Kernel, Simd};

/// Rows whose dot products are formed together: as many as it takes to keep two multiply-add units busy
/// over their latency of four cycles, each row being one chain of sums.
const ROWS: usize = 8;

// Asking for the weights some steps ahead made no difference or a worse one (784×128, 1600×128, 1280×1000 on Zen 3), nor
// did fewer rows with more parts each: the memory is the limit.

/// `output[o] = bias[o] + Σ_i scale[o] · weights[o, i] · input[i]` for one input.
///
/// A row's products are summed in `LANES` interleaved parts, whose sums are added at the end.
pub(crate) struct DotsF32<'a> {
    pub(crate) input: &'a [f32],
    /// `[output.len()][input.len()]`
    pub(crate) weights: &'a [f32],
    pub(crate) scale: Option<&'a [f32]>,
    pub(crate) bias: &'a [f32],
    pub(crate) output: &'a mut [f32],
}

impl Kernel for DotsF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (inputs, outputs) = (self.input.len(), self.output.len());
        let fits = inputs.checked_mul(outputs) == Some(self.weights.len())
            && self.bias.len() == outputs
            && self.scale.is_none_or(|scale| scale.len() == outputs);
        if !fits || inputs == 0 {
            for (output, bias) in self.output.iter_mut().zip(self.bias) {
                *output = *bias;
            }
            return;
        }
        let rows = self.weights.chunks(ROWS * inputs);
        let biases = self.bias.chunks(ROWS);
        for (block, ((rows, bias), output)) in
            rows.zip(biases).zip(self.output.chunks_mut(ROWS)).enumerate()
        {
            let sums = match self.scale {
                None => dots::<S, false>(simd, self.input, rows, &[]),
                Some(scale) => {
                    let scale = scale.get(block * ROWS..).unwrap_or(&[]);
                    dots::<S, true>(simd, self.input, rows, scale)
                }
            };
            for ((output, sum), bias) in output.iter_mut().zip(sums).zip(bias) {
                *output = sum + bias;
            }
        }
    }
}

/// The dot products of up to `ROWS` whole rows; those of missing rows repeat the last.
#[inline(always)]
fn dots<S: Simd, const SCALED: bool>(
    simd: S,
    input: &[f32],
    rows: &[f32],
    scale: &[f32],
) -> [f32; ROWS] {
    let present = rows.len() / input.len();
    let mut pointers = [rows.as_ptr(); ROWS];
    let mut scales = [simd.splat(1.0); ROWS];
    for (row, (pointer, factor)) in pointers.iter_mut().zip(&mut scales).enumerate() {
        let row = row.min(present.saturating_sub(1));
        *pointer = pointer.wrapping_add(row * input.len());
        if SCALED {
            *factor = simd.splat(scale.get(row).copied().unwrap_or(1.0));
        }
    }
    let mut sums = [simd.splat(0.0); ROWS];
    let (whole, tail) = input.split_at(input.len() - input.len() % S::LANES);
    for (step, x) in whole.chunks_exact(S::LANES).enumerate() {
        let x = simd.load(x);
        for ((sum, pointer), scale) in sums.iter_mut().zip(pointers).zip(scales) {
            // SAFETY: every pointer is the start of a row of `input.len()` floats, and this vector lies
            // as far from it as one that was just read lies from the start of the input.
            let mut weights = unsafe { simd.load_pointer(pointer.wrapping_add(step * S::LANES)) };
            if SCALED {
                weights = simd.mul(weights, scale);
            }
            *sum = simd.mul_add(x, weights, *sum);
        }
    }
    if !tail.is_empty() {
        let x = simd.load(tail);
        for (row, (sum, scale)) in sums.iter_mut().zip(scales).enumerate() {
            let end = (row.min(present.saturating_sub(1)) + 1) * input.len();
            let mut weights = simd.load(rows.get(end - tail.len()..end).unwrap_or(&[]));
            if SCALED {
                weights = simd.mul(weights, scale);
            }
            *sum = simd.mul_add(x, weights, *sum);
        }
    }
    let mut dots = [0.0; ROWS];
    let (sums, _) = sums.as_chunks();
    for (to, &sums) in dots.chunks_exact_mut(4).zip(sums) {
        to.copy_from_slice(&simd.reduce_sums(sums));
    }
    dots
}
