//! An ONNX file decoded and within limits, not yet understood.

use super::constant::Constant;
use super::wire::{
    AttributeProto, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    TensorProto, ValueInfoProto,
};
use crate::obstacle::Refusal;
use bytes::Bytes;
use netkit_core::format::MAGIC;
use prost::Message;
use std::collections::HashMap;
use std::fmt;

/// Longest file that is read: protobuf's own limit for a message.
pub const MAX_FILE_BYTES: usize = i32::MAX as usize;
/// Most nodes, initializers or described values of a graph.
const MAX_ENTRIES: usize = 1 << 16;
/// Most attributes of a node, and of all nodes.
const MAX_ATTRIBUTES: (usize, usize) = (64, 1 << 17);
/// Most dimensions of a tensor.
pub(super) const MAX_RANK: usize = 8;

/// A decoded ONNX model.
///
/// Decoding checks the file's structure and limits only; what netkit makes of the operators is told by
/// [`Model::convert`].
#[derive(Clone, Debug)]
pub struct Model {
    /// Version of the default operator set.
    pub(super) opset: i64,
    pub(super) nodes: Vec<Node>,
    pub(super) initializers: HashMap<String, TensorProto>,
    /// The inputs that are not initializers.
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
    /// Shapes the file declares for values inside the graph and for its outputs.
    pub(super) declared: HashMap<String, Vec<Dimension>>,
    /// Most weights that are copied out of the file: some nodes share theirs, but a small file in
    /// which thousands share a large tensor must not fill the memory.
    pub(super) weight_budget: usize,
}

/// One operator applied to named values.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The node's name, or its position and what it produces.
    pub(super) name: String,
    pub(super) operator: String,
    pub(super) domain: String,
    /// An empty name stands for an optional input that is not given.
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    attributes: Vec<AttributeProto>,
}

/// An input or output of the graph.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) element_type: i32,
    /// `None` if the file does not even tell the rank.
    pub(super) dims: Option<Vec<Dimension>>,
}

/// One axis of a declared shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    Fixed(usize),
    /// A symbol, or `?` where the file has neither number nor symbol.
    Symbol(String),
}

/// Why a file could not be read as ONNX at all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// The file is larger than protobuf allows.
    TooLarge {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The bytes are not a protobuf message of ONNX's schema.
    Protobuf(String),
    /// The bytes begin like an ONNX file and do not go on like one.
    Damaged(String),
    /// The bytes are a `.nk` file.
    AlreadyNk,
    /// The file holds no graph.
    NoGraph,
    /// A list is longer than any real model needs.
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there are.
        count: usize,
    },
    /// Two things share a name that must be unique.
    Duplicate {
        /// The name.
        name: String,
    },
    /// The file does not say which version of the operators it uses.
    NoOpset,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes } => {
                write!(f, "the file has {bytes} bytes, an ONNX file at most {MAX_FILE_BYTES}")
            }
            Self::Protobuf(error) => write!(f, "not an ONNX file: {error}"),
            Self::Damaged(error) => {
                write!(
                    f,
                    "the ONNX file is damaged, or cut short by a copy that did not end: {error}"
                )
            }
            Self::AlreadyNk => {
                f.write_str("this is a .nk file already: there is nothing to convert")
            }
            Self::NoGraph => f.write_str("not an ONNX file: it holds no graph"),
            Self::TooMany { what, count } => write!(f, "the file has {count} {what}"),
            Self::Duplicate { name } => {
                write!(f, "invalid ONNX: `{name}` is defined more than once")
            }
            Self::NoOpset => f.write_str(
                "invalid ONNX: the file does not import a version of the default operator set",
            ),
        }
    }
}

impl std::error::Error for ParseError {}

impl From<prost::DecodeError> for ParseError {
    fn from(error: prost::DecodeError) -> Self {
        Self::Protobuf(error.to_string())
    }
}

