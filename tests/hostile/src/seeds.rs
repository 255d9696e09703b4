//! Inputs to start from: small models that use every part of a format, and the models of the repository and corpus.

#[allow(unreachable_pub, reason = "shared with the format's own tests")]
#[path = "../../../netkit-core/tests/format_support/mod.rs"]
mod format_support;

use crate::random::Random;
use netkit_core::format::{
    Activation, BatchNorm2d, Conv2d, ConvNextV2Block, Dense, DepthwiseConv2d, FeatureTap, Layer,
    LayerNorm2d, MobileNetV4Uib, ModelDescription, NetworkKind, OwnedPair, OwnedTensor, Pool2d,
    ResNetBasicBlock, TensorData, YoloxDecoupledHead, YoloxPafpnMultiscale,
};
use netkit_core::tensor::Shape;
use std::path::{Path, PathBuf};

/// Largest file of the repository or the corpus that is a seed: mutations of larger ones take long and find the same.
const MAX_BYTES: usize = 5000;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The small files of a folder, in order of their names.
fn small_files(folder: &Path, extension: &str) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    let files = paths.into_iter().filter_map(|path| std::fs::read(path).ok());
    files.filter(|bytes| bytes.len() <= MAX_BYTES).collect()
}

fn corpus(folder: &str, extension: &str) -> Vec<Vec<u8>> {
    let corpus = std::env::var_os("NETKIT_CORPUS")
        .map_or_else(|| repository().join("../shared/corpus"), PathBuf::from);
    let mut files = small_files(&corpus.join(folder), extension);
    if files.is_empty() {
        println!("skipped: no corpus");
    }
    files.extend(crashes(extension));
    files
}

/// Inputs that once broke a promise.
fn crashes(extension: &str) -> Vec<Vec<u8>> {
    small_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("crashes"), extension)
}

/// Float weights that are neither all equal nor large.
fn pair(random: &mut Random, weight: &[u32], channels: u32) -> OwnedPair {
    let mut tensor = |dims: &[u32]| {
        let shape = Shape::new(dims).expect("small dimensions");
        let value = |_| (random.next() >> 40) as f32 / (1 << 24) as f32 - 0.5;
        OwnedTensor { shape, data: TensorData::F32((0..shape.elements()).map(value).collect()) }
    };
    OwnedPair { weight: tensor(weight), bias: tensor(&[channels]) }
}

/// A network that is valid and uses convolutions, pools, norms and dense layers, each with an activation of its own.
fn plain() -> ModelDescription {
    let r = &mut Random::new(1);
    let mut model = ModelDescription::new(NetworkKind::Cnn, Shape::new(&[6, 7, 2]).unwrap());
    let conv = |kernel_size, filters, activation, pad| {
        Layer::Conv2d(Conv2d {
            kernel_size,
            stride: 1,
            filters,
            activation,
            pad_h: pad,
            pad_w: pad,
            pad_extra: 0,
            alpha: 0.1,
        })
    };
    let pool = Pool2d { pool_size: 2, stride: 1, pad_h: 0, pad_w: 1, pool_extra: 0 };
    model.push(conv(3, 5, Activation::LeakyRelu, 1), [pair(r, &[5, 3, 3, 2], 5)]);
    model.push(
        Layer::DepthwiseConv2d(DepthwiseConv2d {
            kernel_h: 3,
            stride: 2,
            channels: 5,
            activation: Activation::Tanh,
            pad_h: 1,
            pad_w: 1,
            kw_byte: 3,
            alpha: 0.01,
        }),
        [pair(r, &[5, 3, 3], 5)],
    );
    model.push(Layer::MaxPool2d(pool), []);
    model.push(Layer::AvgPool2d(pool), []);
    model.push(Layer::BatchNorm2d(BatchNorm2d { channels: 5 }), [pair(r, &[5], 5)]);
    model.push(Layer::LayerNorm2d(LayerNorm2d { channels: 5, eps: 1e-6 }), [pair(r, &[5], 5)]);
    model.push(conv(1, 3, Activation::Sigmoid, 0), [pair(r, &[3, 1, 1, 5], 3)]);
    model.push(Layer::Flatten, []);
    // The two pools leave 1×6 pixels of 3 channels.
    let flat = 18;
    let dense = Dense { units: 4, activation: Activation::Softmax, alpha: 0.01 };
    model.push(Layer::Dense(dense), [pair(r, &[4, flat], 4)]);
    model
}

