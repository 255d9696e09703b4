//! Depthwise convolution in blocks: as many outputs as a vector has bytes, at consecutive positions of a row, whatever
//! pixels and channels these are. Interleaving four rows keeps the order of memory: what the next tap multiplies lies a
//! pixel further on, and a vector's weights are read from its channels' panel.

use super::store_s8::{Channels, rescale_as};
use super::tile_s8::unrolled;
use crate::simd_s8::{KernelOn, SimdS8};
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL};
use netkit_core::quant::OutputStage;

/// What convolution in blocks wants besides.
pub(crate) trait BlocksS8: SimdS8 {
    /// [`interleave`](SimdS8::interleave) of rows in pieces: a row's positions lie in `PIECES` of equal length, 1, 2 or 4,
    /// each `step` bytes after the one before.
    ///
    /// # Safety
    /// Each piece of each row is valid for reading, and `to` for writing `16 · LANES` bytes.
    unsafe fn interleave_pieces<const PIECES: usize>(
        self,
        rows: [*const i8; 4],
        steps: [usize; 4],
        to: *mut u8,
    );
}

/// Positions of a block.
pub(crate) const fn block_len<S: SimdS8>() -> usize {
    GROUP * S::LANES
}

/// Pieces of an input row, each `step` bytes after the one before.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a> {
    pub(crate) values: &'a [i8],
    pub(crate) step: usize,
}

impl Pieces<'_> {
    /// Whether `count` pieces are there, the last with `len` bytes.
    #[inline(always)]
    fn reach(&self, count: usize, len: usize) -> bool {
        let before = count.saturating_sub(1).checked_mul(self.step);
        before
            .and_then(|before| before.checked_add(len))
            .is_some_and(|end| end <= self.values.len())
    }
}

/// Interleaves `count` pieces of four rows, `PIECES` at a time; if that is 1, as many as lie behind each
/// other in a block's bytes.
pub(crate) struct ColumnsOf<'a, const PIECES: usize> {
    pub(crate) rows: [Pieces<'a>; 4],
    pub(crate) count: usize,
    /// Positions of a piece.
    pub(crate) width: usize,
    /// From the first position on, four bytes of each.
    pub(crate) to: &'a mut [u8],
}

impl<S: BlocksS8, const PIECES: usize> KernelOn<S> for ColumnsOf<'_, PIECES> {
    type Output = ();

    /// Does nothing if a slice is too short, or if there is less than a block.
    #[inline(always)]
    fn run_on(self, simd: S) {
        const { assert!(matches!(PIECES, 1 | 2 | 4)) };
        let Self { rows, count, width, to } = self;
        let block = block_len::<S>();
        let at_once = block.checked_div(width).unwrap_or(0);
        let end = count.checked_mul(width).and_then(|end| end.checked_mul(GROUP));
        let fits = at_once > 0
            && at_once * width == block
            && (PIECES == 1 || PIECES == at_once)
            && count >= at_once
            && end.is_some_and(|end| end <= to.len())
            && rows.iter().all(|row| match PIECES {
                1 => row.reach(count - at_once + 1, block),
                _ => row.reach(count, width),
            });
        if !fits {
            return;
        }
        let steps = [rows[0].step, rows[1].step, rows[2].step, rows[3].step];
        let mut from = [
            rows[0].values.as_ptr(),
            rows[1].values.as_ptr(),
            rows[2].values.as_ptr(),
            rows[3].values.as_ptr(),
        ];
        let first = to.as_mut_ptr();
        let mut piece = 0;
        loop {
            let to = first.wrapping_add(GROUP * piece * width);
            // SAFETY: `fits`: `at_once` pieces from `piece` on, a block, lie in each row and in `to`.
            unsafe { simd.interleave_pieces::<PIECES>(from, steps, to) };
            if piece + at_once == count {
                break;
            }
            // The last pieces once more rather than a shorter step.
            let next = (piece + at_once).min(count - at_once);
            unrolled!(row < 4 {
                from[row] = from[row].wrapping_add((next - piece) * steps[row]);
            });
            piece = next;
        }
    }
}

/// Rows of blocks: sums of `T` groups of four products, any number if that is 0, rescaled and stored. `P` blocks
/// at a time, for which weights are loaded once. `HOW` is that of the channels.
pub(crate) struct BlockRowsOf<'a, S: BlocksS8, const T: usize, const P: usize, const HOW: u8> {
    pub(crate) rows: BlockRows<'a>,
    pub(crate) channels: &'a Channels<S, 4>,
}

