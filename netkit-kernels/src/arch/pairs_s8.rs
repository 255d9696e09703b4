//! Convolutions in pairs, two taps side by side in 16 bits each, for multiplications that add two
//! products into 32 bits: depthwise ones, and those of so few taps that all weights stay in registers.

use super::tile_s8::{TileS8, unrolled};
use crate::simd_s8::{KernelOn, SimdS8};
use netkit_core::pack::{GROUP, GROUP_BYTES};

/// Bytes of one channel's pair.
pub(crate) const PAIR_BYTES: usize = 4;

/// The operations of convolution in pairs.
pub(crate) trait PairsS8: SimdS8 {
    /// Pixels of the largest tile, at most 14.
    const PAIR_PIXELS: usize;

    /// Pairs of `LANES` channels: the bytes of two pixels, each plus 128 and in 16 bits.
    ///
    /// # Safety
    /// `a` and `b` are valid for reading `LANES` bytes, `to` for writing `LANES` pairs.
    unsafe fn pair(self, a: *const i8, b: *const i8, to: *mut u8);

    /// Weights of `LANES` channels, four rows each, as two vectors of pairs: rows 0 and 1, 2 and 3.
    ///
    /// # Safety
    /// `from` is valid for reading `4 · LANES` weights.
    unsafe fn pair_weights(self, from: *const i8) -> [Self::Sums; 2];

    /// Weights in 16 bits each, two for each lane.
    ///
    /// # Safety
    /// `from` is valid for reading `2 · LANES` weights.
    unsafe fn load_wide(self, from: *const i8) -> Self::Sums;

    /// The sums of all lanes of each of eight vectors.
    fn fold(self, sums: [Self::Sums; 8]) -> Self::Sums;

    /// The same pair in every lane.
    ///
    /// # Safety
    /// `from` is valid for reading a pair.
    unsafe fn splat_pair(self, from: *const u8) -> Self::Sums;

    /// Adds to each lane the two products of its pair.
    fn dot_pairs(self, sums: Self::Sums, inputs: Self::Sums, weights: Self::Sums) -> Self::Sums;
}

/// Pixels of an input row, from the first that is read on: each `step` bytes after the one before.
#[derive(Clone, Copy)]
pub(crate) struct Pixels<'a> {
    pub(crate) values: &'a [i8],
    pub(crate) step: usize,
}

impl Pixels<'_> {
    /// Whether `count` pixels of `width` channels are there.
    #[inline(always)]
    fn reach(&self, count: usize, width: usize) -> bool {
        let before = count.saturating_sub(1).checked_mul(self.step);
        before
            .and_then(|before| before.checked_add(width))
            .is_some_and(|end| end <= self.values.len())
    }
}

/// Pairs of `count` pixels of two rows, `vectors` vectors of channels each: `[vectors][count]`.
pub(crate) struct PairRows<'a> {
    pub(crate) rows: [Pixels<'a>; 2],
    pub(crate) count: usize,
    pub(crate) vectors: usize,
    /// Bytes from the pairs of one vector to those of the next.
    pub(crate) pitch: usize,
    pub(crate) to: &'a mut [u8],
}

impl<S: PairsS8> KernelOn<S> for PairRows<'_> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run_on(self, simd: S) {
        let [a, b] = self.rows;
        let width = self.vectors.saturating_mul(S::LANES);
        let vector_len = S::LANES * PAIR_BYTES;
        let before = self.vectors.saturating_sub(1).checked_mul(self.pitch);
        let len = before.and_then(|before| before.checked_add(self.count.checked_mul(vector_len)?));
        if !a.reach(self.count, width)
            || !b.reach(self.count, width)
            || len.is_none_or(|len| len > self.to.len())
        {
            return;
        }
        let (mut from_a, mut from_b) = (a.values.as_ptr(), b.values.as_ptr());
        let mut to = self.to.as_mut_ptr();
        for _ in 0..self.count {
            for vector in 0..self.vectors {
                let at = vector * S::LANES;
                let to = to.wrapping_add(vector * self.pitch);
                // SAFETY: both rows reach, and `to` has pairs for all.
                unsafe { simd.pair(from_a.wrapping_add(at), from_b.wrapping_add(at), to) };
            }
            to = to.wrapping_add(vector_len);
            from_a = from_a.wrapping_add(a.step);
            from_b = from_b.wrapping_add(b.step);
        }
    }
}

