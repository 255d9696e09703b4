//! The taps of one output pixel of a convolution, in the order of its weights.

use netkit_core::op::Conv2d;

/// Where taps come from.
pub(super) struct Gather<'a> {
    conv: &'a Conv2d,
    input: &'a [i8],
    /// Stands for a tap in the padding.
    zero_point: i8,
    /// Input rows from the first tap to the last.
    height: usize,
    /// Taps of one row of the window.
    row_len: usize,
    /// From one row of taps to the next, in the input.
    row_step: usize,
}

/// Whether some pixel's taps are not whole rows of the window inside the map.
#[cfg(any(test, not(netkit_mve)))]
pub(super) const fn has_borders(conv: &Conv2d) -> bool {
    let w = &conv.window;
    w.pad_top > 0
        || w.pad_left > 0
        || w.dilation_w != 1
        || w.rows_read(w.out_h) > w.in_h
        || w.columns_read(w.out_w) > w.in_w
}

impl<'a> Gather<'a> {
    pub(super) fn new(conv: &'a Conv2d, input: &'a [i8], zero_point: i32) -> Self {
        let w = &conv.window;
        Self {
            conv,
            input,
            zero_point: zero_point as i8,
            height: w.span().0,
            row_len: w.kernel_w * conv.in_channels,
            row_step: w.dilation_h * w.in_w * conv.in_channels,
        }
    }

    /// The rows of taps of the output pixel at `(row, column)`; `None` where not all are whole rows
    /// inside the map.
    #[inline(always)]
    pub(super) fn rows(
        &self,
        (row, column): (usize, usize),
    ) -> Option<impl Iterator<Item = &'a [i8]> + use<'a>> {
        let w = &self.conv.window;
        let y = (row * w.stride_h).checked_sub(w.pad_top)?;
        let x = (column * w.stride_w).checked_sub(w.pad_left)?;
        let inside = y + self.height <= w.in_h && x + w.kernel_w <= w.in_w && w.dilation_w == 1;
        let (input, step, len) = (self.input, self.row_step, self.row_len);
        let mut from = (y * w.in_w + x) * self.conv.in_channels;
        inside.then(|| {
            (0..w.kernel_h).map(move |_| {
                let row = input.get(from..from.wrapping_add(len)).unwrap_or(&[]);
                from = from.wrapping_add(step);
                row
            })
        })
    }

    /// Copies the taps of an output pixel, the zero point where they are padding.
    #[inline(always)]
    pub(super) fn copy(&self, position: (usize, usize), to: &mut [i8]) {
        match self.rows(position) {
            Some(rows) => {
                for (row, to) in rows.zip(to.chunks_exact_mut(self.row_len.max(1))) {
                    for (&from, to) in row.iter().zip(to) {
                        *to = from;
                    }
                }
            }
            None => self.copy_at_border(position, to),
        }
    }

    /// Copies tap by tap.
    #[inline(never)]
    fn copy_at_border(&self, (row, column): (usize, usize), to: &mut [i8]) {
        let w = &self.conv.window;
        let channels = self.conv.in_channels.max(1);
        // Position of tap (0, 0). What lies before the map wraps around and is not inside either.
        let mut y = (row * w.stride_h).wrapping_sub(w.pad_top);
        let left = (column * w.stride_w).wrapping_sub(w.pad_left);
        for to in to.chunks_exact_mut(self.row_len.max(1)) {
            let mut x = left;
            for to in to.chunks_exact_mut(channels) {
                let from = y.wrapping_mul(w.in_w).wrapping_add(x).wrapping_mul(channels);
                let inside = y < w.in_h && x < w.in_w;
                match self.input.get(from..from.wrapping_add(channels)).filter(|_| inside) {
                    Some(tap) => {
                        for (&from, to) in tap.iter().zip(to) {
                            *to = from;
                        }
                    }
                    None => {
                        for to in to {
                            *to = self.zero_point;
                        }
                    }
                }
                x = x.wrapping_add(w.dilation_w);
            }
            y = y.wrapping_add(w.dilation_h);
        }
    }
}
