//! Int8 pooling.

use crate::harness::*;
use netkit_core::op::{Padding, Pool2d, Window};
use netkit_kernels::{Kernels, reference};

type Door = fn(Kernels, &Pool2d, &[i8], std::ops::Range<usize>, &mut [i8]);
type Reference = fn(&Pool2d, &[i8], &mut [i8]);
const POOLS: [(&str, Door, Reference); 2] = [
    ("max", Kernels::max_pool2d_s8, reference::max_pool2d_s8),
    ("average", Kernels::average_pool2d_s8, reference::average_pool2d_s8),
];

pub(crate) fn check(kernels: Kernels, pool: Pool2d, seed: u64) {
    let random = &mut Random::new(seed);
    let w = pool.window;
    let input = Guarded::new(&random.bytes(w.in_pixels() * pool.channels), random.below(64));
    for (name, door, reference) in POOLS {
        let mut expected = vec![0; w.out_pixels() * pool.channels];
        reference(&pool, input.get(), &mut expected);
        for cut in cuts(w.out_h) {
            let run = |rows: std::ops::Range<usize>| {
                let mut output =
                    Guarded::output(rows.len() * w.out_w * pool.channels, random_offset(seed));
                door(kernels, &pool, input.get(), rows, output.get_mut());
                output.check();
                output.get().to_vec()
            };
            let pieces: Vec<i8> = cut.into_iter().flat_map(run).collect();
            assert!(pieces == expected, "{} {name} {pool:?}, seed {seed}", kernels.isa().name());
        }
    }
}

fn random_offset(seed: u64) -> usize {
    Random::new(seed ^ 1).below(64)
}

#[test]
fn every_window_equals_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(1);
        for case in WINDOWS {
            for _ in 0..10 {
                let channels = 1 + random.below(100);
                check(kernels, Pool2d { window: window(case), channels }, random.next());
            }
        }
    });
}

#[test]
fn every_channel_tail_equals_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(2);
        for channels in 1..200 {
            let window = window(random.choose(&WINDOWS));
            check(kernels, Pool2d { window, channels }, random.next());
        }
    });
}

#[test]
fn global_pools_equal_the_reference() {
    on_each_isa(|kernels| {
        for size in [7, 112, 300] {
            let window =
                Window::new((size, size), (size as u32, size as u32), 1, Padding::default());
            for seed in 0..8 {
                check(kernels, Pool2d { window: window.unwrap(), channels: 19 }, seed);
            }
            check(kernels, Pool2d { window: window.unwrap(), channels: 147 }, 8);
        }
    });
}

/// Section 12 of the specification.
#[test]
fn b17_means_round_away_from_zero() {
    on_each_isa(|kernels| {
        for (input, expected) in [
            (&[3, -2][..], 1),
            (&[-5, -4, -4, -5], -5),
            (&[-3, -3, -2, -2], -3),
            (&[3, 3, 2, 2], 3),
            (&[1, 0, 0, 0], 0),
        ] {
            let (height, width) = (input.len() / 2, 2);
            let window =
                Window::new((height, width), (height as u32, 2), 1, Padding::default()).unwrap();
            let mut output = [99];
            let pool = Pool2d { window, channels: 1 };
            kernels.average_pool2d_s8(&pool, input, 0..1, &mut output);
            assert_eq!(output, [expected], "{input:?}");
        }
    });
}

/// A file of a hundred bytes may ask for the mean of so many values that their sum does not fit 32 bits.
#[test]
fn means_of_millions_do_not_overflow() {
    let side = 4097;
    let window = Window::new((side, side), (side as u32, side as u32), 1, Padding::default());
    let pool = Pool2d { window: window.unwrap(), channels: 1 };
    for x in [i8::MIN, i8::MAX] {
        let input = vec![x; side * side];
        for kernels in Kernels::all() {
            let mut output = [0];
            kernels.average_pool2d_s8(&pool, &input, 0..1, &mut output);
            assert_eq!(output, [x], "{}", kernels.isa().name());
        }
    }
}