impl Model {
    /// Decodes a `.onnx` file. Tensors stay where they lie in `file` until a node reads them.
    ///
    /// # Errors
    /// [`ParseError`] if the bytes are no ONNX model or exceed a limit; never panics.
    pub fn parse(file: impl Into<Bytes>) -> Result<Self, ParseError> {
        let file = file.into();
        if file.len() > MAX_FILE_BYTES {
            return Err(ParseError::TooLarge { bytes: file.len() });
        }
        let weight_budget = file.len().saturating_mul(4);
        if file.starts_with(&MAGIC) {
            return Err(ParseError::AlreadyNk);
        }
        // Writers put the version of ONNX first: a varint, field 1.
        let begins_like_onnx = file.first() == Some(&0x08);
        let model = ModelProto::decode(file).map_err(|error| {
            if begins_like_onnx { ParseError::Damaged(error.to_string()) } else { error.into() }
        })?;
        let graph = model.graph.ok_or(ParseError::NoGraph)?;
        limit("operator set imports", &model.opset_import, MAX_ENTRIES)?;
        let opset = default_opset(&model.opset_import)?;
        Self::from_graph(graph, opset, weight_budget)
    }

    fn from_graph(graph: GraphProto, opset: i64, weight_budget: usize) -> Result<Self, ParseError> {
        limit("nodes", &graph.node, MAX_ENTRIES)?;
        limit("initializers", &graph.initializer, MAX_ENTRIES)?;
        limit("inputs", &graph.input, MAX_ENTRIES)?;
        limit("outputs", &graph.output, MAX_ENTRIES)?;
        limit("described values", &graph.value_info, MAX_ENTRIES)?;
        limit("sparse initializers", &graph.sparse_initializer, 0)?;

        let mut initializers = HashMap::with_capacity(graph.initializer.len());
        for bytes in graph.initializer {
            let tensor = TensorProto::decode(bytes)?;
            let name = tensor.name.clone().unwrap_or_default();
            if initializers.insert(name.clone(), tensor).is_some() {
                return Err(ParseError::Duplicate { name });
            }
        }
        // Files of IR version 3 and older list every initializer as an input too.
        let mut inputs = ports(graph.input)?;
        inputs.retain(|port| !initializers.contains_key(&port.name));
        let outputs = ports(graph.output)?;
        let declared = ports(graph.value_info)?
            .into_iter()
            .chain(outputs.iter().cloned())
            .filter_map(|port| Some((port.name, port.dims?)))
            .collect();

        let mut defined: HashMap<String, ()> = initializers
            .keys()
            .cloned()
            .chain(inputs.iter().map(|port| port.name.clone()))
            .map(|name| (name, ()))
            .collect();
        let mut nodes = Vec::with_capacity(graph.node.len());
        let mut attributes = 0;
        for (index, bytes) in graph.node.into_iter().enumerate() {
            let node = Node::from_wire(index, NodeProto::decode(bytes)?)?;
            attributes += node.attributes.len();
            if attributes > MAX_ATTRIBUTES.1 {
                return Err(ParseError::TooMany { what: "attributes", count: attributes });
            }
            for name in node.outputs.iter().filter(|name| !name.is_empty()) {
                if defined.insert(name.clone(), ()).is_some() {
                    return Err(ParseError::Duplicate { name: name.clone() });
                }
            }
            nodes.push(node);
        }
        Ok(Self { opset, nodes, initializers, inputs, outputs, declared, weight_budget })
    }
}

fn limit(what: &'static str, list: &[Bytes], most: usize) -> Result<(), ParseError> {
    if list.len() > most {
        return Err(ParseError::TooMany { what, count: list.len() });
    }
    Ok(())
}

fn default_opset(imports: &[Bytes]) -> Result<i64, ParseError> {
    for bytes in imports {
        let import = OperatorSetIdProto::decode(bytes.clone())?;
        if matches!(import.domain.as_deref(), None | Some("" | "ai.onnx")) {
            return import.version.ok_or(ParseError::NoOpset);
        }
    }
    Err(ParseError::NoOpset)
}

fn ports(list: Vec<Bytes>) -> Result<Vec<Port>, ParseError> {
    list.into_iter()
        .map(|bytes| {
            let info = ValueInfoProto::decode(bytes)?;
            let tensor = info.r#type.and_then(|kind| kind.tensor_type).unwrap_or_default();
            let dims = tensor.shape.map(|shape| {
                let dimension = |value: Option<DimensionValue>| match value {
                    Some(DimensionValue::Fixed(size)) => usize::try_from(size)
                        .map_or_else(|_| Dimension::Symbol("?".into()), Dimension::Fixed),
                    Some(DimensionValue::Symbol(symbol)) if !symbol.is_empty() => {
                        Dimension::Symbol(symbol)
                    }
                    _ => Dimension::Symbol("?".into()),
                };
                shape.dim.into_iter().map(|dim| dimension(dim.value)).collect::<Vec<_>>()
            });
            Ok(Port {
                name: info.name.unwrap_or_default(),
                element_type: tensor.elem_type.unwrap_or_default(),
                dims: dims.filter(|dims| dims.len() <= MAX_RANK),
            })
        })
        .collect()
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => write!(f, "{size}"),
            Self::Symbol(symbol) => f.write_str(symbol),
        }
    }
}

