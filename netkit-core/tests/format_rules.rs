//! For every rule that a file can break by itself: a file that breaks just this one, and what is
//! said about it.

pub(crate) mod format_support;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use format_support::{LIMITS, NETWORK_RULES, every_kind, int8_cnn, worked_mlp};
use netkit_core::diag::{Code, Diagnostic, Diagnostics, FirstError, Sink};
use netkit_core::format::{ModelDescription, NkFile};

/// A good model, what is done to its bytes, and the one diagnostic that follows.
struct Violation {
    model: fn() -> ModelDescription,
    damage: fn(&mut Vec<u8>),
    code: Code,
    text: &'static str,
}

const fn violation(
    model: fn() -> ModelDescription,
    damage: fn(&mut Vec<u8>),
    code: Code,
    text: &'static str,
) -> Violation {
    Violation { model, damage, code, text }
}

fn put<const N: usize>(bytes: &mut [u8], offset: usize, new: [u8; N]) {
    bytes[offset..offset + N].copy_from_slice(&new);
}

fn put_u32(bytes: &mut [u8], offset: usize, value: u32) {
    put(bytes, offset, value.to_le_bytes());
}

fn put_f32(bytes: &mut [u8], offset: usize, value: f32) {
    put(bytes, offset, value.to_le_bytes());
}

/// The worked MLP without its cases: 224 bytes.
fn caseless_mlp() -> ModelDescription {
    ModelDescription { cases: Vec::new(), ..worked_mlp() }
}

/// A quantized CNN that keeps its maps and has neither tables nor cases.
fn per_tensor_cnn() -> ModelDescription {
    let mut model = int8_cnn();
    model.cases.clear();
    for record in model.quant.iter_mut().flatten() {
        record.channel_scales.clear();
    }
    model
}

