//! Convolutions that pool what they compute: the bits of one after the other.

use crate::harness::*;
use netkit_core::op::{Activation, Conv2d, DepthwiseConv2d, Padding, Pool2d, Window};
use netkit_core::pack;
use netkit_core::quant::Multiplier;
use netkit_kernels::{Filter, FilterForm, FilterS8, Kernels, reference, workspace};
use std::ops::Range;

/// A pool of the map of a convolution, some of which it may not read.
fn any_pool(random: &mut Random, conv: &mut Window, channels: usize) -> Pool2d {
    let kernel = |random: &mut Random, size: usize| 1 + random.below(size.min(4)) as u32;
    let (kernel_h, kernel_w) = (kernel(random, conv.out_h), kernel(random, conv.out_w));
    // The usual pools more often than by chance.
    let usual = random.below(2) == 0 && conv.out_h > 1 && conv.out_w > 1;
    let (kernel, stride) = match usual {
        true => ((2, 2), 2),
        false => ((kernel_h, kernel_w), 1 + random.below(4) as u32),
    };
    let pad = |random: &mut Random, kernel| random.below(kernel as usize) as u32;
    let padding = match usual {
        true => Padding::default(),
        false => Padding {
            top: pad(random, kernel.0),
            left: pad(random, kernel.1),
            bottom: pad(random, kernel.0),
            right: pad(random, kernel.1),
        },
    };
    let mut window = Window::new((conv.out_h, conv.out_w), kernel, stride, padding).unwrap();
    if random.below(2) == 0 {
        (conv.out_h, conv.out_w) = window.reach();
        (window.in_h, window.in_w) = window.reach();
    }
    Pool2d { window, channels }
}

/// Runs every form of a filter with every cut of the rows and asserts that all give what is expected.
fn check_cuts<T: bytemuck::Pod + PartialEq + std::fmt::Debug, F: Copy>(
    pool: &Pool2d,
    filters: &[(F, usize)],
    expected: &[T],
    offset: usize,
    what: &str,
    run: impl Fn(F, Range<usize>, &mut [T], &mut [u8]),
) {
    for (form, &(filter, scratch_bytes)) in filters.iter().enumerate() {
        for cut in cuts(pool.window.out_h) {
            let mut pieces = Vec::new();
            for rows in cut.clone() {
                let mut scratch = Scratch::new(scratch_bytes);
                let len = rows.len() * pool.window.out_w * pool.channels;
                let mut output = Guarded::output(len, offset);
                run(filter, rows, output.get_mut(), scratch.get());
                output.check();
                scratch.check();
                pieces.extend_from_slice(output.get());
            }
            let bytes: (&[u8], &[u8]) =
                (bytemuck::cast_slice(&pieces), bytemuck::cast_slice(expected));
            let at = bytes.0.iter().zip(bytes.1).position(|(a, b)| a != b);
            let at = at.map(|byte| byte / size_of::<T>());
            assert!(
                bytes.0 == bytes.1,
                "{what}, form {form}, rows {cut:?}: element {at:?} of {}",
                expected.len()
            );
        }
    }
}

pub(crate) fn check_conv_s8(kernels: Kernels, mut conv: Conv2d, moderate: bool, seed: u64) {
    let random = &mut Random::new(seed);
    let pool = any_pool(random, &mut conv.window, conv.out_channels);
    let (w, outputs) = (conv.window, conv.out_channels);
    let depth = w.taps() * conv.in_channels;
    let input = random.bytes(w.in_pixels() * conv.in_channels);
    let weights = random.bytes(outputs * depth);
    let layer = layer(random, outputs, depth, moderate);
    let offset = random.below(64);
    let mut map = vec![0; w.out_pixels() * outputs];
    let mut expected = vec![0; pool.window.out_pixels() * outputs];
    reference::conv2d_max_pool2d_s8(
        &conv,
        &pool,
        &input,
        &weights,
        layer.reference(),
        &mut map,
        &mut expected,
    );
    let mut packed = vec![0; pack::packed_conv2d_s8_len(&conv)];
    pack::pack_conv2d_s8(&conv, &weights, &mut packed).unwrap();
    let input = Guarded::new(&input, offset);
    let weights = Guarded::new(&weights, offset + 21);
    let bias = Guarded::new(&layer.bias, offset);
    let multipliers = Factors::new(&layer.multipliers, offset);
    let packed = Guarded::new(&packed, offset + 43);
    let scratch = |form| workspace::conv2d_max_pool2d_s8(&conv, &pool, form);
    let filters = [
        (FilterS8::File(weights.get()), scratch(FilterForm::File)),
        (FilterS8::Packed(packed.get()), scratch(FilterForm::Packed)),
    ];
    let what = format!("{} {conv:?} {:?}, seed {seed}", kernels.isa().name(), pool.window);
    check_cuts(&pool, &filters, &expected, offset + 7, &what, |filter, rows, output, scratch| {
        kernels.conv2d_max_pool2d_s8(
            &conv,
            &pool,
            input.get(),
            layer.input_zero_point,
            filter,
            bias.get(),
            multipliers.get(),
            layer.stage,
            rows,
            output,
            scratch,
        );
    });
}

