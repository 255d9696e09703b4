//! What the linked library is given it takes, and computes as the reference does. These run with the real library as well as
//! with the stand-in of `tests/cmsis_nn`.

use super::{CmsisNn, Layer, takes};
use crate::filter::FilterForm;
use crate::filter_s8::FilterS8;
use crate::generic::conv2d_s8::Conv2dS8;
use crate::generic::dense_s8::DenseS8;
use crate::generic::depthwise_conv2d_s8::DepthwiseConv2dS8;
use crate::generic::max_pool2d_s8::MaxPool2dS8;
use crate::reference::{self, LayerS8};
use crate::workspace;
use netkit_core::op::{Conv2d, Dense, DepthwiseConv2d, Padding, Pool2d, Window};
use netkit_core::pack;
use netkit_core::quant::{Multiplier, OutputStage};
use std::vec;
use std::vec::Vec;

fn library() -> CmsisNn {
    CmsisNn::detect().expect("the linked library rounds twice")
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn bytes(&mut self, len: usize) -> Vec<i8> {
        (0..len).map(|_| self.below(256) as u8 as i8).collect()
    }

    fn window(&mut self) -> Window {
        loop {
            let input = (1 + self.below(9), 1 + self.below(12));
            let kernel = (1 + self.below(5) as u32, 1 + self.below(5) as u32);
            let mut pad = || [0, 0, 1, 2][self.below(4)];
            let padding = Padding { top: pad(), left: pad(), bottom: pad(), right: pad() };
            let stride = [1, 1, 2, 3][self.below(4)];
            if let Some(window) = Window::new(input, kernel, stride, padding) {
                return window;
            }
        }
    }
}

/// Parameters such as models have.
struct Parameters {
    input_zero_point: i32,
    bias: Vec<i32>,
    multipliers: Vec<Multiplier>,
    stage: OutputStage,
}

impl Parameters {
    fn new(random: &mut Random, channels: usize, taps: usize) -> Self {
        // Sums of products of random bytes are about 2^12.5 times the root of their number.
        let spread = -8 - (usize::BITS - taps.leading_zeros()) as i32 / 2;
        let is_common = random.below(3) == 0;
        let factor = |random: &mut Random| Multiplier {
            multiplier: (1 << 30) + random.below(1 << 30) as i32,
            shift: spread + random.below(3) as i32,
        };
        let common = factor(random);
        let multipliers =
            (0..channels).map(|_| if is_common { common } else { factor(random) }).collect();
        let zero_point = random.below(256) as i32 - 128;
        Self {
            input_zero_point: random.below(256) as i32 - 128,
            bias: (0..channels).map(|_| random.below(20_000) as i32 - 10_000).collect(),
            multipliers,
            stage: OutputStage {
                zero_point,
                low: if random.below(2) == 0 { -128 } else { zero_point as i8 },
                high: 127,
            },
        }
    }

    fn layer(&self) -> LayerS8<'_> {
        LayerS8 {
            input_zero_point: self.input_zero_point,
            bias: &self.bias,
            multipliers: &self.multipliers,
            stage: self.stage,
        }
    }
}

/// Scratch of as many bytes, aligned as scratch is.
fn scratch(bytes: usize) -> Vec<u128> {
    vec![0; bytes.div_ceil(16)]
}

/// A convolution with random contents: whether it was taken, and whether the output is the reference's.
fn convolution(library: CmsisNn, conv: Conv2d, random: &mut Random) -> (bool, bool) {
    let Conv2d { window, in_channels, out_channels } = conv;
    let taps = window.taps() * in_channels;
    let input = random.bytes(window.in_pixels() * in_channels);
    let weights = random.bytes(taps * out_channels);
    let p = Parameters::new(random, out_channels, taps);
    let mut expected = vec![0; window.out_pixels() * out_channels];
    reference::conv2d_s8(&conv, &input, &weights, p.layer(), &mut expected);
    let bytes = workspace::conv2d_s8(&conv, FilterForm::File);
    let (mut scratch, mut output) = (scratch(bytes), vec![0; expected.len()]);
    let mut call = Conv2dS8 {
        conv,
        input: &input,
        input_zero_point: p.input_zero_point,
        filter: FilterS8::File(&weights),
        bias: &p.bias,
        multipliers: &p.multipliers,
        stage: p.stage,
        rows: 0..window.out_h,
        output: &mut output,
        scratch: &mut bytemuck::cast_slice_mut(&mut scratch)[..bytes],
    };
    let taken = call.compute_on(library);
    (taken, output == expected)
}

