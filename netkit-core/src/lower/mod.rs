//! File layers to primitive operators, with the shape of every value inferred and checked on the way.
//!
//! Each layer kind is lowered in one place; nothing downstream knows about blocks. A layer whose shapes do
//! not work out ends the walk, because nothing can be said about those behind it; everything else that is wrong
//! is reported and the walk goes on.

mod convnext;
mod layers;
mod resnet;
mod uib;
mod yolox;

use core::ops::ControlFlow;

use crate::diag::{Axes, Code, Diagnostic, Dims, Sink, Site, Tensor, Value as Say};
use crate::format::{Geometry, LayerKind, LayerRecord, NetworkKind, NkFile, TensorView};
use crate::graph::{Builder, Constant, Fold, Full, Graph, Value, ValueId, WeightScales, Weights};
use crate::op::{Activation, Conv2d, DepthwiseConv2d, Op, Padding, PerChannel, Window};
use crate::quant::Quant;
use crate::tensor::Shape;

/// The most elements one activation may have: 1 GiB of float32. What is larger is a mistake, and no
/// size computed from it could overflow a 32-bit address space unnoticed.
pub const MAX_ACTIVATION_ELEMENTS: usize = 1 << 28;

/// What one file layer came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerInfo {
    /// Its kind.
    pub kind: LayerKind,
    /// Shape of what it reads; `[h, w, c]` before a flatten, `[n]` behind it, `[rows, n]` in an MLP.
    pub input: Shape,
    /// Shape of what it produces.
    pub output: Shape,
    /// Index of the first node it was lowered into; those of the next layer begin where its own end.
    pub first_node: u16,
    /// Number of nodes; a flatten and a tap have none, nor has what is fused into an earlier layer's.
    pub nodes: u16,
    /// Multiply-accumulate operations of one inference, those of the whole output: a property of the file. What is
    /// computed may be less, as pixels that a pool fused into the layer does not read are left out: see the steps' own.
    pub macs: u64,
    /// Elements of its weight and bias tensors.
    pub parameters: u64,
    /// Bytes of its weight and bias tensors in the file.
    pub weight_bytes: u64,
}

impl LayerInfo {
    /// Filler for lent storage.
    pub const EMPTY: Self = Self {
        kind: LayerKind::Flatten,
        input: Value::EMPTY.shape,
        output: Value::EMPTY.shape,
        first_node: 0,
        nodes: 0,
        macs: 0,
        parameters: 0,
        weight_bytes: 0,
    };
}

/// The most nodes that a layer is lowered into.
pub(crate) const fn max_nodes(layer: &LayerRecord) -> usize {
    // A node for each tensor pair is never exceeded but by the operators that own none.
    let without_tensors = match layer.kind() {
        LayerKind::Flatten | LayerKind::FeatureTap | LayerKind::BatchNorm2d => 0,
        LayerKind::MaxPool2d | LayerKind::AvgPool2d => 1,
        // Softmax.
        LayerKind::Dense | LayerKind::Conv2d | LayerKind::DepthwiseConv2d => 1,
        // Residual sums that could not be fused.
        LayerKind::ConvNextV2Block | LayerKind::MobileNetV4Uib | LayerKind::ResNetBasicBlock => 1,
        LayerKind::LayerNorm2d => 0,
        // The concatenation of the predictions.
        LayerKind::YoloxDecoupledHead => 1,
        // Two upsamplings, four sums, a concatenation for each head and one of all.
        LayerKind::YoloxPafpnMultiscale => 10,
    };
    layer.pair_count as usize + without_tensors
}

/// Why a walk ended early. Whoever returns it has reported the reason.
pub(crate) struct Stop;

pub(crate) type Flow<T = ()> = Result<T, Stop>;

/// What a convolution needs besides its input and tensors.
#[derive(Clone, Copy)]
pub(crate) struct ConvSpec<'d> {
    /// Kernel, stride and padding.
    pub(crate) window: Geometry,
    /// Output channels.
    pub(crate) out_channels: u32,
    /// Dimensions of the weight tensor in the catalog.
    pub(crate) dims: &'d [u32],
    /// Applied last; fused.
    pub(crate) activation: Activation,
    /// Which part of a block, for messages.
    pub(crate) part: &'static str,
}

/// A window without padding that covers one pixel.
pub(crate) const POINT: Geometry =
    Geometry { kernel_h: 1, kernel_w: 1, stride: 1, top: 0, left: 0, bottom: 0, right: 0 };

