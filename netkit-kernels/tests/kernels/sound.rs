//! Arguments that do not fit are refused, whatever they are.

use crate::harness::{Scratch, on_each_isa};
use netkit_core::op::{Activation, Conv2d, DepthwiseConv2d, Padding, Pool2d, Window};
use netkit_core::quant::{Multiplier, OutputStage};
use netkit_kernels::{Filter, FilterForm, FilterS8, Kernels, workspace};

fn window() -> Window {
    Window::new((3, 3), (2, 2), 1, Padding::default()).unwrap()
}

fn convolve(kernels: Kernels, window: Window, input: usize, rows: core::ops::Range<usize>) -> bool {
    let conv = Conv2d { window, in_channels: 1, out_channels: 1 };
    let filter = Filter::File { values: &[1.0; 4], scale: None };
    let (input, bias, none) = (vec![1.0; input], [0.0], Activation::None);
    let mut output = [7.0; 4];
    let mut scratch = vec![0; 1 << 20];
    let scratch = &mut scratch[..];
    let start = scratch.as_ptr().align_offset(64);
    let scratch = &mut scratch[start..];
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        kernels.conv2d_f32(&conv, &input, filter, &bias, None, none, rows, &mut output, scratch);
    }));
    // A panic in builds with debug assertions, an output as it was in others.
    result.is_err() || output == [7.0; 4]
}

#[test]
fn hostile_windows_are_refused_or_computed_but_never_read_out_of_bounds() {
    on_each_isa(|kernels| {
        assert!(!convolve(kernels, window(), 9, 0..2), "this one fits");
        assert!(convolve(kernels, window(), 8, 0..2));
        assert!(convolve(kernels, window(), 9, 1..3));
        #[allow(clippy::reversed_empty_ranges, reason = "what a caller may write by mistake")]
        let backwards = 2..1;
        assert!(convolve(kernels, window(), 9, backwards));
        // The last is one whose square overflows.
        for wrong in [0, usize::MAX, usize::MAX / 2, 1 << (usize::BITS / 2 + 1)] {
            let w = window();
            assert!(convolve(kernels, Window { kernel_h: wrong, ..w }, 9, 0..2));
            assert!(convolve(kernels, Window { kernel_w: wrong, ..w }, 9, 0..2));
            assert!(convolve(kernels, Window { stride_h: wrong, ..w }, 9, 0..2));
            assert!(convolve(kernels, Window { stride_w: wrong, ..w }, 9, 0..2));
            assert!(convolve(kernels, Window { dilation_h: wrong, ..w }, 9, 0..2));
            assert!(convolve(kernels, Window { dilation_w: wrong, ..w }, 9, 0..2));
            if wrong != 0 {
                assert!(convolve(kernels, Window { pad_top: wrong, ..w }, 9, 0..2));
                assert!(convolve(kernels, Window { pad_left: wrong, ..w }, 9, 0..2));
                assert!(convolve(kernels, Window { out_h: wrong, ..w }, 9, 0..wrong));
                assert!(convolve(kernels, Window { out_w: wrong, ..w }, 9, 0..2));
            }
        }
    });
}

/// A door that pools, called for a convolution of one channel and weights of ones.
type PooledDoor = fn(Kernels, &Window, &Pool2d, &[i8], &mut [u8]) -> i32;

/// The doors; each gives its only output.
const POOLED_DOORS: [PooledDoor; 4] = [
    |kernels, &window, pool, input, scratch| {
        let conv = Conv2d { window, in_channels: 1, out_channels: 1 };
        let input: Vec<f32> = input.iter().map(|&x| x.into()).collect();
        let (filter, none) = (Filter::File { values: &[1.0; 4], scale: None }, Activation::None);
        let mut output = [7.0];
        let to = &mut output;
        kernels.conv2d_max_pool2d_f32(&conv, pool, &input, filter, &[0.0], none, 0..1, to, scratch);
        output[0] as i32
    },
    |kernels, &window, pool, input, scratch| {
        let conv = DepthwiseConv2d { window, channels: 1, multiplier: 1 };
        let input: Vec<f32> = input.iter().map(|&x| x.into()).collect();
        let (filter, none) = (Filter::File { values: &[1.0; 4], scale: None }, Activation::None);
        let mut output = [7.0];
        let (to, bias) = (&mut output, &[0.0]);
        kernels.depthwise_conv2d_max_pool2d_f32(
            &conv,
            pool,
            &input,
            filter,
            bias,
            none,
            0..1,
            to,
            scratch,
        );
        output[0] as i32
    },
    |kernels, &window, pool, input, scratch| {
        let conv = Conv2d { window, in_channels: 1, out_channels: 1 };
        let mut output = [7];
        let (filter, to) = (FilterS8::File(&[1; 4]), &mut output);
        let (bias, stage) = (&[0], STAGE);
        kernels.conv2d_max_pool2d_s8(
            &conv,
            pool,
            input,
            0,
            filter,
            bias,
            &ONE,
            stage,
            0..1,
            to,
            scratch,
        );
        output[0].into()
    },
    |kernels, &window, pool, input, scratch| {
        let conv = DepthwiseConv2d { window, channels: 1, multiplier: 1 };
        let mut output = [7];
        let (filter, to) = (FilterS8::File(&[1; 4]), &mut output);
        let (bias, stage) = (&[0], STAGE);
        kernels.depthwise_conv2d_max_pool2d_s8(
            &conv,
            pool,
            input,
            0,
            filter,
            bias,
            &ONE,
            stage,
            0..1,
            to,
            scratch,
        );
        output[0].into()
    },
];

