//! The plain layers: those that become one or two operators.

use crate::diag::{Code, Value as Say};
use crate::format::{Activation as FileActivation, Layer, Pool2d as PoolRecord};
use crate::graph::{Builder, Full, Value, ValueId};
use crate::op::{Activation, Dense, Op, Pool2d};
use crate::quant::Quant;

use super::{ConvSpec, Flow, Lowering, Stop};

/// Softmax rows longer than this overflow the int8 sum (section 8.8).
const MAX_INT8_SOFTMAX: u32 = 4095;

/// How a file's activation byte is computed: element by element, or over the whole tensor.
enum Applied {
    Elementwise(Activation),
    Softmax,
}

const fn applied(activation: FileActivation, alpha: f32) -> Applied {
    Applied::Elementwise(match activation {
        FileActivation::None => Activation::None,
        FileActivation::Relu => Activation::Relu,
        FileActivation::Sigmoid => Activation::Sigmoid,
        FileActivation::Tanh => Activation::Tanh,
        FileActivation::LeakyRelu => Activation::LeakyRelu(alpha),
        FileActivation::Relu6 => Activation::Relu6,
        FileActivation::Softmax => return Applied::Softmax,
    })
}

impl<'s> Lowering<'_, '_, 's> {
    /// Lowers the current record.
    pub(super) fn layer(&mut self) -> Flow {
        self.order()?;
        match self.record.layer {
            Layer::Dense(layer) => {
                self.int8_activation(layer.activation, 8)?;
                self.dense(layer.units, applied(layer.activation, layer.alpha))
            }
            Layer::Conv2d(layer) => {
                self.int8_activation(layer.activation, 16)?;
                let in_channels = self.map(self.value).2 as u32;
                let kernel = layer.kernel_size;
                let value = self.conv_channels(layer.filters, in_channels)?;
                let value = self.conv(
                    value,
                    ConvSpec {
                        window: layer.geometry(),
                        out_channels: layer.filters,
                        dims: &[layer.filters, kernel, kernel, in_channels],
                        activation: Activation::None,
                        part: "",
                    },
                )?;
                self.finish(value, applied(layer.activation, layer.alpha))
            }
            Layer::DepthwiseConv2d(layer) => {
                self.int8_activation(layer.activation, 16)?;
                self.channels("channels", layer.channels, 12)?;
                let elements = match self.file.pair(self.record.first_pair as usize) {
                    Some(pair) => pair.weight.shape.elements(),
                    // Let `pair` say that the catalog is exhausted.
                    None => return self.pair(&[], 0).map(|_| ()),
                };
                let Some(window) = layer.geometry(elements as u32) else {
                    let diagnostic = self
                        .complain(Code::DepthwiseKernel, "weights", 4)
                        .found(Say::Count(elements as u64, "weight"))
                        .expected(Say::Text(
                            "channels × kernel_h × kernel_w with the kernel_h and the width byte of the record",
                        ));
                    return self.fail(diagnostic);
                };
                let value = self.depthwise(self.value, window, Activation::None, "")?;
                self.finish(value, applied(layer.activation, layer.alpha))
            }
            Layer::MaxPool2d(layer) => self.pool(&layer, Builder::max_pool),
            Layer::AvgPool2d(layer) => self.pool(&layer, |graph, value, pool, output| {
                graph.push(Op::AveragePool2d(pool), &[value], None, output, "")
            }),
            Layer::Flatten => {
                self.shape = self.output_shape(&[self.shape.elements()])?;
                self.flat = true;
                Ok(())
            }
            Layer::BatchNorm2d(layer) => {
                self.channels("channels", layer.channels, 4)?;
                let value = self.batch_norm(self.value, "")?;
                self.advance(value);
                Ok(())
            }
            Layer::LayerNorm2d(layer) => {
                self.channels("channels", layer.channels, 4)?;
                let value = self.layer_norm(self.value, layer.eps, "")?;
                self.advance(value);
                Ok(())
            }
            Layer::FeatureTap(layer) => {
                self.channels("channels", layer.channels, 4)?;
                self.graph.pin(self.value);
                if let Some(tap) = self.taps.get_mut(usize::from(layer.tap_id)) {
                    *tap = Some(self.value);
                }
                Ok(())
            }
            Layer::ConvNextV2Block(layer) => self.convnext_block(&layer),
            Layer::MobileNetV4Uib(layer) => self.inverted_bottleneck(&layer),
            Layer::ResNetBasicBlock(layer) => self.basic_block(&layer),
            Layer::YoloxDecoupledHead(layer) => self.yolox_head_layer(&layer),
            Layer::YoloxPafpnMultiscale(layer) => self.yolox_pafpn(&layer),
        }
    }