/// As of a trained layer, or with every extreme.
fn layer(random: &mut Random, channels: usize, depth: usize, trained: bool) -> Layer {
    let mut layer = Layer::new(random, channels, depth);
    if trained {
        layer.bias.fill_with(|| random.below(20_000) as i32 - 10_000);
        let shift = -8 - (usize::BITS - depth.leading_zeros()) as i32 / 2;
        let multiplier = |random: &mut Random| (1 << 30) + random.below(1 << 30) as i32;
        layer.multipliers.fill_with(|| Multiplier { multiplier: multiplier(random), shift });
    }
    layer
}

pub(crate) fn check_depthwise_s8(
    kernels: Kernels,
    mut conv: DepthwiseConv2d,
    trained: bool,
    seed: u64,
) {
    let random = &mut Random::new(seed);
    let outputs = conv.channels * conv.multiplier;
    let pool = any_pool(random, &mut conv.window, outputs);
    let w = conv.window;
    let input = random.bytes(w.in_pixels() * conv.channels);
    let weights = random.bytes(outputs * w.taps());
    let layer = layer(random, outputs, w.taps(), trained);
    let offset = random.below(64);
    let mut map = vec![0; w.out_pixels() * outputs];
    let mut expected = vec![0; pool.window.out_pixels() * outputs];
    reference::depthwise_conv2d_max_pool2d_s8(
        &conv,
        &pool,
        &input,
        &weights,
        layer.reference(),
        &mut map,
        &mut expected,
    );
    let mut packed = vec![0; pack::packed_depthwise_conv2d_s8_len(&conv)];
    pack::pack_depthwise_conv2d_s8(&conv, &weights, &mut packed).unwrap();
    let input = Guarded::new(&input, offset);
    let weights = Guarded::new(&weights, offset + 21);
    let packed = Guarded::new(&packed, offset + 43);
    let bias = Guarded::new(&layer.bias, offset);
    let multipliers = Factors::new(&layer.multipliers, offset);
    let scratch = |form| workspace::depthwise_conv2d_max_pool2d_s8(&conv, &pool, form);
    let filters = [
        (FilterS8::File(weights.get()), scratch(FilterForm::File)),
        (FilterS8::Packed(packed.get()), scratch(FilterForm::Packed)),
    ];
    let what = format!("{} {conv:?} {:?}, seed {seed}", kernels.isa().name(), pool.window);
    check_cuts(&pool, &filters, &expected, offset + 7, &what, |filter, rows, output, scratch| {
        kernels.depthwise_conv2d_max_pool2d_s8(
            &conv,
            &pool,
            input.get(),
            layer.input_zero_point,
            filter,
            bias.get(),
            multipliers.get(),
            layer.stage,
            rows,
            output,
            scratch,
        );
    });
}

/// Values among which some are NaN or infinite, lest an order of maximum and activation go unnoticed.
fn floats(random: &mut Random, len: usize) -> Vec<f32> {
    let mut values = random.floats(len);
    if random.below(4) == 0 {
        for special in [f32::NAN, f32::NEG_INFINITY, f32::INFINITY, -0.0] {
            let at = random.below(len);
            values[at] = special;
        }
    }
    values
}

