//! NaN, infinities, denormals and huge numbers through every float operator: the rules of `docs/safety.md`, the same
//! on every instruction set, at every length and for every way a filter arrives.

use crate::harness::*;
use netkit_core::op::{Activation, Conv2d, Dense, DepthwiseConv2d, PerChannel, Pool2d};
use netkit_core::pack::{
    pack_conv2d_f32, pack_conv2d_winograd_f32, pack_depthwise_conv2d_f32, packed_conv2d_f32_len,
    packed_conv2d_winograd_f32_len, packed_depthwise_conv2d_f32_len,
};
use netkit_kernels::{Filter, FilterForm, Kernels, reference, workspace};

/// What must agree where numbers are not ordinary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Finite,
    PlusInfinity,
    MinusInfinity,
    NaN,
}

fn classes(values: &[f32]) -> Vec<Class> {
    let class = |x: &f32| match *x {
        x if x.is_nan() => Class::NaN,
        f32::INFINITY => Class::PlusInfinity,
        f32::NEG_INFINITY => Class::MinusInfinity,
        _ => Class::Finite,
    };
    values.iter().map(class).collect()
}

/// Mostly ordinary numbers; the others such that no sum of a few hundred products with weights below 1 overflows.
fn special(random: &mut Random, len: usize) -> Vec<f32> {
    let number = |random: &mut Random| match random.below(40) {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => f32::NEG_INFINITY,
        3 => random.choose(&[1e30, -1e30]),
        4 => f32::from_bits(random.next() as u32 & 0x807f_ffff),
        5 => -0.0,
        _ => random.float(),
    };
    (0..len).map(|_| number(random)).collect()
}

fn same_classes(kernels: Kernels, what: &str, output: &[f32], expected: &[f32]) {
    let isa = kernels.isa().name();
    for (i, (found, expected)) in classes(output).into_iter().zip(classes(expected)).enumerate() {
        assert_eq!(found, expected, "{isa}: {what}, element {i} is {}", output[i]);
    }
}

/// Activations that keep sums apart: none, one that makes 0 of NaN, one that keeps it.
const SIMPLE: [Activation; 3] = [Activation::None, Activation::Relu, Activation::Relu6];

#[test]
fn sums_of_products_follow_ieee_754() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(11);
        for in_features in 1..70 {
            for activation in SIMPLE {
                let dense = Dense { rows: 2, in_features, out_features: 7 };
                let input = special(random, 2 * in_features);
                let weights = random.floats(7 * in_features);
                let bias = special(random, 7);
                let mut expected = vec![0.0; 14];
                reference::dense_f32(&dense, &input, &weights, &bias, activation, &mut expected);
                let mut output = vec![0.0; 14];
                let filter = Filter::Packed(&weights);
                kernels.dense_f32(&dense, &input, filter, &bias, activation, &mut output);
                same_classes(kernels, "dense", &output, &expected);
            }
        }
    });
}

#[test]
fn convolutions_follow_ieee_754_and_padding_is_not_multiplied() {
    on_each_isa(|kernels| {
        for (seed, case) in WINDOWS.into_iter().enumerate() {
            let random = &mut Random::new(seed as u64);
            let window = window(case);
            for (in_channels, out_channels) in [(1, 3), (3, 17), (5, 33)] {
                let conv = Conv2d { window, in_channels, out_channels };
                let activation = random.choose(&SIMPLE);
                let input = special(random, window.in_pixels() * in_channels);
                let weights = random.floats(window.taps() * in_channels * out_channels);
                let bias = special(random, out_channels);
                let mut expected = vec![0.0; window.out_pixels() * out_channels];
                reference::conv2d_f32(
                    &conv,
                    &input,
                    &weights,
                    &bias,
                    None,
                    activation,
                    &mut expected,
                );
                let mut packed = vec![0.0; packed_conv2d_f32_len(&conv)];
                pack_conv2d_f32(&conv, &weights, None, &mut packed).unwrap();
                for (form, filter) in [
                    (FilterForm::File, Filter::File { values: &weights, scale: None }),
                    (FilterForm::Packed, Filter::Packed(&packed)),
                ] {
                    let mut scratch = Scratch::new(workspace::conv2d_f32(&conv, form));
                    let mut output = vec![0.0; expected.len()];
                    kernels.conv2d_f32(
                        &conv,
                        &input,
                        filter,
                        &bias,
                        None,
                        activation,
                        0..window.out_h,
                        &mut output,
                        scratch.get(),
                    );
                    same_classes(kernels, &format!("{conv:?} {form:?}"), &output, &expected);
                }
                depthwise(kernels, random, window, out_channels, activation);
            }
        }
    });
}