const HEADER: &[Violation] = &[
    violation(worked_mlp, |b| b.clear(), Code::Empty, "the file is empty"),
    violation(
        worked_mlp,
        |b| put(b, 0, *b"NKIX"),
        Code::Magic,
        r#"byte 0x0: the file starts with "NKIX", expected "NKIT""#,
    ),
    violation(
        worked_mlp,
        |b| *b = b"NO".to_vec(),
        Code::Magic,
        r#"byte 0x0: the file starts with "NO\x00\x00", expected "NKIT""#,
    ),
    violation(
        worked_mlp,
        |b| b.truncate(47),
        Code::HeaderTruncated,
        "byte 0x2f: the file has 47 bytes, the header alone takes 48 bytes",
    ),
    violation(
        worked_mlp,
        |b| b.truncate(1),
        Code::HeaderTruncated,
        "byte 0x1: the file has 1 byte, the header alone takes 48 bytes",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 4, 5),
        Code::Version,
        "byte 0x4: format version is 5, expected 3 or 4",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 28, 101),
        Code::Limits,
        "byte 0x1c: num_layers is 101, expected at most 100",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 32, u32::MAX),
        Code::Limits,
        "byte 0x20: num_weight_tensors is 4294967295, expected at most 128",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 36, 129),
        Code::Limits,
        "byte 0x24: num_bias_tensors is 129, expected at most 128",
    ),
    violation(
        worked_mlp,
        |b| b[8] = 3,
        Code::NetworkKind,
        "byte 0x8: network_kind is 3, expected 1 (MLP) or 2 (CNN)",
    ),
    violation(
        worked_mlp,
        |b| b[9] = 3,
        Code::InputRank,
        "byte 0x9: input_rank is 3, expected 2 for an MLP (rows, features)",
    ),
    violation(
        int8_cnn,
        |b| b[9] = 4,
        Code::InputRank,
        "byte 0x9: input_rank is 4, expected 3 for a CNN (height, width, channels)",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 16, 0),
        Code::InputShape,
        "byte 0x10: input features are 0, expected at least 1",
    ),
    violation(
        int8_cnn,
        |b| put_u32(b, 24, 1),
        Code::InputShape,
        "byte 0x18: input_shape[3] is 1, expected 0",
    ),
    violation(
        int8_cnn,
        // 65537 × 65536 wraps to 65536 in 32 bits.
        |b| put(b, 12, [1, 0, 1, 0, 0, 0, 1, 0]),
        Code::SizeOverflow,
        "byte 0xc: the input is 65537×65536×1, expected fewer than 2^32 elements",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 4, 4),
        Code::VersionFlag,
        "byte 0x4: format version is 4, expected 3, as the flags do not say quantized",
    ),
    violation(
        int8_cnn,
        |b| put_u32(b, 4, 3),
        Code::VersionFlag,
        "byte 0x4: format version is 3, expected 4, as the flags say quantized",
    ),
    violation(
        worked_mlp,
        |b| b[11] = 0x80,
        Code::Flags,
        "byte 0xa: flags are 0x8001, expected no bits but 0x0001, 0x0002 and 0x0004",
    ),
    violation(
        worked_mlp,
        |b| b[10] = 5,
        Code::Flags,
        "byte 0xa: flags are 0x0005, expected 0x0004 only together with 0x0001 and 0x0002",
    ),
    violation(
        int8_cnn,
        |b| b[10] = 6,
        Code::Flags,
        "byte 0xa: flags are 0x0006, expected 0x0004 only together with 0x0001 and 0x0002",
    ),
    violation(
        int8_cnn,
        |b| b[10] = 3,
        Code::Flags,
        "byte 0xa: flags are 0x0003, expected 0x0004 where 0x0001 and 0x0002 are set",
    ),
    violation(
        caseless_mlp,
        |b| {
            // Layers, catalog and payload go; their counts with them.
            b.truncate(48);
            put(b, 28, [0; 20]);
        },
        Code::NoLayers,
        "byte 0x1c: num_layers is 0, expected at least 1",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 36, 1),
        Code::TensorCounts,
        "byte 0x24: num_bias_tensors is 1, expected 2",
    ),
    violation(
        caseless_mlp,
        |b| b.truncate(223),
        Code::FileTruncated,
        "byte 0xdf: the file has 223 bytes, its header asks for 224 bytes",
    ),
    violation(
        caseless_mlp,
        |b| b.extend([0; 3]),
        Code::Trailing,
        "byte 0xe0: the file has 3 bytes more than its sections take",
    ),
    violation(
        worked_mlp,
        |b| b.push(0),
        Code::Trailing,
        "byte 0x178: the file has 1 byte more than its sections take",
    ),
    violation(
        worked_mlp,
        // Test cases that no flag announces are bytes behind the last section.
        |b| b[10] = 0,
        Code::Trailing,
        "byte 0xe0: the file has 152 bytes more than its sections take",
    ),
];

