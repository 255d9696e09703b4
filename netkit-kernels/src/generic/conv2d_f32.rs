//! Convolution as an implicit matrix product: no `im2col`, the tiles read the map itself or, where a
//! window reaches into padding, a copy of the rows with the padding around them.

#[cfg(not(netkit_micro))]
use super::activation::apply;
use super::activation::is_simple;
use super::direct_f32::DirectConv2dF32;
use super::elementwise_f32::ActivationInPlaceF32;
#[cfg(not(netkit_micro))]
use crate::arch::dot_f32::DotsF32;
use crate::arch::tile_f32::{
    Finish, LISTED_DEPTH, Next, Pixels, Runs, STEPS, Start, Tiles, TilesOf,
};
use crate::arch::transpose::PackPanelF32;
use crate::filter::Filter;
use crate::simd::{Kernel, Simd};
use crate::workspace::{Conv2dPlan, DEPTH_BLOCK, PANELS_AT_ONCE, conv2d_panels_len, conv2d_plan};
use core::ops::Range;
use netkit_core::op::{Activation, Conv2d};
use netkit_core::pack::PANEL;

/// Output rows `rows` of a convolution. With `ANY` of any; without, of one that [is common](is_common), and what only others want
/// is not compiled.
pub(crate) struct Conv2dF32<'a, const ANY: bool> {
    pub(crate) conv: Conv2d,
    pub(crate) input: &'a [f32],
    pub(crate) filter: Filter<'a>,
    pub(crate) bias: &'a [f32],
    pub(crate) residual: Option<&'a [f32]>,
    pub(crate) activation: Activation,
    pub(crate) rows: Range<usize>,
    pub(crate) output: &'a mut [f32],
    pub(crate) scratch: &'a mut [f32],
}

/// Whether a convolution has a packed filter, an activation that tiles apply, and no other form that is computed apart.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) const fn is_common(conv: &Conv2d, filter: Filter<'_>, activation: Activation) -> bool {
    matches!(filter, Filter::Packed(_)) && is_simple(activation) && !conv.window.is_whole_map()
}

/// Whether [`Block::packed`] uses a tile of three vectors somewhere, with the only set that has such tiles, of 16 lanes (AVX-512).
/// Such convolutions go the way of any; without these tiles they would give the same bits, more slowly.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) const fn wants_three_vectors(conv: &Conv2d) -> bool {
    let vectors = conv.out_channels.div_ceil(PANEL);
    vectors > 2 && vectors % 2 == 1
}

