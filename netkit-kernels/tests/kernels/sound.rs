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
struct PooledDoor {
    name: &'static str,
    /// What its scratch takes, the filter being in file order.
    scratch: fn(&Window, &Pool2d) -> usize,
    /// Gives its only output.
    call: fn(Kernels, &Window, &Pool2d, &[i8], &mut [u8]) -> i32,
}

/// The door of a name: its convolution of one channel, its filter and bias, and what else stands between bias and rows.
macro_rules! door {
    ($door:ident, $conv:expr, $input:expr, ($($zero_point:expr)?), $filter:expr, $bias:expr, ($($more:expr),+)) => {
        PooledDoor {
            name: stringify!($door),
            scratch: |&window, pool| workspace::$door(&$conv(window), pool, FilterForm::File),
            call: |kernels, &window, pool, input, scratch| {
                let input: Vec<_> = input.iter().map($input).collect();
                let (conv, mut output) = ($conv(window), [7i8.into()]);
                kernels.$door(
                    &conv, pool, &input, $($zero_point,)? $filter, $bias, $($more,)+ 0..1, &mut output, scratch,
                );
                output[0] as i32
            },
        }
    };
}

/// One that takes floats, and one that takes bytes.
macro_rules! doors {
    ($f32:ident, $s8:ident, $conv:expr) => {
        [
            door!(
                $f32,
                $conv,
                |&x| f32::from(x),
                (),
                Filter::File { values: &[1.0; 4], scale: None },
                &[0.0],
                (Activation::None)
            ),
            door!($s8, $conv, |&x| x, (0), FilterS8::File(&[1; 4]), &[0], (&ONE, STAGE)),
        ]
    };
}

const POOLED_DOORS: [[PooledDoor; 2]; 2] = [
    doors!(conv2d_max_pool2d_f32, conv2d_max_pool2d_s8, convolution),
    doors!(depthwise_conv2d_max_pool2d_f32, depthwise_conv2d_max_pool2d_s8, depthwise),
];

fn convolution(window: Window) -> Conv2d {
    Conv2d { window, in_channels: 1, out_channels: 1 }
}

fn depthwise(window: Window) -> DepthwiseConv2d {
    DepthwiseConv2d { window, channels: 1, multiplier: 1 }
}

const STAGE: OutputStage = OutputStage { zero_point: 0, low: -128, high: 127 };

/// A multiplier that leaves sums as they are.
const ONE: [Multiplier; 1] = [Multiplier { multiplier: 1 << 30, shift: 1 }];

/// A pool that is not one of the convolution's map, or of which something is missing.
#[test]
fn what_does_not_fit_a_pool_leaves_the_output_as_it_was() {
    on_each_isa(|kernels| {
        let fits = Window::new((2, 2), (2, 2), 2, Padding::default()).unwrap();
        let pool = |window| Pool2d { window, channels: 1 };
        for PooledDoor { name, scratch, call } in POOLED_DOORS.as_flattened() {
            let run = |of: &Window, pool: &Pool2d, input: usize, scratch: usize| {
                let mut memory = Scratch::new(scratch);
                let input = vec![1; input];
                let run = || call(kernels, of, pool, &input, memory.get());
                // A panic in builds with debug assertions, an output as it was in others.
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or(7)
            };
            let (bytes, more) = (scratch(&window(), &pool(fits)), 1 << 12);
            assert_eq!(run(&window(), &pool(fits), 9, bytes), 4, "{name}: this one fits");
            assert_eq!(run(&window(), &pool(fits), 8, bytes), 7, "{name}: input");
            if bytes > 0 {
                assert_eq!(run(&window(), &pool(fits), 9, bytes - 1), 7, "{name}: scratch");
            }
            for wrong in [
                Window { in_h: 3, ..fits },
                Window { in_w: 1, ..fits },
                Window { kernel_h: 0, ..fits },
                Window { stride_w: 0, ..fits },
                Window { pad_top: usize::MAX, ..fits },
                Window { dilation_h: usize::MAX / 2, ..fits },
                Window { out_w: usize::MAX, ..fits },
            ] {
                assert_eq!(run(&window(), &pool(wrong), 9, more), 7, "{name}: {wrong:?}");
            }
            let channels = Pool2d { window: fits, channels: 2 };
            assert_eq!(run(&window(), &channels, 9, more), 7, "{name}: channels");
            // The last is one whose square overflows.
            for wrong in [0, usize::MAX, usize::MAX / 2, 1 << (usize::BITS / 2 + 1)] {
                let w = window();
                for of in [
                    Window { kernel_h: wrong, ..w },
                    Window { stride_h: wrong, ..w },
                    Window { dilation_h: wrong, ..w },
                    Window { out_h: wrong, ..w },
                    Window { in_w: wrong, ..w },
                ] {
                    assert_eq!(run(&of, &pool(fits), 9, more), 7, "{name}: {of:?}");
                }
            }
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
