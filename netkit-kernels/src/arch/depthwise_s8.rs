//! The sums of a depthwise convolution: some pixels, one vector of channels after the other.

use super::tile_s8::unrolled;
use crate::simd_s8::{KernelS8, SimdS8};
use core::ops::Range;
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL};

/// The sums of `P` consecutive output pixels of a row.
pub(crate) struct DepthwiseSumsOf<'a, const P: usize>(pub(crate) DepthwiseTileS8<'a>);

/// What the sums of a tile are made of.
pub(crate) struct DepthwiseTileS8<'a> {
    /// Groups of four rows, interleaved, `[groups][columns][channels]` times four inputs; starts at
    /// the first tap of the tile's first pixel and channel.
    pub(crate) input: &'a [u8],
    /// Bytes from one group of rows to the next.
    pub(crate) group_pitch: usize,
    /// Bytes from one tap to the next in a row.
    pub(crate) tap_pitch: usize,
    /// Bytes from one output pixel to the next.
    pub(crate) pixel_pitch: usize,
    /// The groups whose weights are not all 0.
    pub(crate) groups: Range<usize>,
    pub(crate) kernel_w: usize,
    /// The first channel's panel, from the weights of this placement of the kernel on:
    /// `[kernel_w][all groups]` times 64 bytes.
    pub(crate) weights: &'a [i8],
    /// All groups, those without weights included.
    pub(crate) all_groups: usize,
    /// Bytes from one panel to the next.
    pub(crate) panel_pitch: usize,
    /// The first channel's lane in its panel, a multiple of `LANES`.
    pub(crate) lane: usize,
    /// What the sums of each channel start from, `[vectors · LANES]`.
    pub(crate) start: &'a [i32],
    /// `[P][vectors · LANES]`
    pub(crate) sums: &'a mut [i32],
}

impl<const P: usize> KernelS8 for DepthwiseSumsOf<'_, P> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        let tile = self.0;
        let width = tile.start.len() / S::LANES * S::LANES;
        let fits = tile.lane.is_multiple_of(S::LANES)
            && tile.sums.len() / P >= width
            && tile.extent(P, width, S::INPUT_BYTES).is_some();
        if !fits {
            return;
        }
        for first in (0..width).step_by(S::LANES) {
            // SAFETY: `start` has `width` values.
            let start = unsafe { simd.load_sums(tile.start.as_ptr().wrapping_add(first)) };
            let lane = tile.lane + first;
            let weights = tile.weights.as_ptr().wrapping_add(lane / PANEL * tile.panel_pitch);
            let weights = weights.wrapping_add(lane % PANEL * GROUP);
            let input = tile.input.as_ptr().wrapping_add(first * GROUP * S::INPUT_BYTES);
            let mut acc = [simd.parts(start); P];
            for tap in 0..tile.kernel_w {
                for group in tile.groups.clone() {
                    let from = weights.wrapping_add((tap * tile.all_groups + group) * GROUP_BYTES);
                    // SAFETY: `extent` checked that the weights of every channel are there.
                    let w = unsafe { simd.load_weights(from) };
                    let from = input.wrapping_add(group * tile.group_pitch + tap * tile.tap_pitch);
                    unrolled!(p < P {
                        let from = from.wrapping_add(p * tile.pixel_pitch);
                        // SAFETY: `extent` checked that every tap of every pixel is there.
                        let x = unsafe { simd.load_inputs(from) };
                        acc[p] = simd.dot(acc[p], x, w);
                    });
                }
            }
            let sums = tile.sums.as_mut_ptr().wrapping_add(first);
            unrolled!(p < P {
                // SAFETY: `sums` has P · `width` values.
                unsafe { simd.store_sums(sums.wrapping_add(p * width), simd.total(acc[p])) };
            });
        }
    }
}

impl DepthwiseTileS8<'_> {
    /// `None` if inputs or weights of `width` channels of `pixels` pixels are missing.
    #[inline(always)]
    fn extent(&self, pixels: usize, width: usize, input_bytes: usize) -> Option<()> {
        let last_group = self.groups.end.min(self.all_groups).checked_sub(1)?;
        let last_tap = self.kernel_w.checked_sub(1)?;
        let input = last_group
            .checked_mul(self.group_pitch)?
            .checked_add(last_tap.checked_mul(self.tap_pitch)?)?
            .checked_add((pixels - 1).checked_mul(self.pixel_pitch)?)?
            .checked_add(width.checked_mul(GROUP * input_bytes)?)?;
        let last_panel = self.lane.checked_add(width)?.div_ceil(PANEL).checked_sub(1)?;
        let weights = last_panel
            .checked_mul(self.panel_pitch)?
            .checked_add(self.kernel_w.checked_mul(self.all_groups)?.checked_mul(GROUP_BYTES)?)?;
        let fits = input <= self.input.len()
            && weights <= self.weights.len()
            && self.groups.end <= self.all_groups;
        fits.then_some(())
    }
}
