//! Layer records (section 3): the fourteen kinds, their fields, and where the tensors of each are.

mod activation;
mod check;
mod fields;
mod kind;

pub use activation::Activation;
pub(super) use check::check;
pub use fields::{
    BatchNorm2d, Conv2d, ConvNextV2Block, Dense, DepthwiseConv2d, FeatureTap, LayerNorm2d,
    MobileNetV4Uib, Pool2d, ResNetBasicBlock, YoloxDecoupledHead, YoloxPafpnMultiscale,
};
pub use kind::LayerKind;

use crate::bytes::Reader;
use crate::diag::Site;

/// A layer record, its fields named as in the format's description.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layer {
    /// Kind 1.
    Dense(Dense),
    /// Kind 2.
    Conv2d(Conv2d),
    /// Kind 3.
    MaxPool2d(Pool2d),
    /// Kind 4.
    Flatten,
    /// Kind 5.
    AvgPool2d(Pool2d),
    /// Kind 6.
    BatchNorm2d(BatchNorm2d),
    /// Kind 7.
    DepthwiseConv2d(DepthwiseConv2d),
    /// Kind 8.
    ConvNextV2Block(ConvNextV2Block),
    /// Kind 9.
    MobileNetV4Uib(MobileNetV4Uib),
    /// Kind 10.
    ResNetBasicBlock(ResNetBasicBlock),
    /// Kind 11.
    LayerNorm2d(LayerNorm2d),
    /// Kind 12.
    YoloxDecoupledHead(YoloxDecoupledHead),
    /// Kind 13.
    FeatureTap(FeatureTap),
    /// Kind 14.
    YoloxPafpnMultiscale(YoloxPafpnMultiscale),
}

impl Layer {
    /// The kind.
    pub const fn kind(&self) -> LayerKind {
        match self {
            Self::Dense(_) => LayerKind::Dense,
            Self::Conv2d(_) => LayerKind::Conv2d,
            Self::MaxPool2d(_) => LayerKind::MaxPool2d,
            Self::Flatten => LayerKind::Flatten,
            Self::AvgPool2d(_) => LayerKind::AvgPool2d,
            Self::BatchNorm2d(_) => LayerKind::BatchNorm2d,
            Self::DepthwiseConv2d(_) => LayerKind::DepthwiseConv2d,
            Self::ConvNextV2Block(_) => LayerKind::ConvNextV2Block,
            Self::MobileNetV4Uib(_) => LayerKind::MobileNetV4Uib,
            Self::ResNetBasicBlock(_) => LayerKind::ResNetBasicBlock,
            Self::LayerNorm2d(_) => LayerKind::LayerNorm2d,
            Self::YoloxDecoupledHead(_) => LayerKind::YoloxDecoupledHead,
            Self::FeatureTap(_) => LayerKind::FeatureTap,
            Self::YoloxPafpnMultiscale(_) => LayerKind::YoloxPafpnMultiscale,
        }
    }

    /// How many pairs of a weight and a bias tensor the layer owns (section 7). In int8 models the
    /// batch norms of a bottleneck are folded away and own none.
    pub fn pair_count(&self, quantized: bool) -> u32 {
        let head = |num_convs: u8| 4 + 2 * u32::from(num_convs);
        match self {
            Self::MaxPool2d(_) | Self::Flatten | Self::AvgPool2d(_) | Self::FeatureTap(_) => 0,
            Self::Dense(_)
            | Self::Conv2d(_)
            | Self::BatchNorm2d(_)
            | Self::DepthwiseConv2d(_)
            | Self::LayerNorm2d(_) => 1,
            Self::ConvNextV2Block(_) => 5,
            Self::MobileNetV4Uib(block) => {
                let convolutions = 2
                    + u32::from(block.start_dw_kernel > 0)
                    + u32::from(block.middle_dw_kernel > 0);
                if quantized { convolutions } else { 2 * convolutions }
            }
            Self::ResNetBasicBlock(block) => {
                if block.has_identity_shortcut() {
                    4
                } else {
                    6
                }
            }
            Self::YoloxDecoupledHead(layer) => head(layer.num_convs),
            Self::YoloxPafpnMultiscale(layer) => 11 + 3 * head(layer.num_convs),
        }
    }

