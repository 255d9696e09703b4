//! Convolution.

use crate::harness::*;
use netkit_core::op::{Activation, Conv2d, Padding, Window};
use netkit_core::pack::{pack_conv2d_f32, packed_conv2d_f32_len};
use netkit_kernels::{Filter, FilterForm, Kernels, reference, workspace};

/// One convolution: every form of the filter, every cut of the rows, against the reference.
pub(crate) fn check(kernels: Kernels, conv: Conv2d, activation: Activation, seed: u64) {
    let random = &mut Random::new(seed);
    let (w, outputs) = (conv.window, conv.out_channels);
    let depth = w.taps() * conv.in_channels;
    let input = random.floats(w.in_pixels() * conv.in_channels);
    let weights = random.floats(outputs * depth);
    let scale = random.floats(outputs);
    let bias = random.floats(outputs);
    let out_len = w.out_pixels() * outputs;
    let residual = random.floats(out_len);
    let scale = random.choose(&[None, Some(&scale[..])]);
    let residual = random.choose(&[None, Some(&residual[..])]);
    let offset = random.below(16);
    let what = || {
        let (scaled, added) = (scale.is_some(), residual.is_some());
        let isa = kernels.isa().name();
        format!("{isa}: {conv:?} {activation:?}, scale {scaled}, residual {added}, seed {seed}")
    };

    let folded: Vec<f32> = match scale {
        None => weights.clone(),
        Some(scale) => weights.iter().enumerate().map(|(i, w)| w * scale[i / depth]).collect(),
    };
    let mut expected = vec![0.0; out_len];
    reference::conv2d_f32(&conv, &input, &folded, &bias, residual, activation, &mut expected);
    let mut magnitude = vec![0.0; out_len];
    let added = residual.map(absolute);
    reference::conv2d_f32(
        &conv,
        &absolute(&input),
        &absolute(&folded),
        &absolute(&bias),
        added.as_deref(),
        Activation::None,
        &mut magnitude,
    );

    let mut packed = vec![0.0; packed_conv2d_f32_len(&conv)];
    pack_conv2d_f32(&conv, &weights, scale, &mut packed).unwrap();
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
        let mut scratch = Scratch::new(workspace::conv2d_f32(&conv, form));
        let elements = rows.start * w.out_w * outputs..rows.end * w.out_w * outputs;
        let mut output = Guarded::output(elements.len(), offset + 7);
        let residual = residual.map(|residual| Guarded::new(&residual[elements], offset + 5));
        kernels.conv2d_f32(
            &conv,
            input.get(),
            filter,
            bias.get(),
            residual.as_ref().map(Guarded::get),
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
    let [file, from_panels] = filters.map(|filter| run(filter, 0..w.out_h));
    let bound = |i: usize| sum_bound(depth + 3, magnitude[i], expected[i]);
    assert_within(&file, &expected, bound, || format!("{}, file", what()));
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(bits(&file) == bits(&from_panels), "{}: forms of the filter differ", what());
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
            for in_channels in [1, 2, 3, 4, 16, 19] {
                let out_channels = 1 + random.below(70);
                let conv = Conv2d { window: window(case), in_channels, out_channels };
                check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
            }
        }
    });
}

#[test]
fn every_channel_tail_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(2);
        for out_channels in channel_counts(kernels) {
            let case = random.choose(&WINDOWS);
            let in_channels = 1 + random.below(8);
            let conv = Conv2d { window: window(case), in_channels, out_channels };
            check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
        }
    });
}

/// Windows that are the whole map: dense layers, whose weights are packed in the order of the file.
#[test]
fn whole_maps_agree_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(9);
        for (height, width) in [(1, 1), (1, 3), (2, 2), (3, 5)] {
            for in_channels in [1, 7, 16, 33, 150] {
                let window = Window::new(
                    (height, width),
                    (height as u32, width as u32),
                    1,
                    Padding::default(),
                )
                .unwrap();
                assert!(window.is_whole_map());
                let conv = Conv2d { window, in_channels, out_channels: 1 + random.below(40) };
                check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
            }
        }
    });
}

/// Every size of the register tile, on both sides of the largest.
#[test]
fn every_pixel_count_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        for pixels in 1..45 {
            for out_channels in [5, 16, 24, 32, 64, 100] {
                let case = (1, pixels, 1, 1, 1, 0, 0, 0, 0);
                let conv = Conv2d { window: window(case), in_channels: 5, out_channels };
                check(kernels, conv, Activation::Relu, pixels as u64);
            }
        }
    });
}

/// Depths beyond one block of the file form, and of the packed one where several tiles pass over it: partial sums wait in
/// the output.
#[test]
fn deep_sums_agree_with_the_reference() {
    on_each_isa(|kernels| {
        for (in_channels, case) in [
            (255, WINDOWS[1]),
            (256, WINDOWS[1]),
            (257, WINDOWS[1]),
            (130, WINDOWS[6]),
            (700, WINDOWS[3]),
            (310, (7, 5, 3, 3, 1, 1, 1, 1, 1)),
        ] {
            for activation in [Activation::Relu, Activation::Silu] {
                let conv = Conv2d { window: window(case), in_channels, out_channels: 37 };
                check(kernels, conv, activation, in_channels as u64);
            }
        }
    });
}

