//! Operators and their variants between versions.

use super::build::{Attribute, Build, floats, integers};
use super::{agrees, kinds, numbers, obstacle, obstacles};
use netkit_core::format::{Activation, Layer, LayerKind, TensorData};

fn row(features: &str) -> Build {
    Build::new().input("x", &["N", features])
}

fn gemm(inputs: &[&str], attributes: &[(&str, Attribute)]) -> Build {
    row("4")
        .floats("w", &[4, 3], &numbers(12, 1))
        .floats("wt", &[3, 4], &numbers(12, 1))
        .floats("bias", &[3], &numbers(3, 2))
        .floats("bias_row", &[1, 3], &numbers(3, 2))
        .floats("one_bias", &[], &[0.75])
        .floats("column", &[4, 1], &numbers(4, 2))
        .node("Gemm", inputs, "y", attributes)
        .output("y")
}

#[test]
fn gemm_in_every_form() {
    agrees(&gemm(&["x", "w"], &[]));
    agrees(&gemm(&["x", "w", ""], &[]));
    agrees(&gemm(&["x", "w", "bias"], &[("alpha", 0.5.into()), ("beta", 2.0.into())]));
    agrees(&gemm(&["x", "wt", "bias_row"], &[("transB", 1.into()), ("beta", 0.0.into())]));
    agrees(&gemm(&["x", "w", "one_bias"], &[]));
    obstacle(&gemm(&["x", "w", "column"], &[]), &["Gemm `y`", "a constant of shape [4, 1]"]);
    obstacle(&gemm(&["x", "wt"], &[]), &["its weights take 3 features and its input [1, 4] has 4"]);
    obstacle(&gemm(&["w", "x"], &[]), &["its weights are the left operand"]);
    obstacle(&gemm(&["x", "x"], &[]), &["joins computed values"]);
    obstacle(&gemm(&["x", "nothing"], &[]), &["reads `nothing`, which no node before it produces"]);
    obstacle(&gemm(&["x"], &[]), &["input 1 is not given"]);
    // transA of a column.
    let build = Build::new()
        .input("x", &["4", "1"])
        .floats("w", &[4, 3], &numbers(12, 1))
        .node("Gemm", &["x", "w"], "y", &[("transA", 1.into())])
        .output("y");
    obstacle(&build, &["it reads 1×4 numbers where netkit keeps 4×1"]);
}

#[test]
fn matmul_and_add_are_a_dense_layer_whichever_way_round() {
    for (add, negated) in [(&["h", "b"], false), (&["b", "h"], false), (&["h", "b"], true)] {
        let build = row("4")
            .floats("w", &[4, 3], &numbers(12, 1))
            .floats("b", &[1, 3], &numbers(3, 2))
            .node("MatMul", &["x", "w"], "h", &[])
            .node(if negated { "Sub" } else { "Add" }, add, "s", &[])
            .node("Tanh", &["s"], "y", &[])
            .output("y");
        let conversion = agrees(&build);
        let [Layer::Dense(dense)] = conversion.model.layers[..] else { panic!("{conversion:?}") };
        assert_eq!(dense.activation, Activation::Tanh);
        let TensorData::F32(bias) = &conversion.model.pairs[0].bias.data else { panic!() };
        let sign = if negated { -1.0 } else { 1.0 };
        let expected: Vec<_> = numbers(3, 2).iter().map(|b| sign * b).collect();
        assert_eq!(*bias, expected);
    }
}

