//! `Conv`.

use super::{Converted, Operands, map_shape};
use crate::graph::{Activation, Conv2d, Op};
use crate::obstacle::Refusal;
use crate::onnx::window;
use crate::view::View;

pub(super) fn conv(operands: &mut Operands<'_, '_>) -> Result<Converted, Refusal> {
    let node = operands.node;
    let (input, view) = operands.computed(0)?;
    let (height, width, channels) = operands.map(input, &view)?;
    let filter = operands.constant(1)?;
    let filter_dims = filter.dims();
    let &[out_channels, group_channels, kernel_h, kernel_w] = filter_dims.as_slice() else {
        return Err(Refusal::new(format!("invalid ONNX: a filter of shape {filter_dims:?}")));
    };
    let groups = usize::try_from(node.int_or("group", 1)?).unwrap_or(0);
    if groups == 0
        || !out_channels.is_multiple_of(groups)
        || group_channels.checked_mul(groups) != Some(channels)
    {
        return Err(Refusal::new(format!(
            "invalid ONNX: a filter of shape {filter_dims:?} in {groups} groups on {channels} \
             channels"
        )));
    }
    match node.ints("kernel_shape")?.unwrap_or(&[]) {
        [] => {}
        &[h, w] if h as u64 == kernel_h as u64 && w as u64 == kernel_w as u64 => {}
        other => {
            return Err(Refusal::new(format!(
                "invalid ONNX: kernel_shape {other:?} and a filter of shape {filter_dims:?}"
            )));
        }
    }
    let window = window::resolve(node, (height, width), (kernel_h, kernel_w))?;
    let (out_h, out_w) = (window.output.0 as usize, window.output.1 as usize);
    let shape = map_shape(out_h, out_w, out_channels)?;

    // Output, input, height, width in the file; output, height, width, input in netkit.
    let ohwi = filter.view().transpose(&[0, 2, 3, 1]);
    let ohwi = ohwi.ok_or_else(|| Refusal::new("a filter of the wrong rank"))?;
    let weights = operands.weights(&filter, &ohwi)?;
    let bias = match operands.optional_constant(2)? {
        None => vec![0.0; out_channels],
        Some(bias) if bias.dims() == [out_channels] => operands.weights(&bias, bias.view())?,
        Some(bias) => {
            return Err(Refusal::new(format!(
                "invalid ONNX: a bias of shape {:?} for {out_channels} filters",
                bias.dims()
            )));
        }
    };
    Ok(Converted {
        op: Op::Conv2d(Conv2d {
            window,
            in_channels: channels,
            out_channels,
            groups,
            weights,
            bias,
            activation: Activation::None,
        }),
        input,
        shape,
        view: View::nchw(out_h, out_w, out_channels),
    })
}
