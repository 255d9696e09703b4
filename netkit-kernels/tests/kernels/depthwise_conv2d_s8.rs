//! Int8 depthwise convolution.

use crate::harness::*;
use netkit_core::op::DepthwiseConv2d;
use netkit_core::pack::{pack_depthwise_conv2d_s8, packed_depthwise_conv2d_s8_len};
use netkit_kernels::{FilterForm, FilterS8, Kernels, reference, workspace};

/// One convolution: both forms of the filter, every cut of the rows, equal to the reference.
pub(crate) fn check(kernels: Kernels, conv: DepthwiseConv2d, seed: u64) {
    let random = &mut Random::new(seed);
    let (w, outputs) = (conv.window, conv.channels * conv.multiplier);
    let input = random.bytes(w.in_pixels() * conv.channels);
    let weights = random.bytes(outputs * w.taps());
    let layer = Layer::new(random, outputs, w.taps());
    let offset = random.below(64);

    let mut expected = vec![0; w.out_pixels() * outputs];
    reference::depthwise_conv2d_s8(&conv, &input, &weights, layer.reference(), &mut expected);

    let mut packed = vec![0; packed_depthwise_conv2d_s8_len(&conv)];
    pack_depthwise_conv2d_s8(&conv, &weights, &mut packed).unwrap();
    let input = Guarded::new(&input, offset);
    let weights = Guarded::new(&weights, offset + 21);
    let bias = Guarded::new(&layer.bias, offset);
    let multipliers = Factors::new(&layer.multipliers, offset);
    let packed = Guarded::new(&packed, offset + 43);
    let run = |filter, rows: std::ops::Range<usize>| {
        let form = match filter {
            FilterS8::File(_) => FilterForm::File,
            FilterS8::Packed(_) => FilterForm::Packed,
        };
        let mut scratch = Scratch::new(workspace::depthwise_conv2d_s8(&conv, form));
        let mut output = Guarded::output(rows.len() * w.out_w * outputs, offset + 7);
        kernels.depthwise_conv2d_s8(
            &conv,
            input.get(),
            layer.input_zero_point,
            filter,
            bias.get(),
            multipliers.get(),
            layer.stage,
            rows,
            output.get_mut(),
            scratch.get(),
        );
        output.check();
        scratch.check();
        output.get().to_vec()
    };
    for (form, filter) in
        [("file", FilterS8::File(weights.get())), ("packed", FilterS8::Packed(packed.get()))]
    {
        for cut in cuts(w.out_h) {
            let rows = format!("{cut:?}");
            let pieces: Vec<i8> = cut.into_iter().flat_map(|rows| run(filter, rows)).collect();
            let at = pieces.iter().zip(&expected).position(|(a, b)| a != b);
            let isa = kernels.isa().name();
            assert!(
                at.is_none(),
                "{isa} {form} {conv:?}, seed {seed}, rows {rows}: element {at:?}"
            );
        }
    }
}

#[test]
fn every_window_equals_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(1);
        for case in WINDOWS {
            for multiplier in [1, 2, 3] {
                for _ in 0..4 {
                    let channels = 1 + random.below(40);
                    let window = window(case);
                    check(kernels, DepthwiseConv2d { window, channels, multiplier }, random.next());
                }
            }
        }
    });
}

#[test]
fn every_channel_tail_equals_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(2);
        for channels in channel_counts(kernels).chain([80, 127, 128, 129, 200]) {
            let window = window(random.choose(&WINDOWS));
            check(kernels, DepthwiseConv2d { window, channels, multiplier: 1 }, random.next());
        }
    });
}

