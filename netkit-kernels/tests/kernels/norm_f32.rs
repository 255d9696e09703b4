//! Normalisations and softmax.

use crate::harness::*;
use netkit_core::op::{Activation, PerChannel};
use netkit_kernels::{Kernels, reference, workspace};

/// Pixels of this many channels, against the reference.
pub(crate) fn batch_norm(kernels: Kernels, channels: usize, random: &mut Random) {
    let shape = PerChannel { pixels: 1 + random.below(5), channels };
    let len = shape.pixels * channels;
    let activation = random.choose(&ACTIVATIONS);
    let (input, scale, shift) =
        (random.floats(len), random.floats(channels), random.floats(channels));
    let mut expected = vec![0.0; len];
    reference::batch_norm_f32(&shape, &input, &scale, &shift, activation, &mut expected);
    let mut output = Guarded::output(len, channels);
    let input = Guarded::new(&input, channels + 1);
    let (scale, shift) = (Guarded::new(&scale, channels), Guarded::new(&shift, 2));
    let (scale, shift) = (scale.get(), shift.get());
    kernels.batch_norm_f32(&shape, input.get(), scale, shift, activation, output.get_mut());
    output.check();
    let magnitude =
        |i: usize| input.get()[i].abs() * scale[i % channels].abs() + shift[i % channels].abs();
    let bound = |i: usize| sum_bound(2, magnitude(i), expected[i]);
    let what = || format!("{}: {shape:?} {activation:?}", kernels.isa().name());
    assert_within(output.get(), &expected, bound, what);
}

#[test]
fn batch_norm_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(1);
        for channels in channel_counts(kernels) {
            batch_norm(kernels, channels, random);
        }
    });
}

/// As above.
pub(crate) fn layer_norm(kernels: Kernels, channels: usize, random: &mut Random) {
    // A large mean: the naive variance would cancel.
    for (mean, epsilon) in [(0.0, 1e-6), (100.0, 1e-3)] {
        let shape = PerChannel { pixels: 1 + random.below(5), channels };
        let len = shape.pixels * channels;
        let mut input = random.floats(len);
        input.iter_mut().for_each(|x| *x += mean);
        let (gamma, beta) = (random.floats(channels), random.floats(channels));
        let mut expected = vec![0.0; len];
        reference::layer_norm_f32(&shape, epsilon, &input, &gamma, &beta, &mut expected);
        let mut output = Guarded::output(len, channels);
        let input = Guarded::new(&input, channels + 1);
        let (gamma, beta) = (Guarded::new(&gamma, channels), Guarded::new(&beta, 2));
        let (gamma, beta) = (gamma.get(), beta.get());
        kernels.layer_norm_f32(&shape, epsilon, input.get(), gamma, beta, output.get_mut());
        output.check();
        let bound = |i: usize| {
            let x = &input.get()[i / channels * channels..][..channels];
            let average = x.iter().sum::<f32>() / channels as f32;
            let squares = x.iter().map(|x| (x - average) * (x - average)).sum::<f32>();
            let deviation = (squares / channels as f32 + epsilon).sqrt();
            let largest = x.iter().fold(0.0f32, |max, x| max.max(x.abs()));
            let (gamma, beta) = (gamma[i % channels].abs(), beta[i % channels].abs());
            let magnitude = gamma * (1.0 + largest / deviation) + beta;
            sum_bound(channels + 8, magnitude, expected[i])
        };
        let what = || format!("{}: {shape:?} mean {mean}", kernels.isa().name());
        assert_within(output.get(), &expected, bound, what);
    }
}

#[test]
fn layer_norm_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(2);
        for channels in channel_counts(kernels) {
            layer_norm(kernels, channels, random);
        }
    });
}

