//! 3×3 convolution in Winograd's form: inputs of a block of tiles transformed, a matrix product for each position of the
//! tile, products transformed back.
//!
//! A block's transformed inputs `[positions][tiles][channels]` are read once for every [`CHUNK`] output channels; the products
//! of these, `[positions][tiles][CHUNK]`, are transformed back while they are in the cache.

use super::activation::{apply_simple, is_simple};
use super::conv2d_f32::{SMALL_WEIGHTS, TILE_VECTORS, all_tiles};
use super::elementwise_f32::ActivationInPlaceF32;
use crate::arch::tile_f32::{Finish, Next, Pixels, Runs, Start, Tiles};
use crate::arch::winograd_f32::{OUTPUTS, SIDE, transform_inputs, transform_outputs};
use crate::simd::{Kernel, Simd};
use crate::workspace::{WINOGRAD_CHUNK as CHUNK, WinogradPlan, even_rows, winograd_plan};
use core::array::from_fn;
use core::ops::Range;
use netkit_core::op::{Activation, Conv2d};
use netkit_core::pack::{PANEL, WINOGRAD_POSITIONS as POSITIONS, WINOGRAD_TILE as TILE};

/// The position whose product is in every output of the tile with factor 1: the bias goes there.
const CENTRE: usize = SIDE + 1;

/// Channels that are transformed at a time.
const WIDE: usize = 4 * PANEL;

/// The offset of a pixel that is not there.
const MISSING: usize = usize::MAX;

/// Output rows `rows` of a convolution.
pub(crate) struct WinogradConv2dF32<'a> {
    pub(crate) conv: Conv2d,
    pub(crate) input: &'a [f32],
    /// As [`pack_conv2d_winograd_f32`](netkit_core::pack::pack_conv2d_winograd_f32) writes them.
    pub(crate) filter: &'a [f32],
    pub(crate) bias: &'a [f32],
    pub(crate) residual: Option<&'a [f32]>,
    pub(crate) activation: Activation,
    pub(crate) rows: Range<usize>,
    pub(crate) output: &'a mut [f32],
    pub(crate) scratch: &'a mut [f32],
}

impl Kernel for WinogradConv2dF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let plan = winograd_plan(&self.conv);
        let w = self.conv.window;
        let across = w.out_w.div_ceil(TILE);
        // Tiles begin at even rows, wherever the range does: what a tile gives does not depend on the range.
        let tiles = self.rows.start / TILE * across..self.rows.end.div_ceil(TILE) * across;
        let scratch = core::mem::take(&mut self.scratch);
        let (inputs, products) = scratch.split_at_mut(plan.inputs_len.min(scratch.len()));
        let most = even_rows(tiles.len(), plan.tiles);
        let mut first = tiles.start;
        while first < tiles.end {
            let block = first..(first + most).min(tiles.end);
            first = block.end;
            simd.call(TransformInputs {
                conv: &self.conv,
                plan: &plan,
                input: self.input,
                tiles: block.clone(),
                across,
                transformed: inputs,
            });
            for channel in (0..self.conv.out_channels).step_by(CHUNK) {
                let channels = channel..(channel + CHUNK).min(self.conv.out_channels);
                self.multiply(simd, &plan, block.len(), channels.clone(), inputs, products);
                simd.call(TransformOutputs {
                    conv: &self.conv,
                    residual: self.residual,
                    activation: self.activation,
                    rows: self.rows.clone(),
                    tiles: block.clone(),
                    across,
                    channels,
                    products,
                    output: self.output,
                });
            }
        }
        if !is_simple(self.activation) {
            simd.call(ActivationInPlaceF32 { activation: self.activation, data: self.output });
        }
    }
}

