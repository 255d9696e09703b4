//! What an ONNX model computes, by the book: in double precision, in the source's own layout, node by
//! node, with nothing folded, fused or permuted. It is the other opinion that a conversion is held
//! against, so it shares as little as it can with the importer.

use super::constant::{Constants, axis_index};
use super::import::{live_names, live_nodes};
use super::layout;
use super::model::{Model, Node};
use super::window;
use crate::graph::Window;
use crate::obstacle::Refusal;
use crate::view::View;
use std::collections::HashMap;
use std::fmt;

/// Most elements of a tensor.
const MAX_ELEMENTS: usize = 1 << 28;

/// Why a model could not be evaluated. What converts can be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluateError(String);

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EvaluateError {}

#[derive(Clone, Debug)]
struct Tensor {
    dims: Vec<usize>,
    data: Vec<f64>,
}

impl Tensor {
    fn new(dims: Vec<usize>, data: Vec<f64>) -> Result<Self, Refusal> {
        if elements(&dims)? != data.len() {
            return Err(Refusal::new(format!("{} elements in shape {dims:?}", data.len())));
        }
        Ok(Self { dims, data })
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self { dims: self.dims.clone(), data: self.data.iter().map(|&x| f(x)).collect() }
    }

    /// Batch, channels, height and width.
    fn as_map(&self) -> Result<[usize; 4], Refusal> {
        self.dims.as_slice().try_into().map_err(|_| Refusal::new("a map of another rank than 4"))
    }
}

fn elements(dims: &[usize]) -> Result<usize, Refusal> {
    dims.iter()
        .try_fold(1usize, |product, &dim| product.checked_mul(dim))
        .filter(|&count| count <= MAX_ELEMENTS)
        .ok_or_else(|| Refusal::new(format!("a tensor of shape {dims:?} is too large")))
}

impl Model {
    /// The model's output for one input, both flat in the source's own element order. `input_dims` is
    /// the input's shape, [`Interface::dims`](crate::Interface::dims) of a conversion.
    ///
    /// Plain loops in double precision: for checking a conversion, not for use.
    ///
    /// # Errors
    /// If an operator is none of those that can be converted, or the shapes do not fit.
    pub fn evaluate(&self, input_dims: &[usize], input: &[f32]) -> Result<Vec<f64>, EvaluateError> {
        self.run(input_dims, input).map_err(|refusal| EvaluateError(refusal.into_reason()))
    }

    fn run(&self, input_dims: &[usize], input: &[f32]) -> Result<Vec<f64>, Refusal> {
        let live = live_names(self);
        let inputs: Vec<_> =
            self.inputs.iter().filter(|port| live.contains(port.name.as_str())).collect();
        let ([input_port], [output_port]) = (inputs.as_slice(), self.outputs.as_slice()) else {
            return Err(Refusal::new("only models with one input and output can be evaluated"));
        };
        let input = input.iter().map(|&x| x.into()).collect();
        let mut values = Values { constants: Constants::new(self), computed: HashMap::new() };
        values.computed.insert(&input_port.name, Tensor::new(input_dims.to_vec(), input)?);
        let nodes = live_nodes(self, &live);
        let mut last_use: HashMap<&str, usize> = HashMap::new();
        for (index, node) in nodes.iter().enumerate() {
            last_use.extend(node.inputs.iter().map(|name| (name.as_str(), index)));
        }
        for (index, node) in nodes.into_iter().enumerate() {
            if !values.absorb(node) {
                let output = values.node(node, self.opset)?;
                if let Some(name) = node.outputs.first() {
                    values.computed.insert(name, output);
                }
            }
            for name in node.inputs.iter().filter(|name| **name != output_port.name) {
                if last_use.get(name.as_str()) == Some(&index) {
                    values.computed.remove(name.as_str());
                }
            }
        }
        match values.computed.remove(output_port.name.as_str()) {
            Some(output) => Ok(output.data),
            None => Err(Refusal::new(format!("`{}` is not computed", output_port.name))),
        }
    }
}

struct Values<'m> {
    constants: Constants<'m>,
    computed: HashMap<&'m str, Tensor>,
}

impl<'m> Values<'m> {
    /// Leaves arithmetic on shapes to the constants; weights are rearranged here.
    fn absorb(&mut self, node: &'m Node) -> bool {
        let rearranges_weights = layout::is_layout_operator(&node.operator)
            && node.input(0).is_some_and(|name| self.is_float(name));
        if rearranges_weights {
            return false;
        }
        let computed = &self.computed;
        self.constants.absorb(node, |name| computed.get(name).map(|tensor| tensor.dims.clone()))
    }

    fn is_float(&mut self, name: &str) -> bool {
        self.computed.contains_key(name)
            || matches!(self.constants.get(name), Some(Ok(constant)) if constant.is_float())
    }