/// As above.
pub(crate) fn global_response_norm(kernels: Kernels, channels: usize, random: &mut Random) {
    let shape = PerChannel { pixels: 1 + random.below(40), channels };
    let len = shape.pixels * channels;
    let input = random.floats(len);
    let (gamma, beta) = (random.floats(channels), random.floats(channels));
    let mut expected = vec![0.0; len];
    let epsilon = 1e-6;
    reference::global_response_norm_f32(&shape, epsilon, &input, &gamma, &beta, &mut expected);
    let mut output = Guarded::output(len, channels);
    let mut scratch = Scratch::new(workspace::global_response_norm_f32(&shape));
    let input = Guarded::new(&input, channels + 1);
    let (gamma, beta) = (Guarded::new(&gamma, channels), Guarded::new(&beta, 2));
    let (input, gamma, beta) = (input.get(), gamma.get(), beta.get());
    kernels.global_response_norm_f32(
        &shape,
        epsilon,
        input,
        gamma,
        beta,
        output.get_mut(),
        scratch.get(),
    );
    output.check();
    scratch.check();
    let bound = |i: usize| {
        let (x, beta) = (input[i], beta[i % channels]);
        // x · gamma · N, from what the reference adds to x and beta.
        let response = expected[i] - beta - x;
        let magnitude = (x + response).abs() + response.abs() + beta.abs() + x.abs();
        sum_bound(shape.pixels.max(channels) + 8, magnitude, expected[i])
    };
    let what = || format!("{}: {shape:?}", kernels.isa().name());
    assert_within(output.get(), &expected, bound, what);
}

#[test]
fn global_response_norm_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(3);
        for channels in channel_counts(kernels) {
            global_response_norm(kernels, channels, random);
        }
    });
}

/// One row of this length, against the reference.
pub(crate) fn softmax(kernels: Kernels, len: usize, random: &mut Random) {
    for spread in [1.0, 30.0, 1000.0] {
        let mut input = random.floats(len);
        input.iter_mut().for_each(|x| *x = *x * spread - spread);
        let mut expected = vec![0.0; len];
        reference::softmax_f32(&input, &mut expected);
        let mut output = Guarded::output(len, len);
        let input = Guarded::new(&input, len + 1);
        kernels.softmax_f32(input.get(), output.get_mut());
        output.check();
        // Rounding x − max is as bad for e^x as that difference is large.
        let max = input.get().iter().copied().fold(f32::MIN, f32::max);
        let bound = |i: usize| {
            let shift = (max - input.get()[i]).min(1000.0) as usize;
            sum_bound(len + 8 + shift, expected[i], expected[i])
        };
        let what = || format!("{}: {len} elements, spread {spread}", kernels.isa().name());
        assert_within(output.get(), &expected, bound, what);
    }
}

#[test]
fn softmax_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(4);
        for len in (1..70).chain([1000]) {
            softmax(kernels, len, random);
        }
    });
}

#[test]
fn b26_softmax_shifts_by_the_maximum() {
    on_each_isa(|kernels| {
        let mut output = [0.0; 4];
        kernels.softmax_f32(&[8000.0, 7999.99, 2.0, 1.0], &mut output);
        assert!((output[0] - 0.5025).abs() < 1e-3 && (output[1] - 0.4975).abs() < 1e-3);
        assert_eq!(output[2..], [0.0, 0.0]);
        // All far below 0: a maximum that starts there would make 0 / 0 of this.
        let mut output = [0.0; 2];
        kernels.softmax_f32(&[-200.0, -201.0], &mut output);
        assert!((output[0] - 0.731_058_6).abs() < 1e-6);
        let mut output = [0.0; 3];
        kernels.softmax_f32(&[-249.0, -424.0, 378.0], &mut output);
        assert_eq!(output, [0.0, 0.0, 1.0]);
        kernels.softmax_f32(&[5.0; 3], &mut output);
        assert_eq!(output, [1.0 / 3.0; 3]);
        kernels.softmax_f32(&[0.0, f32::NEG_INFINITY, 0.0], &mut output);
        assert_eq!(output, [0.5, 0.0, 0.5]);
        kernels.softmax_f32(&[f32::NEG_INFINITY; 3], &mut output);
        assert!(output.iter().all(|x| x.is_nan()));
    });
}

#[test]
fn activation_is_applied_after_the_batch_norm() {
    on_each_isa(|kernels| {
        let shape = PerChannel { pixels: 1, channels: 2 };
        let mut output = [0.0; 2];
        let activation = Activation::Relu;
        kernels.batch_norm_f32(
            &shape,
            &[1.0, 1.0],
            &[2.0, 2.0],
            &[-3.0, 3.0],
            activation,
            &mut output,
        );
        assert_eq!(output, [0.0, 5.0]);
    });
}
