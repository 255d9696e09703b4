//! Int8 maximum over the in-bounds taps of a window, channel by channel.

use super::window::taps_inside;
use crate::simd_s8::{KernelS8, SimdS8};
use core::ops::Range;
use netkit_core::op::Pool2d;

/// Output rows `rows` of a maximum pool.
pub(crate) struct MaxPool2dS8<'a> {
    pub(crate) pool: Pool2d,
    pub(crate) input: &'a [i8],
    pub(crate) rows: Range<usize>,
    pub(crate) output: &'a mut [i8],
}

impl KernelS8 for MaxPool2dS8<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: SimdS8>(self, _: S) {
        #[cfg(netkit_micro)]
        if S::READS_FILE_ORDER {
            return crate::micro::max_pool2d_s8(self);
        }
        let (w, channels) = (&self.pool.window, self.pool.channels.max(1));
        let lines = self.output.chunks_exact_mut((w.out_w * channels).max(1));
        for (oh, line) in self.rows.zip(lines) {
            let is = taps_inside(oh, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
            if is.is_empty() {
                line.fill(i8::MIN);
                continue;
            }
            let ih = oh * w.stride_h + is.start * w.dilation_h - w.pad_top;
            let pixels = line.chunks_exact_mut(channels);
            for (ow, y) in pixels.enumerate() {
                let js = taps_inside(ow, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
                if js.is_empty() {
                    y.fill(i8::MIN);
                    continue;
                }
                let iw = ow * w.stride_w + js.start * w.dilation_w - w.pad_left;
                let taps = Taps {
                    input: self.input.get((ih * w.in_w + iw) * channels..).unwrap_or(&[]),
                    rows: is.len(),
                    row_pitch: w.in_w * channels * w.dilation_h,
                    columns: js.len(),
                    column_pitch: channels * w.dilation_w,
                };
                // Blocks whose maxima stay in registers over all taps.
                let (rest, at) = taps.blocks::<64>(y, 0);
                let (rest, at) = taps.blocks::<32>(rest, at);
                let (rest, at) = taps.blocks::<16>(rest, at);
                let (rest, at) = taps.blocks::<4>(rest, at);
                taps.blocks::<1>(rest, at);
            }
        }
    }
}

/// The in-bounds taps of one output pixel.
struct Taps<'a> {
    /// From the first of them on.
    input: &'a [i8],
    rows: usize,
    row_pitch: usize,
    columns: usize,
    column_pitch: usize,
}

impl Taps<'_> {
    /// As many whole blocks of `N` channels as there are, from channel `at` on; what is left.
    #[inline(always)]
    fn blocks<'y, const N: usize>(&self, y: &'y mut [i8], mut at: usize) -> (&'y mut [i8], usize) {
        let (blocks, rest) = y.as_chunks_mut::<N>();
        for block in blocks {
            let mut max = [i8::MIN; N];
            for i in 0..self.rows {
                for j in 0..self.columns {
                    let from = i * self.row_pitch + j * self.column_pitch + at;
                    let x = self.input.get(from..).unwrap_or(&[]);
                    let Some(x) = x.first_chunk::<N>() else { continue };
                    for (max, &x) in max.iter_mut().zip(x) {
                        *max = x.max(*max);
                    }
                }
            }
            *block = max;
            at += N;
        }
        (rest, at)
    }
}