    fn tensor(&mut self, node: &Node, index: usize) -> Result<Tensor, Refusal> {
        self.optional(node, index)?
            .ok_or_else(|| Refusal::new(format!("input {index} is not given")))
    }

    fn optional(&mut self, node: &Node, index: usize) -> Result<Option<Tensor>, Refusal> {
        let Some(name) = node.input(index) else { return Ok(None) };
        if let Some(tensor) = self.computed.get(name) {
            return Ok(Some(tensor.clone()));
        }
        match self.constants.get(name) {
            Some(constant) => {
                let constant = constant?;
                let data = constant.floats_through(constant.view())?;
                let data = data.into_iter().map(f64::from).collect();
                Tensor::new(constant.dims(), data).map(Some)
            }
            None => Err(Refusal::new(format!("`{name}` is not computed"))),
        }
    }

    fn node(&mut self, node: &Node, opset: i64) -> Result<Tensor, Refusal> {
        let x = self.tensor(node, 0)?;
        Ok(match node.operator.as_str() {
            "Transpose" => transpose(node, &x)?,
            operator if layout::is_layout_operator(operator) => {
                let constants = &mut self.constants;
                let view = View::contiguous(&x.dims);
                let shape = layout::apply(node, &view, opset, &mut |name| constants.get(name))?;
                Tensor::new(shape.dims(), x.data)?
            }
            "Conv" => conv(node, &x, &self.tensor(node, 1)?, self.optional(node, 2)?.as_ref())?,
            "Gemm" => gemm(node, &x, &self.tensor(node, 1)?, self.optional(node, 2)?.as_ref())?,
            "MatMul" => matmul(&x, &self.tensor(node, 1)?)?,
            "MaxPool" | "AveragePool" => pool(node, &x)?,
            "GlobalMaxPool" => {
                over_pixels(&x, |pixels| pixels.iter().copied().fold(f64::NEG_INFINITY, f64::max))?
            }
            "GlobalAveragePool" => over_pixels(&x, mean)?,
            "ReduceMean" => {
                let mut means = over_pixels(&x, mean)?;
                if node.int_or("keepdims", 1)? == 0 {
                    means.dims.truncate(2);
                }
                means
            }
            "BatchNormalization" => {
                let [gamma, beta, mean, variance] = [1, 2, 3, 4].map(|i| self.tensor(node, i));
                let epsilon = f64::from(node.float_or("epsilon", 1e-5)?);
                batch_normalization(&x, &[gamma?, beta?, mean?, variance?], epsilon)?
            }
            "Add" => broadcast(&x, &self.tensor(node, 1)?, |a, b| a + b)?,
            "Sub" => broadcast(&x, &self.tensor(node, 1)?, |a, b| a - b)?,
            "Mul" => broadcast(&x, &self.tensor(node, 1)?, |a, b| a * b)?,
            "Div" => broadcast(&x, &self.tensor(node, 1)?, |a, b| a / b)?,
            "Relu" => x.map(|x| x.max(0.0)),
            "LeakyRelu" => {
                let slope = f64::from(node.float_or("alpha", 0.01)?);
                x.map(|x| if x < 0.0 { slope * x } else { x })
            }
            "Sigmoid" => x.map(|x| 1.0 / (1.0 + (-x).exp())),
            "Tanh" => x.map(f64::tanh),
            "Clip" => {
                let mut limit = |index, attribute| match opset {
                    ..11 => Ok(node.float(attribute)?.map(f64::from)),
                    _ => Ok(self.optional(node, index)?.and_then(|it| it.data.first().copied())),
                };
                let low = limit(1, "min")?.unwrap_or(f64::NEG_INFINITY);
                let high = limit(2, "max")?.unwrap_or(f64::INFINITY);
                x.map(|x| x.max(low).min(high))
            }
            "Softmax" => softmax(node, &x, opset)?,
            other => return Err(Refusal::new(format!("{other} cannot be evaluated"))),
        })
    }
}

