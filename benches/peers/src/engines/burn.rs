//! burn on its Flex backend (pure Rust, one thread), the network built by hand from the same functions that its layers
//! and its ONNX code generator call.

use burn::tensor::activation::{gelu_approximate, relu, softmax};
use burn::tensor::module::{
    adaptive_avg_pool2d, avg_pool2d, conv2d, layer_norm, linear, max_pool2d,
};
use burn::tensor::ops::{AvgPoolOptions, ConvOptions, MaxPoolOptions};
use burn::tensor::{Device, Tensor, TensorData};

use super::Python;
use crate::graph::{Graph, Kind, Operator};
use crate::measure::{Local, Runner, Session};
use crate::model::{DType, Model, Result, Values, nchw_shape, to_nchw, to_nhwc};

pub fn open(_: &Python, model: &Model) -> Result<Option<Box<dyn Runner>>> {
    if model.dtype != DType::F32 {
        return Ok(None);
    }
    let Some(path) = model.file("graph") else { return Ok(None) };
    Ok(Some(Box::new(Local(Burn::new(&Graph::read(&path)?)?))))
}

/// A value: maps as NCHW, or NHWC inside a ConvNeXt block as its reference implementation has them.
#[derive(Clone)]
enum Value {
    Map(Tensor<4>),
    Vector(Tensor<2>),
}

impl Value {
    fn map(&self) -> Tensor<4> {
        match self {
            Value::Map(tensor) => tensor.clone(),
            Value::Vector(_) => unreachable!("shapes were checked when the network was built"),
        }
    }

    fn vector(&self) -> Tensor<2> {
        match self {
            Value::Vector(tensor) => tensor.clone(),
            Value::Map(_) => unreachable!("shapes were checked when the network was built"),
        }
    }
}

enum Step {
    Conv {
        weight: Tensor<4>,
        bias: Tensor<1>,
        options: ConvOptions<2>,
    },
    /// 1×1 convolution on a NHWC map.
    Pointwise {
        weight: Tensor<2>,
        bias: Tensor<1>,
    },
    Dense {
        weight: Tensor<2>,
        bias: Tensor<1>,
    },
    MaxPool(MaxPoolOptions<2>),
    AvgPool(AvgPoolOptions<2>),
    GlobalPool,
    Flatten,
    Add {
        to_nchw: bool,
    },
    LayerNorm {
        gamma: Tensor<1>,
        beta: Tensor<1>,
        eps: f64,
    },
    Gelu,
    Grn {
        gamma: Tensor<4>,
        beta: Tensor<4>,
        eps: f64,
    },
    Softmax,
}

struct Node {
    step: Step,
    inputs: Vec<usize>,
    output: usize,
    relu: bool,
}

pub struct Burn {
    nodes: Vec<Node>,
    /// For every value the number of the node that reads it last: values are dropped there, as in a function body.
    last_use: Vec<usize>,
    values: Vec<Option<Value>>,
    input: Option<Value>,
    output: usize,
    input_shape: Vec<usize>,
    output_shape: Vec<usize>,
    device: Device,
}

impl Burn {
    pub fn new(graph: &Graph) -> Result<Self> {
        let device = Device::flex();
        let mut nodes = Vec::new();
        let mut channels_last = vec![false; graph.shapes.len()];
        let mut last_use = vec![usize::MAX; graph.shapes.len()];
        for (number, operator) in graph.operators.iter().enumerate() {
            for &input in &operator.inputs {
                last_use[input] = number;
            }
            let source = operator.inputs[0];
            let last = channels_last[source];
            let step = step(graph, operator, last, &device)?;
            channels_last[operator.output] = match operator.kind {
                Kind::LayerNorm => true,
                Kind::Add => false,
                _ => last,
            };
            nodes.push(Node {
                step,
                inputs: operator.inputs.clone(),
                output: operator.output,
                relu: operator.relu,
            });
        }
        last_use[graph.output] = usize::MAX;
        Ok(Self {
            nodes,
            last_use,
            values: vec![None; graph.shapes.len()],
            input: None,
            output: graph.output,
            input_shape: graph.shapes[0].clone(),
            output_shape: graph.shapes[graph.output].clone(),
            device,
        })
    }
}

