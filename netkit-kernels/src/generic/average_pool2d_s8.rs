//! Int8 mean over the in-bounds taps of a window, channel by channel.

use super::window::taps_inside;
use crate::simd_s8::{KernelS8, SimdS8};
use core::ops::Range;
use netkit_core::op::Pool2d;
use netkit_core::quant::rounding_mean;

/// Channels summed together: on microcontrollers as many as their registers hold.
const BLOCK: usize = if cfg!(all(netkit_micro, not(netkit_mve))) { 4 } else { 16 };

/// Channels summed together where there are as many: their sums are a few vectors, and each tap costs one step.
const WIDE_BLOCK: usize = if cfg!(netkit_micro) { BLOCK } else { 64 };

/// Taps whose sum fits 16 bits.
const NARROW_TAPS: usize = 255;

/// Taps up to which the mean is exact in `f32`: sums and the half added to them stay below 2^24.
const FLOAT_TAPS: usize = 1 << 16;

/// Taps whose sum, and the half added to it, fit 32 bits. More need a map of 16 MiB, which no microcontroller has.
#[cfg(not(netkit_micro))]
const WIDE_TAPS: usize = 1 << 23;

/// Output rows `rows` of an average pool.
pub(crate) struct AveragePool2dS8<'a> {
    pub(crate) pool: Pool2d,
    pub(crate) input: &'a [i8],
    pub(crate) rows: Range<usize>,
    pub(crate) output: &'a mut [i8],
}

impl KernelS8 for AveragePool2dS8<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: SimdS8>(self, _: S) {
        let (w, channels) = (&self.pool.window, self.pool.channels.max(1));
        let pixels = self.output.chunks_exact_mut(channels);
        let positions = self.rows.flat_map(|oh| (0..w.out_w).map(move |ow| (oh, ow)));
        for ((oh, ow), y) in positions.zip(pixels) {
            let is = taps_inside(oh, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
            let js = taps_inside(ow, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left);
            let count = is.len() * js.len();
            if count == 0 {
                y.fill(0);
                continue;
            }
            let ih = oh * w.stride_h + is.start * w.dilation_h - w.pad_top;
            let iw = ow * w.stride_w + js.start * w.dilation_w - w.pad_left;
            let taps = Taps {
                input: self.input.get((ih * w.in_w + iw) * channels..).unwrap_or(&[]),
                rows: is.len(),
                row_pitch: w.in_w * channels * w.dilation_h,
                columns: js.len(),
                column_pitch: channels * w.dilation_w,
            };
            #[cfg(not(netkit_micro))]
            if count > WIDE_TAPS {
                taps.means_of_many(y);
                continue;
            }
            // A second copy of the loop would be code for nothing where blocks are of one size.
            let wide = if WIDE_BLOCK > BLOCK { channels / WIDE_BLOCK * WIDE_BLOCK } else { 0 };
            let (wide, rest) = y.split_at_mut(wide);
            let first = wide.len();
            for (block, y) in wide.chunks_mut(WIDE_BLOCK).enumerate() {
                let at = block * WIDE_BLOCK;
                if count > NARROW_TAPS {
                    taps.means::<S, WIDE_BLOCK>(at, y);
                } else {
                    taps.means_of_few(at, y);
                }
            }
            for (block, y) in rest.chunks_mut(BLOCK).enumerate() {
                taps.means::<S, BLOCK>(first + block * BLOCK, y);
            }
        }
    }
}

/// The in-bounds taps of one output pixel: at least one.
struct Taps<'a> {
    /// From the first of them on.
    input: &'a [i8],
    rows: usize,
    row_pitch: usize,
    columns: usize,
    column_pitch: usize,
}