    /// Dense only behind a flatten, only dense behind it, one flatten (section 2).
    fn order(&mut self) -> Flow {
        let dense = matches!(self.record.layer, Layer::Dense(_));
        let flatten = matches!(self.record.layer, Layer::Flatten);
        let kind = self.record.kind();
        let (code, expected) = if self.mlp && !dense {
            (Code::LayerOrder, "only dense layers in an MLP")
        } else if flatten && self.flat {
            (Code::SecondFlatten, "one flatten at most")
        } else if dense && !self.flat {
            (Code::LayerOrder, "a flatten before the first dense layer")
        } else if !dense && self.flat {
            (Code::LayerOrder, "only dense layers after a flatten")
        } else {
            return Ok(());
        };
        let diagnostic =
            self.complain(code, "layer", 0).found(Say::Kind(kind)).expected(Say::Text(expected));
        self.fail(diagnostic)
    }

    /// int8 layers know relu and relu6, dense ones softmax too (section 8.6).
    fn int8_activation(&mut self, activation: FileActivation, at: u64) -> Flow {
        use FileActivation as A;
        let dense = matches!(self.record.layer, Layer::Dense(_));
        let honoured = matches!(activation, A::None | A::Relu | A::Relu6)
            || (dense && activation == A::Softmax);
        if !self.quantized || honoured {
            return Ok(());
        }
        let expected = if dense { "none, relu, relu6 or softmax" } else { "none, relu or relu6" };
        let diagnostic = self
            .complain(Code::QuanActivation, "activation", at)
            .found(Say::Text(activation.name()))
            .expected(Say::Text(expected));
        self.fail(diagnostic)
    }

    /// The input channels of a convolution are not in its record: the weights must agree with the map.
    fn conv_channels(&mut self, filters: u32, in_channels: u32) -> Flow<ValueId> {
        if filters == 0 {
            let diagnostic = self
                .complain(Code::NoOutputs, "filters", 12)
                .found(Say::Integer(0))
                .expected(Say::AtLeast(1));
            return self.fail(diagnostic);
        }
        if let Some(pair) = self.file.pair(self.record.first_pair as usize)
            && let [_, _, _, weights_in] = *pair.weight.shape.dims()
            && weights_in != in_channels
        {
            let diagnostic = self
                .complain(Code::Channels, "weights", 0)
                .found(super::with_axes(pair.weight.shape.dims()))
                .expected(Say::Count(in_channels.into(), "channel"));
            return self.fail(diagnostic);
        }
        Ok(self.value)
    }

    fn dense(&mut self, units: u32, applied: Applied) -> Flow {
        let rows = if self.mlp { self.shape.dims()[0] } else { 1 };
        let in_features = (self.shape.elements() / rows as usize) as u32;
        if units == 0 {
            let diagnostic = self
                .complain(Code::NoOutputs, "units", 4)
                .found(Say::Integer(0))
                .expected(Say::AtLeast(1));
            return self.fail(diagnostic);
        }
        if rows > 1 && (self.quantized || matches!(applied, Applied::Softmax)) {
            let why = if self.quantized { "1 row in an int8 model" } else { "1 row with softmax" };
            let diagnostic = self
                .complain(Code::Batch, "rows", 0)
                .found(Say::Integer(rows.into()))
                .expected(Say::Text(why));
            self.report(diagnostic)?;
        }
        let shape = if self.mlp {
            self.output_shape(&[rows as usize, units as usize])?
        } else {
            self.output_shape(&[units as usize])?
        };
        let mut weights = self.pair(&[units, in_features], units)?;
        let output = self.weighted_output(self.value, shape, &mut weights, units)?;
        let op = Op::Dense {
            dense: Dense {
                rows: rows as usize,
                in_features: in_features as usize,
                out_features: units as usize,
            },
            activation: Activation::None,
        };
        let pushed = self.graph.push(op, &[self.value], Some(weights), output, "");
        let value = self.stored(pushed)?;
        self.finish(value, applied)
    }