/// In [`every_kind`] the records begin at 48, 64, 88, 104, 108, 124, 136, 160, 176, 200, 216, 232,
/// 252 and 264.
const LAYERS: &[Violation] = &[
    violation(
        every_kind,
        |b| b[88] = 15,
        Code::LayerKind,
        "layer 2, byte 0x58: layer kind is 15, expected 1 to 14",
    ),
    violation(
        every_kind,
        |b| b[48] = 0,
        Code::LayerKind,
        "layer 0, byte 0x30: layer kind is 0, expected 1 to 14",
    ),
    violation(
        every_kind,
        |b| b.truncate(291),
        Code::LayerTruncated,
        "layer 13 (yolox_pafpn_multiscale), byte 0x108: the file ends in a layer record: \
         27 bytes left, 28 bytes needed",
    ),
    violation(
        every_kind,
        |b| b.truncate(264),
        Code::LayerTruncated,
        "layer 13, byte 0x108: the file ends in a layer record: 0 bytes left, 4 bytes needed",
    ),
    violation(
        every_kind,
        |b| b[64 + 16] = 7,
        Code::Activation,
        "layer 1 (conv2d), byte 0x50: activation is 7, expected 0 to 6",
    ),
    violation(
        every_kind,
        |b| b[48 + 8] = 0xff,
        Code::Activation,
        "layer 0 (dense), byte 0x38: activation is 255, expected 0 to 6",
    ),
    violation(
        every_kind,
        |b| b[136 + 16] = 9,
        Code::Activation,
        "layer 6 (depthwise_conv2d), byte 0x98: activation is 9, expected 0 to 6",
    ),
    violation(
        every_kind,
        |b| put_f32(b, 48 + 12, f32::NAN),
        Code::Finite,
        "layer 0 (dense), byte 0x3c: alpha is NaN, expected a finite number",
    ),
    violation(
        every_kind,
        |b| put_f32(b, 64 + 20, f32::INFINITY),
        Code::Finite,
        "layer 1 (conv2d), byte 0x54: alpha is inf, expected a finite number",
    ),
    violation(
        every_kind,
        |b| put_f32(b, 136 + 20, f32::NEG_INFINITY),
        Code::Finite,
        "layer 6 (depthwise_conv2d), byte 0x9c: alpha is -inf, expected a finite number",
    ),
    violation(
        every_kind,
        |b| put_f32(b, 160 + 12, -1e-6),
        Code::Finite,
        "layer 7 (convnextv2_block), byte 0xac: eps is -1e-6, expected a finite number of \
         at least 0",
    ),
    violation(
        every_kind,
        |b| put_f32(b, 216 + 12, f32::NAN),
        Code::Finite,
        "layer 10 (layernorm2d), byte 0xe4: eps is NaN, expected a finite number of at least 0",
    ),
    violation(
        every_kind,
        |b| put_f32(b, 176 + 16, 0.0),
        Code::Finite,
        "layer 8 (mobilenetv4_uib), byte 0xc0: expand_ratio is 0.0, expected a finite number \
         above 0",
    ),
    violation(
        every_kind,
        |b| b[232 + 16] = 5,
        Code::YoloxConvs,
        "layer 11 (yolox_decoupled_head), byte 0xf8: num_convs is 5, expected 0 to 4",
    ),
    violation(
        every_kind,
        |b| b[264 + 24] = 255,
        Code::YoloxConvs,
        "layer 13 (yolox_pafpn_multiscale), byte 0x120: num_convs is 255, expected 0 to 4",
    ),
    violation(
        every_kind,
        |b| b[252 + 8] = 4,
        Code::TapId,
        "layer 12 (feature_tap), byte 0x104: tap_id is 4, expected 0 to 3",
    ),
    violation(
        int8_cnn,
        |b| {
            // The flatten becomes a batch_norm2d, 8 bytes longer.
            b[72] = 6;
            b.splice(76..76, [1, 0, 0, 0, 0, 0, 0, 0]);
        },
        Code::QuanLayerKind,
        "layer 1 (batch_norm2d), byte 0x48: a quantized model holds batch_norm2d, expected only \
         dense, conv2d, depthwise_conv2d, max_pool2d, avg_pool2d, flatten and mobilenetv4_uib",
    ),
];

/// Every reserved byte of every record of [`every_kind`], by the layer's name.
const RESERVED: &[(usize, &str)] = &[
    (48 + 1, "layer 0 (dense)"),
    (48 + 9, "layer 0 (dense)"),
    (48 + 11, "layer 0 (dense)"),
    (64 + 2, "layer 1 (conv2d)"),
    (88 + 3, "layer 2 (max_pool2d)"),
    (104 + 1, "layer 3 (flatten)"),
    (108 + 1, "layer 4 (avg_pool2d)"),
    (124 + 8, "layer 5 (batch_norm2d)"),
    (124 + 11, "layer 5 (batch_norm2d)"),
    (136 + 1, "layer 6 (depthwise_conv2d)"),
    (160 + 8, "layer 7 (convnextv2_block)"),
    (160 + 11, "layer 7 (convnextv2_block)"),
    (176 + 20, "layer 8 (mobilenetv4_uib)"),
    (176 + 23, "layer 8 (mobilenetv4_uib)"),
    (200 + 13, "layer 9 (resnet_basic_block)"),
    (200 + 15, "layer 9 (resnet_basic_block)"),
    (216 + 8, "layer 10 (layernorm2d)"),
    (216 + 11, "layer 10 (layernorm2d)"),
    (232 + 17, "layer 11 (yolox_decoupled_head)"),
    (232 + 19, "layer 11 (yolox_decoupled_head)"),
    (252 + 9, "layer 12 (feature_tap)"),
    (252 + 11, "layer 12 (feature_tap)"),
    (264 + 25, "layer 13 (yolox_pafpn_multiscale)"),
    (264 + 27, "layer 13 (yolox_pafpn_multiscale)"),
];