/// One ConvNeXt, one inverted bottleneck, one residual block, valid.
fn blocks() -> ModelDescription {
    let r = &mut Random::new(2);
    let mut model = ModelDescription::new(NetworkKind::Cnn, Shape::new(&[4, 4, 2]).unwrap());
    let convnext = Layer::ConvNextV2Block(ConvNextV2Block { channels: 2, eps: 1e-6 });
    let pairs = [
        pair(r, &[2, 7, 7], 2),
        pair(r, &[2], 2),
        pair(r, &[8, 2], 8),
        pair(r, &[8], 8),
        pair(r, &[2, 8], 2),
    ];
    model.push(convnext, pairs);
    let uib = Layer::MobileNetV4Uib(MobileNetV4Uib {
        in_channels: 2,
        out_channels: 4,
        start_dw_kernel: 3,
        middle_dw_kernel: 3,
        stride: 2,
        middle_dw_downsample: 1,
        expand_ratio: 4.0,
    });
    let pairs = [
        pair(r, &[2, 3, 3], 2),
        pair(r, &[2], 2),
        pair(r, &[8, 1, 1, 2], 8),
        pair(r, &[8], 8),
        pair(r, &[8, 3, 3], 8),
        pair(r, &[8], 8),
        pair(r, &[4, 1, 1, 8], 4),
        pair(r, &[4], 4),
    ];
    model.push(uib, pairs);
    let resnet = ResNetBasicBlock { in_channels: 4, out_channels: 3, stride: 1 };
    let pairs = [
        pair(r, &[3, 3, 3, 4], 3),
        pair(r, &[3], 3),
        pair(r, &[3, 3, 3, 3], 3),
        pair(r, &[3], 3),
        pair(r, &[3, 1, 1, 4], 3),
        pair(r, &[3], 3),
    ];
    model.push(Layer::ResNetBasicBlock(resnet), pairs);
    model
}

/// A detector: two taps and the feature pyramid that reads them.
fn detector() -> ModelDescription {
    let r = &mut Random::new(3);
    let (hidden, classes) = (4, 2);
    let mut model = ModelDescription::new(NetworkKind::Cnn, Shape::new(&[4, 4, 1]).unwrap());
    let pool = Pool2d { pool_size: 2, stride: 2, pad_h: 0, pad_w: 0, pool_extra: 0 };
    for tap_id in 0..2 {
        model.push(Layer::FeatureTap(FeatureTap { channels: 1, tap_id }), []);
        model.push(Layer::MaxPool2d(pool), []);
    }
    let mut pairs = vec![pair(r, &[hidden, 1, 1, 1], hidden); 3];
    for _ in 0..4 {
        pairs.push(pair(r, &[hidden, 3, 3], hidden));
        pairs.push(pair(r, &[hidden, 1, 1, hidden], hidden));
    }
    for _ in 0..3 {
        pairs.push(pair(r, &[hidden, 1, 1, hidden], hidden));
        pairs.push(pair(r, &[classes, 1, 1, hidden], classes));
        pairs.push(pair(r, &[4, 1, 1, hidden], 4));
        pairs.push(pair(r, &[1, 1, 1, hidden], 1));
    }
    let pafpn = YoloxPafpnMultiscale {
        c3_channels: 1,
        c4_channels: 1,
        c5_channels: 1,
        hidden_dim: hidden,
        num_classes: classes,
        num_convs: 0,
    };
    model.push(Layer::YoloxPafpnMultiscale(pafpn), pairs);
    model
}

/// A single decoupled head.
fn head() -> ModelDescription {
    let r = &mut Random::new(4);
    let mut model = ModelDescription::new(NetworkKind::Cnn, Shape::new(&[3, 3, 2]).unwrap());
    let head = YoloxDecoupledHead { in_channels: 2, hidden_dim: 4, num_classes: 2, num_convs: 1 };
    let pairs = [
        pair(r, &[4, 1, 1, 2], 4),
        pair(r, &[4, 3, 3, 4], 4),
        pair(r, &[4, 3, 3, 4], 4),
        pair(r, &[2, 1, 1, 4], 2),
        pair(r, &[4, 1, 1, 4], 4),
        pair(r, &[1, 1, 1, 4], 1),
    ];
    model.push(Layer::YoloxDecoupledHead(head), pairs);
    model
}