    /// Decodes a whole record. A byte that stands for no activation is read as none.
    fn decode(kind: LayerKind, record: &[u8]) -> Option<Self> {
        let mut body = Reader::at(record, 4)?;
        let r = &mut body;
        let activation = |code: u8| Activation::from_code(code).unwrap_or_default();
        let pool = |r: &mut Reader<'_>| {
            Some(Pool2d {
                pool_size: r.u32()?,
                stride: r.u32()?,
                pad_h: r.u8()?,
                pad_w: r.u8()?,
                pool_extra: r.u16()?,
            })
        };
        Some(match kind {
            LayerKind::Dense => Self::Dense(Dense {
                units: r.u32()?,
                activation: activation(r.u8()?),
                alpha: {
                    r.take(3)?;
                    r.f32()?
                },
            }),
            LayerKind::Conv2d => Self::Conv2d(Conv2d {
                kernel_size: r.u32()?,
                stride: r.u32()?,
                filters: r.u32()?,
                activation: activation(r.u8()?),
                pad_h: r.u8()?,
                pad_w: r.u8()?,
                pad_extra: r.u8()?,
                alpha: r.f32()?,
            }),
            LayerKind::MaxPool2d => Self::MaxPool2d(pool(r)?),
            LayerKind::Flatten => Self::Flatten,
            LayerKind::AvgPool2d => Self::AvgPool2d(pool(r)?),
            LayerKind::BatchNorm2d => Self::BatchNorm2d(BatchNorm2d { channels: r.u32()? }),
            LayerKind::DepthwiseConv2d => Self::DepthwiseConv2d(DepthwiseConv2d {
                kernel_h: r.u32()?,
                stride: r.u32()?,
                channels: r.u32()?,
                activation: activation(r.u8()?),
                pad_h: r.u8()?,
                pad_w: r.u8()?,
                kw_byte: r.u8()?,
                alpha: r.f32()?,
            }),
            LayerKind::ConvNextV2Block => {
                let channels = r.u32()?;
                r.take(4)?;
                Self::ConvNextV2Block(ConvNextV2Block { channels, eps: r.f32()? })
            }
            LayerKind::MobileNetV4Uib => Self::MobileNetV4Uib(MobileNetV4Uib {
                in_channels: r.u32()?,
                out_channels: r.u32()?,
                start_dw_kernel: r.u8()?,
                middle_dw_kernel: r.u8()?,
                stride: r.u8()?,
                middle_dw_downsample: r.u8()?,
                expand_ratio: r.f32()?,
            }),
            LayerKind::ResNetBasicBlock => Self::ResNetBasicBlock(ResNetBasicBlock {
                in_channels: r.u32()?,
                out_channels: r.u32()?,
                stride: r.u8()?,
            }),
            LayerKind::LayerNorm2d => {
                let channels = r.u32()?;
                r.take(4)?;
                Self::LayerNorm2d(LayerNorm2d { channels, eps: r.f32()? })
            }
            LayerKind::YoloxDecoupledHead => Self::YoloxDecoupledHead(YoloxDecoupledHead {
                in_channels: r.u32()?,
                hidden_dim: r.u32()?,
                num_classes: r.u32()?,
                num_convs: r.u8()?,
            }),
            LayerKind::FeatureTap => {
                Self::FeatureTap(FeatureTap { channels: r.u32()?, tap_id: r.u8()? })
            }
            LayerKind::YoloxPafpnMultiscale => Self::YoloxPafpnMultiscale(YoloxPafpnMultiscale {
                c3_channels: r.u32()?,
                c4_channels: r.u32()?,
                c5_channels: r.u32()?,
                hidden_dim: r.u32()?,
                num_classes: r.u32()?,
                num_convs: r.u8()?,
            }),
        })
    }
}

/// A layer of a file, with its place in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerRecord {
    /// The place in execution order, from 0.
    pub index: u16,
    /// The offset of the record's first byte in the file.
    pub offset: u64,
    /// The first of the tensor pairs that the layer owns.
    pub first_pair: u32,
    /// How many tensor pairs the layer owns.
    pub pair_count: u32,
    /// Kind and fields.
    pub layer: Layer,
}

impl LayerRecord {
    /// The kind.
    pub const fn kind(&self) -> LayerKind {
        self.layer.kind()
    }

    /// This record, for a diagnostic.
    pub const fn site(&self) -> Site {
        Site::layer(self.index, self.kind()).at(self.offset)
    }
}

/// The layers of a file in execution order.
#[derive(Clone, Debug)]
pub struct Layers<'a> {
    reader: Reader<'a>,
    index: u16,
    count: u16,
    next_pair: u32,
    quantized: bool,
}

impl<'a> Layers<'a> {
    pub(super) fn new(reader: Reader<'a>, count: u32, quantized: bool) -> Self {
        Self { reader, index: 0, count: count as u16, next_pair: 0, quantized }
    }
}

impl Iterator for Layers<'_> {
    type Item = LayerRecord;

    fn next(&mut self) -> Option<LayerRecord> {
        if self.index == self.count {
            return None;
        }
        let offset = self.reader.offset() as u64;
        let kind = LayerKind::from_code(self.reader.clone().u8()?)?;
        let layer = Layer::decode(kind, self.reader.take(kind.record_bytes())?)?;
        let pair_count = layer.pair_count(self.quantized);
        let record = LayerRecord {
            index: self.index,
            offset,
            first_pair: self.next_pair,
            pair_count,
            layer,
        };
        self.next_pair += pair_count;
        self.index += 1;
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.count - self.index);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Layers<'_> {}