const TENSORS: &[Violation] = &[
    violation(
        worked_mlp,
        |b| b.truncate(127),
        Code::DescriptorTruncated,
        "layer 1 (dense), weight tensor 1, byte 0x68: the file ends in the tensor catalog: \
         23 bytes left, 24 bytes needed",
    ),
    violation(
        worked_mlp,
        |b| b.truncate(128),
        Code::DescriptorTruncated,
        "layer 0 (dense), bias tensor 0, byte 0x80: the file ends in the tensor catalog: \
         0 bytes left, 24 bytes needed",
    ),
    violation(
        worked_mlp,
        |b| b[80] = 0,
        Code::TensorRank,
        "layer 0 (dense), weight tensor 0, byte 0x50: rank is 0, expected 1 to 4",
    ),
    violation(
        worked_mlp,
        |b| b[104] = 5,
        Code::TensorRank,
        "layer 1 (dense), weight tensor 1, byte 0x68: rank is 5, expected 1 to 4",
    ),
    violation(
        worked_mlp,
        |b| b[81] = 2,
        Code::TensorType,
        "layer 0 (dense), weight tensor 0, byte 0x51: dtype is 2, expected 1 (float32) in a \
         float model",
    ),
    violation(
        int8_cnn,
        |b| b[93] = 3,
        Code::TensorType,
        "layer 0 (conv2d), weight tensor 0, byte 0x5d: dtype is 3, expected 2 (int8) for the \
         weights of a quantized model",
    ),
    violation(
        int8_cnn,
        |b| b[165] = 0,
        Code::TensorType,
        "layer 2 (dense), bias tensor 1, byte 0xa5: dtype is 0, expected 3 (int32) for the biases \
         of a quantized model",
    ),
    violation(
        worked_mlp,
        |b| b[131] = 1,
        Code::Reserved,
        "layer 0 (dense), bias tensor 0, byte 0x82: reserved bytes hold 0x0100, expected zero",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 88, 0),
        Code::TensorDims,
        "layer 0 (dense), weight tensor 0, byte 0x58: dims[1] is 0, expected at least 1",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 92, 1),
        Code::TensorDims,
        "layer 0 (dense), weight tensor 0, byte 0x5c: dims[2] is 1, expected 0",
    ),
    violation(
        worked_mlp,
        // 65536 × 65536 wraps to 0 in 32 bits.
        |b| put(b, 84, [0, 0, 1, 0, 0, 0, 1, 0]),
        Code::SizeOverflow,
        "layer 0 (dense), weight tensor 0, byte 0x54: the tensor is 65536×65536, expected fewer \
         than 2^32 elements",
    ),
    violation(
        worked_mlp,
        // Rank 4 with dimensions whose product wraps to 0 in 64 bits too.
        |b| put(b, 80, [4, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0]),
        Code::SizeOverflow,
        "layer 0 (dense), weight tensor 0, byte 0x54: the tensor is 65536×65536×65536×65536, \
         expected fewer than 2^32 elements",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 124, 3),
        Code::ElementCount,
        "layer 1 (dense), weight tensor 1, byte 0x7c: num_elements is 3, expected 4",
    ),
    violation(
        worked_mlp,
        |b| {
            b[152] = 2;
            put_u32(b, 160, 1);
        },
        Code::BiasRank,
        "layer 1 (dense), bias tensor 1, byte 0x98: rank is 2, expected 1",
    ),
    violation(
        worked_mlp,
        |b| {
            b.splice(208..208, [0; 4]);
            put_u32(b, 40, 36);
        },
        Code::PayloadBytes,
        "byte 0x28: weights_bytes is 36, expected 32",
    ),
    violation(
        int8_cnn,
        |b| {
            // A whole word more than the tensors take.
            b.splice(384..384, [0; 4]);
            put_u32(b, 40, 100);
        },
        Code::PayloadBytes,
        "byte 0x28: weights_bytes is 100, expected 96",
    ),
    violation(
        int8_cnn,
        |b| {
            b.splice(404..404, [0; 4]);
            put_u32(b, 44, 24);
        },
        Code::PayloadBytes,
        "byte 0x2c: biases_bytes is 24, expected 20",
    ),
    violation(
        int8_cnn,
        |b| b[381] = 1,
        Code::WeightTail,
        "byte 0x17d: padding bytes of the weights hold 0x0001, expected zero",
    ),
    violation(
        worked_mlp,
        |b| {
            put_f32(b, 196, f32::NAN);
            put_f32(b, 200, f32::INFINITY);
        },
        Code::Finite,
        "layer 1 (dense), weight tensor 1, byte 0xc4: weight is NaN, expected a finite number",
    ),
    violation(
        worked_mlp,
        |b| put_f32(b, 212, f32::NEG_INFINITY),
        Code::Finite,
        "layer 0 (dense), bias tensor 0, byte 0xd4: bias is -inf, expected a finite number",
    ),
];