#[test]
fn arithmetic_with_constants_becomes_part_of_what_is_beside_it() {
    // (x − mean) / deviation before the first convolution, which pads: it must stay a layer.
    let build = Build::new()
        .input("x", &["1", "3", "6", "6"])
        .floats("mean", &[1, 3, 1, 1], &[0.4, 0.5, 0.6])
        .floats("deviation", &[3, 1, 1], &[0.2, 0.25, 0.3])
        .node("Sub", &["x", "mean"], "centred", &[])
        .node("Div", &["centred", "deviation"], "scaled", &[])
        .floats("w", &[4, 3, 3, 3], &numbers(108, 1))
        .node("Conv", &["scaled", "w"], "y", &[("pads", [1, 1, 1, 1].into())])
        .output("y");
    assert_eq!(kinds(&agrees(&build)), [LayerKind::BatchNorm2d, LayerKind::Conv2d]);

    // The same before a dense layer goes into its weights.
    let build = row("4")
        .floats("s", &[], &[255.0])
        .floats("one", &[1], &[1.0])
        .node("Div", &["x", "s"], "scaled", &[])
        .node("Sub", &["one", "scaled"], "inverted", &[])
        .floats("w", &[4, 3], &numbers(12, 1))
        .node("MatMul", &["inverted", "w"], "y", &[])
        .output("y");
    assert_eq!(kinds(&agrees(&build)), [LayerKind::Dense]);

    let build = row("4").floats("c", &[], &[2.0]).node("Div", &["c", "x"], "y", &[]).output("y");
    obstacle(&build, &["divides a constant by a computed value"]);
    let build = row("4").floats("c", &[], &[0.0]).node("Div", &["x", "c"], "y", &[]).output("y");
    obstacle(&build, &["divides by 0"]);
    let build = Build::new()
        .input("x", &["1", "2", "2", "2"])
        .floats("c", &[2, 2], &numbers(4, 1))
        .node("Mul", &["x", "c"], "y", &[])
        .output("y");
    obstacle(&build, &["differs along other axes than the channels"]);
}

fn with_activation(
    opset: i64,
    operator: &str,
    inputs: &[&str],
    attributes: &[(&str, Attribute)],
) -> Build {
    row("4")
        .opset(opset)
        .floats("w", &[4, 3], &numbers(12, 1))
        .floats("zero", &[], &[0.0])
        .floats("six", &[], &[6.0])
        .floats("one_six", &[1], &[6.0])
        .floats("infinity", &[], &[f32::INFINITY])
        .floats("minus_infinity", &[], &[f32::NEG_INFINITY])
        .node("MatMul", &["x", "w"], "h", &[])
        .node(operator, inputs, "y", attributes)
        .output("y")
}

fn fused(build: &Build) -> (Activation, f32) {
    let conversion = agrees(build);
    let [Layer::Dense(dense)] = conversion.model.layers[..] else { panic!("{conversion:?}") };
    (dense.activation, dense.alpha)
}

/// Pitfall B11: a quantized graph is not quietly computed in float.
#[test]
fn b11_quantized_operators_are_refused() {
    let build = Build::new()
        .input("q", &["1", "1", "4", "4"])
        .floats("scale", &[], &[0.5])
        .floats("w", &[2, 1, 3, 3], &numbers(18, 1))
        .node("DequantizeLinear", &["q", "scale"], "x", &[])
        .node("Conv", &["x", "w"], "c", &[])
        .node("QuantizeLinear", &["c", "scale"], "y", &[])
        .output("y");
    let all = obstacles(&build);
    assert!(all.iter().any(|text| text.starts_with("DequantizeLinear `x`")), "{all:#?}");
    assert!(all.iter().any(|text| text.contains("convert the float model")), "{all:#?}");
    // Nor is a Conv left out of the list because it alone could be converted.
    assert!(all.iter().any(|text| text.starts_with("QuantizeLinear `y`")), "{all:#?}");
}

/// Pitfall B13: constants that are no numbers, where they mean something and where they do not.
#[test]
fn b13_masks_of_minus_infinity_are_refused() {
    let build = row("4")
        .floats("w", &[4, 3], &numbers(12, 1))
        .floats("mask", &[3], &[0.0, f32::NEG_INFINITY, 0.0])
        .node("MatMul", &["x", "w"], "h", &[])
        .node("Add", &["h", "mask"], "m", &[])
        .node("Softmax", &["m"], "y", &[])
        .output("y");
    obstacle(&build, &["not all finite numbers"]);
}

