//! Layer records (section 3): the fourteen kinds, their fields, and the rules that a record alone can break.

use core::fmt;
use core::ops::{ControlFlow, Range};

use super::geometry::{self, Geometry};
use super::{Flow, stop};
use crate::bytes::Reader;
use crate::diag::{Code, Diagnostic, Sink, Site, Value};

/// An activation function, applied after the bias (section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `x`
    #[default]
    None,
    /// `max(x, 0)`
    Relu,
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// `tanh x`
    Tanh,
    /// `x` above 0, `alpha · x` below
    LeakyRelu,
    /// `min(max(x, 0), 6)`
    Relu6,
    /// `e^(x - max) / Σ e^(x - max)` over all elements of the output
    Softmax,
}

impl Activation {
    /// Every activation, by its code.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Relu,
        Self::Sigmoid,
        Self::Tanh,
        Self::LeakyRelu,
        Self::Relu6,
        Self::Softmax,
    ];

    /// The byte that stands for it.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The activation that `code` stands for.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The name in the format's description.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Relu => "relu",
            Self::Sigmoid => "sigmoid",
            Self::Tanh => "tanh",
            Self::LeakyRelu => "leaky_relu",
            Self::Relu6 => "relu6",
            Self::Softmax => "softmax",
        }
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
    const fn reserved(self) -> Range<usize> {
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
    const fn activation_offset(self) -> Option<usize> {
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

/// Fully connected layer: `y[u] = activation(b[u] + Σ W[u,i] · x[i])`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dense {
    /// Outputs.
    pub units: u32,
    /// Activation of the outputs.
    pub activation: Activation,
    /// Slope of [`Activation::LeakyRelu`] below 0; ignored by the others.
    pub alpha: f32,
}

/// Convolution with a square kernel over all input channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conv2d {
    /// Rows and columns of the kernel.
    pub kernel_size: u32,
    /// Step on both axes.
    pub stride: u32,
    /// Output channels.
    pub filters: u32,
    /// Activation of the outputs.
    pub activation: Activation,
    /// Padding above.
    pub pad_h: u8,
    /// Padding to the left.
    pub pad_w: u8,
    /// What the padding below (low nibble) and to the right (high nibble) has more.
    pub pad_extra: u8,
    /// Slope of [`Activation::LeakyRelu`] below 0; ignored by the others.
    pub alpha: f32,
}

impl Conv2d {
    /// The window with its paddings decoded.
    pub const fn geometry(&self) -> Geometry {
        geometry::decode_conv2d(
            self.kernel_size,
            self.stride,
            self.pad_h,
            self.pad_w,
            self.pad_extra,
        )
    }
}

/// Maximum or mean over a window of each channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool2d {
    /// Rows of the window.
    pub pool_size: u32,
    /// Step on both axes.
    pub stride: u32,
    /// Padding above.
    pub pad_h: u8,
    /// Padding to the left.
    pub pad_w: u8,
    /// Bits 0–7: columns of the window, 0 for as many as rows. Bits 8–11 and 12–15: what the padding below and to the
    /// right has more.
    pub pool_extra: u16,
}

impl Pool2d {
    /// The window with its width and paddings decoded.
    pub const fn geometry(&self) -> Geometry {
        geometry::decode_pool(self.pool_size, self.stride, self.pad_h, self.pad_w, self.pool_extra)
    }
}

/// Scale and shift of each channel; the statistics are already folded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchNorm2d {
    /// Channels.
    pub channels: u32,
}

/// Convolution of each channel by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthwiseConv2d {
    /// Rows of the kernel.
    pub kernel_h: u32,
    /// Step on both axes.
    pub stride: u32,
    /// Input and output channels.
    pub channels: u32,
    /// Activation of the outputs.
    pub activation: Activation,
    /// Padding above.
    pub pad_h: u8,
    /// Padding to the left.
    pub pad_w: u8,
    /// Columns of the kernel, or what the padding below and to the right has more; see [`geometry`](Self::geometry).
    pub kw_byte: u8,
    /// Slope of [`Activation::LeakyRelu`] below 0; ignored by the others.
    pub alpha: f32,
}

