//! The match from a step to its kernel: what generated code spells out, made at run time.

use bytemuck::Pod;
use netkit_core::graph::MAX_INPUTS;
use netkit_core::op::Op;
use netkit_core::plan::Placement;
use netkit_core::program::{Operand, Step};
use netkit_kernels::{Filter, FilterS8, Kernels, concat, copy, upsample2x};

use super::Elements;
use super::load::Bound;

/// An element type a network computes in.
pub(super) trait Element: Pod {
    /// Makes one step.
    fn step(
        kernels: Kernels,
        step: &Step<'_, '_>,
        bound: &Bound<'_>,
        inputs: &[&[Self]],
        output: &mut [Self],
        scratch: &mut [u8],
    );

    /// For an observer.
    fn elements(values: &[Self]) -> Elements<'_>;
}

/// Makes one step: finds its values and calls its kernel. Returns what it produced.
pub(super) fn run<'t, T: Element>(
    kernels: Kernels,
    step: &Step<'_, '_>,
    bound: &Bound<'_>,
    input: &'t [T],
    output: &'t mut [T],
    activations: &'t mut [u8],
    scratch: &mut [u8],
) -> Elements<'t> {
    // The plan keeps a step's inputs and output apart, so the inputs lie before or behind the output.
    let (before, produced, behind): (&[u8], &mut [T], &[u8]) = match step.output().placement {
        Placement::Output | Placement::Input => (activations, output, &[]),
        Placement::Arena { offset } => {
            let bytes = step.output().value.bytes();
            let (before, rest) = activations.split_at_mut(offset.min(activations.len()));
            let (produced, behind) = rest.split_at_mut(bytes.min(rest.len()));
            (before, bytemuck::try_cast_slice_mut(produced).unwrap_or(&mut []), behind)
        }
    };
    let behind_offset = before.len() + size_of_val(produced);
    let find = |operand: Operand<'_>| -> &[T] {
        let Placement::Arena { offset } = operand.placement else { return input };
        let bytes = operand.value.bytes();
        let slice = match offset.checked_sub(behind_offset) {
            Some(offset) => behind.get(offset..).and_then(|tail| tail.get(..bytes)),
            None => before.get(offset..).and_then(|tail| tail.get(..bytes)),
        };
        bytemuck::try_cast_slice(slice.unwrap_or(&[])).unwrap_or(&[])
    };
    let mut inputs: [&[T]; MAX_INPUTS] = [&[]; MAX_INPUTS];
    let mut count = 0;
    for (slot, operand) in inputs.iter_mut().zip(step.inputs()) {
        *slot = find(operand);
        count += 1;
    }
    T::step(kernels, step, bound, inputs.get(..count).unwrap_or(&[]), produced, scratch);
    T::elements(produced)
}

impl Element for f32 {
    fn step(
        k: Kernels,
        step: &Step<'_, '_>,
        bound: &Bound<'_>,
        inputs: &[&[f32]],
        output: &mut [f32],
        scratch: &mut [u8],
    ) {
        let [x, rest @ ..] = inputs else { return };
        let (values, scale, bias) = match *bound {
            Bound::F32 { filter, scale, bias } => (filter, scale, bias),
            _ => (&[][..], None, &[][..]),
        };
        let filter = Filter::File { values, scale };
        let activation = step.activation();
        match &step.node.op {
            Op::Dense { dense, .. } => k.dense_f32(dense, x, filter, bias, activation, output),
            Op::Conv2d { conv, pool: Some(pool), .. } => {
                let rows = 0..pool.window.out_h;
                k.conv2d_max_pool2d_f32(
                    conv, pool, x, filter, bias, activation, rows, output, scratch,
                );
            }
            Op::Conv2d { conv, residual, pool: None, .. } => {
                let residual = if *residual { rest.first().copied() } else { None };
                let rows = 0..conv.window.out_h;
                k.conv2d_f32(conv, x, filter, bias, residual, activation, rows, output, scratch);
            }
            Op::DepthwiseConv2d { conv, pool: Some(pool), .. } => {
                let rows = 0..pool.window.out_h;
                k.depthwise_conv2d_max_pool2d_f32(
                    conv, pool, x, filter, bias, activation, rows, output, scratch,
                );
            }
            Op::DepthwiseConv2d { conv, pool: None, .. } => {
                let rows = 0..conv.window.out_h;
                k.depthwise_conv2d_f32(conv, x, filter, bias, activation, rows, output, scratch);
            }
            Op::MaxPool2d(pool) => k.max_pool2d_f32(pool, x, 0..pool.window.out_h, output),
            Op::AveragePool2d(pool) => k.average_pool2d_f32(pool, x, 0..pool.window.out_h, output),
            Op::BatchNorm(shape, _) => k.batch_norm_f32(shape, x, values, bias, activation, output),
            Op::LayerNorm { shape, epsilon } => {
                k.layer_norm_f32(shape, *epsilon, x, values, bias, output);
            }
            Op::GlobalResponseNorm { shape, epsilon } => {
                k.global_response_norm_f32(shape, *epsilon, x, values, bias, output, scratch);
            }
            Op::Softmax { .. } => k.softmax_f32(x, output),
            Op::Activation { .. } => k.activation_f32(activation, x, output),
            Op::Add { .. } => {
                if let [addend] = rest {
                    k.add_f32(x, addend, activation, output);
                }
            }
            _ => move_data(&step.node.op, inputs, output),
        }
    }

