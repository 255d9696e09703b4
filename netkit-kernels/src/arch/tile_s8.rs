//! The register tile of the int8 convolution and matrix product: some pixels times some vectors of
//! output channels.
//!
//! Sums stay in registers over the whole depth. Each step loads four weights of every channel once and
//! broadcasts four input bytes of each pixel.

use crate::simd_s8::{KernelS8, SimdS8};
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL};

/// Where the groups of a pixel lie relative to its first: `rows · columns` runs of `groups` times four
/// bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupRuns {
    pub(crate) rows: usize,
    pub(crate) row_pitch: usize,
    pub(crate) columns: usize,
    pub(crate) column_pitch: usize,
    pub(crate) groups: usize,
}

impl GroupRuns {
    /// Bytes from a pixel's first to the end of its last group; `None` where there are none.
    #[inline(always)]
    fn extent(&self) -> Option<usize> {
        let rows = self.rows.checked_sub(1)?.checked_mul(self.row_pitch)?;
        let columns = self.columns.checked_sub(1)?.checked_mul(self.column_pitch)?;
        rows.checked_add(columns)?.checked_add(self.groups.checked_mul(GROUP)?)
    }

    /// Bytes from one panel to the next, its sums included.
    #[inline(always)]
    pub(crate) fn panel_stride(&self) -> usize {
        self.panel_len().and_then(|len| len.checked_add(GROUP_BYTES)).unwrap_or(usize::MAX)
    }

    /// Bytes of a panel without its sums.
    #[inline(always)]
    fn panel_len(&self) -> Option<usize> {
        self.rows.checked_mul(self.columns)?.checked_mul(self.groups)?.checked_mul(GROUP_BYTES)
    }
}

/// The pixels of an output block: `width` in a row, each a step apart in the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PixelGrid {
    pub(crate) width: usize,
    pub(crate) column_step: usize,
    pub(crate) row_step: usize,
}

/// The body once for each `p` below `P`, at most 14. A loop this long the compiler leaves a loop, and
/// arrays that it indexes with a variable in memory.
macro_rules! unrolled {
    ($p:ident < $n:ident $body:block) => {
        $crate::arch::tile_s8::unrolled!($p < $n $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    ($p:ident < $n:ident $body:block $($k:literal)+) => {
        $(if $k < $n {
            let $p = $k;
            $body
        })+
    };
}
pub(super) use unrolled;

/// The sums of `P` consecutive pixels and `V` vectors of channels.
///
/// A kernel of its own, so that the registers are its alone: together with what follows, the largest
/// tiles spill.
pub(crate) struct SumsOf<'a, const P: usize, const V: usize>(pub(crate) TileS8<'a>);

/// What the sums of a tile are made of.
pub(crate) struct TileS8<'a> {
    /// Input bytes of the block; pixel (0, 0) starts at the first.
    pub(crate) input: &'a [u8],
    pub(crate) runs: GroupRuns,
    pub(crate) grid: PixelGrid,
    /// First pixel.
    pub(crate) pixel: usize,
    /// The panel of the first channel, and those after it; each with its sums in front.
    pub(crate) panels: &'a [i8],
    /// The first channel's lane in its panel, a multiple of `LANES`.
    pub(crate) lane: usize,
    /// What the sums of each channel start from.
    pub(crate) start: &'a [i32],
    /// `[P][V · LANES]`
    pub(crate) sums: &'a mut [i32],
}

impl<const P: usize, const V: usize> KernelS8 for SumsOf<'_, P, V> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        let tile = self.0;
        let width = V * S::LANES;
        if tile.start.len() < width || tile.sums.len() < P * width {
            return;
        }
        let Some(offsets) = tile.offsets::<P>() else { return };
        let Some(weights) = tile.weights::<V>(S::LANES) else { return };
        let mut input = [tile.input.as_ptr(); P];
        for (input, offset) in input.iter_mut().zip(offsets) {
            *input = input.wrapping_add(offset);
        }
        let mut start = [simd.splat(0); V];
        for (v, start) in start.iter_mut().enumerate() {
            // SAFETY: `start` has V · LANES values.
            *start = unsafe { simd.load_sums(tile.start.as_ptr().wrapping_add(v * S::LANES)) };
        }
        let acc = accumulate(simd, tile.runs, &input, &weights, start);
        let sums = tile.sums.as_mut_ptr();
        unrolled!(p < P {
            unrolled!(v < V {
                let to = sums.wrapping_add((p * V + v) * S::LANES);
                // SAFETY: `sums` has P · V · LANES values.
                unsafe { simd.store_sums(to, acc[p][v]) };
            });
        });
    }
}

impl TileS8<'_> {
    /// Offset of each pixel in the input, its extent checked.
    #[inline(always)]
    fn offsets<const P: usize>(&self) -> Option<[usize; P]> {
        let last = self.input.len().checked_sub(self.runs.extent()?)?;
        let width = self.grid.width.max(1);
        let (row, mut column) = (self.pixel / width, self.pixel % width);
        let mut offset = row * self.grid.row_step + column * self.grid.column_step;
        // From the last pixel of a row to the first of the next; may be negative.
        let turn = self.grid.row_step.wrapping_sub((width - 1).wrapping_mul(self.grid.column_step));
        let (mut offsets, mut furthest) = ([0; P], 0);
        unrolled!(p < P {
            offsets[p] = offset;
            furthest = offset.max(furthest);
            column += 1;
            let step = if column == width { turn } else { self.grid.column_step };
            column = if column == width { 0 } else { column };
            offset = offset.wrapping_add(step);
        });
        (furthest <= last).then_some(offsets)
    }

    /// First weights of each vector, its panel's length checked.
    #[inline(always)]
    fn weights<const V: usize>(&self, lanes: usize) -> Option<[*const i8; V]> {
        let panel_len = self.runs.panel_len()?;
        let mut weights = [self.panels.as_ptr(); V];
        for (v, weights) in weights.iter_mut().enumerate() {
            let lane = self.lane + v * lanes;
            let start = (lane / PANEL).checked_mul(panel_len.checked_add(GROUP_BYTES)?)?;
            let panel = self.panels.get(start.checked_add(GROUP_BYTES)?..)?.get(..panel_len)?;
            *weights = panel.as_ptr().wrapping_add(lane % PANEL * GROUP);
        }
        Some(weights)
    }
}

#[inline(always)]
fn accumulate<S: SimdS8, const P: usize, const V: usize>(
    simd: S,
    runs: GroupRuns,
    input: &[*const u8; P],
    weights: &[*const i8; V],
    start: [S::Sums; V],
) -> [[S::Sums; V]; P] {
    let mut acc = [start; P];
    let mut at = 0;
    for row in 0..runs.rows {
        for column in 0..runs.columns {
            let base = row * runs.row_pitch + column * runs.column_pitch;
            for group in 0..runs.groups {
                // SAFETY: `weights` checked that each panel holds all groups of all runs.
                let mut w = [unsafe { simd.load_weights(weights[0].wrapping_add(at)) }; V];
                unrolled!(v < V {
                    // SAFETY: as above.
                    w[v] = unsafe { simd.load_weights(weights[v].wrapping_add(at)) };
                });
                unrolled!(p < P {
                    let from = input[p].wrapping_add(base + group * GROUP);
                    // SAFETY: `offsets` checked that the runs' extent lies behind each pixel.
                    let x = unsafe { simd.splat_inputs(from) };
                    unrolled!(v < V {
                        acc[p][v] = simd.dot(acc[p][v], x, w[v]);
                    });
                });
                at += GROUP_BYTES;
            }
        }
    }
    acc
}
