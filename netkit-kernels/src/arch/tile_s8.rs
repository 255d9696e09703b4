//! The register tile of the int8 convolution and matrix product: some pixels times some vectors of
//! output channels.
//!
//! Sums stay in registers over the whole depth. Each step loads four weights of every channel once and
//! broadcasts four input bytes of each pixel.

use super::store_s8::{
    Channels, MODERATE, POSITIVE, StoreS8, rescale_as, rescale_quad, store_quad,
};
use crate::simd_s8::{KernelOn, KernelS8, SimdS8, dot_group};
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL};
use netkit_core::quant::OutputStage;

/// Where the groups of a pixel lie relative to its first: `rows · columns` runs of `groups` times four
/// inputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupRuns {
    pub(crate) rows: usize,
    /// Bytes, like `column_pitch`.
    pub(crate) row_pitch: usize,
    pub(crate) columns: usize,
    pub(crate) column_pitch: usize,
    pub(crate) groups: usize,
}

impl GroupRuns {
    /// Bytes from a pixel's first to the end of its last group, inputs of `input_bytes` each; `None`
    /// where there are none.
    #[inline(always)]
    fn extent(&self, input_bytes: usize) -> Option<usize> {
        let rows = self.rows.checked_sub(1)?.checked_mul(self.row_pitch)?;
        let columns = self.columns.checked_sub(1)?.checked_mul(self.column_pitch)?;
        let groups = self.groups.checked_mul(GROUP * input_bytes)?;
        rows.checked_add(columns)?.checked_add(groups)
    }

    /// Groups of all runs, saturating.
    #[inline(always)]
    pub(crate) fn all_groups(&self) -> usize {
        self.rows.saturating_mul(self.columns).saturating_mul(self.groups)
    }

    /// Products of a sum, saturating; those with zero weights are counted.
    #[inline(always)]
    pub(crate) fn taps(&self) -> usize {
        self.panel_len().map_or(usize::MAX, |len| len / PANEL)
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

/// The body once for each `p` below `P`, which is at most 14, or at most 4 where it is a literal or `unrolled!(p < P <= 4
/// { … })` says so: the compiler reads every copy, and loops in one another are soon hundreds. A loop this long it leaves a
/// loop, and arrays that are indexed with a variable in memory. Conditions are constants, so that no code is made of what is
/// not reached.
macro_rules! unrolled {
    ($p:ident < $n:tt <= 4 $body:block) => {
        const { assert!($n <= 4) };
        $crate::arch::tile_s8::unrolled!($p < $n $body 0 1 2 3)
    };
    ($p:ident < $n:literal $body:block) => {
        $crate::arch::tile_s8::unrolled!($p < $n <= 4 $body)
    };
    ($p:ident < $n:tt $body:block) => {
        const { assert!($n <= 14) };
        $crate::arch::tile_s8::unrolled!($p < $n $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    ($p:ident < $n:tt $body:block $($k:literal)+) => {
        $(
            #[allow(unconditional_panic, reason = "the lint looks into what is not reached")]
            {
                if const { $k < $n } {
                    let $p = $k;
                    $body
                }
            }
        )+
    };
}
pub(crate) use unrolled;

/// The sums of `P` pixels in a row and `V` vectors of channels, and of as many behind them, tile by tile.
///
/// A kernel of its own, so that the registers are its alone: together with what surrounds it, the
/// largest tiles spill.
pub(crate) struct SumsOf<'a, const P: usize, const V: usize>(pub(crate) TileS8<'a>);

/// What the sums of a tile are made of.
pub(crate) struct TileS8<'a> {
    /// Input bytes from the first pixel on.
    pub(crate) input: &'a [u8],
    /// Bytes from one pixel to the next.
    pub(crate) step: usize,
    /// Tiles side by side.
    pub(crate) count: usize,
    pub(crate) runs: GroupRuns,
    /// The panel of the first channel, and those after it; each with its sums in front.
    pub(crate) panels: &'a [i8],
    /// The first channel's lane in its panel, a multiple of `LANES`.
    pub(crate) lane: usize,
    /// What the sums of each channel start from.
    pub(crate) start: &'a [i32],
    /// `[count · P][V · LANES]`
    pub(crate) sums: &'a mut [i32],
}

impl<const P: usize, const V: usize> KernelS8 for SumsOf<'_, P, V> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        let tile = self.0;
        let room = tile.count.checked_mul(P * V * S::LANES);
        let (Some((weights, start)), true) =
            (tile.begin::<S, P, V>(simd), room.is_some_and(|room| room <= tile.sums.len()))
        else {
            return;
        };
        let mut input = tile.input.as_ptr();
        let mut sums = tile.sums.as_mut_ptr();
        for _ in 0..tile.count {
            // SAFETY: `begin` checked what is read, and `sums` has `count` · P · V · LANES values.
            unsafe { sums_at::<S, P, V>(simd, &tile, input, weights, start, sums) };
            input = input.wrapping_add(P * tile.step);
            sums = sums.wrapping_add(P * V * S::LANES);
        }
    }
}