impl DepthwiseConv2d {
    /// The window, told from the number of weights (section 5.2), or `None` where they make up no kernel.
    pub fn geometry(&self, weight_elements: u32) -> Option<Geometry> {
        geometry::decode_depthwise(
            self.kernel_h,
            self.stride,
            self.pad_h,
            self.pad_w,
            self.kw_byte,
            self.channels,
            weight_elements,
        )
    }
}

/// ConvNeXt V2 block (section 7.11).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvNextV2Block {
    /// Input and output channels.
    pub channels: u32,
    /// Added to the variance and to the mean response, so that neither divides by 0.
    pub eps: f32,
}

/// MobileNetV4 universal inverted bottleneck (section 7.9).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MobileNetV4Uib {
    /// Input channels.
    pub in_channels: u32,
    /// Output channels.
    pub out_channels: u32,
    /// Rows and columns of the depthwise kernel before the expansion; 0 for none.
    pub start_dw_kernel: u8,
    /// Rows and columns of the depthwise kernel after the expansion; 0 for none.
    pub middle_dw_kernel: u8,
    /// Step of whichever depthwise applies it.
    pub stride: u8,
    /// 1 where the middle depthwise applies the stride, 0 where the start depthwise does.
    pub middle_dw_downsample: u8,
    /// Inner channels for each input channel, before rounding to a multiple of 8.
    pub expand_ratio: f32,
}

/// ResNet basic block (section 7.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResNetBasicBlock {
    /// Input channels.
    pub in_channels: u32,
    /// Output channels.
    pub out_channels: u32,
    /// Step of the first convolution and of the shortcut.
    pub stride: u8,
}

impl ResNetBasicBlock {
    /// Whether the shortcut is the input itself and has no tensors.
    pub const fn has_identity_shortcut(&self) -> bool {
        self.stride == 1 && self.in_channels == self.out_channels
    }
}

/// Normalization of each pixel over its channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNorm2d {
    /// Channels.
    pub channels: u32,
    /// Added to the variance.
    pub eps: f32,
}

/// YOLOX decoupled head (section 7.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YoloxDecoupledHead {
    /// Input channels.
    pub in_channels: u32,
    /// Channels of stem and branches.
    pub hidden_dim: u32,
    /// Classes.
    pub num_classes: u32,
    /// Convolutions of each branch, 0 to 4.
    pub num_convs: u8,
}

/// A copy of the running map, kept for a later layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureTap {
    /// Channels of the map.
    pub channels: u32,
    /// Under which number it is kept, 0 to 3.
    pub tap_id: u8,
}

/// YOLOX feature pyramid with a head on each of three scales (section 7.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YoloxPafpnMultiscale {
    /// Channels of tap 0.
    pub c3_channels: u32,
    /// Channels of tap 1.
    pub c4_channels: u32,
    /// Channels of the input.
    pub c5_channels: u32,
    /// Channels of the pyramid and of the heads.
    pub hidden_dim: u32,
    /// Classes.
    pub num_classes: u32,
    /// Convolutions of each branch of each head, 0 to 4.
    pub num_convs: u8,
}

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

    /// How many pairs of a weight and a bias tensor the layer owns (section 7). In int8 models the batch norms of a
    /// bottleneck are folded away and own none.
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

/// Reads past `count` records and reports what is wrong with each by itself.
pub(super) fn check(
    reader: &mut Reader<'_>,
    count: u32,
    quantized: bool,
    sink: &mut dyn Sink,
) -> Flow {
    for index in 0..count as u16 {
        let offset = reader.offset() as u64;
        let left = reader.remaining() as u64;
        let truncated = |site: Site, needed: usize| {
            Diagnostic::new(Code::LayerTruncated, site)
                .found(Value::Count(left, "byte"))
                .expected(Value::Count(needed as u64, "byte"))
        };
        let Some(code) = reader.clone().u8() else {
            return stop(sink, truncated(Site::byte(offset).in_layer(index, None), 4));
        };
        let Some(kind) = LayerKind::from_code(code) else {
            return stop(
                sink,
                Diagnostic::new(Code::LayerKind, Site::byte(offset).in_layer(index, None))
                    .found(Value::integer(code))
                    .expected(Value::Between(1, 14)),
            );
        };
        let site = Site::layer(index, kind);
        let decoded = reader
            .take(kind.record_bytes())
            .and_then(|record| Some((record, Layer::decode(kind, record)?)));
        let Some((record, layer)) = decoded else {
            return stop(sink, truncated(site.at(offset), kind.record_bytes()));
        };
        check_record(record, &layer, site, offset, quantized, sink)?;
    }
    ControlFlow::Continue(())
}

