//! Int8 kernels, layer by layer: those of the digit network, which measure, and odd shapes, which prove that every
//! remainder is right.

use crate::random::Random;
use crate::{Board, Report};
use netkit_core::op::{Conv2d, Dense, DepthwiseConv2d, Padding, Pool2d, Window};
use netkit_core::quant::{Multiplier, OutputStage};
use netkit_kernels::{
    FilterForm, FilterS8, conv2d_s8, dense_s8, depthwise_conv2d_s8, max_pool2d_s8, workspace,
};

/// The largest input, and the most weights, of all cases.
const INPUT: usize = 28 * 28 * 32;
const WEIGHTS: usize = 400 * 64;
const CHANNELS: usize = 64;
/// Kernels with vectors prepare more at once than microcontrollers have memory for. CMSIS-NN for processors with vectors
/// wants 24 KiB for a 7×7 window.
const SCRATCH: usize = if cfg!(target_os = "none") { 32 } else { 512 } * 1024;

/// What layers compute with.
struct Data {
    input: [i8; INPUT],
    weights: [i8; WEIGHTS],
    bias: [i32; CHANNELS],
    multipliers: [Multiplier; CHANNELS],
    output: [i8; INPUT],
    scratch: Scratch,
}

#[repr(align(64))]
struct Scratch([u8; SCRATCH]);

const INPUT_ZERO_POINT: i32 = 3;

/// Without a clamp, and with one that is narrower than int8 at both ends.
const STAGES: [(&str, OutputStage); 2] = [
    ("", OutputStage { zero_point: -7, low: -128, high: 127 }),
    ("-clamped", OutputStage { zero_point: -7, low: -7, high: 60 }),
];

/// Runs all layers.
pub fn run(board: &mut impl Board) {
    let mut random = Random(1);
    let mut data = Data {
        input: [0; INPUT],
        weights: [0; WEIGHTS],
        bias: [0; CHANNELS],
        multipliers: [Multiplier { multiplier: 0, shift: 0 }; CHANNELS],
        output: [0; INPUT],
        scratch: Scratch([0; SCRATCH]),
    };
    data.input.fill_with(|| random.next() as i8);
    data.weights.fill_with(|| random.next() as i8);
    data.bias.fill_with(|| (random.next() % 20_000) as i32 - 10_000);
    data.multipliers.fill_with(|| Multiplier {
        multiplier: ((1 << 30) + (random.next() << 6 & 0x3fff_ffff)) as i32,
        shift: -9 - (random.next() % 4) as i32,
    });
    for (suffix, stage) in STAGES {
        // Name, side, kernel, stride, padding, channels in and out.
        let cases = [
            ("conv2d-28x28x1-3x3-32", 28, 3, 1, 0, 1, 32),
            ("conv2d-13x13x32-3x3-64", 13, 3, 1, 0, 32, 64),
            ("conv2d-9x9x16-3x3-16-padded", 9, 3, 1, 1, 16, 16),
            ("conv2d-8x8x16-1x1-33", 8, 1, 1, 0, 16, 33),
            ("odd-conv2d-9x9x3-3x3-5-strided", 9, 3, 2, 1, 3, 5),
            ("odd-conv2d-7x7x7-5x5-6-strided", 7, 5, 3, 2, 7, 6),
            ("odd-conv2d-3x3x5-3x3-9", 3, 3, 1, 0, 5, 9),
            ("odd-conv2d-4x4x1-2x2-6", 4, 2, 2, 0, 1, 6),
            ("odd-conv2d-5x5x1-1x1-3", 5, 1, 1, 0, 1, 3),
            ("odd-conv2d-5x5x8-3x3-1", 5, 3, 1, 1, 8, 1),
            ("odd-conv2d-2x2x4-5x5-4-padded", 2, 5, 1, 3, 4, 4),
        ];
        for (name, side, kernel, stride, padding, in_channels, out_channels) in cases {
            let window = window(side, kernel, stride, padding);
            let conv = Conv2d { window, in_channels, out_channels };
            data.conv2d(board, [name, suffix], &conv, stage);
        }
        let mut conv = Conv2d { window: window(9, 3, 1, 0), in_channels: 4, out_channels: 7 };
        conv.window.dilation_h = 2;
        conv.window.dilation_w = 3;
        [conv.window.out_h, conv.window.out_w] = [5, 3];
        data.conv2d(board, ["odd-conv2d-9x9x4-3x3-7-dilated", suffix], &conv, stage);

        let cases = [
            ("dense-400-64", 1, 400, 64),
            ("dense-128-10", 1, 128, 10),
            ("odd-dense-7-7-two-rows", 2, 7, 7),
            ("odd-dense-4-4", 1, 4, 4),
            ("odd-dense-3-5", 1, 3, 5),
            ("odd-dense-9-3", 1, 9, 3),
        ];
        for (name, rows, in_features, out_features) in cases {
            let dense = Dense { rows, in_features, out_features };
            data.dense(board, [name, suffix], &dense, stage);
        }

        let cases = [
            ("depthwise-28x28x32-3x3", 28, 3, 1, 0, 32),
            ("depthwise-14x14x32-3x3-padded", 14, 3, 1, 1, 32),
            ("odd-depthwise-9x9x13-5x5-strided", 9, 5, 2, 2, 13),
            ("odd-depthwise-3x3x6-7x7-padded", 3, 7, 1, 3, 6),
            ("odd-depthwise-5x5x3-3x3", 5, 3, 1, 1, 3),
        ];
        for (name, side, kernel, stride, padding, channels) in cases {
            let window = window(side, kernel, stride, padding);
            let conv = DepthwiseConv2d { window, channels, multiplier: 1 };
            data.depthwise_conv2d(board, [name, suffix], &conv, stage);
        }
        let conv = DepthwiseConv2d { window: window(5, 3, 1, 1), channels: 3, multiplier: 2 };
        data.depthwise_conv2d(board, ["odd-depthwise-5x5x3-3x3-multiplier", suffix], &conv, stage);
    }
    let cases = [
        ("max-pool-26x26x32-2x2", 26, 2, 2, 0, 32),
        ("odd-max-pool-9x9x7-3x3-padded", 9, 3, 2, 1, 7),
    ];
    for (name, side, kernel, stride, padding, channels) in cases {
        let window = window(side, kernel, stride, padding);
        data.max_pool2d(board, name, &Pool2d { window, channels });
    }
}