/// [`SumsOf`], each tile's sums made outputs at once: where registers and what the processor looks ahead suffice, it rescales
/// the sums of one tile while it multiplies those of the next.
pub(crate) struct OutputsOf<'a, S: SimdS8, const P: usize, const V: usize> {
    /// Its `sums` are those of one tile.
    pub(crate) tile: TileS8<'a>,
    /// Rows of tiles.
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

impl<S: SimdS8, const P: usize, const V: usize> KernelOn<S> for OutputsOf<'_, S, P, V> {
    type Output = ();

    /// Does nothing if a slice of the input is too short. What does not fit the output is left out.
    #[inline(always)]
    fn run_on(self, simd: S) {
        let Self { tile, rows, row_step, channels, output, pitch, row_pitch } = self;
        let last = rows.checked_sub(1).and_then(|before| before.checked_mul(row_step));
        let last = last
            .filter(|&last| tile.reaches_from(last, tile.count.saturating_mul(P), S::INPUT_BYTES));
        let (Some((weights, start)), Some(_), true) =
            (tile.begin::<S, P, V>(simd), last, P * V * S::LANES <= tile.sums.len())
        else {
            return;
        };
        let whole = || {
            let before = rows.checked_sub(1)?.checked_mul(row_pitch)?;
            let pixels = (tile.count * P).checked_sub(1)?.checked_mul(pitch)?;
            before.checked_add(pixels)?.checked_add(V * S::LANES)
        };
        // With fewer groups than pixels, most of it would not be between products.
        if const { S::INTERLEAVES && V == 2 }
            && tile.runs.groups >= P
            && channels.are_simple()
            && whole().is_some_and(|end| end <= output.len())
            && 2 * P * V * S::LANES <= tile.sums.len()
        {
            let (sums, output) = (tile.sums.as_mut_ptr(), output.as_mut_ptr());
            let grid = Grid { rows, row_step, sums, output, pitch, row_pitch };
            if S::RESCALES_POSITIVE && channels.how == POSITIVE {
                // SAFETY: all of this is checked above, in `begin` and `reaches_from`.
                unsafe {
                    interleaved::<S, P, V, POSITIVE>(simd, &tile, weights, start, channels, grid);
                }
            } else {
                // SAFETY: as above.
                unsafe {
                    interleaved::<S, P, V, MODERATE>(simd, &tile, weights, start, channels, grid);
                }
            }
            return;
        }
        for row in 0..rows {
            let mut input = tile.input.as_ptr().wrapping_add(row * row_step);
            let mut output = output.get_mut(row * row_pitch..).unwrap_or(&mut []);
            for _ in 0..tile.count {
                let sums = tile.sums.as_mut_ptr();
                // SAFETY: `begin` and `reaches_from` checked what is read, and `sums` has P · V · LANES values.
                unsafe { sums_at::<S, P, V>(simd, &tile, input, weights, start, sums) };
                StoreS8 { channels, pixels: P, sums: tile.sums, output: &mut *output, pitch }
                    .run_on(simd);
                input = input.wrapping_add(P * tile.step);
                let done = (P * pitch).min(output.len());
                output = output.get_mut(done..).unwrap_or(&mut []);
            }
        }
    }
}

