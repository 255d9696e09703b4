//! Layer records as bytes: the inverse of reading them.

use alloc::vec::Vec;

use crate::format::Layer;

pub(super) fn write_layer(layer: &Layer, out: &mut Vec<u8>) {
    fn words<const N: usize>(words: [u32; N], out: &mut Vec<u8>) {
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    out.extend([layer.kind().code(), 0, 0, 0]);
    match layer {
        Layer::Dense(dense) => {
            words([dense.units, dense.activation.code().into(), dense.alpha.to_bits()], out);
        }
        Layer::Conv2d(conv) => {
            words([conv.kernel_size, conv.stride, conv.filters], out);
            out.extend([conv.activation.code(), conv.pad_h, conv.pad_w, conv.pad_extra]);
            out.extend(conv.alpha.to_le_bytes());
        }
        Layer::MaxPool2d(pool) | Layer::AvgPool2d(pool) => {
            words([pool.pool_size, pool.stride], out);
            out.extend([pool.pad_h, pool.pad_w]);
            out.extend(pool.pool_extra.to_le_bytes());
        }
        Layer::Flatten => {}
        Layer::BatchNorm2d(norm) => words([norm.channels, 0], out),
        Layer::DepthwiseConv2d(conv) => {
            words([conv.kernel_h, conv.stride, conv.channels], out);
            out.extend([conv.activation.code(), conv.pad_h, conv.pad_w, conv.kw_byte]);
            out.extend(conv.alpha.to_le_bytes());
        }
        Layer::ConvNextV2Block(block) => words([block.channels, 0, block.eps.to_bits()], out),
        Layer::MobileNetV4Uib(block) => {
            words([block.in_channels, block.out_channels], out);
            out.extend([
                block.start_dw_kernel,
                block.middle_dw_kernel,
                block.stride,
                block.middle_dw_downsample,
            ]);
            words([block.expand_ratio.to_bits(), 0], out);
        }
        Layer::ResNetBasicBlock(block) => {
            words([block.in_channels, block.out_channels, block.stride.into()], out);
        }
        Layer::LayerNorm2d(norm) => words([norm.channels, 0, norm.eps.to_bits()], out),
        Layer::YoloxDecoupledHead(head) => {
            words(
                [head.in_channels, head.hidden_dim, head.num_classes, head.num_convs.into()],
                out,
            );
        }
        Layer::FeatureTap(tap) => words([tap.channels, tap.tap_id.into()], out),
        Layer::YoloxPafpnMultiscale(layer) => words(
            [
                layer.c3_channels,
                layer.c4_channels,
                layer.c5_channels,
                layer.hidden_dim,
                layer.num_classes,
                layer.num_convs.into(),
            ],
            out,
        ),
    }
}
