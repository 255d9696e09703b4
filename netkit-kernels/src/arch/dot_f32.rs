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

/// The same for several inputs, which share each load of weights: bit for bit what [`DotsF32`] gives of each alone.
///
/// A tile is the dot products of `INPUTS` inputs and `ROWS` rows, a multiple of four of them. A kernel of its own, so that the
/// one for one input stays small.
#[cfg(not(netkit_micro))]
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

#[cfg(not(netkit_micro))]
impl<const INPUTS: usize, const ROWS: usize> Kernel for DotsOfInputsF32<'_, INPUTS, ROWS> {
    type Output = ();

    /// In blocks of `ROWS` rows, each of which serves all inputs while it is in the first-level cache.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (features, outputs) = (self.features.max(1), self.bias.len().max(1));
        let parts = if self.near && S::LANES >= 16 { 2 } else { 1 };
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
                    unsafe { tile.sums::<false>(simd, features, parts) }
                } else {
                    // SAFETY: as above.
                    unsafe { tile.sums::<true>(simd, features, parts) }
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
#[cfg(not(netkit_micro))]
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
#[cfg(not(netkit_micro))]
struct Tile<'a, S: Simd, const INPUTS: usize, const ROWS: usize> {
    inputs: [*const f32; INPUTS],
    rows: &'a [*const f32; ROWS],
    scales: &'a [S::Vector; ROWS],
}

/// Floats of each row of which one part is summed after the other: few enough that those of all rows of a tile stay in the
/// first-level cache. Whole rows took up to half as long again where they are not aligned (3136×64 on Sapphire Rapids).
#[cfg(not(netkit_micro))]
const AT_ONCE: usize = 1024;

#[cfg(not(netkit_micro))]
impl<S: Simd, const INPUTS: usize, const ROWS: usize> Tile<'_, S, INPUTS, ROWS> {
    /// The sums, each of which takes its products in the order of [`dots`]. The registers hold those of one of the parts, so
    /// that they are enough for more inputs.
    ///
    /// # Safety
    /// All inputs and rows have `features` floats, and `parts` is 1 or 2.
    #[inline(always)]
    unsafe fn sums<const SCALED: bool>(
        &self,
        simd: S,
        features: usize,
        parts: usize,
    ) -> [[S::Vector; ROWS]; INPUTS] {
        const { assert!(AT_ONCE.is_multiple_of(2 * S::LANES)) };
        let group = parts * S::LANES;
        let whole = features - features % group;
        let mut sums = [[simd.splat(0.0); ROWS]; INPUTS];
        if parts == 1 {
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
            // SAFETY: so many are left.
            unsafe { self.add::<SCALED>(simd, at, Some(left), &mut sums) };
            at += left;
        }
        sums
    }

    /// Adds the products of a vector, or the floats of one that are there, `at` floats behind each start.
    ///
    /// # Safety
    /// All inputs and rows have these.
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
