//! For every rule that only the layers of a file together can break: a file that breaks just this
//! one, and what is said about it.

mod format_support;

use std::collections::{BTreeMap, BTreeSet};

use format_support::{NETWORK_RULES, int8_cnn, worked_mlp};
use netkit_core::diag::{Code, Diagnostics};
use netkit_core::format::{
    Activation, BatchNorm2d, CaseData, Conv2d, ConvNextV2Block, Dense, DepthwiseConv2d, FeatureTap,
    Layer, LayerNorm2d, MobileNetV4Uib, ModelDescription, NetworkKind, NkFile, OwnedPair,
    OwnedTensor, Pool2d, ResNetBasicBlock, TensorData, YoloxDecoupledHead, YoloxPafpnMultiscale,
};
use netkit_core::program::{OwnedStorage, compile};
use netkit_core::tensor::Shape;

/// A pair of zeros.
fn pair(weight: &[u32], channels: u32) -> OwnedPair {
    let zeros = |dims: &[u32]| {
        let shape = Shape::new(dims).unwrap();
        OwnedTensor { shape, data: TensorData::F32(vec![0.0; shape.elements()]) }
    };
    OwnedPair { weight: zeros(weight), bias: zeros(&[channels]) }
}

fn cnn(input: [u32; 3]) -> ModelDescription {
    ModelDescription::new(NetworkKind::Cnn, Shape::new(&input).unwrap())
}

fn dense(units: u32, activation: Activation) -> Layer {
    Layer::Dense(Dense { units, activation, alpha: 0.01 })
}

const POOL: Pool2d = Pool2d { pool_size: 2, stride: 2, pad_h: 0, pad_w: 0, pool_extra: 0 };

/// Convolution, depthwise convolution, pools, flatten, dense. Records begin at 48, 72, 96, 112, 128
/// and 132; the catalog at 148, its biases at 220.
fn chain() -> ModelDescription {
    let mut model = cnn([8, 8, 2]);
    model.push(
        Layer::Conv2d(Conv2d {
            kernel_size: 3,
            stride: 1,
            filters: 4,
            activation: Activation::Relu,
            pad_h: 1,
            pad_w: 1,
            pad_extra: 0,
            alpha: 0.01,
        }),
        [pair(&[4, 3, 3, 2], 4)],
    );
    model.push(
        Layer::DepthwiseConv2d(DepthwiseConv2d {
            kernel_h: 3,
            stride: 2,
            channels: 4,
            activation: Activation::Relu6,
            pad_h: 1,
            pad_w: 1,
            kw_byte: 3,
            alpha: 0.01,
        }),
        [pair(&[4, 3, 3], 4)],
    );
    model.push(Layer::MaxPool2d(POOL), []);
    model.push(Layer::AvgPool2d(POOL), []);
    model.push(Layer::Flatten, []);
    model.push(dense(3, Activation::Softmax), [pair(&[3, 4], 3)]);
    model
}

/// Normalizations and fused blocks. Records begin at 48, 60, 76, 92, 116 and 132.
fn blocks() -> ModelDescription {
    let mut model = cnn([4, 4, 4]);
    model.push(Layer::BatchNorm2d(BatchNorm2d { channels: 4 }), [pair(&[4], 4)]);
    model.push(Layer::LayerNorm2d(LayerNorm2d { channels: 4, eps: 1e-6 }), [pair(&[4], 4)]);
    model.push(
        Layer::ConvNextV2Block(ConvNextV2Block { channels: 4, eps: 1e-6 }),
        [
            pair(&[4, 7, 7], 4),
            pair(&[4], 4),
            pair(&[16, 4], 16),
            pair(&[16], 16),
            pair(&[4, 16], 4),
        ],
    );
    model.push(
        Layer::MobileNetV4Uib(MobileNetV4Uib {
            in_channels: 4,
            out_channels: 6,
            start_dw_kernel: 3,
            middle_dw_kernel: 0,
            stride: 2,
            middle_dw_downsample: 0,
            expand_ratio: 2.0,
        }),
        [
            pair(&[4, 3, 3], 4),
            pair(&[4], 4),
            pair(&[8, 1, 1, 4], 8),
            pair(&[8], 8),
            pair(&[6, 1, 1, 8], 6),
            pair(&[6], 6),
        ],
    );
    model.push(
        Layer::ResNetBasicBlock(ResNetBasicBlock { in_channels: 6, out_channels: 6, stride: 1 }),
        [pair(&[6, 3, 3, 6], 6), pair(&[6], 6), pair(&[6, 3, 3, 6], 6), pair(&[6], 6)],
    );
    model.push(
        Layer::YoloxDecoupledHead(YoloxDecoupledHead {
            in_channels: 6,
            hidden_dim: 4,
            num_classes: 2,
            num_convs: 0,
        }),
        head(6, 4, 2),
    );
    model
}

