//! The parts of ONNX's protobuf schema that the importer reads, field numbers as in `onnx.proto`.
//! Fields that are not listed are skipped while decoding.
//!
//! Repeated messages are kept as undecoded slices of the file. A protobuf message of two bytes may
//! stand for a struct of hundreds, so decoding all of a hostile file at once could allocate hundreds of
//! times its size; this way the factor stays near the size of one slice handle, and the limits of
//! [`super::model`] are checked before any list is decoded.

use bytes::Bytes;
use prost::{Message, Oneof};

/// The file.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ModelProto {
    #[prost(message, optional, tag = "7")]
    pub(crate) graph: Option<GraphProto>,
    /// Each an [`OperatorSetIdProto`].
    #[prost(bytes = "bytes", repeated, tag = "8")]
    pub(crate) opset_import: Vec<Bytes>,
}

/// The version of an operator set that the nodes are written in.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OperatorSetIdProto {
    #[prost(string, optional, tag = "1")]
    pub(crate) domain: Option<String>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) version: Option<i64>,
}

/// Nodes, constants and interface.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GraphProto {
    /// Each a [`NodeProto`].
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(crate) node: Vec<Bytes>,
    /// Each a [`TensorProto`].
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub(crate) initializer: Vec<Bytes>,
    /// Each a [`ValueInfoProto`].
    #[prost(bytes = "bytes", repeated, tag = "11")]
    pub(crate) input: Vec<Bytes>,
    /// Each a [`ValueInfoProto`].
    #[prost(bytes = "bytes", repeated, tag = "12")]
    pub(crate) output: Vec<Bytes>,
    /// Each a [`ValueInfoProto`].
    #[prost(bytes = "bytes", repeated, tag = "13")]
    pub(crate) value_info: Vec<Bytes>,
    /// Sparse constants: only whether there are any.
    #[prost(bytes = "bytes", repeated, tag = "15")]
    pub(crate) sparse_initializer: Vec<Bytes>,
}

/// One operator applied to named values.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub(crate) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) output: Vec<String>,
    #[prost(string, optional, tag = "3")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(crate) op_type: Option<String>,
    /// Each an [`AttributeProto`].
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub(crate) attribute: Vec<Bytes>,
    #[prost(string, optional, tag = "7")]
    pub(crate) domain: Option<String>,
}

/// A named attribute of a node.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AttributeProto {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(float, optional, tag = "2")]
    pub(crate) f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) i: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(crate) s: Option<Bytes>,
    #[prost(message, optional, boxed, tag = "5")]
    pub(crate) t: Option<Box<TensorProto>>,
    #[prost(float, repeated, tag = "7")]
    pub(crate) floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub(crate) ints: Vec<i64>,
    /// Which of the fields holds the value; writers of the schema's first versions left it out.
    #[prost(int32, optional, tag = "20")]
    pub(crate) r#type: Option<i32>,
}

/// A constant tensor.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) dims: Vec<i64>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) data_type: Option<i32>,
    #[prost(float, repeated, tag = "4")]
    pub(crate) float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub(crate) int32_data: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub(crate) int64_data: Vec<i64>,
    #[prost(string, optional, tag = "8")]
    pub(crate) name: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub(crate) raw_data: Option<Bytes>,
    /// 1: the elements are in another file.
    #[prost(int32, optional, tag = "14")]
    pub(crate) data_location: Option<i32>,
}

/// The name, element type and shape of a value.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ValueInfoProto {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(crate) r#type: Option<TypeProto>,
}

/// A value's type; other kinds than tensors are not read.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TypeProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) tensor_type: Option<TensorTypeProto>,
}

/// Element type and shape.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorTypeProto {
    #[prost(int32, optional, tag = "1")]
    pub(crate) elem_type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<TensorShapeProto>,
}

/// A shape, possibly symbolic.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dim: Vec<DimensionProto>,
}

/// One dimension.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DimensionProto {
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub(crate) value: Option<DimensionValue>,
}

/// A number or a symbol.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum DimensionValue {
    #[prost(int64, tag = "1")]
    Fixed(i64),
    #[prost(string, tag = "2")]
    Symbol(String),
}
