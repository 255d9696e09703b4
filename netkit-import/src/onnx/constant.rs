//! Constant tensors: decoding them, and folding the index arithmetic that exporters write between a
//! shape and the operator that wants it.

use super::layout;
use super::model::{MAX_RANK, Model, Node};
use super::wire::TensorProto;
use crate::obstacle::Refusal;
use crate::view::View;
use std::collections::HashMap;
use std::sync::Arc;

/// Most elements of an integer tensor that is read or computed.
const MAX_INTEGERS: usize = 1024;

/// A tensor whose elements are known.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    elements: Elements,
    view: View,
}

#[derive(Clone, Debug)]
enum Elements {
    Float(Arc<[f32]>),
    Integer(Arc<[i64]>),
}

/// `TensorProto.DataType`.
pub(super) mod data_type {
    pub(crate) const FLOAT: i32 = 1;
    pub(crate) const INT32: i32 = 6;
    pub(crate) const INT64: i32 = 7;
    pub(crate) const BOOL: i32 = 9;

    /// The name of an element type in messages.
    pub(crate) fn name(code: i32) -> String {
        let names = [
            "undefined",
            "float32",
            "uint8",
            "int8",
            "uint16",
            "int16",
            "int32",
            "int64",
            "string",
            "bool",
            "float16",
            "float64",
            "uint32",
            "uint64",
            "complex64",
            "complex128",
            "bfloat16",
        ];
        let known = usize::try_from(code).ok().and_then(|code| names.get(code));
        known.map_or_else(|| format!("type {code}"), |name| (*name).to_owned())
    }
}

impl Constant {
    /// Reads a tensor's elements. Nothing is allocated before the file is known to hold as many
    /// elements as the shape asks for.
    pub(super) fn decode(tensor: &TensorProto) -> Result<Self, Refusal> {
        let named = || match tensor.name.as_deref() {
            None | Some("") => "a constant".to_owned(),
            Some(name) => format!("constant `{name}`"),
        };
        if tensor.data_location == Some(1) {
            return Err(Refusal::new(format!("{} lies in another file", named()))
                .help("save the model with its weights in one file"));
        }
        if tensor.dims.len() > MAX_RANK {
            return Err(Refusal::new(format!("{} has {} axes", named(), tensor.dims.len())));
        }
        let mut dims = Vec::with_capacity(tensor.dims.len());
        let mut count = 1usize;
        for &dim in &tensor.dims {
            let dim = usize::try_from(dim).ok().filter(|&dim| dim > 0);
            let product = dim.and_then(|dim| count.checked_mul(dim));
            let (Some(dim), Some(product)) = (dim, product) else {
                return Err(Refusal::new(format!("{} has the shape {:?}", named(), tensor.dims)));
            };
            dims.push(dim);
            count = product;
        }
        let wrong_count = |found: usize| {
            Refusal::new(format!(
                "{} of shape {dims:?} should have {count} elements and has {found}",
                named()
            ))
        };
        let raw = tensor.raw_data.as_deref().filter(|raw| !raw.is_empty());
        let raw_elements = |size: usize| -> Result<Option<&[u8]>, Refusal> {
            match raw {
                Some(raw) if Some(raw.len()) == count.checked_mul(size) => Ok(Some(raw)),
                Some(raw) => Err(wrong_count(raw.len() / size)),
                None => Ok(None),
            }
        };
        let listed = |found: usize| if found == count { Ok(()) } else { Err(wrong_count(found)) };
        let code = tensor.data_type.unwrap_or_default();
        let elements = match code {
            data_type::FLOAT => Elements::Float(match raw_elements(4)? {
                Some(raw) => raw.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect(),
                None => {
                    listed(tensor.float_data.len())?;
                    tensor.float_data.as_slice().into()
                }
            }),
            data_type::INT64 => Elements::Integer(match raw_elements(8)? {
                Some(raw) => raw.as_chunks().0.iter().map(|it| i64::from_le_bytes(*it)).collect(),
                None => {
                    listed(tensor.int64_data.len())?;
                    tensor.int64_data.as_slice().into()
                }
            }),
            data_type::INT32 => Elements::Integer(match raw_elements(4)? {
                Some(raw) => {
                    raw.as_chunks().0.iter().map(|it| i32::from_le_bytes(*it).into()).collect()
                }
                None => {
                    listed(tensor.int32_data.len())?;
                    tensor.int32_data.iter().map(|&it| it.into()).collect()
                }
            }),
            data_type::BOOL => Elements::Integer(match raw_elements(1)? {
                Some(raw) => raw.iter().map(|&it| (it != 0).into()).collect(),
                None => {
                    listed(tensor.int32_data.len())?;
                    tensor.int32_data.iter().map(|&it| (it != 0).into()).collect()
                }
            }),
            other => {
                return Err(Refusal::new(format!(
                    "{} has elements of type {}",
                    named(),
                    data_type::name(other)
                ))
                .help("export the model in float32"));
            }
        };
        Ok(Self { elements, view: View::contiguous(&dims) })
    }

