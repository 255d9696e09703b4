//! The fields of each kind of layer record, named as in the format's description (section 3).

use super::Activation;
use crate::format::geometry::{self, Geometry};

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
    /// A record with this window in its canonical encoding, or `None` where the format has none:
    /// see [`encode_conv2d`](crate::format::encode_conv2d).
    pub fn from_geometry(
        geometry: &Geometry,
        filters: u32,
        activation: Activation,
        alpha: f32,
    ) -> Option<Self> {
        let (pad_h, pad_w, pad_extra) = geometry::encode_conv2d(geometry)?;
        let Geometry { kernel_h: kernel_size, stride, .. } = *geometry;
        Some(Self { kernel_size, stride, filters, activation, pad_h, pad_w, pad_extra, alpha })
    }

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
    /// Bits 0–7: columns of the window, 0 for as many as rows. Bits 8–11 and 12–15: what the
    /// padding below and to the right has more.
    pub pool_extra: u16,
}

impl Pool2d {
    /// A record with this window in its canonical encoding, or `None` where the format has none:
    /// see [`encode_pool`](crate::format::encode_pool).
    pub fn from_geometry(geometry: &Geometry) -> Option<Self> {
        let (pad_h, pad_w, pool_extra) = geometry::encode_pool(geometry)?;
        let Geometry { kernel_h: pool_size, stride, .. } = *geometry;
        Some(Self { pool_size, stride, pad_h, pad_w, pool_extra })
    }

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
    /// Columns of the kernel, or what the padding below and to the right has more; see
    /// [`geometry`](Self::geometry).
    pub kw_byte: u8,
    /// Slope of [`Activation::LeakyRelu`] below 0; ignored by the others.
    pub alpha: f32,
}

impl DepthwiseConv2d {
    /// A record with this window in its canonical encoding, or `None` where the format has none:
    /// see [`encode_depthwise`](crate::format::encode_depthwise).
    pub fn from_geometry(
        geometry: &Geometry,
        channels: u32,
        activation: Activation,
        alpha: f32,
    ) -> Option<Self> {
        let (pad_h, pad_w, kw_byte) = geometry::encode_depthwise(geometry)?;
        let Geometry { kernel_h, stride, .. } = *geometry;
        Some(Self { kernel_h, stride, channels, activation, pad_h, pad_w, kw_byte, alpha })
    }

    /// The window, told from the number of weights (section 5.2), or `None` where they make up no
    /// kernel.
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