    /// Applies the layer's activation and makes the result the running value.
    fn finish(&mut self, value: ValueId, applied: Applied) -> Flow {
        let value = match applied {
            Applied::Elementwise(activation) => self.activate(value, activation)?,
            Applied::Softmax => self.softmax(value)?,
        };
        self.advance(value);
        Ok(())
    }

    fn softmax(&mut self, value: ValueId) -> Flow<ValueId> {
        let known = *self.graph.value(value);
        let len = known.shape.elements();
        let output = if self.quantized {
            if len > MAX_INT8_SOFTMAX as usize {
                let diagnostic = self
                    .complain(Code::QuanAccumulator, "softmax units", 4)
                    .found(Say::integer(len as u64))
                    .expected(Say::AtMost(MAX_INT8_SOFTMAX.into()));
                self.report(diagnostic)?;
            }
            Value::quantized(known.shape, Quant::SOFTMAX)
        } else {
            Value::float(known.shape)
        };
        let pushed = self.graph.push(Op::Softmax { len }, &[value], None, output, "softmax");
        self.stored(pushed)
    }

    fn pool(
        &mut self,
        layer: &PoolRecord,
        push: fn(&mut Builder<'s>, ValueId, Pool2d, Value) -> Result<ValueId, Full>,
    ) -> Flow {
        let file = layer.geometry();
        let window = self.window(self.value, &file, 4)?;
        if file.top.max(file.bottom) >= file.kernel_h || file.left.max(file.right) >= file.kernel_w
        {
            let diagnostic = self
                .complain(Code::PoolPadding, "padding", 12)
                .found(Say::shape(&[file.top.max(file.bottom), file.left.max(file.right)]))
                .expected(Say::Text("less than the window on each axis"));
            self.report(diagnostic)?;
        }
        let known = *self.graph.value(self.value);
        let channels = self.map(self.value).2;
        let shape = self.output_shape(&[window.out_h, window.out_w, channels])?;
        let output =
            if self.quantized { Value::quantized(shape, known.quant) } else { Value::float(shape) };
        let pushed = push(&mut self.graph, self.value, Pool2d { window, channels }, output);
        let value = self.stored(pushed)?;
        self.advance(value);
        Ok(())
    }

    /// Layer norm over the channels of each pixel (section 7.8).
    pub(super) fn layer_norm(
        &mut self,
        value: ValueId,
        epsilon: f32,
        part: &'static str,
    ) -> Flow<ValueId> {
        let shape = self.per_channel(value);
        let channels = shape.channels as u32;
        let weights = self.pair(&[channels], channels)?;
        let output = Value::float(self.graph.value(value).shape);
        let op = Op::LayerNorm { shape, epsilon };
        let pushed = self.graph.push(op, &[value], Some(weights), output, part);
        self.stored(pushed)
    }

    /// A multiple of a channel count, where it fits.
    pub(super) fn times(&mut self, channels: u32, factor: u32, at: u64) -> Flow<u32> {
        match channels.checked_mul(factor) {
            Some(product) => Ok(product),
            None => {
                let diagnostic = self
                    .complain(Code::SizeOverflow, "channels", at)
                    .found(Say::Integer(channels.into()))
                    .expected(Say::AtMost((u32::MAX / factor).into()));
                self.fail::<u32>(diagnostic).map_err(|_| Stop)
            }
        }
    }
}
