//! One ONNX node to one node of the graph, a family of operators a file.

mod convolution;
mod dense;
mod elementwise;
mod normalization;
mod pooling;

use super::constant::Constants;
use super::import::Bound;
use super::model::Node;
use crate::graph::{Graph, Op, ValueId};
use crate::obstacle::Refusal;
use crate::onnx::constant::Constant;
use crate::view::View;
use netkit_core::tensor::Shape;
use std::collections::HashMap;

/// What a node becomes.
#[derive(Debug)]
pub(super) struct Converted {
    pub(super) op: Op,
    pub(super) input: ValueId,
    /// The output as it is stored.
    pub(super) shape: Shape,
    /// The output as the source sees it.
    pub(super) view: View,
}

/// A node with what is known of its inputs.
pub(super) struct Operands<'a, 'm> {
    pub(super) node: &'m Node,
    pub(super) opset: i64,
    pub(super) graph: &'a Graph,
    pub(super) bound: &'a HashMap<&'m str, Bound>,
    pub(super) constants: &'a mut Constants<'m>,
    /// How many more weights may be copied out of the file.
    pub(super) budget: &'a mut usize,
}

/// Converts the operands of one operator.
pub(super) type Convert = fn(&mut Operands<'_, '_>) -> Result<Converted, Refusal>;

/// How each operator of the default domain is converted. Operators that only move elements are in
/// [`layout::OPERATORS`](super::layout::OPERATORS).
pub(super) const CONVERTERS: &[(&str, Convert)] = &[
    ("Conv", convolution::conv),
    ("Gemm", dense::gemm),
    ("MatMul", dense::matmul),
    ("MaxPool", pooling::max_pool),
    ("AveragePool", pooling::average_pool),
    ("GlobalMaxPool", pooling::global_max_pool),
    ("GlobalAveragePool", pooling::global_average_pool),
    ("ReduceMean", pooling::reduce_mean),
    ("BatchNormalization", normalization::batch_normalization),
    ("Add", elementwise::arithmetic),
    ("Sub", elementwise::arithmetic),
    ("Mul", elementwise::arithmetic),
    ("Div", elementwise::arithmetic),
    ("Relu", elementwise::activation),
    ("LeakyRelu", elementwise::activation),
    ("Sigmoid", elementwise::activation),
    ("Tanh", elementwise::activation),
    ("Clip", elementwise::activation),
    ("Softmax", elementwise::activation),
];

/// How an operator of the default domain is converted, if it is.
pub(super) fn converter(operator: &str) -> Option<Convert> {
    CONVERTERS.iter().find(|(name, _)| *name == operator).map(|(_, convert)| *convert)
}

/// Whether the operator's output has the shape of its first input and each element of it depends on
/// the same element of the input, constants aside.
pub(super) fn keeps_shape(operator: &str) -> bool {
    matches!(
        operator,
        "Relu"
            | "LeakyRelu"
            | "Sigmoid"
            | "Tanh"
            | "Clip"
            | "Softmax"
            | "LogSoftmax"
            | "Elu"
            | "Selu"
            | "Celu"
            | "PRelu"
            | "HardSigmoid"
            | "HardSwish"
            | "Gelu"
            | "Mish"
            | "Softplus"
            | "Erf"
            | "Abs"
            | "Neg"
            | "Exp"
            | "Log"
            | "Sqrt"
            | "Pow"
            | "Add"
            | "Sub"
            | "Mul"
            | "Div"
            | "BatchNormalization"
            | "LayerNormalization"
            | "InstanceNormalization"
            | "Cast"
            | "QuantizeLinear"
            | "DequantizeLinear"
    )
}

/// What helps with an operator that is not converted.
pub(super) fn help_with(operator: &str) -> &'static str {
    match operator {
        "QuantizeLinear"
        | "DequantizeLinear"
        | "QLinearConv"
        | "QLinearMatMul"
        | "QGemm"
        | "ConvInteger"
        | "MatMulInteger"
        | "DynamicQuantizeLinear" => "convert the float model the quantized one was made from",
        "LogSoftmax" => "use Softmax: the order of the classes is the same",
        "Concat" | "Sum" | "Max" | "Min" | "Split" => {
            "only sequential models can be converted: one computed input an operator"
        }
        "HardSwish" | "HardSigmoid" | "Elu" | "Selu" | "Gelu" | "PRelu" | "Softplus" | "Mish"
        | "Celu" | "Erf" | "ThresholdedRelu" => {
            "train with Relu, Relu6, LeakyRelu, Sigmoid or Tanh instead"
        }
        "LSTM" | "GRU" | "RNN" | "If" | "Loop" | "Scan" => {
            "recurrent models and control flow cannot be converted"
        }
        "ArgMax" | "TopK" | "NonMaxSuppression" => {
            "leave it out of the model and do it on the output"
        }
        "ConvTranspose" | "Resize" | "Upsample" => "upsampling cannot be converted",
        "LayerNormalization" | "InstanceNormalization" | "GroupNormalization" => {
            "use BatchNormalization"
        }
        "Pad" => "put the padding into the convolution that follows",
        _ => "cut the model before it, or replace it by operators that can be converted",
    }
}

