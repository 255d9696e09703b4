//! The kinds of layer records, and where the parts of each lie (section 3).

use core::fmt;
use core::ops::Range;

/// The kind of a layer record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayerKind {
    /// Fully connected.
    Dense = 1,
    /// Square convolution.
    Conv2d = 2,
    /// Maximum over a window.
    MaxPool2d = 3,
    /// H×W×C map to vector.
    Flatten = 4,
    /// Mean over a window.
    AvgPool2d = 5,
    /// Scale and shift of each channel.
    BatchNorm2d = 6,
    /// Convolution of each channel by itself.
    DepthwiseConv2d = 7,
    /// ConvNeXt V2 block.
    ConvNextV2Block = 8,
    /// MobileNetV4 universal inverted bottleneck.
    MobileNetV4Uib = 9,
    /// ResNet basic block.
    ResNetBasicBlock = 10,
    /// Normalization of each pixel over its channels.
    LayerNorm2d = 11,
    /// YOLOX decoupled head.
    YoloxDecoupledHead = 12,
    /// A copy of the running map, kept for a later layer.
    FeatureTap = 13,
    /// YOLOX feature pyramid with a head on each of three scales.
    YoloxPafpnMultiscale = 14,
}

impl LayerKind {
    /// Every kind, by its code from 1 on.
    pub const ALL: [Self; 14] = [
        Self::Dense,
        Self::Conv2d,
        Self::MaxPool2d,
        Self::Flatten,
        Self::AvgPool2d,
        Self::BatchNorm2d,
        Self::DepthwiseConv2d,
        Self::ConvNextV2Block,
        Self::MobileNetV4Uib,
        Self::ResNetBasicBlock,
        Self::LayerNorm2d,
        Self::YoloxDecoupledHead,
        Self::FeatureTap,
        Self::YoloxPafpnMultiscale,
    ];

    /// The byte that stands for it.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The kind that `code` stands for.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// The name in the format's description.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Conv2d => "conv2d",
            Self::MaxPool2d => "max_pool2d",
            Self::Flatten => "flatten",
            Self::AvgPool2d => "avg_pool2d",
            Self::BatchNorm2d => "batch_norm2d",
            Self::DepthwiseConv2d => "depthwise_conv2d",
            Self::ConvNextV2Block => "convnextv2_block",
            Self::MobileNetV4Uib => "mobilenetv4_uib",
            Self::ResNetBasicBlock => "resnet_basic_block",
            Self::LayerNorm2d => "layernorm2d",
            Self::YoloxDecoupledHead => "yolox_decoupled_head",
            Self::FeatureTap => "feature_tap",
            Self::YoloxPafpnMultiscale => "yolox_pafpn_multiscale",
        }
    }

    /// Bytes of a record of this kind, its four-byte prefix included.
    pub const fn record_bytes(self) -> usize {
        match self {
            Self::Flatten => 4,
            Self::BatchNorm2d | Self::FeatureTap => 12,
            Self::Dense
            | Self::MaxPool2d
            | Self::AvgPool2d
            | Self::ConvNextV2Block
            | Self::ResNetBasicBlock
            | Self::LayerNorm2d => 16,
            Self::YoloxDecoupledHead => 20,
            Self::Conv2d | Self::DepthwiseConv2d | Self::MobileNetV4Uib => 24,
            Self::YoloxPafpnMultiscale => 28,
        }
    }

    /// Whether int8 models may hold it (section 2).
    pub const fn has_int8_form(self) -> bool {
        matches!(
            self,
            Self::Dense
                | Self::Conv2d
                | Self::MaxPool2d
                | Self::Flatten
                | Self::AvgPool2d
                | Self::DepthwiseConv2d
                | Self::MobileNetV4Uib
        )
    }

    /// The reserved bytes of the record behind its prefix, as offsets from the record's start.
    pub(super) const fn reserved(self) -> Range<usize> {
        match self {
            Self::Dense | Self::FeatureTap => 9..12,
            Self::BatchNorm2d | Self::ConvNextV2Block | Self::LayerNorm2d => 8..12,
            Self::MobileNetV4Uib => 20..24,
            Self::ResNetBasicBlock => 13..16,
            Self::YoloxDecoupledHead => 17..20,
            Self::YoloxPafpnMultiscale => 25..28,
            Self::Conv2d
            | Self::MaxPool2d
            | Self::Flatten
            | Self::AvgPool2d
            | Self::DepthwiseConv2d => 0..0,
        }
    }

    /// The offset of the activation byte from the record's start.
    pub(super) const fn activation_offset(self) -> Option<usize> {
        match self {
            Self::Dense => Some(8),
            Self::Conv2d | Self::DepthwiseConv2d => Some(16),
            _ => None,
        }
    }
}

impl fmt::Display for LayerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