/// In [`int8_cnn`] and [`per_tensor_cnn`] the section begins at 188 and its records at 196; the
/// tables of the first at 260 and 276.
const QUANTIZATION: &[Violation] = &[
    violation(
        int8_cnn,
        |b| put(b, 188, *b"QUAX"),
        Code::QuanMagic,
        r#"byte 0xbc: the section starts with "QUAX", expected "QUAN""#,
    ),
    violation(
        int8_cnn,
        |b| b.truncate(195),
        Code::QuanTruncated,
        "byte 0xbc: the file ends in the quantization section: 7 bytes left, 8 bytes needed",
    ),
    violation(
        int8_cnn,
        |b| b.truncate(259),
        Code::QuanTruncated,
        "layer 2 (dense), quantization record 1, byte 0xe4: the file ends in the quantization \
         section: 31 bytes left, 32 bytes needed",
    ),
    violation(
        int8_cnn,
        |b| put_u32(b, 276, u32::MAX),
        Code::QuanTruncated,
        "layer 2 (dense), quantization record 1, byte 0x114: the file ends in the quantization \
         section: 222 bytes left, 17179869184 bytes needed",
    ),
    violation(
        int8_cnn,
        |b| b[192] = 0,
        Code::QuanCount,
        "byte 0xc0: count is 0, expected 1 to 100",
    ),
    violation(
        int8_cnn,
        |b| b[192] = 101,
        Code::QuanCount,
        "byte 0xc0: count is 101, expected 1 to 100",
    ),
    violation(
        per_tensor_cnn,
        |b| {
            b[192] = 1;
            b.drain(228..260);
        },
        Code::QuanRecords,
        "byte 0xc0: the section has 1 record, expected 2 records",
    ),
    violation(
        int8_cnn,
        |b| b[194] = 3,
        Code::QuanFlags,
        "byte 0xc2: quan_flags is 0x0003, expected 0 or 1",
    ),
    violation(
        int8_cnn,
        |b| put_f32(b, 196, 0.0),
        Code::QuanScale,
        "layer 0 (conv2d), quantization record 0, byte 0xc4: in_scale is 0.0, expected a finite \
         number above 0",
    ),
    violation(
        int8_cnn,
        |b| put_f32(b, 204, -0.5),
        Code::QuanScale,
        "layer 0 (conv2d), quantization record 0, byte 0xcc: w_scale is -0.5, expected a finite \
         number above 0",
    ),
    violation(
        int8_cnn,
        |b| put_f32(b, 244, f32::NAN),
        Code::QuanScale,
        "layer 2 (dense), quantization record 1, byte 0xf4: bias_scale is NaN, expected a finite \
         number above 0",
    ),
    violation(
        int8_cnn,
        |b| put_f32(b, 252, f32::INFINITY),
        Code::QuanScale,
        "layer 2 (dense), quantization record 1, byte 0xfc: out_scale is inf, expected a finite \
         number above 0",
    ),
    violation(
        int8_cnn,
        |b| put_f32(b, 284, 0.0),
        Code::QuanScale,
        "layer 2 (dense), quantization record 1, byte 0x11c: channel scale is 0.0, expected a \
         finite number above 0",
    ),
    violation(
        int8_cnn,
        |b| put_u32(b, 200, -129_i32 as u32),
        Code::QuanZeroPoint,
        "layer 0 (conv2d), quantization record 0, byte 0xc8: in_zp is -129, expected -128 to 127",
    ),
    violation(
        int8_cnn,
        |b| put_u32(b, 256, 128),
        Code::QuanZeroPoint,
        "layer 2 (dense), quantization record 1, byte 0x100: out_zp is 128, expected -128 to 127",
    ),
    violation(
        int8_cnn,
        |b| put_u32(b, 208, 1),
        Code::QuanWeightZeroPoint,
        "layer 0 (conv2d), quantization record 0, byte 0xd0: w_zp is 1, expected 0",
    ),
    violation(
        int8_cnn,
        |b| put_u32(b, 216, u32::MAX),
        Code::QuanWeightZeroPoint,
        "layer 0 (conv2d), quantization record 0, byte 0xd8: bias_zp is -1, expected 0",
    ),
];

