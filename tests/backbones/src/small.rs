//! A few networks that between them hold every kind of layer, every activation and every operator, each small enough for a
//! microcontroller with 16 KiB of memory.

use netkit_core::format::{Activation, ModelDescription};
use netkit_core::tensor::DType;

use crate::net::Net;

/// A small network.
#[derive(Clone, Debug)]
pub struct Small {
    /// Name of its file, without extension.
    pub name: &'static str,
    /// The network. It has no test cases.
    pub model: ModelDescription,
}

/// All of them, those in float32 first.
#[must_use]
pub fn small() -> Vec<Small> {
    let network = |(name, model)| Small { name, model };
    let networks = [
        ("layers_f32", float_layers()),
        ("activations_f32", float_activations()),
        ("detector_f32", detector()),
        ("flatten_f32", flatten()),
        ("layers_int8", int8_layers()),
        ("few_int8", int8_few()),
    ];
    networks.into_iter().map(network).collect()
}

/// Every kind of layer but those of a detector.
fn float_layers() -> ModelDescription {
    let mut net = Net::new(40, [8, 8, 3]);
    net.conv(8, 3, 1, 1, Activation::LeakyRelu);
    net.depthwise(3, 1, 1, Activation::Relu);
    net.max_pool(3, 2, 1);
    // Behind a pool it cannot be folded into anything.
    net.batch_norm();
    net.average_pool(3, 1, 1);
    net.max_pool(3, 1, 1);
    net.layer_norm();
    net.convnext_block();
    net.bottleneck(8, [3, 5], 1, 2);
    net.bottleneck(12, [3, 0], 2, 2);
    net.basic_block(12, 1);
    net.basic_block(15, 1);
    net.head(6, 3, 1);
    net.flatten();
    net.activated_dense(9, Activation::Tanh);
    net.dense(10);
    net.finish()
}

/// Every activation, in layers with odd numbers of channels.
fn float_activations() -> ModelDescription {
    let mut net = Net::new(41, [7, 5, 1]);
    net.conv(5, 3, 1, 1, Activation::None);
    net.max_pool(2, 1, 0);
    net.depthwise(5, 2, 2, Activation::Tanh);
    net.conv(7, 1, 1, 0, Activation::Sigmoid);
    net.depthwise(3, 1, 1, Activation::LeakyRelu);
    net.conv(3, 2, 1, 0, Activation::Relu6);
    net.flatten();
    net.activated_dense(11, Activation::Relu);
    net.activated_dense(6, Activation::Softmax);
    net.finish()
}

/// Taps and the feature pyramid that reads them.
fn detector() -> ModelDescription {
    let mut net = Net::new(42, [8, 8, 2]);
    net.conv(4, 3, 1, 1, Activation::Relu);
    net.feature_tap(0);
    // The tap keeps what is before the norm, so the norm is an operator of its own.
    net.batch_norm();
    net.conv(6, 3, 2, 1, Activation::Relu);
    net.feature_tap(1);
    net.conv(5, 3, 2, 1, Activation::Relu);
    net.pyramid([4, 6], 6, 2, 1);
    net.finish()
}

/// No layer computes anything: the output is a copy of the input.
fn flatten() -> ModelDescription {
    let mut net = Net::new(43, [2, 3, 2]);
    net.flatten();
    net.finish()
}

/// Every kind of layer that int8 networks have.
fn int8_layers() -> ModelDescription {
    let mut net = Net::new(44, [12, 10, 3]).in_type(DType::I8);
    net.conv(12, 3, 1, 1, Activation::Relu6);
    net.depthwise(3, 1, 1, Activation::Relu);
    net.max_pool(3, 2, 1);
    net.conv(16, 3, 1, 0, Activation::None);
    net.average_pool(2, 1, 1);
    net.max_pool(2, 1, 0);
    net.bottleneck(16, [3, 5], 1, 2);
    net.bottleneck(16, [0, 3], 1, 1);
    net.bottleneck(13, [3, 0], 2, 3);
    net.depthwise(5, 2, 2, Activation::None);
    net.conv(9, 1, 1, 0, Activation::Relu);
    net.flatten();
    net.activated_dense(23, Activation::Relu);
    net.dense(10);
    net.finish()
}

/// Layers with fewer taps or channels than kernels like to compute together.
fn int8_few() -> ModelDescription {
    let mut net = Net::new(45, [9, 9, 1]).in_type(DType::I8);
    net.conv(1, 3, 1, 0, Activation::None);
    net.conv(3, 1, 1, 0, Activation::None);
    net.max_pool(3, 1, 1);
    net.depthwise(3, 1, 1, Activation::None);
    net.conv(2, 3, 2, 1, Activation::Relu);
    net.conv(5, 1, 1, 0, Activation::None);
    net.depthwise(2, 1, 0, Activation::None);
    net.max_pool(2, 1, 0);
    net.flatten();
    net.dense(3);
    net.activated_dense(6, Activation::Softmax);
    net.finish()
}

