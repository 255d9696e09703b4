//! Threads: the same bits as one thread gives, on every instruction set.
#![cfg(feature = "parallel")]

use crate::harness::*;
use netkit_core::op::{Activation, Conv2d, Dense, DepthwiseConv2d, Padding, Pool2d, Window};
use netkit_core::pack;
use netkit_core::quant::{Multiplier, OutputStage};
use netkit_kernels::{Filter, FilterForm, FilterS8, Kernels, workspace};

/// Runs `work` with a pool of some threads: one computes everything in one piece.
fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon_core::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// Large enough to be cut into three, with rows that three does not divide; padded, so that pieces differ in what they read.
fn window(input: (usize, usize), kernel: u32, stride: u32) -> Window {
    Window::new(input, (kernel, kernel), stride, Padding::symmetric(kernel / 2, kernel / 2))
        .unwrap()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

const STAGE: OutputStage = OutputStage { zero_point: -3, low: -128, high: 127 };

/// Factors that spread the sums of some hundred products over the range of a byte.
fn multipliers(random: &mut Random, channels: usize) -> Vec<Multiplier> {
    let factor = |random: &mut Random| (1 << 30) + random.below(1 << 30) as i32;
    (0..channels).map(|_| Multiplier { multiplier: factor(random), shift: -10 }).collect()
}

fn biases(random: &mut Random, channels: usize) -> Vec<i32> {
    (0..channels).map(|_| random.below(1 << 17) as i32 - (1 << 16)).collect()
}

/// Asserts that two results are equal and that they are results.
fn assert_same<T: PartialEq>(parts: &[T], whole: &[T], what: impl FnOnce() -> String) {
    assert!(whole.iter().any(|value| *value != whole[0]), "{}: all one value", what());
    assert!(parts == whole, "{}", what());
}

#[test]
fn convolutions() {
    for kernels in Kernels::all() {
        let name = kernels.isa().name();
        let random = &mut Random::new(5);
        for (kernel, stride, in_channels, out_channels) in
            [(3, 1, 31, 47), (1, 1, 61, 203), (3, 2, 61, 91)]
        {
            let window = window((71, 32), kernel, stride);
            let conv = Conv2d { window, in_channels, out_channels };
            let w = &conv.window;
            let depth = w.taps() * in_channels;
            let (outputs, inputs) = (w.out_pixels() * out_channels, w.in_pixels() * in_channels);
            assert!(outputs * depth > 24_000_000, "three pieces");
            let (values, bias) = (random.floats(out_channels * depth), random.floats(out_channels));
            let (input, residual) = (random.floats(inputs), random.floats(outputs));
            let mut packed = vec![0.0; pack::packed_conv2d_f32_len(&conv)];
            pack::pack_conv2d_f32(&conv, &values, None, &mut packed).unwrap();
            for (filter, form) in [
                (Filter::File { values: &values, scale: None }, FilterForm::File),
                (Filter::Packed(&packed), FilterForm::Packed),
            ] {
                let run = |threads| {
                    on_threads(threads, || {
                        let mut scratch = Scratch::new(workspace::conv2d_f32(&conv, form));
                        let mut output = vec![0.0; outputs];
                        kernels.conv2d_f32(
                            &conv,
                            &input,
                            filter,
                            &bias,
                            Some(&residual),
                            Activation::Silu,
                            0..w.out_h,
                            &mut output,
                            scratch.get(),
                        );
                        bits(&output)
                    })
                };
                assert_same(&run(3), &run(1), || format!("{name}: {conv:?} {form:?}"));
            }
            if pack::has_winograd_form(&conv) {
                let mut packed = vec![0.0; pack::packed_conv2d_winograd_f32_len(&conv)];
                pack::pack_conv2d_winograd_f32(&conv, &values, None, &mut packed).unwrap();
                let run = |threads| {
                    on_threads(threads, || {
                        let mut scratch = Scratch::new(workspace::conv2d_winograd_f32(&conv));
                        let mut output = vec![0.0; outputs];
                        kernels.conv2d_winograd_f32(
                            &conv,
                            &input,
                            &packed,
                            &bias,
                            Some(&residual),
                            Activation::Silu,
                            0..w.out_h,
                            &mut output,
                            scratch.get(),
                        );
                        bits(&output)
                    })
                };
                assert_same(&run(3), &run(1), || format!("{name}: {conv:?} Winograd"));
            }
            let (values, input) = (random.bytes(out_channels * depth), random.bytes(inputs));
            let (multipliers, bias) =
                (multipliers(random, out_channels), biases(random, out_channels));
            let mut packed = vec![0; pack::packed_conv2d_s8_len(&conv)];
            pack::pack_conv2d_s8(&conv, &values, &mut packed).unwrap();
            for filter in [FilterS8::File(&values), FilterS8::Packed(&packed)] {
                let run = |threads| {
                    on_threads(threads, || {
                        let len = workspace::conv2d_s8(&conv, filter.form());
                        let (mut scratch, mut output) = (Scratch::new(len), vec![0; outputs]);
                        kernels.conv2d_s8(
                            &conv,
                            &input,
                            7,
                            filter,
                            &bias,
                            &multipliers,
                            STAGE,
                            0..w.out_h,
                            &mut output,
                            scratch.get(),
                        );
                        output
                    })
                };
                assert_same(&run(3), &run(1), || format!("{name}: {conv:?} int8"));
            }
        }
    }
}

/// Cut into rows of the pool, of which two may read the same rows of the map.
#[test]
fn convolutions_that_pool() {
    for kernels in Kernels::all() {
        let name = kernels.isa().name();
        let random = &mut Random::new(7);
        for (kernel, stride, padding) in [(2, 2, 0), (3, 2, 1)] {
            let (in_channels, out_channels) = (31, 47);
            let conv = Conv2d { window: window((71, 32), 3, 1), in_channels, out_channels };
            let (w, depth) = (&conv.window, conv.window.taps() * in_channels);
            assert!(w.out_pixels() * out_channels * depth > 24_000_000, "three pieces");
            let padding = Padding::symmetric(padding, padding);
            let map = (w.out_h, w.out_w);
            let window = Window::new(map, (kernel, kernel), stride, padding).unwrap();
            let pool = Pool2d { window, channels: out_channels };
            let (rows, outputs) = (window.out_h, window.out_pixels() * out_channels);
            let inputs = w.in_pixels() * in_channels;

            let (values, bias) = (random.floats(out_channels * depth), random.floats(out_channels));
            let input = random.floats(inputs);
            let filter = Filter::File { values: &values, scale: None };
            let len = workspace::conv2d_max_pool2d_f32(&conv, &pool, FilterForm::File);
            let run = |threads| {
                on_threads(threads, || {
                    let (mut scratch, mut output) = (Scratch::new(len), vec![0.0; outputs]);
                    let (relu, scratch) = (Activation::Relu, scratch.get());
                    let output_rows = 0..rows;
                    kernels.conv2d_max_pool2d_f32(
                        &conv,
                        &pool,
                        &input,
                        filter,
                        &bias,
                        relu,
                        output_rows,
                        &mut output,
                        scratch,
                    );
                    bits(&output)
                })
            };
            assert_same(&run(3), &run(1), || format!("{name}: {conv:?} {pool:?}"));

            let (values, input) = (random.bytes(out_channels * depth), random.bytes(inputs));
            let (multipliers, bias) =
                (multipliers(random, out_channels), biases(random, out_channels));
            let mut packed = vec![0; pack::packed_conv2d_s8_len(&conv)];
            pack::pack_conv2d_s8(&conv, &values, &mut packed).unwrap();
            for filter in [FilterS8::File(&values), FilterS8::Packed(&packed)] {
                let run = |threads| {
                    on_threads(threads, || {
                        let len = workspace::conv2d_max_pool2d_s8(&conv, &pool, filter.form());
                        let (mut scratch, mut output) = (Scratch::new(len), vec![0; outputs]);
                        kernels.conv2d_max_pool2d_s8(
                            &conv,
                            &pool,
                            &input,
                            7,
                            filter,
                            &bias,
                            &multipliers,
                            STAGE,
                            0..rows,
                            &mut output,
                            scratch.get(),
                        );
                        output
                    })
                };
                assert_same(&run(3), &run(1), || format!("{name}: {conv:?} {pool:?} int8"));
            }
        }
    }
}

#[test]
fn depthwise_convolutions() {
    for kernels in Kernels::all() {
        let name = kernels.isa().name();
        let random = &mut Random::new(6);
        let channels = 231;
        let conv = DepthwiseConv2d { window: window((67, 64), 5, 1), channels, multiplier: 1 };
        let w = &conv.window;
        let (outputs, inputs) = (w.out_pixels() * channels, w.in_pixels() * channels);
        assert!(outputs * w.taps() > 24_000_000, "three pieces");
        let (values, bias) = (random.floats(w.taps() * channels), random.floats(channels));
        let input = random.floats(inputs);
        let mut packed = vec![0.0; pack::packed_depthwise_conv2d_f32_len(&conv)];
        pack::pack_depthwise_conv2d_f32(w.taps(), 0..channels, &values, None, &mut packed).unwrap();
        for (filter, form) in [
            (Filter::File { values: &values, scale: None }, FilterForm::File),
            (Filter::Packed(&packed), FilterForm::Packed),
        ] {
            let run = |threads| {
                on_threads(threads, || {
                    let len = workspace::depthwise_conv2d_f32(&conv, form);
                    let (mut scratch, mut output) = (Scratch::new(len), vec![0.0; outputs]);
                    kernels.depthwise_conv2d_f32(
                        &conv,
                        &input,
                        filter,
                        &bias,
                        Activation::Relu,
                        0..w.out_h,
                        &mut output,
                        scratch.get(),
                    );
                    bits(&output)
                })
            };
            assert_same(&run(3), &run(1), || format!("{name}: {form:?}"));
        }
        let (values, input) = (random.bytes(w.taps() * channels), random.bytes(inputs));
        let (multipliers, bias) = (multipliers(random, channels), biases(random, channels));
        let mut packed = vec![0; pack::packed_depthwise_conv2d_s8_len(&conv)];
        pack::pack_depthwise_conv2d_s8(&conv, &values, &mut packed).unwrap();
        for filter in [FilterS8::File(&values), FilterS8::Packed(&packed)] {
            let run = |threads| {
                on_threads(threads, || {
                    let len = workspace::depthwise_conv2d_s8(&conv, filter.form());
                    let (mut scratch, mut output) = (Scratch::new(len), vec![0; outputs]);
                    kernels.depthwise_conv2d_s8(
                        &conv,
                        &input,
                        -7,
                        filter,
                        &bias,
                        &multipliers,
                        STAGE,
                        0..w.out_h,
                        &mut output,
                        scratch.get(),
                    );
                    output
                })
            };
            assert_same(&run(3), &run(1), || format!("{name}: int8"));
        }
    }
}

/// Float ones only: an int8 layer of that many rows is rare.
#[test]
fn dense_layers() {
    for kernels in Kernels::all() {
        let name = kernels.isa().name();
        let random = &mut Random::new(7);
        let dense = Dense { rows: 59, in_features: 777, out_features: 555 };
        let (inputs, outputs) = (59 * 777, 59 * 555);
        assert!(outputs * 777 > 24_000_000, "three pieces");
        let (values, bias) = (random.floats(777 * 555), random.floats(555));
        let input = random.floats(inputs);
        let run = |threads| {
            on_threads(threads, || {
                let filter = Filter::File { values: &values, scale: None };
                let mut output = vec![0.0; outputs];
                kernels.dense_f32(&dense, &input, filter, &bias, Activation::Relu, &mut output);
                bits(&output)
            })
        };
        assert_same(&run(3), &run(1), || format!("{name}: f32"));
    }
}
