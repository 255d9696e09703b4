//! ResNet-18.

use netkit_core::format::{Activation, ModelDescription};

use crate::net::Net;

pub(crate) fn resnet18() -> ModelDescription {
    let mut net = Net::new(18, [56, 56, 3]);
    net.conv(64, 7, 2, 3, Activation::Relu);
    net.max_pool(3, 2, 1);
    for (channels, stride) in [(64, 1), (128, 2), (256, 2), (512, 2)] {
        net.basic_block(channels, stride);
        net.basic_block(channels, 1);
    }
    net.global_average_pool();
    net.flatten();
    net.dense(10);
    net.finish()
}