impl<const ANY: bool> Kernel for Conv2dF32<'_, ANY> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // Microcontrollers read file order anyhow: there this would only take flash.
        #[cfg(not(netkit_micro))]
        if ANY && self.conv.window.is_whole_map() {
            return self.run_as_dense(simd);
        }
        if let (true, Filter::File { values, scale }) = (ANY && S::READS_FILE_ORDER, self.filter) {
            let direct = DirectConv2dF32 {
                conv: self.conv,
                input: self.input,
                weights: values,
                scale,
                bias: self.bias,
                residual: self.residual,
                activation: self.activation,
                rows: self.rows,
                output: self.output,
            };
            return direct.run(simd);
        }
        let plan = conv2d_plan(&self.conv);
        let w = self.conv.window;
        let row_len = w.out_w * self.conv.out_channels;
        let (padded, panels) = self.scratch.split_at_mut(plan.padded_len.min(self.scratch.len()));
        let in_place: Option<InPlace> = match self.filter {
            #[cfg(not(netkit_micro))]
            Filter::Packed(_) if plan.padded => InPlace::of(&self.conv),
            _ => None,
        };
        let mut row = self.rows.start;
        while row < self.rows.end {
            let mut end = (row + plan.block_rows).min(self.rows.end);
            let mut read_in_place = None;
            if let Some(in_place) = &in_place {
                if in_place.rows.contains(&row) {
                    end = end.min(in_place.rows.end);
                    read_in_place = Some(in_place);
                } else if row < in_place.rows.start {
                    end = end.min(in_place.rows.start);
                }
            }
            let before = (row - self.rows.start) * row_len;
            let here = before..before + (end - row) * row_len;
            let (row_pitch, input) = if read_in_place.is_some() {
                let first = (row * w.stride_h).wrapping_sub(w.pad_top).wrapping_mul(w.in_w);
                let first = first.wrapping_sub(w.pad_left).wrapping_mul(self.conv.in_channels);
                (w.in_w * self.conv.in_channels, self.input.get(first..).unwrap_or(&[]))
            } else if plan.padded {
                copy_padded(&self.conv, &plan, self.input, row..end, padded);
                (plan.row_pitch, &*padded)
            } else {
                let input = self.input.get(row * w.stride_h * plan.row_pitch..).unwrap_or(&[]);
                (plan.row_pitch, input)
            };
            let residual = self.residual.map(|r| r.get(here.clone()).unwrap_or(&[]));
            let mut block = Block {
                conv: &self.conv,
                row_pitch,
                pixels: Pixels::of_rows(&self.conv, row_pitch, end - row),
                count: (end - row) * w.out_w,
                input,
                bias: self.bias,
                residual,
                activation: self.activation,
                output: self.output.get_mut(here.clone()).unwrap_or(&mut []),
                channel_pitch: self.conv.out_channels,
            };
            match self.filter {
                #[cfg(not(netkit_micro))]
                Filter::Packed(values) => {
                    block.packed::<S, ANY>(simd, values);
                    for column in read_in_place.into_iter().flat_map(|it| it.columns(w.out_w)) {
                        copy_strip(&self.conv, self.input, row..end, column, padded);
                        let start = column * self.conv.out_channels;
                        let row_pitch = w.span().1 * self.conv.in_channels;
                        let output = self.output.get_mut(here.clone()).unwrap_or(&mut []);
                        let mut strip = Block {
                            conv: &self.conv,
                            row_pitch,
                            // A column is a row to the tiles.
                            pixels: Pixels {
                                width: end - row,
                                column_step: w.stride_h * row_pitch,
                                row_step: 0,
                            },
                            count: end - row,
                            input: padded,
                            bias: self.bias,
                            residual: residual.map(|r| r.get(start..).unwrap_or(&[])),
                            activation: self.activation,
                            output: output.get_mut(start..).unwrap_or(&mut []),
                            channel_pitch: row_len,
                        };
                        strip.packed::<S, ANY>(simd, values);
                    }
                }
                Filter::File { values, scale } => {
                    if ANY {
                        block.file(simd, values, scale, panels);
                    }
                }
            }
            if ANY
                && !is_simple(self.activation)
                && let Some(data) = self.output.get_mut(here)
            {
                simd.call(ActivationInPlaceF32 { activation: self.activation, data });
            }
            row = end;
        }
    }
}

#[cfg(not(netkit_micro))]
impl<const ANY: bool> Conv2dF32<'_, ANY> {
    /// A convolution [that is a dense layer](netkit_core::op::Window::is_whole_map): each weight is used once, and packed
    /// filters, too, are in the order of the file.
    #[inline(always)]
    fn run_as_dense<S: Simd>(self, simd: S) {
        let Self { input, filter, bias, residual, activation, output, .. } = self;
        let (weights, scale) = match filter {
            Filter::File { values, scale } => (values, scale),
            Filter::Packed(values) => (values, None),
        };
        // Not by the number of weights: a pooled convolution computes some channels at a time, and gives the same bits.
        let near = false;
        DotsF32 { input, weights, scale, bias, near, output: &mut *output }.run(simd);
        for (i, y) in output.chunks_mut(S::LANES).enumerate() {
            let mut value = simd.load(y);
            if let Some(residual) = residual.and_then(|r| r.get(i * S::LANES..)) {
                value = simd.add(value, simd.load(residual.get(..y.len()).unwrap_or(&[])));
            }
            simd.store(y, apply(simd, activation, value));
        }
    }
}