/// What rows of blocks are made of.
pub(crate) struct BlockRows<'a> {
    /// Interleaved rows, as [`ColumnsOf`] writes them.
    pub(crate) input: &'a [u8],
    /// Where the groups of the first block start.
    pub(crate) groups: &'a [usize],
    /// The panels of a piece's channels, `panel_len` bytes each: sums, then `[rows][groups]` times four weights of
    /// each of 16 channels.
    pub(crate) panels: &'a [i8],
    pub(crate) panel_len: usize,
    /// What the sums of a block start from.
    pub(crate) start: &'a [i32; 4 * PANEL],
    pub(crate) count: usize,
    pub(crate) output: &'a mut [i8],
    /// Bytes from one row of output to the next.
    pub(crate) row_pitch: usize,
    /// Pieces of a row, 16 bytes or a multiple each.
    pub(crate) pieces: usize,
    /// Bytes of a piece; a block has a whole number of them.
    pub(crate) width: usize,
    /// Bytes from one piece to the next.
    pub(crate) pitch: usize,
}

impl<S: BlocksS8, const T: usize, const P: usize, const HOW: u8> KernelOn<S>
    for BlockRowsOf<'_, S, T, P, HOW>
{
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run_on(self, simd: S) {
        let BlockRows { input, groups, panels, panel_len, start, output, .. } = self.rows;
        let BlockRows { count, row_pitch, pieces, width, pitch, .. } = self.rows;
        let block = block_len::<S>();
        // Where pieces lie behind each other, a block is one piece.
        let at_once = match block.checked_div(width) {
            Some(pieces) if width != pitch => pieces,
            _ => 1,
        };
        let row_len = pieces.checked_mul(width);
        let blocks = row_len.map_or(0, |len| len.div_ceil(block));
        let reach = |offset: usize| blocks.checked_mul(GROUP * block)?.checked_add(offset);
        let weights_len = groups.len().checked_mul(GROUP_BYTES);
        let weights_end = weights_len
            .and_then(|len| len.checked_mul(count))
            .and_then(|len| len.checked_add(GROUP_BYTES));
        let fits = matches!(at_once, 1 | 2 | 4)
            && width.is_multiple_of(PANEL)
            && block.is_multiple_of(width)
            && (width == pitch || at_once * width == block)
            && blocks > 0
            && (T == 0 || groups.len() == T)
            && groups.iter().all(|&at| reach(at).is_some_and(|end| end <= input.len()))
            && weights_end.is_some_and(|end| end <= panel_len)
            && (width / PANEL).checked_mul(panel_len).is_some_and(|len| len <= panels.len())
            && pieces
                .checked_sub(1)
                .and_then(|before| before.checked_mul(pitch)?.checked_add(width))
                .and_then(|len| count.checked_sub(1)?.checked_mul(row_pitch)?.checked_add(len))
                .is_some_and(|len| len <= output.len());
        let (Some(row_len), Some(weights_len), true) = (row_len, weights_len, fits) else { return };
        // Copies, which stores to the output cannot change: they stay in registers.
        let Channels { scales, stage, .. } = *self.channels;
        let whole = row_len / block;
        let step = if width == pitch { block } else { at_once * pitch };
        let output = output.as_mut_ptr();
        let mut weights = [panels.as_ptr(); 4];
        unrolled!(v < 4 {
            let channel = v * S::LANES % width;
            let at = channel / PANEL * panel_len + GROUP_BYTES + channel % PANEL * GROUP;
            weights[v] = weights[v].wrapping_add(at);
        });
        for row in 0..count {
            let mut from = input.as_ptr();
            let mut to = output.wrapping_add(row * row_pitch);
            let mut left = whole;
            while P > 1 && left >= P {
                let sums = Sums::<T> { from, groups, weights, start };
                // SAFETY: `fits`: the input reaches to the last block of each group, and there are weights of
                // every row.
                let outputs: [S::Outputs; P] =
                    unsafe { sums.outputs::<S, P, HOW>(simd, &scales, &stage) };
                for outputs in outputs {
                    // SAFETY: `fits`: all pieces of a whole block lie in the output.
                    unsafe { store_pieces(simd, outputs, to, at_once, pitch) };
                    to = to.wrapping_add(step);
                }
                from = from.wrapping_add(GROUP * P * block);
                left -= P;
            }
            let rest = row_len - whole * block;
            for i in 0..left + usize::from(rest > 0) {
                let sums = Sums::<T> { from, groups, weights, start };
                // SAFETY: as above.
                let [outputs] = unsafe { sums.outputs::<S, 1, HOW>(simd, &scales, &stage) };
                from = from.wrapping_add(GROUP * block);
                if i < left {
                    // SAFETY: as above.
                    unsafe { store_pieces(simd, outputs, to, at_once, pitch) };
                    to = to.wrapping_add(step);
                    continue;
                }
                let mut bytes = [0; 4 * PANEL];
                // SAFETY: the array holds a vector of any set.
                unsafe { simd.store_outputs::<0, 4>(bytes.as_mut_ptr(), outputs) };
                for bytes in bytes.chunks_exact(width.max(1)).take(rest / width.max(1)) {
                    // SAFETY: `fits`: the pieces that are left lie in the output.
                    let to_bytes = unsafe { core::slice::from_raw_parts_mut(to, width) };
                    to_bytes.copy_from_slice(bytes);
                    to = to.wrapping_add(pitch);
                }
            }
            unrolled!(v < 4 {
                weights[v] = weights[v].wrapping_add(weights_len);
            });
        }
    }
}