/// A square window with the same padding on all sides.
pub(crate) const fn square(kernel: u32, stride: u32, padding: u32) -> Geometry {
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

/// The walk over the layers of a file.
pub(crate) struct Lowering<'w, 'a, 's> {
    pub(crate) file: &'w NkFile<'a>,
    pub(crate) graph: Builder<'s>,
    sink: &'w mut dyn Sink,
    /// The layer being lowered.
    pub(crate) record: LayerRecord,
    next_pair: u32,
    /// The running value and its shape as the file's words have it.
    pub(crate) value: ValueId,
    pub(crate) shape: Shape,
    /// Whether a flatten has been passed (always, in an MLP).
    pub(crate) flat: bool,
    pub(crate) taps: [Option<ValueId>; 4],
    pub(crate) quantized: bool,
    pub(crate) mlp: bool,
}

/// Lowers all layers; `None` if something was reported.
pub(crate) fn lower<'s>(
    file: &NkFile<'_>,
    builder: Builder<'s>,
    layers: &mut [LayerInfo],
    sink: &mut dyn Sink,
) -> Option<Graph<'s>> {
    let mut watched = crate::diag::Watched::new(sink);
    let graph = walk(file, builder, layers, &mut watched).ok()?;
    watched.is_clean().then_some(graph)
}

fn walk<'s>(
    file: &NkFile<'_>,
    mut builder: Builder<'s>,
    layers: &mut [LayerInfo],
    sink: &mut dyn Sink,
) -> Flow<Graph<'s>> {
    let header = file.header();
    let shape =
        Shape::new(header.input_dims()).filter(|shape| shape.elements() <= MAX_ACTIVATION_ELEMENTS);
    let Some(shape) = shape else {
        let too_large = Diagnostic::new(Code::ActivationSize, Site::byte(12))
            .field("the input")
            .found(Say::shape(header.input_dims()))
            .expected(Say::AtMost(MAX_ACTIVATION_ELEMENTS as i64));
        let _ = sink.report(too_large);
        return Err(Stop);
    };
    let quantized = header.is_quantized();
    let mlp = header.kind == NetworkKind::Mlp;
    let input = match file.quant_record(0) {
        Some(record) if quantized => Value::quantized(shape, record.input),
        _ => Value::float(shape),
    };
    let Ok(value) = builder.input(input) else {
        return Err(storage_full(sink));
    };
    let Some(first) = file.layers().next() else { return Err(Stop) };
    let mut lowering = Lowering {
        file,
        graph: builder,
        sink,
        record: first,
        next_pair: 0,
        value,
        shape,
        flat: mlp,
        taps: [None; 4],
        quantized,
        mlp,
    };
    for (record, slot) in file.layers().zip(layers) {
        lowering.enter(record);
        let (input, first_node) = (lowering.shape, lowering.graph.len());
        lowering.layer()?;
        let nodes = &lowering.graph.nodes()[first_node..];
        *slot = LayerInfo {
            kind: record.kind(),
            input,
            output: lowering.shape,
            first_node: first_node as u16,
            nodes: nodes.len() as u16,
            macs: nodes.iter().map(|node| node.op.macs()).sum(),
            ..lowering.tensor_sizes()
        };
    }
    if lowering.next_pair != header.pair_count {
        let unused = Diagnostic::new(Code::TensorUse, Site::byte(32))
            .field("num_weight_tensors")
            .found(Say::Integer(header.pair_count.into()))
            .expected(Say::Integer(lowering.next_pair.into()));
        lowering.report(unused)?;
    }
    let Lowering { graph, sink, value: output, .. } = lowering;
    graph.finish(value, output).map_err(|Full| storage_full(sink))
}

fn storage_full(sink: &mut dyn Sink) -> Stop {
    let _ = sink.report(Diagnostic::new(Code::Storage, Site::FILE));
    Stop
}

