//! `BatchNormalization`.

use super::{Converted, Operands};
use crate::graph::{Activation, Affine, Channels, Op};
use crate::obstacle::Refusal;
use crate::view::Run;

pub(super) fn batch_normalization(operands: &mut Operands<'_, '_>) -> Result<Converted, Refusal> {
    let node = operands.node;
    if node.int_or("training_mode", 0)? != 0 {
        return Err(Refusal::new("it takes statistics over the batch, as in training")
            .help("export the model in inference mode"));
    }
    if node.int_or("spatial", 1)? == 0 {
        return Err(Refusal::new("it has statistics of each element instead of each channel"));
    }
    let (input, view) = operands.computed(0)?;
    let dims = view.dims();
    let shape = operands.graph.shape(input);
    let channels = shape.dims().last().map_or(1, |&channels| channels as usize);
    let over_channels = match (dims.get(1), view.axes().get(1).map(Vec::as_slice)) {
        (Some(1), _) => channels == 1,
        (Some(&size), Some(&[run])) => size == channels && run == Run { size, stride: 1 },
        _ => false,
    };
    if !over_channels {
        return Err(Refusal::new(format!(
            "axis 1 of its input {dims:?} is not what netkit keeps as the channels of {shape}"
        ))
        .help("normalise before flattening"));
    }
    let mut each = |index: usize| -> Result<Vec<f32>, Refusal> {
        let values = operands.constant(index)?;
        if values.dims() != [channels] {
            return Err(Refusal::new(format!(
                "invalid ONNX: statistics of shape {:?} for {channels} channels",
                values.dims()
            )));
        }
        operands.weights(&values, values.view())
    };
    let (gamma, beta, mean, variance) = (each(1)?, each(2)?, each(3)?, each(4)?);
    let epsilon = f64::from(node.float_or("epsilon", 1e-5)?);
    let mut scale = Vec::with_capacity(channels);
    let mut shift = Vec::with_capacity(channels);
    for channel in 0..channels {
        let [gamma, beta, mean, variance] =
            [&gamma, &beta, &mean, &variance].map(|values| f64::from(values[channel]));
        let factor = gamma / (variance + epsilon).sqrt();
        scale.push(factor);
        shift.push(beta - mean * factor);
    }
    if scale.iter().chain(&shift).any(|value| !(*value as f32).is_finite()) {
        return Err(Refusal::new("its statistics give no finite scale and shift")
            .help("a variance must not be negative, nor 0 with an epsilon of 0"));
    }
    let op = Op::Affine(Affine {
        scale: Channels::Each(scale),
        shift: Channels::Each(shift),
        activation: Activation::None,
    });
    Ok(Converted { op, input, shape, view })
}
