//! The closed list of primitive operators: their attributes, shape rules and costs.
//!
//! A fused layer of the file format is lowered into these; nothing downstream knows about blocks.
//! Attribute structs are plain `Copy` data with public fields so that generated code can hold them as
//! constants, and the same structs are what the kernels take.

mod window;

pub use window::{Padding, Window, output_size};

/// Fully connected layer: `y[r, o] = bias[o] + Σ_i weight[o, i] · x[r, i]`. Weights are `[out, in]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dense {
    /// Independent rows (the batch of an MLP); 1 in a CNN.
    pub rows: usize,
    /// Input features of a row.
    pub in_features: usize,
    /// Output features of a row.
    pub out_features: usize,
}

/// Two-dimensional convolution over an NHWC map. Weights are OHWI: `[out, kernel_h, kernel_w, in]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv2d {
    /// Input and output height and width, kernel, stride and padding.
    pub window: Window,
    /// Input channels.
    pub in_channels: usize,
    /// Output channels (filters).
    pub out_channels: usize,
}

/// Depthwise convolution over an NHWC map: output channel `c · multiplier + m` reads input channel
/// `c`. Weights are `[in_channels · multiplier, kernel_h, kernel_w]` in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthwiseConv2d {
    /// Input and output height and width, kernel, stride and padding.
    pub window: Window,
    /// Input channels.
    pub channels: usize,
    /// Output channels per input channel. `.nk` files only hold 1.
    pub multiplier: usize,
}

/// Maximum or average over a window, channel by channel, of an NHWC map.
///
/// Where it is fused into a convolution, the map it reads is just the convolution's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool2d {
    /// Input and output height and width, window, stride and padding.
    pub window: Window,
    /// Channels.
    pub channels: usize,
}

/// An operation on each pixel's channel vector: batch norm, layer norm, global response norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerChannel {
    /// Number of pixels (height · width).
    pub pixels: usize,
    /// Channels of each pixel.
    pub channels: usize,
}

/// Nearest-neighbour upsampling by a factor of two in height and width of an NHWC map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upsample2x {
    /// Input height.
    pub in_h: usize,
    /// Input width.
    pub in_w: usize,
    /// Channels.
    pub channels: usize,
}

/// Concatenation along the last axis of tensors seen as `[outer, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concat {
    /// Product of all axes before the last; equal for all inputs.
    pub outer: usize,
    /// Length of the last axis of each input; 0 for inputs that are not there.
    pub inner: [usize; crate::graph::MAX_INPUTS],
}

/// Element-wise functions. Those with a fused form are applied after the bias (section 4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// Identity.
    None,
    /// `x > 0 ? x : 0`
    Relu,
    /// `x < 0 ? 0 : x > 6 ? 6 : x`
    Relu6,
    /// `x > 0 ? x : alpha · x`
    LeakyRelu(f32),
    /// `1 / (1 + e^−x)`
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `x / (1 + e^−x)`
    Silu,
    /// `0.5 · x · (1 + tanh(0.7978845608 · (x + 0.044715 · x³)))`, the tanh form (section 7.11).
    Gelu,
}

