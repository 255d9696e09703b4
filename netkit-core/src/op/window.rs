//! The geometry every windowed operator shares: a kernel that slides over height and width.

/// A window sliding over an NHWC map (section 5). Output row `o` reads input rows
/// `o · stride_h − pad_top + i · dilation_h` for `i` in `0..kernel_h`; those outside the map are padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Input height.
    pub in_h: usize,
    /// Input width.
    pub in_w: usize,
    /// Output height.
    pub out_h: usize,
    /// Output width.
    pub out_w: usize,
    /// Window height, at least 1.
    pub kernel_h: usize,
    /// Window width, at least 1.
    pub kernel_w: usize,
    /// Vertical stride, at least 1.
    pub stride_h: usize,
    /// Horizontal stride, at least 1.
    pub stride_w: usize,
    /// Vertical distance between taps, at least 1. `.nk` files only hold 1.
    pub dilation_h: usize,
    /// Horizontal distance between taps, at least 1. `.nk` files only hold 1.
    pub dilation_w: usize,
    /// Rows of padding above the map. What lies below follows from `out_h`.
    pub pad_top: usize,
    /// Columns of padding left of the map. What lies to the right follows from `out_w`.
    pub pad_left: usize,
}

/// Padding on the four sides of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Padding {
    /// Rows above.
    pub top: u32,
    /// Columns to the left.
    pub left: u32,
    /// Rows below.
    pub bottom: u32,
    /// Columns to the right.
    pub right: u32,
}

impl Window {
    /// Whether everything that kernels compute from a window, positions of taps and extents once multiplied, stays within
    /// the target's `usize`. With 64 bits every window of a model file does; with 32 bits those do not whose map, padding
    /// included, is 32,768 pixels or more high or wide.
    #[must_use]
    #[inline]
    pub const fn is_computable(&self) -> bool {
        self.is_computable_in(usize::BITS)
    }

    const fn is_computable_in(&self, bits: u32) -> bool {
        // Far above any map that fits a memory, far below what overflows when multiplied once.
        let limit = 1usize << (bits / 2 - 1);
        self.kernel_h >= 1
            && self.kernel_w >= 1
            && self.stride_h >= 1
            && self.stride_w >= 1
            && self.dilation_h >= 1
            && self.dilation_w >= 1
            && self.pad_top < limit
            && self.pad_left < limit
            && self.in_h < limit
            && self.in_w < limit
            // Beside an output of 0 the products below say nothing about them.
            && self.stride_h < limit
            && self.stride_w < limit
            && self.out_h.saturating_mul(self.stride_h) < limit
            && self.out_w.saturating_mul(self.stride_w) < limit
            && self.kernel_h.saturating_mul(self.dilation_h) < limit
            && self.kernel_w.saturating_mul(self.dilation_w) < limit
    }
}

impl Padding {
    /// The same padding at start and end of each axis.
    #[must_use]
    pub const fn symmetric(vertical: u32, horizontal: u32) -> Self {
        Self { top: vertical, left: horizontal, bottom: vertical, right: horizontal }
    }
}

/// `⌊(in + start + end − kernel) / stride⌋ + 1`; `None` where the window does not fit the padded input
/// or kernel or stride is 0 (section 5).
#[must_use]
pub const fn output_size(
    input: u32,
    kernel: u32,
    stride: u32,
    start: u32,
    end: u32,
) -> Option<u32> {
    let padded = input as u64 + start as u64 + end as u64;
    if kernel == 0 || stride == 0 || padded < kernel as u64 {
        return None;
    }
    let size = (padded - kernel as u64) / stride as u64 + 1;
    if size > u32::MAX as u64 { None } else { Some(size as u32) }
}

impl Window {
    /// A window without dilation over an `in_h × in_w` map; `None` where it does not fit.
    ///
    /// On an axis with one output the stride is never taken, so it is 1 whatever was asked for: a file may say
    /// 2^32 − 1 there, and kernels multiply strides.
    #[must_use]
    pub const fn new(
        input: (usize, usize),
        kernel: (u32, u32),
        stride: u32,
        padding: Padding,
    ) -> Option<Self> {
        let (in_h, in_w) = input;
        if in_h > u32::MAX as usize || in_w > u32::MAX as usize {
            return None;
        }
        let Some(out_h) = output_size(in_h as u32, kernel.0, stride, padding.top, padding.bottom)
        else {
            return None;
        };
        let Some(out_w) = output_size(in_w as u32, kernel.1, stride, padding.left, padding.right)
        else {
            return None;
        };
        Some(Self {
            in_h,
            in_w,
            out_h: out_h as usize,
            out_w: out_w as usize,
            kernel_h: kernel.0 as usize,
            kernel_w: kernel.1 as usize,
            stride_h: if out_h > 1 { stride as usize } else { 1 },
            stride_w: if out_w > 1 { stride as usize } else { 1 },
            dilation_h: 1,
            dilation_w: 1,
            pad_top: padding.top as usize,
            pad_left: padding.left as usize,
        })
    }

    /// The rows and columns of the map that the window reads, from its first on: those behind them, which no placement
    /// of the window reaches, it would not miss.
    #[must_use]
    pub const fn reach(&self) -> (usize, usize) {
        const fn axis(input: usize, read: usize, pad: usize) -> usize {
            let end = read.saturating_sub(pad);
            if end < input { end } else { input }
        }
        (
            axis(self.in_h, self.rows_read(self.out_h), self.pad_top),
            axis(self.in_w, self.columns_read(self.out_w), self.pad_left),
        )
    }

    /// Rows from the first that `rows` output rows read to the last, both included, wherever these are padding.
    #[must_use]
    #[inline]
    pub const fn rows_read(&self, rows: usize) -> usize {
        rows.saturating_sub(1).saturating_mul(self.stride_h).saturating_add(self.span().0)
    }

