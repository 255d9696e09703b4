//! Files that mean harm, or were damaged.

use super::build::{Build, bytes, floats};
use super::numbers;
use crate::onnx::wire::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto};
use crate::onnx::{Model, ParseError};
use crate::{Options, onnx};
use bytes::Bytes;

fn parse(graph: GraphProto) -> Result<Model, ParseError> {
    let opset = OperatorSetIdProto { domain: None, version: Some(13) };
    Model::parse(bytes(&ModelProto { graph: Some(graph), opset_import: vec![bytes(&opset)] }))
}

#[test]
fn what_is_no_onnx_file_is_an_error() {
    assert_eq!(Model::parse(Vec::new()).unwrap_err(), ParseError::NoGraph);
    assert!(matches!(Model::parse(&b"NKIT\x03\0\0\0"[..]), Err(ParseError::AlreadyNk)));
    assert!(matches!(Model::parse(&b"\x08\x08\x3a\x05abc"[..]), Err(ParseError::Damaged(_))));
    assert!(matches!(Model::parse(&b"\x3a\xff\xff\xff\xff\x0f"[..]), Err(ParseError::Protobuf(_))));
    let no_opset = ModelProto { graph: Some(GraphProto::default()), ..Default::default() };
    assert_eq!(Model::parse(bytes(&no_opset)).unwrap_err(), ParseError::NoOpset);
}

#[test]
fn long_lists_of_nothing_are_refused_before_they_are_decoded() {
    let many = vec![Bytes::new(); (1 << 16) + 1];
    for graph in [
        GraphProto { node: many.clone(), ..Default::default() },
        GraphProto { initializer: many.clone(), ..Default::default() },
        GraphProto { value_info: many.clone(), ..Default::default() },
    ] {
        assert!(matches!(parse(graph), Err(ParseError::TooMany { count: 65537, .. })));
    }
    let node = NodeProto { attribute: many, ..Default::default() };
    let graph = GraphProto { node: vec![bytes(&node)], ..Default::default() };
    assert!(matches!(parse(graph), Err(ParseError::TooMany { .. })));
}

#[test]
fn names_are_unique() {
    let build = Build::new().node("Relu", &["x"], "y", &[]).node("Relu", &["y"], "y", &[]);
    assert!(matches!(Model::parse(build.file()), Err(ParseError::Duplicate { .. })));
    let build = Build::new().floats("c", &[], &[1.0]).floats("c", &[], &[2.0]);
    assert!(matches!(Model::parse(build.file()), Err(ParseError::Duplicate { .. })));
}

#[test]
fn thousands_of_nodes_may_not_share_a_large_tensor() {
    let size = 64;
    let mut build = Build::new().input("x", &["1", "64"]).floats(
        "w",
        &[size, size],
        &numbers((size * size) as usize, 1),
    );
    let mut input = "x".to_owned();
    for index in 0..200 {
        let output = format!("h{index}");
        build = build.node("MatMul", &[&input, "w"], &output, &[]);
        input = output;
    }
    let all = super::obstacles(&build.output(&input));
    assert!(all.iter().any(|text| text.contains("share the same weights")), "{}", all[0]);
}

#[test]
fn maps_of_any_size_allocate_nothing() {
    // Four thousand million channels, scaled by one number.
    let build = Build::new()
        .input("x", &["1", "4000000000", "1", "1"])
        .floats("c", &[], &[2.0])
        .node("Mul", &["x", "c"], "s", &[])
        .node("Sigmoid", &["s"], "y", &[])
        .output("y");
    super::obstacle(&build, &["a layer on 4000000000 channels"]);
    let build = Build::new()
        .input("x", &["1", "1", "65536", "65535"])
        .constant(floats("w", &[1, 1, 1, 1], &[1.0]))
        .node("Conv", &["x", "w"], "y", &[])
        .output("y");
    super::convert(&build);
    let build = Build::new()
        .input("x", &["1", "1", "65536", "65536"])
        .node("Relu", &["x"], "y", &[])
        .output("y");
    assert!(super::obstacles(&build)[0].contains("the input `x`"));
}

#[test]
fn absurd_attributes_are_errors() {
    let extremes = [i64::MIN, i64::MIN + 1, -1, 0, 1, 1 << 31, 1 << 32, i64::MAX];
    for a in extremes {
        for b in extremes {
            for name in ["strides", "pads", "dilations", "kernel_shape"] {
                for operator in ["MaxPool", "AveragePool", "Conv"] {
                    let mut attributes = vec![("kernel_shape", [2, 2].into())];
                    let value = if name == "pads" { [a, b, b, a].into() } else { [a, b].into() };
                    attributes.push((name, value));
                    attributes.push(("ceil_mode", 1.into()));
                    let build = Build::new()
                        .input("x", &["1", "1", "9", "9"])
                        .floats("w", &[1, 1, 2, 2], &[1.0; 4])
                        .node(
                            operator,
                            if operator == "Conv" { &["x", "w"] } else { &["x"] },
                            "y",
                            &attributes,
                        )
                        .output("y");
                    drop(build.model().convert(&Options::default()));
                }
            }
            let build = Build::new()
                .input("x", &["1", "3", "2"])
                .integers("to", &[a, b])
                .node("Reshape", &["x", "to"], "r", &[])
                .node("Transpose", &["r"], "t", &[("perm", [a, b].into())])
                .node("Flatten", &["t"], "f", &[("axis", a.into())])
                .node("Unsqueeze", &["f", "to"], "u", &[])
                .node("Squeeze", &["u", "to"], "s", &[])
                .node("Softmax", &["s"], "y", &[("axis", b.into())])
                .output("y");
            drop(build.model().convert(&Options::default()));
            drop(build.model().evaluate(&[1, 3, 2], &numbers(6, 1)));
        }
    }
}

/// Every byte of a small model set to a few values, and every truncation.
#[test]
fn no_damage_to_a_file_makes_a_panic() {
    let file = Build::new()
        .input("x", &["N", "2", "4", "4"])
        .floats("w", &[2, 2, 3, 3], &numbers(36, 1))
        .floats("c", &[2, 1, 1], &[1.0, 2.0])
        .node("Conv", &["x", "w"], "h", &[("pads", [1, 1, 1, 1].into())])
        .node("Mul", &["h", "c"], "m", &[])
        .node("MaxPool", &["m"], "p", &[("kernel_shape", [2, 2].into()), ("ceil_mode", 1.into())])
        .integers("to", &[1, -1])
        .node("Reshape", &["p", "to"], "f", &[])
        .floats("d", &[18, 2], &numbers(36, 2))
        .node("Gemm", &["f", "d"], "g", &[])
        .node("Softmax", &["g"], "y", &[])
        .output("y")
        .file()
        .to_vec();
    let run = |bytes: Vec<u8>| -> bool {
        let Ok(model) = onnx::Model::parse(bytes) else { return false };
        let Ok(conversion) = model.convert(&Options::default()) else { return false };
        drop(conversion.model.to_bytes());
        let dims = conversion.input.dims();
        let count = dims.iter().product();
        if count < 10_000 {
            model.evaluate(dims, &numbers(count, 1)).unwrap();
        }
        true
    };
    assert!(run(file.clone()));
    for end in 0..file.len() {
        run(file[..end].to_vec());
    }
    for at in 0..file.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, file[at] ^ 0x08, file[at].wrapping_add(1)] {
            let mut damaged = file.clone();
            damaged[at] = value;
            run(damaged);
        }
    }
}
