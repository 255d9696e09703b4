//! What the tests of the format share: where the model files are, and small models that use every
//! part of the format.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};

use netkit_core::diag::Code;
use netkit_core::format::{
    Activation, BatchNorm2d, CaseData, Conv2d, ConvNextV2Block, Dense, DepthwiseConv2d, FeatureTap,
    Layer, LayerNorm2d, MobileNetV4Uib, ModelDescription, NetworkKind, OwnedCase, OwnedPair,
    OwnedQuant, OwnedTensor, Pool2d, ResNetBasicBlock, TensorData, YoloxDecoupledHead,
    YoloxPafpnMultiscale,
};
use netkit_core::quant::Quant;
use netkit_core::tensor::Shape;

/// The `.nk` files of the corpus and of this repository, by name, in order.
///
/// The corpus is the folder in `NETKIT_CORPUS`, else the one beside the repository.
pub(crate) fn model_files() -> Vec<(String, Vec<u8>)> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let corpus = match std::env::var_os("NETKIT_CORPUS") {
        Some(folder) => PathBuf::from(folder),
        None => repository.join("../shared/corpus"),
    };
    let mut files = read_folder(&corpus.join("nk"));
    if files.is_empty() {
        println!("skipped: no corpus");
    }
    files.extend(read_folder(&repository.join("models")));
    files
}

