//! Int8 convolution as a matrix product: the tiles read the map from a copy in which every byte is
//! unsigned and padding stands around the rows, without `im2col`.

use super::block_s8::{BlockS8, ByPanels, PixelGrid};
use super::dense_s8::DenseS8;
#[cfg(not(netkit_micro))]
use super::direct_s8::DirectS8;
use crate::arch::tile_s8::GroupRuns;
use crate::filter_s8::FilterS8;
use crate::simd_s8::{KernelS8, SimdS8, offset_input};
use crate::workspace_s8::{Conv2dPlanS8, conv2d_plan_s8};
use core::marker::PhantomData;
use core::ops::Range;
use netkit_core::op::{Conv2d, Dense};
use netkit_core::pack::Runs;
use netkit_core::quant::{Multiplier, OutputStage};

/// Output rows `rows` of a convolution.
pub(crate) struct Conv2dS8<'a> {
    pub(crate) conv: Conv2d,
    pub(crate) input: &'a [i8],
    pub(crate) input_zero_point: i32,
    pub(crate) filter: FilterS8<'a>,
    pub(crate) bias: &'a [i32],
    pub(crate) multipliers: &'a [Multiplier],
    pub(crate) stage: OutputStage,
    pub(crate) rows: Range<usize>,
    pub(crate) output: &'a mut [i8],
    pub(crate) scratch: &'a mut [u8],
}

impl KernelS8 for Conv2dS8<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        if let (true, FilterS8::File(weights)) = (S::READS_FILE_ORDER, self.filter) {
            #[cfg(netkit_micro)]
            return crate::micro::conv2d_s8(self, weights);
            #[cfg(not(netkit_micro))]
            return DirectS8 {
                input: self.input,
                input_zero_point: self.input_zero_point,
                weights,
                bias: self.bias,
                multipliers: self.multipliers,
                stage: self.stage,
            }
            .conv2d(&self.conv, self.rows, self.output);
        }
        let w = self.conv.window;
        let one_pixel = w.taps() == 1 && w.in_pixels() == 1 && w.out_pixels() == 1;
        let file = matches!(self.filter, FilterS8::File(_));
        if one_pixel && w.pad_top + w.pad_left == 0 && (file || S::ROW_GROUPS > 0) {
            let layer = DenseS8 {
                dense: Dense {
                    rows: 1,
                    in_features: self.conv.in_channels,
                    out_features: self.conv.out_channels,
                },
                input: self.input,
                input_zero_point: self.input_zero_point,
                filter: self.filter,
                bias: self.bias,
                multipliers: self.multipliers,
                stage: self.stage,
                output: self.output,
                scratch: self.scratch,
            };
            return layer.run(simd);
        }
        let plan = conv2d_plan_s8(&self.conv, S::INPUT_BYTES, self.filter.form());
        let Conv2d { window: w, out_channels, .. } = self.conv;
        let row_len = w.out_w * out_channels;
        let blocks = Blocks::<S>::of(&self.conv, plan, self.input, self.input_zero_point);
        let (bytes, panels) = self.scratch.split_at_mut(blocks.len().min(self.scratch.len()));
        let mut output = self.output;
        let mut row = self.rows.start;
        while row < self.rows.end {
            let end = (row + plan.block_rows).min(self.rows.end);
            let here = ((end - row) * row_len).min(output.len());
            let (now, rest) = output.split_at_mut(here);
            output = rest;
            let mut block = BlockS8 {
                input: blocks.copied(row..end, bytes),
                runs: blocks.runs,
                grid: blocks.grid(end - row, w.out_w).joined(),
                input_zero_point: self.input_zero_point,
                bias: self.bias,
                multipliers: self.multipliers,
                stage: self.stage,
                output: now,
                pitch: out_channels,
            };
            block.filter(simd, blocks.packed_runs, self.filter, panels, out_channels);
            row = end;
        }
    }
}

/// The input of a convolution as tiles read it: copied a block of rows at a time.
pub(super) struct Blocks<'a, S> {
    conv: &'a Conv2d,
    plan: Conv2dPlanS8,
    input: &'a [i8],
    zero_point: i32,
    pub(super) packed_runs: Runs,
    pub(super) runs: GroupRuns,
    simd: PhantomData<S>,
}

impl<'a, S: SimdS8> Blocks<'a, S> {
    #[inline(always)]
    pub(super) fn of(
        conv: &'a Conv2d,
        plan: Conv2dPlanS8,
        input: &'a [i8],
        zero_point: i32,
    ) -> Self {
        let w = &conv.window;
        let packed_runs = Runs::of_conv2d(conv);
        let dilated = packed_runs.count != w.kernel_h;
        let runs = GroupRuns {
            rows: w.kernel_h,
            row_pitch: plan.row_pitch * w.dilation_h * S::INPUT_BYTES,
            columns: if dilated { w.kernel_w } else { 1 },
            column_pitch: w.dilation_w * conv.in_channels * S::INPUT_BYTES,
            groups: packed_runs.groups(),
        };
        Self { conv, plan, input, zero_point, packed_runs, runs, simd: PhantomData }
    }