/// Pitfall B13: limits of a clip may be infinite.
#[test]
fn b13_clip_of_every_version() {
    let inputs = |inputs: &[&str]| fused(&with_activation(13, "Clip", inputs, &[])).0;
    assert_eq!(inputs(&["h", "zero", "six"]), Activation::Relu6);
    assert_eq!(inputs(&["h", "zero", "one_six"]), Activation::Relu6);
    assert_eq!(inputs(&["h", "zero"]), Activation::Relu);
    assert_eq!(inputs(&["h", "zero", ""]), Activation::Relu);
    assert_eq!(inputs(&["h", "zero", "infinity"]), Activation::Relu);
    assert_eq!(inputs(&["h", "", ""]), Activation::None);
    assert_eq!(inputs(&["h", "minus_infinity", "infinity"]), Activation::None);
    let attributes =
        |attributes: &[(&str, Attribute)]| fused(&with_activation(7, "Clip", &["h"], attributes)).0;
    assert_eq!(attributes(&[("min", 0.0.into()), ("max", 6.0.into())]), Activation::Relu6);
    assert_eq!(attributes(&[("min", 0.0.into())]), Activation::Relu);
    assert_eq!(attributes(&[]), Activation::None);
    obstacle(&with_activation(13, "Clip", &["h", "", "six"], &[]), &["Clip `y`", "0..6 (Relu6)"]);
}

#[test]
fn softmax_of_every_version() {
    let axis = |opset, axis: Option<i64>| {
        let attributes: Vec<_> = axis.map(|axis| ("axis", axis.into())).into_iter().collect();
        with_activation(opset, "Softmax", &["h"], &attributes)
    };
    for build in [
        axis(13, None),
        axis(13, Some(1)),
        axis(13, Some(-1)),
        axis(11, None),
        axis(11, Some(1)),
        // All axes from the first on, of which there is one row.
        axis(11, Some(0)),
    ] {
        assert_eq!(fused(&build).0, Activation::Softmax);
    }
    obstacle(&axis(13, Some(0)), &["Softmax `y`", "over axis 0 of [1, 3]"]);
    obstacle(&axis(11, Some(2)), &["over axis 2 of [1, 3]"]);
    obstacle(&axis(13, Some(7)), &["axis 7 of a tensor of rank 2"]);

    // Over the channels of a map of one pixel.
    let build = Build::new()
        .input("x", &["1", "2", "3", "3"])
        .floats("w", &[4, 2, 3, 3], &numbers(72, 1))
        .node("Conv", &["x", "w"], "h", &[])
        .node("Softmax", &["h"], "s", &[("axis", 1.into())])
        .node("Flatten", &["s"], "y", &[])
        .output("y");
    assert_eq!(kinds(&agrees(&build)), [LayerKind::Conv2d]);
    let build = Build::new()
        .input("x", &["1", "2", "3", "3"])
        .node("Softmax", &["x"], "y", &[("axis", 1.into())])
        .output("y");
    obstacle(&build, &["normalises parts of the tensor separately"]);
}

#[test]
fn leaky_relu_keeps_its_slope() {
    let slope = |attributes: &[(&str, Attribute)]| {
        fused(&with_activation(13, "LeakyRelu", &["h"], attributes))
    };
    assert_eq!(slope(&[]), (Activation::LeakyRelu, 0.01));
    assert_eq!(slope(&[("alpha", 0.25.into())]), (Activation::LeakyRelu, 0.25));
    obstacle(
        &with_activation(13, "LeakyRelu", &["h"], &[("alpha", f32::NAN.into())]),
        &["a slope of NaN"],
    );
    obstacle(
        &with_activation(13, "LeakyRelu", &["h"], &[("alpha", 1.into())]),
        &["attribute `alpha` has the wrong type"],
    );
    let twice = [("alpha", 0.25.into()), ("alpha", 0.5.into())];
    obstacle(
        &with_activation(13, "LeakyRelu", &["h"], &twice),
        &["attribute `alpha` is there twice"],
    );
}