fn window(side: usize, kernel: u32, stride: u32, padding: u32) -> Window {
    let padding = Padding::symmetric(padding, padding);
    let window = Window::new((side, side), (kernel, kernel), stride, padding);
    window.expect("every case's window fits")
}

impl Data {
    fn conv2d(
        &mut self,
        board: &mut impl Board,
        name: [&str; 2],
        conv: &Conv2d,
        stage: OutputStage,
    ) {
        let Conv2d { window: w, in_channels, out_channels } = *conv;
        let input = &self.input[..w.in_pixels() * in_channels];
        let weights = &self.weights[..w.taps() * in_channels * out_channels];
        let output = &mut self.output[..w.out_pixels() * out_channels];
        let scratch = &mut self.scratch.0[..workspace::conv2d_s8(conv, FilterForm::File)];
        report(board, name, output, |output| {
            conv2d_s8(
                conv,
                input,
                INPUT_ZERO_POINT,
                FilterS8::File(weights),
                &self.bias[..out_channels],
                &self.multipliers[..out_channels],
                stage,
                0..w.out_h,
                output,
                scratch,
            );
        });
    }

    fn dense(
        &mut self,
        board: &mut impl Board,
        name: [&str; 2],
        dense: &Dense,
        stage: OutputStage,
    ) {
        let Dense { rows, in_features, out_features } = *dense;
        let input = &self.input[..rows * in_features];
        let weights = &self.weights[..in_features * out_features];
        let output = &mut self.output[..rows * out_features];
        let scratch = &mut self.scratch.0[..workspace::dense_s8(dense, FilterForm::File)];
        report(board, name, output, |output| {
            dense_s8(
                dense,
                input,
                INPUT_ZERO_POINT,
                FilterS8::File(weights),
                &self.bias[..out_features],
                &self.multipliers[..out_features],
                stage,
                output,
                scratch,
            );
        });
    }

    fn depthwise_conv2d(
        &mut self,
        board: &mut impl Board,
        name: [&str; 2],
        conv: &DepthwiseConv2d,
        stage: OutputStage,
    ) {
        let DepthwiseConv2d { window: w, channels, multiplier } = *conv;
        let out_channels = channels * multiplier;
        let input = &self.input[..w.in_pixels() * channels];
        let weights = &self.weights[..w.taps() * out_channels];
        let output = &mut self.output[..w.out_pixels() * out_channels];
        let len = workspace::depthwise_conv2d_s8(conv, FilterForm::File);
        let scratch = &mut self.scratch.0[..len];
        report(board, name, output, |output| {
            depthwise_conv2d_s8(
                conv,
                input,
                INPUT_ZERO_POINT,
                FilterS8::File(weights),
                &self.bias[..out_channels],
                &self.multipliers[..out_channels],
                stage,
                0..w.out_h,
                output,
                scratch,
            );
        });
    }

    fn max_pool2d(&mut self, board: &mut impl Board, name: &str, pool: &Pool2d) {
        let Pool2d { window: w, channels } = *pool;
        let input = &self.input[..w.in_pixels() * channels];
        let output = &mut self.output[..w.out_pixels() * channels];
        report(board, [name, ""], output, |output| max_pool2d_s8(pool, input, 0..w.out_h, output));
    }
}

/// Runs a layer, measures it if it is not there for its oddness, and prints a hash of what it wrote: the whole output would be long to print.
fn report<B: Board>(
    board: &mut B,
    name: [&str; 2],
    output: &mut [i8],
    layer: impl FnOnce(&mut [i8]),
) {
    output.fill(0);
    let mut buffer = [0; 64];
    let name = joined(&mut buffer, name);
    if name.starts_with("odd") || name.ends_with("clamped") {
        layer(output);
    } else {
        board.measure(name, || layer(output));
    }
    let hash = output.iter().fold(0x811c_9dc5, |hash: u32, &value| {
        (hash ^ u32::from(value.cast_unsigned())).wrapping_mul(0x0100_0193)
    });
    Report::i8(board, name, &hash.to_le_bytes().map(u8::cast_signed));
}

fn joined<'a>(buffer: &'a mut [u8; 64], parts: [&str; 2]) -> &'a str {
    let mut len = 0;
    for byte in parts.iter().flat_map(|part| part.bytes()) {
        buffer[len] = byte;
        len += 1;
    }
    core::str::from_utf8(&buffer[..len]).expect("joined text is text")
}