fn head(inputs: u32, hidden: u32, classes: u32) -> [OwnedPair; 4] {
    [
        pair(&[hidden, 1, 1, inputs], hidden),
        pair(&[classes, 1, 1, hidden], classes),
        pair(&[4, 1, 1, hidden], 4),
        pair(&[1, 1, 1, hidden], 1),
    ]
}

/// Two taps and the pyramid that reads them. Records begin at 48, 60, 76, 88 and 104.
fn pyramid() -> ModelDescription {
    let tap = |tap_id| Layer::FeatureTap(FeatureTap { channels: 2, tap_id });
    let mut model = cnn([4, 8, 2]);
    model.push(tap(0), []);
    model.push(Layer::MaxPool2d(POOL), []);
    model.push(tap(1), []);
    model.push(Layer::MaxPool2d(POOL), []);
    let laterals = [2, 2, 2].map(|inputs| pair(&[4, 1, 1, inputs], 4));
    let refinements = [0; 4].map(|_| [pair(&[4, 3, 3], 4), pair(&[4, 1, 1, 4], 4)]);
    let heads = [0; 3].map(|_| head(4, 4, 2));
    model.push(
        Layer::YoloxPafpnMultiscale(YoloxPafpnMultiscale {
            c3_channels: 2,
            c4_channels: 2,
            c5_channels: 2,
            hidden_dim: 4,
            num_classes: 2,
            num_convs: 0,
        }),
        laterals
            .into_iter()
            .chain(refinements.into_iter().flatten())
            .chain(heads.into_iter().flatten()),
    );
    model
}

/// The fields of a layer of one kind.
macro_rules! layer {
    ($model:expr, $index:literal, $kind:ident) => {
        match &mut $model.layers[$index] {
            Layer::$kind(layer) => layer,
            other => panic!("{other:?}"),
        }
    };
}

/// A good model, what is done to it, and the one diagnostic that follows.
struct Violation {
    model: fn() -> ModelDescription,
    damage: fn(&mut ModelDescription),
    code: Code,
    text: &'static str,
}

const fn violation(
    model: fn() -> ModelDescription,
    damage: fn(&mut ModelDescription),
    code: Code,
    text: &'static str,
) -> Violation {
    Violation { model, damage, code, text }
}

