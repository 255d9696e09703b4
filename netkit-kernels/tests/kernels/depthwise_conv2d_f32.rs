//! Depthwise convolution.

use crate::harness::*;
use netkit_core::op::{Activation, DepthwiseConv2d};
use netkit_core::pack::{pack_depthwise_conv2d_f32, packed_depthwise_conv2d_f32_len};
use netkit_kernels::{Filter, FilterForm, Kernels, reference, workspace};

/// One convolution: every form of the filter, every cut of the rows, against the reference.
pub(crate) fn check(kernels: Kernels, conv: DepthwiseConv2d, activation: Activation, seed: u64) {
    let random = &mut Random::new(seed);
    let (w, outputs) = (conv.window, conv.channels * conv.multiplier);
    let taps = w.taps();
    let input = random.floats(w.in_pixels() * conv.channels);
    let weights = random.floats(outputs * taps);
    let scale = random.floats(outputs);
    let bias = random.floats(outputs);
    let scale = random.choose(&[None, Some(&scale[..])]);
    let offset = random.below(16);
    let what = || {
        let (isa, scaled) = (kernels.isa().name(), scale.is_some());
        format!("{isa}: {conv:?} {activation:?}, scale {scaled}, seed {seed}")
    };

    let folded: Vec<f32> = match scale {
        None => weights.clone(),
        Some(scale) => weights.iter().enumerate().map(|(i, w)| w * scale[i / taps]).collect(),
    };
    let out_len = w.out_pixels() * outputs;
    let mut expected = vec![0.0; out_len];
    reference::depthwise_conv2d_f32(&conv, &input, &folded, &bias, activation, &mut expected);
    let mut magnitude = vec![0.0; out_len];
    reference::depthwise_conv2d_f32(
        &conv,
        &absolute(&input),
        &absolute(&folded),
        &absolute(&bias),
        Activation::None,
        &mut magnitude,
    );

    let mut packed = vec![0.0; packed_depthwise_conv2d_f32_len(&conv)];
    pack_depthwise_conv2d_f32(taps, 0..outputs, &weights, scale, &mut packed).unwrap();
    let input = Guarded::new(&input, offset);
    let weights = Guarded::new(&weights, offset + 5);
    let bias = Guarded::new(&bias, offset + 9);
    let packed = Guarded::new(&packed, offset + 3);
    let factors = scale.map(|scale| Guarded::new(scale, offset + 11));
    let scale = factors.as_ref().map(Guarded::get);
    let run = |filter, rows: std::ops::Range<usize>| {
        let form = match filter {
            Filter::File { .. } => FilterForm::File,
            Filter::Packed(_) => FilterForm::Packed,
        };
        let mut scratch = Scratch::new(workspace::depthwise_conv2d_f32(&conv, form));
        let mut output = Guarded::output(rows.len() * w.out_w * outputs, offset + 7);
        kernels.depthwise_conv2d_f32(
            &conv,
            input.get(),
            filter,
            bias.get(),
            activation,
            rows,
            output.get_mut(),
            scratch.get(),
        );
        output.check();
        scratch.check();
        output.get().to_vec()
    };

    let filters = [Filter::File { values: weights.get(), scale }, Filter::Packed(packed.get())];
    let [file, from_taps] = filters.map(|filter| run(filter, 0..w.out_h));
    let bound = |i: usize| sum_bound(taps + 3, magnitude[i], expected[i]);
    assert_within(&file, &expected, bound, || format!("{}, file", what()));
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(bits(&file) == bits(&from_taps), "{}: forms of the filter differ", what());
    for filter in filters {
        for cut in cuts(w.out_h) {
            let pieces: Vec<f32> = cut.into_iter().flat_map(|rows| run(filter, rows)).collect();
            assert!(bits(&file) == bits(&pieces), "{}: a cut of the rows shows", what());
        }
    }
}

#[test]
fn every_window_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(1);
        for case in WINDOWS {
            for channels in [1, 3, 8, 16, 17, 35, 64, 130] {
                let conv = DepthwiseConv2d { window: window(case), channels, multiplier: 1 };
                check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
            }
        }
    });
}

#[test]
fn every_channel_tail_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(2);
        for channels in channel_counts(kernels) {
            for _ in 0..2 {
                let case = random.choose(&WINDOWS);
                let conv = DepthwiseConv2d { window: window(case), channels, multiplier: 1 };
                check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
            }
        }
    });
}

/// The windows of real networks, at widths around the register tile.
#[test]
fn every_width_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        for kernel in [3, 5, 7] {
            for stride in [1, 2] {
                for in_w in 1..24 {
                    let pad = kernel / 2;
                    let case = (5, in_w, kernel, kernel, stride, pad, pad, pad, pad);
                    let conv =
                        DepthwiseConv2d { window: window(case), channels: 33, multiplier: 1 };
                    check(kernels, conv, Activation::Relu, in_w as u64);
                }
            }
        }
    });
}

/// Pitfall B06: output channel `c · m + j` reads input channel `c`.
#[test]
fn b06_multipliers_read_the_channel_they_belong_to() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(3);
        for multiplier in [2, 3, 6] {
            for channels in [1, 2, 5] {
                // 3×1 at stride 2 with SAME padding, as one importer got wrong.
                let window = window((8, 8, 3, 1, 2, 0, 0, 1, 0));
                let conv = DepthwiseConv2d { window, channels, multiplier };
                check(kernels, conv, Activation::None, random.next());
            }
        }
    });
}

#[test]
fn any_geometry_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(4);
        for _ in 0..random_cases(200) {
            let (window, channels) = (any_window(random), 1 + random.below(70));
            let conv =
                DepthwiseConv2d { window, channels, multiplier: random.choose(&[1, 1, 1, 2]) };
            check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
        }
    });
}
