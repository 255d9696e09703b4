//! Pools.

use super::{Converted, Operands, map_shape};
use crate::graph::{Op, Window};
use crate::obstacle::Refusal;
use crate::onnx::constant::axis_index;
use crate::onnx::window;
use crate::view::View;
use netkit_core::op::Padding;

pub(super) fn max_pool(operands: &mut Operands<'_, '_>) -> Result<Converted, Refusal> {
    pool(operands, Op::MaxPool2d)
}

pub(super) fn average_pool(operands: &mut Operands<'_, '_>) -> Result<Converted, Refusal> {
    let includes_padding = operands.node.int_or("count_include_pad", 0)? != 0;
    let converted = pool(operands, Op::AveragePool2d)?;
    // Only padding the file asks for would count; what ceil_mode adds never does.
    let padded = operands.node.ints("pads")?.is_some_and(|pads| pads.iter().any(|&pad| pad != 0))
        || operands.node.string("auto_pad")?.is_some_and(|auto| auto.starts_with("SAME"));
    if includes_padding && padded {
        return Err(Refusal::new("its padding counts in the average (count_include_pad)")
            .help("train with count_include_pad=False, or without padding"));
    }
    Ok(converted)
}

fn pool(operands: &mut Operands<'_, '_>, op: fn(Window) -> Op) -> Result<Converted, Refusal> {
    let node = operands.node;
    let (input, view) = operands.computed(0)?;
    let (height, width, channels) = operands.map(input, &view)?;
    let &[kernel_h, kernel_w] = node.ints("kernel_shape")?.unwrap_or(&[]) else {
        return Err(Refusal::new("invalid ONNX: no kernel_shape of two numbers"));
    };
    let (Ok(kernel_h), Ok(kernel_w)) = (usize::try_from(kernel_h), usize::try_from(kernel_w))
    else {
        return Err(Refusal::new("invalid ONNX: a negative kernel_shape"));
    };
    let window = window::resolve(node, (height, width), (kernel_h, kernel_w))?;
    let has_real_elements = |input: usize, kernel: u32, stride: u32, start: u32, output: u32| {
        let (stride, start) = (u64::from(stride), u64::from(start));
        start < u64::from(kernel) && (u64::from(output) - 1) * stride < input as u64 + start
    };
    let Padding { top, left, .. } = window.padding;
    if !has_real_elements(height, window.kernel.0, window.stride.0, top, window.output.0)
        || !has_real_elements(width, window.kernel.1, window.stride.1, left, window.output.1)
    {
        return Err(Refusal::new("some of its windows lie in the padding entirely")
            .help("pad by less than the window's size"));
    }
    let (out_h, out_w) = (window.output.0 as usize, window.output.1 as usize);
    let shape = map_shape(out_h, out_w, channels)?;
    Ok(Converted { op: op(window), input, shape, view: View::nchw(out_h, out_w, channels) })
}

pub(super) fn global_max_pool(operands: &mut Operands<'_, '_>) -> Result<Converted, Refusal> {
    global_pool(operands, Op::MaxPool2d)
}

pub(super) fn global_average_pool(operands: &mut Operands<'_, '_>) -> Result<Converted, Refusal> {
    global_pool(operands, Op::AveragePool2d)
}

/// A mean over height and width is a global average pool.
pub(super) fn reduce_mean(operands: &mut Operands<'_, '_>) -> Result<Converted, Refusal> {
    let node = operands.node;
    let axes = match operands.optional_constant(1)? {
        Some(axes) => axes.integers()?,
        None => node.ints("axes")?.unwrap_or(&[]).to_vec(),
    };
    let rank = operands.computed(0)?.1.dims().len();
    let mut axes =
        axes.into_iter().map(|axis| axis_index(axis, rank)).collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    if rank != 4 || axes != [2, 3] {
        return Err(Refusal::new(format!("a mean over the axes {axes:?}"))
            .help("only one over height and width can be converted"));
    }
    let mut converted = global_average_pool(operands)?;
    if node.int_or("keepdims", 1)? == 0 {
        let kept = converted.view.dims().into_iter().take(2).collect::<Vec<_>>();
        converted.view = converted
            .view
            .reshape(&kept)
            .ok_or_else(|| Refusal::new("a tensor of irregular layout"))?;
    }
    Ok(converted)
}

fn global_pool(
    operands: &mut Operands<'_, '_>,
    op: fn(Window) -> Op,
) -> Result<Converted, Refusal> {
    let (input, view) = operands.computed(0)?;
    let (height, width, channels) = operands.map(input, &view)?;
    // A stored shape's sizes fit 32 bits.
    let window = Window {
        kernel: (height as u32, width as u32),
        stride: (1, 1),
        dilation: (1, 1),
        padding: Padding::default(),
        output: (1, 1),
    };
    let shape = map_shape(1, 1, channels)?;
    Ok(Converted { op: op(window), input, shape, view: View::nchw(1, 1, channels) })
}
