//! Float networks in int8, with one quantization for all activations: not accurate, but every record and
//! every rule of the format is there.

use netkit_core::format::{ModelDescription, OwnedPair, OwnedQuant, OwnedTensor, TensorData};
use netkit_core::quant::Quant;

/// Activations of order 1 have some room; the zero point is not 0.
const ACTIVATIONS: Quant = Quant { scale: 0.03125, zero_point: 5 };

/// The network with weights of 8 bits and a scale a tensor.
pub(crate) fn quantize(mut model: ModelDescription) -> ModelDescription {
    let mut records = Vec::new();
    for pair in &mut model.pairs {
        let OwnedPair {
            weight: OwnedTensor { data: weights, .. },
            bias: OwnedTensor { data: biases, .. },
        } = pair;
        let (TensorData::F32(real), TensorData::F32(real_biases)) = (&*weights, &*biases) else {
            continue;
        };
        let largest = real.iter().fold(f32::MIN_POSITIVE, |most, weight| most.max(weight.abs()));
        let scale = largest / 127.0;
        let unit = ACTIVATIONS.scale * scale;
        let integers = real.iter().map(|weight| (weight / scale).round() as i8).collect();
        let integer_biases = real_biases.iter().map(|bias| (bias / unit).round() as i32).collect();
        *weights = TensorData::I8(integers);
        *biases = TensorData::I32(integer_biases);
        records.push(OwnedQuant {
            input: ACTIVATIONS,
            weight: Quant { scale, zero_point: 0 },
            bias: Quant { scale: unit, zero_point: 0 },
            output: ACTIVATIONS,
            channel_scales: Vec::new(),
        });
    }
    model.quant = Some(records);
    model
}