fn step(graph: &Graph, operator: &Operator, channels_last: bool, device: &Device) -> Result<Step> {
    let vector = |values: Vec<f32>| Tensor::<1>::from_data(values.as_slice(), device);
    let [top, left, bottom, right] = operator.pads;
    let (stride, padding) = ([operator.stride; 2], [(top, bottom), (left, right)]);
    Ok(match operator.kind {
        Kind::Conv if channels_last => {
            let (weight, shape) = graph.weight_f32(operator)?;
            let matrix =
                Tensor::<2>::from_data(TensorData::new(weight, [shape[0], shape[3]]), device)
                    .transpose();
            Step::Pointwise {
                weight: contiguous(matrix, device)?,
                bias: vector(graph.bias_f32(operator)?),
            }
        }
        Kind::Conv | Kind::Depthwise => {
            let (weight, shape) = graph.weight_f32(operator)?;
            let (outputs, kernel_h, kernel_w) = (shape[0], shape[1], shape[2]);
            let inputs = shape.get(3).copied().unwrap_or(1);
            let filter = kernel_h * kernel_w * inputs;
            let arranged: Vec<f32> = weight
                .chunks_exact(filter)
                .flat_map(|filter| to_nchw(filter, &[kernel_h, kernel_w, inputs]))
                .collect();
            let weight = TensorData::new(arranged, [outputs, inputs, kernel_h, kernel_w]);
            let groups = if operator.kind == Kind::Depthwise { outputs } else { 1 };
            Step::Conv {
                weight: Tensor::from_data(weight, device),
                bias: vector(graph.bias_f32(operator)?),
                options: ConvOptions::new_with_padding(stride, padding, [1, 1], groups),
            }
        }
        Kind::Dense => {
            let (weight, shape) = graph.weight_f32(operator)?;
            let (outputs, inputs) = (shape[0], shape[1]);
            // After a flatten the rows follow the map's order, which is NCHW here.
            let flattened = graph
                .operators
                .iter()
                .find(|op| op.kind == Kind::Flatten && op.output == operator.inputs[0]);
            let arranged: Vec<f32> = match flattened {
                Some(flatten) => {
                    let map = &graph.shapes[flatten.inputs[0]];
                    weight.chunks_exact(inputs).flat_map(|row| to_nchw(row, map)).collect()
                }
                None => weight,
            };
            let matrix =
                Tensor::<2>::from_data(TensorData::new(arranged, [outputs, inputs]), device)
                    .transpose();
            Step::Dense {
                weight: contiguous(matrix, device)?,
                bias: vector(graph.bias_f32(operator)?),
            }
        }
        Kind::MaxPool => {
            let mut options = MaxPoolOptions::new(operator.kernel);
            options.stride = stride;
            options.padding = padding;
            Step::MaxPool(options)
        }
        Kind::AvgPool => {
            let map = &graph.shapes[operator.inputs[0]];
            if operator.kernel[..] == map[..2] && operator.pads == [0; 4] {
                Step::GlobalPool
            } else {
                let mut options = AvgPoolOptions::new(operator.kernel);
                options.stride = stride;
                options.padding = padding;
                options.count_include_pad = false;
                Step::AvgPool(options)
            }
        }
        Kind::Flatten => Step::Flatten,
        Kind::Add => Step::Add { to_nchw: channels_last },
        Kind::LayerNorm => Step::LayerNorm {
            gamma: vector(graph.weight_f32(operator)?.0),
            beta: vector(graph.bias_f32(operator)?),
            eps: operator.eps,
        },
        Kind::Gelu => Step::Gelu,
        Kind::Grn => {
            let row = |values: Vec<f32>| {
                let channels = values.len();
                Tensor::<4>::from_data(TensorData::new(values, [1, 1, 1, channels]), device)
            };
            Step::Grn {
                gamma: row(graph.weight_f32(operator)?.0),
                beta: row(graph.bias_f32(operator)?),
                eps: operator.eps,
            }
        }
        Kind::Softmax => Step::Softmax,
    })
}

