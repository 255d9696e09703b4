//! Pools.

use crate::harness::*;
use netkit_core::op::Pool2d;
use netkit_kernels::{Kernels, reference};

pub(crate) fn check(kernels: Kernels, pool: Pool2d, seed: u64) {
    let random = &mut Random::new(seed);
    let w = pool.window;
    let input = random.floats(w.in_pixels() * pool.channels);
    let offset = random.below(16);
    let what = || format!("{}: {pool:?}", kernels.isa().name());
    let len = w.out_pixels() * pool.channels;
    let [mut max, mut average, mut magnitude] = [(); 3].map(|()| vec![0.0; len]);
    reference::max_pool2d_f32(&pool, &input, &mut max);
    reference::average_pool2d_f32(&pool, &input, &mut average);
    reference::average_pool2d_f32(&pool, &absolute(&input), &mut magnitude);

    let input = Guarded::new(&input, offset);
    for cut in cuts(w.out_h) {
        let (mut maxima, mut averages) = (Vec::new(), Vec::new());
        for rows in cut {
            let len = rows.len() * w.out_w * pool.channels;
            let mut output = Guarded::output(len, offset + 7);
            kernels.max_pool2d_f32(&pool, input.get(), rows.clone(), output.get_mut());
            output.check();
            maxima.extend_from_slice(output.get());
            let mut output = Guarded::output(len, offset + 7);
            kernels.average_pool2d_f32(&pool, input.get(), rows, output.get_mut());
            output.check();
            averages.extend_from_slice(output.get());
        }
        assert_eq!(maxima, max, "{}", what());
        let bound = |i: usize| sum_bound(w.taps() + 1, magnitude[i], average[i]);
        assert_within(&averages, &average, bound, what);
    }
}

#[test]
fn every_window_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        for (seed, case) in WINDOWS.into_iter().enumerate() {
            for channels in [1, 3, 16, 21, 64] {
                check(kernels, Pool2d { window: window(case), channels }, seed as u64);
            }
        }
    });
}

#[test]
fn every_channel_tail_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(2);
        for channels in channel_counts(kernels) {
            check(kernels, Pool2d { window: window(random.choose(&WINDOWS)), channels }, 5);
        }
    });
}

/// The common pools at widths around vector and tile sizes.
#[test]
fn two_by_two_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        for in_w in 2..30 {
            for channels in [1, 2, 8, 32] {
                check(
                    kernels,
                    Pool2d { window: window((6, in_w, 2, 2, 2, 0, 0, 0, 0)), channels },
                    6,
                );
            }
        }
        for size in [1, 7, 13] {
            let whole = (size, size, size as u32, size as u32, 1, 0, 0, 0, 0);
            check(kernels, Pool2d { window: window(whole), channels: 70 }, 7);
        }
    });
}

#[test]
fn nan_and_minus_infinity_never_win_and_empty_windows_have_a_value() {
    on_each_isa(|kernels| {
        let pool = |case| Pool2d { window: window(case), channels: 1 };
        let row = [f32::NAN, 1.0, f32::NAN, -2.0, f32::NAN, f32::NEG_INFINITY];
        let mut output = [0.0; 3];
        kernels.max_pool2d_f32(&pool((1, 6, 1, 2, 2, 0, 0, 0, 0)), &row, 0..1, &mut output);
        assert_eq!(output, [1.0, -2.0, -f32::MAX]);

        let padded = pool((1, 1, 1, 1, 1, 0, 1, 0, 1));
        kernels.max_pool2d_f32(&padded, &[-7.0], 0..1, &mut output);
        assert_eq!(output, [-f32::MAX, -7.0, -f32::MAX]);
        kernels.average_pool2d_f32(&padded, &[-7.0], 0..1, &mut output);
        assert_eq!(output, [0.0, -7.0, 0.0]);
    });
}

#[test]
fn any_geometry_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(8);
        for _ in 0..random_cases(200) {
            let pool = Pool2d { window: any_window(random), channels: 1 + random.below(70) };
            check(kernels, pool, random.next());
        }
    });
}