impl<'m> Operands<'_, 'm> {
    /// Input `index`, which must be computed by the graph.
    fn computed(&mut self, index: usize) -> Result<(ValueId, View), Refusal> {
        let name = self.name(index)?;
        match self.bound.get(name) {
            Some(Bound::Value(value, view)) => Ok((*value, view.clone())),
            _ => Err(Refusal::new(format!("its input `{name}` is a constant"))),
        }
    }

    /// Whether input `index` is given and constant.
    fn is_constant(&mut self, index: usize) -> bool {
        self.node.input(index).is_some_and(|name| self.constants.get(name).is_some())
    }

    /// Input `index`, which must be a constant.
    fn constant(&mut self, index: usize) -> Result<Constant, Refusal> {
        let name = self.name(index)?;
        self.constants.get(name).unwrap_or_else(|| {
            Err(Refusal::new(format!("its operand `{name}` is computed at run time"))
                .help("only constant weights can be converted"))
        })
    }

    /// Input `index` if it is given; it must then be a constant.
    fn optional_constant(&mut self, index: usize) -> Result<Option<Constant>, Refusal> {
        self.node.input(index).is_some().then(|| self.constant(index)).transpose()
    }

    fn name(&self, index: usize) -> Result<&'m str, Refusal> {
        let node = self.node;
        node.input(index)
            .ok_or_else(|| Refusal::new(format!("invalid ONNX: input {index} is not given")))
    }

    /// Height, width and channels of a value that an operator reads as a `[1, channels, height,
    /// width]` map.
    fn map(&self, value: ValueId, view: &View) -> Result<(usize, usize, usize), Refusal> {
        let dims = view.dims();
        let &[batch, channels, height, width] = dims.as_slice() else {
            let what = match dims.len() {
                3 => "one-dimensional sequences",
                5 => "volumes",
                _ => "tensors of this rank",
            };
            return Err(Refusal::new(format!(
                "its input has the shape {dims:?}; only two-dimensional maps are supported, no {what}"
            )));
        };
        if batch != 1 {
            return Err(Refusal::new(format!(
                "a batch of {batch} maps; netkit runs one at a time"
            ))
            .help("give the input shape for a batch of 1: --input-shape"));
        }
        let stored = self.graph.shape(value).as_map();
        if stored != Some((height, width, channels)) || *view != View::nchw(height, width, channels)
        {
            return Err(Refusal::new(
                "its input would have to be transposed or reshaped to another map at run time",
            )
            .help("leave out the Transpose or Reshape before it"));
        }
        Ok((height, width, channels))
    }

    /// The elements of a constant in the order of `view`, counted against the budget.
    fn weights(&mut self, constant: &Constant, view: &View) -> Result<Vec<f32>, Refusal> {
        match self.budget.checked_sub(view.elements()) {
            Some(left) => *self.budget = left,
            None => return Err(Refusal::new("too many operators share the same weights")),
        }
        let values = constant.floats_through(view)?;
        if values.iter().any(|value| !value.is_finite()) {
            return Err(Refusal::new("its weights are not all finite numbers")
                .help("the training diverged, or the file is damaged"));
        }
        Ok(values)
    }
}

/// A stored map of these sizes.
fn map_shape(height: usize, width: usize, channels: usize) -> Result<Shape, Refusal> {
    stored(&[height, width, channels])
}

/// A stored tensor of these sizes.
pub(super) fn stored(dims: &[usize]) -> Result<Shape, Refusal> {
    let narrow: Option<Vec<u32>> = dims.iter().map(|&dim| u32::try_from(dim).ok()).collect();
    narrow
        .and_then(|dims| Shape::new(&dims))
        .ok_or_else(|| Refusal::new(format!("a tensor of shape {dims:?} is too large")))
}
