//! Activations, and arithmetic between a computed value and a constant.

use super::{Converted, Operands};
use crate::graph::{Activation, Affine, Channels, Op};
use crate::obstacle::Refusal;
use crate::onnx::constant::axis_index;
use crate::view::{Run, View};

pub(super) fn activation(operands: &mut Operands<'_, '_>) -> Result<Converted, Refusal> {
    let node = operands.node;
    let (input, view) = operands.computed(0)?;
    let activation = match node.operator.as_str() {
        "Relu" => Activation::Relu,
        "Sigmoid" => Activation::Sigmoid,
        "Tanh" => Activation::Tanh,
        "LeakyRelu" => {
            let slope = node.float_or("alpha", 0.01)?;
            if !slope.is_finite() {
                return Err(Refusal::new(format!("a slope of {slope}")));
            }
            Activation::LeakyRelu(slope)
        }
        "Softmax" => softmax(operands, &view)?,
        _ => clip(operands)?,
    };
    let shape = operands.graph.shape(input);
    Ok(Converted { op: Op::Activation(activation), input, shape, view })
}

/// The limits are attributes up to operator set 10 and optional inputs after; either may be missing or
/// infinite.
fn clip(operands: &mut Operands<'_, '_>) -> Result<Activation, Refusal> {
    let node = operands.node;
    let mut limit = |index: usize, attribute: &str| -> Result<Option<f32>, Refusal> {
        if operands.opset < 11 {
            return node.float(attribute);
        }
        match operands.optional_constant(index)? {
            None => Ok(None),
            Some(limit) => match limit.scalar() {
                Some(limit) => Ok(Some(limit)),
                None => Err(Refusal::new(format!("its {attribute} is no float32 scalar"))),
            },
        }
    };
    let low = limit(1, "min")?.unwrap_or(f32::MIN);
    let high = limit(2, "max")?.unwrap_or(f32::MAX);
    if low == 0.0 && high == 6.0 {
        Ok(Activation::Relu6)
    } else if low == 0.0 && high >= f32::MAX {
        Ok(Activation::Relu)
    } else if low <= f32::MIN && high >= f32::MAX {
        Ok(Activation::None)
    } else {
        Err(Refusal::new(format!("it limits values to {low}..{high}"))
            .help("only 0..6 (Relu6) and 0.. (Relu) can be converted"))
    }
}

fn softmax(operands: &Operands<'_, '_>, view: &View) -> Result<Activation, Refusal> {
    let node = operands.node;
    let dims = view.dims();
    // Up to operator set 12 all axes from the named one on are taken together.
    let together = operands.opset < 13;
    let axis = node.int_or("axis", if together { 1 } else { -1 })?;
    let axis = if together && axis == dims.len() as i64 {
        dims.len()
    } else {
        axis_index(axis, dims.len())?
    };
    let summed: usize = match together {
        true => dims[axis..].iter().product(),
        false => dims[axis],
    };
    if summed != view.elements() {
        let help = match dims.first() {
            Some(2..) => "give the input shape for a batch of 1: --input-shape",
            _ => "leave it out of the model and do it on the output",
        };
        return Err(Refusal::new(format!(
            "softmax over axis {axis} of {dims:?} normalises parts of the tensor separately; only \
             one over all elements can be converted"
        ))
        .help(help));
    }
    Ok(Activation::Softmax)
}

/// `x + c`, `c + x`, `x − c`, `c − x`, `x · c`, `c · x` and `x / c`, with one `c` for all elements or
/// one for each channel.
pub(super) fn arithmetic(operands: &mut Operands<'_, '_>) -> Result<Converted, Refusal> {
    let node = operands.node;
    let computed = match (operands.is_constant(0), operands.is_constant(1)) {
        (false, true) => 0,
        (true, false) => 1,
        _ => return Err(Refusal::new("arithmetic between constants is not supported")),
    };
    let (input, view) = operands.computed(computed)?;
    let constant = operands.constant(1 - computed)?;
    let shape = operands.graph.shape(input);
    let channels = shape.dims().last().map_or(1, |&channels| channels as usize);

    let mut dims = view.dims();
    let constant_dims = constant.dims();
    let mut view = view;
    if constant_dims.len() > dims.len() {
        let mut longer = vec![1; constant_dims.len() - dims.len()];
        longer.append(&mut dims);
        view = view.reshape(&longer).ok_or_else(|| Refusal::new("a tensor of irregular layout"))?;
        dims = longer;
    }
    let skipped = dims.len() - constant_dims.len();
    let mut varies = constant_dims.iter().enumerate().filter(|(_, size)| **size != 1);
    let each = match (varies.next(), varies.next()) {
        (None, _) => false,
        (Some((axis, &size)), None)
            if dims[skipped + axis] == size
                && size == channels
                && view.axes()[skipped + axis] == [Run { size, stride: 1 }] =>
        {
            true
        }
        _ => {
            return Err(Refusal::new(format!(
                "its constant of shape {constant_dims:?} differs along other axes than the channels \
                 of {dims:?}"
            ))
            .help("only one number for all elements, or one for each channel, can be converted"));
        }
    };
    let values = operands.weights(&constant, constant.view())?;
    let channels = |f: &dyn Fn(f64) -> f64| match (each, values.as_slice()) {
        (false, [value]) => Channels::Same(f((*value).into())),
        _ => Channels::Each(values.iter().map(|value| f((*value).into())).collect()),
    };
    let (scale, shift) = match (node.operator.as_str(), computed) {
        ("Add", _) => (Channels::Same(1.0), channels(&|c| c)),
        ("Sub", 0) => (Channels::Same(1.0), channels(&|c| -c)),
        ("Sub", _) => (Channels::Same(-1.0), channels(&|c| c)),
        ("Mul", _) => (channels(&|c| c), Channels::Same(0.0)),
        (_, 0) => {
            if let Some(zero) = values.iter().find(|c| !(1.0 / **c).is_finite()) {
                return Err(Refusal::new(format!("it divides by {zero}")));
            }
            (channels(&|c| 1.0 / c), Channels::Same(0.0))
        }
        _ => {
            return Err(Refusal::new("it divides a constant by a computed value")
                .help("no layer computes a reciprocal"));
        }
    };
    let op = Op::Affine(Affine { scale, shift, activation: Activation::None });
    Ok(Converted { op, input, shape, view })
}