/// Against the doors that are not fused: the same bits, NaN's payload apart.
pub(crate) fn check_conv_f32(
    kernels: Kernels,
    mut conv: Conv2d,
    activation: Activation,
    seed: u64,
) {
    let random = &mut Random::new(seed);
    let pool = any_pool(random, &mut conv.window, conv.out_channels);
    let (w, outputs) = (conv.window, conv.out_channels);
    let depth = w.taps() * conv.in_channels;
    let input = floats(random, w.in_pixels() * conv.in_channels);
    let weights = random.floats(outputs * depth);
    let scale = random.floats(outputs);
    let scale = random.choose(&[None, Some(&scale[..])]);
    let bias = random.floats(outputs);
    let offset = random.below(16);
    let mut packed = vec![0.0; pack::packed_conv2d_f32_len(&conv)];
    pack::pack_conv2d_f32(&conv, &weights, scale, &mut packed).unwrap();

    let mut map = vec![0.0; w.out_pixels() * outputs];
    let mut scratch = Scratch::new(workspace::conv2d_f32(&conv, FilterForm::Packed));
    kernels.conv2d_f32(
        &conv,
        &input,
        Filter::Packed(&packed),
        &bias,
        None,
        activation,
        0..w.out_h,
        &mut map,
        scratch.get(),
    );
    let mut expected = vec![0.0; pool.window.out_pixels() * outputs];
    reference::max_pool2d_f32(&pool, &map, &mut expected);

    let input = Guarded::new(&input, offset);
    let weights = Guarded::new(&weights, offset + 5);
    let bias = Guarded::new(&bias, offset + 9);
    let packed = Guarded::new(&packed, offset + 3);
    let scale = scale.map(|scale| Guarded::new(scale, offset + 11));
    let scale = scale.as_ref().map(Guarded::get);
    let scratch = |form| workspace::conv2d_max_pool2d_f32(&conv, &pool, form);
    let filters = [
        (Filter::File { values: weights.get(), scale }, scratch(FilterForm::File)),
        (Filter::Packed(packed.get()), scratch(FilterForm::Packed)),
    ];
    let isa = kernels.isa().name();
    let what = format!("{isa} {conv:?} {:?} {activation:?}, seed {seed}", pool.window);
    check_cuts(&pool, &filters, &expected, offset + 7, &what, |filter, rows, output, scratch| {
        kernels.conv2d_max_pool2d_f32(
            &conv,
            &pool,
            input.get(),
            filter,
            bias.get(),
            activation,
            rows,
            output,
            scratch,
        );
    });
}

pub(crate) fn check_depthwise_f32(
    kernels: Kernels,
    mut conv: DepthwiseConv2d,
    activation: Activation,
    seed: u64,
) {
    let random = &mut Random::new(seed);
    let outputs = conv.channels * conv.multiplier;
    let pool = any_pool(random, &mut conv.window, outputs);
    let w = conv.window;
    let input = floats(random, w.in_pixels() * conv.channels);
    let weights = random.floats(outputs * w.taps());
    let bias = random.floats(outputs);
    let offset = random.below(16);
    let mut packed = vec![0.0; pack::packed_depthwise_conv2d_f32_len(&conv)];
    pack::pack_depthwise_conv2d_f32(w.taps(), 0..outputs, &weights, None, &mut packed).unwrap();

    let mut map = vec![0.0; w.out_pixels() * outputs];
    let mut scratch = Scratch::new(workspace::depthwise_conv2d_f32(&conv, FilterForm::Packed));
    kernels.depthwise_conv2d_f32(
        &conv,
        &input,
        Filter::Packed(&packed),
        &bias,
        activation,
        0..w.out_h,
        &mut map,
        scratch.get(),
    );
    let mut expected = vec![0.0; pool.window.out_pixels() * outputs];
    reference::max_pool2d_f32(&pool, &map, &mut expected);

    let input = Guarded::new(&input, offset);
    let weights = Guarded::new(&weights, offset + 5);
    let packed = Guarded::new(&packed, offset + 3);
    let bias = Guarded::new(&bias, offset + 9);
    let scratch = |form| workspace::depthwise_conv2d_max_pool2d_f32(&conv, &pool, form);
    let filters = [
        (Filter::File { values: weights.get(), scale: None }, scratch(FilterForm::File)),
        (Filter::Packed(packed.get()), scratch(FilterForm::Packed)),
    ];
    let isa = kernels.isa().name();
    let what = format!("{isa} {conv:?} {:?} {activation:?}, seed {seed}", pool.window);
    check_cuts(&pool, &filters, &expected, offset + 7, &what, |filter, rows, output, scratch| {
        kernels.depthwise_conv2d_max_pool2d_f32(
            &conv,
            &pool,
            input.get(),
            filter,
            bias.get(),
            activation,
            rows,
            output,
            scratch,
        );
    });
}