/// Copies the input rows that output rows `rows` read, zeros where they reach over the map.
#[cfg_attr(target_arch = "x86_64", inline(never))]
#[cfg_attr(not(target_arch = "x86_64"), inline(always))]
fn copy_padded(
    conv: &Conv2d,
    plan: &Conv2dPlan,
    input: &[f32],
    rows: Range<usize>,
    padded: &mut [f32],
) {
    let w = &conv.window;
    let first = rows.start * w.stride_h;
    let count = w.rows_read(rows.len());
    let in_len = w.in_w * conv.in_channels;
    let left = (w.pad_left * conv.in_channels).min(plan.row_pitch);
    let copied = in_len.min(plan.row_pitch - left);
    for (i, to) in padded.chunks_exact_mut(plan.row_pitch.max(1)).take(count).enumerate() {
        let source = (first + i)
            .checked_sub(w.pad_top)
            .filter(|&row| row < w.in_h)
            .and_then(|row| input.get(row * in_len..row * in_len + copied));
        let (before, rest) = to.split_at_mut(left);
        match (source, rest.split_at_mut_checked(copied)) {
            (Some(source), Some((middle, after))) => {
                before.fill(0.0);
                middle.copy_from_slice(source);
                after.fill(0.0);
            }
            _ => to.fill(0.0),
        }
    }
}

/// Copies what output column `column` of rows `rows` reads, zeros where it reaches over the sides of the map. The rows that it
/// reads are inside.
#[cfg(not(netkit_micro))]
#[cfg_attr(target_arch = "x86_64", inline(never))]
#[cfg_attr(not(target_arch = "x86_64"), inline(always))]
fn copy_strip(conv: &Conv2d, input: &[f32], rows: Range<usize>, column: usize, strip: &mut [f32]) {
    let (w, channels) = (&conv.window, conv.in_channels);
    let columns = w.span().1;
    let left = w.pad_left.saturating_sub(column * w.stride_w).min(columns);
    let first = (column * w.stride_w).saturating_sub(w.pad_left);
    let copied = (columns - left).min(w.in_w.saturating_sub(first));
    let first_row = (rows.start * w.stride_h).saturating_sub(w.pad_top);
    let count = w.rows_read(rows.len());
    for (i, to) in strip.chunks_exact_mut((columns * channels).max(1)).take(count).enumerate() {
        let start = ((first_row + i) * w.in_w + first) * channels;
        let source = input.get(start..start + copied * channels);
        to.fill(0.0);
        let to = to.get_mut(left * channels..(left + copied) * channels);
        if let (Some(source), Some(to)) = (source, to) {
            to.copy_from_slice(source);
        }
    }
}

/// How a map whose sides are padded is read where it lies: taps beside it meet the row before or behind, so what the columns
/// at the sides get is wrong, and they are computed once more from copies of the little that they read.
///
/// For large maps and few products that is less work than to copy all of it.
#[cfg_attr(netkit_micro, allow(dead_code, reason = "only packed filters are read with"))]
struct InPlace {
    /// Output rows whose taps are all in memory.
    rows: Range<usize>,
    /// The columns before these and from there on reach over the sides.
    left: usize,
    right: usize,
}

#[cfg_attr(netkit_micro, allow(dead_code, reason = "only packed filters are read with"))]
impl InPlace {
    /// Multiply-accumulates in whose time a float is copied.
    const MACS_A_FLOAT: usize = 4;