/// conv 2→3, then a batch norm with a negative and a zero gamma.
fn normalized(opset: i64) -> Build {
    Build::new()
        .opset(opset)
        .input("x", &["1", "2", "4", "5"])
        .floats("w", &[3, 2, 3, 3], &numbers(54, 1))
        .floats("b", &[3], &[1.0, -1.0, 0.5])
        .floats("gamma", &[3], &[-2.0, 0.0, 1.5])
        .floats("beta", &[3], &[3.0, 0.5, -1.0])
        .floats("mean", &[3], &[0.5, 0.25, -0.5])
        .floats("variance", &[3], &[0.25, 1.0, 2.0])
}

const STATISTICS: [&str; 4] = ["gamma", "beta", "mean", "variance"];

fn batch_norm(build: Build, input: &str, output: &str, attributes: &[(&str, Attribute)]) -> Build {
    let inputs = [&[input][..], &STATISTICS].concat();
    build.node("BatchNormalization", &inputs, output, attributes)
}

#[test]
fn batch_norms_fold_into_the_layer_before() {
    for opset in [7, 9, 13, 15] {
        let build = normalized(opset).node("Conv", &["x", "w", "b"], "h", &[]);
        let build = batch_norm(build, "h", "n", &[("epsilon", 1e-3.into())])
            .node("Relu", &["n"], "y", &[])
            .output("y");
        assert_eq!(kinds(&agrees(&build)), [LayerKind::Conv2d]);
    }
    // The bias in a Constant node counts too.
    let build = normalized(13)
        .node("Constant", &[], "cb", &[("value", floats("", &[3], &[1.0, -1.0, 0.5]).into())])
        .node("Conv", &["x", "w", "cb"], "h", &[]);
    let build = batch_norm(build, "h", "y", &[("epsilon", 1e-3.into())]).output("y");
    assert_eq!(kinds(&agrees(&build)), [LayerKind::Conv2d]);
    // As does a dense layer's.
    let build = normalized(13)
        .node("GlobalAveragePool", &["x"], "p", &[])
        .node("Flatten", &["p"], "f", &[])
        .floats("wd", &[2, 3], &numbers(6, 4))
        .node("Gemm", &["f", "wd", "b"], "h", &[]);
    let build = batch_norm(build, "h", "y", &[]).output("y");
    assert_eq!(
        kinds(&agrees(&build)),
        [LayerKind::AvgPool2d, LayerKind::Flatten, LayerKind::Dense]
    );
}

#[test]
fn batch_norms_behind_an_activation_stay_layers() {
    let build =
        normalized(13).node("Conv", &["x", "w", "b"], "h", &[]).node("Relu", &["h"], "r", &[]);
    let alone = batch_norm(build.clone(), "r", "y", &[]).output("y");
    assert_eq!(kinds(&agrees(&alone)), [LayerKind::Conv2d, LayerKind::BatchNorm2d]);
    // The record of a batch norm has no activation; a 1×1 depthwise convolution has.
    let active = batch_norm(build, "r", "n", &[]).node("Sigmoid", &["n"], "y", &[]).output("y");
    assert_eq!(kinds(&agrees(&active)), [LayerKind::Conv2d, LayerKind::DepthwiseConv2d]);
}

#[test]
fn batch_norms_between_dense_layers_go_forward() {
    let build = normalized(13)
        .node("GlobalAveragePool", &["x"], "p", &[])
        .node("Flatten", &["p"], "f", &[])
        .floats("wd", &[2, 3], &numbers(6, 4))
        .node("Gemm", &["f", "wd", "b"], "h", &[])
        .node("Relu", &["h"], "r", &[]);
    let build = batch_norm(build, "r", "n", &[])
        .floats("w2", &[3, 2], &numbers(6, 5))
        .node("MatMul", &["n", "w2"], "y", &[])
        .output("y");
    let [pool, flatten, dense] = [LayerKind::AvgPool2d, LayerKind::Flatten, LayerKind::Dense];
    assert_eq!(kinds(&agrees(&build)), [pool, flatten, dense, dense]);
}