#[test]
fn convolutions_are_taken_and_exact() {
    let (library, mut random) = (library(), Random(1));
    let mut taken = 0;
    for _ in 0..1500 {
        let conv = Conv2d {
            window: random.window(),
            in_channels: 1 + random.below(20),
            out_channels: 1 + random.below(20),
        };
        let (is_taken, is_exact) = convolution(library, conv, &mut random);
        assert_eq!(is_taken, takes::conv2d(&conv), "{conv:?}");
        assert!(is_exact || !is_taken, "{conv:?}");
        taken += usize::from(is_taken);
    }
    assert!(taken > 700, "{taken}");
    // Sizes of the digit network.
    for (side, in_channels, out_channels) in [(28, 1, 32), (13, 32, 64)] {
        let window = Window::new((side, side), (3, 3), 1, Padding::default()).unwrap();
        let conv = Conv2d { window, in_channels, out_channels };
        assert_eq!(convolution(library, conv, &mut random), (true, true), "{conv:?}");
    }
}

#[test]
fn depthwise_convolutions_are_taken_and_exact() {
    let (library, mut random) = (library(), Random(2));
    let mut taken = 0;
    for index in 0..1500 {
        let channels = if index % 100 == 0 { 124 + random.below(8) } else { 1 + random.below(40) };
        let conv = DepthwiseConv2d { window: random.window(), channels, multiplier: 1 };
        let window = conv.window;
        let input = random.bytes(window.in_pixels() * channels);
        let weights = random.bytes(window.taps() * channels);
        let p = Parameters::new(&mut random, channels, window.taps());
        let mut expected = vec![0; window.out_pixels() * channels];
        reference::depthwise_conv2d_s8(&conv, &input, &weights, p.layer(), &mut expected);
        let bytes = workspace::depthwise_conv2d_s8(&conv, FilterForm::File);
        let (mut scratch, mut output) = (scratch(bytes), vec![0; expected.len()]);
        let mut call = DepthwiseConv2dS8 {
            conv,
            input: &input,
            input_zero_point: p.input_zero_point,
            filter: FilterS8::File(&weights),
            bias: &p.bias,
            multipliers: &p.multipliers,
            stage: p.stage,
            rows: 0..window.out_h,
            output: &mut output,
            scratch: &mut bytemuck::cast_slice_mut(&mut scratch)[..bytes],
        };
        let is_taken = call.compute_on(library);
        let in_reach = !library.vectors || takes::depthwise_by_vectors(&conv);
        assert_eq!(is_taken, in_reach && takes::depthwise_conv2d(&conv), "{conv:?}");
        assert!(output == expected || !is_taken, "{conv:?}");
        taken += usize::from(is_taken);
    }
    assert!(taken > if library.vectors { 150 } else { 700 }, "{taken}");
}

/// With row sums whatever the library wants, without if it has no use for them.
#[test]
fn dense_layers_are_taken_and_exact() {
    let (library, mut random) = (library(), Random(3));
    for _ in 0..1500 {
        let dense = Dense {
            rows: 1 + random.below(3),
            in_features: 1 + random.below(200),
            out_features: 1 + random.below(40),
        };
        let Dense { rows, in_features, out_features } = dense;
        let input = random.bytes(rows * in_features);
        let weights = random.bytes(in_features * out_features);
        let p = Parameters::new(&mut random, out_features, in_features);
        let mut expected = vec![0; rows * out_features];
        reference::dense_s8(&dense, &input, &weights, p.layer(), &mut expected);
        let mut sums = vec![0; out_features];
        pack::row_sums(&dense, &weights, &p.bias, p.input_zero_point, &mut sums).unwrap();
        let is_common = p.multipliers.iter().all(|&factor| factor == p.multipliers[0]);
        for sums in [&sums[..], &[]] {
            let bytes = workspace::dense_s8(&dense, FilterForm::File);
            let (mut scratch, mut output) = (scratch(bytes), vec![0; expected.len()]);
            let call = DenseS8 {
                dense,
                input: &input,
                input_zero_point: p.input_zero_point,
                filter: FilterS8::File(&weights),
                bias: &p.bias,
                multipliers: &p.multipliers,
                stage: p.stage,
                output: &mut output,
                scratch: &mut bytemuck::cast_slice_mut(&mut scratch)[..bytes],
            };
            let is_taken = (call, sums).compute_on(library);
            let has_sums = !library.vectors || !sums.is_empty();
            let has_function = is_common || cfg!(netkit_cmsis_nn_7);
            assert_eq!(is_taken, has_sums && has_function, "{dense:?}");
            assert!(output == expected || !is_taken, "{dense:?}");
        }
    }
}