    fn elements(values: &[f32]) -> Elements<'_> {
        Elements::F32(values)
    }
}

impl Element for i8 {
    fn step(
        k: Kernels,
        step: &Step<'_, '_>,
        bound: &Bound<'_>,
        inputs: &[&[i8]],
        output: &mut [i8],
        scratch: &mut [u8],
    ) {
        let [x, rest @ ..] = inputs else { return };
        let zero_point = step.input().value.quant.zero_point;
        let (values, bias, multipliers, row_sums) = match *bound {
            Bound::I8 { filter, bias, multipliers, row_sums } => {
                (filter, bias, multipliers, row_sums)
            }
            _ => (&[][..], &[][..], &[][..], &[][..]),
        };
        let filter = FilterS8::File(values);
        let Some(stage) = step.output_stage() else { return };
        /// Calls the door of a layer whose output rows are those of a window.
        macro_rules! windowed {
            ($door:ident($($layer:expr),+), $window:expr) => {
                k.$door(
                    $($layer,)+
                    x,
                    zero_point,
                    filter,
                    bias,
                    multipliers,
                    stage,
                    0..$window.out_h,
                    output,
                    scratch,
                )
            };
        }
        match &step.node.op {
            Op::Dense { dense, .. } => {
                k.dense_s8_with_row_sums(
                    dense,
                    x,
                    zero_point,
                    filter,
                    bias,
                    row_sums,
                    multipliers,
                    stage,
                    output,
                    scratch,
                );
            }
            Op::Conv2d { conv, pool: Some(pool), .. } => {
                windowed!(conv2d_max_pool2d_s8(conv, pool), pool.window);
            }
            Op::Conv2d { conv, pool: None, .. } => {
                windowed!(conv2d_s8(conv), conv.window);
            }
            Op::DepthwiseConv2d { conv, pool: Some(pool), .. } => {
                windowed!(depthwise_conv2d_max_pool2d_s8(conv, pool), pool.window);
            }
            Op::DepthwiseConv2d { conv, pool: None, .. } => {
                windowed!(depthwise_conv2d_s8(conv), conv.window);
            }
            Op::MaxPool2d(pool) => k.max_pool2d_s8(pool, x, 0..pool.window.out_h, output),
            Op::AveragePool2d(pool) => k.average_pool2d_s8(pool, x, 0..pool.window.out_h, output),
            Op::Softmax { .. } => k.softmax_s8(&step.softmax_stage(), x, output),
            Op::Add { .. } => {
                if let ([addend], Some(stage)) = (rest, step.add_stage()) {
                    k.add_s8(&stage, x, addend, output);
                }
            }
            // No int8 form: lowering does not let them through.
            Op::BatchNorm(..)
            | Op::LayerNorm { .. }
            | Op::GlobalResponseNorm { .. }
            | Op::Activation { .. } => {}
            _ => move_data(&step.node.op, inputs, output),
        }
    }

    fn elements(values: &[i8]) -> Elements<'_> {
        Elements::I8(values)
    }
}

/// Operators that do not compute.
fn move_data<T: Copy>(op: &Op, inputs: &[&[T]], output: &mut [T]) {
    let [x, ..] = inputs else { return };
    match op {
        Op::Upsample2x(upsample) => upsample2x(upsample, x, 0..2 * upsample.in_h, output),
        Op::Concat(parts) => concat(parts, inputs, output),
        Op::Copy { .. } => copy(x, output),
        _ => {}
    }
}