/// Maps whose input does not fit one block.
#[test]
fn maps_of_several_blocks_agree_with_the_reference() {
    on_each_isa(|kernels| {
        for (case, in_channels) in [
            ((61, 40, 3, 3, 1, 1, 1, 1, 1), 40),
            ((61, 40, 3, 3, 2, 1, 1, 1, 1), 40),
            ((61, 40, 1, 1, 1, 0, 0, 0, 0), 40),
            ((3, 9000, 3, 3, 1, 1, 1, 1, 1), 3),
        ] {
            let conv = Conv2d { window: window(case), in_channels, out_channels: 5 };
            check(kernels, conv, Activation::Relu6, 3);
        }
    });
}

/// Wide maps with few products are read where they lie, padding at the sides apart: any padding, stride and kernel, on both
/// sides of where that pays.
#[test]
fn padded_sides_of_wide_maps_agree_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(5);
        for kernel in [1, 3, 4, 7] {
            for stride in [1, 2, 3] {
                for (left, right) in [(0, 1), (1, 0), (1, 1), (2, 3), (3, 3)] {
                    let (top, bottom) = (random.below(3) as u32, random.below(3) as u32);
                    let (in_h, in_w) = (kernel as usize + random.below(9), 40 + random.below(60));
                    let case = (in_h, in_w, kernel, kernel, stride, top, left, bottom, right);
                    let conv = Conv2d {
                        window: window(case),
                        in_channels: 1 + random.below(4),
                        out_channels: 1 + random.below(if kernel > 4 { 3 } else { 20 }),
                    };
                    check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
                }
            }
        }
    });
}

#[test]
fn dilation_and_unequal_strides_agree_with_the_reference() {
    on_each_isa(|kernels| {
        for (dilation_h, dilation_w, stride_h, stride_w) in
            [(2, 2, 1, 1), (1, 2, 2, 1), (3, 1, 1, 3), (2, 3, 2, 2)]
        {
            let (in_h, in_w, kernel) = (11, 13, 3);
            let (pad_top, pad_left) = (1, 2);
            let size = |input: usize, pad: usize, stride: usize, dilation: usize| {
                (input + 2 * pad - ((kernel - 1) * dilation + 1)) / stride + 1
            };
            let window = Window {
                in_h,
                in_w,
                out_h: size(in_h, pad_top, stride_h, dilation_h),
                out_w: size(in_w, pad_left, stride_w, dilation_w),
                kernel_h: kernel,
                kernel_w: kernel,
                stride_h,
                stride_w,
                dilation_h,
                dilation_w,
                pad_top,
                pad_left,
            };
            for in_channels in [1, 6] {
                let conv = Conv2d { window, in_channels, out_channels: 21 };
                check(kernels, conv, Activation::None, 4);
            }
        }
    });
}

/// A 1×1 kernel with padding: a padded pixel is the bias, not a neighbour's value.
#[test]
fn a_padded_pixel_is_the_bias() {
    on_each_isa(|kernels| {
        let window = window((1, 1, 1, 1, 1, 1, 1, 1, 1));
        let conv = Conv2d { window, in_channels: 1, out_channels: 1 };
        let mut output = [0.0; 9];
        let mut scratch = Scratch::new(workspace::conv2d_f32(&conv, FilterForm::File));
        let filter = Filter::File { values: &[2.0], scale: None };
        let (bias, activation) = ([5.0], Activation::None);
        kernels.conv2d_f32(
            &conv,
            &[3.0],
            filter,
            &bias,
            None,
            activation,
            0..3,
            &mut output,
            scratch.get(),
        );
        assert_eq!(output, [5.0, 5.0, 5.0, 5.0, 11.0, 5.0, 5.0, 5.0, 5.0]);
    });
}

/// The start of the padding decides: SAME_UPPER and SAME_LOWER of a ramp differ.
#[test]
fn same_padding_at_stride_two() {
    on_each_isa(|kernels| {
        let input: Vec<f32> = (1..=16).map(|i| i as f32).collect();
        let upper = (4, 4, 3, 3, 2, 0, 0, 1, 1);
        let lower = (4, 4, 3, 3, 2, 1, 1, 0, 0);
        for (case, expected) in
            [(upper, [54.0, 45.0, 72.0, 54.0]), (lower, [14.0, 30.0, 57.0, 99.0])]
        {
            let conv = Conv2d { window: window(case), in_channels: 1, out_channels: 1 };
            let mut scratch = Scratch::new(workspace::conv2d_f32(&conv, FilterForm::File));
            let filter = Filter::File { values: &[1.0; 9], scale: None };
            let mut output = [0.0; 4];
            kernels.conv2d_f32(
                &conv,
                &input,
                filter,
                &[0.0],
                None,
                Activation::None,
                0..2,
                &mut output,
                scratch.get(),
            );
            assert_eq!(output, expected);
        }
    });
}

/// Pitfall B22: scratch sizes of another path than the one that runs. Each call gets exactly what `workspace` says,
/// between canaries and against a guard page.
#[test]
fn b22_any_geometry_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(6);
        for _ in 0..random_cases(150) {
            let window = any_window(random);
            let (in_channels, out_channels) = (1 + random.below(20), 1 + random.below(70));
            let conv = Conv2d { window, in_channels, out_channels };
            check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
        }
    });
}
