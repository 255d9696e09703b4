//! A detector: a YOLOX feature pyramid with its three heads on a small residual backbone.

use netkit_core::format::{Activation, ModelDescription};

use crate::net::Net;

/// Maps of 8, 4 and 2 pixels square go into the pyramid. A batch norm stands behind a tap, so that the
/// tapped convolution has two readers who must not see the same thing.
pub(crate) fn detector() -> ModelDescription {
    let mut net = Net::new(10, [64, 64, 3]);
    net.conv(16, 3, 2, 1, Activation::Relu);
    net.bottleneck(24, [0, 3], 2, 4);
    net.basic_block(32, 2);
    net.conv(40, 1, 1, 0, Activation::None);
    net.feature_tap(0);
    net.batch_norm();
    net.bottleneck(64, [3, 3], 2, 2);
    net.feature_tap(1);
    net.basic_block(96, 2);
    net.pyramid([40, 64], 48, 20, 2);
    net.finish()
}