const VIOLATIONS: &[Violation] = &[
    violation(
        worked_mlp,
        |m| {
            m.cases.clear();
            m.layers.insert(1, Layer::Flatten);
        },
        Code::LayerOrder,
        "layer 1 (flatten), byte 0x40: flatten cannot stand here: only dense layers in an MLP",
    ),
    violation(
        chain,
        |m| {
            let _ = m.layers.remove(4);
        },
        Code::LayerOrder,
        "layer 4 (dense), byte 0x80: dense cannot stand here: a flatten before the first dense \
         layer",
    ),
    violation(
        chain,
        |m| m.layers.push(Layer::MaxPool2d(POOL)),
        Code::LayerOrder,
        "layer 6 (max_pool2d), byte 0x94: max_pool2d cannot stand here: only dense layers after a \
         flatten",
    ),
    violation(
        chain,
        |m| m.layers.insert(5, Layer::Flatten),
        Code::SecondFlatten,
        "layer 5 (flatten), byte 0x84: this is another flatten; one flatten at most",
    ),
    violation(
        chain,
        |m| m.pairs[0] = pair(&[4, 3, 3, 3], 4),
        Code::Channels,
        "layer 0 (conv2d), byte 0x30: weights are 4×3×3×3 (OHWI) but the input has 2 channels",
    ),
    violation(
        chain,
        |m| {
            layer!(m, 1, DepthwiseConv2d).channels = 5;
            m.pairs[1] = pair(&[5, 3, 3], 5);
        },
        Code::Channels,
        "layer 1 (depthwise_conv2d), byte 0x54: channels are 5 but the input has 4 channels",
    ),
    violation(
        blocks,
        |m| layer!(m, 0, BatchNorm2d).channels = 3,
        Code::Channels,
        "layer 0 (batch_norm2d), byte 0x34: channels are 3 but the input has 4 channels",
    ),
    violation(
        blocks,
        |m| layer!(m, 1, LayerNorm2d).channels = 5,
        Code::Channels,
        "layer 1 (layernorm2d), byte 0x40: channels are 5 but the input has 4 channels",
    ),
    violation(
        blocks,
        |m| layer!(m, 2, ConvNextV2Block).channels = 1,
        Code::Channels,
        "layer 2 (convnextv2_block), byte 0x50: channels are 1 but the input has 4 channels",
    ),
    violation(
        blocks,
        |m| layer!(m, 3, MobileNetV4Uib).in_channels = 5,
        Code::Channels,
        "layer 3 (mobilenetv4_uib), byte 0x60: in_channels is 5 but the input has 4 channels",
    ),
    violation(
        blocks,
        |m| {
            // Not an identity any more, so the shortcut's pairs are there.
            layer!(m, 4, ResNetBasicBlock).in_channels = 7;
            let shortcut = [pair(&[6, 1, 1, 7], 6), pair(&[6], 6)];
            m.pairs.splice(17..17, shortcut);
        },
        Code::Channels,
        "layer 4 (resnet_basic_block), byte 0x78: in_channels is 7 but the input has 6 channels",
    ),
    violation(
        blocks,
        |m| layer!(m, 5, YoloxDecoupledHead).in_channels = 7,
        Code::Channels,
        "layer 5 (yolox_decoupled_head), byte 0x88: in_channels is 7 but the input has 6 channels",
    ),
    violation(
        pyramid,
        |m| layer!(m, 0, FeatureTap).channels = 3,
        Code::Channels,
        "layer 0 (feature_tap), byte 0x34: channels are 3 but the input has 2 channels",
    ),
    violation(
        pyramid,
        |m| layer!(m, 4, YoloxPafpnMultiscale).c5_channels = 3,
        Code::Channels,
        "layer 4 (yolox_pafpn_multiscale), byte 0x74: c5_channels is 3 but the input has 2 \
         channels",
    ),
    violation(
        chain,
        |m| layer!(m, 0, Conv2d).stride = 0,
        Code::Window,
        "layer 0 (conv2d), byte 0x34: stride is 0, expected at least 1",
    ),
    violation(
        chain,
        |m| layer!(m, 2, MaxPool2d).pool_size = 5,
        Code::Window,
        "layer 2 (max_pool2d), byte 0x64: window is 5×5, expected 4×4 (the padded input, or less)",
    ),
    violation(
        chain,
        |m| layer!(m, 2, MaxPool2d).pool_size = 0,
        Code::Window,
        "layer 2 (max_pool2d), byte 0x64: window is 0×0, expected at least 1×1",
    ),
    violation(
        chain,
        |m| layer!(m, 0, Conv2d).kernel_size = 0,
        Code::Window,
        "layer 0 (conv2d), byte 0x34: window is 0×0, expected at least 1×1",
    ),
    violation(
        chain,
        |m| layer!(m, 0, Conv2d).filters = 0,
        Code::NoOutputs,
        "layer 0 (conv2d), byte 0x3c: filters are 0, expected at least 1",
    ),
    violation(
        chain,
        |m| layer!(m, 5, Dense).units = 0,
        Code::NoOutputs,
        "layer 5 (dense), byte 0x88: units are 0, expected at least 1",
    ),
    violation(
        blocks,
        |m| layer!(m, 5, YoloxDecoupledHead).num_classes = 0,
        Code::NoOutputs,
        "layer 5 (yolox_decoupled_head), byte 0x90: num_classes is 0, expected at least 1",
    ),
    violation(
        chain,
        |m| layer!(m, 1, DepthwiseConv2d).kernel_h = 4,
        Code::DepthwiseKernel,
        "layer 1 (depthwise_conv2d), byte 0x4c: 36 weights do not make up channels × kernel_h × \
         kernel_w with the kernel_h and the width byte of the record",
    ),
    violation(
        chain,
        |m| {
            layer!(m, 3, AvgPool2d).pad_h = 2;
            // One row of output as before, so that the dense layer still fits.
            layer!(m, 3, AvgPool2d).stride = 8;
        },
        Code::PoolPadding,
        "layer 3 (avg_pool2d), byte 0x7c: padding is 2×0, expected less than the window on each \
         axis",
    ),
    violation(
        chain,
        |m| m.pairs[2] = pair(&[4, 3], 3),
        Code::TensorShape,
        "layer 5 (dense), weight tensor 2, byte 0xc4: weights are 4×3 (OI) but the layer needs 3×4 (OI)",
    ),
    violation(
        chain,
        |m| m.pairs[2].bias = pair(&[1], 4).bias,
        Code::BiasShape,
        "layer 5 (dense), bias tensor 2, byte 0x10c: biases are 4 but the layer needs 3",
    ),
    violation(
        chain,
        |m| m.pairs.push(pair(&[1], 1)),
        Code::TensorUse,
        "byte 0x20: the layers use 3 pairs of tensors but the file has 4",
    ),
    violation(
        chain,
        |m| m.pairs.truncate(2),
        Code::TensorUse,
        "layer 5 (dense), byte 0x84: the layers use at least 3 pairs of tensors but the file has 2",
    ),
    violation(
        worked_mlp,
        |m| {
            m.cases.clear();
            m.input = Shape::new(&[2, 2]).unwrap();
            layer!(m, 1, Dense).activation = Activation::Softmax;
        },
        Code::Batch,
        "layer 1 (dense), byte 0x40: rows are 2, expected 1 row with softmax",
    ),
    violation(
        chain,
        |m| {
            m.input = Shape::new(&[65535, 32767, 2]).unwrap();
            m.layers.truncate(1);
            m.pairs.truncate(1);
        },
        Code::ActivationSize,
        "byte 0xc: the input is 65535×32767×2, expected at most 268435456 elements",
    ),
    violation(
        chain,
        |m| {
            m.input = Shape::new(&[8192, 16384, 2]).unwrap();
            m.layers.truncate(1);
            m.pairs.truncate(1);
        },
        Code::ActivationSize,
        "layer 0 (conv2d), byte 0x30: the output is 8192×16384×4, expected at most 268435456 \
         elements",
    ),
    violation(
        blocks,
        |m| layer!(m, 3, MobileNetV4Uib).start_dw_kernel = 2,
        Code::Uib,
        "layer 3 (mobilenetv4_uib), byte 0x68: start_dw_kernel is 2, expected 0 or an odd number",
    ),
    violation(
        blocks,
        |m| layer!(m, 3, MobileNetV4Uib).middle_dw_downsample = 2,
        Code::Uib,
        "layer 3 (mobilenetv4_uib), byte 0x6b: middle_dw_downsample is 2, expected 0 to 1",
    ),
    violation(
        blocks,
        |m| layer!(m, 3, MobileNetV4Uib).stride = 0,
        Code::Uib,
        "layer 3 (mobilenetv4_uib), byte 0x6a: stride is 0, expected at least 1",
    ),
    violation(
        blocks,
        |m| {
            layer!(m, 3, MobileNetV4Uib).start_dw_kernel = 0;
            m.pairs.drain(7..9);
        },
        Code::Uib,
        "layer 3 (mobilenetv4_uib), byte 0x6a: stride is 2, expected 1, as no depthwise applies it",
    ),
    violation(
        || {
            // Twelve channels in, eight inside.
            let mut model = cnn([4, 4, 12]);
            model.push(
                Layer::MobileNetV4Uib(MobileNetV4Uib {
                    in_channels: 12,
                    out_channels: 1,
                    start_dw_kernel: 1,
                    middle_dw_kernel: 0,
                    stride: 1,
                    middle_dw_downsample: 0,
                    expand_ratio: 1.0,
                }),
                [
                    pair(&[12, 1, 1], 12),
                    pair(&[12], 12),
                    pair(&[16, 1, 1, 12], 16),
                    pair(&[16], 16),
                    pair(&[1, 1, 1, 16], 1),
                    pair(&[1], 1),
                ],
            );
            model
        },
        |m| {
            layer!(m, 0, MobileNetV4Uib).expand_ratio = 0.5;
            m.pairs[2] = pair(&[8, 1, 1, 12], 8);
            m.pairs[3] = pair(&[8], 8);
            m.pairs[4] = pair(&[1, 1, 1, 8], 1);
        },
        Code::UibExpand,
        "layer 0 (mobilenetv4_uib), byte 0x40: expanded channels are 8, expected at least 12",
    ),
    violation(
        blocks,
        |m| layer!(m, 5, YoloxDecoupledHead).hidden_dim = 3,
        Code::YoloxHidden,
        "layer 5 (yolox_decoupled_head), byte 0x8c: hidden_dim is 3, expected at least 4",
    ),
    violation(
        pyramid,
        |m| layer!(m, 2, FeatureTap).tap_id = 2,
        Code::Taps,
        "layer 4 (yolox_pafpn_multiscale), byte 0x70: feature_tap 1 is missing, expected 2×4×2",
    ),
    violation(
        pyramid,
        |m| layer!(m, 4, YoloxPafpnMultiscale).c3_channels = 3,
        Code::Taps,
        "layer 4 (yolox_pafpn_multiscale), byte 0x6c: feature_tap 0 is 4×8×2, expected 4×8×3",
    ),
    violation(
        int8_cnn,
        |m| m.quant.as_mut().unwrap()[1].channel_scales.truncate(1),
        Code::QuanChannels,
        "layer 2 (dense), quantization record 1, byte 0x118: the table has 1 scale, expected 2 scales",
    ),
    violation(
        int8_cnn,
        |m| m.quant.as_mut().unwrap()[1].input.zero_point = -127,
        Code::QuanChain,
        "layer 2 (dense), quantization record 1, byte 0xe4: input has scale 0.05 and zero point \
         -127 but the layer before it gives scale 0.05 and zero point -128",
    ),
    violation(
        int8_cnn,
        |m| m.pairs[0].bias.data = TensorData::I32(vec![1, i32::MAX, i32::MIN]),
        Code::QuanAccumulator,
        "layer 0 (conv2d), bias tensor 0, byte 0x184: bias is 2147483647, expected at most \
         2147451007",
    ),
    violation(
        int8_cnn,
        |m| layer!(m, 0, Conv2d).activation = Activation::Tanh,
        Code::QuanActivation,
        "layer 0 (conv2d), byte 0x40: activation is tanh, expected none, relu or relu6",
    ),
    violation(
        int8_cnn,
        |m| layer!(m, 2, Dense).activation = Activation::Sigmoid,
        Code::QuanActivation,
        "layer 2 (dense), byte 0x54: activation is sigmoid, expected none, relu, relu6 or softmax",
    ),
    violation(
        int8_cnn,
        |m| m.cases[1].input = CaseData::I8(vec![0; 14]),
        Code::CaseSize,
        "test case 1, byte 0x1d3: inputs are 14, expected 15",
    ),
    violation(
        int8_cnn,
        |m| m.cases[0].expected.push(0.0),
        Code::CaseSize,
        "test case 0, byte 0x1bb: outputs are 3, expected 2",
    ),
    violation(
        int8_cnn,
        |m| m.cases[0].label = Some(2),
        Code::CaseLabel,
        "test case 0, byte 0x1a4: label is 2, expected -1 to 1",
    ),
];