/// The tensor with its elements in order, as a loaded record has them.
fn contiguous(tensor: Tensor<2>, device: &Device) -> Result<Tensor<2>> {
    let shape = tensor.dims();
    let values = tensor.into_data().try_to_vec::<f32>().map_err(|error| format!("{error:?}"))?;
    Ok(Tensor::from_data(TensorData::new(values, shape), device))
}

impl Step {
    fn apply(&self, inputs: &[Value]) -> Value {
        match self {
            Step::Conv { weight, bias, options } => Value::Map(conv2d(
                inputs[0].map(),
                weight.clone(),
                Some(bias.clone()),
                options.clone(),
            )),
            Step::Pointwise { weight, bias } => {
                Value::Map(linear(inputs[0].map(), weight.clone(), Some(bias.clone())))
            }
            Step::Dense { weight, bias } => {
                Value::Vector(linear(inputs[0].vector(), weight.clone(), Some(bias.clone())))
            }
            Step::MaxPool(options) => Value::Map(max_pool2d(inputs[0].map(), options.clone())),
            Step::AvgPool(options) => Value::Map(avg_pool2d(inputs[0].map(), options.clone())),
            Step::GlobalPool => Value::Map(adaptive_avg_pool2d(inputs[0].map(), [1, 1])),
            Step::Flatten => Value::Vector(inputs[0].map().flatten(1, 3)),
            Step::Add { to_nchw } => {
                let left = inputs[0].map();
                let left = if *to_nchw { left.permute([0, 3, 1, 2]) } else { left };
                Value::Map(left + inputs[1].map())
            }
            Step::LayerNorm { gamma, beta, eps } => {
                let map = inputs[0].map().permute([0, 2, 3, 1]);
                Value::Map(layer_norm(map, gamma.clone(), Some(beta.clone()), *eps))
            }
            Step::Gelu => Value::Map(gelu_approximate(inputs[0].map())),
            Step::Grn { gamma, beta, eps } => {
                let x = inputs[0].map();
                let response = (x.clone() * x.clone()).sum_dim(1).sum_dim(2).sqrt();
                let ratio = response.clone() / (response.mean_dim(3) + *eps);
                Value::Map(x.clone() * (ratio * gamma.clone()) + beta.clone() + x)
            }
            Step::Softmax => Value::Vector(softmax(inputs[0].vector(), 1)),
        }
    }
}

impl Session for Burn {
    fn set_input(&mut self, input: &Values) -> Result<()> {
        let values = to_nchw(input.f32()?, &self.input_shape);
        let shape = nchw_shape(&self.input_shape);
        self.input = Some(match shape[..] {
            [n, c, h, w] => {
                Value::Map(Tensor::from_data(TensorData::new(values, [n, c, h, w]), &self.device))
            }
            _ => Value::Vector(Tensor::from_data(
                TensorData::new(values, [shape[0], shape[1]]),
                &self.device,
            )),
        });
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        self.values[0] = self.input.clone();
        for (number, node) in self.nodes.iter().enumerate() {
            let inputs: Vec<Value> = node
                .inputs
                .iter()
                .map(|&input| {
                    let slot = &mut self.values[input];
                    let value =
                        if self.last_use[input] == number { slot.take() } else { slot.clone() };
                    value.ok_or("value read before it was written")
                })
                .collect::<std::result::Result<_, _>>()?;
            let value = node.step.apply(&inputs);
            self.values[node.output] = Some(match (node.relu, value) {
                (false, value) => value,
                (true, Value::Map(tensor)) => Value::Map(relu(tensor)),
                (true, Value::Vector(tensor)) => Value::Vector(relu(tensor)),
            });
        }
        Ok(())
    }

    fn output(&self) -> Result<Values> {
        let value = self.values[self.output].as_ref().ok_or("no run yet")?;
        let data = match value {
            Value::Map(tensor) => tensor.to_data(),
            Value::Vector(tensor) => tensor.to_data(),
        };
        let values = data.try_to_vec::<f32>().map_err(|error| format!("{error:?}"))?;
        Ok(Values::F32(to_nhwc(&values, &self.output_shape)))
    }
}