fn read_folder(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "nk"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Codes that only the layers of a file together can break.
pub(crate) const NETWORK_RULES: &[Code] = &[
    Code::Taps,
    Code::YoloxHidden,
    Code::Uib,
    Code::UibExpand,
    Code::TensorShape,
    Code::BiasShape,
    Code::TensorUse,
    Code::QuanChannels,
    Code::QuanChain,
    Code::QuanAccumulator,
    Code::QuanActivation,
    Code::LayerOrder,
    Code::SecondFlatten,
    Code::Channels,
    Code::Window,
    Code::DepthwiseKernel,
    Code::PoolPadding,
    Code::Batch,
    Code::ActivationSize,
    Code::NoOutputs,
    Code::CaseSize,
];

/// Codes that no file breaks: every part before the payload is a multiple of four bytes long, so
/// alignment depends on the memory alone; the others are limits of what computes the model.
pub(crate) const LIMITS: &[Code] = &[Code::PayloadAlignment, Code::TooLarge, Code::Storage];

fn tensor(dims: &[u32], data: TensorData) -> OwnedTensor {
    OwnedTensor { shape: Shape::new(dims).unwrap(), data }
}

fn dense(units: u32, activation: Activation) -> Layer {
    Layer::Dense(Dense { units, activation, alpha: 0.01 })
}

/// The model of the worked dump in section 13: two dense layers and three cases, 376 bytes.
pub(crate) fn worked_mlp() -> ModelDescription {
    let pair = |weights: [f32; 4]| OwnedPair {
        weight: tensor(&[2, 2], TensorData::F32(weights.into())),
        bias: tensor(&[2], TensorData::F32(vec![0.0; 2])),
    };
    let case = |name: &str, input: [f32; 2], expected: [f32; 2]| OwnedCase {
        name: name.into(),
        label: None,
        input: CaseData::F32(input.into()),
        expected: expected.into(),
    };
    let mut model = ModelDescription::new(NetworkKind::Mlp, Shape::new(&[1, 2]).unwrap());
    model.push(dense(2, Activation::Relu), [pair([1.0; 4])]);
    model.push(dense(2, Activation::None), [pair([1.0, 0.0, 0.0, 1.0])]);
    model.cases = vec![
        case("2-layer forward", [1.0, 2.0], [3.0, 3.0]),
        case("zero input", [0.0, 0.0], [0.0, 0.0]),
        case("relu clamps negative hidden", [-1.0, 3.0], [2.0, 2.0]),
    ];
    model.tolerance = 1e-5;
    model
}

/// A quantized CNN with tables of channel scales, three padding bytes behind its weights, and two
/// cases of which the second is not aligned.
///
/// Layers are at byte 48, 72 and 76, the catalog at 92, QUAN at 188 with its tables at 260, weights
/// at 288, biases at 384, TCAS at 404 with its cases at 416 and 455.
pub(crate) fn int8_cnn() -> ModelDescription {
    let quant = |scale, zero_point| Quant { scale, zero_point };
    let (input, middle, logits) = (quant(0.02, -128), quant(0.05, -128), quant(0.25, 3));
    let record = |input, output, channel_scales: &[f32]| OwnedQuant {
        input,
        weight: quant(channel_scales[0], 0),
        bias: quant(0.001, 0),
        output,
        channel_scales: channel_scales.into(),
    };
    let mut model = ModelDescription::new(NetworkKind::Cnn, Shape::new(&[3, 5, 1]).unwrap());
    model.push(
        Layer::Conv2d(Conv2d {
            kernel_size: 1,
            stride: 1,
            filters: 3,
            activation: Activation::Relu,
            pad_h: 0,
            pad_w: 0,
            pad_extra: 0,
            alpha: 0.01,
        }),
        [OwnedPair {
            weight: tensor(&[3, 1, 1, 1], TensorData::I8(vec![127, -128, 3])),
            bias: tensor(&[3], TensorData::I32(vec![1, -1, 70_000])),
        }],
    );
    model.push(Layer::Flatten, []);
    model.push(
        dense(2, Activation::Softmax),
        [OwnedPair {
            weight: tensor(&[2, 45], TensorData::I8((0..90).map(|i| i - 45).collect())),
            bias: tensor(&[2], TensorData::I32(vec![5, -5])),
        }],
    );
    model.quant = Some(vec![
        record(input, middle, &[0.02, 0.01, 0.015]),
        record(middle, logits, &[0.01, 0.005]),
    ]);
    let case = |name: &str, input, label| OwnedCase {
        name: name.into(),
        label,
        input: CaseData::I8(vec![input; 15]),
        expected: vec![0.25, 0.75],
    };
    model.cases = vec![case("one", -128, Some(1)), case("other", 127, None)];
    model
}

/// A float model with one layer of each kind and no tensors. The layers do not fit each other; the
/// records do not know.
pub(crate) fn every_kind() -> ModelDescription {
    let pool = Pool2d { pool_size: 2, stride: 2, pad_h: 0, pad_w: 1, pool_extra: 0x2103 };
    let (channels, eps, alpha) = (4, 1e-6, 0.01);
    let mut model = ModelDescription::new(NetworkKind::Cnn, Shape::new(&[8, 8, 4]).unwrap());
    model.layers = vec![
        dense(7, Activation::LeakyRelu),
        Layer::Conv2d(Conv2d {
            kernel_size: 3,
            stride: 2,
            filters: 8,
            activation: Activation::Sigmoid,
            pad_h: 1,
            pad_w: 2,
            pad_extra: 0x21,
            alpha,
        }),
        Layer::MaxPool2d(pool),
        Layer::Flatten,
        Layer::AvgPool2d(pool),
        Layer::BatchNorm2d(BatchNorm2d { channels }),
        Layer::DepthwiseConv2d(DepthwiseConv2d {
            kernel_h: 5,
            stride: 1,
            channels,
            activation: Activation::Relu6,
            pad_h: 2,
            pad_w: 1,
            kw_byte: 3,
            alpha,
        }),
        Layer::ConvNextV2Block(ConvNextV2Block { channels, eps }),
        Layer::MobileNetV4Uib(MobileNetV4Uib {
            in_channels: 4,
            out_channels: 6,
            start_dw_kernel: 3,
            middle_dw_kernel: 5,
            stride: 2,
            middle_dw_downsample: 1,
            expand_ratio: 4.5,
        }),
        Layer::ResNetBasicBlock(ResNetBasicBlock { in_channels: 4, out_channels: 8, stride: 2 }),
        Layer::LayerNorm2d(LayerNorm2d { channels, eps }),
        Layer::YoloxDecoupledHead(YoloxDecoupledHead {
            in_channels: 4,
            hidden_dim: 16,
            num_classes: 3,
            num_convs: 2,
        }),
        Layer::FeatureTap(FeatureTap { channels, tap_id: 3 }),
        Layer::YoloxPafpnMultiscale(YoloxPafpnMultiscale {
            c3_channels: 1,
            c4_channels: 2,
            c5_channels: 3,
            hidden_dim: 16,
            num_classes: 3,
            num_convs: 4,
        }),
    ];
    model
}