/// For each rule of the layers together, a file that breaks it.
#[allow(dead_code, reason = "for the tests of what the macro says")]
pub(crate) fn broken_files() -> BTreeMap<Code, Vec<u8>> {
    let mut files = BTreeMap::new();
    for Violation { model, damage, code, .. } in VIOLATIONS {
        files.entry(*code).or_insert_with(|| {
            let mut model = model();
            damage(&mut model);
            model.to_bytes().unwrap()
        });
    }
    files
}

fn diagnose(model: &ModelDescription) -> Vec<(Code, String)> {
    let bytes = model.to_bytes().unwrap();
    let mut sink = Diagnostics::new();
    let file = NkFile::parse(&bytes, &mut sink).unwrap();
    let mut storage = OwnedStorage::of(&file);
    let compiled = compile(&file, storage.lend(), &mut sink).is_some();
    assert_eq!(compiled, sink.is_empty());
    sink.iter().map(|found| (found.code, found.to_string())).collect()
}

#[test]
fn each_violation_is_reported_once_and_nothing_else_is() {
    let mut wrong = Vec::new();
    for Violation { model, damage, code, text } in VIOLATIONS {
        let mut model = model();
        assert_eq!(diagnose(&model), []);
        damage(&mut model);
        let found = diagnose(&model);
        if found != [(*code, (*text).to_string())] {
            wrong.push(format!("expected {code:?}: {text}\n   found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_of_the_network_is_broken() {
    let broken: BTreeSet<_> = VIOLATIONS.iter().map(|violation| violation.code).collect();
    for code in NETWORK_RULES {
        assert!(broken.contains(code), "{code:?}");
    }
}