fn depthwise(
    kernels: Kernels,
    random: &mut Random,
    window: netkit_core::op::Window,
    channels: usize,
    activation: Activation,
) {
    let conv = DepthwiseConv2d { window, channels, multiplier: 1 };
    let input = special(random, window.in_pixels() * channels);
    let weights = random.floats(window.taps() * channels);
    let bias = special(random, channels);
    let mut expected = vec![0.0; window.out_pixels() * channels];
    reference::depthwise_conv2d_f32(&conv, &input, &weights, &bias, activation, &mut expected);
    let mut packed = vec![0.0; packed_depthwise_conv2d_f32_len(&conv)];
    let taps = window.taps();
    pack_depthwise_conv2d_f32(taps, 0..channels, &weights, None, &mut packed).unwrap();
    for (form, filter) in [
        (FilterForm::File, Filter::File { values: &weights, scale: None }),
        (FilterForm::Packed, Filter::Packed(&packed)),
    ] {
        let mut scratch = Scratch::new(workspace::depthwise_conv2d_f32(&conv, form));
        let mut output = vec![0.0; expected.len()];
        kernels.depthwise_conv2d_f32(
            &conv,
            &input,
            filter,
            &bias,
            activation,
            0..window.out_h,
            &mut output,
            scratch.get(),
        );
        same_classes(kernels, &format!("{conv:?} {form:?}"), &output, &expected);
    }
}

#[test]
fn pools_and_sums_follow_their_formulas() {
    on_each_isa(|kernels| {
        for (seed, case) in WINDOWS.into_iter().enumerate() {
            let random = &mut Random::new(seed as u64);
            let pool = Pool2d { window: window(case), channels: 1 + random.below(40) };
            let w = pool.window;
            let input = special(random, w.in_pixels() * pool.channels);
            let (mut expected, mut output) = (
                vec![0.0; w.out_pixels() * pool.channels],
                vec![0.0; w.out_pixels() * pool.channels],
            );
            reference::max_pool2d_f32(&pool, &input, &mut expected);
            kernels.max_pool2d_f32(&pool, &input, 0..w.out_h, &mut output);
            assert_eq!(output, expected, "{} {pool:?}", kernels.isa().name());
            reference::average_pool2d_f32(&pool, &input, &mut expected);
            kernels.average_pool2d_f32(&pool, &input, 0..w.out_h, &mut output);
            same_classes(kernels, &format!("average {pool:?}"), &output, &expected);
        }
        let random = &mut Random::new(12);
        for len in 1..70 {
            let (a, b) = (special(random, len), special(random, len));
            let (mut expected, mut output) = (vec![0.0; len], vec![0.0; len]);
            for activation in SIMPLE {
                reference::add_f32(&a, &b, activation, &mut expected);
                kernels.add_f32(&a, &b, activation, &mut output);
                same_classes(kernels, "add", &output, &expected);
                let shape = PerChannel { pixels: 1, channels: len };
                let scale = random.floats(len);
                reference::batch_norm_f32(&shape, &a, &scale, &b, activation, &mut expected);
                kernels.batch_norm_f32(&shape, &a, &scale, &b, activation, &mut output);
                same_classes(kernels, "batch norm", &output, &expected);
            }
        }
    });
}

/// One number that is not finite makes NaN of the pixel, and of no other.
#[test]
fn layer_norm_spreads_nan_over_one_pixel() {
    on_each_isa(|kernels| {
        for channels in 1..70 {
            let shape = PerChannel { pixels: 3, channels };
            let (gamma, beta) = (vec![1.0; channels], vec![0.5; channels]);
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                for at in 0..channels {
                    let mut input: Vec<f32> = (0..3 * channels).map(|i| i as f32).collect();
                    input[channels + at] = bad;
                    let mut output = vec![0.0; 3 * channels];
                    kernels.layer_norm_f32(&shape, 1e-6, &input, &gamma, &beta, &mut output);
                    let nan = |pixel: &[f32]| pixel.iter().filter(|x| x.is_nan()).count();
                    let counts: Vec<usize> = output.chunks(channels).map(nan).collect();
                    assert_eq!(counts, [0, channels, 0], "{} {bad} at {at}", kernels.isa().name());
                }
            }
        }
    });
}

/// Deviations whose squares overflow: the variance is infinite, so what is left is `beta`.
#[test]
fn layer_norm_of_huge_numbers_is_beta() {
    on_each_isa(|kernels| {
        for channels in 2..70 {
            let shape = PerChannel { pixels: 1, channels };
            let input: Vec<f32> =
                (0..channels).map(|c| if c % 2 == 0 { 1e30 } else { -1e30 }).collect();
            let (gamma, beta) = (vec![2.0; channels], vec![0.25; channels]);
            let mut output = vec![0.0; channels];
            kernels.layer_norm_f32(&shape, 1e-6, &input, &gamma, &beta, &mut output);
            assert_eq!(output, beta, "{}", kernels.isa().name());
        }
    });
}

