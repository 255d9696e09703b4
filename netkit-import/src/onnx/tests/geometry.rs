//! Windows: padding, strides, ceil mode.

use super::build::{Attribute, Build};
use super::{agrees, agrees_with, convert, kinds, nk, numbers, obstacle};
use crate::Options;
use netkit_core::format::{Layer, LayerKind};

/// One convolution of a single channel with a kernel of ones.
fn ones(input: [&str; 4], kernel: [i64; 2], attributes: &[(&str, Attribute)]) -> Build {
    let count = (kernel[0] * kernel[1]) as usize;
    Build::new()
        .input("x", &input)
        .floats("w", &[1, 1, kernel[0], kernel[1]], &vec![1.0; count])
        .node("Conv", &["x", "w"], "y", attributes)
        .output("y")
}

fn ramp(count: usize) -> Vec<f32> {
    (1..=count).map(|value| value as f32).collect()
}

/// Pitfall B01: padding that does not ask for the stride.
#[test]
fn b01_same_upper_and_same_lower_differ_with_a_stride() {
    for (auto_pad, expected) in
        [("SAME_UPPER", [54.0, 45.0, 72.0, 54.0]), ("SAME_LOWER", [14.0, 30.0, 57.0, 99.0])]
    {
        let build = ones(
            ["1", "1", "4", "4"],
            [3, 3],
            &[("auto_pad", auto_pad.into()), ("strides", [2, 2].into())],
        );
        let conversion = agrees(&build);
        assert_eq!(nk::evaluate(&conversion.model, &ramp(16)), expected, "{auto_pad}");
    }
}

/// Pitfall B02: a padding that depends on a size which the file leaves open.
#[test]
fn b02_auto_pad_of_an_open_size_asks_for_it() {
    let attributes = [("auto_pad", "SAME_UPPER".into()), ("strides", [2, 2].into())];
    let build = |dims: [&str; 4]| {
        Build::new()
            .input("x", &dims)
            .floats("w", &[2, 3, 3, 3], &numbers(54, 1))
            .node("Conv", &["x", "w"], "y", &attributes)
            .output("y")
    };
    let open = build(["1", "3", "H", "W"]);
    obstacle(&open, &["[1, 3, H, W]", "--input-shape 1,3,224,224"]);
    obstacle(&build(["N", "C", "?", "?"]), &["--input-shape"]);
    let given = Options { input_shape: Some(vec![1, 3, 7, 6]) };
    assert_eq!(agrees_with(&open, &given).output.dims(), [1, 2, 4, 3]);
}

/// Pitfall B03: the output of SAME is the input over the stride, rounded up.
#[test]
fn b03_same_padding_rounds_the_output_up() {
    let attributes = [("auto_pad", "SAME_UPPER".into()), ("strides", [2, 2].into())];
    let conversion = agrees(&ones(["1", "1", "7", "5"], [3, 3], &attributes));
    assert_eq!(conversion.output.dims(), [1, 1, 4, 3]);
}

#[test]
fn an_even_same_kernel_is_padded_unevenly() {
    // Before 1, after 2: what a record can hold.
    agrees(&ones(["1", "1", "5", "6"], [4, 4], &[("auto_pad", "SAME_UPPER".into())]));
    // Before 2, after 1: with stride 1 no other padding gives the same windows.
    obstacle(
        &ones(["1", "1", "5", "6"], [4, 4], &[("auto_pad", "SAME_LOWER".into())]),
        &["Conv `y`", "top 2, left 2, bottom 1, right 1", "help: train with the same padding"],
    );
}

#[test]
fn a_larger_end_padding_is_found_where_it_changes_nothing() {
    // Before 1, after 0, stride 2: one more column after is never reached.
    let attributes = [("pads", [1, 1, 0, 0].into()), ("strides", [2, 2].into())];
    let conversion = agrees(&ones(["1", "1", "6", "8"], [3, 3], &attributes));
    let [Layer::Conv2d(conv)] = conversion.model.layers[..] else { panic!("{conversion:?}") };
    assert_eq!((conv.pad_h, conv.pad_w, conv.pad_extra), (1, 1, 0));
}