/// Where the sums of some blocks side by side come from; see [`BlockRows`].
struct Sums<'a, const T: usize> {
    from: *const u8,
    groups: &'a [usize],
    /// Where each vector's weights start; [`GROUP_BYTES`] from one group to the next.
    weights: [*const i8; 4],
    start: &'a [i32; 4 * PANEL],
}

impl<const T: usize> Sums<'_, T> {
    /// The outputs of `P` blocks.
    ///
    /// # Safety
    /// The inputs are valid for reading `P` blocks from each group's start on, and each of `weights` for a vector of every
    /// group, [`GROUP_BYTES`] apart.
    #[inline(always)]
    unsafe fn outputs<S: BlocksS8, const P: usize, const HOW: u8>(
        self,
        simd: S,
        scales: &[S::Scales; 4],
        stage: &OutputStage,
    ) -> [S::Outputs; P] {
        let Self { from, groups, mut weights, start } = self;
        let block = block_len::<S>();
        let mut sums = [[simd.parts(simd.splat(0)); 4]; P];
        unrolled!(v < 4 {
            // SAFETY: `start` has four vectors of any set.
            let start = unsafe { simd.load_sums(start.as_ptr().wrapping_add(v * S::LANES)) };
            unrolled!(p < P {
                sums[p][v] = simd.parts(start);
            });
        });
        let count = if T == 0 { groups.len() } else { T };
        for &at in groups.iter().take(count) {
            let from = from.wrapping_add(at);
            unrolled!(v < 4 {
                // SAFETY: the caller vouches for the weights.
                let w = unsafe { simd.load_weights(weights[v]) };
                unrolled!(p < P {
                    let from = from.wrapping_add((p * GROUP + v) * block);
                    // SAFETY: the caller vouches for the inputs.
                    let x = unsafe { simd.load_inputs(from) };
                    sums[p][v] = simd.dot(sums[p][v], x, w);
                });
                weights[v] = weights[v].wrapping_add(GROUP_BYTES);
            });
        }
        // What stands there first is overwritten.
        let mut outputs = [simd.narrow([simd.splat(0); 4], stage); P];
        unrolled!(p < P {
            let mut rescaled = [simd.splat(0); 4];
            unrolled!(v < 4 {
                let sums = simd.total(sums[p][v]);
                rescaled[v] = rescale_as::<S, HOW>(simd, sums, &scales[v]);
            });
            outputs[p] = simd.narrow(rescaled, stage);
        });
        outputs
    }
}

/// Stores a block of outputs in pieces.
///
/// # Safety
/// `to` is valid for writing `pieces` pieces, 1, 2 or 4 of equal length, each `pitch` bytes after the one before.
#[inline(always)]
unsafe fn store_pieces<S: SimdS8>(
    simd: S,
    outputs: S::Outputs,
    to: *mut i8,
    pieces: usize,
    pitch: usize,
) {
    match pieces {
        // SAFETY: the caller vouches for the only piece.
        1 => unsafe { simd.store_outputs::<0, 4>(to, outputs) },
        2 => {
            // SAFETY: the caller vouches for the first piece.
            unsafe { simd.store_outputs::<0, 2>(to, outputs) };
            // SAFETY: and for the second.
            unsafe { simd.store_outputs::<2, 2>(to.wrapping_add(pitch), outputs) };
        }
        _ => {
            // SAFETY: the caller vouches for four pieces: the first.
            unsafe { simd.store_outputs::<0, 1>(to, outputs) };
            // SAFETY: the second.
            unsafe { simd.store_outputs::<1, 1>(to.wrapping_add(pitch), outputs) };
            // SAFETY: the third.
            unsafe { simd.store_outputs::<2, 1>(to.wrapping_add(2 * pitch), outputs) };
            // SAFETY: the fourth.
            unsafe { simd.store_outputs::<3, 1>(to.wrapping_add(3 * pitch), outputs) };
        }
    }
}