    /// Bytes of a block.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.plan.block_len * S::INPUT_BYTES
    }

    /// What output rows `rows` read, copied into `to`.
    #[inline(always)]
    pub(super) fn copied<'t>(&self, rows: Range<usize>, to: &'t mut [u8]) -> &'t [u8] {
        let Self { conv, plan, input, zero_point, .. } = self;
        if plan.gathered {
            gather::<S>(conv, plan, input, *zero_point, rows, to);
        } else {
            copy_rows::<S>(conv, plan, input, *zero_point, rows, to);
        }
        to
    }

    /// Where the pixels of so many rows and columns of output lie in a block.
    #[inline(always)]
    pub(super) fn grid(&self, rows: usize, columns: usize) -> PixelGrid {
        let w = &self.conv.window;
        let steps = if self.plan.gathered { (1, 1) } else { (w.stride_h, w.stride_w) };
        PixelGrid {
            rows,
            columns,
            row_step: steps.0 * self.plan.row_pitch * S::INPUT_BYTES,
            column_step: steps.1 * self.conv.in_channels * S::INPUT_BYTES,
        }
    }
}

/// Copies a stretch of input as tiles read it.
#[inline(always)]
pub(crate) fn copy_offset<S: SimdS8>(from: &[i8], to: &mut [u8]) {
    if S::INPUT_BYTES == 2 {
        for (to, &from) in to.as_chunks_mut().0.iter_mut().zip(from) {
            *to = u16::from(offset_input::<S>(from)).to_le_bytes();
        }
    } else {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = offset_input::<S>(from);
        }
    }
}

/// Makes a stretch of padding: the zero point as an input.
#[inline(always)]
fn pad<S: SimdS8>(zero_point: i32, to: &mut [u8]) {
    let padding = offset_input::<S>(zero_point as i8);
    if S::INPUT_BYTES == 2 {
        to.as_chunks_mut().0.fill(u16::from(padding).to_le_bytes());
    } else {
        to.fill(padding);
    }
}

/// The input rows that output rows `rows` read, with the padding they reach into.
#[inline(always)]
fn copy_rows<S: SimdS8>(
    conv: &Conv2d,
    plan: &Conv2dPlanS8,
    input: &[i8],
    zero_point: i32,
    rows: Range<usize>,
    block: &mut [u8],
) {
    let w = &conv.window;
    let first = rows.start * w.stride_h;
    let count = w.rows_read(rows.len());
    let in_len = w.in_w * conv.in_channels;
    let left = (w.pad_left * conv.in_channels).min(plan.row_pitch);
    let copied = in_len.min(plan.row_pitch - left);
    let row_bytes = (plan.row_pitch * S::INPUT_BYTES).max(1);
    for (i, to) in block.chunks_exact_mut(row_bytes).take(count).enumerate() {
        let source = (first + i)
            .checked_sub(w.pad_top)
            .filter(|&row| row < w.in_h)
            .and_then(|row| input.get(row * in_len..row * in_len + copied));
        let (before, rest) = to.split_at_mut((left * S::INPUT_BYTES).min(to.len()));
        match (source, rest.split_at_mut_checked(copied * S::INPUT_BYTES)) {
            (Some(source), Some((middle, after))) => {
                pad::<S>(zero_point, before);
                copy_offset::<S>(source, middle);
                pad::<S>(zero_point, after);
            }
            _ => pad::<S>(zero_point, to),
        }
    }
}

/// The one input pixel of each output pixel of a 1×1 kernel.
#[inline(always)]
fn gather<S: SimdS8>(
    conv: &Conv2d,
    plan: &Conv2dPlanS8,
    input: &[i8],
    zero_point: i32,
    rows: Range<usize>,
    block: &mut [u8],
) {
    let w = &conv.window;
    let channels = conv.in_channels;
    let in_len = w.in_w * channels;
    let pixel_bytes = (channels * S::INPUT_BYTES).max(1);
    let row_bytes = (plan.row_pitch * S::INPUT_BYTES).max(1);
    let whole_rows = w.stride_w == 1 && w.pad_left == 0 && w.out_w == w.in_w;
    for (row, to) in rows.zip(block.chunks_exact_mut(row_bytes)) {
        let source = (row * w.stride_h)
            .checked_sub(w.pad_top)
            .filter(|&row| row < w.in_h)
            .and_then(|row| input.get(row * in_len..(row + 1) * in_len));
        match source {
            None => pad::<S>(zero_point, to),
            Some(source) if whole_rows => copy_offset::<S>(source, to),
            Some(source) => {
                for (column, to) in to.chunks_exact_mut(pixel_bytes).enumerate() {
                    let pixel = (column * w.stride_w)
                        .checked_sub(w.pad_left)
                        .filter(|&column| column < w.in_w)
                        .and_then(|column| source.get(column * channels..(column + 1) * channels));
                    match pixel {
                        Some(pixel) => copy_offset::<S>(pixel, to),
                        None => pad::<S>(zero_point, to),
                    }
                }
            }
        }
    }
}