impl Taps<'_> {
    /// The means of at most `N` channels, as many as `y` has, from channel `at` on.
    #[inline(always)]
    fn means<S: SimdS8, const N: usize>(&self, at: usize, y: &mut [i8]) {
        let mut sums = [0i32; N];
        for i in 0..self.rows {
            for j in 0..self.columns {
                let from = i * self.row_pitch + j * self.column_pitch + at;
                let x = self.input.get(from..).unwrap_or(&[]);
                match x.first_chunk::<N>() {
                    Some(x) if y.len() == N => {
                        for (sum, &x) in sums.iter_mut().zip(x) {
                            *sum += i32::from(x);
                        }
                    }
                    _ => {
                        for (sum, &x) in sums.iter_mut().zip(x).take(y.len()) {
                            *sum += i32::from(x);
                        }
                    }
                }
            }
        }
        let count = self.rows * self.columns;
        let mut means = [0; N];
        if S::READS_FILE_ORDER || count > FLOAT_TAPS {
            for (mean, &sum) in means.iter_mut().zip(&sums) {
                *mean = rounding_mean(sum, count as i32);
            }
        } else {
            for (mean, &sum) in means.iter_mut().zip(&sums) {
                *mean = rounding_mean_f32(sum, count as i32);
            }
        }
        for (to, mean) in y.iter_mut().zip(means) {
            *to = mean;
        }
    }

    /// The means of all channels, whose sums take 64 bits.
    #[cfg(not(netkit_micro))]
    #[cold]
    #[inline(never)]
    fn means_of_many(&self, y: &mut [i8]) {
        let count = (self.rows * self.columns) as i64;
        for (channel, mean) in y.iter_mut().enumerate() {
            let mut sum = 0;
            for i in 0..self.rows {
                for j in 0..self.columns {
                    let at = i * self.row_pitch + j * self.column_pitch + channel;
                    sum += self.input.get(at).map_or(0, |&x| i64::from(x));
                }
            }
            let half = if sum > 0 { count / 2 } else { -(count / 2) };
            *mean = ((sum + half) / count) as i8;
        }
    }

    /// [`means`](Self::means) of a wide block and at most [`NARROW_TAPS`] taps: twice as many sums in a vector.
    #[inline(always)]
    fn means_of_few(&self, at: usize, y: &mut [i8]) {
        let mut sums = [0i16; WIDE_BLOCK];
        for i in 0..self.rows {
            for j in 0..self.columns {
                let from = i * self.row_pitch + j * self.column_pitch + at;
                let x = self.input.get(from..).unwrap_or(&[]);
                let Some(x) = x.first_chunk::<WIDE_BLOCK>() else { continue };
                for (sum, &x) in sums.iter_mut().zip(x) {
                    *sum = sum.wrapping_add(i16::from(x));
                }
            }
        }
        let count = (self.rows * self.columns) as i32;
        let mut means = [0; WIDE_BLOCK];
        for (mean, &sum) in means.iter_mut().zip(&sums) {
            *mean = rounding_mean_f32(i32::from(sum), count);
        }
        for (to, mean) in y.iter_mut().zip(means) {
            *to = mean;
        }
    }
}

/// [`rounding_mean`] by a float division, which vector units have and integer ones they have not.
///
/// Exact while `|sum| + count / 2 < 2^24`: both operands are then exact, and a quotient below an
/// integer is so by at least `1 / count`, more than half a unit in the last place.
#[inline(always)]
fn rounding_mean_f32(sum: i32, count: i32) -> i8 {
    let half = count / 2;
    let rounded = if sum > 0 { sum + half } else { sum - half };
    (rounded as f32 / count as f32) as i32 as i8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_float_mean_is_the_integer_one() {
        for count in (1..300).chain([4095, 4096, 12_345, 65_535, 65_536]) {
            let step = if count < 300 { 1 } else { 997 };
            for sum in (-128 * count..=127 * count).step_by(step) {
                assert_eq!(
                    rounding_mean_f32(sum, count),
                    rounding_mean(sum, count),
                    "{sum}/{count}"
                );
            }
        }
    }
}