#[test]
fn batch_norms_netkit_cannot_compute_are_refused() {
    let build = normalized(15).node("Conv", &["x", "w"], "h", &[]);
    obstacle(
        &batch_norm(build.clone(), "h", "y", &[("training_mode", 1.into())]).output("y"),
        &["as in training", "inference mode"],
    );
    let flat = build.clone().node("Flatten", &["h"], "f", &[]);
    let all = obstacles(&batch_norm(flat, "f", "y", &[]).output("y"));
    assert!(all[0].contains("help: normalise before flattening"), "{all:#?}");
    let build = Build::new()
        .input("x", &["1", "1", "2", "2"])
        .floats("gamma", &[1], &[1.0])
        .floats("beta", &[1], &[0.0])
        .floats("mean", &[1], &[0.0])
        .floats("variance", &[1], &[-1.0]);
    obstacle(&batch_norm(build, "x", "y", &[]).output("y"), &["no finite scale and shift"]);
}

#[test]
fn activations_that_nothing_takes_in_become_layers() {
    let build = Build::new()
        .input("x", &["1", "3", "4", "4"])
        .node("Sigmoid", &["x"], "s", &[])
        .node("AveragePool", &["s"], "p", &[("kernel_shape", [2, 2].into())])
        .node("Tanh", &["p"], "y", &[])
        .output("y");
    let [depthwise, pool] = [LayerKind::DepthwiseConv2d, LayerKind::AvgPool2d];
    assert_eq!(kinds(&agrees(&build)), [depthwise, pool, depthwise]);
    // Of a few features a dense layer.
    let build = Build::new()
        .input("x", &["2", "64"])
        .floats("c", &[64], &numbers(64, 1))
        .node("Tanh", &["x"], "t", &[])
        .node("Mul", &["t", "c"], "y", &[])
        .output("y");
    assert_eq!(kinds(&agrees(&build)), [LayerKind::Dense; 2]);
    let build = row("4")
        .floats("w", &[4, 3], &numbers(12, 1))
        .node("MatMul", &["x", "w"], "h", &[])
        .node("Relu", &["h"], "r", &[])
        .node("Softmax", &["r"], "y", &[])
        .output("y");
    assert_eq!(kinds(&agrees(&build)), [LayerKind::Dense; 2]);
    obstacle(
        &row("65").node("Sigmoid", &["x"], "y", &[]).output("y"),
        &["Sigmoid `y`: an activation with no layer before it"],
    );
    obstacle(
        &row("65").floats("two", &[], &[2.0]).node("Mul", &["x", "two"], "y", &[]).output("y"),
        &["Mul `y`: a scale and shift with no dense layer"],
    );
}

#[test]
fn an_activation_behind_a_max_pool_moves_before_it() {
    let build = normalized(13)
        .node("Conv", &["x", "w", "b"], "h", &[])
        .node("MaxPool", &["h"], "p", &[("kernel_shape", [2, 2].into())])
        .node("Relu", &["p"], "y", &[])
        .output("y");
    assert_eq!(kinds(&agrees(&build)), [LayerKind::Conv2d, LayerKind::MaxPool2d]);
}

/// Pitfall B25: a bias that is not there, by a missing input or an empty name.
#[test]
fn b25_a_missing_bias_is_zero() {
    for bias in [&[][..], &[""]] {
        let conv = Build::new()
            .input("x", &["1", "2", "3", "4"])
            .floats("w", &[3, 2, 2, 2], &numbers(24, 1))
            .node("Conv", &[&["x", "w"], bias].concat(), "y", &[])
            .output("y");
        let gemm = gemm(&[&["x", "w"], bias].concat(), &[]);
        for build in [conv, gemm] {
            let pairs = agrees(&build).model.pairs;
            let TensorData::F32(bias) = &pairs[0].bias.data else { panic!("{pairs:?}") };
            assert!(!bias.is_empty() && bias.iter().all(|&x| x == 0.0), "{bias:?}");
        }
    }
}

