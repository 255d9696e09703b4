//! Element order: NCHW to NHWC through reshapes and transpositions, and input shapes.

use super::build::{Build, integers};
use super::{agrees, agrees_with, compare, convert, kinds, nk, numbers, obstacle, obstacles_with};
use crate::{CaseError, Options};
use netkit_core::format::{CaseData, LayerKind, NetworkKind, TensorData};

/// Adds a dense layer without bias.
fn dense(build: Build, input: &str, features: i64, units: i64, output: &str) -> Build {
    let weights = format!("{output}.weights");
    build.floats(&weights, &[features, units], &numbers((features * units) as usize, 9)).node(
        "MatMul",
        &[input, &weights],
        output,
        &[],
    )
}

/// A convolution to a map of 3 channels, 2 rows and 4 columns: no two sizes the same, so that no
/// mistake in their order hides.
fn map_of_3_by_2_by_4() -> Build {
    Build::new().input("x", &["1", "2", "3", "5"]).floats("w", &[3, 2, 2, 2], &numbers(24, 1)).node(
        "Conv",
        &["x", "w"],
        "map",
        &[],
    )
}

#[test]
fn a_dense_layer_behind_a_flatten_has_its_columns_permuted() {
    // A 1×1 convolution that passes a 3-channel map on, then weights that tell their own column.
    let build = Build::new()
        .input("x", &["1", "3", "2", "2"])
        .floats("w", &[3, 3, 1, 1], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
        .node("Conv", &["x", "w"], "map", &[])
        .node("Flatten", &["map"], "flat", &[])
        .floats("rows", &[2, 12], &(0..24).map(|i| (i % 12) as f32).collect::<Vec<_>>())
        .node("Gemm", &["flat", "rows"], "y", &[("transB", 1.into())])
        .output("y");
    let conversion = agrees(&build);
    let TensorData::F32(weights) = &conversion.model.pairs[1].weight.data else { panic!() };
    // Pixel by pixel, channel by channel: channel c of pixel p was column 4c + p.
    assert_eq!(weights[..12], [0.0, 4.0, 8.0, 1.0, 5.0, 9.0, 2.0, 6.0, 10.0, 3.0, 7.0, 11.0]);
}

/// Pitfall B10: columns behind a flattened map.
#[test]
fn b10_every_way_to_flatten_permutes_the_same() {
    let flattened = |build: Build| agrees(&dense(build, "flat", 24, 5, "y").output("y")).model;
    let flatten = flattened(map_of_3_by_2_by_4().node("Flatten", &["map"], "flat", &[]));
    let reshape = flattened(map_of_3_by_2_by_4().integers("to", &[1, -1]).node(
        "Reshape",
        &["map", "to"],
        "flat",
        &[],
    ));
    let copied_batch = flattened(map_of_3_by_2_by_4().integers("to", &[0, 24]).node(
        "Reshape",
        &["map", "to"],
        "flat",
        &[],
    ));
    let in_steps = flattened(
        map_of_3_by_2_by_4()
            .integers("rows", &[1, 3, 8])
            .integers("to", &[-1, 24])
            .node("Reshape", &["map", "rows"], "partly", &[])
            .node("Identity", &["partly"], "same", &[])
            .node("Dropout", &["same"], "kept", &[])
            .node("Reshape", &["kept", "to"], "flat", &[]),
    );
    for other in [reshape, copied_batch, in_steps] {
        assert_eq!(other, flatten);
    }
}

#[test]
fn the_shape_a_framework_computes_is_folded() {
    // x.view(x.size(0), -1) as exporters write it.
    let build = map_of_3_by_2_by_4()
        .node("Shape", &["map"], "shape", &[])
        .node("Constant", &[], "first", &[("value", integers("", &[], &[0]).into())])
        .node("Gather", &["shape", "first"], "batch", &[])
        .integers("axes", &[0])
        .node("Unsqueeze", &["batch", "axes"], "batch1", &[])
        .node("Constant", &[], "rest", &[("value", integers("", &[1], &[-1]).into())])
        .node("Concat", &["batch1", "rest"], "to", &[("axis", 0.into())])
        .node("Reshape", &["map", "to"], "flat", &[]);
    agrees(&dense(build, "flat", 24, 5, "y").output("y"));
}

#[test]
fn a_transposition_before_a_flatten_is_read_not_assumed() {
    for perm in [[0, 2, 3, 1], [0, 1, 2, 3], [0, 3, 1, 2], [0, 2, 1, 3], [0, 3, 2, 1]] {
        let build = map_of_3_by_2_by_4()
            .node("Transpose", &["map"], "turned", &[("perm", perm.into())])
            .node("Flatten", &["turned"], "flat", &[]);
        let conversion = agrees(&dense(build, "flat", 24, 5, "y").output("y"));
        let [conv, flatten, dense] = [LayerKind::Conv2d, LayerKind::Flatten, LayerKind::Dense];
        assert_eq!(kinds(&conversion), [conv, flatten, dense]);
    }
    // Without perm, all axes are reversed.
    let build = map_of_3_by_2_by_4()
        .node("Transpose", &["map"], "turned", &[])
        .integers("to", &[1, 24])
        .node("Reshape", &["turned", "to"], "flat", &[]);
    agrees(&dense(build, "flat", 24, 5, "y").output("y"));
}

/// Pitfall B08: a transposition is what its `perm` says, which may be nothing.
#[test]
fn b08_a_transposed_weight_is_read_by_its_perm() {
    for (perm, dims) in [([0, 1], [4, 5]), ([1, 0], [5, 4])] {
        let build = Build::new()
            .input("x", &["N", "4"])
            .floats("w", &dims, &numbers(20, 3))
            .node("Transpose", &["w"], "turned", &[("perm", perm.into())])
            .node("Gemm", &["x", "turned"], "y", &[])
            .output("y");
        agrees(&build);
    }
    let build = Build::new()
        .input("x", &["N", "4"])
        .floats("w", &[5, 4], &numbers(20, 3))
        .node("Transpose", &["w"], "turned", &[])
        .node("Identity", &["turned"], "same", &[])
        .node("Gemm", &["x", "same"], "y", &[])
        .output("y");
    agrees(&build);
}

#[test]
fn channel_last_images_are_stored_as_they_are() {
    let build = Build::new()
        .input("x", &["N", "3", "5", "2"])
        .node("Transpose", &["x"], "nchw", &[("perm", [0, 3, 1, 2].into())])
        .floats("w", &[3, 2, 2, 2], &numbers(24, 1))
        .node("Conv", &["nchw", "w"], "map", &[])
        .node("Transpose", &["map"], "y", &[("perm", [0, 2, 3, 1].into())])
        .output("y");
    let conversion = agrees(&build);
    assert_eq!(conversion.model.input.dims(), [3, 5, 2]);
    assert!(!conversion.input.is_reordered() && !conversion.output.is_reordered());
    assert_eq!(conversion.output.dims(), [1, 2, 4, 3]);
    // The usual order is another.
    let nchw = convert(&map_of_3_by_2_by_4().output("map"));
    assert!(nchw.input.is_reordered() && nchw.output.is_reordered());
    assert_eq!(nchw.model.input.dims(), [3, 5, 2]);
}

#[test]
fn a_flat_input_reshaped_to_an_image_is_an_image() {
    let build = Build::new()
        .input("x", &["N", "30"])
        .integers("image", &[1, 2, 3, 5])
        .node("Reshape", &["x", "image"], "map_in", &[])
        .floats("w", &[3, 2, 2, 2], &numbers(24, 1))
        .node("Conv", &["map_in", "w"], "map", &[])
        .node("Flatten", &["map"], "flat", &[]);
    let conversion = agrees(&dense(build, "flat", 24, 2, "y").output("y"));
    assert_eq!(conversion.model.input.dims(), [3, 5, 2]);
    assert_eq!(conversion.input.dims(), [1, 30]);
}

#[test]
fn images_read_by_dense_layers_only() {
    // Four axes are a map.
    let build = Build::new().input("x", &["N", "2", "3", "4"]).node("Flatten", &["x"], "flat", &[]);
    let conversion = agrees(&dense(build, "flat", 24, 2, "y").output("y"));
    assert_eq!(kinds(&conversion), [LayerKind::Flatten, LayerKind::Dense]);
    assert_eq!(conversion.model.input.dims(), [3, 4, 2]);
    // Channel-last ones if the model turns them.
    let build = Build::new()
        .input("x", &["N", "3", "4", "2"])
        .node("Transpose", &["x"], "nchw", &[("perm", [0, 3, 1, 2].into())])
        .floats("c", &[2, 1, 1], &[2.0, 3.0])
        .node("Mul", &["nchw", "c"], "scaled", &[])
        .node("Flatten", &["scaled"], "flat", &[]);
    let conversion = agrees(&dense(build, "flat", 24, 2, "y").output("y"));
    assert_eq!(conversion.model.input.dims(), [3, 4, 2]);
    assert!(!conversion.input.is_reordered());
    // Three are a vector.
    let build = Build::new().input("x", &["N", "6", "4"]).node("Flatten", &["x"], "flat", &[]);
    let conversion = agrees(&dense(build, "flat", 24, 2, "y").output("y"));
    assert_eq!(conversion.model.kind, NetworkKind::Mlp);
    assert_eq!(conversion.model.input.dims(), [1, 24]);
}

#[test]
fn axes_of_one_come_and_go() {
    let build = Build::new()
        .input("x", &["1", "3", "4", "5"])
        .node("GlobalAveragePool", &["x"], "pooled", &[])
        .integers("axes", &[2, 3])
        .node("Squeeze", &["pooled", "axes"], "flat", &[]);
    let squeezed = agrees(&dense(build, "flat", 3, 2, "y").output("y"));
    assert_eq!(kinds(&squeezed), [LayerKind::AvgPool2d, LayerKind::Flatten, LayerKind::Dense]);

    let build = Build::new()
        .opset(11)
        .input("x", &["4"])
        .node("Unsqueeze", &["x"], "row", &[("axes", [0].into())])
        .node("Unsqueeze", &["row"], "deep", &[("axes", [1, -1].into())])
        .node("Squeeze", &["deep"], "flat", &[]);
    let conversion = agrees(&dense(build, "flat", 4, 2, "y").output("y"));
    assert_eq!(conversion.output.dims(), [2]);
}

#[test]
fn elementwise_operators_work_in_any_layout() {
    let build = map_of_3_by_2_by_4()
        .node("Transpose", &["map"], "nhwc", &[("perm", [0, 2, 3, 1].into())])
        .floats("bias", &[3], &[0.5, -0.25, 0.125])
        .node("Add", &["nhwc", "bias"], "biased", &[])
        .node("Flatten", &["biased"], "flat", &[])
        .node("Relu", &["flat"], "relu", &[]);
    let conversion = agrees(&dense(build, "relu", 24, 5, "y").output("y"));
    assert_eq!(kinds(&conversion), [LayerKind::Conv2d, LayerKind::Flatten, LayerKind::Dense]);
}

#[test]
fn an_output_in_an_order_netkit_does_not_have_is_refused() {
    let build = map_of_3_by_2_by_4().node("Flatten", &["map"], "y", &[]).output("y");
    obstacle(&build, &["the output `y` of shape 1×24", "let the model end before the Flatten"]);
    let build = map_of_3_by_2_by_4()
        .node("Transpose", &["map"], "y", &[("perm", [0, 3, 2, 1].into())])
        .output("y");
    obstacle(&build, &["the output `y` of shape 1×4×2×3"]);
}

#[test]
fn a_map_transposed_between_convolutions_is_refused() {
    let build = map_of_3_by_2_by_4()
        .node("Transpose", &["map"], "turned", &[("perm", [0, 1, 3, 2].into())])
        .floats("w2", &[1, 3, 1, 1], &[1.0, 2.0, 3.0])
        .node("Conv", &["turned", "w2"], "y", &[])
        .output("y");
    obstacle(&build, &["Conv `y`", "transposed or reshaped to another map at run time"]);
}

#[test]
fn a_reshape_that_is_no_view_is_refused() {
    let build = map_of_3_by_2_by_4()
        .integers("to", &[1, 4, 6])
        .node("Reshape", &["map", "to"], "y", &[])
        .output("y");
    obstacle(&build, &["Reshape `y`", "would have to move elements at run time"]);
    let build = map_of_3_by_2_by_4()
        .integers("to", &[1, 25])
        .node("Reshape", &["map", "to"], "y", &[])
        .output("y");
    obstacle(&build, &["Reshape `y`: [1, 3, 2, 4] cannot be reshaped to [1, 25]"]);
}

fn sized(dims: &[&str]) -> Build {
    Build::new()
        .input("x", dims)
        .floats("w", &[1, 1, 3, 3], &numbers(9, 2))
        .node("Conv", &["x", "w"], "y", &[("auto_pad", "SAME_UPPER".into())])
        .output("y")
}

#[test]
fn a_symbolic_batch_is_one() {
    assert_eq!(agrees(&sized(&["batch_size", "1", "4", "6"])).model.input.dims(), [4, 6, 1]);
    assert_eq!(agrees(&sized(&["", "1", "4", "6"])).model.input.dims(), [4, 6, 1]);
}

#[test]
fn other_sizes_that_are_open_must_be_given() {
    let build = sized(&["N", "1", "height", "width"]);
    obstacle(
        &build,
        &["`x` has the shape [N, 1, height, width]", "help: give the shape", "--input-shape"],
    );
    let given = |shape: &[usize]| Options { input_shape: Some(shape.into()) };
    let conversion = agrees_with(&build, &given(&[1, 1, 5, 6]));
    assert_eq!(conversion.model.input.dims(), [5, 6, 1]);
    for wrong in [&[1, 2, 5, 6][..], &[1, 1, 5], &[1, 1, 0, 6], &[1, 1, 1 << 20, 1 << 20]] {
        let all = obstacles_with(&build, &given(wrong));
        assert!(all[0].contains("the input `x` has the shape"), "{all:#?}");
    }
}

#[test]
fn a_fixed_batch_can_be_overridden() {
    let build = sized(&["8", "1", "4", "6"]);
    obstacle(&build, &["`x` is a batch of 8 maps", "--input-shape 1,1,4,6"]);
    agrees_with(&build, &Options { input_shape: Some(vec![1, 1, 4, 6]) });
}

#[test]
fn rows_of_an_mlp_are_kept() {
    let build = dense(Build::new().input("x", &["3", "4"]), "x", 4, 2, "y").output("y");
    let conversion = agrees(&build);
    assert_eq!(conversion.model.input.dims(), [3, 4]);
    assert_eq!(conversion.output.dims(), [3, 2]);
    let build = dense(Build::new().input("x", &["3", "4"]), "x", 4, 2, "h")
        .node("Softmax", &["h"], "y", &[])
        .output("y");
    obstacle(&build, &["Softmax `y`", "--input-shape"]);
}

#[test]
fn initializers_may_be_listed_as_inputs() {
    let build = dense(Build::new().input("x", &["N", "4"]), "x", 4, 2, "y")
        .input("y.weights", &["4", "2"])
        .output("y");
    agrees(&build);
}

#[test]
fn a_declared_output_of_another_shape_is_only_noted() {
    let mut build = map_of_3_by_2_by_4();
    build.graph.output.push(super::build::bytes(&super::build::port("map", &["1", "24"])));
    let conversion = convert(&build);
    assert_eq!(conversion.notes, ["the file declares the output `map` as 1×24; it is 1×3×2×4"]);
    compare(&build.model(), &conversion);
    let output = nk::evaluate(&conversion.model, &[0.0; 30]);
    assert_eq!(output.len(), 24);
}

#[test]
fn cases_are_put_in_netkits_order() {
    let build = map_of_3_by_2_by_4().output("map");
    let source = build.model();
    let mut conversion = convert(&build);
    let input = numbers(30, 7);
    let expected = source.evaluate(conversion.input.dims(), &input).unwrap();
    conversion.add_case("first".into(), None, &input, &expected).unwrap();
    let case = &conversion.model.cases[0];
    let CaseData::F32(stored) = &case.input else { panic!() };
    let output = nk::evaluate(&conversion.model, stored);
    for (actual, expected) in output.iter().zip(&case.expected) {
        assert!((actual - f64::from(*expected)).abs() < 1e-6);
    }
    conversion.model.to_bytes().unwrap();

    let add = |conversion: &mut crate::Conversion, label, input: &[f32], expected: &[f64]| {
        conversion.add_case("more".into(), label, input, expected)
    };
    assert_eq!(add(&mut conversion, None, &input[1..], &expected), Err(CaseError::Length));
    assert_eq!(add(&mut conversion, None, &input, &[f64::NAN; 24]), Err(CaseError::NotFinite));
    // Too large for float32.
    assert_eq!(add(&mut conversion, None, &input, &[1e39; 24]), Err(CaseError::NotFinite));
    let mut best = [0.0; 24];
    best[1] = 1.0;
    // The second element in the source's order, the first channel's second pixel, is netkit's fourth.
    let found = Err(CaseError::Misclassified { found: 3 });
    assert_eq!(add(&mut conversion, Some(1), &input, &best), found);
    for _ in 1..16 {
        add(&mut conversion, Some(3), &input, &best).unwrap();
    }
    assert_eq!(add(&mut conversion, Some(3), &input, &best), Err(CaseError::Full));
}