/// A primitive operator. Whether it computes in float or int8 follows from its values' types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Fully connected; inputs: x, and the residual if `residual`.
    Dense {
        /// Geometry.
        dense: Dense,
        /// Applied last.
        activation: Activation,
    },
    /// Convolution; inputs: x, and with `residual` a second one that is added before the activation. Never with both
    /// `residual` and `pool`.
    Conv2d {
        /// Geometry.
        conv: Conv2d,
        /// Applied last.
        activation: Activation,
        /// Whether a second input of the output's shape is added after the bias.
        residual: bool,
        /// A maximum pool over the activated map, which is then never whole in memory: the output is what it gives.
        pool: Option<Pool2d>,
    },
    /// Depthwise convolution.
    DepthwiseConv2d {
        /// Geometry.
        conv: DepthwiseConv2d,
        /// Applied last.
        activation: Activation,
        /// As that of a [`Conv2d`](Self::Conv2d).
        pool: Option<Pool2d>,
    },
    /// Maximum over the in-bounds taps of a window.
    MaxPool2d(Pool2d),
    /// Mean over the in-bounds taps of a window.
    AveragePool2d(Pool2d),
    /// `x · scale[c] + shift[c]`: a batch norm that could not be folded (section 7.7).
    BatchNorm(PerChannel, Activation),
    /// Layer norm over the channels of each pixel (section 7.8).
    LayerNorm {
        /// Pixels and channels.
        shape: PerChannel,
        /// Added to the variance.
        epsilon: f32,
    },
    /// Global response normalisation (section 7.11, step 5).
    GlobalResponseNorm {
        /// Pixels and channels.
        shape: PerChannel,
        /// Added to the mean norm.
        epsilon: f32,
    },
    /// Softmax over all elements.
    Softmax {
        /// Number of elements.
        len: usize,
    },
    /// An element-wise function that could not be fused into its producer.
    Activation {
        /// Number of elements.
        len: usize,
        /// Which function.
        activation: Activation,
    },
    /// Element-wise sum of two tensors of one shape, then the activation.
    Add {
        /// Number of elements.
        len: usize,
        /// Applied last.
        activation: Activation,
    },
    /// Nearest-neighbour upsampling.
    Upsample2x(Upsample2x),
    /// Concatenation along the last axis.
    Concat(Concat),
    /// Copies its input: an output that no operator produces.
    Copy {
        /// Number of elements.
        len: usize,
    },
}

impl Op {
    /// The operator's name in messages and tables.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Dense { .. } => "dense",
            Self::Conv2d { pool: None, .. } => "conv2d",
            Self::Conv2d { .. } => "conv2d_max_pool2d",
            Self::DepthwiseConv2d { pool: None, .. } => "depthwise_conv2d",
            Self::DepthwiseConv2d { .. } => "depthwise_conv2d_max_pool2d",
            Self::MaxPool2d(_) => "max_pool2d",
            Self::AveragePool2d(_) => "average_pool2d",
            Self::BatchNorm(..) => "batch_norm",
            Self::LayerNorm { .. } => "layer_norm",
            Self::GlobalResponseNorm { .. } => "global_response_norm",
            Self::Softmax { .. } => "softmax",
            Self::Activation { .. } => "activation",
            Self::Add { .. } => "add",
            Self::Upsample2x(_) => "upsample2x",
            Self::Concat(_) => "concat",
            Self::Copy { .. } => "copy",
        }
    }

    /// Multiply-accumulate operations of one inference: those of dense and convolution layers over the
    /// full window (padded taps counted), as is customary. Everything else counts 0, and so do pixels that a fused pool
    /// does not read.
    #[must_use]
    pub const fn macs(&self) -> u64 {
        match self {
            Self::Dense { dense, .. } => {
                dense.rows as u64 * dense.in_features as u64 * dense.out_features as u64
            }
            Self::Conv2d { conv, .. } => {
                conv.window.out_pixels() as u64
                    * conv.window.taps() as u64
                    * conv.in_channels as u64
                    * conv.out_channels as u64
            }
            Self::DepthwiseConv2d { conv, .. } => {
                conv.window.out_pixels() as u64
                    * conv.window.taps() as u64
                    * (conv.channels * conv.multiplier) as u64
            }
            _ => 0,
        }
    }

    /// What an inference takes at most, in multiply-accumulates, taps of pools and elements moved or changed: how long it
    /// may last. Unlike [`macs`](Self::macs) it is nothing that models are compared by.
    #[must_use]
    pub const fn work(&self) -> u64 {
        const fn taps(pool: &Pool2d) -> u64 {
            let taps = (pool.window.taps() as u64).saturating_mul(pool.channels as u64);
            taps.saturating_mul(pool.window.out_pixels() as u64)
        }
        match self {
            Self::Conv2d { pool: Some(pool), .. }
            | Self::DepthwiseConv2d { pool: Some(pool), .. } => {
                self.macs().saturating_add(taps(pool))
            }
            Self::MaxPool2d(pool) | Self::AveragePool2d(pool) => taps(pool),
            _ => self.macs(),
        }
    }
}