/// Weights of one vector of channels as pairs, `[kernel_w][pairs][LANES]`, from those of a packed panel.
pub(crate) struct PairWeights<'a> {
    /// From the channels' first weight on: `[kernel_w][groups]`, 64 bytes from one group to the next.
    pub(crate) panel: &'a [i8],
    pub(crate) groups: usize,
    pub(crate) kernel_w: usize,
    pub(crate) pairs: usize,
    pub(crate) to: &'a mut [u8],
}

impl<S: PairsS8> KernelOn<S> for PairWeights<'_> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run_on(self, simd: S) {
        let vector = S::LANES * PAIR_BYTES;
        let fits = || {
            let before = self.kernel_w.checked_mul(self.groups)?.saturating_sub(1);
            let panel = before.checked_mul(GROUP_BYTES)?.checked_add(S::LANES * GROUP)?;
            let to = self.kernel_w.checked_mul(self.pairs)?.checked_mul(vector)?;
            let fits = panel <= self.panel.len()
                && to <= self.to.len()
                && self.pairs <= self.groups.checked_mul(2)?;
            fits.then_some(())
        };
        if fits().is_none() {
            return;
        }
        let mut to = self.to.as_mut_ptr();
        for tap in 0..self.kernel_w {
            for pair in 0..self.pairs {
                let group = tap * self.groups + pair / 2;
                let from = self.panel.as_ptr().wrapping_add(group * GROUP_BYTES);
                // SAFETY: `fits`: the group is one of the panel's.
                let both = unsafe { simd.pair_weights(from) };
                // SAFETY: `fits`: there is room for the pairs of all taps.
                unsafe { simd.store_sums(to.cast(), both[pair % 2]) };
                to = to.wrapping_add(vector);
            }
        }
    }
}

/// The sums of `P` consecutive output pixels of a row.
pub(crate) struct PairSumsOf<'a, const P: usize>(pub(crate) PairTile<'a>);

/// What the sums of a tile are made of.
pub(crate) struct PairTile<'a> {
    /// Pairs, `[slots][vectors][columns][LANES]`.
    pub(crate) input: &'a [u8],
    /// Bytes from the start of a slot to the first tap of the first pixel.
    pub(crate) at: usize,
    /// Slots of pairs of rows, used in turn.
    pub(crate) slots: usize,
    /// The slot of the first pair.
    pub(crate) first_slot: usize,
    /// Bytes from one slot to the next.
    pub(crate) slot_pitch: usize,
    /// Bytes from the pairs of one vector of channels to those of the next.
    pub(crate) vector_pitch: usize,
    /// Columns from one tap to the next.
    pub(crate) dilation: usize,
    /// Columns from one output pixel to the next.
    pub(crate) stride: usize,
    pub(crate) kernel_w: usize,
    pub(crate) pairs: usize,
    /// `[vectors][kernel_w][pairs][LANES]` pairs.
    pub(crate) weights: &'a [u8],
    /// What the sums of each channel start from, `[vectors · LANES]`.
    pub(crate) start: &'a [i32],
    /// `[P][vectors · LANES]`
    pub(crate) sums: &'a mut [i32],
}

impl<S: PairsS8, const P: usize> KernelOn<S> for PairSumsOf<'_, P> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run_on(self, simd: S) {
        let tile = self.0;
        let vector = S::LANES * PAIR_BYTES;
        let width = tile.start.len() / S::LANES * S::LANES;
        if tile.sums.len() < P * width || tile.extent(P, width, vector).is_none() {
            return;
        }
        let mut weights = tile.weights.as_ptr();
        let mut input = tile.input.as_ptr().wrapping_add(tile.at);
        for first in (0..width).step_by(S::LANES) {
            // SAFETY: `start` has `width` values.
            let start = unsafe { simd.load_sums(tile.start.as_ptr().wrapping_add(first)) };
            let mut acc = [start; P];
            let mut tap_base = input;
            for _ in 0..tile.kernel_w {
                let mut slot = tile.first_slot;
                for _ in 0..tile.pairs {
                    let from = tap_base.wrapping_add(slot * tile.slot_pitch);
                    // SAFETY: `extent` checked that the weights of every vector are there.
                    let w = unsafe { simd.load_sums(weights.cast()) };
                    unrolled!(p < P {
                        let x = from.wrapping_add(p * tile.stride * vector);
                        // SAFETY: `extent` checked that every tap of every pixel is there.
                        let x = unsafe { simd.load_sums(x.cast()) };
                        acc[p] = simd.dot_pairs(acc[p], x, w);
                    });
                    weights = weights.wrapping_add(vector);
                    slot = if slot + 1 == tile.slots { 0 } else { slot + 1 };
                }
                tap_base = tap_base.wrapping_add(tile.dilation * vector);
            }
            input = input.wrapping_add(tile.vector_pitch);
            let sums = tile.sums.as_mut_ptr().wrapping_add(first);
            unrolled!(p < P {
                // SAFETY: `sums` has P · `width` values.
                unsafe { simd.store_sums(sums.wrapping_add(p * width), acc[p]) };
            });
        }
    }
}