fn check_record(
    record: &[u8],
    layer: &Layer,
    site: Site,
    offset: u64,
    quantized: bool,
    sink: &mut dyn Sink,
) -> Flow {
    let kind = layer.kind();
    for range in [1..4, kind.reserved()] {
        super::check_zero(record, range, "reserved bytes", site, offset, Code::Reserved, sink)?;
    }
    if let Some(at) = kind.activation_offset() {
        let code = record.get(at).copied().unwrap_or(0);
        if Activation::from_code(code).is_none() {
            sink.report(
                Diagnostic::new(Code::Activation, site.at(offset + at as u64))
                    .found(Value::integer(code))
                    .expected(Value::Between(0, 6)),
            )?;
        }
    }
    if quantized && !kind.has_int8_form() {
        sink.report(
            Diagnostic::new(Code::QuanLayerKind, site.at(offset)).found(Value::Kind(kind)).expected(Value::Text(
                "only dense, conv2d, depthwise_conv2d, max_pool2d, avg_pool2d, flatten and mobilenetv4_uib",
            )),
        )?;
    }
    let mut number =
        |field: &'static str, at: u64, value: f32, holds: bool, expected: &'static str| {
            if holds {
                return ControlFlow::Continue(());
            }
            sink.report(
                Diagnostic::new(Code::Finite, site.at(offset + at))
                    .field(field)
                    .found(Value::Float(value))
                    .expected(Value::Text(expected)),
            )
        };
    let finite = "a finite number";
    let not_negative = "a finite number of at least 0";
    match *layer {
        Layer::Dense(Dense { alpha, .. }) => number("alpha", 12, alpha, alpha.is_finite(), finite),
        Layer::Conv2d(Conv2d { alpha, .. })
        | Layer::DepthwiseConv2d(DepthwiseConv2d { alpha, .. }) => {
            number("alpha", 20, alpha, alpha.is_finite(), finite)
        }
        Layer::ConvNextV2Block(ConvNextV2Block { eps, .. })
        | Layer::LayerNorm2d(LayerNorm2d { eps, .. }) => {
            number("eps", 12, eps, eps.is_finite() && eps >= 0.0, not_negative)
        }
        Layer::MobileNetV4Uib(MobileNetV4Uib { expand_ratio: ratio, .. }) => number(
            "expand_ratio",
            16,
            ratio,
            ratio.is_finite() && ratio > 0.0,
            "a finite number above 0",
        ),
        Layer::YoloxDecoupledHead(YoloxDecoupledHead { num_convs, .. }) => {
            check_byte(Code::YoloxConvs, "num_convs", num_convs, 4, site.at(offset + 16), sink)
        }
        Layer::YoloxPafpnMultiscale(YoloxPafpnMultiscale { num_convs, .. }) => {
            check_byte(Code::YoloxConvs, "num_convs", num_convs, 4, site.at(offset + 24), sink)
        }
        Layer::FeatureTap(FeatureTap { tap_id, .. }) => {
            check_byte(Code::TapId, "tap_id", tap_id, 3, site.at(offset + 8), sink)
        }
        _ => ControlFlow::Continue(()),
    }
}

fn check_byte(
    code: Code,
    field: &'static str,
    value: u8,
    most: u8,
    site: Site,
    sink: &mut dyn Sink,
) -> Flow {
    if value <= most {
        return ControlFlow::Continue(());
    }
    sink.report(
        Diagnostic::new(code, site)
            .field(field)
            .found(Value::integer(value))
            .expected(Value::Between(0, most.into())),
    )
}