#[test]
fn maxima_are_taken_and_exact() {
    let (library, mut random) = (library(), Random(4));
    let mut taken = 0;
    for _ in 0..1500 {
        let pool = Pool2d { window: random.window(), channels: 1 + random.below(40) };
        let input = random.bytes(pool.window.in_pixels() * pool.channels);
        let mut expected = vec![0; pool.window.out_pixels() * pool.channels];
        reference::max_pool2d_s8(&pool, &input, &mut expected);
        let mut output = vec![0; expected.len()];
        let rows = 0..pool.window.out_h;
        let mut call = MaxPool2dS8 { pool, input: &input, rows, output: &mut output };
        let is_taken = call.compute_on(library);
        assert_eq!(is_taken, takes::max_pool2d(&pool), "{pool:?}");
        assert!(output == expected || !is_taken, "{pool:?}");
        taken += usize::from(is_taken);
    }
    assert!(taken > 700, "{taken}");
}

#[test]
fn what_does_not_suit_is_declined_and_nothing_written() {
    let (library, mut random) = (library(), Random(5));
    let window = Window::new((6, 6), (3, 3), 1, Padding::default()).unwrap();
    let conv = Conv2d { window, in_channels: 4, out_channels: 4 };
    let input = random.bytes(6 * 6 * 4);
    let weights = random.bytes(9 * 4 * 4);
    let ordinary = Parameters {
        input_zero_point: 3,
        bias: vec![100; 4],
        multipliers: vec![Multiplier { multiplier: 1 << 30, shift: -8 }; 4],
        stage: OutputStage { zero_point: 0, low: -128, high: 127 },
    };
    let bytes = workspace::conv2d_s8(&conv, FilterForm::File);
    let need = super::workspace::part(super::workspace::conv2d_buffer(&conv)) + 8 * 4;
    let try_it = |p: &Parameters, rows: core::ops::Range<usize>, first: usize, len: usize| {
        let mut scratch = scratch(bytes + 16);
        let mut output = vec![99; rows.len() * 4 * 4];
        let mut call = Conv2dS8 {
            conv,
            input: &input,
            input_zero_point: p.input_zero_point,
            filter: FilterS8::File(&weights),
            bias: &p.bias,
            multipliers: &p.multipliers,
            stage: p.stage,
            rows,
            output: &mut output,
            scratch: &mut bytemuck::cast_slice_mut(&mut scratch)[first..][..len],
        };
        let taken = call.compute_on(library);
        assert!(taken || output.iter().all(|&y| y == 99));
        taken
    };
    assert!(try_it(&ordinary, 0..4, 0, bytes));
    assert!(try_it(&ordinary, 0..4, 0, need));
    assert!(!try_it(&ordinary, 0..4, 0, need - 1), "scratch that is too short");
    assert!(!try_it(&ordinary, 0..4, 1, need), "scratch that is not aligned");
    assert!(!try_it(&ordinary, 0..4, 0, 0), "no scratch");
    assert!(!try_it(&ordinary, 0..3, 0, bytes), "some rows");
    assert!(!try_it(&ordinary, 1..4, 0, bytes), "some rows");
    let with = |change: fn(&mut Parameters)| {
        let mut p = Parameters {
            bias: ordinary.bias.clone(),
            multipliers: ordinary.multipliers.clone(),
            ..ordinary
        };
        change(&mut p);
        try_it(&p, 0..4, 0, bytes)
    };
    assert!(with(|_| {}));
    assert!(!with(|p| p.multipliers[3].shift = -31));
    assert!(!with(|p| p.multipliers[3].shift = 20));
    assert!(!with(|p| p.multipliers[0].multiplier = i32::MIN));
    assert!(!with(|p| p.bias[1] = i32::MAX));
    assert!(!with(|p| p.input_zero_point = 128));
    assert!(!with(|p| p.stage.zero_point = 300));
    assert!(!with(|p| (p.stage.low, p.stage.high) = (5, 4)));
}