    /// `None` where it does not pay.
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn of(conv: &Conv2d) -> Option<Self> {
        let w = &conv.window;
        let (height, columns) = w.span();
        let left = w.pad_left.div_ceil(w.stride_w.max(1)).min(w.out_w);
        // Windows from the left that do not reach over the right side.
        let inside = (w.in_w + w.pad_left).checked_sub(columns)? / w.stride_w.max(1) + 1;
        let right = inside.clamp(left, w.out_w);
        let again = left + (w.out_w - right);
        let macs = again.checked_mul(w.taps())?.checked_mul(conv.out_channels)?;
        let floats = w.stride_h.checked_mul(w.stride_w)?.checked_mul(w.out_w)?;
        // Beside the map is a neighbouring row, not the one behind that.
        let reach = w.columns_read(w.out_w);
        let beside = w.pad_left.max(reach.saturating_sub(w.in_w + w.pad_left));
        if beside > w.in_w || macs > floats.checked_mul(Self::MACS_A_FLOAT)? {
            return None;
        }
        // Where a row reads the one before its first or behind its last, that must be there too.
        let first = w.pad_top + usize::from(left > 0);
        let height = height + usize::from(right < w.out_w);
        let end = (w.in_h + w.pad_top).checked_sub(height)? / w.stride_h.max(1) + 1;
        let rows = first.div_ceil(w.stride_h.max(1))..end.min(w.out_h);
        (!rows.is_empty()).then_some(Self { rows, left, right })
    }

    /// The columns that are computed again.
    #[inline(always)]
    fn columns(&self, out_w: usize) -> impl Iterator<Item = usize> {
        (0..self.left).chain(self.right..out_w)
    }
}

/// A block of output rows, or a column of one.
struct Block<'a> {
    conv: &'a Conv2d,
    row_pitch: usize,
    /// How the output's pixels lie in the input, and how many there are.
    pixels: Pixels,
    count: usize,
    /// Starts at the first tap of the first pixel.
    input: &'a [f32],
    bias: &'a [f32],
    residual: Option<&'a [f32]>,
    activation: Activation,
    output: &'a mut [f32],
    /// Floats from one pixel of the output to the next.
    channel_pitch: usize,
}

