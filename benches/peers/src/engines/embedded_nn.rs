//! embedded-nn: the published crate has kernels only (its compiler and macro are not on crates.io), so its functions are
//! called here in the order its generated code would call them, with every buffer allocated beforehand.
//!
//! It has no f32 pooling, so that f32 covers multi-layer perceptrons.

use embedded_nn::basic_math::{ElementwiseAddParams, elementwise_add_s8};
use embedded_nn::convolution::{convolve_per_channel_s8, depthwise_conv_per_channel_s8};
use embedded_nn::float_ops::{fully_connected_f32, relu_f32, softmax_f32};
use embedded_nn::fully_connected::{fully_connected_per_channel_s8, fully_connected_s8};
use embedded_nn::pooling::{avg_pool_s8, max_pool_s8};
use embedded_nn::softmax::softmax_s8;
use embedded_nn::types::{
    Activation, ConvParams, Dims, DwConvParams, FcParams, Padding2D, PerChannelQuantParams,
    PerTensorQuantParams, PoolParams, Tile,
};

use super::Python;
use crate::graph::{Graph, Kind, Operator};
use crate::measure::{Local, Runner, Session};
use crate::model::{DType, Model, Result, Values};

pub fn open(_: &Python, model: &Model) -> Result<Option<Box<dyn Runner>>> {
    let Some(path) = model.file("graph") else { return Ok(None) };
    let graph = Graph::read(&path)?;
    match model.dtype {
        DType::Int8 => Ok(Some(Box::new(Local(Int8::new(graph)?)))),
        DType::F32
            if graph.operators.iter().all(|op| matches!(op.kind, Kind::Dense | Kind::Softmax)) =>
        {
            Ok(Some(Box::new(Local(Float::new(graph)?))))
        }
        DType::F32 => Ok(None),
    }
}

fn failed(error: embedded_nn::types::Error) -> Box<dyn std::error::Error> {
    format!("{error:?}").into()
}

fn dims(shape: &[usize]) -> Dims {
    match *shape {
        [h, w, c] => Dims::new(1, h as i32, w as i32, c as i32),
        _ => Dims::new(1, 1, 1, shape.iter().product::<usize>() as i32),
    }
}

// ---- f32

struct Float {
    graph: Graph,
    tensors: Vec<(Vec<f32>, Vec<f32>)>,
    values: Vec<Vec<f32>>,
}

impl Float {
    fn new(graph: Graph) -> Result<Self> {
        let mut tensors = Vec::new();
        for operator in &graph.operators {
            tensors.push(match operator.kind {
                Kind::Dense => (graph.weight_f32(operator)?.0, graph.bias_f32(operator)?),
                _ => Default::default(),
            });
        }
        let values = graph.shapes.iter().map(|shape| vec![0.0; shape.iter().product()]).collect();
        Ok(Self { graph, tensors, values })
    }
}

impl Session for Float {
    fn set_input(&mut self, input: &Values) -> Result<()> {
        self.values[0].copy_from_slice(input.f32()?);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        for (operator, (weight, bias)) in self.graph.operators.iter().zip(&self.tensors) {
            let (before, after) = self.values.split_at_mut(operator.output);
            let (x, y) = (&before[operator.inputs[0]], &mut after[0]);
            if operator.kind == Kind::Softmax {
                softmax_f32(x, 1, x.len(), y).map_err(failed)?;
                continue;
            }
            let filter = Dims::new(x.len() as i32, 1, 1, y.len() as i32);
            let (input, output) = (dims(&[x.len()]), dims(&[y.len()]));
            fully_connected_f32(&input, x, &filter, weight, Some(bias), &output, y)
                .map_err(failed)?;
            if operator.relu {
                relu_f32(y);
            }
        }
        Ok(())
    }

    fn output(&self) -> Result<Values> {
        Ok(Values::F32(self.values[self.graph.output].clone()))
    }
}

// ---- int8

struct Weights {
    weight: Vec<i8>,
    bias: Vec<i32>,
    multipliers: Vec<i32>,
    shifts: Vec<i32>,
}

