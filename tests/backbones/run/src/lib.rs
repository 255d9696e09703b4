//! The networks of `netkit-backbones`, compiled by `netkit::model!`: see `tests/backbones.rs`.

netkit::model!(pub MobileNetV4 = "$OUT_DIR/mobilenetv4_conv_small.nk");
netkit::model!(pub ResNet18 = "$OUT_DIR/resnet18.nk");
netkit::model!(pub ResNet18Winograd = "$OUT_DIR/resnet18.nk", convolution = winograd);
netkit::model!(pub ResNet18Both = "$OUT_DIR/resnet18.nk", convolution = winograd, batch = 2);
netkit::model!(pub ConvNextV2 = "$OUT_DIR/convnextv2_atto.nk");
netkit::model!(pub YoloxDetector = "$OUT_DIR/yolox_detector.nk");

/// The folder of the files.
pub const FOLDER: &str = env!("OUT_DIR");