/// What pixels are apart whose number is odd; some may be more than a tile has, and any number then.
#[inline(always)]
fn odd_multiples(step: usize) -> [usize; 7] {
    [1, 3, 5, 7, 9, 11, 13].map(|i: usize| i.wrapping_mul(step))
}

/// Where tiles, their sums and their outputs are.
struct Grid {
    rows: usize,
    row_step: usize,
    sums: *mut i32,
    output: *mut i8,
    pitch: usize,
    row_pitch: usize,
}

/// All tiles, the sums of each being rescaled between the products of the next: both take other parts of the processor, which
/// looks ahead far enough for a few pixels, not for a tile.
///
/// # Safety
/// The tile has [begun](TileS8::begin) with these weights, all rows of its pixels lie in the input and have room in the output,
/// the channels are [simple](Channels::are_simple), and there is room for the sums of two tiles.
#[inline(always)]
unsafe fn interleaved<S: SimdS8, const P: usize, const V: usize, const HOW: u8>(
    simd: S,
    tile: &TileS8<'_>,
    weights: [*const i8; V],
    start: [S::Parts; V],
    channels: &Channels<S, V>,
    grid: Grid,
) {
    let Channels { scales, stage, .. } = *channels;
    let step = tile.step;
    let odd = odd_multiples(step);
    let (mut sums, mut before) = (grid.sums, grid.sums.wrapping_add(P * V * S::LANES));
    // Where the outputs of the tile before belong, and how many of its pixels are left.
    let (mut to, mut left) = (grid.output, 0);
    for row in 0..grid.rows {
        let mut input = tile.input.as_ptr().wrapping_add(row * grid.row_step);
        let mut output = grid.output.wrapping_add(row * grid.row_pitch);
        for _ in 0..tile.count {
            let mut acc = [start; P];
            // As many pixels as fill four vectors, beside as many groups: narrowing four takes eight instructions, narrowing
            // one six.
            let quads = tile.runs.groups.min(left) / (4 / V);
            let (mut from, mut at) = (input, 0);
            let mut sums_before = before.cast_const();
            for _ in 0..quads {
                // SAFETY: the caller vouches for sums and outputs.
                unsafe {
                    finish_quad::<S, V, HOW>(simd, sums_before, &scales, &stage, to, grid.pitch)
                };
                sums_before = sums_before.wrapping_add(4 * S::LANES);
                to = to.wrapping_add(4 / V * grid.pitch);
                unrolled!(group < (4 / V) <= 4 {
                    let (from, at) = (from.wrapping_add(group * GROUP * S::INPUT_BYTES), at + group * GROUP_BYTES);
                    // SAFETY: `weights` checked that each panel holds all groups of all runs.
                    let mut w = [unsafe { simd.load_weights(weights[0].wrapping_add(at)) }; V];
                    unrolled!(v < V <= 4 {
                        // SAFETY: as above.
                        w[v] = unsafe { simd.load_weights(weights[v].wrapping_add(at)) };
                    });
                    unrolled!(p < P {
                        let twos = usize::trailing_zeros(p);
                        let pixel = if p == 0 { 0 } else { odd[(p >> twos) / 2] << twos };
                        // SAFETY: the caller vouches for the inputs of all groups.
                        let x = unsafe { simd.splat_inputs(from.wrapping_add(pixel)) };
                        unrolled!(v < V <= 4 {
                            acc[p][v] = simd.dot(acc[p][v], x, w[v]);
                        });
                    });
                });
                at += 4 / V * GROUP_BYTES;
                from = from.wrapping_add(4 / V * GROUP * S::INPUT_BYTES);
            }
            for _ in 4 / V * quads..left {
                // SAFETY: the caller vouches for sums and outputs.
                unsafe { finish::<S, V, HOW>(simd, sums_before, &scales, &stage, to) };
                sums_before = sums_before.wrapping_add(V * S::LANES);
                to = to.wrapping_add(grid.pitch);
            }
            // SAFETY: the caller vouches for the weights and for all rows of pixels.
            let acc = unsafe { accumulate(simd, tile, input, &weights, acc, 4 / V * quads) };
            unrolled!(p < P {
                unrolled!(v < V <= 4 {
                    let to = sums.wrapping_add((p * V + v) * S::LANES);
                    // SAFETY: the caller vouches for the sums.
                    unsafe { simd.store_sums(to, simd.total(acc[p][v])) };
                });
            });
            (sums, before, to, left) = (before, sums, output, P);
            input = input.wrapping_add(P * step);
            output = output.wrapping_add(P * grid.pitch);
        }
    }
    for _ in 0..left {
        // SAFETY: as above.
        unsafe { finish::<S, V, HOW>(simd, before, &scales, &stage, to) };
        before = before.wrapping_add(V * S::LANES);
        to = to.wrapping_add(grid.pitch);
    }
}

