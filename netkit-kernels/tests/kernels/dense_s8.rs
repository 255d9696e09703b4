//! Int8 dense layers.

use crate::harness::*;
use netkit_core::op::Dense;
use netkit_core::pack::{pack_dense_s8, packed_dense_s8_len};
use netkit_core::quant::{Multiplier, OutputStage};
use netkit_kernels::{FilterForm, FilterS8, Kernels, reference, workspace};

/// One layer, both forms of the filter, equal to the reference.
pub(crate) fn check(kernels: Kernels, dense: Dense, offset: usize, seed: u64) {
    let random = &mut Random::new(seed);
    let input = random.bytes(dense.rows * dense.in_features);
    let weights = random.bytes(dense.out_features * dense.in_features);
    let layer = Layer::new(random, dense.out_features, dense.in_features);
    let mut expected = vec![0; dense.rows * dense.out_features];
    reference::dense_s8(&dense, &input, &weights, layer.reference(), &mut expected);
    let what = format!("seed {seed}");
    check_layer(kernels, dense, [&input, &weights], &layer, offset, (&expected, &what));
}

/// Both forms of the filter, from the input and the weights, give what is expected.
fn check_layer(
    kernels: Kernels,
    dense: Dense,
    [input, weights]: [&[i8]; 2],
    layer: &Layer,
    offset: usize,
    (expected, what): (&[i8], &str),
) {
    let mut packed = vec![0; packed_dense_s8_len(&dense)];
    pack_dense_s8(&dense, weights, &mut packed).unwrap();
    let input = Guarded::new(input, offset);
    let weights = Guarded::new(weights, offset + 21);
    let bias = Guarded::new(&layer.bias, offset);
    let multipliers = Factors::new(&layer.multipliers, offset);
    let packed = Guarded::new(&packed, offset + 43);
    for (form, filter) in [
        (FilterForm::File, FilterS8::File(weights.get())),
        (FilterForm::Packed, FilterS8::Packed(packed.get())),
    ] {
        let mut scratch = Scratch::new(workspace::dense_s8(&dense, form));
        let mut output = Guarded::output(expected.len(), offset + 7);
        kernels.dense_s8(
            &dense,
            input.get(),
            layer.input_zero_point,
            filter,
            bias.get(),
            multipliers.get(),
            layer.stage,
            output.get_mut(),
            scratch.get(),
        );
        output.check();
        scratch.check();
        let at = output.get().iter().zip(expected).position(|(a, b)| a != b);
        let isa = kernels.isa().name();
        assert!(at.is_none(), "{isa} {form:?} {dense:?}, {what}: element {at:?}");
    }
}

#[test]
fn every_tail_equals_the_reference() {
    on_each_isa(|kernels| {
        for in_features in 1..300 {
            for out_features in [1, 10, 33] {
                let dense = Dense { rows: 1, in_features, out_features };
                check(kernels, dense, in_features, in_features as u64);
            }
        }
        for out_features in 1..150 {
            let dense = Dense { rows: 1, in_features: 37, out_features };
            check(kernels, dense, out_features, out_features as u64);
        }
    });
}

/// What is computed without scratch, and the first that is not, with outputs around each width of a vector.
#[test]
fn every_short_row_equals_the_reference() {
    on_each_isa(|kernels| {
        for in_features in 1..67 {
            for out_features in [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 49] {
                let dense = Dense { rows: 1, in_features, out_features };
                for seed in 0..4 {
                    check(kernels, dense, seed as usize, seed + 4 * in_features as u64);
                }
            }
        }
    });
}

#[test]
fn every_number_of_rows_equals_the_reference() {
    on_each_isa(|kernels| {
        for rows in 1..35 {
            for out_features in [1, 17, 70] {
                check(kernels, Dense { rows, in_features: 21, out_features }, rows, rows as u64);
            }
        }
    });
}

/// Pitfall B21: an answer must not depend on where the slices lie.
#[test]
fn b21_every_misalignment_equals_the_reference() {
    on_each_isa(|kernels| {
        for offset in 0..64 {
            for (rows, in_features) in [(1, 200), (3, 67)] {
                check(kernels, Dense { rows, in_features, out_features: 40 }, offset, 9);
            }
        }
    });
}

/// Pitfall B20: pairs of products that exceed 16 bits, on the longest sums.
#[test]
fn b20_extreme_vectors_do_not_saturate() {
    on_each_isa(|kernels| {
        for seed in 0..60 {
            let dense = Dense { rows: 2, in_features: 4096, out_features: 20 };
            check(kernels, dense, 0, seed);
        }
    });
}

#[test]
fn random_layers_equal_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(5);
        for _ in 0..random_cases(3000) {
            let dense = Dense {
                rows: random.choose(&[1, 1, 2, 5]),
                in_features: 1 + random.below(130),
                out_features: 1 + random.below(90),
            };
            check(kernels, dense, random.below(64), random.next());
        }
    });
}

/// Sums at, and next to, what either rounding of requantization divides in the middle, up to the largest that are rescaled
/// the short way: of one row, and of so many rows and products that one tile's are rescaled between the next one's products.
#[test]
fn every_tie_is_rounded_as_defined() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(6);
        for (rows, in_features) in [(1, 1), (31, 64)] {
            for shift in -31..=2 {
                for (low, zero_point) in [(-128, -128), (-128, 5), (5, 5), (-3, 5), (127, 127)] {
                    let stage = OutputStage { zero_point, low, high: 127 };
                    check_ties(
                        kernels,
                        random,
                        Dense { rows, in_features, out_features: 256 },
                        shift,
                        stage,
                    );
                }
            }
        }
    });
}

/// The sums are the biases: all inputs are zero.
fn check_ties(kernels: Kernels, random: &mut Random, dense: Dense, shift: i32, stage: OutputStage) {
    let multiplier = |random: &mut Random| match random.below(4) {
        0 => 1 << 30,
        1 => 3 << 29,
        2 => i32::MAX,
        _ => (1 << 30) + random.below(1 << 30) as i32,
    };
    let multipliers: Vec<_> = (0..dense.out_features)
        .map(|_| Multiplier { multiplier: multiplier(random), shift })
        .collect();
    let largest = (1 << 29) - dense.in_features.next_multiple_of(4) as i32 * 255 * 128;
    let bias: Vec<_> = multipliers
        .iter()
        .map(|multiplier| {
            let halves = (random.below(600) as f64 - 300.0) / 2.0;
            let factor = f64::from(multiplier.multiplier) * 2f64.powi(shift - 31);
            let sum = (halves / factor).clamp(-f64::from(largest), f64::from(largest));
            sum as i32 + random.below(5) as i32 - 2
        })
        .map(|sum| sum.clamp(2 - largest, largest - 2))
        .collect();
    let layer = Layer { input_zero_point: 3, bias, multipliers, stage };
    let input = vec![3; dense.rows * dense.in_features];
    let weights = vec![0; dense.in_features * dense.out_features];
    let mut of_row = vec![0; dense.out_features];
    let row = Dense { rows: 1, ..dense };
    let of_input = &input[..dense.in_features];
    reference::dense_s8(&row, of_input, &weights, layer.reference(), &mut of_row);
    let what = format!("shift {shift}");
    check_layer(kernels, dense, [&input, &weights], &layer, 0, (&of_row.repeat(dense.rows), &what));
}