    fn integers_of(dims: &[usize], values: Vec<i64>) -> Self {
        Self { elements: Elements::Integer(values.into()), view: View::contiguous(dims) }
    }

    /// The shape of a tensor as a constant, as the `Shape` operator gives it.
    pub(super) fn shape_of(dims: &[usize]) -> Self {
        let sizes = dims.iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX)).collect();
        Self::integers_of(&[dims.len()], sizes)
    }

    pub(super) fn dims(&self) -> Vec<usize> {
        self.view.dims()
    }

    pub(super) fn view(&self) -> &View {
        &self.view
    }

    pub(super) fn is_float(&self) -> bool {
        matches!(self.elements, Elements::Float(_))
    }

    /// The same elements seen through another view.
    pub(super) fn with_view(&self, view: View) -> Self {
        Self { elements: self.elements.clone(), view }
    }

    /// The elements of a float tensor in the order of `view`, which must be a view of its elements.
    pub(super) fn floats_through(&self, view: &View) -> Result<Vec<f32>, Refusal> {
        match &self.elements {
            Elements::Float(values) if view.is_contiguous() => Ok(values.to_vec()),
            Elements::Float(values) => {
                let offsets = view.offsets().into_iter();
                Ok(offsets.map(|at| values.get(at).copied().unwrap_or_default()).collect())
            }
            Elements::Integer(_) => Err(Refusal::new(
                "a constant is of an integer type where \
                                                     float32 is needed",
            )),
        }
    }

    /// The elements of an integer tensor in its own order. Those that are read are shapes, axes and
    /// flags, so there are few.
    pub(super) fn integers(&self) -> Result<Vec<i64>, Refusal> {
        limit_integers(self.view.elements())?;
        match &self.elements {
            Elements::Integer(values) => {
                let offsets = self.view.offsets().into_iter();
                Ok(offsets.map(|at| values.get(at).copied().unwrap_or_default()).collect())
            }
            Elements::Float(_) => {
                Err(Refusal::new("a constant is of type float32 where an integer is needed"))
            }
        }
    }

    /// The one element of a float tensor that has only one.
    pub(super) fn scalar(&self) -> Option<f32> {
        match &self.elements {
            Elements::Float(values) => match **values {
                [value] => Some(value),
                _ => None,
            },
            Elements::Integer(_) => None,
        }
    }
}

/// The constants known at some point of a walk over the nodes, by name.
#[derive(Debug)]
pub(super) struct Constants<'m> {
    model: &'m Model,
    /// What was read or computed so far; a refusal is kept for every node that reads it.
    known: HashMap<&'m str, Result<Constant, Refusal>>,
}

impl<'m> Constants<'m> {
    pub(super) fn new(model: &'m Model) -> Self {
        Self { model, known: HashMap::new() }
    }

    /// The constant called `name`, decoded when first asked for; `None` if there is none.
    pub(super) fn get(&mut self, name: &str) -> Option<Result<Constant, Refusal>> {
        if let Some(known) = self.known.get(name) {
            return Some(known.clone());
        }
        let (name, tensor) = self.model.initializers.get_key_value(name)?;
        let decoded = Constant::decode(tensor);
        self.known.insert(name, decoded.clone());
        Some(decoded)
    }

    fn is_constant(&self, name: &str) -> bool {
        self.known.contains_key(name) || self.model.initializers.contains_key(name)
    }

