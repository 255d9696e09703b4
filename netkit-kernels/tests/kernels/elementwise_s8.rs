//! Int8 sums and softmax.

use crate::harness::*;
use netkit_core::op::Activation;
use netkit_core::quant::{AddStage, Quant, SoftmaxStage};
use netkit_kernels::{Kernels, reference};

fn quant(random: &mut Random) -> Quant {
    let any = random.below(256) as i32 - 128;
    let zero_point = random.choose(&[-128, 127, any]);
    // Factors of up to 2^20 between scales.
    Quant { scale: 2f32.powi(random.below(20) as i32 - 12) * (1.5 + random.float()), zero_point }
}

/// Two tensors of this length, equal to the reference.
pub(crate) fn add(kernels: Kernels, len: usize, random: &mut Random) {
    let (left, right, output) = (quant(random), quant(random), quant(random));
    let activation = random.choose(&ACTIVATIONS[..3]);
    let stage = AddStage::new(left, right, output, activation).unwrap();
    let a = Guarded::new(&random.bytes(len), random.below(64));
    let b = Guarded::new(&random.bytes(len), random.below(64));
    let mut expected = vec![0; len];
    reference::add_s8(&stage, a.get(), b.get(), &mut expected);
    let mut output = Guarded::output(len, random.below(64));
    kernels.add_s8(&stage, a.get(), b.get(), output.get_mut());
    output.check();
    assert_eq!(output.get(), expected, "{} {stage:?}", kernels.isa().name());
}

#[test]
fn sums_equal_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(1);
        for round in 0..random_cases(2000) {
            let len = random.below(if round % 10 == 0 { 600 } else { 150 });
            add(kernels, len, random);
        }
    });
}

/// Every pair of values, for scales a residual block meets.
#[test]
fn every_sum_equals_the_reference() {
    on_each_isa(|kernels| {
        for (left, right) in [(0.02, 0.05), (0.05, 0.02), (0.05, 0.05), (0.01, 0.04)] {
            let left = Quant { scale: left, zero_point: -3 };
            let right = Quant { scale: right, zero_point: 127 };
            let output = Quant { scale: 0.06, zero_point: -1 };
            let stage = AddStage::new(left, right, output, Activation::None).unwrap();
            let a: Vec<i8> = (0..65536).map(|i| (i >> 8) as i8).collect();
            let b: Vec<i8> = (0..65536).map(|i| i as i8).collect();
            let (mut sums, mut expected) = (vec![0; 65536], vec![0; 65536]);
            reference::add_s8(&stage, &a, &b, &mut expected);
            kernels.add_s8(&stage, &a, &b, &mut sums);
            assert!(sums == expected, "{} {stage:?}", kernels.isa().name());
        }
    });
}

/// One row of this length, equal to the reference.
pub(crate) fn softmax(kernels: Kernels, len: usize, random: &mut Random) {
    let scale = 2f32.powi(random.below(24) as i32 - 16) * (1.5 + random.float() / 2.0);
    let stage = SoftmaxStage::new(scale);
    let input = Guarded::new(&random.bytes(len), random.below(64));
    let mut expected = vec![0; len];
    reference::softmax_s8(&stage, input.get(), &mut expected);
    let mut output = Guarded::output(len, random.below(64));
    kernels.softmax_s8(&stage, input.get(), output.get_mut());
    output.check();
    assert_eq!(output.get(), expected, "{} scale {scale}", kernels.isa().name());
}

#[test]
fn softmax_equals_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(2);
        for round in 0..random_cases(2000) {
            let len = match round {
                0 => 0,
                1 => SoftmaxStage::MAX_LEN,
                _ => 1 + random.below(40),
            };
            softmax(kernels, len, random);
        }
    });
}

/// Pitfall B25: an exponential of 127 · 1.0 is infinite as a float; the maximum must go first, and no share is NaN.
#[test]
fn b25_softmax_of_the_largest_logits() {
    on_each_isa(|kernels| {
        for scale in [1.0, 3.0, 1e6, f32::MAX] {
            let stage = SoftmaxStage::new(scale);
            let softmax = |input: &[i8]| {
                let mut output = vec![7; input.len()];
                kernels.softmax_s8(&stage, input, &mut output);
                output
            };
            let isa = kernels.isa().name();
            // A share of 1 is 256 of the output's units above −128, so it saturates.
            assert_eq!(softmax(&[127, -128, 0]), [127, -128, -128], "{isa} {scale}");
            assert_eq!(softmax(&[127, 127]), [0, 0], "{isa} {scale}");
            assert_eq!(softmax(&[-128, -128, -128, -128]), [-64; 4], "{isa} {scale}");
        }
    });
}

/// Section 12 of the specification.
#[test]
fn softmax_of_the_specification() {
    on_each_isa(|kernels| {
        for (scale, expected) in [
            (1.0, [-128, -128, -128, -101, -101, 73]),
            (0.1, [-128, -101, -92, -68, -68, -55]),
            (0.004, [-101, -83, -83, -82, -82, -81]),
            (0.001, [-90, -85, -85, -84, -84, -84]),
        ] {
            let mut output = [0; 6];
            kernels.softmax_s8(&SoftmaxStage::new(scale), &[-128, -3, 0, 5, 5, 7], &mut output);
            assert_eq!(output, expected, "{}", kernels.isa().name());
        }
    });
}