/// The outputs of one pixel.
///
/// # Safety
/// `sums` is valid for reading `V` vectors, `to` for writing as many outputs, and sums and scales are moderate.
#[inline(always)]
unsafe fn finish<S: SimdS8, const V: usize, const HOW: u8>(
    simd: S,
    sums: *const i32,
    scales: &[S::Scales; V],
    stage: &OutputStage,
    to: *mut i8,
) {
    unrolled!(v < V <= 4 {
        // SAFETY: the caller vouches for the sums.
        let sums = unsafe { simd.load_sums(sums.wrapping_add(v * S::LANES)) };
        let rescaled = rescale_as::<S, HOW>(simd, sums, &scales[v]);
        // SAFETY: the caller vouches for the outputs.
        unsafe { simd.store_moderate(to.wrapping_add(v * S::LANES), rescaled, stage) };
    });
}

/// The outputs of four vectors.
///
/// # Safety
/// As of [`finish`], of `4 / V` pixels, whose outputs are `pitch` bytes apart.
#[inline(always)]
unsafe fn finish_quad<S: SimdS8, const V: usize, const HOW: u8>(
    simd: S,
    sums: *const i32,
    scales: &[S::Scales; V],
    stage: &OutputStage,
    to: *mut i8,
    pitch: usize,
) {
    // SAFETY: the caller vouches for the sums.
    let rescaled = unsafe { rescale_quad::<S, V, HOW>(simd, sums, 4, scales) };
    let outputs = simd.narrow(rescaled, stage);
    // SAFETY: the caller vouches for the outputs.
    unsafe { store_quad::<S, V>(simd, to, pitch, 4, outputs) };
}

/// The sums of a tile's P pixels from `input` on.
///
/// # Safety
/// The tile has [begun](TileS8::begin) with these weights, `input` is the first of P of its pixels, and `sums` is valid for
/// writing P · V · `LANES` values.
#[inline(always)]
unsafe fn sums_at<S: SimdS8, const P: usize, const V: usize>(
    simd: S,
    tile: &TileS8<'_>,
    input: *const u8,
    weights: [*const i8; V],
    start: [S::Parts; V],
    sums: *mut i32,
) {
    let acc: [[S::Parts; V]; P] = if S::GROUPS_AT_ONCE > 1 {
        let mut pixels = [input; P];
        unrolled!(p < P {
            pixels[p] = pixels[p].wrapping_add(p * tile.step);
        });
        // SAFETY: the caller vouches for the weights and for P pixels.
        unsafe { accumulate_groups(simd, tile, pixels, weights, start) }
    } else {
        // SAFETY: as above.
        unsafe { accumulate(simd, tile, input, &weights, [start; P], 0) }
    };
    unrolled!(p < P {
        unrolled!(v < V <= 4 {
            let to = sums.wrapping_add((p * V + v) * S::LANES);
            // SAFETY: the caller vouches for the sums.
            unsafe { simd.store_sums(to, simd.total(acc[p][v])) };
        });
    });
}