    /// Takes in `node` if its result is a constant. `dims_of` gives the shapes of the values that
    /// are computed at run time.
    pub(super) fn absorb(
        &mut self,
        node: &'m Node,
        dims_of: impl Fn(&str) -> Option<Vec<usize>>,
    ) -> bool {
        let Some(output) = node.outputs.first() else { return false };
        let folded = match node.operator.as_str() {
            "Constant" => constant_node(node),
            "Shape" => match node.input(0) {
                Some(name) if self.is_constant(name) => {
                    self.required(node, 0).and_then(|it| shape(node, &it.dims()))
                }
                Some(name) => match dims_of(name) {
                    Some(dims) => shape(node, &dims),
                    None => return false,
                },
                None => return false,
            },
            _ => {
                let given = || node.inputs.iter().filter(|name| !name.is_empty());
                if given().next().is_none() || !given().all(|name| self.is_constant(name)) {
                    return false;
                }
                match self.fold(node) {
                    Some(folded) => folded,
                    None => return false,
                }
            }
        };
        self.known.insert(output, folded);
        true
    }

    fn required(&mut self, node: &Node, index: usize) -> Result<Constant, Refusal> {
        node.input(index)
            .and_then(|name| self.get(name))
            .unwrap_or_else(|| Err(Refusal::new(format!("invalid ONNX: no input {index}"))))
    }

    fn fold(&mut self, node: &Node) -> Option<Result<Constant, Refusal>> {
        if layout::is_layout_operator(&node.operator) && node.operator != "Cast" {
            let opset = self.model.opset;
            return Some(self.required(node, 0).and_then(|input| {
                let view = layout::apply(node, input.view(), opset, &mut |name| self.get(name))?;
                Ok(input.with_view(view))
            }));
        }
        let compute: fn(&Node, &[Constant]) -> Result<Constant, Refusal> =
            match node.operator.as_str() {
                "Gather" => gather,
                "Concat" => concat,
                "Slice" => slice,
                "Cast" => cast,
                "Add" | "Sub" | "Mul" | "Div" => integer_arithmetic,
                _ => return None,
            };
        let inputs = (0..node.inputs.len()).map(|index| self.required(node, index));
        let inputs: Result<Vec<_>, _> = inputs.collect();
        match inputs {
            // Arithmetic on weights is for the graph, not for here.
            Ok(inputs) if inputs.iter().any(Constant::is_float) && node.operator != "Cast" => None,
            Ok(inputs) => Some(compute(node, &inputs)),
            Err(refusal) => Some(Err(refusal)),
        }
    }
}

fn constant_node(node: &Node) -> Result<Constant, Refusal> {
    if let Some(value) = node.tensor("value")? {
        return Ok(value);
    }
    if let Some(value) = node.float("value_float")? {
        return Ok(Constant {
            elements: Elements::Float([value].into()),
            view: View::contiguous(&[]),
        });
    }
    if let Some(values) = node.floats("value_floats")?.filter(|values| !values.is_empty()) {
        return Ok(Constant {
            elements: Elements::Float(values.into()),
            view: View::contiguous(&[values.len()]),
        });
    }
    if let Some(value) = node.int("value_int")? {
        return Ok(Constant::integers_of(&[], vec![value]));
    }
    if let Some(values) = node.ints("value_ints")?.filter(|values| !values.is_empty()) {
        return Ok(Constant::integers_of(&[values.len()], values.to_vec()));
    }
    Err(Refusal::new("a constant of this kind is not supported"))
}

/// `axis`, counted from the end where it is negative, of a tensor with `rank` axes.
pub(super) fn axis_index(axis: i64, rank: usize) -> Result<usize, Refusal> {
    let from_start = if axis < 0 { axis.checked_add_unsigned(rank as u64) } else { Some(axis) };
    from_start.and_then(|axis| usize::try_from(axis).ok()).filter(|&axis| axis < rank).ok_or_else(
        || Refusal::new(format!("invalid ONNX: axis {axis} of a tensor of rank {rank}")),
    )
}

fn shape(node: &Node, dims: &[usize]) -> Result<Constant, Refusal> {
    let clamp = |index: i64| {
        let rank = dims.len() as i64;
        let from_start = if index < 0 { index.saturating_add(rank) } else { index };
        from_start.clamp(0, rank) as usize
    };
    let start = clamp(node.int_or("start", 0)?);
    let end = clamp(node.int_or("end", dims.len() as i64)?);
    match dims.get(start..end) {
        Some(part) if !part.is_empty() => Ok(Constant::shape_of(part)),
        _ => Err(Refusal::new("an empty shape is not supported")),
    }
}

