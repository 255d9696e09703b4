//! Pitfall B30: loads and stores past the end of a tail.
//!
//! Every kernel that takes lengths, at every length up to four of its vectors and one more, with every slice ending where
//! a page begins that may not be touched. Each is compared with the reference too, as everywhere else.
#![cfg(all(unix, not(miri)))]

use crate::harness::*;
use crate::{activation_f32, conv2d_f32, conv2d_s8, conv2d_winograd_f32, dense_f32, dense_s8};
use crate::{depthwise_conv2d_f32, depthwise_conv2d_s8, elementwise_f32, elementwise_s8};
use crate::{max_pooled, move_data, norm_f32, pool2d_f32, pool2d_s8};
use netkit_core::op::{Concat, Conv2d, Dense, DepthwiseConv2d, Padding, Pool2d, Upsample2x};
use netkit_kernels::{Isa, Kernels};
use std::ops::RangeInclusive;

/// Lengths of slices of elements of this many bytes: `1..=4·lanes+1`.
fn lengths(kernels: Kernels, bytes: usize) -> RangeInclusive<usize> {
    let vector = match kernels.isa() {
        Isa::Avx512 | Isa::Avx512Vnni => 64,
        Isa::Avx2 | Isa::AvxVnni => 32,
        _ => 16,
    };
    1..=4 * (vector / bytes) + 1
}

/// Calls the test with every length of floats, and of bytes, on every instruction set.
fn at_every_length(bytes: usize, test: impl Fn(Kernels, usize, &mut Random)) {
    on_each_isa_at(&[Place::BeforeGuardPage], |kernels| {
        let random = &mut Random::new(30);
        for len in lengths(kernels, bytes) {
            test(kernels, len, random);
        }
    });
}

#[test]
fn b30_elementwise_kernels_end_at_a_guard_page_at_every_length() {
    at_every_length(4, |kernels, len, random| {
        elementwise_f32::add(kernels, len, random);
        activation_f32::every_activation(kernels, len);
        norm_f32::softmax(kernels, len, random);
        norm_f32::batch_norm(kernels, len, random);
        norm_f32::layer_norm(kernels, len, random);
        norm_f32::global_response_norm(kernels, len, random);
        let shape = Upsample2x { in_h: 2, in_w: 3, channels: len };
        move_data::upsample(&shape, &random.floats(6 * len), len);
        let shape = Concat { outer: 3, inner: [len, 5, 0, 0] };
        move_data::join(&shape, &[random.floats(3 * len), random.floats(15)], len);
    });
    at_every_length(1, |kernels, len, random| {
        for _ in 0..4 {
            elementwise_s8::add(kernels, len, random);
            elementwise_s8::softmax(kernels, len, random);
        }
        let shape = Upsample2x { in_h: 2, in_w: 3, channels: len };
        move_data::upsample(&shape, &random.bytes(6 * len), len);
        let shape = Concat { outer: 3, inner: [len, 5, 0, 0] };
        move_data::join(&shape, &[random.bytes(3 * len), random.bytes(15)], len);
    });
}

#[test]
fn b30_dense_kernels_end_at_a_guard_page_at_every_length() {
    for rows in [1, 3] {
        at_every_length(4, |kernels, len, random| {
            let activation = random.choose(&ACTIVATIONS);
            for (in_features, out_features) in [(len, 5), (7, len), (len, len)] {
                let dense = Dense { rows, in_features, out_features };
                dense_f32::check(kernels, dense, activation, random.next());
            }
        });
        at_every_length(1, |kernels, len, random| {
            for (in_features, out_features) in [(len, 5), (7, len), (len, len)] {
                dense_s8::check(
                    kernels,
                    Dense { rows, in_features, out_features },
                    0,
                    random.next(),
                );
            }
        });
    }
}

/// Pointwise, with and without padding, at a stride, larger: windows that have kernels of their own.
const CONVOLUTIONS: [usize; 5] = [1, 2, 6, 8, 12];

#[test]
fn b30_convolutions_end_at_a_guard_page_at_every_number_of_channels() {
    for case in CONVOLUTIONS {
        let window = window(WINDOWS[case]);
        at_every_length(4, |kernels, len, random| {
            let activation = random.choose(&ACTIVATIONS);
            for (in_channels, out_channels) in [(len, 5), (3, len)] {
                let conv = Conv2d { window, in_channels, out_channels };
                conv2d_f32::check(kernels, conv, activation, random.next());
                max_pooled::check_conv_f32(kernels, conv, activation, random.next());
            }
            let conv = DepthwiseConv2d { window, channels: len, multiplier: 1 };
            depthwise_conv2d_f32::check(kernels, conv, activation, random.next());
            max_pooled::check_depthwise_f32(kernels, conv, activation, random.next());
            pool2d_f32::check(kernels, Pool2d { window, channels: len }, random.next());
        });
        at_every_length(1, |kernels, len, random| {
            for (in_channels, out_channels) in [(len, 5), (3, len)] {
                let conv = Conv2d { window, in_channels, out_channels };
                conv2d_s8::check(kernels, conv, random.next());
                max_pooled::check_conv_s8(kernels, conv, true, random.next());
            }
            for multiplier in [1, 2] {
                let conv = DepthwiseConv2d { window, channels: len, multiplier };
                depthwise_conv2d_s8::check(kernels, conv, random.next());
                max_pooled::check_depthwise_s8(kernels, conv, true, random.next());
            }
            pool2d_s8::check(kernels, Pool2d { window, channels: len }, random.next());
        });
    }
    let padding = Padding { top: 1, left: 1, bottom: 1, right: 1 };
    at_every_length(4, |kernels, len, random| {
        for (in_channels, out_channels) in [(len, 5), (3, len)] {
            let conv = conv2d_winograd_f32::conv((5, 6), padding, in_channels, out_channels);
            let activation = random.choose(&ACTIVATIONS);
            conv2d_winograd_f32::check(kernels, conv.unwrap(), activation, random.next());
        }
    });
}

/// Rows of every width: tiles of pixels have tails as vectors of channels have.
#[test]
fn b30_convolutions_end_at_a_guard_page_at_every_width() {
    on_each_isa_at(&[Place::BeforeGuardPage], |kernels| {
        let random = &mut Random::new(31);
        for in_w in lengths(kernels, 4) {
            for (kernel, stride, pad) in [(1, 1, 0), (3, 1, 1), (3, 2, 1), (5, 1, 2)] {
                let window = window((4, in_w, kernel, kernel, stride, pad, pad, pad, pad));
                for in_channels in [1, 3, 9] {
                    let conv = Conv2d { window, in_channels, out_channels: 19 };
                    conv2d_f32::check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
                    conv2d_s8::check(kernels, conv, random.next());
                }
                let conv = DepthwiseConv2d { window, channels: 17, multiplier: 1 };
                let activation = random.choose(&ACTIVATIONS);
                depthwise_conv2d_f32::check(kernels, conv, activation, random.next());
                depthwise_conv2d_s8::check(kernels, conv, random.next());
                pool2d_f32::check(kernels, Pool2d { window, channels: 3 }, random.next());
                pool2d_s8::check(kernels, Pool2d { window, channels: 3 }, random.next());
            }
        }
    });
}