/// The sums of a row of pixels, at least [`ROW_STEP`] of them: a kernel of `W` columns and `PAIRS` pairs
/// of rows, pixels `STRIDE` columns apart.
pub(crate) struct RowSumsOf<'a, const W: usize, const PAIRS: usize, const STRIDE: usize> {
    pub(crate) tile: PairTile<'a>,
    pub(crate) pixels: usize,
}

/// Pixels of a step of [`RowSumsOf`].
pub(crate) const ROW_STEP: usize = 4;

impl<S: PairsS8, const W: usize, const PAIRS: usize, const STRIDE: usize> KernelOn<S>
    for RowSumsOf<'_, W, PAIRS, STRIDE>
{
    type Output = ();

    /// Does nothing if a slice is too short or the geometry is another.
    #[inline(always)]
    fn run_on(self, simd: S) {
        let Self { tile, pixels } = self;
        let vector = S::LANES * PAIR_BYTES;
        let width = tile.start.len() / S::LANES * S::LANES;
        let fits = pixels >= ROW_STEP
            && pixels.checked_mul(width).is_some_and(|len| len <= tile.sums.len())
            && (tile.kernel_w, tile.pairs, tile.slots) == (W, PAIRS, PAIRS)
            && (tile.stride, tile.dilation) == (STRIDE, 1)
            && tile.extent(pixels, width, vector).is_some();
        if !fits {
            return;
        }
        let mut weights = tile.weights.as_ptr();
        let mut input = tile.input.as_ptr().wrapping_add(tile.at);
        for first in (0..width).step_by(S::LANES) {
            // SAFETY: `start` has `width` values.
            let start = unsafe { simd.load_sums(tile.start.as_ptr().wrapping_add(first)) };
            let mut slots = [input; PAIRS];
            for (pair, slot) in slots.iter_mut().enumerate() {
                *slot = slot.wrapping_add((tile.first_slot + pair) % PAIRS * tile.slot_pitch);
            }
            let mut pixel = 0;
            loop {
                let mut acc = [start; ROW_STEP];
                let column = pixel * STRIDE * vector;
                for tap in 0..W {
                    for (pair, slot) in slots.iter().enumerate() {
                        let from = weights.wrapping_add((tap * PAIRS + pair) * vector);
                        // SAFETY: `extent` checked that the weights of every vector are there.
                        let w = unsafe { simd.load_sums(from.cast()) };
                        let from = slot.wrapping_add(column);
                        unrolled!(p < ROW_STEP <= 4 {
                            let x = from.wrapping_add((p * STRIDE + tap) * vector);
                            // SAFETY: `extent` checked that every tap of every pixel is there.
                            let x = unsafe { simd.load_sums(x.cast()) };
                            acc[p] = simd.dot_pairs(acc[p], x, w);
                        });
                    }
                }
                let to = tile.sums.as_mut_ptr().wrapping_add(pixel * width + first);
                unrolled!(p < ROW_STEP <= 4 {
                    // SAFETY: `sums` has `pixels` · `width` values.
                    unsafe { simd.store_sums(to.wrapping_add(p * width), acc[p]) };
                });
                if pixel + ROW_STEP == pixels {
                    break;
                }
                // The last pixels once more rather than a shorter step.
                pixel = (pixel + ROW_STEP).min(pixels - ROW_STEP);
            }
            weights = weights.wrapping_add(W * PAIRS * vector);
            input = input.wrapping_add(tile.vector_pitch);
        }
    }
}

