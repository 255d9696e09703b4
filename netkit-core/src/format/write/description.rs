//! A model in memory that owns its parts.

use alloc::string::String;
use alloc::vec::Vec;

use crate::format::{CaseInput, Layer, NetworkKind, NkFile, TensorView};
use crate::quant::Quant;
use crate::tensor::{DType, Shape};

/// A whole model in memory that it owns: what a file holds, without offsets, counts and flags,
/// which follow.
///
/// ```
/// use netkit_core::format::{Activation, Dense, Layer, NetworkKind};
/// use netkit_core::format::{ModelDescription, OwnedPair, OwnedTensor, TensorData};
/// use netkit_core::tensor::Shape;
///
/// let shape = |dims: &[u32]| Shape::new(dims).unwrap();
/// let mut model = ModelDescription::new(NetworkKind::Mlp, shape(&[1, 2]));
/// model.push(
///     Layer::Dense(Dense { units: 1, activation: Activation::Sigmoid, alpha: 0.01 }),
///     [OwnedPair {
///         weight: OwnedTensor { shape: shape(&[1, 2]), data: TensorData::F32(vec![0.5, -0.5]) },
///         bias: OwnedTensor { shape: shape(&[1]), data: TensorData::F32(vec![0.1]) },
///     }],
/// );
/// let bytes = model.to_bytes().unwrap();
/// assert_eq!(&bytes[..4], b"NKIT");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ModelDescription {
    /// The kind of network.
    pub kind: NetworkKind,
    /// The input: `[rows, features]` or `[height, width, channels]`.
    pub input: Shape,
    /// The layers in execution order.
    pub layers: Vec<Layer>,
    /// The tensor pairs of all layers, in the order in which the layers take them.
    pub pairs: Vec<OwnedPair>,
    /// How each pair is quantized; `None` makes a float model.
    pub quant: Option<Vec<OwnedQuant>>,
    /// Inputs with their outputs.
    pub cases: Vec<OwnedCase>,
    /// How far an output may be from that of a case, absolutely. Not written where there are no
    /// cases.
    pub tolerance: f32,
}

/// A weight tensor, or scales, and the bias tensor, or shifts, that goes with it.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedPair {
    /// Weights or scales.
    pub weight: OwnedTensor,
    /// Biases or shifts: always a vector.
    pub bias: OwnedTensor,
}

/// A tensor with its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedTensor {
    /// The dimensions, outermost first.
    pub shape: Shape,
    /// The elements, row-major.
    pub data: TensorData,
}

/// The elements of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorData {
    /// Of a float model.
    F32(Vec<f32>),
    /// Weights of a quantized model.
    I8(Vec<i8>),
    /// Biases of a quantized model.
    I32(Vec<i32>),
}

impl TensorData {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::I8(values) => values.len(),
            Self::I32(values) => values.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element type.
    pub const fn dtype(&self) -> DType {
        match self {
            Self::F32(_) => DType::F32,
            Self::I8(_) => DType::I8,
            Self::I32(_) => DType::I32,
        }
    }
}

/// How the tensors of a pair are quantized.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedQuant {
    /// Of what the layer reads.
    pub input: Quant,
    /// Of the weights where all channels share a scale; else the largest of them. The zero point is
    /// 0.
    pub weight: Quant,
    /// Of the biases; nothing uses it.
    pub bias: Quant,
    /// Of what the layer gives.
    pub output: Quant,
    /// The weight scale of each output channel; empty where all channels share one.
    pub channel_scales: Vec<f32>,
}

/// An input with the output that the model must give for it.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedCase {
    /// What the case is called, 1 to 127 bytes, no two the same.
    pub name: String,
    /// The class, if the case has one.
    pub label: Option<u32>,
    /// The input, flat and row-major.
    pub input: CaseData,
    /// The output, flat and row-major; of int8 models too in real numbers.
    pub expected: Vec<f32>,
}

/// The input values of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseData {
    /// For a float model.
    F32(Vec<f32>),
    /// For a quantized model.
    I8(Vec<i8>),
}

impl ModelDescription {
    /// A float model without layers yet.
    pub const fn new(kind: NetworkKind, input: Shape) -> Self {
        Self {
            kind,
            input,
            layers: Vec::new(),
            pairs: Vec::new(),
            quant: None,
            cases: Vec::new(),
            tolerance: 1e-5,
        }
    }

    /// Adds a layer behind the last, with the tensor pairs that it takes.
    pub fn push(&mut self, layer: Layer, pairs: impl IntoIterator<Item = OwnedPair>) {
        self.layers.push(layer);
        self.pairs.extend(pairs);
    }

    /// What a file holds.
    pub fn from_file(file: &NkFile<'_>) -> Self {
        let header = file.header();
        Self {
            kind: header.kind,
            input: header.input,
            layers: file.layers().map(|record| record.layer).collect(),
            pairs: file
                .pairs()
                .map(|pair| OwnedPair {
                    weight: to_owned(&pair.weight),
                    bias: to_owned(&pair.bias),
                })
                .collect(),
            quant: header.is_quantized().then(|| {
                file.quant_records()
                    .map(|record| OwnedQuant {
                        input: record.input,
                        weight: record.weight,
                        bias: record.bias,
                        output: record.output,
                        channel_scales: record.channel_scales.iter().collect(),
                    })
                    .collect()
            }),
            cases: file
                .cases()
                .map(|case| OwnedCase {
                    name: case.name.into(),
                    label: case.label,
                    input: match case.input {
                        CaseInput::F32(values) => CaseData::F32(values.iter().collect()),
                        CaseInput::I8(values) => CaseData::I8(values.iter().collect()),
                    },
                    expected: case.expected.iter().collect(),
                })
                .collect(),
            tolerance: file.tolerance().unwrap_or(1e-5),
        }
    }
}

fn to_owned(view: &TensorView<'_>) -> OwnedTensor {
    let data = match view.dtype {
        DType::F32 => TensorData::F32(view.as_f32().into_iter().flatten().collect()),
        DType::I8 => TensorData::I8(view.as_i8().into_iter().flatten().collect()),
        DType::I32 => TensorData::I32(view.as_i32().into_iter().flatten().collect()),
    };
    OwnedTensor { shape: view.shape, data }
}