/// `AttributeProto.AttributeType`.
mod attribute_type {
    pub(super) const FLOAT: i32 = 1;
    pub(super) const INT: i32 = 2;
    pub(super) const STRING: i32 = 3;
    pub(super) const TENSOR: i32 = 4;
    pub(super) const FLOATS: i32 = 6;
    pub(super) const INTS: i32 = 7;
}

impl Node {
    fn from_wire(index: usize, node: NodeProto) -> Result<Self, ParseError> {
        limit("attributes on one node", &node.attribute, MAX_ATTRIBUTES.0)?;
        let attributes =
            node.attribute.into_iter().map(AttributeProto::decode).collect::<Result<_, _>>()?;
        let name = node.name.filter(|name| !name.is_empty()).unwrap_or_else(|| {
            format!("#{index} → {}", node.output.first().map_or("", String::as_str))
        });
        Ok(Self {
            name,
            operator: node.op_type.unwrap_or_default(),
            domain: node.domain.unwrap_or_default(),
            inputs: node.input,
            outputs: node.output,
            attributes,
        })
    }

    fn attribute(&self, name: &str, kind: i32) -> Result<Option<&AttributeProto>, Refusal> {
        let mut named =
            self.attributes.iter().filter(|attribute| attribute.name.as_deref() == Some(name));
        match named.next() {
            Some(_) if named.next().is_some() => {
                Err(Refusal::new(format!("invalid ONNX: attribute `{name}` is there twice")))
            }
            Some(attribute) if attribute.r#type.is_some_and(|actual| actual != kind) => {
                Err(Refusal::new(format!("invalid ONNX: attribute `{name}` has the wrong type")))
            }
            other => Ok(other),
        }
    }

    /// An integer attribute. A field left out by the writer is 0, as protobuf has it.
    pub(super) fn int(&self, name: &str) -> Result<Option<i64>, Refusal> {
        Ok(self.attribute(name, attribute_type::INT)?.map(|it| it.i.unwrap_or_default()))
    }

    /// An integer attribute, or its default.
    pub(super) fn int_or(&self, name: &str, default: i64) -> Result<i64, Refusal> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// An attribute that is a list of integers.
    pub(super) fn ints(&self, name: &str) -> Result<Option<&[i64]>, Refusal> {
        Ok(self.attribute(name, attribute_type::INTS)?.map(|it| it.ints.as_slice()))
    }

    /// A float attribute.
    pub(super) fn float(&self, name: &str) -> Result<Option<f32>, Refusal> {
        Ok(self.attribute(name, attribute_type::FLOAT)?.map(|it| it.f.unwrap_or_default()))
    }

    /// A float attribute, or its default.
    pub(super) fn float_or(&self, name: &str, default: f32) -> Result<f32, Refusal> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// An attribute that is a list of floats.
    pub(super) fn floats(&self, name: &str) -> Result<Option<&[f32]>, Refusal> {
        Ok(self.attribute(name, attribute_type::FLOATS)?.map(|it| it.floats.as_slice()))
    }

    /// A string attribute.
    pub(super) fn string(&self, name: &str) -> Result<Option<String>, Refusal> {
        let attribute = self.attribute(name, attribute_type::STRING)?;
        Ok(attribute
            .map(|it| String::from_utf8_lossy(it.s.as_deref().unwrap_or_default()).into_owned()))
    }

    /// A tensor attribute.
    pub(super) fn tensor(&self, name: &str) -> Result<Option<Constant>, Refusal> {
        self.attribute(name, attribute_type::TENSOR)?
            .and_then(|it| it.t.as_deref())
            .map(Constant::decode)
            .transpose()
    }

    /// The name of input `index`; `None` where it is not given.
    pub(super) fn input(&self, index: usize) -> Option<&str> {
        self.inputs.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }
}