#[cfg(test)]
mod tests {
    use super::small;
    use netkit_core::diag::FirstError;
    use netkit_core::format::{Activation, Layer, LayerKind, NkFile};
    use netkit_core::op::{self, Op};
    use netkit_core::program::{OwnedStorage, compile};
    use std::collections::BTreeSet;

    fn activation(layer: &Layer) -> Option<Activation> {
        match layer {
            Layer::Dense(layer) => Some(layer.activation),
            Layer::Conv2d(layer) => Some(layer.activation),
            Layer::DepthwiseConv2d(layer) => Some(layer.activation),
            _ => None,
        }
    }

    /// What the networks of one type hold: kinds of layers, and activations.
    fn held(quantized: bool) -> (Vec<LayerKind>, Vec<Activation>) {
        let networks = small().into_iter().filter(|n| n.model.quant.is_some() == quantized);
        let layers: Vec<Layer> = networks.flat_map(|network| network.model.layers).collect();
        let activations = layers.iter().filter_map(activation).collect();
        (layers.iter().map(Layer::kind).collect(), activations)
    }

    #[test]
    fn every_kind_of_layer_is_held() {
        for kind in LayerKind::ALL {
            assert!(held(false).0.contains(&kind), "no float network holds {kind}");
            let in_int8 = held(true).0.contains(&kind);
            assert_eq!(in_int8, kind.has_int8_form(), "{kind} in the int8 networks");
        }
    }

    #[test]
    fn every_activation_is_held() {
        use Activation::{None, Relu, Relu6, Softmax};
        for activation in Activation::ALL {
            assert!(held(false).1.contains(&activation), "no float network has {activation:?}");
        }
        for activation in [None, Relu, Relu6, Softmax] {
            assert!(held(true).1.contains(&activation), "no int8 network has {activation:?}");
        }
    }

    /// An operator for each variant. The match makes one that is new a compile error here.
    fn every_operator() -> BTreeSet<&'static str> {
        let op = Op::Copy { len: 0 };
        match op {
            Op::Dense { .. }
            | Op::Conv2d { .. }
            | Op::DepthwiseConv2d { .. }
            | Op::MaxPool2d(_)
            | Op::AveragePool2d(_)
            | Op::BatchNorm(..)
            | Op::LayerNorm { .. }
            | Op::GlobalResponseNorm { .. }
            | Op::Softmax { .. }
            | Op::Activation { .. }
            | Op::Add { .. }
            | Op::Upsample2x(_)
            | Op::Concat(_)
            | Op::Copy { .. } => {}
        }
        let names = [
            "dense",
            "conv2d",
            "conv2d_max_pool2d",
            "depthwise_conv2d",
            "depthwise_conv2d_max_pool2d",
            "max_pool2d",
            "average_pool2d",
            "batch_norm",
            "layer_norm",
            "global_response_norm",
            "softmax",
            "activation",
            "add",
            "upsample2x",
            "concat",
            "copy",
        ];
        names.into()
    }

    #[test]
    fn every_operator_is_reached() {
        let mut reached = BTreeSet::new();
        let mut in_int8 = BTreeSet::new();
        let mut fused = BTreeSet::new();
        for network in small() {
            let bytes = network.model.to_bytes().unwrap();
            let file = NkFile::parse(&bytes, &mut FirstError::new()).unwrap();
            let mut storage = OwnedStorage::of(&file);
            let program = compile(&file, storage.lend(), &mut FirstError::new()).unwrap();
            for step in program.steps() {
                let quantized = program.is_quantized();
                if quantized { &mut in_int8 } else { &mut reached }.insert(step.node.op.name());
                if let Op::Conv2d { residual: true, .. } = step.node.op {
                    fused.insert("residual");
                }
                if step.activation() == op::Activation::Gelu {
                    fused.insert("gelu");
                }
                if step.activation() == op::Activation::Silu {
                    fused.insert("silu");
                }
            }
        }
        assert_eq!(fused, ["gelu", "residual", "silu"].into());
        let expected = [
            "add",
            "average_pool2d",
            "conv2d",
            "conv2d_max_pool2d",
            "dense",
            "depthwise_conv2d",
            "depthwise_conv2d_max_pool2d",
            "max_pool2d",
            "softmax",
        ];
        assert_eq!(in_int8, expected.into());
        // No file asks for an activation by itself: each finds room in the layer it belongs to.
        let mut expected = every_operator();
        expected.remove("activation");
        assert_eq!(reached, expected);
    }
}
