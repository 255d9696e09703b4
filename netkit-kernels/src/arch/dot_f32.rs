//! Dot products of several rows of weights with one input: the whole of a dense layer.

use super::tile_s8::unrolled;
use crate::simd::{Kernel, Simd};

/// Chains of sums: as many as it takes to keep two multiply-add units busy over their latency of four cycles.
const CHAINS: usize = 8;

/// Weights that stay in a second-level cache of today: 1 MiB.
pub(crate) const SECOND_CACHE: usize = 1 << 18;

// The memory is the limit. Rows whose dot products are formed together have a chain or two each: from the second cache 4 × 2
// are 8 % faster than 8 × 1 where vectors have 16 lanes (784×128, 1600×128 on Sapphire Rapids), from memory 8 streams are
// (1280×1000), and without vectors an input should serve as many rows as can be. Asking for the weights some steps ahead made
// no difference or a worse one there and on Zen 3.

/// `output[o] = bias[o] + Σ_i scale[o] · weights[o, i] · input[i]` for one input.
///
/// A row's products are summed in `LANES` interleaved parts, whose sums are added at the end.
pub(crate) struct DotsF32<'a> {
    pub(crate) input: &'a [f32],
    /// `[output.len()][input.len()]`
    pub(crate) weights: &'a [f32],
    pub(crate) scale: Option<&'a [f32]>,
    pub(crate) bias: &'a [f32],
    /// Whether the weights may be in the second-level cache. It shows in the last bits.
    pub(crate) near: bool,
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
        if self.near && S::LANES >= 16 {
            self.blocks::<S, 4, 2>(simd);
        } else {
            self.blocks::<S, CHAINS, 1>(simd);
        }
    }
}

impl DotsF32<'_> {
    /// Blocks of `ROWS` rows, `PARTS` chains to each. Factors folded beforehand give the same bits as a scale.
    #[inline(always)]
    fn blocks<S: Simd, const ROWS: usize, const PARTS: usize>(self, simd: S) {
        let rows = self.weights.chunks(ROWS * self.input.len());
        let biases = self.bias.chunks(ROWS);
        for (block, ((rows, bias), output)) in
            rows.zip(biases).zip(self.output.chunks_mut(ROWS)).enumerate()
        {
            let sums = match self.scale {
                None => dots::<S, ROWS, PARTS, false>(simd, self.input, rows, &[]),
                Some(scale) => {
                    let scale = scale.get(block * ROWS..).unwrap_or(&[]);
                    dots::<S, ROWS, PARTS, true>(simd, self.input, rows, scale)
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
fn dots<S: Simd, const ROWS: usize, const PARTS: usize, const SCALED: bool>(
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
    let mut parts = [[simd.splat(0.0); ROWS]; PARTS];
    let (whole, tail) = input.split_at(input.len() - input.len() % S::LANES);
    let groups = whole.chunks_exact(PARTS * S::LANES);
    let rest = groups.remainder();
    let mut at = 0;
    for group in groups {
        unrolled!(part < PARTS <= 4 {
            let x = group.get(part * S::LANES..(part + 1) * S::LANES).unwrap_or(&[]);
            // SAFETY: every pointer is the start of a row of `input.len()` floats, and this vector lies as far from it as one
            // that was just read lies from the start of the input.
            unsafe { add::<S, ROWS, SCALED>(simd, x, &pointers, &scales, at, &mut parts[part]) };
            at += S::LANES;
        });
    }
    let Some((sums, others)) = parts.split_first_mut() else { return [0.0; ROWS] };
    for part in others {
        for (sum, part) in sums.iter_mut().zip(part) {
            *sum = simd.add(*sum, *part);
        }
    }
    // With one part nothing is left.
    for x in if PARTS > 1 { rest } else { &[] }.chunks_exact(S::LANES) {
        // SAFETY: as above.
        unsafe { add::<S, ROWS, SCALED>(simd, x, &pointers, &scales, at, sums) };
        at += S::LANES;
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

/// Adds the products of `x`, a vector of the input, and the vectors `at` floats behind the start of each row.
///
/// # Safety
/// Every row has a vector more than `at` floats.
#[inline(always)]
unsafe fn add<S: Simd, const ROWS: usize, const SCALED: bool>(
    simd: S,
    x: &[f32],
    rows: &[*const f32; ROWS],
    scales: &[S::Vector; ROWS],
    at: usize,
    sums: &mut [S::Vector; ROWS],
) {
    let x = simd.load(x);
    for ((sum, row), scale) in sums.iter_mut().zip(rows).zip(scales) {
        // SAFETY: the caller vouches for the row.
        let mut weights = unsafe { simd.load_pointer(row.wrapping_add(at)) };
        if SCALED {
            weights = simd.mul(weights, *scale);
        }
        *sum = simd.mul_add(x, weights, *sum);
    }
}
