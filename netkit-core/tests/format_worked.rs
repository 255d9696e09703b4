//! The worked dump of the format's description (section 13), field by field.
#![cfg(feature = "alloc")]

mod format_support;

use format_support::{int8_cnn, model_files, worked_mlp};
use netkit_core::diag::Diagnostics;
use netkit_core::format::{Activation, CaseInput, Dense, Layer, NetworkKind, NkFile};
use netkit_core::quant::Quant;
use netkit_core::tensor::{DType, Shape};

/// The 376 bytes of `test_mlp.nk`, a field or a few to a line.
const WORKED: &[&str] = &[
    // 0: magic, version 3, MLP of rank 2, flags 1, shape 1×2
    "4e4b4954 03000000 01 02 0100",
    "01000000 02000000 00000000 00000000",
    // 28: 2 layers, 2 weight and 2 bias tensors, 32 + 16 bytes
    "02000000 02000000 02000000 20000000 10000000",
    // 48: dense, 2 units, relu, alpha 0.01
    "01000000 02000000 01 000000 0ad7233c",
    // 64: dense, 2 units, none, alpha 0.01
    "01000000 02000000 00 000000 0ad7233c",
    // 80, 104: weights, rank 2, float32, 2×2, 4 elements
    "02 01 0000 02000000 02000000 00000000 00000000 04000000",
    "02 01 0000 02000000 02000000 00000000 00000000 04000000",
    // 128, 152: biases, rank 1, float32, 2, 2 elements
    "01 01 0000 02000000 00000000 00000000 00000000 02000000",
    "01 01 0000 02000000 00000000 00000000 00000000 02000000",
    // 176, 192: weights 1 1 / 1 1 and 1 0 / 0 1
    "0000803f 0000803f 0000803f 0000803f",
    "0000803f 00000000 00000000 0000803f",
    // 208: biases
    "00000000 00000000 00000000 00000000",
    // 224: test cases, 3 of them, tolerance 1e-5
    "54434153 03000000 acc52737",
    // 236: "2-layer forward", no label, 1 2 → 3 3
    "0f 322d6c61796572 20 666f7277617264 ffffffff",
    "02000000 0000803f 00000040 02000000 00004040 00004040",
    // 280: "zero input", one byte of padding, 0 0 → 0 0
    "0a 7a65726f 20 696e707574 00 ffffffff",
    "02000000 00000000 00000000 02000000 00000000 00000000",
    // 320: "relu clamps negative hidden", -1 3 → 2 2
    "1b 72656c75 20 636c616d7073 20 6e65676174697665 20 68696464656e ffffffff",
    "02000000 000080bf 00004040 02000000 00000040 00000040",
];