impl TileS8<'_> {
    /// First weights of each vector, and what its sums start from; `None` if a slice that is read is too short for
    /// `count` · P pixels, or there are none.
    #[inline(always)]
    pub(super) fn begin<S: SimdS8, const P: usize, const V: usize>(
        &self,
        simd: S,
    ) -> Option<([*const i8; V], [S::Parts; V])> {
        let pixels = self.count.checked_mul(P).filter(|&pixels| pixels > 0)?;
        if self.start.len() < V * S::LANES || !self.reaches(pixels, S::INPUT_BYTES) {
            return None;
        }
        let weights = self.weights::<V>(S::LANES)?;
        let mut start = [simd.parts(simd.splat(0)); V];
        unrolled!(v < V <= 4 {
            // SAFETY: `start` has V · LANES values.
            let sums = unsafe { simd.load_sums(self.start.as_ptr().wrapping_add(v * S::LANES)) };
            start[v] = simd.parts(sums);
        });
        Some((weights, start))
    }

    /// Whether every run of `pixels` pixels lies in the input.
    #[inline(always)]
    pub(super) fn reaches(&self, pixels: usize, input_bytes: usize) -> bool {
        self.reaches_from(0, pixels, input_bytes)
    }

    /// [`reaches`](Self::reaches) for pixels from `start` on, a number of bytes.
    #[inline(always)]
    pub(super) fn reaches_from(&self, start: usize, pixels: usize, input_bytes: usize) -> bool {
        let last = pixels.saturating_sub(1).checked_mul(self.step);
        let end = last.and_then(|last| last.checked_add(self.runs.extent(input_bytes)?));
        end.and_then(|end| end.checked_add(start)).is_some_and(|end| end <= self.input.len())
    }

    /// First weights of each vector, its panel's length checked; `None` too if the first lane is not a vector's.
    #[inline(always)]
    pub(super) fn weights<const V: usize>(&self, lanes: usize) -> Option<[*const i8; V]> {
        let panel_len = self.runs.panel_len()?;
        let lane = Some(self.lane).filter(|lane| lane.is_multiple_of(lanes))?;
        let last = lane.checked_add((V - 1) * lanes)? / PANEL;
        let stride = panel_len.checked_add(GROUP_BYTES)?;
        if self.panels.len() < last.checked_add(1)?.checked_mul(stride)? {
            return None;
        }
        let mut weights = [self.panels.as_ptr(); V];
        unrolled!(v < V <= 4 {
            let lane = self.lane + v * lanes;
            let at = lane / PANEL * stride + GROUP_BYTES + lane % PANEL * GROUP;
            weights[v] = weights[v].wrapping_add(at);
        });
        Some(weights)
    }
}

/// Pixels up to which each has a register for its address.
const POINTERS: usize = 6;

