//! Maximum or mean over the in-bounds taps of a window, vectors along the channels.
//!
//! Some vectors of channels at a time stay in registers while the window's taps pass by: what a tap costs besides its
//! loads is then shared by all of them. Without vectors one channel follows the other, which is less code.

use crate::generic::window::taps_inside;
use crate::simd::{Kernel, Simd, call_apart};
use core::ops::Range;
use core::slice;
use netkit_core::op::Pool2d;

/// Output rows `rows` of a pool: of the mean if `MEAN`, else of the maximum.
pub(crate) struct Pool2dF32<'a, const MEAN: bool> {
    pub(crate) pool: Pool2d,
    /// The whole map, `[in_h][in_w][channels]`.
    pub(crate) input: &'a [f32],
    pub(crate) rows: Range<usize>,
    /// `[rows.len()][out_w][pitch]`, of which the channels are the first; the last pixel may end with them.
    pub(crate) output: &'a mut [f32],
    pub(crate) pitch: usize,
}

/// Whether kinds of windows and numbers of vectors have loops of their own. On microcontrollers they would take flash.
const APART: bool = cfg!(not(netkit_micro));

/// Whether one loop over pixels serves all windows: programs that hold the kernels of several sets hold it for each.
const ONE_LOOP: bool = cfg!(target_arch = "x86_64");

impl<const MEAN: bool> Kernel for Pool2dF32<'_, MEAN> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let w = &self.pool.window;
        if !self.is_sound() || self.output.is_empty() {
            return;
        }
        // Windows of 2 × 2, the commonest, have no loops, and none of the questions that others begin with. Where one loop
        // serves all, pixels of others are a call.
        if APART && (ONE_LOOP || (w.kernel_h, w.kernel_w) == (2, 2)) {
            self.pixels(|pixel| {
                if (pixel.taps.rows, pixel.taps.columns) == (2, 2) && pixel.channels >= S::LANES {
                    // SAFETY: the window is two taps high and wide, and the channels are a vector or more.
                    unsafe { pixel.vectors::<S, 2>(simd) };
                } else {
                    call_apart(simd, pixel);
                }
            });
        } else {
            self.pixels(|pixel| pixel.run(simd));
        }
    }
}

impl<const MEAN: bool> Pool2dF32<'_, MEAN> {
    /// Gives each pixel of the output, which is sound, to `pool`.
    #[inline(always)]
    fn pixels(self, mut pool: impl FnMut(Pixel<MEAN>)) {
        let (w, channels) = (&self.pool.window, self.pool.channels);
        // Where there is nothing to read or to write, channels may be any number.
        let row_pitch = (w.dilation_h * w.in_w).wrapping_mul(channels);
        // Columns from a window's first tap to behind its last.
        let span = w.span().1;
        let mut pixels = self.output.chunks_mut(self.pitch.max(1));
        for oh in self.rows {
            let is = taps_inside(oh, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
            let ih = (oh * w.stride_h + is.start * w.dilation_h).wrapping_sub(w.pad_top);
            for (ow, pixel) in pixels.by_ref().take(w.out_w).enumerate() {
                let column = ow * w.stride_w;
                let js = if column >= w.pad_left && column + span <= w.in_w + w.pad_left {
                    0..w.kernel_w
                } else {
                    taps_inside(ow, w.in_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left)
                };
                let iw = (ow * w.stride_w + js.start * w.dilation_w).wrapping_sub(w.pad_left);
                // Where there is no tap this may point anywhere: nothing is read.
                let first = ih.wrapping_mul(w.in_w).wrapping_add(iw).wrapping_mul(channels);
                let taps = Taps {
                    first: self.input.as_ptr().wrapping_add(first),
                    rows: is.len(),
                    row_pitch,
                    columns: js.len(),
                    column_pitch: w.dilation_w.wrapping_mul(channels),
                };
                pool(Pixel { taps, channels, to: pixel.as_mut_ptr() });
            }
        }
    }

    /// All that the unchecked loads and stores rely on, besides what `taps_inside` promises.
    #[inline(always)]
    fn is_sound(&self) -> bool {
        let (w, channels) = (&self.pool.window, self.pool.channels);
        let check = || {
            w.is_computable().then_some(())?;
            let input = w.in_h.checked_mul(w.in_w)?.checked_mul(channels)?;
            let pixels = self.rows.len().checked_mul(w.out_w)?;
            let output = match pixels.checked_sub(1) {
                Some(before) => before.checked_mul(self.pitch)?.checked_add(channels)?,
                None => 0,
            };
            let output = self.pitch >= channels && output <= self.output.len();
            Some(input == self.input.len() && output)
        };
        check().unwrap_or(false)
    }
}

/// The taps of one window that lie inside the map.
struct Taps {
    /// Channel 0 of the first.
    first: *const f32,
    rows: usize,
    /// Floats from one row of taps to the next, and from one column to the next.
    row_pitch: usize,
    columns: usize,
    column_pitch: usize,
}