/// Calls `f` with every index below `dims`, in row-major order.
fn for_each_index(dims: &[usize], mut f: impl FnMut(&[usize])) {
    if dims.contains(&0) {
        return;
    }
    let mut index = vec![0; dims.len()];
    loop {
        f(&index);
        let Some(axis) = (0..dims.len()).rev().find(|&axis| index[axis] + 1 < dims[axis]) else {
            return;
        };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

fn position(index: &[usize], dims: &[usize]) -> usize {
    index.iter().zip(dims).fold(0, |position, (index, dim)| position * dim + index)
}

fn transpose(node: &Node, x: &Tensor) -> Result<Tensor, Refusal> {
    let rank = x.dims.len();
    let perm: Vec<usize> = match node.ints("perm")? {
        Some(perm) => perm.iter().map(|&axis| axis_index(axis, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).rev().collect(),
    };
    let dims: Vec<usize> = perm.iter().map(|&axis| x.dims[axis]).collect();
    let mut data = Vec::with_capacity(x.data.len());
    let mut from = vec![0; rank];
    for_each_index(&dims, |index| {
        perm.iter().zip(index).for_each(|(&axis, &i)| from[axis] = i);
        data.push(x.data[position(&from, &x.dims)]);
    });
    Tensor::new(dims, data)
}

/// Calls `f` for every tap of a window: the input position, or `None` in the padding.
fn for_each_tap(
    window: &Window,
    (height, width): (usize, usize),
    (out_row, out_column): (usize, usize),
    mut f: impl FnMut(usize, usize, Option<(usize, usize)>),
) {
    let inside = |out: usize, stride: u32, tap: usize, dilation: u32, start: u32, size: usize| {
        (out * stride as usize + tap * dilation as usize)
            .checked_sub(start as usize)
            .filter(|&at| at < size)
    };
    let (stride, dilation, padding) = (window.stride, window.dilation, window.padding);
    for tap_row in 0..window.kernel.0 as usize {
        let row = inside(out_row, stride.0, tap_row, dilation.0, padding.top, height);
        for tap_column in 0..window.kernel.1 as usize {
            let column = inside(out_column, stride.1, tap_column, dilation.1, padding.left, width);
            f(tap_row, tap_column, row.zip(column));
        }
    }
}

fn conv(
    node: &Node,
    x: &Tensor,
    filter: &Tensor,
    bias: Option<&Tensor>,
) -> Result<Tensor, Refusal> {
    let [batch, channels, height, width] = x.as_map()?;
    let [filters, group_channels, kernel_h, kernel_w] = filter.as_map()?;
    let groups = usize::try_from(node.int_or("group", 1)?).unwrap_or(0);
    if groups == 0 || group_channels * groups != channels || !filters.is_multiple_of(groups) {
        return Err(Refusal::new("the filter does not fit the input"));
    }
    if bias.is_some_and(|bias| bias.data.len() != filters) {
        return Err(Refusal::new("the bias does not fit the filter"));
    }
    let window = window::resolve(node, (height, width), (kernel_h, kernel_w))?;
    let dims = vec![batch, filters, window.output.0 as usize, window.output.1 as usize];
    let mut data = Vec::with_capacity(elements(&dims)?);
    for_each_index(&dims, |index| {
        let &[n, f, row, column] = index else { return };
        let mut sum = bias.map_or(0.0, |bias| bias.data[f]);
        let first = f / (filters / groups) * group_channels;
        for_each_tap(&window, (height, width), (row, column), |tap_h, tap_w, at| {
            let Some((h, w)) = at else { return };
            let weights = position(&[f, 0, tap_h, tap_w], &filter.dims);
            let pixel = position(&[n, first, h, w], &x.dims);
            for c in 0..group_channels {
                sum += filter.data[weights + c * kernel_h * kernel_w]
                    * x.data[pixel + c * height * width];
            }
        });
        data.push(sum);
    });
    Tensor::new(dims, data)
}

fn pool(node: &Node, x: &Tensor) -> Result<Tensor, Refusal> {
    let [batch, channels, height, width] = x.as_map()?;
    let kernel = node.ints("kernel_shape")?.unwrap_or(&[]);
    let &[kernel_h, kernel_w] = kernel else { return Err(Refusal::new("no kernel_shape")) };
    let size = |k: i64| usize::try_from(k).map_err(|_| Refusal::new("a negative kernel"));
    let window = window::resolve(node, (height, width), (size(kernel_h)?, size(kernel_w)?))?;
    let dims = vec![batch, channels, window.output.0 as usize, window.output.1 as usize];
    let mut data = Vec::with_capacity(elements(&dims)?);
    for_each_index(&dims, |index| {
        let &[n, c, row, column] = index else { return };
        let mut taps = Vec::new();
        for_each_tap(&window, (height, width), (row, column), |_, _, at| {
            taps.extend(at.map(|(h, w)| x.data[position(&[n, c, h, w], &x.dims)]));
        });
        data.push(match node.operator.as_str() {
            "MaxPool" => taps.into_iter().fold(f64::NEG_INFINITY, f64::max),
            _ => mean(&taps),
        });
    });
    Tensor::new(dims, data)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn over_pixels(x: &Tensor, f: impl Fn(&[f64]) -> f64) -> Result<Tensor, Refusal> {
    let [batch, channels, height, width] = x.as_map()?;
    let data = x.data.chunks_exact((height * width).max(1)).map(f).collect();
    Tensor::new(vec![batch, channels, 1, 1], data)
}

fn gemm(node: &Node, a: &Tensor, b: &Tensor, c: Option<&Tensor>) -> Result<Tensor, Refusal> {
    let turned = |tensor: &Tensor, flag: &str| -> Result<Tensor, Refusal> {
        let &[rows, columns] = tensor.dims.as_slice() else {
            return Err(Refusal::new("an operand that is no matrix"));
        };
        if node.int_or(flag, 0)? == 0 {
            return Ok(tensor.clone());
        }
        let at = |i: usize| tensor.data[i % rows * columns + i / rows];
        Tensor::new(vec![columns, rows], (0..rows * columns).map(at).collect())
    };
    let (alpha, beta) = (node.float_or("alpha", 1.0)?, node.float_or("beta", 1.0)?);
    let product = matmul(&turned(a, "transA")?, &turned(b, "transB")?)?;
    let product = product.map(|x| x * f64::from(alpha));
    match c {
        Some(c) => broadcast(&product, &c.map(|x| x * f64::from(beta)), |x, y| x + y),
        None => Ok(product),
    }
}

fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor, Refusal> {
    let (Some((&inner, outer)), &[rows, columns]) = (a.dims.split_last(), b.dims.as_slice()) else {
        return Err(Refusal::new("operands that are no matrices"));
    };
    if inner != rows {
        return Err(Refusal::new("matrices that do not fit"));
    }
    let mut dims = outer.to_vec();
    dims.push(columns);
    let mut data = Vec::with_capacity(elements(&dims)?);
    for row in a.data.chunks_exact(inner.max(1)) {
        for column in 0..columns {
            let terms = row.iter().enumerate().map(|(k, x)| x * b.data[k * columns + column]);
            data.push(terms.sum());
        }
    }
    Tensor::new(dims, data)
}

fn batch_normalization(
    x: &Tensor,
    statistics: &[Tensor; 4],
    epsilon: f64,
) -> Result<Tensor, Refusal> {
    let channels = *x.dims.get(1).ok_or_else(|| Refusal::new("no channels"))?;
    if statistics.iter().any(|tensor| tensor.data.len() != channels) {
        return Err(Refusal::new("statistics that do not fit"));
    }
    let [gamma, beta, mean, variance] = statistics;
    let mut data = Vec::with_capacity(x.data.len());
    for_each_index(&x.dims, |index| {
        let (c, value) = (index[1], x.data[position(index, &x.dims)]);
        let deviation = (variance.data[c] + epsilon).sqrt();
        data.push((value - mean.data[c]) / deviation * gamma.data[c] + beta.data[c]);
    });
    Tensor::new(x.dims.clone(), data)
}

fn broadcast(a: &Tensor, b: &Tensor, f: impl Fn(f64, f64) -> f64) -> Result<Tensor, Refusal> {
    let rank = a.dims.len().max(b.dims.len());
    let padded = |dims: &[usize]| [vec![1; rank - dims.len()], dims.to_vec()].concat();
    let (a_dims, b_dims) = (padded(&a.dims), padded(&b.dims));
    let mut dims = Vec::with_capacity(rank);
    for (&x, &y) in a_dims.iter().zip(&b_dims) {
        if x != y && x != 1 && y != 1 {
            return Err(Refusal::new(format!("shapes {:?} and {:?} do not fit", a.dims, b.dims)));
        }
        dims.push(x.max(y));
    }
    let mut data = Vec::with_capacity(elements(&dims)?);
    let at = |index: &[usize], dims: &[usize]| {
        let own = index.iter().zip(dims).map(|(&i, &dim)| if dim == 1 { 0 } else { i });
        position(&own.collect::<Vec<_>>(), dims)
    };
    for_each_index(&dims, |index| {
        data.push(f(a.data[at(index, &a_dims)], b.data[at(index, &b_dims)]));
    });
    Tensor::new(dims, data)
}

fn softmax(node: &Node, x: &Tensor, opset: i64) -> Result<Tensor, Refusal> {
    let rank = x.dims.len();
    let together = opset < 13;
    let axis = node.int_or("axis", if together { 1 } else { -1 })?;
    let axis = if together && axis == rank as i64 { rank } else { axis_index(axis, rank)? };
    let end = if together { rank } else { axis + 1 };
    let (count, step): (usize, usize) =
        (x.dims[axis..end].iter().product(), x.dims[end..].iter().product());
    let mut data = x.data.clone();
    for block in data.chunks_exact_mut((count * step).max(1)) {
        for start in 0..step {
            let along = || (0..count).map(|i| start + i * step);
            let largest = along().map(|at| block[at]).fold(f64::NEG_INFINITY, f64::max);
            let mut sum = 0.0;
            for at in along() {
                block[at] = (block[at] - largest).exp();
                sum += block[at];
            }
            along().for_each(|at| block[at] /= sum);
        }
    }
    Tensor::new(x.dims.clone(), data)
}