impl WinogradConv2dF32<'_> {
    /// The products of some output channels, at each position.
    #[inline(always)]
    fn multiply<S: Simd>(
        &self,
        simd: S,
        plan: &WinogradPlan,
        tiles: usize,
        channels: Range<usize>,
        inputs: &[f32],
        products: &mut [f32],
    ) {
        let depth = self.conv.in_channels;
        let panel_pitch = POSITIONS * depth * PANEL;
        // What fits the cache beside everything else is there already.
        let asks = self.filter.len() > SMALL_WEIGHTS;
        // Missing channels of a panel have weights of 0: whole vectors throughout.
        let width = channels.len().div_ceil(PANEL) * PANEL;
        let planes = inputs.chunks_exact((tiles * plan.pitch).max(1));
        let planes = planes.zip(products.chunks_exact_mut((tiles * CHUNK).max(1)));
        for (position, (input, output)) in planes.take(POSITIONS).enumerate() {
            for lane in (0..width).step_by(TILE_VECTORS * S::LANES) {
                let end = (lane + TILE_VECTORS * S::LANES).min(width);
                let panel = (channels.start + lane) / PANEL;
                let start = panel * panel_pitch + position * depth * PANEL + lane % PANEL;
                // The next position, or the first of the channels behind these.
                let next = if position + 1 < POSITIONS {
                    start + depth * PANEL
                } else {
                    (channels.start + CHUNK) / PANEL * panel_pitch
                };
                let next = self.filter.get(next..).unwrap_or(&[]);
                let next_rows = if asks && !next.is_empty() { depth } else { 0 };
                let bias = if position == CENTRE {
                    let bias = self.bias.get(channels.start + lane..).unwrap_or(&[]);
                    bias.get(..end - lane).unwrap_or(bias)
                } else {
                    &[]
                };
                let mut tiles = Tiles {
                    input,
                    runs: Runs {
                        rows: 1,
                        row_pitch: depth,
                        columns: 1,
                        column_pitch: depth,
                        len: depth,
                    },
                    pixels: Pixels { width: tiles, column_step: plan.pitch, row_step: 0 },
                    range: 0..tiles,
                    depth: 0..depth,
                    panels: self.filter.get(start..).unwrap_or(&[]),
                    panel_pitch,
                    next: Next { panels: next, rows: next_rows, at_once: 1 },
                    start: Start::Bias(bias),
                    finish: Finish::Store,
                    output,
                    channel_pitch: CHUNK,
                    channels: lane..end,
                };
                let count = tiles.pixels.width;
                all_tiles::<S, false>(simd, &mut tiles, count);
            }
        }
    }
}

/// `Bᵀ d B` of the tiles `tiles`, which are counted row by row.
struct TransformInputs<'a> {
    conv: &'a Conv2d,
    plan: &'a WinogradPlan,
    input: &'a [f32],
    tiles: Range<usize>,
    /// Tiles in a row.
    across: usize,
    transformed: &'a mut [f32],
}

impl Kernel for TransformInputs<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let channels = self.conv.in_channels;
        let plane = self.tiles.len() * self.plan.pitch;
        for (index, tile) in self.tiles.clone().enumerate() {
            let offsets = self.pixels_of(tile);
            let to =
                &mut Planes { values: self.transformed, plane, start: index * self.plan.pitch };
            let mut channel = 0;
            while channel + WIDE <= channels {
                transform_pixels::<S, WIDE>(simd, self.input, &offsets, channel, to);
                channel += WIDE;
            }
            while channel + PANEL <= channels {
                transform_pixels::<S, PANEL>(simd, self.input, &offsets, channel, to);
                channel += PANEL;
            }
            if channel < channels {
                transform_tail(simd, self.input, channels - channel, &offsets, channel, to);
            }
        }
    }
}

impl TransformInputs<'_> {
    /// Where the pixels of a tile begin.
    #[inline(always)]
    fn pixels_of(&self, tile: usize) -> [usize; POSITIONS] {
        let w = &self.conv.window;
        let (row, column) = (tile / self.across.max(1), tile % self.across.max(1));
        let rows: [Option<usize>; SIDE] = from_fn(|i| {
            let row = (row * TILE + i).checked_sub(w.pad_top);
            row.filter(|&row| row < w.in_h)
        });
        let columns: [Option<usize>; SIDE] = from_fn(|j| {
            let column = (column * TILE + j).checked_sub(w.pad_left);
            column.filter(|&column| column < w.in_w)
        });
        from_fn(|position| match (rows[position / SIDE], columns[position % SIDE]) {
            (Some(row), Some(column)) => (row * w.in_w + column) * self.conv.in_channels,
            _ => MISSING,
        })
    }
}

/// The last channels, fewer than a panel.
#[inline(always)]
fn transform_tail<S: Simd>(
    simd: S,
    input: &[f32],
    left: usize,
    offsets: &[usize; POSITIONS],
    channel: usize,
    to: &mut Planes<'_>,
) {
    let mut tail = [0.0f32; POSITIONS * PANEL];
    for (to, &offset) in tail.chunks_exact_mut(PANEL).zip(offsets) {
        let from = input.get(offset.saturating_add(channel)..).unwrap_or(&[]);
        for (to, &from) in to.iter_mut().zip(from).take(left) {
            *to = from;
        }
    }
    to.start += channel;
    transform_pixels::<S, PANEL>(simd, &tail, &from_fn(|position| position * PANEL), 0, to);
}