fn worked() -> Vec<u8> {
    let digits: Vec<u32> = WORKED.concat().chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

#[test]
fn the_description_of_the_dump_is_written_as_the_dump() {
    let bytes = worked();
    assert_eq!(bytes.len(), 376);
    assert_eq!(worked_mlp().to_bytes().unwrap(), bytes);
    for (name, file) in model_files() {
        if name == "test_mlp.nk" {
            assert_eq!(file, bytes);
        }
    }
}

#[test]
fn every_field_of_the_dump_is_read() {
    let bytes = worked();
    let mut sink = Diagnostics::new();
    let file = NkFile::parse(&bytes, &mut sink).unwrap();

    let header = file.header();
    assert_eq!((header.version, header.kind, header.flags.bits()), (3, NetworkKind::Mlp, 1));
    assert_eq!(header.input_dims(), [1, 2]);
    assert_eq!((header.layer_count, header.pair_count), (2, 2));
    assert_eq!((header.weights_bytes, header.biases_bytes), (32, 16));

    let layers: Vec<_> = file.layers().collect();
    let dense = |activation| Layer::Dense(Dense { units: 2, activation, alpha: 0.01 });
    assert_eq!(layers[0].layer, dense(Activation::Relu));
    assert_eq!(layers[1].layer, dense(Activation::None));
    assert_eq!((layers[0].index, layers[0].offset), (0, 48));
    assert_eq!((layers[1].index, layers[1].offset), (1, 64));
    assert_eq!((layers[0].first_pair, layers[0].pair_count), (0, 1));
    assert_eq!((layers[1].first_pair, layers[1].pair_count), (1, 1));

    let pairs: Vec<_> = file.pairs().collect();
    let places = |k: usize| {
        let (weight, bias) = (&pairs[k].weight, &pairs[k].bias);
        [weight.descriptor_offset, weight.offset, bias.descriptor_offset, bias.offset]
    };
    assert_eq!(places(0), [80, 176, 128, 208]);
    assert_eq!(places(1), [104, 192, 152, 216]);
    assert_eq!((file.weights_offset(), file.biases_offset()), (176, 208));
    for pair in &pairs {
        assert_eq!(pair.weight.dtype, DType::F32);
        assert_eq!(pair.weight.shape, Shape::new(&[2, 2]).unwrap());
        assert_eq!(pair.bias.shape, Shape::new(&[2]).unwrap());
        assert!(pair.bias.as_f32().unwrap().iter().eq([0.0, 0.0]));
        assert!(pair.bias.as_i32().is_none() && pair.weight.as_i8().is_none());
    }
    assert!(pairs[0].weight.as_f32().unwrap().iter().eq([1.0; 4]));
    assert!(file.pair(1).unwrap().weight.as_f32().unwrap().iter().eq([1.0, 0.0, 0.0, 1.0]));
    assert!(file.pair(2).is_none());
    assert_eq!(file.quant_records().count(), 0);

    assert_eq!(file.tolerance(), Some(1e-5));
    let cases: Vec<_> = file.cases().collect();
    let names: Vec<_> = cases.iter().map(|case| (case.offset, case.name)).collect();
    let expected =
        [(236, "2-layer forward"), (280, "zero input"), (320, "relu clamps negative hidden")];
    assert_eq!(names, expected);
    let last = &cases[2];
    assert_eq!(last.label, None);
    assert_eq!((last.label_offset, last.input_offset, last.expected_offset), (348, 352, 364));
    let CaseInput::F32(input) = last.input else { panic!("{:?}", last.input) };
    assert!(input.iter().eq([-1.0, 3.0]));
    assert!(last.expected.iter().eq([2.0, 2.0]));
}

/// No dump of a quantized file is shown byte by byte, so this one is written and its places counted
/// by hand: header 48, records 24 + 4 + 16, catalog 96, QUAN 8 + 64 + 16 + 12, weights 93 + 3,
/// biases 20, TCAS 12 and its cases.
#[test]
fn every_field_of_a_quantized_file_is_read() {
    let bytes = int8_cnn().to_bytes().unwrap();
    let file = NkFile::parse(&bytes, &mut Diagnostics::new()).unwrap();
    let header = file.header();
    assert_eq!((header.version, header.flags.bits()), (4, 7));
    assert_eq!((header.weights_bytes, header.biases_bytes), (96, 20));
    assert_eq!((file.weights_offset(), file.biases_offset()), (288, 384));

    let [first, second] = [0, 1].map(|k| file.pair(k).unwrap());
    assert!(first.weight.as_i8().unwrap().iter().eq([127, -128, 3]));
    assert!(first.bias.as_i32().unwrap().iter().eq([1, -1, 70_000]));
    assert_eq!((second.weight.offset, second.bias.offset), (291, 396));
    assert_eq!(second.weight.as_bytes().len(), 90);
    assert_eq!(file.weight_payload().len(), 96);
    assert_eq!(file.bias_payload().len(), 20);

    let record = file.quant_record(1).unwrap();
    assert_eq!(record.offset, 228);
    assert_eq!(record.input, Quant { scale: 0.05, zero_point: -128 });
    assert_eq!(record.weight, Quant { scale: 0.01, zero_point: 0 });
    assert_eq!(record.output, Quant { scale: 0.25, zero_point: 3 });
    assert_eq!(record.channel_scales_offset, 280);
    assert_eq!([0, 1].map(|channel| record.weight_scale(channel)), [0.01, 0.005]);
    assert!(file.quant_record(2).is_none());

    let cases: Vec<_> = file.cases().collect();
    assert_eq!((cases[0].label, cases[1].label), (Some(1), None));
    // The first case has 15 input bytes, so all of the second is at an odd place.
    assert_eq!((cases[0].offset, cases[1].offset), (416, 455));
    let CaseInput::I8(input) = cases[1].input else { panic!("{:?}", cases[1].input) };
    assert!(input.iter().eq([127; 15]));
    assert!(cases[1].expected.iter().eq([0.25, 0.75]));
}