/// One pixel of the output, made by [`Pool2dF32::pixels`] alone: the map has `channels` floats at each tap, and `to` as many.
struct Pixel<const MEAN: bool> {
    taps: Taps,
    channels: usize,
    to: *mut f32,
}

impl<const MEAN: bool> Kernel for Pixel<MEAN> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if self.channels >= S::LANES {
            if !APART && (self.taps.rows, self.taps.columns) == (2, 2) {
                // SAFETY: the window is two taps high and wide, and the channels are a vector or more.
                return unsafe { self.vectors::<S, 2>(simd) };
            }
            // SAFETY: the channels are a vector or more.
            return unsafe { self.vectors::<S, 0>(simd) };
        }
        let mut total = start::<S, MEAN>(simd);
        for i in 0..self.taps.rows {
            for j in 0..self.taps.columns {
                let tap = i * self.taps.row_pitch + j * self.taps.column_pitch;
                let tap = self.taps.first.wrapping_add(tap);
                // SAFETY: the map has so many floats at each tap.
                let x = unsafe { slice::from_raw_parts(tap, self.channels) };
                total = join::<S, MEAN>(simd, simd.load(x), total);
            }
        }
        // SAFETY: so many floats are the pixel's.
        let to = unsafe { slice::from_raw_parts_mut(self.to, self.channels) };
        simd.store(to, finish::<S, MEAN>(simd, total, self.count(simd)));
    }
}

impl<const MEAN: bool> Pixel<MEAN> {
    /// What a mean divides by. A window without a tap sums to 0, and 0 / 1 is 0.
    #[inline(always)]
    fn count<S: Simd>(&self, simd: S) -> S::Vector {
        simd.splat((self.taps.rows * self.taps.columns).max(1) as f32)
    }

    /// All channels.
    ///
    /// # Safety
    /// They are a vector or more, and if `K` is not 0, the window is `K` taps high and wide.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const K: usize>(&self, simd: S) {
        let mut lane = 0;
        while S::LANES > 1 && lane + 4 * S::LANES <= self.channels {
            // SAFETY: four vectors of channels are left; the caller vouches for the window.
            unsafe { self.pool::<S, 4, K>(simd, lane) };
            lane += 4 * S::LANES;
        }
        if APART && S::LANES > 1 && lane + 2 * S::LANES <= self.channels {
            // SAFETY: two vectors of channels are left; as above.
            unsafe { self.pool::<S, 2, K>(simd, lane) };
            lane += 2 * S::LANES;
        }
        while lane < self.channels {
            // The last vector overlaps the one before rather than be a part of one.
            // SAFETY: the caller vouches for one vector of channels or more; as above.
            unsafe { self.pool::<S, 1, K>(simd, lane.min(self.channels - S::LANES)) };
            lane += S::LANES;
        }
    }

    /// `V` vectors of channels, from `lane` on. If `K` is not 0, the window is `K` taps high and wide.
    ///
    /// # Safety
    /// From `lane` on there are `V · LANES` channels or more, and the window is as `K` says.
    #[inline(always)]
    unsafe fn pool<S: Simd, const V: usize, const K: usize>(&self, simd: S, lane: usize) {
        let taps = &self.taps;
        let mut totals = [start::<S, MEAN>(simd); V];
        let mut row = taps.first.wrapping_add(lane);
        for _ in 0..if K > 0 { K } else { taps.rows } {
            let mut tap = row;
            for _ in 0..if K > 0 { K } else { taps.columns } {
                for (v, total) in totals.iter_mut().enumerate() {
                    // SAFETY: the tap is one of the map's; the caller vouches for its channels.
                    let x = unsafe { simd.load_pointer(tap.wrapping_add(v * S::LANES)) };
                    *total = join::<S, MEAN>(simd, x, *total);
                }
                tap = tap.wrapping_add(taps.column_pitch);
            }
            row = row.wrapping_add(taps.row_pitch);
        }
        let count = self.count(simd);
        for (v, total) in totals.into_iter().enumerate() {
            let value = finish::<S, MEAN>(simd, total, count);
            // SAFETY: the caller vouches for the pixel's channels.
            unsafe { simd.store_pointer(self.to.wrapping_add(lane + v * S::LANES), value) };
        }
    }
}

#[inline(always)]
fn start<S: Simd, const MEAN: bool>(simd: S) -> S::Vector {
    simd.splat(if MEAN { 0.0 } else { f32::MIN })
}

#[inline(always)]
fn join<S: Simd, const MEAN: bool>(simd: S, x: S::Vector, total: S::Vector) -> S::Vector {
    // x > total ? x : total, so NaN never wins.
    if MEAN { simd.add(total, x) } else { simd.max(x, total) }
}

#[inline(always)]
fn finish<S: Simd, const MEAN: bool>(simd: S, total: S::Vector, count: S::Vector) -> S::Vector {
    if MEAN { simd.div(total, count) } else { total }
}