enum Step {
    Conv(ConvParams),
    Depthwise(DwConvParams),
    Dense(FcParams),
    MaxPool(PoolParams),
    AvgPool(PoolParams),
    Flatten,
    Add(ElementwiseAddParams),
    Softmax { multiplier: i32, shift: i32, lowest: i32 },
}

struct Int8 {
    graph: Graph,
    steps: Vec<(Step, Option<Weights>)>,
    values: Vec<Vec<i8>>,
}

/// real → (multiplier, shift) with real ≈ multiplier · 2^(shift − 31): the convention of CMSIS-NN.
fn fixed_point(real: f64) -> (i32, i32) {
    let mut shift = 0;
    let mut mantissa = real;
    while mantissa >= 1.0 {
        mantissa /= 2.0;
        shift += 1;
    }
    while mantissa < 0.5 {
        mantissa *= 2.0;
        shift -= 1;
    }
    let multiplier = (mantissa * 2f64.powi(31)).round() as i64;
    if multiplier == 1 << 31 { (1 << 30, shift + 1) } else { (multiplier as i32, shift) }
}

impl Int8 {
    fn new(graph: Graph) -> Result<Self> {
        let mut steps = Vec::new();
        for operator in &graph.operators {
            steps.push((step(&graph, operator)?, weights(&graph, operator)?));
        }
        let values = graph.shapes.iter().map(|shape| vec![0; shape.iter().product()]).collect();
        Ok(Self { graph, steps, values })
    }
}

fn weights(graph: &Graph, operator: &Operator) -> Result<Option<Weights>> {
    if operator.weight_scales.is_empty() {
        return Ok(None);
    }
    let (mut weight, shape) = graph.weight_i8(operator)?;
    if operator.kind == Kind::Depthwise {
        // [C, kh, kw] → [kh, kw, C].
        weight = crate::model::to_nhwc(&weight, &[shape[1], shape[2], shape[0]]);
    }
    let (input, output) =
        (graph.quants[operator.inputs[0]].scale, graph.quants[operator.output].scale);
    let (multipliers, shifts) =
        operator.weight_scales.iter().map(|scale| fixed_point(input * scale / output)).unzip();
    Ok(Some(Weights { weight, bias: graph.bias_i32(operator)?, multipliers, shifts }))
}

fn step(graph: &Graph, operator: &Operator) -> Result<Step> {
    let (input, output) = (graph.quants[operator.inputs[0]], graph.quants[operator.output]);
    let stride = Tile::new(operator.stride as i32, operator.stride as i32);
    let [top, left, bottom, right] = operator.pads.map(|pad| pad as i32);
    let padding = Padding2D::new(top, bottom, left, right);
    let dilation = Tile::new(1, 1);
    let lowest = if operator.relu { output.zero_point } else { -128 };
    let activation = Activation::new(lowest, 127);
    let (input_offset, output_offset) = (-input.zero_point, output.zero_point);
    Ok(match operator.kind {
        Kind::Conv => Step::Conv(ConvParams {
            input_offset,
            output_offset,
            stride,
            padding,
            dilation,
            activation,
        }),
        Kind::Depthwise => Step::Depthwise(DwConvParams {
            input_offset,
            output_offset,
            ch_mult: 1,
            stride,
            padding,
            dilation,
            activation,
        }),
        Kind::Dense => {
            Step::Dense(FcParams { input_offset, filter_offset: 0, output_offset, activation })
        }
        Kind::MaxPool => Step::MaxPool(PoolParams { stride, padding, activation }),
        Kind::AvgPool => Step::AvgPool(PoolParams { stride, padding, activation }),
        Kind::Flatten => Step::Flatten,
        Kind::Add => {
            let other = graph.quants[operator.inputs[1]];
            let twice = 2.0 * input.scale.max(other.scale);
            let (input1_mult, input1_shift) = fixed_point(input.scale / twice);
            let (input2_mult, input2_shift) = fixed_point(other.scale / twice);
            let (output_mult, output_shift) =
                fixed_point(twice / (f64::from(1 << 20) * output.scale));
            Step::Add(ElementwiseAddParams {
                input1_offset: input_offset,
                input1_mult,
                input1_shift,
                input2_offset: -other.zero_point,
                input2_mult,
                input2_shift,
                left_shift: 20,
                output_offset,
                output_mult,
                output_shift,
                activation,
            })
        }
        Kind::Softmax => {
            let (multiplier, shift) =
                fixed_point((input.scale * 2f64.powi(26)).min(f64::from(i32::MAX)));
            let lowest = -(31.0 * 2f64.powi(26) / 2f64.powi(shift)).floor() as i32;
            Step::Softmax { multiplier, shift, lowest }
        }
        other => return Err(format!("no int8 {other:?}").into()),
    })
}

