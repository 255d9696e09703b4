//! Maximum over the in-bounds taps of a window, channel by channel.

use crate::arch::pool_f32::Pool2dF32;
use crate::simd::{Kernel, Simd};
use core::ops::Range;
use netkit_core::op::Pool2d;

/// Output rows `rows` of a maximum pool.
pub(crate) struct MaxPool2dF32<'a> {
    pub(crate) pool: Pool2d,
    pub(crate) input: &'a [f32],
    pub(crate) rows: Range<usize>,
    /// `[rows.len()][out_w][pitch]`, of which the channels are the first; the last pixel may end with them.
    pub(crate) output: &'a mut [f32],
    pub(crate) pitch: usize,
}

impl Kernel for MaxPool2dF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { pool, input, rows, output, pitch } = self;
        Pool2dF32::<'_, false> { pool, input, rows, output, pitch }.run(simd);
    }
}