/// Pitfall B12: scalars and empty names are legal.
#[test]
fn b12_constants_of_every_spelling() {
    let listed = |tensor| {
        Build::new()
            .input("x", &["1", "2", "2", "2"])
            .constant(tensor)
            .node("Mul", &["x", "c"], "y", &[])
            .output("y")
    };
    let raw = floats("c", &[2, 1, 1], &[2.0, 3.0]);
    let mut typed = raw.clone();
    typed.raw_data = None;
    typed.float_data = vec![2.0, 3.0];
    assert_eq!(agrees(&listed(raw)).model, agrees(&listed(typed.clone())).model);
    // A scalar has no dimensions and one element.
    let scalar = floats("c", &[], &[2.0]);
    let mut typed_scalar = scalar.clone();
    typed_scalar.raw_data = None;
    typed_scalar.float_data = vec![2.0];
    let ones = agrees(&listed(floats("c", &[1, 1, 1], &[2.0]))).model;
    for scalar in [scalar, typed_scalar] {
        assert_eq!(agrees(&listed(scalar)).model, ones);
    }

    typed.float_data.push(4.0);
    obstacle(
        &listed(typed.clone()),
        &["constant `c` of shape [2, 1, 1] should have 2 elements and has 3"],
    );
    typed.data_location = Some(1);
    obstacle(&listed(typed.clone()), &["`c` lies in another file", "weights in one file"]);
    typed.data_location = None;
    typed.data_type = Some(10);
    obstacle(&listed(typed.clone()), &["`c` has elements of type float16", "float32"]);
    typed.data_type = Some(1);
    typed.dims = vec![-2];
    obstacle(&listed(typed.clone()), &["`c` has the shape [-2]"]);
    typed.dims = vec![i64::MAX, i64::MAX];
    obstacle(&listed(typed.clone()), &["`c` has the shape"]);
    typed.dims = vec![1 << 40];
    obstacle(&listed(typed), &["should have 1099511627776 elements and has 3"]);
    obstacle(&listed(floats("c", &[], &[f32::NAN])), &["not all finite numbers"]);
    obstacle(&listed(integers("c", &[], &[2])), &["integer type"]);
}

#[test]
fn dead_nodes_stand_in_nobodys_way() {
    let build = normalized(13)
        .node("Conv", &["x", "w", "b"], "y", &[])
        .node("Einsum", &["x"], "unused", &[])
        .output("y");
    agrees(&build);
}

#[test]
fn optional_outputs_must_be_unused() {
    let mut build = normalized(13).node("Conv", &["x", "w"], "h", &[]);
    build = build.node("Dropout", &["h"], "y", &[]).output("y");
    agrees(&build);
    let pool = super::build::bytes(&crate::onnx::wire::NodeProto {
        input: vec!["y".into()],
        output: vec!["p".into(), "indices".into()],
        op_type: Some("MaxPool".into()),
        ..Default::default()
    });
    build.graph.node.push(pool);
    let all = obstacles(&build.output("indices"));
    assert!(all.iter().any(|text| text.contains("its output `indices` is used")), "{all:#?}");
}

#[test]
fn casts_to_what_everything_is_are_dropped() {
    let cast = |to: i64| {
        row("4")
            .floats("w", &[4, 3], &numbers(12, 1))
            .node("Cast", &["x"], "c", &[("to", to.into())])
            .node("Cast", &["w"], "wc", &[("to", to.into())])
            .node("MatMul", &["c", "wc"], "y", &[])
            .output("y")
    };
    assert_eq!(kinds(&agrees(&cast(1))), [LayerKind::Dense]);
    assert!(obstacles(&cast(10))[0].contains("Cast `c`: it converts to float16"));
}

#[test]
fn the_documentation_names_every_operator() {
    let document = include_str!("../../../../docs/importing.md");
    let converted = crate::onnx::operators::CONVERTERS.iter().map(|(name, _)| *name);
    for operator in converted.chain(crate::onnx::layout::OPERATORS) {
        assert!(document.contains(&format!("`{operator}`")), "`{operator}` is missing");
    }
}
