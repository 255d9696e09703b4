//! Which layers the library is given: those for which it is certain that it computes what
//! [`netkit_core::quant`] defines, and that it reads and writes what belongs to the layer.
//!
//! Everything else is declined, and the kernels of this crate compute it.

use netkit_core::op::{Conv2d, Dense, DepthwiseConv2d, Pool2d, Window};
use netkit_core::quant::{Multiplier, OutputStage};

/// The library narrows dimensions to 16 bits, some of them signed.
const LARGEST: usize = i16::MAX as usize;

/// Sizes and offsets of tensors are 32 bits wide, on 64-bit hosts too.
const LONGEST: usize = i32::MAX as usize;

const fn fits(dimension: usize) -> bool {
    dimension >= 1 && dimension <= LARGEST
}

const fn is_short(dimensions: [usize; 4]) -> bool {
    let [a, b, c, d] = dimensions;
    a.saturating_mul(b).saturating_mul(c).saturating_mul(d) <= LONGEST
}

/// Whether along one axis every placement of the window overlaps the map. The library does not check, and a window that
/// sees only padding makes it read and write elsewhere.
const fn overlaps(input: usize, output: usize, kernel: usize, stride: usize, pad: usize) -> bool {
    pad < kernel && output.saturating_sub(1).saturating_mul(stride) < input.saturating_add(pad)
}

const fn window(w: &Window) -> bool {
    fits(w.in_h)
        && fits(w.in_w)
        && fits(w.out_h)
        && fits(w.out_w)
        && fits(w.kernel_h)
        && fits(w.kernel_w)
        && fits(w.stride_h)
        && fits(w.stride_w)
        && w.dilation_h == 1
        && w.dilation_w == 1
        && overlaps(w.in_h, w.out_h, w.kernel_h, w.stride_h, w.pad_top)
        && overlaps(w.in_w, w.out_w, w.kernel_w, w.stride_w, w.pad_left)
}

/// Whether the library computes such a convolution.
pub(super) const fn conv2d(conv: &Conv2d) -> bool {
    let (w, inputs, outputs) = (&conv.window, conv.in_channels, conv.out_channels);
    if !(window(w)
        && fits(inputs)
        && fits(outputs)
        && fits(w.taps().saturating_mul(inputs))
        && is_short([w.in_h, w.in_w, inputs, 1])
        && is_short([w.out_h, w.out_w, outputs, 1])
        && is_short([w.taps(), inputs, outputs, 1]))
    {
        return false;
    }
    if w.taps() == 1 && w.pad_top == 0 && w.pad_left == 0 {
        // At stride 1 it goes by the input's size and does not look at the output's.
        let whole = w.in_h == w.out_h && w.in_w == w.out_w;
        return w.stride_h != 1 || w.stride_w != 1 || whole;
    }
    // Kernels of a single row on a map of a single row have a function of their own. Its vector form depends on how
    // padding is shared between the ends and reads a whole kernel's inputs from maps that are shorter.
    !(w.in_h == 1 && w.kernel_h == 1 && w.stride_w.saturating_mul(inputs) % 4 == 0)
}

/// Whether the library computes such a depthwise convolution.
pub(super) const fn depthwise_conv2d(conv: &DepthwiseConv2d) -> bool {
    let (w, channels) = (&conv.window, conv.channels);
    if !(window(w)
        && conv.multiplier == 1
        && fits(channels)
        && fits(w.taps())
        && is_short([w.in_h, w.in_w, channels, 1])
        && is_short([w.out_h, w.out_w, channels, 1])
        // Its buffers included.
        && is_short([w.taps(), channels, 2, 1]))
    {
        return false;
    }
    // A 3×3 kernel's middle column is taken to be inside the map.
    let last = w.out_w.saturating_sub(1).saturating_mul(w.stride_w);
    w.kernel_h != 3
        || w.kernel_w != 3
        || w.pad_top > 1
        || w.pad_left > 1
        || last.saturating_add(2) <= w.in_w.saturating_add(w.pad_left)
}

/// The vector library loads biases, factors and weights of four channels at once, whether there are as many or not.
pub(super) const fn depthwise_by_vectors(conv: &DepthwiseConv2d) -> bool {
    conv.channels.is_multiple_of(4)
}

/// Whether the library computes such a dense layer.
pub(super) const fn dense(dense: &Dense) -> bool {
    let Dense { rows, in_features, out_features } = *dense;
    rows >= 1
        && in_features >= 1
        && out_features >= 1
        && is_short([rows, in_features, 1, 1])
        && is_short([rows, out_features, 1, 1])
        && is_short([in_features, out_features, 1, 1])
}

/// Whether the library computes such a pool.
pub(super) const fn max_pool2d(pool: &Pool2d) -> bool {
    let w = &pool.window;
    window(w)
        && fits(pool.channels)
        && is_short([w.in_h, w.in_w, pool.channels, 1])
        && is_short([w.out_h, w.out_w, pool.channels, 1])
}

/// Whether zero points and clamp are those of int8 tensors; of a call they need not be.
pub(super) const fn stage(input_zero_point: i32, stage: OutputStage) -> bool {
    input_zero_point == input_zero_point as i8 as i32
        && stage.zero_point == stage.zero_point as i8 as i32
        && stage.low <= stage.high
}