impl Lowering<'_, '_, '_> {
    fn enter(&mut self, record: LayerRecord) {
        self.record = record;
        self.graph.enter_layer(record.index);
    }

    /// Reports and goes on, unless the sink has had enough.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) -> Flow {
        match self.sink.report(diagnostic) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop),
        }
    }

    /// Reports and ends the walk: what follows depends on what is missing.
    pub(crate) fn fail<T>(&mut self, diagnostic: Diagnostic) -> Flow<T> {
        let _ = self.sink.report(diagnostic);
        Err(Stop)
    }

    /// A diagnostic about a field of the current record, `at` bytes behind its start.
    pub(crate) fn complain(&self, code: Code, field: &'static str, at: u64) -> Diagnostic {
        let site = self.record.site().at(self.record.offset + at);
        Diagnostic::new(code, site).field(field)
    }

    /// Makes pair `index` the next to be taken: blocks whose catalog order is not their execution order.
    pub(crate) fn seek(&mut self, index: u32) {
        self.next_pair = index;
    }

    /// The result of a builder call.
    pub(crate) fn stored<T>(&mut self, result: Result<T, Full>) -> Flow<T> {
        result.map_err(|Full| storage_full(self.sink))
    }

    fn tensor_sizes(&self) -> LayerInfo {
        let mut info = LayerInfo::EMPTY;
        for index in self.record.first_pair..self.next_pair {
            if let Some(pair) = self.file.pair(index as usize) {
                for tensor in [pair.weight, pair.bias] {
                    let elements = tensor.shape.elements() as u64;
                    info.parameters += elements;
                    info.weight_bytes += elements * tensor.dtype.size() as u64;
                }
            }
        }
        info
    }

    /// Height, width and channels of a map value.
    pub(crate) fn map(&self, value: ValueId) -> (usize, usize, usize) {
        // Maps alone reach the callers: the running value is one until `flat`, and so are block parts.
        self.graph.value(value).shape.as_map().unwrap_or((1, 1, 1))
    }

    /// A field of the record must equal the running channel count.
    pub(crate) fn channels(&mut self, field: &'static str, declared: u32, at: u64) -> Flow {
        let running = self.map(self.value).2;
        if declared as usize == running {
            return Ok(());
        }
        let diagnostic = self
            .complain(Code::Channels, field, at)
            .found(Say::Integer(declared.into()))
            .expected(Say::Count(running as u64, "channel"));
        self.fail(diagnostic)
    }

    /// Takes the next tensor pair, which must have these dimensions.
    pub(crate) fn pair(&mut self, dims: &[u32], channels: u32) -> Flow<Weights> {
        let index = self.next_pair;
        let Some(pair) = self.file.pair(index as usize) else {
            let diagnostic = self
                .complain(Code::TensorUse, "num_weight_tensors", 0)
                .found(Say::Integer(self.file.header().pair_count.into()))
                .expected(Say::AtLeast(i64::from(index) + 1));
            return self.fail(diagnostic);
        };
        self.next_pair += 1;
        let site = self.record.site();
        let number = index as u16;
        if pair.weight.shape.dims() != dims {
            let diagnostic = Diagnostic::new(
                Code::TensorShape,
                site.tensor(Tensor::Weight(number)).at(pair.weight.descriptor_offset),
            )
            .field("weights")
            .found(with_axes(pair.weight.shape.dims()))
            .expected(with_axes(dims));
            self.report(diagnostic)?;
        }
        if pair.bias.shape.dims() != [channels] {
            let diagnostic = Diagnostic::new(
                Code::BiasShape,
                site.tensor(Tensor::Bias(number)).at(pair.bias.descriptor_offset),
            )
            .field("biases")
            .found(Say::shape(pair.bias.shape.dims()))
            .expected(Say::shape(&[channels]));
            self.report(diagnostic)?;
        }
        let filter = constant(&pair.weight);
        let bias = constant(&pair.bias);
        Ok(Weights { filter, bias, fold: None, scales: None })
    }

    /// Takes the next pair as a batch norm's scale and shift.
    pub(crate) fn fold(&mut self, channels: u32) -> Flow<Fold> {
        let weights = self.pair(&[channels], channels)?;
        Ok(Fold { scale: weights.filter, shift: weights.bias })
    }

    /// The quantization that the pair just taken gives its output, after checking that its record chains with
    /// `input` and that no accumulator of its `channels` overflows.
    pub(crate) fn quantization(
        &mut self,
        weights: &mut Weights,
        input: Quant,
        channels: u32,
    ) -> Flow<Quant> {
        let index = self.next_pair - 1;
        let site = self.record.site().tensor(Tensor::Quantization(index as u16));
        let Some(record) = self.file.quant_record(index as usize) else {
            let diagnostic = Diagnostic::new(Code::QuanRecords, site)
                .found(Say::Integer(index.into()))
                .expected(Say::Integer(self.file.header().pair_count.into()));
            return self.fail(diagnostic);
        };
        if record.input.scale.to_bits() != input.scale.to_bits()
            || record.input.zero_point != input.zero_point
        {
            let diagnostic = Diagnostic::new(Code::QuanChain, site.at(record.offset))
                .field("input")
                .found(Say::Affine(record.input.scale, record.input.zero_point))
                .expected(Say::Affine(input.scale, input.zero_point));
            self.report(diagnostic)?;
        }
        let table = record.channel_scales;
        weights.scales = Some(if table.is_empty() {
            WeightScales::PerTensor(record.weight.scale)
        } else {
            if table.len() as u64 != u64::from(channels) {
                let diagnostic =
                    Diagnostic::new(Code::QuanChannels, site.at(record.channel_scales_offset))
                        .field("channel scales")
                        .found(Say::Count(table.len() as u64, "scale"))
                        .expected(Say::Count(channels.into(), "scale"));
                self.report(diagnostic)?;
            }
            WeightScales::PerChannel { offset: record.channel_scales_offset as u32, channels }
        });
        self.accumulators(weights, channels, index)?;
        Ok(record.output)
    }

    /// `|bias| + 255 · 128 · taps` must stay below 2^31 (S-QUAN-ACC).
    fn accumulators(&mut self, weights: &Weights, channels: u32, pair: u32) -> Flow {
        let taps = i64::from(weights.filter.elements / channels.max(1));
        let headroom = (1i64 << 31) - 1 - 255 * 128 * taps;
        let bytes = weights.bias.bytes(self.file.as_bytes());
        let worst = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .enumerate()
            .find(|(_, bias)| i64::from(i32::from_le_bytes(**bias)).abs() > headroom);
        let Some((channel, bias)) = worst else { return Ok(()) };
        let site = self
            .record
            .site()
            .tensor(Tensor::Bias(pair as u16))
            .at(u64::from(weights.bias.offset) + 4 * channel as u64);
        let diagnostic = Diagnostic::new(Code::QuanAccumulator, site)
            .field("bias")
            .found(Say::Integer(i32::from_le_bytes(*bias).into()))
            .expected(Say::AtMost(headroom.max(0)));
        self.report(diagnostic)
    }

    /// Places a window over a map; `at` is the offset of the kernel field in the record.
    pub(crate) fn window(&mut self, value: ValueId, window: &Geometry, at: u64) -> Flow<Window> {
        let (height, width, _) = self.map(value);
        let placed = Window::new(
            (height, width),
            (window.kernel_h, window.kernel_w),
            window.stride,
            Padding {
                top: window.top,
                left: window.left,
                bottom: window.bottom,
                right: window.right,
            },
        );
        if let Some(window) = placed {
            return Ok(window);
        }
        let diagnostic = if window.stride == 0 {
            self.complain(Code::Window, "stride", at)
                .found(Say::Integer(0))
                .expected(Say::AtLeast(1))
        } else {
            let padded = [
                height as u32 + window.top + window.bottom,
                width as u32 + window.left + window.right,
            ];
            let (field, expected) = if window.kernel_h == 0 || window.kernel_w == 0 {
                ("window", Say::Text("at least 1×1"))
            } else {
                ("window", Say::ShapeAs(Dims::new(&padded), Axes::PaddedInput))
            };
            self.complain(Code::Window, field, at)
                .found(Say::shape(&[window.kernel_h, window.kernel_w]))
                .expected(expected)
        };
        self.fail(diagnostic)
    }

    /// The shape of a map, if it is not too large to be true.
    pub(crate) fn output_shape(&mut self, dims: &[usize]) -> Flow<Shape> {
        let mut narrow = [0; 4];
        for (slot, &dim) in narrow.iter_mut().zip(dims) {
            *slot = u32::try_from(dim).unwrap_or(u32::MAX);
        }
        let dims = &narrow[..dims.len().min(4)];
        match Shape::new(dims).filter(|shape| shape.elements() <= MAX_ACTIVATION_ELEMENTS) {
            Some(shape) => Ok(shape),
            None => {
                let diagnostic = self
                    .complain(Code::ActivationSize, "the output", 0)
                    .found(Say::shape(dims))
                    .expected(Say::AtMost(MAX_ACTIVATION_ELEMENTS as i64));
                self.fail(diagnostic)
            }
        }
    }

    /// The value that a weighted operator produces from `input`, quantized as its record says.
    pub(crate) fn weighted_output(
        &mut self,
        input: ValueId,
        shape: Shape,
        weights: &mut Weights,
        channels: u32,
    ) -> Flow<Value> {
        let known = *self.graph.value(input);
        if self.quantized {
            let output = self.quantization(weights, known.quant, channels)?;
            Ok(Value::quantized(shape, output))
        } else {
            Ok(Value::float(shape))
        }
    }

    /// A dense convolution of `input`.
    pub(crate) fn conv(&mut self, input: ValueId, spec: ConvSpec<'_>) -> Flow<ValueId> {
        let in_channels = self.map(input).2;
        let window = self.window(input, &spec.window, 4)?;
        let shape = self.output_shape(&[window.out_h, window.out_w, spec.out_channels as usize])?;
        let mut weights = self.pair(spec.dims, spec.out_channels)?;
        let output = self.weighted_output(input, shape, &mut weights, spec.out_channels)?;
        let conv = Conv2d { window, in_channels, out_channels: spec.out_channels as usize };
        let op = Op::Conv2d { conv, activation: Activation::None, residual: false, pool: None };
        let pushed = self.graph.push(op, &[input], Some(weights), output, spec.part);
        let pushed = self.stored(pushed)?;
        self.activate(pushed, spec.activation)
    }

    /// A 1×1 convolution of `input` to `out_channels`, its weights of rank 4.
    pub(crate) fn pointwise(
        &mut self,
        input: ValueId,
        out_channels: u32,
        activation: Activation,
        part: &'static str,
    ) -> Flow<ValueId> {
        let in_channels = self.map(input).2 as u32;
        let dims = &[out_channels, 1, 1, in_channels];
        self.conv(input, ConvSpec { window: POINT, out_channels, dims, activation, part })
    }

    /// A depthwise convolution of `input`, channel by channel.
    pub(crate) fn depthwise(
        &mut self,
        input: ValueId,
        window: Geometry,
        activation: Activation,
        part: &'static str,
    ) -> Flow<ValueId> {
        let channels = self.map(input).2;
        let placed = self.window(input, &window, 4)?;
        let shape = self.output_shape(&[placed.out_h, placed.out_w, channels])?;
        let dims = [channels as u32, window.kernel_h, window.kernel_w];
        let mut weights = self.pair(&dims, channels as u32)?;
        let output = self.weighted_output(input, shape, &mut weights, channels as u32)?;
        let conv = DepthwiseConv2d { window: placed, channels, multiplier: 1 };
        let op = Op::DepthwiseConv2d { conv, activation: Activation::None, pool: None };
        let pushed = self.graph.push(op, &[input], Some(weights), output, part);
        let pushed = self.stored(pushed)?;
        self.activate(pushed, activation)
    }

    /// An activation, fused where it can be.
    pub(crate) fn activate(&mut self, value: ValueId, activation: Activation) -> Flow<ValueId> {
        let activated = self.graph.activate(value, activation);
        self.stored(activated)
    }

    /// A batch norm that takes the next pair, folded where it can be.
    pub(crate) fn batch_norm(&mut self, value: ValueId, part: &'static str) -> Flow<ValueId> {
        let shape = self.per_channel(value);
        let fold = self.fold(shape.channels as u32)?;
        let op = Op::BatchNorm(shape, Activation::None);
        let pushed = self.graph.batch_norm(value, fold, op, part);
        self.stored(pushed)
    }

    /// Pixels and channels of a map.
    pub(crate) fn per_channel(&self, value: ValueId) -> PerChannel {
        let (height, width, channels) = self.map(value);
        PerChannel { pixels: height * width, channels }
    }

    /// The sum of two float maps, fused where it can be.
    pub(crate) fn add_float(&mut self, sum: ValueId, addend: ValueId) -> Flow<ValueId> {
        let added = self.graph.add_float(sum, addend);
        self.stored(added)
    }

    /// Makes `value`, a map, the running value.
    pub(crate) fn advance(&mut self, value: ValueId) {
        self.value = value;
        self.shape = self.graph.value(value).shape;
    }
}

/// A weight tensor's dimensions with the names of its axes.
fn with_axes(dims: &[u32]) -> Say {
    let axes = match dims.len() {
        4 => Axes::Ohwi,
        3 => Axes::Chw,
        2 => Axes::Oi,
        _ => return Say::shape(dims),
    };
    Say::ShapeAs(Dims::new(dims), axes)
}

fn constant(tensor: &TensorView<'_>) -> Constant {
    Constant {
        dtype: tensor.dtype,
        offset: tensor.offset as u32,
        elements: tensor.shape.elements() as u32,
    }
}