/// In [`worked_mlp`] the section begins at 224 and its cases at 236, 280 and 320; in [`int8_cnn`] at
/// 404, 416 and 455.
const CASES: &[Violation] = &[
    violation(
        worked_mlp,
        |b| put(b, 224, [0; 4]),
        Code::CasesMagic,
        r#"byte 0xe0: the section starts with "\x00\x00\x00\x00", expected "TCAS""#,
    ),
    violation(
        worked_mlp,
        |b| b.truncate(224),
        Code::CasesTruncated,
        "byte 0xe0: the file ends in the test section: 0 bytes left, 12 bytes needed",
    ),
    violation(
        worked_mlp,
        |b| b.truncate(375),
        Code::CasesTruncated,
        "test case 2, byte 0x170: the file ends in the test section: 7 bytes left, 8 bytes needed",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 228, 4),
        Code::CasesTruncated,
        "test case 3, byte 0x178: the file ends in the test section: 0 bytes left, 1 byte needed",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 228, 0),
        Code::CaseCount,
        "byte 0xe4: case_count is 0, expected 1 to 16",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 228, 17),
        Code::CaseCount,
        "byte 0xe4: case_count is 17, expected 1 to 16",
    ),
    violation(
        worked_mlp,
        |b| b[280] = 0,
        Code::CaseNameLength,
        "test case 1, byte 0x118: name_len is 0, expected 1 to 127",
    ),
    violation(
        worked_mlp,
        |b| b[236] = 128,
        Code::CaseNameLength,
        "test case 0, byte 0xec: name_len is 128, expected 1 to 127",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 256, 0),
        Code::CaseValueCount,
        "test case 0, byte 0x100: input_count is 0, expected 1 to 16384",
    ),
    violation(
        int8_cnn,
        |b| put_u32(b, 443, 16385),
        Code::CaseValueCount,
        "test case 0, byte 0x1bb: output_count is 16385, expected 1 to 16384",
    ),
    violation(
        worked_mlp,
        |b| put_u32(b, 348, -2_i32 as u32),
        Code::CaseLabel,
        "test case 2, byte 0x15c: label is -2, expected a class or -1 for none",
    ),
    violation(
        worked_mlp,
        // Both names become "z", padded, and the second case moves up.
        |b| {
            b.splice(280..292, *b"\x01z\0\0");
            b.splice(236..252, *b"\x01z\0\0");
        },
        Code::CaseDuplicate,
        "test case 1, byte 0x10d: the name is also that of test case 0",
    ),
    violation(
        worked_mlp,
        |b| b[281] = 0xc3,
        Code::CaseNameText,
        "test case 1, byte 0x119: the name is not UTF-8, expected UTF-8 without NUL",
    ),
    violation(
        worked_mlp,
        |b| b[285] = 0,
        Code::CaseNameText,
        "test case 1, byte 0x119: the name has a NUL, expected UTF-8 without NUL",
    ),
    violation(
        worked_mlp,
        |b| b[291] = 0x20,
        Code::Reserved,
        "test case 1, byte 0x123: padding bytes of the name hold 0x0020, expected zero",
    ),
    violation(
        worked_mlp,
        |b| put_f32(b, 232, -1.0),
        Code::CaseTolerance,
        "byte 0xe8: tolerance is -1.0, expected a finite number of at least 0",
    ),
    violation(
        worked_mlp,
        |b| put_f32(b, 232, f32::INFINITY),
        Code::CaseTolerance,
        "byte 0xe8: tolerance is inf, expected a finite number of at least 0",
    ),
    violation(
        worked_mlp,
        |b| put_f32(b, 264, f32::NAN),
        Code::Finite,
        "test case 0, byte 0x108: input value is NaN, expected a finite number",
    ),
    violation(
        int8_cnn,
        |b| put_f32(b, 447, f32::INFINITY),
        Code::Finite,
        "test case 0, byte 0x1bf: expected value is inf, expected a finite number",
    ),
];