    /// Columns from the first that `columns` output columns read to the last, likewise.
    #[must_use]
    #[inline]
    pub const fn columns_read(&self, columns: usize) -> usize {
        columns.saturating_sub(1).saturating_mul(self.stride_w).saturating_add(self.span().1)
    }

    /// Rows and columns from the window's first tap to its last, both included.
    #[must_use]
    #[inline]
    pub const fn span(&self) -> (usize, usize) {
        const fn axis(kernel: usize, dilation: usize) -> usize {
            kernel.saturating_sub(1).saturating_mul(dilation).saturating_add(1)
        }
        (axis(self.kernel_h, self.dilation_h), axis(self.kernel_w, self.dilation_w))
    }

    /// Whether there is one output and its taps are the whole map in order: a convolution is then a dense layer, whose weights
    /// and inputs are in the order of this one's.
    #[must_use]
    #[inline]
    pub const fn is_whole_map(&self) -> bool {
        let (rows, columns) = self.span();
        self.out_h == 1
            && self.out_w == 1
            && self.pad_top == 0
            && self.pad_left == 0
            && rows == self.kernel_h
            && columns == self.kernel_w
            && rows == self.in_h
            && columns == self.in_w
    }

    /// Number of input pixels.
    #[must_use]
    pub const fn in_pixels(&self) -> usize {
        self.in_h * self.in_w
    }

    /// Number of output pixels.
    #[must_use]
    pub const fn out_pixels(&self) -> usize {
        self.out_h * self.out_w
    }

    /// Number of taps of the kernel.
    #[must_use]
    pub const fn taps(&self) -> usize {
        self.kernel_h * self.kernel_w
    }

    /// Whether output pixel `i` reads input pixel `i` and nothing else: a 1×1 kernel, stride 1, no
    /// padding.
    #[must_use]
    pub const fn is_pointwise(&self) -> bool {
        self.kernel_h == 1
            && self.kernel_w == 1
            && self.stride_h == 1
            && self.stride_w == 1
            && self.pad_top == 0
            && self.pad_left == 0
            && self.in_h == self.out_h
            && self.in_w == self.out_w
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_sizes_round_down() {
        assert_eq!(output_size(28, 3, 1, 0, 0), Some(26));
        assert_eq!(output_size(28, 3, 2, 1, 1), Some(14));
        assert_eq!(output_size(5, 2, 3, 0, 1), Some(2));
    }

    #[test]
    fn narrow_targets_compute_narrow_maps_only() {
        let map = |in_h, in_w, pad| {
            Window::new((in_h, in_w), (1, 3), 1, Padding::symmetric(0, pad)).unwrap()
        };
        for (window, narrow) in [
            (map(1, 32_000, 1), true),
            (map(32_000, 3, 1), true),
            (map(1, 32_768, 1), false),
            (map(32_768, 3, 0), false),
            // Output behind a wide padding.
            (map(1, 20_000, 10_000), false),
        ] {
            assert_eq!(window.is_computable_in(32), narrow, "{window:?}");
            assert!(window.is_computable_in(64));
        }
        for (wrong, bits) in [(0, 32), (0, 64), (1 << 15, 32)] {
            let good = map(8, 8, 0);
            assert!(!Window { kernel_w: wrong, ..good }.is_computable_in(bits));
            assert!(!Window { stride_h: wrong, ..good }.is_computable_in(bits));
            assert!(!Window { dilation_w: wrong, ..good }.is_computable_in(bits));
        }
        for bits in [32, 64] {
            let none = Window { out_h: 0, stride_h: 1 << (bits / 2 - 1), ..map(8, 8, 0) };
            assert!(!none.is_computable_in(bits), "a stride beside no output");
        }
    }

    #[test]
    fn windows_that_do_not_fit_are_refused() {
        // C's truncating division makes 1 of (3 − 4) / 2 + 1.
        assert_eq!(output_size(3, 4, 2, 0, 0), None);
        assert_eq!(output_size(3, 0, 1, 0, 0), None);
        assert_eq!(output_size(3, 3, 0, 0, 0), None);
        assert_eq!(output_size(u32::MAX, 1, 1, u32::MAX, u32::MAX), None);
    }

    #[test]
    fn a_stride_that_is_never_taken_is_one() {
        let window = |input| Window::new(input, (2, 2), u32::MAX, Padding::default()).unwrap();
        assert_eq!((window((2, 2)).stride_h, window((2, 2)).stride_w), (1, 1));
        let wide = Window::new((2, 9), (2, 2), 3, Padding::default()).unwrap();
        assert_eq!((wide.stride_h, wide.stride_w, wide.out_w), (1, 3, 3));
    }

    #[test]
    fn a_window_reaches_as_far_as_its_last_placement() {
        let reach = |size, kernel, stride, pad| {
            Window::new((size, 9), (kernel, 2), stride, Padding::symmetric(pad, 0)).unwrap().reach()
        };
        assert_eq!(reach(11, 2, 2, 0), (10, 8));
        assert_eq!(reach(10, 2, 2, 0), (10, 8));
        assert_eq!(reach(11, 3, 2, 1), (11, 8));
        assert_eq!(reach(12, 3, 3, 1), (11, 8));
        assert_eq!(reach(5, 2, 1, 0), (5, 9));
    }

    #[test]
    fn padding_makes_a_one_by_one_kernel_more_than_pointwise() {
        let plain = Window::new((4, 4), (1, 1), 1, Padding::default()).unwrap();
        let padded = Window::new((4, 4), (1, 1), 1, Padding::symmetric(1, 1)).unwrap();
        assert!(plain.is_pointwise());
        assert!(!padded.is_pointwise());
        assert_eq!(padded.out_h, 6);
    }
}