#[test]
fn end_padding_is_kept_as_it_is_where_it_fits() {
    let attributes = [("pads", [1, 1, 2, 1].into())];
    let conversion = agrees(&ones(["1", "1", "4", "4"], [3, 3], &attributes));
    let [Layer::Conv2d(conv)] = conversion.model.layers[..] else { panic!("{conversion:?}") };
    assert_eq!((conv.pad_h, conv.pad_w, conv.pad_extra), (1, 1, 1));
}

#[test]
fn valid_and_absent_padding_are_none() {
    for attributes in
        [vec![("auto_pad", "VALID".into())], vec![], vec![("auto_pad", "NOTSET".into())]]
    {
        let conversion = agrees(&ones(["1", "1", "5", "6"], [3, 3], &attributes));
        assert_eq!(conversion.output.dims(), [1, 1, 3, 4]);
    }
}

#[test]
fn what_no_record_holds_is_refused_by_name() {
    obstacle(
        &ones(["1", "1", "8", "8"], [3, 3], &[("dilations", [2, 2].into())]),
        &["Conv `y`: a dilation of 2×2", "from `x` 1×1×8×8, `w` 1×1×3×3 to `y` 1×1×4×4"],
    );
    obstacle(&ones(["1", "1", "8", "8"], [3, 1], &[]), &["a 3×1 kernel", "square"]);
    obstacle(
        &ones(["1", "1", "8", "8"], [3, 3], &[("strides", [1, 2].into())]),
        &["strides of 1 and 2"],
    );
    obstacle(
        &ones(["1", "1", "8", "8"], [3, 3], &[("pads", [0, 0, -1, 0].into())]),
        &["would crop the map"],
    );
    obstacle(&ones(["1", "1", "2", "8"], [3, 3], &[]), &["along the height, a window of 3"]);
    // Several things at once are all told.
    let build = ones(
        ["1", "1", "8", "8"],
        [3, 1],
        &[("strides", [1, 2].into()), ("dilations", [2, 2].into())],
    );
    assert_eq!(super::obstacles(&build).len(), 3);
}

#[test]
fn a_stride_is_free_where_there_is_one_window() {
    let conversion = agrees(&ones(["1", "1", "3", "9"], [3, 3], &[("strides", [7, 2].into())]));
    assert_eq!(conversion.output.dims(), [1, 1, 1, 4]);
}

fn pool(operator: &str, input: [&str; 4], attributes: &[(&str, Attribute)]) -> Build {
    Build::new().input("x", &input).node(operator, &["x"], "y", attributes).output("y")
}

#[test]
fn ceil_mode_becomes_numbers() {
    for operator in ["MaxPool", "AveragePool"] {
        let attributes = [
            ("kernel_shape", [4, 4].into()),
            ("strides", [4, 4].into()),
            ("pads", [2, 2, 2, 2].into()),
            ("ceil_mode", 1.into()),
        ];
        let conversion = agrees(&pool(operator, ["1", "2", "9", "9"], &attributes));
        assert_eq!(conversion.output.dims(), [1, 2, 3, 3], "the naive formula gives 4×4");
        let ones = nk::evaluate(&conversion.model, &[1.0; 162]);
        assert_eq!(ones, [1.0; 18]);

        let attributes =
            [("kernel_shape", [2, 3].into()), ("strides", [2, 2].into()), ("ceil_mode", 1.into())];
        let conversion = agrees(&pool(operator, ["1", "2", "5", "6"], &attributes));
        assert_eq!(conversion.output.dims(), [1, 2, 3, 3]);
    }
}

#[test]
fn padding_that_counts_in_the_average_is_refused() {
    let with = |pads: [i64; 4]| {
        let attributes = [
            ("kernel_shape", [2, 2].into()),
            ("pads", pads.into()),
            ("count_include_pad", 1.into()),
        ];
        pool("AveragePool", ["1", "2", "4", "4"], &attributes)
    };
    obstacle(&with([1, 1, 1, 1]), &["AveragePool `y`", "count_include_pad"]);
    // There is none.
    agrees(&with([0, 0, 0, 0]));
}

