//! The operators that move no arithmetic, only indices: what each does to a [`View`].

use super::constant::{Constant, axis_index, data_type};
use super::model::{MAX_RANK, Node};
use crate::obstacle::Refusal;
use crate::view::View;

/// Finds a constant by name.
pub(super) type Lookup<'a> = dyn FnMut(&str) -> Option<Result<Constant, Refusal>> + 'a;

/// The operators [`apply`] knows.
pub(super) const OPERATORS: [&str; 8] =
    ["Identity", "Dropout", "Cast", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze"];

/// Whether [`apply`] knows the operator.
pub(super) fn is_layout_operator(operator: &str) -> bool {
    OPERATORS.contains(&operator)
}

/// The view of the node's output, given that of its first input.
pub(super) fn apply(
    node: &Node,
    input: &View,
    opset: i64,
    constant: &mut Lookup<'_>,
) -> Result<View, Refusal> {
    match node.operator.as_str() {
        "Identity" => Ok(input.clone()),
        "Dropout" => dropout(node, input, constant),
        "Cast" => cast(node, input),
        "Transpose" => transpose(node, input),
        "Reshape" => reshape(node, input, constant),
        "Flatten" => flatten(node, input),
        "Squeeze" => squeeze(node, input, opset, constant),
        "Unsqueeze" => unsqueeze(node, input, opset, constant),
        _ => Err(Refusal::new("not an operator that only moves elements")),
    }
}

fn dropout(node: &Node, input: &View, constant: &mut Lookup<'_>) -> Result<View, Refusal> {
    // From operator set 12 on, an input tells whether this is training.
    if let Some(name) = node.input(2) {
        let training = match constant(name) {
            Some(flag) => flag?.integers()?.first() != Some(&0),
            None => true,
        };
        if training {
            return Err(Refusal::new("it drops elements at random, as in training")
                .help("export the model in inference mode"));
        }
    }
    Ok(input.clone())
}

/// All computed values are float32; exporters like to say so again.
fn cast(node: &Node, input: &View) -> Result<View, Refusal> {
    match node.int_or("to", 0)? as i32 {
        data_type::FLOAT => Ok(input.clone()),
        other => Err(Refusal::new(format!("it converts to {}", data_type::name(other)))
            .help("export the model in float32")),
    }
}

fn transpose(node: &Node, input: &View) -> Result<View, Refusal> {
    let rank = input.axes().len();
    let perm: Vec<usize> = match node.ints("perm")? {
        Some(perm) => perm.iter().map(|&axis| axis_index(axis, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).rev().collect(),
    };
    input.transpose(&perm).ok_or_else(|| {
        Refusal::new(format!("invalid ONNX: {perm:?} is no permutation of {rank} axes"))
    })
}

fn reshape(node: &Node, input: &View, constant: &mut Lookup<'_>) -> Result<View, Refusal> {
    let wanted = match (node.input(1), node.ints("shape")?) {
        (Some(name), _) => match constant(name) {
            Some(shape) => shape?.integers()?,
            None => {
                return Err(Refusal::new(format!("the shape `{name}` is computed at run time"))
                    .help("export the model with fixed shapes, or simplify it first"));
            }
        },
        (None, Some(shape)) => shape.to_vec(),
        (None, None) => return Err(Refusal::new("invalid ONNX: no shape is given")),
    };
    if wanted.len() > MAX_RANK {
        return Err(Refusal::new(format!("a shape of {} axes", wanted.len())));
    }
    let dims = input.dims();
    let zero_is_zero = node.int_or("allowzero", 0)? != 0;
    let invalid = || {
        Refusal::new(format!("{dims:?} cannot be reshaped to {wanted:?}"))
            .help("if the batch size is part of the shape, export the model for a batch of 1")
    };
    let mut sizes = Vec::with_capacity(wanted.len());
    let mut inferred = None;
    for (axis, &size) in wanted.iter().enumerate() {
        sizes.push(match size {
            -1 if inferred.replace(axis).is_some() => return Err(invalid()),
            -1 => 1,
            0 if !zero_is_zero => *dims.get(axis).ok_or_else(invalid)?,
            _ => usize::try_from(size).ok().filter(|&size| size > 0).ok_or_else(invalid)?,
        });
    }
    let known = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    let known = known.ok_or_else(invalid)?;
    let elements = input.elements();
    match inferred {
        Some(axis) if elements.is_multiple_of(known) => sizes[axis] = elements / known,
        None if elements == known => {}
        _ => return Err(invalid()),
    }
    input.reshape(&sizes).ok_or_else(|| irregular(&dims, &sizes))
}

fn flatten(node: &Node, input: &View) -> Result<View, Refusal> {
    let dims = input.dims();
    // The axis may lie behind the last one.
    let axis = node.int_or("axis", 1)?;
    let axis = if axis == dims.len() as i64 { dims.len() } else { axis_index(axis, dims.len())? };
    let sizes = [dims[..axis].iter().product(), dims[axis..].iter().product()];
    input.reshape(&sizes).ok_or_else(|| irregular(&dims, &sizes))
}

/// The axes an operator names: an input from operator set 13 on, an attribute before.
fn axes(
    node: &Node,
    rank: usize,
    opset: i64,
    constant: &mut Lookup<'_>,
) -> Result<Option<Vec<usize>>, Refusal> {
    let listed = if opset >= 13 {
        match node.input(1) {
            Some(name) => match constant(name) {
                Some(axes) => Some(axes?.integers()?),
                None => return Err(Refusal::new("its axes are computed at run time")),
            },
            None => None,
        }
    } else {
        node.ints("axes")?.map(<[i64]>::to_vec)
    };
    listed.map(|list| list.into_iter().map(|axis| axis_index(axis, rank)).collect()).transpose()
}

fn squeeze(
    node: &Node,
    input: &View,
    opset: i64,
    constant: &mut Lookup<'_>,
) -> Result<View, Refusal> {
    let dims = input.dims();
    let named = axes(node, dims.len(), opset, constant)?;
    if let Some(&axis) = named.iter().flatten().find(|&&axis| dims[axis] != 1) {
        return Err(Refusal::new(format!("invalid ONNX: axis {axis} of {dims:?} is not 1")));
    }
    let dropped = |axis: usize| match &named {
        Some(named) => named.contains(&axis),
        None => dims[axis] == 1,
    };
    let kept: Vec<usize> =
        (0..dims.len()).filter(|&axis| !dropped(axis)).map(|axis| dims[axis]).collect();
    input.reshape(&kept).ok_or_else(|| irregular(&dims, &kept))
}

fn unsqueeze(
    node: &Node,
    input: &View,
    opset: i64,
    constant: &mut Lookup<'_>,
) -> Result<View, Refusal> {
    let dims = input.dims();
    let count = match (opset >= 13, node.input(1)) {
        (true, Some(name)) => match constant(name) {
            Some(axes) => axes?.integers()?.len(),
            None => return Err(Refusal::new("its axes are computed at run time")),
        },
        (true, None) => 0,
        (false, _) => node.ints("axes")?.map_or(0, <[i64]>::len),
    };
    let rank = dims.len().saturating_add(count);
    if count == 0 || rank > MAX_RANK {
        return Err(Refusal::new(format!("adding {count} axes to {}", dims.len())));
    }
    let new = axes(node, rank, opset, constant)?.unwrap_or_default();
    let mut old = dims.iter().copied();
    let sizes: Option<Vec<usize>> =
        (0..rank).map(|axis| if new.contains(&axis) { Some(1) } else { old.next() }).collect();
    match sizes {
        Some(sizes) if old.next().is_none() => {
            input.reshape(&sizes).ok_or_else(|| irregular(&dims, &sizes))
        }
        _ => Err(Refusal::new("invalid ONNX: an axis is named twice")),
    }
}

fn irregular(from: &[usize], to: &[usize]) -> Refusal {
    Refusal::new(format!(
        "reshaping {from:?} to {to:?} after a transposition would have to move elements at run time"
    ))
    .help("leave out the transposition, or reshape before it")
}