#[test]
fn every_window_pools_as_the_map_does() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(1);
        for case in WINDOWS {
            for in_channels in [1, 3, 16, 19] {
                let out_channels = 1 + random.below(70);
                let conv = Conv2d { window: window(case), in_channels, out_channels };
                check_conv_s8(kernels, conv, in_channels > 1, random.next());
                check_conv_f32(kernels, conv, random.choose(&ACTIVATIONS), random.next());
            }
            for (channels, multiplier) in [(1, 1), (16, 1), (37, 1), (5, 3)] {
                let conv = DepthwiseConv2d { window: window(case), channels, multiplier };
                check_depthwise_s8(kernels, conv, channels > 1, random.next());
                check_depthwise_f32(kernels, conv, random.choose(&ACTIVATIONS), random.next());
            }
        }
    });
}

#[test]
fn every_channel_tail_pools_as_the_map_does() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(2);
        for channels in channel_counts(kernels) {
            let window = window(random.choose(&WINDOWS));
            let in_channels = 1 + random.below(8);
            let conv = Conv2d { window, in_channels, out_channels: channels };
            check_conv_s8(kernels, conv, true, random.next());
            check_conv_f32(kernels, conv, random.choose(&ACTIVATIONS), random.next());
            let conv = DepthwiseConv2d { window, channels, multiplier: 1 };
            check_depthwise_s8(kernels, conv, true, random.next());
            check_depthwise_f32(kernels, conv, random.choose(&ACTIVATIONS), random.next());
        }
    });
}

/// Rows of every length around those that tiles compute at once, and of first layers.
#[test]
fn every_width_pools_as_the_map_does() {
    on_each_isa(|kernels| {
        for in_w in (4..40).chain([70, 131, 300]) {
            let window = window((6, in_w, 3, 3, 1, 0, 0, 0, 0));
            for (in_channels, out_channels) in [(1, 32), (1, 21), (5, 16), (9, 40), (8, 64)] {
                let conv = Conv2d { window, in_channels, out_channels };
                check_conv_s8(kernels, conv, true, in_w as u64);
                if in_w < 20 {
                    check_conv_f32(kernels, conv, Activation::Relu, in_w as u64);
                }
            }
        }
    });
}

/// Maps of several bands, and of several blocks of input.
#[test]
fn maps_of_several_bands_pool_as_whole_ones_do() {
    on_each_isa(|kernels| {
        for seed in 0..2 {
            for (case, in_channels) in [
                ((41, 30, 3, 3, 1, 1, 1, 1, 1), 40),
                ((61, 40, 1, 1, 1, 0, 0, 0, 0), 40),
                ((9, 3_000, 3, 3, 1, 1, 1, 1, 1), 3),
            ] {
                let conv = Conv2d { window: window(case), in_channels, out_channels: 37 };
                check_conv_s8(kernels, conv, seed > 0, seed);
                check_conv_f32(kernels, conv, Activation::Relu6, seed);
            }
            let window = window((61, 40, 3, 3, 1, 1, 1, 1, 1));
            let conv = DepthwiseConv2d { window, channels: 69, multiplier: 1 };
            check_depthwise_s8(kernels, conv, seed > 0, seed);
            check_depthwise_f32(kernels, conv, Activation::Silu, seed);
        }
    });
}

#[test]
fn any_geometry_pools_as_the_map_does() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(6);
        for _ in 0..random_cases(150) {
            let window = any_window(random);
            let (in_channels, out_channels) = (1 + random.below(20), 1 + random.below(70));
            let conv = Conv2d { window, in_channels, out_channels };
            let trained = random.below(3) > 0;
            check_conv_s8(kernels, conv, trained, random.next());
            check_conv_f32(kernels, conv, random.choose(&ACTIVATIONS), random.next());
            let (channels, multiplier) = (1 + random.below(40), 1 + random.below(9) / 6);
            let conv = DepthwiseConv2d { window, channels, multiplier };
            check_depthwise_s8(kernels, conv, trained, random.next());
            check_depthwise_f32(kernels, conv, random.choose(&ACTIVATIONS), random.next());
        }
    });
}