fn all() -> impl Iterator<Item = &'static Violation> {
    [HEADER, LAYERS, TENSORS, QUANTIZATION, CASES].into_iter().flatten()
}

/// For each rule of a file by itself, a file that breaks it.
#[allow(dead_code, reason = "for the tests of what the macro says")]
pub(crate) fn broken_files() -> BTreeMap<Code, Vec<u8>> {
    let mut files = BTreeMap::new();
    for Violation { model, damage, code, .. } in all() {
        files.entry(*code).or_insert_with(|| {
            let mut bytes = model().to_bytes().unwrap();
            damage(&mut bytes);
            bytes
        });
    }
    files
}

/// Parses into both sinks; gives everything that was reported.
fn diagnose(bytes: &[u8]) -> Diagnostics {
    let mut every = Diagnostics::new();
    let mut first = FirstError::new();
    let parsed = NkFile::parse(bytes, &mut every).is_some();
    assert_eq!(parsed, every.is_empty());
    assert_eq!(NkFile::parse(bytes, &mut first).is_some(), parsed);
    let text = |diagnostic: &Diagnostic| (diagnostic.code, diagnostic.to_string());
    assert_eq!(first.first().as_ref().map(text), every.iter().next().map(text));
    every
}

#[test]
fn each_violation_is_reported_once_and_nothing_else_is() {
    for Violation { model, damage, code, text } in all() {
        let mut bytes = model().to_bytes().unwrap();
        assert!(diagnose(&bytes).is_empty());
        damage(&mut bytes);
        let found = diagnose(&bytes);
        let said: Vec<_> = found.iter().map(|found| (found.code, found.to_string())).collect();
        assert_eq!(said, [(*code, (*text).to_string())]);
    }
}