fn gather(node: &Node, inputs: &[Constant]) -> Result<Constant, Refusal> {
    let [data, indices] = inputs else { return Err(invalid_inputs()) };
    let (rank, indices_dims) = (data.dims().len(), indices.dims());
    if rank != 1 || axis_index(node.int_or("axis", 0)?, rank)? != 0 {
        return Err(Refusal::new("only elements of a list can be gathered from a constant"));
    }
    let data = data.integers()?;
    let picked: Result<Vec<_>, _> = indices
        .integers()?
        .into_iter()
        .map(|index| axis_index(index, data.len()).map(|index| data[index]))
        .collect();
    Ok(Constant::integers_of(&indices_dims, picked?))
}

fn concat(node: &Node, inputs: &[Constant]) -> Result<Constant, Refusal> {
    let mut joined = Vec::new();
    for input in inputs {
        if input.dims().len() != 1 || axis_index(node.int_or("axis", 0)?, 1)? != 0 {
            return Err(Refusal::new("only lists can be joined to a constant"));
        }
        limit_integers(joined.len() + input.view.elements())?;
        joined.extend(input.integers()?);
    }
    Ok(Constant::integers_of(&[joined.len()], joined))
}

fn slice(node: &Node, inputs: &[Constant]) -> Result<Constant, Refusal> {
    let data = inputs.first().ok_or_else(invalid_inputs)?;
    let one = |index: usize, attribute: &str| -> Result<Option<i64>, Refusal> {
        let list = match inputs.get(index) {
            Some(input) => Some(input.integers()?),
            None => node.ints(attribute)?.map(<[i64]>::to_vec),
        };
        match list.as_deref() {
            None => Ok(None),
            Some([value]) => Ok(Some(*value)),
            Some(_) => Err(Refusal::new("only one axis of a constant can be sliced")),
        }
    };
    let (start, end) = (one(1, "starts")?, one(2, "ends")?);
    let (axis, step) = (one(3, "axes")?.unwrap_or(0), one(4, "steps")?.unwrap_or(1));
    let (Some(start), Some(end)) = (start, end) else { return Err(invalid_inputs()) };
    if data.dims().len() != 1 || axis_index(axis, 1)? != 0 || step != 1 {
        return Err(Refusal::new("only a range of a list can be sliced from a constant"));
    }
    let data = data.integers()?;
    let length = data.len() as i64;
    let clamp = |index: i64| {
        let from_start = if index < 0 { index.saturating_add(length) } else { index };
        from_start.clamp(0, length) as usize
    };
    match data.get(clamp(start)..clamp(end)) {
        Some(part) if !part.is_empty() => Ok(Constant::integers_of(&[part.len()], part.to_vec())),
        _ => Err(Refusal::new("an empty slice of a constant is not supported")),
    }
}

fn cast(node: &Node, inputs: &[Constant]) -> Result<Constant, Refusal> {
    let [input] = inputs else { return Err(invalid_inputs()) };
    match (node.int_or("to", 0)?, input.is_float()) {
        (1, true) | (6 | 7, false) => Ok(input.clone()),
        _ => Err(Refusal::new("this conversion of a constant is not supported")),
    }
}

fn integer_arithmetic(node: &Node, inputs: &[Constant]) -> Result<Constant, Refusal> {
    let [a, b] = inputs else { return Err(invalid_inputs()) };
    let (a_dims, b_dims) = (a.dims(), b.dims());
    let (a, b) = (a.integers()?, b.integers()?);
    let dims = match (a.len(), b.len()) {
        (_, 1) if a_dims.len() >= b_dims.len() => a_dims,
        (1, _) if b_dims.len() >= a_dims.len() => b_dims,
        _ if a_dims == b_dims => a_dims,
        _ => return Err(Refusal::new("this broadcast of constants is not supported")),
    };
    let apply = |x: i64, y: i64| match node.operator.as_str() {
        "Add" => x.checked_add(y),
        "Sub" => x.checked_sub(y),
        "Mul" => x.checked_mul(y),
        _ => x.checked_div(y),
    };
    let values: Option<Vec<_>> = (0..a.len().max(b.len()))
        .map(|at| apply(a[if a.len() == 1 { 0 } else { at }], b[if b.len() == 1 { 0 } else { at }]))
        .collect();
    let values = values.ok_or_else(|| Refusal::new("the constants overflow"))?;
    Ok(Constant::integers_of(&dims, values))
}

fn limit_integers(elements: usize) -> Result<(), Refusal> {
    if elements > MAX_INTEGERS {
        return Err(Refusal::new(format!("a list of {elements} integers")));
    }
    Ok(())
}

fn invalid_inputs() -> Refusal {
    Refusal::new("invalid ONNX: wrong number of inputs")
}
