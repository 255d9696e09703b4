//! Dot products of rows of weights with several inputs, which share each load of weights.

#[allow(unused_imports, reason = "named in documentation")]
use super::dot_f32::DotsF32;
use super::tile_s8::unrolled;
use crate::simd::{Kernel, Simd};

/// `output[n, o] = bias[o] + Σ_i scale[o] · weights[o, i] · inputs[n, i]`: bit for bit what [`DotsF32`] gives of each input alone.
///
/// A tile is the dot products of `INPUTS` inputs and `ROWS` rows, a multiple of four of them. A kernel of its own, so that the
/// one for one input stays small.
pub(crate) struct DotsOfInputsF32<'a, const INPUTS: usize, const ROWS: usize> {
    pub(crate) features: usize,
    /// `[inputs][features]`
    pub(crate) inputs: &'a [f32],
    /// `[bias.len()][features]`
    pub(crate) weights: &'a [f32],
    pub(crate) scale: Option<&'a [f32]>,
    pub(crate) bias: &'a [f32],
    /// As in [`DotsF32`].
    pub(crate) near: bool,
    /// `[inputs][bias.len()]`
    pub(crate) output: &'a mut [f32],
}

impl<const INPUTS: usize, const ROWS: usize> Kernel for DotsOfInputsF32<'_, INPUTS, ROWS> {
    type Output = ();

    /// In blocks of `ROWS` rows, each of which serves all inputs while it is in the first-level cache.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        const { assert!((INPUTS * ROWS).is_multiple_of(4), "sums are reduced by fours") };
        let (features, outputs) = (self.features.max(1), self.bias.len().max(1));
        let two_parts = self.near && S::LANES >= 16;
        let rows = self.weights.chunks((ROWS * features).max(1));
        for (block, (rows, bias)) in rows.zip(self.bias.chunks(ROWS)).enumerate() {
            let first = block * ROWS;
            let Some(rows) = starts(rows, features) else { return };
            let (mut scales, mut biases) = ([simd.splat(1.0); ROWS], [0.0; ROWS]);
            let factors = self.scale.and_then(|scale| scale.get(first..)).unwrap_or(&[]);
            scales.iter_mut().zip(factors).for_each(|(to, scale)| *to = simd.splat(*scale));
            biases.iter_mut().zip(bias).for_each(|(to, bias)| *to = *bias);
            let inputs = self.inputs.chunks((INPUTS * features).max(1));
            for (inputs, outputs_of) in
                inputs.zip(self.output.chunks_mut((INPUTS * outputs).max(1)))
            {
                let Some(inputs) = starts(inputs, features) else { return };
                let tile = Tile::<S, INPUTS, ROWS> { inputs, rows: &rows, scales: &scales };
                let sums = if self.scale.is_none() {
                    // SAFETY: all starts are those of `features` floats.
                    unsafe { tile.sums::<false>(simd, features, two_parts) }
                } else {
                    // SAFETY: as above.
                    unsafe { tile.sums::<true>(simd, features, two_parts) }
                };
                let mut dots = [[0.0; ROWS]; INPUTS];
                let (sums, _) = sums.as_flattened().as_chunks();
                for (to, &sums) in dots.as_flattened_mut().chunks_exact_mut(4).zip(sums) {
                    to.copy_from_slice(&simd.reduce_sums(sums));
                }
                for (output, mut dots) in outputs_of.chunks_exact_mut(outputs).zip(dots) {
                    dots.iter_mut().zip(biases).for_each(|(dot, bias)| *dot += bias);
                    let output = output.get_mut(first..).unwrap_or(&mut []);
                    match output.first_chunk_mut() {
                        Some(output) => *output = dots,
                        None => output.iter_mut().zip(dots).for_each(|(to, dot)| *to = dot),
                    }
                }
            }
        }
    }
}

/// Where each of up to `N` rows of `len` floats starts; missing ones repeat the last. `None` where there is none.
#[inline(always)]
fn starts<const N: usize>(rows: &[f32], len: usize) -> Option<[*const f32; N]> {
    let mut last = rows.get(..len)?.as_ptr();
    let mut starts = [last; N];
    for (row, start) in starts.iter_mut().enumerate().skip(1) {
        last = rows.get(row * len..(row + 1) * len).map_or(last, <[f32]>::as_ptr);
        *start = last;
    }
    Some(starts)
}