/// A channel whose squares overflow, or that holds what is not finite, is NaN; where the mean of norms is infinite, the
/// others are `x + beta`.
#[test]
fn global_response_norm_of_what_overflows() {
    on_each_isa(|kernels| {
        for channels in 2..70 {
            let shape = PerChannel { pixels: 2, channels };
            let (gamma, beta) = (vec![1.0; channels], vec![0.5; channels]);
            for bad in [1e30, f32::INFINITY, f32::NAN] {
                for at in 0..channels {
                    let mut input = vec![1.0; 2 * channels];
                    input[at] = bad;
                    let mut output = vec![0.0; 2 * channels];
                    let mut scratch = Scratch::new(workspace::global_response_norm_f32(&shape));
                    kernels.global_response_norm_f32(
                        &shape,
                        1e-6,
                        &input,
                        &gamma,
                        &beta,
                        &mut output,
                        scratch.get(),
                    );
                    for (i, &y) in output.iter().enumerate() {
                        let isa = kernels.isa().name();
                        if bad.is_nan() || i % channels == at {
                            assert!(y.is_nan(), "{isa} {bad} at {at}: element {i} is {y}");
                        } else {
                            assert_eq!(y, 1.5, "{isa} {bad} at {at}: element {i}");
                        }
                    }
                }
            }
        }
    });
}

/// Pitfall B26: logits of any size, from anywhere.
#[test]
fn b26_softmax_of_special_logits() {
    on_each_isa(|kernels| {
        let isa = kernels.isa().name();
        for len in 2..70 {
            let softmax = |input: &[f32]| {
                let mut output = vec![7.0; len];
                kernels.softmax_f32(input, &mut output);
                output
            };
            for at in 0..len {
                let with = |rest: f32, special: f32| {
                    let mut input = vec![rest; len];
                    input[at] = special;
                    input
                };
                let one_hot = |output: &[f32]| {
                    output.iter().enumerate().all(|(i, &y)| y == f32::from(u8::from(i == at)))
                };
                assert!(one_hot(&softmax(&with(-1e30, 1e30))), "{isa} {len} {at}");
                assert!(one_hot(&softmax(&with(0.0, 1e30))), "{isa} {len} {at}");
                assert!(one_hot(&softmax(&with(-f32::MAX, f32::MAX))), "{isa} {len} {at}");
                assert!(one_hot(&softmax(&with(f32::NEG_INFINITY, 3.0))), "{isa} {len} {at}");
                let masked = softmax(&with(1e30, f32::NEG_INFINITY));
                for (i, &y) in masked.iter().enumerate() {
                    let share = if i == at { 0.0 } else { 1.0 / (len - 1) as f32 };
                    assert!((y - share).abs() <= 1e-6 * share, "{isa} {len} {at}: {y}");
                }
                for bad in [f32::NAN, f32::INFINITY] {
                    let output = softmax(&with(1.0, bad));
                    assert!(output.iter().all(|y| y.is_nan()), "{isa} {len} {at}: {output:?}");
                }
            }
            let all = softmax(&vec![f32::NEG_INFINITY; len]);
            assert!(all.iter().all(|y| y.is_nan()), "{isa} {len}: {all:?}");
        }
    });
}

/// Denormal numbers are numbers: nothing sets the processor to flush them.
#[test]
fn denormals_are_kept() {
    on_each_isa(|kernels| {
        let isa = kernels.isa().name();
        for len in 1..70 {
            let tiny: Vec<f32> = (0..len).map(|i| f32::from_bits(1 + 3 * i as u32)).collect();
            let zeros = vec![0.0; len];
            let mut output = vec![7.0; len];
            kernels.add_f32(&tiny, &zeros, Activation::Relu, &mut output);
            assert_eq!(output, tiny, "{isa} add");
            for activation in [Activation::None, Activation::Relu, Activation::Relu6] {
                kernels.activation_f32(activation, &tiny, &mut output);
                assert_eq!(output, tiny, "{isa} {activation:?}");
            }
            let shape = PerChannel { pixels: 1, channels: len };
            let ones = vec![1.0; len];
            kernels.batch_norm_f32(&shape, &tiny, &ones, &zeros, Activation::None, &mut output);
            assert_eq!(output, tiny, "{isa} batch norm");
            let dense = Dense { rows: 1, in_features: len, out_features: 1 };
            let sum = tiny.iter().map(|x| x.to_bits()).sum();
            let (filter, mut output) = (Filter::Packed(&ones), [7.0]);
            kernels.dense_f32(&dense, &tiny, filter, &[0.0], Activation::None, &mut output);
            assert_eq!(output[0].to_bits(), sum, "{isa} dense");
        }
    });
}

