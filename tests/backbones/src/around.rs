//! The smallest network that makes sense of a kind of layer.

use netkit_core::format::{Activation, LayerKind, ModelDescription};
use netkit_core::tensor::DType;

use crate::net::Net;

/// A small network with a layer of this kind, in float32 or int8. Where int8 has no such layer the network
/// breaks that rule of the format and no other.
#[must_use]
pub fn around(kind: LayerKind, dtype: DType) -> ModelDescription {
    const RELU: Activation = Activation::Relu;
    if kind == LayerKind::Dense {
        let mut net = Net::mlp(1, 19).in_type(dtype);
        net.dense(7);
        return net.finish();
    }
    let seed = 100 + u64::from(kind.code());
    let mut net = Net::new(seed, [9, 7, 3]).in_type(dtype);
    // An int8 network takes its input's quantization from its first weights, so there are some; and
    // what follows meets a channel count that fills no vector.
    net.conv(13, 3, 1, 1, Activation::None);
    match kind {
        LayerKind::Dense | LayerKind::Conv2d => {}
        LayerKind::MaxPool2d => net.max_pool(3, 2, 1),
        LayerKind::Flatten => net.flatten(),
        LayerKind::AvgPool2d => net.average_pool(3, 2, 1),
        LayerKind::BatchNorm2d => net.batch_norm(),
        LayerKind::DepthwiseConv2d => net.depthwise(3, 2, 1, RELU),
        LayerKind::ConvNextV2Block => net.convnext_block(),
        LayerKind::MobileNetV4Uib => {
            net.conv(16, 1, 1, 0, RELU);
            net.bottleneck(16, [3, 5], 1, 2);
            net.bottleneck(11, [3, 0], 2, 3);
        }
        LayerKind::ResNetBasicBlock => {
            net.basic_block(13, 1);
            net.basic_block(18, 2);
        }
        LayerKind::LayerNorm2d => net.layer_norm(),
        LayerKind::YoloxDecoupledHead => net.head(9, 3, 1),
        LayerKind::FeatureTap => net.feature_tap(2),
        LayerKind::YoloxPafpnMultiscale => {
            let mut net = Net::new(seed, [8, 12, 3]).in_type(dtype);
            net.conv(6, 3, 1, 1, RELU);
            net.feature_tap(0);
            net.conv(9, 3, 2, 1, RELU);
            net.feature_tap(1);
            net.conv(10, 3, 2, 1, RELU);
            net.pyramid([6, 9], 17, 4, 1);
            return net.finish();
        }
    }
    net.finish()
}