impl Block<'_> {
    /// All channels, from packed panels. `THREE` where tiles may have [three vectors](wants_three_vectors).
    #[cfg(not(netkit_micro))]
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn packed<S: Simd, const THREE: bool>(&mut self, simd: S, values: &[f32]) {
        let depth = self.conv.window.taps() * self.conv.in_channels;
        // What fits the cache beside everything else is there already.
        let asks = values.len() > SMALL_WEIGHTS;
        let mut channel = 0;
        while channel < self.conv.out_channels {
            let left = (self.conv.out_channels - channel).div_ceil(S::LANES);
            // Three rather than two and one, which alone is slow for what it loads.
            let three = THREE && left == 3 && S::TILE_PIXELS[2] > 0;
            let vectors = if three { 3 } else { TILE_VECTORS };
            let width = vectors * S::LANES;
            // Where several tiles of pixels pass over the same weights: so much of the depth at a time that these and
            // those that are wanted next have room in the cache.
            let blocks = if self.count > most_pixels::<S>(vectors) {
                (depth * width).div_ceil(CACHED_WEIGHTS)
            } else {
                1
            };
            let rows = depth.div_ceil(blocks.max(1)).max(1);
            let end = (channel + width).min(self.conv.out_channels);
            let start = channel / PANEL * PANEL * depth + channel % PANEL;
            for first in (0..depth).step_by(rows) {
                let last = (first + rows).min(depth);
                let panels = values.get(start + first * PANEL..).unwrap_or(&[]);
                let next =
                    if last < depth { start + last * PANEL } else { end / PANEL * PANEL * depth };
                let next = values.get(next..).unwrap_or(&[]);
                let next_rows = if asks && !next.is_empty() { rows } else { 0 };
                self.tiles::<S, THREE>(
                    simd,
                    panels,
                    depth * PANEL,
                    (next, next_rows),
                    first..last,
                    channel..end,
                );
            }
            channel = end;
        }
    }

    /// All channels, from weights in file order: a block of panels is packed, used for all pixels, and
    /// overwritten by the next. Partial sums over the depth wait in the output.
    #[inline(always)]
    fn file<S: Simd>(
        &mut self,
        simd: S,
        values: &[f32],
        scale: Option<&[f32]>,
        panels: &mut [f32],
    ) {
        let depth = self.conv.window.taps() * self.conv.in_channels;
        let channels = self.conv.out_channels;
        let panels_len = conv2d_panels_len(self.conv).min(panels.len());
        let (panels, _) = panels.split_at_mut(panels_len);
        for first in (0..channels).step_by(PANEL * PANELS_AT_ONCE) {
            let group = first..(first + PANEL * PANELS_AT_ONCE).min(channels);
            for k in (0..depth).step_by(DEPTH_BLOCK) {
                let k = k..(k + DEPTH_BLOCK).min(depth);
                let panel_len = k.len() * PANEL;
                for (panel, to) in
                    group.clone().step_by(PANEL).zip(panels.chunks_exact_mut(panel_len.max(1)))
                {
                    simd.call(PackPanelF32 {
                        weights: values,
                        depth,
                        channels: panel..channels,
                        k: k.clone(),
                        scale,
                        panel: to,
                    });
                }
                let mut channel = group.start;
                while channel < group.end {
                    let end = (channel + TILE_VECTORS * S::LANES).min(group.end);
                    let local = channel - group.start;
                    let start = local / PANEL * panel_len + local % PANEL;
                    let here = panels.get(start..).unwrap_or(&[]);
                    self.tiles::<S, false>(
                        simd,
                        here,
                        panel_len,
                        (&[], 0),
                        k.clone(),
                        channel..end,
                    );
                    channel = end;
                }
            }
        }
    }

    /// All pixels, one tile of channels.
    #[inline(always)]
    fn tiles<S: Simd, const THREE: bool>(
        &mut self,
        simd: S,
        panels: &[f32],
        panel_pitch: usize,
        (next, next_rows): (&[f32], usize),
        depth: Range<usize>,
        channels: Range<usize>,
    ) {
        let (w, inputs) = (&self.conv.window, self.conv.in_channels);
        // Without dilation the taps of one kernel row are one run.
        let (columns, len) =
            if w.dilation_w == 1 { (1, w.kernel_w * inputs) } else { (w.kernel_w, inputs) };
        let whole = w.taps() * inputs;
        let mut tiles = Tiles {
            input: self.input,
            runs: Runs {
                rows: w.kernel_h,
                row_pitch: w.dilation_h * self.row_pitch,
                columns,
                column_pitch: w.dilation_w * inputs,
                len,
            },
            pixels: self.pixels,
            range: 0..self.count,
            start: if depth.start == 0 {
                Start::Bias(self.bias.get(channels.clone()).unwrap_or(&[]))
            } else {
                Start::Output
            },
            finish: if depth.end == whole {
                Finish::Activate(self.residual, self.activation)
            } else {
                Finish::Store
            },
            depth,
            panels,
            panel_pitch,
            next: Next { panels: next, rows: next_rows, at_once: 1 },
            output: self.output,
            channel_pitch: self.channel_pitch,
            channels,
        };
        all_tiles::<S, THREE>(simd, &mut tiles, self.count);
    }
}

/// Computes the pixels `0..pixels` of one tile of channels: in as few register tiles as the registers allow, of about one
/// size. `THREE` says that it may have three vectors.
#[inline(always)]
pub(super) fn all_tiles<S: Simd, const THREE: bool>(simd: S, tiles: &mut Tiles<'_>, pixels: usize) {
    let vectors = tiles.channels.len().div_ceil(S::LANES);
    if S::FEW_TILES {
        // Largest tiles, and powers of two for what they leave.
        tiles.range = 0..pixels;
        for size in [most_pixels::<S>(vectors), 4, 2, 1] {
            run_tiles::<S, THREE>(simd, tiles, size, vectors);
        }
        return;
    }
    let count = pixels.div_ceil(most_pixels::<S>(vectors)).max(1);
    let turns = (count * (tiles.depth.len() / STEPS)).max(1);
    tiles.next.at_once = tiles.next.rows.div_ceil(turns);
    let (size, larger) = (pixels / count, pixels % count);
    tiles.range = 0..larger * (size + 1);
    run_tiles::<S, THREE>(simd, tiles, size + 1, vectors);
    tiles.range.end = pixels;
    run_tiles::<S, THREE>(simd, tiles, size, vectors);
}

