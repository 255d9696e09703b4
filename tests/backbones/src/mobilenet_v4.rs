//! MobileNetV4-Conv-Small.

use netkit_core::format::{Activation, ModelDescription};

use crate::net::Net;

pub(crate) fn conv_small() -> ModelDescription {
    const RELU: Activation = Activation::Relu;
    let mut net = Net::new(4, [56, 56, 3]);
    net.conv(32, 3, 2, 1, RELU);
    net.conv(32, 3, 2, 1, RELU);
    net.conv(32, 1, 1, 0, RELU);
    net.conv(96, 3, 2, 1, RELU);
    net.conv(64, 1, 1, 0, RELU);
    // Output channels, depthwise kernels, stride, expansion.
    for (channels, kernels, stride, ratio) in [
        (96, [5, 5], 2, 3),
        (96, [0, 3], 1, 2),
        (96, [0, 3], 1, 2),
        (96, [0, 3], 1, 2),
        (96, [0, 3], 1, 2),
        (96, [3, 0], 1, 4),
        (128, [3, 3], 2, 6),
        (128, [5, 5], 1, 4),
        (128, [0, 5], 1, 4),
        (128, [0, 5], 1, 3),
        (128, [0, 3], 1, 4),
        (128, [0, 3], 1, 4),
    ] {
        net.bottleneck(channels, kernels, stride, ratio);
    }
    net.conv(960, 1, 1, 0, RELU);
    net.global_average_pool();
    net.conv(1280, 1, 1, 0, RELU);
    net.flatten();
    net.dense(10);
    net.finish()
}
