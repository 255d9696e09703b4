//! `Gemm` and `MatMul`.

use super::{Converted, Operands, stored};
use crate::graph::{Activation, Dense, Op};
use crate::obstacle::Refusal;
use crate::view::View;

pub(super) fn gemm(operands: &mut Operands<'_, '_>) -> Result<Converted, Refusal> {
    let node = operands.node;
    refuse_left_weights(operands)?;
    let turned = |view: View, flag: &str| -> Result<View, Refusal> {
        if view.dims().len() != 2 {
            return Err(Refusal::new(format!(
                "invalid ONNX: an operand of shape {:?}",
                view.dims()
            )));
        }
        let transposed = node.int_or(flag, 0)? != 0;
        Ok(if transposed { view.transpose(&[1, 0]).unwrap_or(view) } else { view })
    };
    let (input, view) = operands.computed(0)?;
    let view = turned(view, "transA")?;
    let matrix = operands.constant(1)?;
    let matrix_view = turned(matrix.view().clone(), "transB")?;
    let (alpha, beta) = (node.float_or("alpha", 1.0)?, node.float_or("beta", 1.0)?);
    let mut converted = dense(operands, 1, (input, &view), &matrix_view)?;
    let Op::Dense(dense) = &mut converted.op else { return Ok(converted) };
    scale(&mut dense.weights, alpha)?;

    if let Some(addend) = operands.optional_constant(2)? {
        let dims = addend.dims();
        let units = dense.out_features;
        let mut values = operands.weights(&addend, addend.view())?;
        scale(&mut values, beta)?;
        match dims.as_slice() {
            [] | [1] | [1, 1] => dense.bias = vec![values.first().copied().unwrap_or(0.0); units],
            [n] | [1, n] if *n == units => dense.bias = values,
            _ => {
                return Err(Refusal::new(format!(
                    "it adds a constant of shape {dims:?} to {units} outputs; only one value for \
                     each output is supported"
                )));
            }
        }
    }
    Ok(converted)
}

pub(super) fn matmul(operands: &mut Operands<'_, '_>) -> Result<Converted, Refusal> {
    refuse_left_weights(operands)?;
    let (input, view) = operands.computed(0)?;
    let matrix = operands.constant(1)?;
    if matrix.dims().len() != 2 {
        return Err(Refusal::new(format!(
            "its weights have the shape {:?}; only matrices are supported",
            matrix.dims()
        )));
    }
    let dims = view.dims();
    let Some((&features, outer)) = dims.split_last() else {
        return Err(Refusal::new("invalid ONNX: a product with a scalar"));
    };
    let rows: usize = outer.iter().product();
    let flat = view
        .reshape(&[rows, features])
        .ok_or_else(|| Refusal::new("its input would have to be transposed at run time"))?;
    let mut converted = dense(operands, 1, (input, &flat), matrix.view())?;
    let mut out_dims = outer.to_vec();
    out_dims.extend(converted.view.dims().last());
    converted.view = converted
        .view
        .reshape(&out_dims)
        .ok_or_else(|| Refusal::new("its output would have to be transposed at run time"))?;
    Ok(converted)
}

/// Weights that stand on the left multiply columns, which is another layer than a dense one.
fn refuse_left_weights(operands: &mut Operands<'_, '_>) -> Result<(), Refusal> {
    if operands.is_constant(0) {
        return Err(Refusal::new("its weights are the left operand")
            .help("write the product as `input · weights`"));
    }
    Ok(())
}

/// A dense layer without bias: a `[rows, features]` view of an input, and input `weights` of the
/// node seen as `[features, units]`.
fn dense(
    operands: &mut Operands<'_, '_>,
    weights: usize,
    (input, view): (crate::graph::ValueId, &View),
    matrix_view: &View,
) -> Result<Converted, Refusal> {
    let dims = view.dims();
    let matrix_dims = matrix_view.dims();
    let (&[rows, features], &[in_features, units]) = (dims.as_slice(), matrix_dims.as_slice())
    else {
        return Err(Refusal::new("only products of matrices are supported"));
    };
    if features != in_features {
        return Err(Refusal::new(format!(
            "its weights take {in_features} features and its input {dims:?} has {features}"
        )));
    }
    let stored_shape = operands.graph.shape(input);
    let fits = match stored_shape.dims() {
        // Each row by itself.
        &[stored_rows, stored_features] if rows != 1 => {
            (stored_rows as usize, stored_features as usize) == (rows, features)
                && view.is_contiguous()
        }
        // All of it at once.
        &[1, _] | &[_, _, _] => rows == 1 && stored_shape.elements() == features,
        _ => false,
    };
    if !fits {
        return Err(Refusal::new(format!(
            "it reads {rows}×{features} numbers where netkit keeps {stored_shape}"
        ))
        .help("flatten its input, or give the input shape for a batch of 1: --input-shape"));
    }
    let shape = stored(&[rows, units])?;
    let matrix = operands.constant(weights)?;
    let by_unit = matrix_view.transpose(&[1, 0]).unwrap_or_else(|| matrix_view.clone());
    let mut values = operands.weights(&matrix, &by_unit)?;
    if !view.is_contiguous() {
        // The source's feature `k` is stored at `offsets[k]`, so there its column goes.
        let offsets = view.offsets();
        let mut row = vec![0.0; features];
        for weights in values.chunks_exact_mut(features) {
            for (&offset, &weight) in offsets.iter().zip(weights.iter()) {
                row[offset] = weight;
            }
            weights.copy_from_slice(&row);
        }
    }
    Ok(Converted {
        op: Op::Dense(Dense {
            in_features: features,
            out_features: units,
            weights: values,
            bias: vec![0.0; units],
            activation: Activation::None,
        }),
        input,
        shape,
        view: View::contiguous(&[rows, units]),
    })
}

fn scale(values: &mut [f32], factor: f32) -> Result<(), Refusal> {
    if factor == 1.0 {
        return Ok(());
    }
    for value in &mut *values {
        *value *= factor;
    }
    if values.iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(Refusal::new(format!("its weights times {factor} are not all finite numbers")))
    }
}
