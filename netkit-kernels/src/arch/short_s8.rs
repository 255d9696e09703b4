//! Convolutions of few taps, such as first layers: all weights of some channels stay in registers, and a pixel's sums become
//! outputs without going through memory.

use super::store_s8::{Channels, MODERATE, POSITIVE, rescale_as, store_quad};
use super::tile_s8::{TileS8, unrolled};
use crate::simd_s8::{KernelOn, SimdS8};
use netkit_core::pack::{GROUP, GROUP_BYTES};

/// The outputs of rows of pixels, `V` vectors of channels, `G` groups of taps.
pub(crate) struct ShortOutputsOf<'a, S: SimdS8, const G: usize, const V: usize> {
    /// Its `count` is the pixels of a row; no sums are stored.
    pub(crate) tile: TileS8<'a>,
    pub(crate) rows: usize,
    /// Input bytes from one row to the next.
    pub(crate) row_step: usize,
    pub(crate) channels: &'a Channels<S, V>,
    /// From the first pixel's first channel on.
    pub(crate) output: &'a mut [i8],
    /// Channels of an output pixel.
    pub(crate) pitch: usize,
    /// Channels of a row of output pixels.
    pub(crate) row_pitch: usize,
}

impl<S: SimdS8, const G: usize, const V: usize> KernelOn<S> for ShortOutputsOf<'_, S, G, V> {
    type Output = ();

    /// Does nothing if a slice is too short, or the channels are not [simple](Channels::are_simple).
    #[inline(always)]
    fn run_on(self, simd: S) {
        const { assert!(G > 0) };
        let Some(last) = self.rows.checked_sub(1) else { return };
        let fits = self.channels.are_simple()
            && self.tile.runs.all_groups() == G
            && self.tile.start.len() >= V * S::LANES
            && last
                .checked_mul(self.row_step)
                .is_some_and(|at| self.tile.reaches_from(at, self.tile.count, S::INPUT_BYTES))
            && self.output_end(last, V * S::LANES).is_some_and(|end| end <= self.output.len());
        let (Some(weights), true) = (self.tile.weights::<V>(S::LANES), fits) else { return };
        if S::RESCALES_POSITIVE && self.channels.how == POSITIVE {
            // SAFETY: `fits`, and `weights` are those of the tile.
            unsafe { self.rows_of::<POSITIVE>(simd, weights) };
        } else {
            // SAFETY: as above.
            unsafe { self.rows_of::<MODERATE>(simd, weights) };
        }
    }
}

impl<S: SimdS8, const G: usize, const V: usize> ShortOutputsOf<'_, S, G, V> {
    /// Where the outputs end, the last row being `last`.
    #[inline(always)]
    fn output_end(&self, last: usize, width: usize) -> Option<usize> {
        let before = last.checked_mul(self.row_pitch)?;
        let pixels = self.tile.count.checked_sub(1)?.checked_mul(self.pitch)?;
        before.checked_add(pixels)?.checked_add(width)
    }

    /// # Safety
    /// All rows of pixels lie in the input and have room in the output, the weights are those of the tile's `G` groups, and
    /// so are `V` vectors of starts.
    #[inline(always)]
    unsafe fn rows_of<const HOW: u8>(self, simd: S, weights: [*const i8; V]) {
        let Self { tile, rows, row_step, channels, output, pitch, row_pitch } = self;
        let Channels { scales, stage, .. } = *channels;
        let runs = tile.runs;
        let mut start = [simd.splat(0); V];
        // SAFETY: a group that is there.
        let mut w = [[unsafe { simd.load_weights(weights[0]) }; V]; G];
        unrolled!(v < V <= 4 {
            // SAFETY: the caller vouches for the starts.
            start[v] = unsafe { simd.load_sums(tile.start.as_ptr().wrapping_add(v * S::LANES)) };
            unrolled!(g < G {
                // SAFETY: the caller vouches for the groups.
                w[g][v] = unsafe { simd.load_weights(weights[v].wrapping_add(g * GROUP_BYTES)) };
            });
        });
        let mut offsets = [0; G];
        for (g, offset) in offsets.iter_mut().enumerate() {
            // None of them is 0, as their product is not; the compiler does not see it.
            let (columns, len) = (runs.columns.max(1), runs.groups.max(1));
            let run = g / len;
            let at = run / columns * runs.row_pitch + run % columns * runs.column_pitch;
            *offset = at + g % len * GROUP * S::INPUT_BYTES;
        }
        let at_once = 4 / V;
        for row in 0..rows {
            let mut from = tile.input.as_ptr().wrapping_add(row * row_step);
            let mut to = output.as_mut_ptr().wrapping_add(row * row_pitch);
            let mut left = tile.count;
            // SAFETY: the caller vouches for the pixels and their groups.
            let mut sums = unsafe { dots(simd, from, tile.step, left, &offsets, &w, &start) };
            while left > 0 {
                // Those of the next pixels before these are used: there is nothing to wait for.
                let behind = left.saturating_sub(at_once);
                if behind > 0 {
                    from = from.wrapping_add(at_once * tile.step);
                }
                // SAFETY: as above; at the end, the last ones once more.
                let next =
                    unsafe { dots(simd, from, tile.step, behind.max(1), &offsets, &w, &start) };
                let mut rescaled = [simd.splat(0); 4];
                unrolled!(i < 4 {
                    rescaled[i] = rescale_as::<S, HOW>(simd, sums[i], &scales[i % V]);
                });
                let outputs = simd.narrow(rescaled, &stage);
                // SAFETY: the caller vouches for the outputs of the pixels that are left.
                unsafe { store_quad::<S, V>(simd, to, pitch, left * V, outputs) };
                to = to.wrapping_add(at_once * pitch);
                left = behind;
                sums = next;
            }
        }
    }
}

/// The sums of the pixels from `from` on, four vectors of them; of `left` pixels, if those are fewer, the last is repeated.
///
/// # Safety
/// Each pixel, `step` bytes after the one before, is valid for reading a group at each of `offsets`, and there is one.
#[inline(always)]
unsafe fn dots<S: SimdS8, const G: usize, const V: usize>(
    simd: S,
    from: *const u8,
    step: usize,
    left: usize,
    offsets: &[usize; G],
    weights: &[[S::Weights; V]; G],
    start: &[S::Sums; V],
) -> [S::Sums; 4] {
    let mut all = [start[0]; 4];
    unrolled!(p < { 4 / V } <= 4 {
        let pixel = from.wrapping_add(p.min(left - 1) * step);
        let mut sums = [simd.parts(start[0]); V];
        unrolled!(v < V <= 4 {
            sums[v] = simd.parts(start[v]);
        });
        unrolled!(g < G {
            // SAFETY: the caller vouches for the pixel.
            let x = unsafe { simd.splat_inputs(pixel.wrapping_add(offsets[g])) };
            unrolled!(v < V <= 4 {
                sums[v] = simd.dot(sums[v], x, weights[g][v]);
            });
        });
        unrolled!(v < V <= 4 {
            all[p * V + v] = simd.total(sums[v]);
        });
    });
    all
}