/// Model files: built ones, of which the first six are valid, small ones of repository and corpus, and every past crash.
#[must_use]
pub fn nk() -> Vec<Vec<u8>> {
    let built = [
        format_support::worked_mlp(),
        format_support::int8_cnn(),
        plain(),
        blocks(),
        detector(),
        head(),
        format_support::every_kind(),
    ];
    let mut files: Vec<Vec<u8>> =
        built.iter().map(|model| model.to_bytes().expect("a model that can be written")).collect();
    files.extend(small_files(&repository().join("models"), "nk"));
    files.extend(corpus("nk", "nk"));
    files
}

/// ONNX files: one built here, small ones of the corpus, and every past crash.
#[must_use]
pub fn onnx() -> Vec<Vec<u8>> {
    let mut files = vec![small_onnx()];
    files.extend(corpus("onnx", "onnx"));
    files
}

/// A convolution, a clip, a pool and a matrix product, written field by field.
fn small_onnx() -> Vec<u8> {
    fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![tag << 3 | 2];
        let mut length = bytes.len();
        while length >= 0x80 {
            field.push(length as u8 | 0x80);
            length >>= 7;
        }
        field.push(length as u8);
        field.extend_from_slice(bytes);
        field
    }
    let number = |tag: u8, value: u8| vec![tag << 3, value];
    let tensor = |name: &str, dims: &[u8]| {
        let count = dims.iter().map(|&dim| usize::from(dim)).product::<usize>();
        let values: Vec<u8> = (0..count).flat_map(|i| (i as f32 * 0.25).to_le_bytes()).collect();
        let mut tensor = field(1, dims);
        tensor.extend(number(2, 1));
        tensor.extend(field(8, name.as_bytes()));
        tensor.extend(field(9, &values));
        field(5, &tensor)
    };
    let ints = |name: &str, values: &[u8]| {
        let attribute = [field(1, name.as_bytes()), field(8, values), vec![0xa0, 0x01, 7]].concat();
        field(5, &attribute)
    };
    let node = |operator: &str, inputs: &[&str], output: &str, attributes: &[Vec<u8>]| {
        let inputs = inputs.iter().flat_map(|name| field(1, name.as_bytes()));
        let mut node: Vec<u8> = inputs.collect();
        node.extend(field(2, output.as_bytes()));
        node.extend(field(4, operator.as_bytes()));
        node.extend(attributes.concat());
        field(1, &node)
    };
    let port = |tag: u8, name: &str, dims: &[u8]| {
        let dims: Vec<u8> = dims.iter().flat_map(|&dim| field(1, &number(1, dim))).collect();
        let kind = [number(1, 1), field(2, &dims)].concat();
        field(tag, &[field(1, name.as_bytes()), field(2, &field(1, &kind))].concat())
    };
    let graph = [
        node("Conv", &["x", "w", "b"], "c", &[ints("pads", &[1, 1, 1, 1])]),
        node("Relu", &["c"], "r", &[]),
        node("MaxPool", &["r"], "p", &[ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])]),
        node("Flatten", &["p"], "f", &[]),
        node("Gemm", &["f", "g"], "y", &[]),
        tensor("w", &[3, 2, 3, 3]),
        tensor("b", &[3]),
        tensor("g", &[12, 2]),
        port(11, "x", &[1, 2, 4, 4]),
        port(12, "y", &[1, 2]),
    ];
    [number(1, 8), field(7, &graph.concat()), field(8, &number(2, 13))].concat()
}

/// Command lines, and every past crash.
#[must_use]
pub fn cli() -> Vec<Vec<u8>> {
    let lines: [&[&str]; 8] = [
        &["inspect", "a.nk", "--json"],
        &["convert", "a.onnx", "-o", "a.nk", "--input-shape", "1,3,8,8", "--no-verify"],
        &["convert", "a.onnx", "--cases", "a.npy", "--case-count", "3", "--tolerance", "1e-3"],
        &["run", "a.nk", "--arena", "64KiB", "--isa", "scalar"],
        &["bench", "a.nk", "--time", "0.5"],
        &["plan", "a.nk"],
        &["emit", "a.nk", "--name", "A", "--package", "."],
        &["explain", "NK0101"],
    ];
    let mut files: Vec<Vec<u8>> = lines.iter().map(|line| line.join("\0").into_bytes()).collect();
    files.extend(crashes("arguments"));
    files
}

/// Bytes of any kind and every past crash, for targets that read them as a stream of choices.
#[must_use]
pub fn noise() -> Vec<Vec<u8>> {
    let mut random = Random::new(5);
    let noise = (0..64).map(|_| (0..64).map(|_| random.next() as u8).collect());
    noise.chain(crashes("noise")).collect()
}