/// What the dot products of a tile are made of.
struct Tile<'a, S: Simd, const INPUTS: usize, const ROWS: usize> {
    inputs: [*const f32; INPUTS],
    rows: &'a [*const f32; ROWS],
    scales: &'a [S::Vector; ROWS],
}

/// Floats of each row of which one part is summed after the other: few enough that those of all rows of a tile stay in the
/// first-level cache. Whole rows took up to half as long again where they are not aligned (3136×64 on Sapphire Rapids).
const AT_ONCE: usize = 1024;

impl<S: Simd, const INPUTS: usize, const ROWS: usize> Tile<'_, S, INPUTS, ROWS> {
    /// The sums, each of which takes its products in the order of [`dots`]. The registers hold those of one of the parts, so
    /// that they are enough for more inputs.
    ///
    /// # Safety
    /// All inputs and rows have `features` floats.
    #[inline(always)]
    unsafe fn sums<const SCALED: bool>(
        &self,
        simd: S,
        features: usize,
        two_parts: bool,
    ) -> [[S::Vector; ROWS]; INPUTS] {
        const { assert!(AT_ONCE.is_multiple_of(2 * S::LANES)) };
        let group = if two_parts { 2 * S::LANES } else { S::LANES };
        let whole = features - features % group;
        let mut sums = [[simd.splat(0.0); ROWS]; INPUTS];
        if !two_parts {
            let mut at = 0;
            while at < whole {
                // SAFETY: vectors end at `whole`.
                unsafe { self.add::<SCALED>(simd, at, None, &mut sums) };
                at += S::LANES;
            }
        } else {
            let mut of_parts = [sums; 2];
            let mut begin = 0;
            while begin < whole {
                let end = whole.min(begin + AT_ONCE);
                for (part, of_part) in of_parts.iter_mut().enumerate() {
                    let mut sums = *of_part;
                    let mut at = begin + part * S::LANES;
                    while at < end {
                        // SAFETY: `end` is the end of a group of two vectors, and one of each is this part's.
                        unsafe { self.add::<SCALED>(simd, at, None, &mut sums) };
                        at += group;
                    }
                    *of_part = sums;
                }
                begin = end;
            }
            let [first, second] = of_parts;
            sums = first;
            for (sum, other) in sums.as_flattened_mut().iter_mut().zip(second.as_flattened()) {
                *sum = simd.add(*sum, *other);
            }
        }
        let mut at = whole;
        while at < features {
            let left = S::LANES.min(features - at);
            // SAFETY: so many are left, at most a vector.
            unsafe { self.add::<SCALED>(simd, at, Some(left), &mut sums) };
            at += left;
        }
        sums
    }

    /// Adds the products of a vector, or the floats of one that are there, `at` floats behind each start.
    ///
    /// # Safety
    /// All inputs and rows have these, and `there` is at most `LANES`.
    #[inline(always)]
    unsafe fn add<const SCALED: bool>(
        &self,
        simd: S,
        at: usize,
        there: Option<usize>,
        sums: &mut [[S::Vector; ROWS]; INPUTS],
    ) {
        let load = |start: *const f32| {
            let from = start.wrapping_add(at);
            match there {
                // SAFETY: the caller vouches for the vector.
                None => unsafe { simd.load_pointer(from) },
                // SAFETY: the caller vouches for the floats.
                Some(count) => unsafe { simd.load_part(from, count) },
            }
        };
        let weights = |row: usize| {
            let weights = load(self.rows[row]);
            if SCALED { simd.mul(weights, self.scales[row]) } else { weights }
        };
        // Beside the sums there is room for the fewer of the two, and for one at a time of the others.
        if INPUTS < ROWS {
            let mut xs = [simd.splat(0.0); INPUTS];
            unrolled!(i < INPUTS <= 4 { xs[i] = load(self.inputs[i]); });
            unrolled!(row < ROWS {
                let weights = weights(row);
                unrolled!(i < INPUTS <= 4 { sums[i][row] = simd.mul_add(xs[i], weights, sums[i][row]); });
            });
        } else {
            let mut all = [simd.splat(0.0); ROWS];
            unrolled!(row < ROWS { all[row] = weights(row); });
            unrolled!(i < INPUTS <= 4 {
                let x = load(self.inputs[i]);
                unrolled!(row < ROWS { sums[i][row] = simd.mul_add(x, all[row], sums[i][row]); });
            });
        }
    }
}
