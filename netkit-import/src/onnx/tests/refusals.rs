//! What is said of models that cannot be converted.

use super::build::Build;
use super::{numbers, obstacle, obstacles};

fn conv(build: Build, input: &str, output: &str) -> Build {
    build.node("Conv", &[input, "w"], output, &[("pads", [1, 1, 1, 1].into())])
}

fn maps() -> Build {
    Build::new().input("x", &["N", "2", "6", "6"]).floats("w", &[2, 2, 3, 3], &numbers(36, 1))
}

#[test]
fn all_obstacles_are_listed_at_once() {
    let build = conv(maps(), "x", "c1").node("HardSwish", &["c1"], "h1", &[]);
    let build = conv(build, "h1", "c2")
        .node("Conv", &["c2", "w"], "c3", &[("dilations", [2, 2].into())])
        .node("Resize", &["c3", "", "scales"], "up", &[])
        .node("NoSuchOperator", &["up"], "no", &[])
        .node("Relu", &["no"], "y", &[])
        .output("y");
    let all = obstacles(&build);
    let starts: Vec<_> =
        all.iter().filter_map(|text| text.split_once(':')).map(|it| it.0).collect();
    assert_eq!(
        starts,
        ["HardSwish `h1`", "Resize `up`", "NoSuchOperator `no`", "Conv `c3`"],
        "{all:#?}"
    );
    assert!(all[0].contains("from `c1` 1×2×6×6 to `h1` 1×2×6×6"), "{}", all[0]);
    assert!(all[1].contains("`scales` of unknown shape to `up` of unknown shape"), "{}", all[1]);
    assert!(all[3].contains("from `c2` 1×2×6×6, `w` 2×2×3×3 to `c3` 1×2×2×2"), "{}", all[3]);
    assert!(all[0].contains("help: train with Relu"));
}

#[test]
fn branches_are_refused_where_they_join() {
    let build = conv(maps(), "x", "c1");
    let build = conv(build, "c1", "c2").node("Add", &["c2", "c1"], "sum", &[]);
    let build = conv(build, "sum", "y").output("y");
    obstacle(
        &build,
        &[
            "Add `sum`: it joins computed values: `c2`, `c1`",
            "from `c2` 1×2×6×6, `c1` 1×2×6×6",
            "only sequential models",
        ],
    );
    let build = conv(maps(), "x", "c1").node("Concat", &["c1", "x"], "y", &[]).output("y");
    obstacle(&build, &["Concat `y`: not supported", "only sequential models"]);
}

#[test]
fn several_inputs_and_outputs_are_refused_by_name() {
    let build = conv(maps(), "x", "c1");
    let build = conv(build, "c1", "c2").output("c1").output("c2");
    obstacle(&build, &["the model has 2 outputs: `c1`, `c2`"]);
    let build = maps().input("x2", &["1", "2", "6", "6"]).node("Add", &["x", "x2"], "y", &[]);
    let all = obstacles(&build.output("y"));
    assert!(all[0].contains("the model has 2 inputs: `x`, `x2`"), "{all:#?}");
    assert!(all[1].contains("joins computed values"));
    // One that nothing reads does not count.
    super::agrees(&conv(maps().input("unused", &["3"]), "x", "y").output("y"));
}

#[test]
fn models_that_compute_nothing_are_refused() {
    obstacle(&maps().output("x"), &["the model computes nothing"]);
    obstacle(&maps().node("Identity", &["x"], "y", &[]).output("y"), &["computes nothing"]);
    let all = obstacles(&maps().output("nothing"));
    assert_eq!(all, ["the output depends on no input", "invalid ONNX: no node produces `nothing`"]);
}

#[test]
fn foreign_operators_are_told_apart() {
    let mut build = maps().output("y");
    build.graph.node.push(super::build::bytes(&crate::onnx::wire::NodeProto {
        input: vec!["x".into()],
        output: vec!["y".into()],
        op_type: Some("FusedConv".into()),
        domain: Some("com.microsoft".into()),
        ..Default::default()
    }));
    obstacle(
        &build,
        &["FusedConv `#0 → y`: an operator of `com.microsoft`", "without the optimiser"],
    );
}

#[test]
fn old_operator_sets_are_refused() {
    let all = obstacles(&conv(maps().opset(6), "x", "y").output("y"));
    assert!(all[0].contains("version 6"), "{all:#?}");
}

#[test]
fn operator_sets_of_the_future_are_refused() {
    let of = |opset| conv(maps().opset(opset), "x", "y").output("y");
    for opset in [29, 1000, i64::MAX] {
        let all = obstacles(&of(opset));
        assert_eq!(all.len(), 1, "{all:#?}");
        assert!(all[0].contains(&format!("version {opset}")) && all[0].contains("28"), "{all:#?}");
    }
    assert!(of(28).model().convert(&crate::Options::default()).is_ok());
}

#[test]
fn other_input_types_are_refused() {
    let mut port = super::build::port("x", &["1", "4"]);
    port.r#type.as_mut().unwrap().tensor_type.as_mut().unwrap().elem_type = Some(2);
    let mut build = Build::new().node("Relu", &["x"], "y", &[]).output("y");
    build.graph.input.push(super::build::bytes(&port));
    obstacle(&build, &["the input `x` is of type uint8", "float32"]);
}

#[test]
fn more_layers_than_a_file_holds_are_counted() {
    let mut build = maps();
    let mut input = "x".to_owned();
    for index in 0..101 {
        let output = format!("c{index}");
        build = conv(build, &input, &output);
        input = output;
    }
    // So many convolutions of one filter exceed what may be copied out of so small a file only if
    // the sharing is much larger than here.
    let all = obstacles(&build.output(&input));
    assert!(all[0].contains("the model has 101 layers, 101 of them with weights"), "{all:#?}");
}

#[test]
fn sequences_and_volumes_are_refused() {
    let build = Build::new()
        .input("x", &["1", "2", "6"])
        .floats("w", &[2, 2, 3], &numbers(12, 1))
        .node("Conv", &["x", "w"], "y", &[])
        .output("y");
    obstacle(&build, &["Conv `y`", "[1, 2, 6]", "one-dimensional"]);
}