const STAGE: OutputStage = OutputStage { zero_point: 0, low: -128, high: 127 };

/// A multiplier that leaves sums as they are.
const ONE: [Multiplier; 1] = [Multiplier { multiplier: 1 << 30, shift: 1 }];

/// A pool that is not one of the convolution's map, or of which something is missing.
#[test]
fn what_does_not_fit_a_pool_leaves_the_output_as_it_was() {
    on_each_isa(|kernels| {
        let fits = Window::new((2, 2), (2, 2), 2, Padding::default()).unwrap();
        let pool = |window| Pool2d { window, channels: 1 };
        for (i, door) in POOLED_DOORS.into_iter().enumerate() {
            let run = |of: &Window, pool: &Pool2d, input: usize, scratch: usize| {
                let mut memory = Scratch::new(scratch);
                let input = vec![1; input];
                let run = || door(kernels, of, pool, &input, memory.get());
                // A panic in builds with debug assertions, an output as it was in others.
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or(7)
            };
            let enough = 1 << 12;
            assert_eq!(run(&window(), &pool(fits), 9, enough), 4, "door {i}: this one fits");
            assert_eq!(run(&window(), &pool(fits), 8, enough), 7, "door {i}: input");
            for wrong in [
                Window { in_h: 3, ..fits },
                Window { in_w: 1, ..fits },
                Window { kernel_h: 0, ..fits },
                Window { stride_w: 0, ..fits },
                Window { pad_top: usize::MAX, ..fits },
                Window { dilation_h: usize::MAX / 2, ..fits },
                Window { out_w: usize::MAX, ..fits },
            ] {
                assert_eq!(run(&window(), &pool(wrong), 9, enough), 7, "door {i}: {wrong:?}");
            }
            let channels = Pool2d { window: fits, channels: 2 };
            assert_eq!(run(&window(), &channels, 9, enough), 7, "door {i}: channels");
            // The last is one whose square overflows.
            for wrong in [0, usize::MAX, usize::MAX / 2, 1 << (usize::BITS / 2 + 1)] {
                let w = window();
                for of in [
                    Window { kernel_h: wrong, ..w },
                    Window { stride_w: wrong, ..w },
                    Window { dilation_h: wrong, ..w },
                    Window { out_h: wrong, ..w },
                    Window { in_w: wrong, ..w },
                ] {
                    assert_eq!(run(&of, &pool(fits), 9, enough), 7, "door {i}: {of:?}");
                }
            }
        }
        let conv = Conv2d { window: window(), in_channels: 1, out_channels: 1 };
        let pool = pool(fits);
        let bytes = workspace::conv2d_max_pool2d_f32(&conv, &pool, FilterForm::File);
        if let Some(less) = bytes.checked_sub(1) {
            let mut memory = Scratch::new(less);
            let run = || POOLED_DOORS[0](kernels, &window(), &pool, &[1; 9], memory.get());
            let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            assert_eq!(run.unwrap_or(7), 7, "scratch");
        }
    });
}

#[test]
fn b22_scratch_that_is_short_or_misaligned_is_refused() {
    on_each_isa(|kernels| {
        let window = Window::new((3, 3), (3, 3), 1, Padding::symmetric(1, 1)).unwrap();
        let conv = Conv2d { window, in_channels: 1, out_channels: 1 };
        let packed = vec![1.0; 9 * 16];
        let mut memory = vec![0u8; 4096];
        let start = memory.as_ptr().align_offset(64);
        for scratch in [start..start + 16, start + 1..4000] {
            let mut output = [7.0; 9];
            let scratch = &mut memory[scratch];
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let filter = Filter::Packed(&packed);
                let none = Activation::None;
                kernels.conv2d_f32(
                    &conv,
                    &[1.0; 9],
                    filter,
                    &[0.0],
                    None,
                    none,
                    0..3,
                    &mut output,
                    scratch,
                );
            }));
            assert!(result.is_err() || output == [7.0; 9]);
        }
    });
}