/// Whether the arithmetic of one output channel with `taps` products stays within what C defines, which is where the
/// library and [`requantize`](netkit_core::quant::requantize) are the same: sums that do not overflow, not when shifted
/// left nor when the zero point is added, and shifts below 31.
pub(super) fn channel(bias: i32, multiplier: Multiplier, taps: usize) -> bool {
    let Multiplier { multiplier, shift } = multiplier;
    // The library may sum the products of inputs and of offsets apart: 128 · 128 each.
    let products = taps.saturating_mul(1 << 15);
    let sum = products.saturating_add(bias.unsigned_abs() as usize);
    let most = (1_usize << 30) >> shift.clamp(0, 30);
    multiplier >= 0 && shift > -31 && shift < 31 && sum < most
}

#[cfg(test)]
mod tests {
    use super::*;
    use netkit_core::op::Padding;

    fn square(side: usize, kernel: u32, stride: u32, pad: (u32, u32)) -> Window {
        let padding = Padding { top: pad.0, left: pad.0, bottom: pad.1, right: pad.1 };
        Window::new((side, side), (kernel, kernel), stride, padding).unwrap()
    }

    fn convolution(window: Window) -> Conv2d {
        Conv2d { window, in_channels: 4, out_channels: 8 }
    }

    fn depthwise(window: Window) -> DepthwiseConv2d {
        DepthwiseConv2d { window, channels: 4, multiplier: 1 }
    }

    #[test]
    fn ordinary_layers_are_taken() {
        for window in [
            square(28, 3, 1, (0, 0)),
            square(28, 3, 2, (1, 1)),
            square(8, 3, 2, (0, 1)),
            square(9, 5, 1, (2, 2)),
            square(6, 1, 1, (0, 0)),
            square(6, 1, 2, (0, 0)),
        ] {
            assert!(conv2d(&convolution(window)), "{window:?}");
            assert!(depthwise_conv2d(&depthwise(window)), "{window:?}");
            assert!(max_pool2d(&Pool2d { window, channels: 3 }), "{window:?}");
        }
        assert!(dense(&Dense { rows: 1, in_features: 1600, out_features: 128 }));
    }

    #[test]
    fn what_the_library_does_otherwise_is_declined() {
        // Windows of padding alone, before the map and behind it.
        assert!(!conv2d(&convolution(square(3, 2, 1, (4, 0)))));
        assert!(!conv2d(&convolution(square(3, 2, 1, (0, 4)))));
        assert!(!max_pool2d(&Pool2d { window: square(3, 2, 1, (4, 4)), channels: 1 }));
        // Dimensions past 16 bits.
        let mut conv = convolution(square(8, 3, 1, (0, 0)));
        conv.out_channels = 40_000;
        assert!(!conv2d(&conv));
        conv = convolution(square(8, 3, 1, (0, 0)));
        conv.in_channels = 4_000;
        assert!(!conv2d(&conv), "36,000 taps");
        // Dilation, a multiplier.
        let mut window = square(8, 3, 1, (0, 0));
        window.dilation_h = 2;
        assert!(!conv2d(&convolution(window)));
        let mut conv = depthwise(square(8, 3, 1, (0, 0)));
        conv.multiplier = 2;
        assert!(!depthwise_conv2d(&conv));
        // A 1×1 kernel whose output is not as large as its input: at stride 1 the library would write past it.
        let mut window = square(6, 1, 1, (0, 0));
        (window.out_h, window.out_w) = (5, 6);
        assert!(!conv2d(&convolution(window)));
        // A 3×3 kernel that is two columns over the end.
        assert!(!depthwise_conv2d(&depthwise(square(4, 3, 1, (0, 2)))));
        assert!(depthwise_conv2d(&depthwise(square(4, 5, 1, (0, 2)))));
        // A single row.
        let row = Window::new((1, 9), (1, 3), 1, Padding::default()).unwrap();
        assert!(!conv2d(&convolution(row)));
        // Nothing at all.
        assert!(!dense(&Dense { rows: 0, in_features: 1, out_features: 1 }));
        let empty = Conv2d { in_channels: 0, ..convolution(square(8, 3, 1, (0, 0))) };
        assert!(!conv2d(&empty));
    }

    #[test]
    fn sums_that_could_overflow_are_declined() {
        let m = |shift| Multiplier { multiplier: 1 << 30, shift };
        assert!(channel(1000, m(-8), 1600));
        assert!(channel(0, m(0), 32_000));
        assert!(!channel(0, m(0), 33_000));
        assert!(!channel(1 << 30, m(-8), 1));
        assert!(!channel(i32::MIN, m(-8), 1));
        assert!(!channel(0, m(-31), 1), "2^31 is not an int32");
        assert!(channel(0, m(10), 9));
        assert!(!channel(0, m(16), 9));
        assert!(!channel(0, m(31), 0));
        assert!(!channel(0, Multiplier { multiplier: -1, shift: -8 }, 1));
    }

    #[test]
    fn parameters_of_no_tensor_are_declined() {
        let int8 = OutputStage { zero_point: 127, low: -128, high: 127 };
        assert!(stage(-128, int8));
        assert!(!stage(128, int8));
        assert!(!stage(0, OutputStage { zero_point: -129, ..int8 }));
        assert!(!stage(0, OutputStage { low: 5, high: 4, ..int8 }));
    }
}