#[test]
fn windows_entirely_in_the_padding_are_refused() {
    for pads in [[2, 0, 2, 0], [0, 0, 0, 3]] {
        let attributes = [("kernel_shape", [2, 2].into()), ("pads", pads.into())];
        for operator in ["MaxPool", "AveragePool"] {
            obstacle(
                &pool(operator, ["1", "1", "4", "4"], &attributes),
                &["lie in the padding entirely"],
            );
        }
    }
}

#[test]
fn global_pools_are_windows_as_large_as_the_map() {
    for (operator, kind) in
        [("GlobalAveragePool", LayerKind::AvgPool2d), ("GlobalMaxPool", LayerKind::MaxPool2d)]
    {
        let conversion = agrees(&pool(operator, ["1", "3", "4", "5"], &[]));
        assert_eq!(kinds(&conversion), [kind]);
        agrees(&pool(operator, ["1", "2", "300", "300"], &[]));
        agrees(&pool(operator, ["1", "2", "300", "255"], &[]));
        obstacle(&pool(operator, ["1", "2", "3", "256"], &[]), &[operator, "no record"]);
    }
    let mean = |keep: i64| {
        Build::new()
            .input("x", &["1", "3", "4", "5"])
            .node("ReduceMean", &["x"], "y", &[("axes", [3, -2].into()), ("keepdims", keep.into())])
            .output("y")
    };
    assert_eq!(agrees(&mean(1)).output.dims(), [1, 3, 1, 1]);
    assert_eq!(agrees(&mean(0)).output.dims(), [1, 3]);
}

/// Pitfall B06: kernels that are not square.
#[test]
fn b06_depthwise_kernels_may_be_uneven() {
    let depthwise = |multiplier: i64, attributes: &[(&str, Attribute)]| {
        let primes = [
            2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0, 31.0, 37.0, 41.0, 43.0, 47.0,
            53.0, 59.0, 61.0,
        ];
        let channels = 2 * multiplier;
        let mut attributes = attributes.to_vec();
        attributes.push(("group", 2.into()));
        Build::new()
            .input("x", &["1", "2", "8", "8"])
            .floats("w", &[channels, 1, 3, 1], &primes[..3 * channels as usize])
            .node("Conv", &["x", "w"], "y", &attributes)
            .output("y")
    };
    let same = [("auto_pad", "SAME_UPPER".into()), ("strides", [2, 2].into())];
    // A bottom padding of 1 would read as the kernel's width; 2 gives the same windows.
    let conversion = agrees(&depthwise(1, &same));
    let [Layer::DepthwiseConv2d(conv)] = conversion.model.layers[..] else {
        panic!("{conversion:?}")
    };
    assert_eq!((conv.kernel_h, conv.kw_byte, conv.pad_h, conv.pad_w), (3, 2, 0, 0));
    let explicit = [("pads", [1, 0, 1, 0].into()), ("strides", [2, 2].into())];
    let conversion = agrees(&depthwise(1, &explicit));
    assert_eq!(kinds(&conversion), [LayerKind::DepthwiseConv2d]);
    obstacle(&depthwise(3, &explicit), &["makes 3 channels of each", "1×1 convolution"]);
}

#[test]
fn grouped_convolutions_are_refused() {
    let build = Build::new()
        .input("x", &["1", "4", "5", "5"])
        .floats("w", &[6, 2, 3, 3], &numbers(108, 5))
        .node("Conv", &["x", "w"], "y", &[("group", 2.into())])
        .output("y");
    obstacle(&build, &["a convolution in 2 groups"]);
    let conversion = Build::new()
        .input("x", &["1", "1", "5", "5"])
        .floats("w", &[3, 1, 3, 3], &numbers(27, 6))
        .node("Conv", &["x", "w"], "y", &[("group", 1.into())])
        .output("y");
    assert_eq!(kinds(&convert(&conversion)), [LayerKind::Conv2d], "one channel is one group");
}