impl Pixels {
    /// Those of `rows` output rows, their input rows `row_pitch` floats apart.
    #[inline(always)]
    fn of_rows(conv: &Conv2d, row_pitch: usize, rows: usize) -> Self {
        let w = &conv.window;
        let column_step = w.stride_w * conv.in_channels;
        let row_step = w.stride_h * row_pitch;
        // Where a row starts a step behind the end of the one before, all are one row.
        let width = if row_step == w.out_w * column_step { rows * w.out_w } else { w.out_w };
        Self { width, column_step, row_step }
    }
}

/// Vectors of channels of a tile.
pub(super) const TILE_VECTORS: usize = 2;

/// Weights of a layer that are not asked for beforehand.
pub(super) const SMALL_WEIGHTS: usize = 16 * 1024;

/// Weights that tiles of pixels pass over together.
#[cfg(not(netkit_micro))]
const CACHED_WEIGHTS: usize = 32 * 1024;

/// Pixels of the largest tile with so many vectors of channels; at least 1.
const fn most_pixels<S: Simd>(vectors: usize) -> usize {
    let most = match vectors {
        1 => S::TILE_PIXELS[0],
        2 => S::TILE_PIXELS[1],
        _ => S::TILE_PIXELS[2],
    };
    if most == 0 { 1 } else { most }
}

/// Whether there are tiles of so many pixels, at most `limit`.
const fn is_compiled<S: Simd>(pixels: usize, limit: usize) -> bool {
    !S::FEW_TILES || pixels == limit || matches!(pixels, 1 | 2 | 4)
}

/// Runs shorter than this are listed.
const SHORT_RUN: usize = 16;

/// Enters the tile of the given size, compiled as a function of its own. The choice of one is long: programs that hold it for
/// several sets hold it once for each. A call more costs a small layer up to 4 % of its instructions on AArch64, which has one set
/// for floats.
#[cfg_attr(target_arch = "x86_64", inline(never))]
#[cfg_attr(not(target_arch = "x86_64"), inline(always))]
fn run_tiles<S: Simd, const THREE: bool>(
    simd: S,
    tiles: &mut Tiles<'_>,
    pixels: usize,
    vectors: usize,
) {
    if tiles.range.is_empty() {
        return;
    }
    macro_rules! sizes {
        ($vectors:literal, $listed:literal, $least:expr, $limit:expr, $($size:literal)+) => {
            match pixels {
                // The condition is constant: it keeps the arms that the instruction set has no
                // registers for out of the program.
                $($size if const { $least <= $size && $size <= $limit && is_compiled::<S>($size, $limit) } => {
                    simd.call(TilesOf::<'_, '_, $size, $vectors, $listed>(tiles));
                })+
                _ => {}
            }
        };
        ($vectors:literal, $limit:expr) => {
            // Maps that have first layers to be fast for are cut into tiles close to the largest.
            if !S::FEW_TILES
                && tiles.runs.len < SHORT_RUN
                && tiles.depth.len() <= LISTED_DEPTH
                && pixels + 3 > $limit
            {
                sizes!($vectors, true, usize::saturating_sub($limit, 2), $limit, 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
            } else {
                sizes!($vectors, false, 1, $limit, 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
            }
        };
    }
    match vectors {
        1 => sizes!(1, S::TILE_PIXELS[0]),
        2 => sizes!(2, S::TILE_PIXELS[1]),
        3 if THREE => sizes!(3, S::TILE_PIXELS[2]),
        _ => {}
    }
}