impl PairTile<'_> {
    /// `None` if inputs or weights of `width` channels of `pixels` pixels are missing; a vector has
    /// `vector` bytes of pairs.
    #[inline(always)]
    fn extent(&self, pixels: usize, width: usize, vector: usize) -> Option<()> {
        let taps = self.kernel_w.checked_sub(1)?.checked_mul(self.dilation)?;
        let columns = taps.checked_add(pixels.checked_sub(1)?.checked_mul(self.stride)?)?;
        let vectors = width.checked_mul(PAIR_BYTES)? / vector;
        let input = (self.slots.checked_sub(1)?)
            .checked_mul(self.slot_pitch)?
            .checked_add(self.at)?
            .checked_add(vectors.checked_sub(1)?.checked_mul(self.vector_pitch)?)?
            .checked_add(columns.checked_add(1)?.checked_mul(vector)?)?;
        let taps = self.kernel_w.checked_mul(self.pairs)?;
        let weights = taps.checked_mul(width.checked_mul(PAIR_BYTES)?)?;
        let fits = input <= self.input.len()
            && weights <= self.weights.len()
            && self.first_slot < self.slots;
        fits.then_some(())
    }
}

/// Groups of taps whose weights stay in registers.
pub(crate) const SHORT_GROUPS: usize = 4;

/// The sums of a row of pixels, one vector of channels, `G` groups of taps.
pub(crate) struct ShortSumsOf<'a, const G: usize> {
    pub(crate) tile: TileS8<'a>,
    pub(crate) pixels: usize,
}

impl<S: PairsS8, const G: usize> KernelOn<S> for ShortSumsOf<'_, G> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run_on(self, simd: S) {
        const AT_ONCE: usize = 4;
        let Self { tile, pixels } = self;
        let runs = tile.runs;
        let fits = tile.start.len() >= S::LANES
            && pixels > 0
            && pixels.checked_mul(S::LANES).is_some_and(|len| len <= tile.sums.len())
            && tile.reaches(pixels, S::INPUT_BYTES)
            && runs.rows * runs.columns * runs.groups == G;
        let (Some([weights]), true) = (tile.weights::<1>(S::LANES), fits) else { return };
        // SAFETY: `start` has LANES values.
        let start = unsafe { simd.load_sums(tile.start.as_ptr()) };
        let mut w = [[start; 2]; G];
        let mut groups = [tile.input.as_ptr(); G];
        for g in 0..G {
            // SAFETY: `weights` checked that the panel holds all groups.
            w[g] = unsafe { simd.pair_weights(weights.wrapping_add(g * GROUP_BYTES)) };
            // None of them is 0, as their product is not; the compiler does not see it.
            let (columns, len) = (runs.columns.max(1), runs.groups.max(1));
            let run = g / len;
            let at = run / columns * runs.row_pitch + run % columns * runs.column_pitch;
            let at = at + g % len * GROUP * S::INPUT_BYTES;
            groups[g] = groups[g].wrapping_add(at);
        }
        let (mut at, mut to, mut left) = (0, tile.sums.as_mut_ptr(), pixels);
        while left >= AT_ONCE {
            unrolled!(p < AT_ONCE <= 4 {
                // SAFETY: `reaches` checked that the runs of each pixel lie in the input.
                let sums = unsafe { short_sums(simd, start, &groups, at + p * tile.step, &w) };
                // SAFETY: `sums` has all pixels.
                unsafe { simd.store_sums(to.wrapping_add(p * S::LANES), sums) };
            });
            at += AT_ONCE * tile.step;
            to = to.wrapping_add(AT_ONCE * S::LANES);
            left -= AT_ONCE;
        }
        while left > 0 {
            // SAFETY: as above.
            let sums = unsafe { short_sums(simd, start, &groups, at, &w) };
            // SAFETY: as above.
            unsafe { simd.store_sums(to, sums) };
            at += tile.step;
            to = to.wrapping_add(S::LANES);
            left -= 1;
        }
    }
}

/// The sums of one pixel.
///
/// # Safety
/// `at` bytes behind each of `groups` four inputs are valid for reading.
#[inline(always)]
unsafe fn short_sums<S: PairsS8, const G: usize>(
    simd: S,
    start: S::Sums,
    groups: &[*const u8; G],
    at: usize,
    weights: &[[S::Sums; 2]; G],
) -> S::Sums {
    let mut sums = start;
    for (group, weights) in groups.iter().zip(weights) {
        let from = group.wrapping_add(at);
        // SAFETY: the caller vouches for the group's inputs.
        let first = unsafe { simd.splat_pair(from) };
        // SAFETY: the second half of them.
        let second = unsafe { simd.splat_pair(from.wrapping_add(PAIR_BYTES)) };
        sums = simd.dot_pairs(sums, first, weights[0]);
        sums = simd.dot_pairs(sums, second, weights[1]);
    }
    sums
}
