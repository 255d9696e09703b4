//! Geometries that have gone wrong somewhere.

use super::Random;
use netkit_core::op::{Activation, Padding, Window};
use netkit_kernels::Kernels;
use std::ops::Range;

pub(crate) const ACTIVATIONS: [Activation; 8] = [
    Activation::None,
    Activation::Relu,
    Activation::Relu6,
    Activation::LeakyRelu(0.1),
    Activation::Sigmoid,
    Activation::Tanh,
    Activation::Silu,
    Activation::Gelu,
];

/// Input height and width, kernel height and width, stride, padding top, left, bottom, right.
type WindowCase = (usize, usize, u32, u32, u32, u32, u32, u32, u32);

pub(crate) const WINDOWS: [WindowCase; 22] = [
    (1, 1, 1, 1, 1, 0, 0, 0, 0),
    (5, 7, 1, 1, 1, 0, 0, 0, 0),
    // A 1×1 kernel with padding is not pointwise: a padded pixel is the bias.
    (3, 4, 1, 1, 1, 1, 1, 1, 1),
    (5, 6, 1, 1, 2, 0, 0, 0, 0),
    (5, 6, 1, 1, 2, 1, 1, 0, 0),
    (4, 4, 3, 3, 1, 0, 0, 0, 0),
    (7, 7, 3, 3, 1, 1, 1, 1, 1),
    (6, 17, 3, 3, 1, 1, 1, 1, 1),
    (9, 8, 3, 3, 2, 1, 1, 1, 1),
    // SAME at stride 2 pads the end only (even size) or both (odd).
    (8, 8, 3, 3, 2, 0, 0, 1, 1),
    (4, 4, 3, 3, 2, 1, 1, 0, 0),
    (7, 9, 2, 4, 1, 0, 1, 1, 2),
    (6, 5, 5, 5, 1, 2, 2, 2, 2),
    // A padded kernel wider than the map, and one that sees a single column of it.
    (1, 1, 5, 5, 1, 2, 2, 2, 2),
    (2, 3, 7, 7, 1, 3, 3, 3, 3),
    // Padding larger than the kernel: windows that see nothing.
    (3, 3, 2, 2, 1, 4, 3, 4, 5),
    (4, 5, 2, 2, 3, 3, 4, 3, 6),
    // Stride larger than the kernel.
    (9, 11, 2, 2, 4, 0, 0, 0, 0),
    (8, 3, 3, 1, 2, 1, 0, 1, 0),
    (3, 8, 1, 3, 2, 0, 1, 0, 1),
    (11, 30, 3, 3, 1, 1, 1, 1, 1),
    (4, 4, 4, 4, 1, 0, 0, 0, 0),
];

pub(crate) fn window(case: WindowCase) -> Window {
    let (in_h, in_w, kernel_h, kernel_w, stride, top, left, bottom, right) = case;
    let padding = Padding { top, left, bottom, right };
    Window::new((in_h, in_w), (kernel_h, kernel_w), stride, padding).unwrap()
}

/// Every tail: 1 to four widest vectors and one more.
pub(crate) fn channel_counts(_: Kernels) -> Range<usize> {
    1..66
}

/// Ways to cut output rows: not at all, one by one, unevenly.
pub(crate) fn cuts(out_h: usize) -> [Vec<Range<usize>>; 3] {
    let single = (0..out_h).map(|row| row..row + 1).collect();
    [pieces([0, out_h]), single, pieces([0, out_h / 3, out_h])]
}

fn pieces<const N: usize>(ends: [usize; N]) -> Vec<Range<usize>> {
    ends.windows(2).map(|ends| ends[0]..ends[1]).filter(|rows| !rows.is_empty()).collect()
}

/// A 3×3 window over an 11×13 map with dilation and strides of their own in each direction.
pub(crate) fn dilated(
    dilation_h: usize,
    dilation_w: usize,
    stride_h: usize,
    stride_w: usize,
) -> Window {
    let (in_h, in_w, kernel) = (11, 13, 3);
    let (pad_top, pad_left) = (1, 2);
    let size = |input: usize, pad: usize, stride: usize, dilation: usize| {
        (input + 2 * pad - ((kernel - 1) * dilation + 1)) / stride + 1
    };
    Window {
        in_h,
        in_w,
        out_h: size(in_h, pad_top, stride_h, dilation_h),
        out_w: size(in_w, pad_left, stride_w, dilation_w),
        kernel_h: kernel,
        kernel_w: kernel,
        stride_h,
        stride_w,
        dilation_h,
        dilation_w,
        pad_top,
        pad_left,
    }
}

/// Any small window, with padding of its own on each side.
pub(crate) fn any_window(random: &mut Random) -> Window {
    loop {
        let input = (1 + random.below(9), 1 + random.below(12));
        let kernel = (1 + random.below(5) as u32, 1 + random.below(5) as u32);
        let mut pad = || random.choose(&[0, 0, 1, 2, 3]);
        let padding = Padding { top: pad(), left: pad(), bottom: pad(), right: pad() };
        let stride = random.choose(&[1, 1, 2, 3]);
        if let Some(window) = Window::new(input, kernel, stride, padding) {
            return window;
        }
    }
}
