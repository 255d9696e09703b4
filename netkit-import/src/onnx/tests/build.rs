//! ONNX files made on the spot.

use crate::onnx::Model;
use crate::onnx::wire::{
    AttributeProto, DimensionProto, DimensionValue, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use bytes::Bytes;
use prost::Message;

/// The value of an attribute.
#[derive(Clone)]
pub(super) enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
    Text(&'static str),
    Tensor(TensorProto),
}

impl From<i64> for Attribute {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f32> for Attribute {
    fn from(value: f32) -> Self {
        Self::Float(value)
    }
}

impl<const N: usize> From<[i64; N]> for Attribute {
    fn from(values: [i64; N]) -> Self {
        Self::Ints(values.into())
    }
}

impl From<&'static str> for Attribute {
    fn from(text: &'static str) -> Self {
        Self::Text(text)
    }
}

impl From<TensorProto> for Attribute {
    fn from(tensor: TensorProto) -> Self {
        Self::Tensor(tensor)
    }
}

/// A graph under construction.
#[derive(Clone)]
pub(super) struct Build {
    pub(super) graph: GraphProto,
    opset: i64,
}

pub(super) fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.into(),
        data_type: Some(1),
        raw_data: Some(values.iter().flat_map(|value| value.to_le_bytes()).collect()),
        ..TensorProto::default()
    }
}

pub(super) fn integers(name: &str, dims: &[i64], values: &[i64]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.into(),
        data_type: Some(7),
        int64_data: values.into(),
        ..TensorProto::default()
    }
}

/// A described value; sizes in numbers, symbols otherwise.
pub(super) fn port(name: &str, dims: &[&str]) -> ValueInfoProto {
    let dimension = |text: &&str| DimensionProto {
        value: Some(match text.parse() {
            Ok(size) => DimensionValue::Fixed(size),
            Err(_) => DimensionValue::Symbol((*text).into()),
        }),
    };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto {
            tensor_type: Some(TensorTypeProto {
                elem_type: Some(1),
                shape: Some(TensorShapeProto { dim: dims.iter().map(dimension).collect() }),
            }),
        }),
    }
}

pub(super) fn bytes(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

impl Build {
    pub(super) fn new() -> Self {
        Self { graph: GraphProto::default(), opset: 17 }
    }

    pub(super) fn opset(mut self, opset: i64) -> Self {
        self.opset = opset;
        self
    }

    pub(super) fn input(mut self, name: &str, dims: &[&str]) -> Self {
        self.graph.input.push(bytes(&port(name, dims)));
        self
    }

    /// An output that tells no shape.
    pub(super) fn output(mut self, name: &str) -> Self {
        let info = ValueInfoProto { name: Some(name.into()), r#type: None };
        self.graph.output.push(bytes(&info));
        self
    }

    pub(super) fn constant(mut self, tensor: TensorProto) -> Self {
        self.graph.initializer.push(bytes(&tensor));
        self
    }

    pub(super) fn floats(self, name: &str, dims: &[i64], values: &[f32]) -> Self {
        self.constant(floats(name, dims, values))
    }

    pub(super) fn integers(self, name: &str, values: &[i64]) -> Self {
        self.constant(integers(name, &[values.len() as i64], values))
    }

    /// A node whose name is its output's.
    pub(super) fn node(
        mut self,
        operator: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[(&str, Attribute)],
    ) -> Self {
        let attribute = |(name, value): &(&str, Attribute)| {
            let mut proto =
                AttributeProto { name: Some((*name).into()), ..AttributeProto::default() };
            let kind = match value.clone() {
                Attribute::Float(value) => {
                    proto.f = Some(value);
                    1
                }
                Attribute::Int(value) => {
                    proto.i = Some(value);
                    2
                }
                Attribute::Text(text) => {
                    proto.s = Some(text.as_bytes().into());
                    3
                }
                Attribute::Tensor(tensor) => {
                    proto.t = Some(Box::new(tensor));
                    4
                }
                Attribute::Ints(values) => {
                    proto.ints = values;
                    7
                }
            };
            proto.r#type = Some(kind);
            bytes(&proto)
        };
        self.graph.node.push(bytes(&NodeProto {
            input: inputs.iter().map(|&name| name.into()).collect(),
            output: vec![output.into()],
            name: Some(output.into()),
            op_type: Some(operator.into()),
            attribute: attributes.iter().map(attribute).collect(),
            domain: None,
        }));
        self
    }

    pub(super) fn file(&self) -> Bytes {
        let opset = OperatorSetIdProto { domain: None, version: Some(self.opset) };
        bytes(&ModelProto { graph: Some(self.graph.clone()), opset_import: vec![bytes(&opset)] })
    }

    pub(super) fn model(&self) -> Model {
        Model::parse(self.file()).unwrap()
    }
}
