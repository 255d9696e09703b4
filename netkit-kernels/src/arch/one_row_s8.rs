//! Int8 dense layers of one row: every weight is used once, so that what counts is how fast they are read and how little is
//! done beside it. On x86-64 layers of few inputs have [`short_row_s8`](super::short_row_s8) instead.

use super::store_s8::copy_short;
use super::tile_s8::unrolled;
use crate::simd_s8::{KernelOn, NO_MULTIPLIER, SimdS8};
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL};
use netkit_core::quant::{Multiplier, OutputStage};

/// What turns sums into the outputs of one row.
#[derive(Clone, Copy)]
pub(crate) struct RowEnd<'a> {
    pub(crate) bias: &'a [i32],
    pub(crate) multipliers: &'a [Multiplier],
    pub(crate) stage: OutputStage,
    /// What the inputs as read are above those that count: offset and zero point.
    pub(crate) excess: i32,
}

impl RowEnd<'_> {
    /// Stores the outputs of channels `first` and behind it, at most `LANES` and as many as the output has: `sums` are those
    /// of products, `weights` those of the channels' weights.
    #[inline(always)]
    pub(super) fn store<S: SimdS8>(
        &self,
        simd: S,
        first: usize,
        sums: S::Sums,
        weights: &[i32; PANEL],
        output: &mut [i8],
    ) {
        let bias = self.bias.get(first..).unwrap_or(&[]);
        let multipliers = self.multipliers.get(first..).unwrap_or(&[]);
        // Whole panels where they lie.
        let (mut few_bias, mut few_multipliers) = ([0; PANEL], [NO_MULTIPLIER; PANEL]);
        let bias = bias.first_chunk().unwrap_or_else(|| {
            for (to, &from) in few_bias.iter_mut().zip(bias) {
                *to = from;
            }
            &few_bias
        });
        let multipliers = multipliers.first_chunk().unwrap_or_else(|| {
            for (to, &from) in few_multipliers.iter_mut().zip(multipliers) {
                *to = from;
            }
            &few_multipliers
        });
        let mut start = [0; PANEL];
        for ((to, bias), weights) in start.iter_mut().zip(bias).zip(weights) {
            *to = bias.wrapping_sub(self.excess.wrapping_mul(*weights));
        }
        // SAFETY: the array has LANES sums.
        let start = unsafe { simd.load_sums(start.as_ptr()) };
        let rescaled = simd.rescale::<false>(simd.add(sums, start), &simd.scales(multipliers));
        let outputs = simd.narrow([rescaled; 4], &self.stage);
        if let Some(to) = output.get_mut(..S::LANES) {
            // SAFETY: as many bytes.
            unsafe { simd.store_outputs::<0, 1>(to.as_mut_ptr(), outputs) };
        } else {
            let mut bytes = [0; PANEL];
            // SAFETY: the array has room for LANES bytes.
            unsafe { simd.store_outputs::<0, 1>(bytes.as_mut_ptr(), outputs) };
            copy_short(bytes.get(..output.len()), Some(output));
        }
    }
}

/// The outputs of one row from panels.
pub(crate) struct RowOfPanels<'a> {
    /// Inputs as tiles read them, four for every group.
    pub(crate) input: &'a [u8],
    pub(crate) groups: usize,
    pub(crate) panels: &'a [i8],
    pub(crate) end: RowEnd<'a>,
    pub(crate) output: &'a mut [i8],
}

/// Groups that are multiplied at once, into sums of their own.
const GROUPS: usize = 8;

impl<S: SimdS8> KernelOn<S> for RowOfPanels<'_> {
    type Output = ();

    /// Does nothing if the input is too short. Channels without a panel are left out.
    #[inline(always)]
    fn run_on(self, simd: S) {
        let Self { input, groups, panels, end, output } = self;
        let panel_len = groups.checked_add(1).and_then(|groups| groups.checked_mul(GROUP_BYTES));
        let input_len = groups.checked_mul(GROUP * S::INPUT_BYTES);
        let (Some(panel_len), true) = (panel_len, input_len.is_some_and(|len| len <= input.len()))
        else {
            return;
        };
        let panels = panels.chunks_exact(panel_len);
        for ((panel, output), first) in
            panels.zip(output.chunks_mut(PANEL)).zip((0..).step_by(PANEL))
        {
            for (lane, output) in (0..).step_by(S::LANES).zip(output.chunks_mut(S::LANES)) {
                let mut sums = [0; PANEL];
                let fours = panel.as_chunks::<GROUP>().0.get(lane..).unwrap_or(&[]);
                for (to, &[a, b, c, d]) in sums.iter_mut().zip(fours).take(S::LANES) {
                    *to = i32::from_le_bytes([a as u8, b as u8, c as u8, d as u8]);
                }
                let weights = panel.as_ptr().wrapping_add(GROUP_BYTES + lane * GROUP);
                // SAFETY: a panel has all groups behind its sums, and so has the input.
                let dots = unsafe { dot_panel(simd, input.as_ptr(), weights, groups) };
                end.store(simd, first + lane, dots, &sums, output);
            }
        }
    }
}

/// The products of `groups` groups with one vector of channels.
///
/// # Safety
/// `input` is valid for reading four inputs for each group, and `weights` the weights of `LANES` channels every
/// [`GROUP_BYTES`].
#[inline(always)]
unsafe fn dot_panel<S: SimdS8>(
    simd: S,
    input: *const u8,
    weights: *const i8,
    groups: usize,
) -> S::Sums {
    let mut acc = [simd.parts(simd.splat(0)); GROUPS];
    let (mut input, mut weights) = (input, weights);
    let mut left = groups;
    while left >= GROUPS {
        unrolled!(g < GROUPS {
            // SAFETY: the caller vouches for this group.
            let w = unsafe { simd.load_weights(weights.wrapping_add(g * GROUP_BYTES)) };
            // SAFETY: as above.
            acc[g] = unsafe { simd.dot_splat(acc[g], input, g * GROUP * S::INPUT_BYTES, w) };
        });
        input = input.wrapping_add(GROUPS * GROUP * S::INPUT_BYTES);
        weights = weights.wrapping_add(GROUPS * GROUP_BYTES);
        left -= GROUPS;
    }
    unrolled!(g < GROUPS {
        if g < left {
            // SAFETY: as above.
            let w = unsafe { simd.load_weights(weights.wrapping_add(g * GROUP_BYTES)) };
            // SAFETY: as above.
            acc[g] = unsafe { simd.dot_splat(acc[g], input, g * GROUP * S::INPUT_BYTES, w) };
        }
    });
    let mut sums = [simd.splat(0); GROUPS / 2];
    unrolled!(g < 4 {
        sums[g] = simd.add(simd.total(acc[g]), simd.total(acc[g + GROUPS / 2]));
    });
    simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]))
}
