//! Activations: how many units in the last place they are off, and what they make of special numbers.

use crate::harness::*;
use netkit_core::op::Activation;
use netkit_kernels::{Kernels, reference};

/// The distance in units of the last place of `expected`.
fn ulps(actual: f32, expected: f64) -> f64 {
    let rounded = expected as f32;
    if actual == rounded {
        return 0.0;
    }
    let exponent = (expected.abs().log2().floor() as i32).max(-126);
    (f64::from(actual) - expected).abs() / 2f64.powi(exponent - 23)
}

/// Numbers of every sign and magnitude that matter, dense around 0 and the ends of the range.
fn samples() -> Vec<f32> {
    let random = &mut Random::new(7);
    let mut samples = Vec::new();
    for exponent in -30..8 {
        for _ in 0..2000 {
            samples.push(random.float() * 2f32.powi(exponent));
        }
    }
    samples.extend((-2000..2000).map(|i| i as f32 * 0.05));
    samples
}

fn worst(kernels: Kernels, activation: Activation, bound: impl Fn(f32) -> f64) {
    let samples = samples();
    let mut output = vec![0.0; samples.len()];
    kernels.activation_f32(activation, &samples, &mut output);
    let mut worst = (0.0, 0.0);
    for (&x, &y) in samples.iter().zip(&output) {
        let expected = reference::activation(activation, f64::from(x));
        if expected.abs() < 2f64.powi(-120) {
            assert!(y.abs() <= 2f32.powi(-119), "{activation:?}({x}) is {y}");
            continue;
        }
        let error = ulps(y, expected) / bound(x);
        if error > worst.1 {
            worst = (x, error);
        }
    }
    let isa = kernels.isa().name();
    println!("{isa} {activation:?}: {:.2} of the bound at {}", worst.1, worst.0);
    assert!(worst.1 <= 1.0, "{isa}: {activation:?}({}) is {} of the bound", worst.0, worst.1);
}

/// Pitfall B29: platforms disagree about `exp` and `tanh`; ours are polynomials with a bound.
#[test]
fn b29_errors_stay_within_the_documented_units() {
    on_each_isa(|kernels| {
        worst(kernels, Activation::Relu, |_| 0.5);
        worst(kernels, Activation::Relu6, |_| 0.5);
        worst(kernels, Activation::LeakyRelu(0.1), |_| 0.51);
        worst(kernels, Activation::Sigmoid, |_| 4.0);
        worst(kernels, Activation::Tanh, |_| 4.0);
        worst(kernels, Activation::Silu, |_| 4.0);
        worst(kernels, Activation::Gelu, |x| 4.0 + 2.0 * f64::from(x * x));
    });
}

#[test]
fn special_numbers_are_the_same_on_every_instruction_set() {
    on_each_isa(|kernels| {
        let input = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0];
        let run = |activation| {
            let mut output = [0.0; 5];
            kernels.activation_f32(activation, &input, &mut output);
            output.map(|x| if x.is_nan() { "NaN".into() } else { format!("{x:?}") }).join(" ")
        };
        assert_eq!(run(Activation::None), "NaN inf -inf -0.0 0.0");
        assert_eq!(run(Activation::Relu), "0.0 inf 0.0 0.0 0.0");
        assert_eq!(run(Activation::Relu6), "NaN 6.0 0.0 -0.0 0.0");
        assert_eq!(run(Activation::LeakyRelu(0.5)), "NaN inf -inf -0.0 0.0");
        assert_eq!(run(Activation::Sigmoid), "NaN 1.0 0.0 0.5 0.5");
        assert_eq!(run(Activation::Tanh), "NaN 1.0 -1.0 0.0 0.0");
        assert_eq!(run(Activation::Silu), "NaN inf NaN -0.0 0.0");
        assert_eq!(run(Activation::Gelu), "NaN inf NaN -0.0 0.0");
    });
}

/// A tensor of this length, against the reference.
pub(crate) fn every_activation(kernels: Kernels, len: usize) {
    let input: Vec<f32> = (0..len).map(|i| i as f32 - 30.0).collect();
    for activation in ACTIVATIONS {
        let mut expected = vec![0.0; len];
        reference::activation_f32(activation, &input, &mut expected);
        let mut output = Guarded::output(len, len + 1);
        let input = Guarded::new(&input, len);
        let input = input.get();
        kernels.activation_f32(activation, input, output.get_mut());
        output.check();
        let bound = |i: usize| sum_bound(8, expected[i].abs(), expected[i]) + 1e-30;
        let what = || format!("{} {activation:?} {len}", kernels.isa().name());
        let wide = |i: usize| {
            if activation == Activation::Gelu {
                bound(i) * (1.0 + input[i] * input[i])
            } else {
                bound(i)
            }
        };
        assert_within(output.get(), &expected, wide, what);
    }
}

#[test]
fn every_length_is_computed_whole() {
    on_each_isa(|kernels| {
        for len in 0..70 {
            every_activation(kernels, len);
        }
    });
}
