//! Int8 convolution.

use crate::harness::*;
use netkit_core::op::{Conv2d, Window};
use netkit_core::pack::{pack_conv2d_s8, packed_conv2d_s8_len};
use netkit_core::quant::{Multiplier, OutputStage};
use netkit_kernels::{FilterForm, FilterS8, Kernels, reference, workspace};

/// One convolution: both forms of the filter, every cut of the rows, equal to the reference.
pub(crate) fn check(kernels: Kernels, conv: Conv2d, seed: u64) {
    let random = &mut Random::new(seed);
    let (w, outputs) = (conv.window, conv.out_channels);
    let depth = w.taps() * conv.in_channels;
    let input = random.bytes(w.in_pixels() * conv.in_channels);
    let weights = random.bytes(outputs * depth);
    let layer = Layer::new(random, outputs, depth);
    let offset = random.below(64);

    let mut expected = vec![0; w.out_pixels() * outputs];
    reference::conv2d_s8(&conv, &input, &weights, layer.reference(), &mut expected);

    let mut packed = vec![0; packed_conv2d_s8_len(&conv)];
    pack_conv2d_s8(&conv, &weights, &mut packed).unwrap();
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
        let mut scratch = Scratch::new(workspace::conv2d_s8(&conv, form));
        let mut output = Guarded::output(rows.len() * w.out_w * outputs, offset + 7);
        kernels.conv2d_s8(
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
            for in_channels in [1, 2, 3, 4, 5, 16, 19] {
                for _ in 0..3 {
                    let out_channels = 1 + random.below(70);
                    let conv = Conv2d { window: window(case), in_channels, out_channels };
                    check(kernels, conv, random.next());
                }
            }
        }
    });
}

#[test]
fn every_channel_tail_equals_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(2);
        for out_channels in channel_counts(kernels) {
            let case = random.choose(&WINDOWS);
            let in_channels = 1 + random.below(8);
            let conv = Conv2d { window: window(case), in_channels, out_channels };
            check(kernels, conv, random.next());
        }
    });
}

/// Every size of the register tile, on both sides of the largest.
#[test]
fn every_pixel_count_equals_the_reference() {
    on_each_isa(|kernels| {
        for pixels in 1..45 {
            for out_channels in [5, 16, 24, 32, 64, 100] {
                let case = (1, pixels, 1, 1, 1, 0, 0, 0, 0);
                let conv = Conv2d { window: window(case), in_channels: 5, out_channels };
                check(kernels, conv, pixels as u64);
            }
        }
    });
}

/// First layers: few taps, rows shorter and longer than what is computed at once.
#[test]
fn few_taps_equal_the_reference() {
    on_each_isa(|kernels| {
        for (kernel, in_channels) in [
            ((3, 3), 1),
            ((1, 1), 1),
            ((1, 1), 3),
            ((1, 1), 16),
            ((2, 2), 3),
            ((1, 9), 1),
            ((4, 1), 2),
        ] {
            for in_w in [9, 12, 70, 300] {
                for (stride, out_channels) in [(1, 8), (2, 21), (3, 64)] {
                    let case = (6, in_w, kernel.0, kernel.1, stride, 1, 0, 1, 1);
                    let conv = Conv2d { window: window(case), in_channels, out_channels };
                    check(kernels, conv, in_w as u64);
                }
            }
        }
    });
}

/// More channels than C implementations take.
#[test]
fn channels_beyond_2048_equal_the_reference() {
    on_each_isa(|kernels| {
        for (in_channels, out_channels) in [(2049, 3), (3, 2065)] {
            let conv = Conv2d { window: window(WINDOWS[8]), in_channels, out_channels };
            check(kernels, conv, 4);
        }
    });
}

/// Maps whose input does not fit one block.
#[test]
fn maps_of_several_blocks_equal_the_reference() {
    on_each_isa(|kernels| {
        for (case, in_channels) in [
            ((61, 40, 3, 3, 1, 1, 1, 1, 1), 40),
            ((61, 40, 3, 3, 2, 1, 1, 1, 1), 40),
            ((61, 40, 1, 1, 1, 0, 0, 0, 0), 40),
            ((61, 40, 1, 1, 3, 1, 2, 0, 0), 120),
            ((3, 30_000, 3, 3, 1, 1, 1, 1, 1), 3),
        ] {
            let conv = Conv2d { window: window(case), in_channels, out_channels: 5 };
            check(kernels, conv, 3);
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
            for in_channels in [1, 3, 6] {
                let conv = Conv2d { window, in_channels, out_channels: 21 };
                check(kernels, conv, in_channels as u64);
            }
        }
    });
}

/// Pitfall B18: real zero everywhere must give the bias at every output, borders included.
#[test]
fn b18_padding_is_real_zero() {
    on_each_isa(|kernels| {
        for zero_point in [-128, -1, 0, 127] {
            let conv = Conv2d { window: window(WINDOWS[6]), in_channels: 3, out_channels: 17 };
            let w: Window = conv.window;
            let input = vec![zero_point as i8; w.in_pixels() * 3];
            let weights: Vec<i8> = (0..17 * 27).map(|i| (i * 91 % 256) as u8 as i8).collect();
            let bias: Vec<i32> = (0..17).map(|o| 7 * o - 60).collect();
            let one = Multiplier::from_real(1.0);
            let mut output = vec![0; w.out_pixels() * 17];
            let mut scratch = Scratch::new(workspace::conv2d_s8(&conv, FilterForm::File));
            kernels.conv2d_s8(
                &conv,
                &input,
                zero_point,
                FilterS8::File(&weights),
                &bias,
                &[one; 17],
                OutputStage { zero_point: 0, low: -128, high: 127 },
                0..w.out_h,
                &mut output,
                scratch.get(),
            );
            for pixel in output.chunks_exact(17) {
                assert!(pixel.iter().zip(&bias).all(|(&y, &b)| i32::from(y) == b));
            }
        }
    });
}

/// Thousands of small layers of every shape.
/// Pitfall B22, as in float.
#[test]
fn b22_random_layers_equal_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(5);
        for _ in 0..random_cases(1000) {
            let (in_channels, out_channels) = (1 + random.below(20), 1 + random.below(40));
            let conv = Conv2d { window: any_window(random), in_channels, out_channels };
            check(kernels, conv, random.next());
        }
    });
}