/// Channels that are interleaved in several blocks, the last one short.
#[test]
fn wide_maps_equal_the_reference() {
    on_each_isa(|kernels| {
        for (case, channels, multiplier) in [
            ((9, 40, 3, 3, 1, 1, 1, 1, 1), 150, 1),
            ((9, 40, 3, 3, 2, 1, 1, 1, 1), 150, 1),
            ((9, 40, 5, 5, 1, 2, 2, 2, 2), 66, 1),
            ((9, 40, 5, 5, 2, 2, 2, 2, 2), 35, 2),
            ((3, 20, 3, 3, 1, 1, 1, 1, 1), 2100, 1),
        ] {
            let window = window(case);
            check(kernels, DepthwiseConv2d { window, channels, multiplier }, 3);
        }
    });
}

/// Channels in whole vectors, which some instruction sets take by kernels of their own: rows that share
/// input and rows that do not, longer than what is computed at once and shorter than a step.
#[test]
fn whole_vectors_equal_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(4);
        let mut windows: Vec<_> = WINDOWS.into_iter().map(window).collect();
        for kernel in [1, 2, 3, 4, 5, 6, 7, 8] {
            for stride in [1, 2, 3] {
                for in_w in [kernel as usize, 19, 70] {
                    let pad = random.below(3) as u32;
                    windows.push(window((9, in_w, kernel, kernel, stride, pad, 1, 1, pad)));
                }
            }
        }
        for (dilation_h, dilation_w, stride_h, stride_w) in
            [(2, 2, 1, 1), (1, 2, 2, 1), (2, 1, 1, 2), (1, 1, 3, 1), (1, 1, 1, 3), (1, 1, 1, 2)]
        {
            windows.push(dilated(dilation_h, dilation_w, stride_h, stride_w));
        }
        for window in windows {
            for channels in [8 * (1 + random.below(10)), 16 * (1 + random.below(13))] {
                check(kernels, DepthwiseConv2d { window, channels, multiplier: 1 }, random.next());
            }
        }
    });
}

#[test]
fn dilation_and_unequal_strides_equal_the_reference() {
    on_each_isa(|kernels| {
        for (dilation_h, dilation_w, stride_h, stride_w) in
            [(2, 2, 1, 1), (1, 2, 2, 1), (3, 1, 1, 3), (2, 3, 2, 2)]
        {
            let window = dilated(dilation_h, dilation_w, stride_h, stride_w);
            for (channels, multiplier) in [(1, 1), (19, 1), (3, 2)] {
                check(kernels, DepthwiseConv2d { window, channels, multiplier }, channels as u64);
            }
        }
    });
}

/// Of nothing there is nothing to compute: not for each of the columns that the kernel moves by, nor for each row.
#[test]
fn a_layer_without_outputs_ends_at_once() {
    on_each_isa(|kernels| {
        let mut window = window((1, 1, 1, 1, 1, 0, 0, 0, 0));
        (window.stride_w, window.dilation_w) = ((1 << 31) - 1, 2);
        (window.out_h, window.out_w) = ((1 << 31) - 1, 0);
        let conv = DepthwiseConv2d { window, channels: 16, multiplier: 1 };
        let layer = Layer::new(&mut Random::new(6), 16, 1);
        let mut packed = vec![0; packed_depthwise_conv2d_s8_len(&conv)];
        pack_depthwise_conv2d_s8(&conv, &[1; 16], &mut packed).unwrap();
        let mut scratch = vec![0; workspace::depthwise_conv2d_s8(&conv, FilterForm::Packed)];
        kernels.depthwise_conv2d_s8(
            &conv,
            &[0; 16],
            layer.input_zero_point,
            FilterS8::Packed(&packed),
            &layer.bias,
            &layer.multipliers,
            layer.stage,
            0..window.out_h,
            &mut [],
            &mut scratch,
        );
    });
}

#[test]
fn random_layers_equal_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(5);
        for _ in 0..random_cases(1000) {
            let (channels, multiplier) = (1 + random.below(40), random.choose(&[1, 1, 1, 2, 5]));
            let window = any_window(random);
            check(kernels, DepthwiseConv2d { window, channels, multiplier }, random.next());
        }
    });
}
