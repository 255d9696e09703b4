//! Maximum over the in-bounds taps of a window, channel by channel.

use super::window::taps_inside;
use crate::simd::{Kernel, Simd};
use core::ops::Range;
use netkit_core::op::Pool2d;

/// Output rows `rows` of a maximum pool.
pub(crate) struct MaxPool2dF32<'a> {
    pub(crate) pool: Pool2d,
    pub(crate) input: &'a [f32],
    pub(crate) rows: Range<usize>,
    pub(crate) output: &'a mut [f32],
}

impl Kernel for MaxPool2dF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (w, channels) = (&self.pool.window, self.pool.channels.max(1));
        let row_len = (w.out_w * channels).max(1);
        for (oh, row) in self.rows.zip(self.output.chunks_exact_mut(row_len)) {
            let is = taps_inside(oh, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
            for (ow, pixel) in row.chunks_exact_mut(channels).enumerate() {
                let js = taps_inside(ow, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
                for (block, y) in pixel.chunks_mut(S::LANES).enumerate() {
                    let mut max = simd.splat(f32::MIN);
                    for i in is.clone() {
                        let ih = oh * w.stride_h + i * w.dilation_h - w.pad_top;
                        for j in js.clone() {
                            let iw = ow * w.stride_w + j * w.dilation_w - w.pad_left;
                            let start = (ih * w.in_w + iw) * channels + block * S::LANES;
                            let x = self.input.get(start..start + y.len()).unwrap_or(&[]);
                            // x > max ? x : max, so NaN never wins.
                            max = simd.max(simd.load(x), max);
                        }
                    }
                    simd.store(y, max);
                }
            }
        }
    }
}
