//! Arguments that do not fit are refused, whatever they are.

use crate::harness::{Scratch, on_each_isa};
use netkit_core::op::{Activation, Conv2d, Padding, Pool2d, Window};
use netkit_kernels::{Filter, FilterForm, Kernels, workspace};

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

/// A pool that is not one of the convolution's map, or of which something is missing.
#[test]
fn what_does_not_fit_a_pool_leaves_the_output_as_it_was() {
    on_each_isa(|kernels| {
        let conv = Conv2d { window: window(), in_channels: 1, out_channels: 1 };
        let fits = Window::new((2, 2), (2, 2), 2, Padding::default()).unwrap();
        let pool = |window| Pool2d { window, channels: 1 };
        let bytes = workspace::conv2d_max_pool2d_f32(&conv, &pool(fits), FilterForm::File);
        let run = |pool: Pool2d, input: usize, scratch: usize| {
            let filter = Filter::File { values: &[1.0; 4], scale: None };
            let mut memory = Scratch::new(scratch);
            let (input, bias, none, mut output) =
                (vec![1.0; input], [0.0], Activation::None, [7.0]);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let scratch = memory.get();
                kernels.conv2d_max_pool2d_f32(
                    &conv,
                    &pool,
                    &input,
                    filter,
                    &bias,
                    none,
                    0..1,
                    &mut output,
                    scratch,
                );
            }));
            (result.is_err() || output == [7.0], output)
        };
        assert_eq!(run(pool(fits), 9, bytes), (false, [4.0]), "this one fits");
        assert!(run(pool(fits), 8, bytes).0);
        if bytes > 0 {
            assert!(run(pool(fits), 9, bytes - 1).0);
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
            assert!(run(pool(wrong), 9, 1 << 12).0, "{wrong:?}");
        }
        assert!(run(Pool2d { window: fits, channels: 2 }, 9, 1 << 12).0);
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