/// To the products `sums` already has, of the first `done` groups of the first run, adds all others.
///
/// # Safety
/// The tile has [begun](TileS8::begin) with these weights, and `input` is the first of P of its pixels.
#[inline(always)]
unsafe fn accumulate<S: SimdS8, const P: usize, const V: usize>(
    simd: S,
    tile: &TileS8<'_>,
    input: *const u8,
    weights: &[*const i8; V],
    sums: [[S::Parts; V]; P],
    done: usize,
) -> [[S::Parts; V]; P] {
    let GroupRuns { rows, row_pitch, columns, column_pitch, groups } = tile.runs;
    // Fourteen pixels, each a scaled multiple from one base: seven registers address them all.
    let step = tile.step;
    let odd = odd_multiples(step);
    let pixel = |base: *const u8, p: usize| {
        let twos = p.trailing_zeros();
        if p == 0 { base } else { base.wrapping_add(odd[(p >> twos) / 2] << twos) }
    };
    let mut acc = sums;
    let mut done = done;
    let mut at = done * GROUP_BYTES;
    let mut pixels = [input; P];
    let mut row_base = input;
    for _ in 0..rows {
        let mut base = row_base;
        for _ in 0..columns {
            if P <= POINTERS {
                unrolled!(p < P {
                    pixels[p] = base.wrapping_add(p * step);
                });
            }
            let mut read = done * GROUP * S::INPUT_BYTES;
            let mut from = base.wrapping_add(read);
            for _ in done..groups {
                // SAFETY: the caller vouches for `begin`: each panel holds all groups of all runs.
                let mut w = [unsafe { simd.load_weights(weights[0].wrapping_add(at)) }; V];
                unrolled!(v < V <= 4 {
                    // SAFETY: as above.
                    w[v] = unsafe { simd.load_weights(weights[v].wrapping_add(at)) };
                });
                unrolled!(p < P {
                    let (from, read) = if P <= POINTERS { (pixels[p], read) } else { (pixel(from, p), 0) };
                    if V == 1 {
                        // SAFETY: the caller vouches for the pixels: their runs lie in the input.
                        acc[p][0] = unsafe { simd.dot_splat(acc[p][0], from, read, w[0]) };
                    } else {
                        // SAFETY: as above.
                        let x = unsafe { simd.splat_inputs(from.wrapping_add(read)) };
                        unrolled!(v < V <= 4 {
                            acc[p][v] = simd.dot(acc[p][v], x, w[v]);
                        });
                    }
                });
                at += GROUP_BYTES;
                from = from.wrapping_add(GROUP * S::INPUT_BYTES);
                read += GROUP * S::INPUT_BYTES;
            }
            done = 0;
            base = base.wrapping_add(column_pitch);
        }
        row_base = row_base.wrapping_add(row_pitch);
    }
    acc
}

/// [`accumulate`], several groups at a time where a run has as many, on a machine that has a register for the address of
/// every pixel.
///
/// # Safety
/// The tile has [begun](TileS8::begin) with these weights, and the runs of each of `pixels` lie in the input.
#[inline(always)]
pub(super) unsafe fn accumulate_groups<S: SimdS8, const P: usize, const V: usize>(
    simd: S,
    tile: &TileS8<'_>,
    pixels: [*const u8; P],
    mut weights: [*const i8; V],
    start: [S::Parts; V],
) -> [[S::Parts; V]; P] {
    let GroupRuns { rows, row_pitch, columns, column_pitch, groups } = tile.runs;
    let mut acc = [start; P];
    for row in 0..rows {
        for column in 0..columns {
            let mut offset = row * row_pitch + column * column_pitch;
            let mut left = groups;
            while left >= S::GROUPS_AT_ONCE {
                // SAFETY: the caller vouches for the weights, as many groups as all runs have, and for the runs of each pixel.
                unsafe { simd.dot_groups(&pixels, offset, &weights, &mut acc) };
                unrolled!(v < V <= 4 {
                    weights[v] = weights[v].wrapping_add(S::GROUPS_AT_ONCE * GROUP_BYTES);
                });
                offset += S::GROUPS_AT_ONCE * GROUP * S::INPUT_BYTES;
                left -= S::GROUPS_AT_ONCE;
            }
            for _ in 0..left {
                // SAFETY: as above.
                unsafe { dot_group(simd, &pixels, offset, &weights, &mut acc) };
                unrolled!(v < V <= 4 {
                    weights[v] = weights[v].wrapping_add(GROUP_BYTES);
                });
                offset += GROUP * S::INPUT_BYTES;
            }
        }
    }
    acc
}
