//! A network under construction: layers are added with random tensors, scaled so that activations keep
//! their size from the first layer to the last.
//!
//! A weight in front of a ReLU has the variance 2 / fan-in, any other 1 / fan-in. Batch norms scale by
//! about 1 with either sign, those at the end of a residual branch by less, so that sums do not grow
//! with depth.

use netkit_core::format::{
    Activation, BatchNorm2d, Conv2d, ConvNextV2Block, Dense, DepthwiseConv2d, FeatureTap, Geometry,
    Layer, LayerNorm2d, MobileNetV4Uib, ModelDescription, NetworkKind, OwnedPair, OwnedTensor,
    Pool2d, ResNetBasicBlock, TensorData, YoloxDecoupledHead, YoloxPafpnMultiscale,
};
use netkit_core::tensor::{DType, Shape};

use crate::quantize::quantize;
use crate::random::Random;

/// What comes behind a convolution, and so how large its weights are.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Relu,
    Linear,
}

/// The deviation of a normalised branch that is added to something.
const BRANCH: f32 = 0.4;

/// A layer list that grows while its shape is tracked.
pub(crate) struct Net {
    model: ModelDescription,
    /// What the finished network computes in.
    dtype: DType,
    random: Random,
    height: usize,
    width: usize,
    channels: u32,
}

fn shape(dims: &[u32]) -> Shape {
    Shape::new(dims).expect("one to four dimensions that are not 0")
}

const fn square(kernel: u32, stride: u32, padding: u32) -> Geometry {
    Geometry {
        kernel_h: kernel,
        kernel_w: kernel,
        stride,
        top: padding,
        left: padding,
        bottom: padding,
        right: padding,
    }
}

impl Net {
    pub(crate) fn new(seed: u64, [height, width, channels]: [u32; 3]) -> Self {
        Self {
            model: ModelDescription::new(NetworkKind::Cnn, shape(&[height, width, channels])),
            dtype: DType::F32,
            random: Random::new(seed),
            height: height as usize,
            width: width as usize,
            channels,
        }
    }

    /// An MLP on vectors.
    pub(crate) fn mlp(seed: u64, features: u32) -> Self {
        let mut net = Self::new(seed, [1, 1, features]);
        net.model = ModelDescription::new(NetworkKind::Mlp, shape(&[1, features]));
        net
    }

