//! Element-wise operators that no layer beside them took in. The format has no layer for most of them,
//! so each becomes the smallest layer that computes exactly the same.

use super::{Encoded, activation_code, dense_layer, narrow, pair};
use crate::graph::{Activation, Affine, Channels, Dense};
use crate::obstacle::Refusal;
use netkit_core::format::{BatchNorm2d, DepthwiseConv2d, Layer};
use netkit_core::tensor::Shape;

/// Most features of rows that are scaled or activated by a dense layer: one of 64 has 16 KiB of mostly
/// zeros, which is enough of a price.
const MOST_FEATURES: usize = 64;
/// Most channels of maps.
const MOST_CHANNELS: usize = 1 << 16;

/// A scale and shift: of a map a batch norm, with an activation, for which the record of a batch norm
/// has no room, a depthwise 1×1 convolution; of rows a diagonal dense layer.
pub(super) fn affine(affine: &Affine, input: Shape) -> Result<Encoded, Refusal> {
    let Some((_, _, channels)) = input.as_map() else {
        return diagonal(affine, input).ok_or_else(|| {
            Refusal::new("a scale and shift with no dense layer beside it to take it in")
                .help("put it next to a dense or convolution layer")
        })?;
    };
    if channels > MOST_CHANNELS {
        return Err(Refusal::new(format!(
            "a layer on {channels} channels; the most is {MOST_CHANNELS}"
        )));
    }
    let (scale, shift) = (affine.scale.to_rounded(channels), affine.shift.to_rounded(channels));
    if affine.activation == Activation::None {
        let layer = Layer::BatchNorm2d(BatchNorm2d { channels: narrow(channels)? });
        return Ok((layer, Some(pair(&[channels], scale, shift)?)));
    }
    let (activation, alpha) = activation_code(affine.activation);
    let layer = Layer::DepthwiseConv2d(DepthwiseConv2d {
        kernel_h: 1,
        stride: 1,
        channels: narrow(channels)?,
        activation,
        pad_h: 0,
        pad_w: 0,
        kw_byte: 1,
        alpha,
    });
    Ok((layer, Some(pair(&[channels, 1, 1], scale, shift)?)))
}

/// An activation: one behind a scale of 1.
pub(super) fn activation(activation: Activation, input: Shape) -> Result<Encoded, Refusal> {
    let identity = Affine { scale: Channels::Same(1.0), shift: Channels::Same(0.0), activation };
    if input.as_map().is_none() {
        return diagonal(&identity, input).ok_or_else(|| {
            Refusal::new("an activation with no layer before it to take it in")
                .help("in a .nk file an activation belongs to a dense or convolution layer")
        })?;
    }
    affine(&identity, input)
}

/// `None` where it would be too large.
fn diagonal(affine: &Affine, input: Shape) -> Option<Result<Encoded, Refusal>> {
    let features = *input.dims().last()? as usize;
    if features > MOST_FEATURES {
        return None;
    }
    let mut weights = vec![0.0; features * features];
    for (feature, scale) in affine.scale.to_rounded(features).into_iter().enumerate() {
        weights[feature * (features + 1)] = scale;
    }
    let dense = Dense {
        in_features: features,
        out_features: features,
        weights,
        bias: affine.shift.to_rounded(features),
        activation: affine.activation,
    };
    Some(dense_layer(dense, input))
}
