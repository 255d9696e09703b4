//! Dense layers.

use crate::harness::*;
use netkit_core::op::{Activation, Dense};
use netkit_kernels::{Filter, Kernels, reference};

pub(crate) fn check(kernels: Kernels, dense: Dense, activation: Activation, seed: u64) {
    let random = &mut Random::new(seed);
    let Dense { rows, in_features, out_features } = dense;
    let input = random.floats(rows * in_features);
    let weights = random.floats(out_features * in_features);
    let bias = random.floats(out_features);
    let scale = random.floats(out_features);
    let scale = random.choose(&[None, Some(&scale[..])]);
    let offset = random.below(16);
    let what = || format!("{}: {dense:?} {activation:?} seed {seed}", kernels.isa().name());

    let folded: Vec<f32> = match scale {
        None => weights.clone(),
        Some(scale) => {
            weights.iter().enumerate().map(|(i, w)| w * scale[i / in_features]).collect()
        }
    };
    let mut expected = vec![0.0; rows * out_features];
    reference::dense_f32(&dense, &input, &folded, &bias, activation, &mut expected);
    let mut magnitude = vec![0.0; rows * out_features];
    reference::dense_f32(
        &dense,
        &absolute(&input),
        &absolute(&folded),
        &absolute(&bias),
        Activation::None,
        &mut magnitude,
    );

    let input = Guarded::new(&input, offset);
    let weights = Guarded::new(&weights, offset + 5);
    let packed = Guarded::new(&folded, offset + 2);
    let bias = Guarded::new(&bias, offset + 9);
    let factors = scale.map(|scale| Guarded::new(scale, offset + 11));
    let scale = factors.as_ref().map(Guarded::get);
    let run = |filter| {
        let mut output = Guarded::output(rows * out_features, offset + 7);
        kernels.dense_f32(&dense, input.get(), filter, bias.get(), activation, output.get_mut());
        output.check();
        output.get().to_vec()
    };
    let file = run(Filter::File { values: weights.get(), scale });
    let bound = |i: usize| sum_bound(in_features + 6, magnitude[i], expected[i]);
    assert_within(&file, &expected, bound, what);
    let packed = run(Filter::Packed(packed.get()));
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(bits(&file) == bits(&packed), "{}: forms of the filter differ", what());
}

#[test]
fn every_input_tail_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(1);
        for in_features in (1..70).chain([127, 128, 129, 784, 1600]) {
            let out_features = 1 + random.below(20);
            for rows in [1, 2 + random.below(7)] {
                let dense = Dense { rows, in_features, out_features };
                check(kernels, dense, random.choose(&ACTIVATIONS), random.next());
            }
        }
    });
}

#[test]
fn every_output_tail_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(2);
        for out_features in 1..70 {
            for rows in [1, 2 + random.below(7)] {
                let dense = Dense { rows, in_features: 1 + random.below(90), out_features };
                check(kernels, dense, random.choose(&ACTIVATIONS), random.next());
            }
        }
    });
}

#[test]
fn rows_are_independent() {
    on_each_isa(|kernels| {
        for rows in 1..7 {
            let dense = Dense { rows, in_features: 37, out_features: 19 };
            check(kernels, dense, Activation::Relu, rows as u64);
        }
        let dense = Dense { rows: 3, in_features: 21, out_features: 5 };
        let random = &mut Random::new(3);
        let (input, weights) = (random.floats(63), random.floats(105));
        let filter = Filter::File { values: &weights, scale: None };
        let mut together = [0.0; 15];
        let (bias, none) = ([0.25; 5], Activation::None);
        kernels.dense_f32(&dense, &input, filter, &bias, none, &mut together);
        for row in 0..3 {
            let mut alone = [0.0; 5];
            let one = Dense { rows: 1, ..dense };
            let input = &input[row * 21..(row + 1) * 21];
            kernels.dense_f32(&one, input, filter, &bias, none, &mut alone);
            assert_eq!(alone, together[row * 5..(row + 1) * 5]);
        }
    });
}

/// Any number of rows together are, bit for bit, those rows alone.
fn rows_together(kernels: Kernels, rows: &[usize], in_features: usize, out_features: usize) {
    let most = rows.iter().copied().max().unwrap_or(0);
    let random = &mut Random::new((in_features * 97 + out_features) as u64);
    let mut input = random.floats(most * in_features);
    let weights = random.floats(out_features * in_features);
    let factors = random.floats(out_features);
    let mut bias = random.floats(out_features);
    if in_features < 70 && in_features % 9 == 4 {
        // Products that are zero have a sign. In few cases: denormal numbers take a processor long.
        input.iter_mut().for_each(|x| *x *= f32::MIN_POSITIVE);
        bias.fill(-0.0);
    }
    let activation = random.choose(&ACTIVATIONS);
    let scaled = Filter::File { values: &weights, scale: Some(&factors) };
    let plain = Filter::File { values: &weights, scale: None };
    for (form, filter) in [("file", plain), ("scale", scaled), ("packed", Filter::Packed(&weights))]
    {
        let run = |rows: usize, input: &[f32], output: &mut [f32]| {
            let dense = Dense { rows, in_features, out_features };
            kernels.dense_f32(&dense, input, filter, &bias, activation, output);
        };
        let mut alone = vec![f32::NAN; most * out_features];
        let each = alone.chunks_mut(out_features).zip(input.chunks(in_features));
        each.for_each(|(output, input)| run(1, input, output));
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let alone = bits(&alone);
        for &rows in rows {
            let mut together = vec![f32::NAN; rows * out_features];
            run(rows, &input[..rows * in_features], &mut together);
            assert!(
                bits(&together) == alone[..rows * out_features],
                "{}: {rows} rows of {in_features}×{out_features}, {form}, {activation:?}",
                kernels.isa().name()
            );
        }
    }
}

#[test]
fn rows_together_are_rows_alone() {
    const ROWS: [usize; 12] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
    on_each_isa_at(&[Place::Misaligned], |kernels| {
        for out_features in 1..=13 {
            for in_features in 1..=70 {
                rows_together(kernels, &ROWS, in_features, out_features);
            }
            for in_features in [127, 128, 129, 784, 1023, 1024, 1025, 1055, 1056, 1057, 2085] {
                rows_together(kernels, &ROWS[..5], in_features, out_features);
            }
        }
    });
}

/// Where the weights are no longer taken to be in the cache, sums have fewer parts.
#[test]
fn rows_together_are_rows_alone_beyond_the_cache() {
    on_each_isa_at(&[Place::Misaligned], |kernels| {
        for (in_features, out_features) in
            [(1 << 18, 1), ((1 << 18) + 1, 1), (20_164, 13), (20_165, 13), (3_277, 80)]
        {
            rows_together(kernels, &[2, 5], in_features, out_features);
        }
    });
}