/// Where what was found tells more than the rule does.
#[test]
fn hints_fit_what_was_found() {
    let hint = |bytes: &[u8]| diagnose(bytes).as_slice()[0].hint();
    for (start, expected) in [
        (&b"version https://git-lfs.github.com/spec/v1\n"[..], "`git lfs pull`"),
        (b"<!DOCTYPE html>", "web page"),
        (b"<html>", "web page"),
        (&[8, 8, 0x12, 0x13], "looks like ONNX: `netkit convert`"),
        (&[8, 12, 0x3a, 0x80], "looks like ONNX: `netkit convert`"),
        (b"\x89PNG\r\n", Code::Magic.hint()),
        (b"\x08\0\0\0", Code::Magic.hint()),
        (b"NO", Code::Magic.hint()),
    ] {
        assert!(hint(start).contains(expected), "{start:?}: {}", hint(start));
    }
    let whole = worked_mlp().to_bytes().unwrap();
    let mut unannounced = whole.clone();
    unannounced[10] = 0;
    assert!(hint(&unannounced).contains("set flag 0x0001"), "{}", hint(&unannounced));
    unannounced[224] = b'X';
    assert_eq!(hint(&unannounced), Code::Trailing.hint());
    // The flag is set.
    let twice = [&whole[..], &whole[224..]].concat();
    assert_eq!(hint(&twice), Code::Trailing.hint());
    assert!(!Code::Trailing.hint().contains("0x0001"));
    assert!(!Code::Empty.hint().contains("LFS"));
}

#[test]
fn reserved_bytes_of_records_are_zero() {
    let good = every_kind().to_bytes().unwrap();
    for &(offset, site) in RESERVED {
        let mut bytes = good.clone();
        bytes[offset] = 0x40;
        let found = diagnose(&bytes);
        let said: Vec<_> = found.iter().map(|found| (found.code, found.to_string())).collect();
        let text = format!("{site}, byte {offset:#x}: reserved bytes hold 0x0040, expected zero");
        assert_eq!(said, [(Code::Reserved, text)]);
    }
}

#[test]
fn every_code_is_broken_here_or_belongs_to_a_later_stage() {
    let here: BTreeSet<_> = all().map(|violation| violation.code).collect();
    let elsewhere: BTreeSet<_> = NETWORK_RULES.iter().chain(LIMITS).copied().collect();
    assert_eq!(here.intersection(&elsewhere).next(), None);
    let known: BTreeSet<_> = here.union(&elsewhere).copied().collect();
    assert_eq!(known, Code::ALL.iter().copied().collect());
}

#[test]
fn the_payload_of_every_good_file_is_aligned() {
    for model in [worked_mlp, caseless_mlp, int8_cnn, per_tensor_cnn, every_kind] {
        let bytes = model().to_bytes().unwrap();
        let file = NkFile::parse(&bytes, &mut Diagnostics::new()).unwrap();
        assert_eq!((file.weights_offset() % 4, file.biases_offset() % 4), (0, 0));
    }
}

#[test]
fn several_rules_are_reported_at_once() {
    let mut bytes = int8_cnn().to_bytes().unwrap();
    bytes[9] = 2; // input_rank
    bytes[64] = 99; // activation of the conv2d
    bytes[84] = 99; // activation of the dense
    put_u32(&mut bytes, 200, 1000); // in_zp
    bytes[383] = 1; // padding of the weights
    put_u32(&mut bytes, 420, -7_i32 as u32); // label
    bytes.push(0);
    let codes: Vec<_> = diagnose(&bytes).iter().map(|found| found.code).collect();
    assert_eq!(
        codes,
        [
            Code::InputRank,
            Code::Activation,
            Code::Activation,
            Code::QuanZeroPoint,
            Code::WeightTail,
            Code::CaseLabel,
            Code::Trailing
        ]
    );
}

/// A sink that stops the check at the report of this number, counted from 1.
struct StopAt {
    report: usize,
    seen: usize,
}

impl Sink for StopAt {
    fn report(&mut self, _: Diagnostic) -> ControlFlow<()> {
        self.seen += 1;
        if self.seen < self.report { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

#[test]
fn a_sink_stops_the_check_where_it_likes() {
    let mut bytes = every_kind().to_bytes().unwrap();
    for &(offset, _) in RESERVED {
        bytes[offset] = 1;
    }
    let all = diagnose(&bytes).iter().count();
    assert!(all > 10);
    for most in 1..=all {
        let mut sink = StopAt { report: most, seen: 0 };
        assert!(NkFile::parse(&bytes, &mut sink).is_none());
        assert_eq!(sink.seen, most);
    }
}