impl Session for Int8 {
    fn set_input(&mut self, input: &Values) -> Result<()> {
        self.values[0].copy_from_slice(input.int8()?);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        for (operator, (step, weights)) in self.graph.operators.iter().zip(&self.steps) {
            let (before, after) = self.values.split_at_mut(operator.output);
            let (x, y) = (&before[operator.inputs[0]], &mut after[0]);
            let (input, output) = (
                dims(&self.graph.shapes[operator.inputs[0]]),
                dims(&self.graph.shapes[operator.output]),
            );
            let [kernel_h, kernel_w] = operator.kernel.map(|size| size as i32);
            let window = Tile::new(kernel_w, kernel_h);
            let result = match (step, weights) {
                (Step::Conv(params), Some(w)) => {
                    let filter = Dims::new(output.c, kernel_h, kernel_w, input.c);
                    let quant = PerChannelQuantParams::new(&w.multipliers, &w.shifts);
                    convolve_per_channel_s8(
                        params,
                        &quant,
                        &input,
                        x,
                        &filter,
                        &w.weight,
                        Some(&w.bias),
                        &output,
                        y,
                    )
                }
                (Step::Depthwise(params), Some(w)) => {
                    let filter = Dims::new(1, kernel_h, kernel_w, output.c);
                    let quant = PerChannelQuantParams::new(&w.multipliers, &w.shifts);
                    depthwise_conv_per_channel_s8(
                        params,
                        &quant,
                        &input,
                        x,
                        &filter,
                        &w.weight,
                        Some(&w.bias),
                        &output,
                        y,
                    )
                }
                (Step::Dense(params), Some(w)) => {
                    let filter = Dims::new(x.len() as i32, 1, 1, output.c);
                    if operator.per_channel {
                        let quant = PerChannelQuantParams::new(&w.multipliers, &w.shifts);
                        fully_connected_per_channel_s8(
                            params,
                            &quant,
                            &input,
                            x,
                            &filter,
                            &w.weight,
                            Some(&w.bias),
                            &output,
                            y,
                        )
                    } else {
                        let quant = PerTensorQuantParams::new(w.multipliers[0], w.shifts[0]);
                        fully_connected_s8(
                            params,
                            &quant,
                            &input,
                            x,
                            &filter,
                            &w.weight,
                            Some(&w.bias),
                            &output,
                            y,
                        )
                    }
                }
                (Step::MaxPool(params), _) => max_pool_s8(params, &window, &input, x, &output, y),
                (Step::AvgPool(params), _) => avg_pool_s8(params, &window, &input, x, &output, y),
                (Step::Flatten, _) => {
                    y.copy_from_slice(x);
                    Ok(())
                }
                (Step::Add(params), _) => {
                    elementwise_add_s8(x, &before[operator.inputs[1]], y, params)
                }
                (Step::Softmax { multiplier, shift, lowest }, _) => {
                    softmax_s8(x, 1, x.len(), *multiplier, *shift, *lowest, y)
                }
                (_, None) => return Err("operator without weights".into()),
            };
            result.map_err(failed)?;
        }
        Ok(())
    }

    fn output(&self) -> Result<Values> {
        Ok(Values::Int8(self.values[self.graph.output].clone()))
    }
}