/// A number that is not finite makes no tile that does not read it anything else, and in those that do, each output whose
/// own window holds it is not finite. A padded tap that meets it is 0.
#[test]
fn what_is_not_finite_stays_in_the_tiles_that_read_it() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(13);
        for (in_channels, out_channels) in [(3, 5), (16, 16), (37, 33), (64, 64)] {
            let window = window((7, 10, 3, 3, 1, 1, 1, 1, 1));
            let conv = Conv2d { window, in_channels, out_channels };
            let mut input = random.floats(window.in_pixels() * in_channels);
            let weights = random.floats(9 * in_channels * out_channels);
            let bias = random.floats(out_channels);
            let mut packed = vec![0.0; packed_conv2d_winograd_f32_len(&conv)];
            pack_conv2d_winograd_f32(&conv, &weights, None, &mut packed).unwrap();
            let run = |input: &[f32]| {
                let mut scratch = Scratch::new(workspace::conv2d_winograd_f32(&conv));
                let mut output = vec![0.0; window.out_pixels() * out_channels];
                kernels.conv2d_winograd_f32(
                    &conv,
                    input,
                    &packed,
                    &bias,
                    None,
                    Activation::None,
                    0..window.out_h,
                    &mut output,
                    scratch.get(),
                );
                output
            };
            let ordinary = run(&input);
            for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let (row, column) = (random.below(7), random.below(10));
                let at = (row * 10 + column) * in_channels + random.below(in_channels);
                let before = std::mem::replace(&mut input[at], special);
                for (i, (&found, &ordinary)) in run(&input).iter().zip(&ordinary).enumerate() {
                    let (y, x) = (i / out_channels / 10, i / out_channels % 10);
                    // Rows and columns that the output, and its tile, read.
                    let in_window =
                        (y..y + 3).contains(&(row + 1)) && (x..x + 3).contains(&(column + 1));
                    let (y, x) = (y / 2 * 2, x / 2 * 2);
                    let in_tile =
                        (y..y + 4).contains(&(row + 1)) && (x..x + 4).contains(&(column + 1));
                    let isa = kernels.isa().name();
                    assert!(!in_window || !found.is_finite(), "{isa}: {special} is lost");
                    assert!(in_tile || found.to_bits() == ordinary.to_bits(), "{isa}: {special}");
                }
                input[at] = before;
            }
            // Huge numbers whose sums do not overflow, and denormal ones, are numbers.
            for factor in [1e30, 1e-38] {
                let scaled: Vec<f32> = input.iter().map(|x| x * factor).collect();
                let mut expected = ordinary.clone();
                let none = Activation::None;
                reference::conv2d_f32(&conv, &scaled, &weights, &bias, None, none, &mut expected);
                let magnitude = 16.0 * factor * 9.0 * in_channels as f32 + 1.0;
                let bound = |i: usize| sum_bound(in_channels + 9, magnitude, expected[i]);
                assert_within(&run(&scaled), &expected, bound, || kernels.isa().name().to_owned());
            }
        }
    });
}

/// Activations of a vector's every lane and of every tail are those of a single number.
#[test]
fn activations_do_not_depend_on_the_place() {
    const SPECIAL: [f32; 12] = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        1e30,
        -1e30,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-45,
        -0.0,
        0.0,
    ];
    on_each_isa(|kernels| {
        for activation in ACTIVATIONS {
            for x in SPECIAL {
                let mut alone = [7.0];
                kernels.activation_f32(activation, &[x], &mut alone);
                let wild = matches!(activation, Activation::Silu | Activation::Gelu);
                if x.is_finite() || (x > 0.0 && !x.is_nan()) {
                    assert!(!alone[0].is_nan(), "{activation:?}({x}) is NaN");
                } else if x == f32::NEG_INFINITY {
                    assert_eq!(alone[0].is_nan(), wild, "{activation:?}({x})");
                }
                for len in 1..35 {
                    let mut output = vec![7.0; len];
                    kernels.activation_f32(activation, &vec![x; len], &mut output);
                    let same = |y: &f32| {
                        y.to_bits() == alone[0].to_bits() || y.is_nan() && alone[0].is_nan()
                    };
                    assert!(
                        output.iter().all(same),
                        "{} {activation:?}({x})",
                        kernels.isa().name()
                    );
                }
            }
        }
    });
}