/// Planes of one position each.
struct Planes<'a> {
    values: &'a mut [f32],
    /// Floats of a plane.
    plane: usize,
    /// Of the tile, in each plane.
    start: usize,
}

/// `W` channels of one tile.
#[inline(always)]
fn transform_pixels<S: Simd, const W: usize>(
    simd: S,
    input: &[f32],
    offsets: &[usize; POSITIONS],
    channel: usize,
    to: &mut Planes<'_>,
) {
    let mut pixels = [const { &[0.0; W] }; POSITIONS];
    for (pixel, &offset) in pixels.iter_mut().zip(offsets) {
        if let Some(from) = input.get(offset.saturating_add(channel)..)
            && let Some(from) = from.first_chunk()
        {
            *pixel = from;
        }
    }
    let values = to.values.get_mut(to.start + channel..).unwrap_or(&mut []);
    transform_inputs(simd, &pixels, values, to.plane);
}

/// `activation(Aᵀ p A + residual)` of the tiles `tiles`, as far as they are in the output rows asked for.
struct TransformOutputs<'a> {
    conv: &'a Conv2d,
    residual: Option<&'a [f32]>,
    activation: Activation,
    rows: Range<usize>,
    tiles: Range<usize>,
    across: usize,
    channels: Range<usize>,
    products: &'a [f32],
    output: &'a mut [f32],
}

impl Kernel for TransformOutputs<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        // One comparison for all tiles rather than one for each.
        match self.activation {
            Activation::Relu => self.tiles(simd, Activation::Relu),
            Activation::Relu6 => self.tiles(simd, Activation::Relu6),
            Activation::LeakyRelu(_) => self.tiles(simd, self.activation),
            _ => self.tiles(simd, Activation::None),
        }
    }
}

impl TransformOutputs<'_> {
    #[inline(always)]
    fn tiles<S: Simd>(&mut self, simd: S, activation: Activation) {
        let count = self.tiles.len();
        for (index, tile) in self.tiles.clone().enumerate() {
            let pixels = self.pixels_of(tile);
            let mut products = [const { &[0.0; CHUNK] }; POSITIONS];
            for (position, product) in products.iter_mut().enumerate() {
                if let Some(from) = self.products.get((position * count + index) * CHUNK..)
                    && let Some(from) = from.first_chunk()
                {
                    *product = from;
                }
            }
            let (residual, output) = (self.residual, &mut *self.output);
            if self.channels.len() == CHUNK {
                transform_outputs(simd, &products, residual, activation, &pixels, output);
            } else {
                self.transform_part(simd, &products, activation, &pixels);
            }
        }
    }

    /// Fewer channels than [`CHUNK`].
    #[inline(always)]
    fn transform_part<S: Simd>(
        &mut self,
        simd: S,
        products: &[&[f32; CHUNK]; POSITIONS],
        activation: Activation,
        pixels: &[usize; OUTPUTS],
    ) {
        let width = self.channels.len();
        let mut part = [0.0; OUTPUTS * CHUNK];
        let offsets = from_fn(|pixel| pixel * CHUNK);
        transform_outputs(simd, products, None, Activation::None, &offsets, &mut part);
        for (from, &pixel) in part.chunks_exact(CHUNK).zip(pixels) {
            let range = pixel..pixel.saturating_add(width);
            let Some(to) = self.output.get_mut(range.clone()) else { continue };
            let residual = self.residual.and_then(|residual| residual.get(range));
            for (index, (from, to)) in
                from.chunks_exact(S::LANES).zip(to.chunks_mut(S::LANES)).enumerate()
            {
                let mut value = simd.load(from);
                if let Some(residual) = residual {
                    let added = residual.get(index * S::LANES..).unwrap_or(&[]);
                    value = simd.add(value, simd.load(added));
                }
                simd.store(to, apply_simple(simd, activation, value));
            }
        }
    }

    /// Where the tile's channels of each of its pixels begin in the output.
    #[inline(always)]
    fn pixels_of(&self, tile: usize) -> [usize; OUTPUTS] {
        let w = &self.conv.window;
        let (row, column) = (tile / self.across.max(1), tile % self.across.max(1));
        from_fn(|pixel| {
            let (row, column) = (row * TILE + pixel / TILE, column * TILE + pixel % TILE);
            if !self.rows.contains(&row) || column >= w.out_w {
                return MISSING;
            }
            ((row - self.rows.start) * w.out_w + column) * self.conv.out_channels
                + self.channels.start
        })
    }
}
