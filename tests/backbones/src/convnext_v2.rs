//! ConvNeXt V2-Atto.

use netkit_core::format::{Activation, ModelDescription};

use crate::net::Net;

pub(crate) fn atto() -> ModelDescription {
    let mut net = Net::new(2, [32, 32, 3]);
    for (stage, (channels, blocks)) in [(40, 2), (80, 2), (160, 6), (320, 2)].iter().enumerate() {
        if stage == 0 {
            net.conv(*channels, 4, 4, 0, Activation::None);
            net.layer_norm();
        } else {
            net.layer_norm();
            net.conv(*channels, 2, 2, 0, Activation::None);
        }
        for _ in 0..*blocks {
            net.convnext_block();
        }
    }
    net.global_average_pool();
    net.layer_norm();
    net.flatten();
    net.dense(10);
    net.finish()
}