    /// The same network in another type, before it has any layers.
    pub(crate) fn in_type(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    pub(crate) fn finish(self) -> ModelDescription {
        match self.dtype {
            DType::F32 => self.model,
            _ => quantize(self.model),
        }
    }

    /// A square convolution.
    pub(crate) fn conv(
        &mut self,
        filters: u32,
        kernel: u32,
        stride: u32,
        padding: u32,
        activation: Activation,
    ) {
        let window = square(kernel, stride, padding);
        let layer = Conv2d::from_geometry(&window, filters, activation, 0.01)
            .expect("symmetric padding has a code");
        let then = if activation == Activation::Relu { Then::Relu } else { Then::Linear };
        let pair = self.filter(&[filters, kernel, kernel, self.channels], filters, then);
        self.model.push(Layer::Conv2d(layer), [pair]);
        self.advance(kernel, stride, padding);
        self.channels = filters;
    }

    /// A square depthwise convolution.
    pub(crate) fn depthwise(
        &mut self,
        kernel: u32,
        stride: u32,
        padding: u32,
        activation: Activation,
    ) {
        let window = square(kernel, stride, padding);
        let channels = self.channels;
        let layer = DepthwiseConv2d::from_geometry(&window, channels, activation, 0.01)
            .expect("symmetric padding has a code");
        let then = if activation == Activation::Relu { Then::Relu } else { Then::Linear };
        let pair = self.filter(&[channels, kernel, kernel], channels, then);
        self.model.push(Layer::DepthwiseConv2d(layer), [pair]);
        self.advance(kernel, stride, padding);
    }

    pub(crate) fn max_pool(&mut self, size: u32, stride: u32, padding: u32) {
        let pool = Pool2d::from_geometry(&square(size, stride, padding))
            .expect("symmetric padding has a code");
        self.model.push(Layer::MaxPool2d(pool), []);
        self.advance(size, stride, padding);
    }

    /// The mean of each channel over what is left of the map.
    pub(crate) fn global_average_pool(&mut self) {
        assert_eq!(self.height, self.width, "maps are square here");
        self.average_pool(self.height as u32, 1, 0);
    }

    pub(crate) fn average_pool(&mut self, size: u32, stride: u32, padding: u32) {
        let pool = Pool2d::from_geometry(&square(size, stride, padding))
            .expect("symmetric padding has a code");
        self.model.push(Layer::AvgPool2d(pool), []);
        self.advance(size, stride, padding);
    }

    pub(crate) fn batch_norm(&mut self) {
        let channels = self.channels;
        let pair = self.norm(channels, 1.0);
        self.model.push(Layer::BatchNorm2d(BatchNorm2d { channels }), [pair]);
    }

    pub(crate) fn layer_norm(&mut self) {
        let channels = self.channels;
        let pair = self.norm(channels, 1.0);
        self.model.push(Layer::LayerNorm2d(LayerNorm2d { channels, eps: 1e-6 }), [pair]);
    }

    pub(crate) fn feature_tap(&mut self, tap_id: u8) {
        let channels = self.channels;
        self.model.push(Layer::FeatureTap(FeatureTap { channels, tap_id }), []);
    }

    pub(crate) fn flatten(&mut self) {
        self.model.push(Layer::Flatten, []);
    }

    /// A dense layer on all there is.
    pub(crate) fn dense(&mut self, units: u32) {
        self.activated_dense(units, Activation::None);
    }

    /// A dense layer that ends in an activation.
    pub(crate) fn activated_dense(&mut self, units: u32, activation: Activation) {
        let features = (self.height * self.width) as u32 * self.channels;
        let pair = self.filter(&[units, features], units, Then::Linear);
        let dense = Dense { units, activation, alpha: 0.01 };
        self.model.push(Layer::Dense(dense), [pair]);
        (self.height, self.width, self.channels) = (1, 1, units);
    }

    /// A universal inverted bottleneck; `kernels` are those of the depthwise convolutions at its start and
    /// in its middle, 0 for none.
    pub(crate) fn bottleneck(
        &mut self,
        out_channels: u32,
        kernels: [u32; 2],
        stride: u32,
        ratio: u32,
    ) {
        let (in_channels, expanded) = (self.channels, self.channels * ratio);
        assert_eq!(expanded % 8, 0, "the format would round the expanded channels");
        let [start, middle] = kernels;
        let mut pairs = Vec::new();
        if start > 0 {
            let dims = [in_channels, start, start];
            pairs.push(self.filter(&dims, in_channels, Then::Linear));
            pairs.extend(self.bottleneck_norm(in_channels, 1.0));
        }
        pairs.push(self.filter(&[expanded, 1, 1, in_channels], expanded, Then::Relu));
        pairs.extend(self.bottleneck_norm(expanded, 1.0));
        if middle > 0 {
            let dims = [expanded, middle, middle];
            pairs.push(self.filter(&dims, expanded, Then::Relu));
            pairs.extend(self.bottleneck_norm(expanded, 1.0));
        }
        let is_branch = stride == 1 && in_channels == out_channels;
        pairs.push(self.filter(&[out_channels, 1, 1, expanded], out_channels, Then::Linear));
        pairs.extend(self.bottleneck_norm(out_channels, if is_branch { BRANCH } else { 1.0 }));
        let layer = MobileNetV4Uib {
            in_channels,
            out_channels,
            start_dw_kernel: start as u8,
            middle_dw_kernel: middle as u8,
            stride: stride as u8,
            middle_dw_downsample: u8::from(middle > 0),
            expand_ratio: ratio as f32,
        };
        self.model.push(Layer::MobileNetV4Uib(layer), pairs);
        let strided = if middle > 0 { middle } else { start };
        self.advance(strided, stride, (strided - 1) / 2);
        self.channels = out_channels;
    }

    /// The batch norms of a bottleneck are only in float files: int8 ones have them folded.
    fn bottleneck_norm(&mut self, channels: u32, size: f32) -> Option<OwnedPair> {
        (self.dtype == DType::F32).then(|| self.norm(channels, size))
    }

    pub(crate) fn basic_block(&mut self, out_channels: u32, stride: u32) {
        let in_channels = self.channels;
        let layer = ResNetBasicBlock { in_channels, out_channels, stride: stride as u8 };
        let mut pairs = vec![
            self.filter(&[out_channels, 3, 3, in_channels], out_channels, Then::Relu),
            self.norm(out_channels, 1.0),
            self.filter(&[out_channels, 3, 3, out_channels], out_channels, Then::Linear),
            self.norm(out_channels, BRANCH),
        ];
        if !layer.has_identity_shortcut() {
            pairs.push(self.filter(&[out_channels, 1, 1, in_channels], out_channels, Then::Linear));
            pairs.push(self.norm(out_channels, 1.0));
        }
        self.model.push(Layer::ResNetBasicBlock(layer), pairs);
        self.advance(3, stride, 1);
        self.channels = out_channels;
    }

    pub(crate) fn convnext_block(&mut self) {
        let channels = self.channels;
        let hidden = 4 * channels;
        let pairs = [
            self.filter(&[channels, 7, 7], channels, Then::Linear),
            self.norm(channels, 1.0),
            self.filter(&[hidden, channels], hidden, Then::Relu),
            self.norm(hidden, BRANCH),
            self.filter(&[channels, hidden], channels, Then::Linear),
        ];
        let layer = ConvNextV2Block { channels, eps: 1e-6 };
        self.model.push(Layer::ConvNextV2Block(layer), pairs);
    }

    /// A feature pyramid over taps 0 and 1 and the current map, with a detection head on each level.
    pub(crate) fn pyramid(&mut self, taps: [u32; 2], hidden: u32, classes: u32, convs: u32) {
        let [c3, c4] = taps;
        let mut pairs = Vec::new();
        for channels in [c3, c4, self.channels] {
            pairs.push(self.filter(&[hidden, 1, 1, channels], hidden, Then::Linear));
        }
        for _ in ["td_p4", "td_p3", "bu_n4", "bu_n5"] {
            pairs.push(self.filter(&[hidden, 3, 3], hidden, Then::Linear));
            pairs.push(self.filter(&[hidden, 1, 1, hidden], hidden, Then::Relu));
        }
        for _ in ["P3", "N4", "N5"] {
            pairs.extend(self.head_pairs(hidden, hidden, classes, convs));
        }
        let layer = YoloxPafpnMultiscale {
            c3_channels: c3,
            c4_channels: c4,
            c5_channels: self.channels,
            hidden_dim: hidden,
            num_classes: classes,
            num_convs: convs as u8,
        };
        self.model.push(Layer::YoloxPafpnMultiscale(layer), pairs);
    }

    /// A detection head by itself.
    pub(crate) fn head(&mut self, hidden: u32, classes: u32, convs: u32) {
        let in_channels = self.channels;
        let pairs = self.head_pairs(in_channels, hidden, classes, convs);
        let layer = YoloxDecoupledHead {
            in_channels,
            hidden_dim: hidden,
            num_classes: classes,
            num_convs: convs as u8,
        };
        self.model.push(Layer::YoloxDecoupledHead(layer), pairs);
        self.channels = 5 + classes;
    }

    fn head_pairs(
        &mut self,
        in_channels: u32,
        hidden: u32,
        classes: u32,
        convs: u32,
    ) -> Vec<OwnedPair> {
        let mut pairs = vec![self.filter(&[hidden, 1, 1, in_channels], hidden, Then::Relu)];
        for _ in 0..2 * convs {
            pairs.push(self.filter(&[hidden, 3, 3, hidden], hidden, Then::Relu));
        }
        for outputs in [classes, 4, 1] {
            pairs.push(self.filter(&[outputs, 1, 1, hidden], outputs, Then::Linear));
        }
        pairs
    }

    /// A filter whose first dimension counts its outputs; each sums over all the others.
    fn filter(&mut self, dims: &[u32], outputs: u32, then: Then) -> OwnedPair {
        let fan_in: u32 = dims[1..].iter().product();
        let gain = if then == Then::Relu { 2.0 } else { 1.0 };
        let deviation = (gain / fan_in as f32).sqrt();
        let shape = shape(dims);
        let weights = self.random.spread(shape.elements(), deviation);
        let biases = self.random.spread(outputs as usize, 0.05);
        pair(shape, weights, biases)
    }

    /// Scales around `size`, one in eight of them negative, and small shifts.
    fn norm(&mut self, channels: u32, size: f32) -> OwnedPair {
        let scales = (0..channels)
            .map(|_| {
                let scale = self.random.uniform(0.7 * size, 1.3 * size);
                if self.random.uniform(0.0, 8.0) < 1.0 { -scale } else { scale }
            })
            .collect();
        let shifts = self.random.spread(channels as usize, 0.1);
        pair(shape(&[channels]), scales, shifts)
    }

    fn advance(&mut self, kernel: u32, stride: u32, padding: u32) {
        let [kernel, stride, padding] = [kernel, stride, padding].map(|size| size as usize);
        for size in [&mut self.height, &mut self.width] {
            *size = (*size + 2 * padding - kernel) / stride + 1;
        }
    }
}

fn pair(shape_of_weights: Shape, weights: Vec<f32>, biases: Vec<f32>) -> OwnedPair {
    OwnedPair {
        bias: OwnedTensor { shape: shape(&[biases.len() as u32]), data: TensorData::F32(biases) },
        weight: OwnedTensor { shape: shape_of_weights, data: TensorData::F32(weights) },
    }
}
