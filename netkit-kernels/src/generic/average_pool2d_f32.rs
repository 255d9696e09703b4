//! Mean over the in-bounds taps of a window, channel by channel.

use crate::arch::pool_f32::Pool2dF32;
use crate::simd::{Kernel, Simd};
use core::ops::Range;
use netkit_core::op::Pool2d;

/// Output rows `rows` of an average pool.
pub(crate) struct AveragePool2dF32<'a> {
    pub(crate) pool: Pool2d,
    pub(crate) input: &'a [f32],
    pub(crate) rows: Range<usize>,
    pub(crate) output: &'a mut [f32],
}

impl Kernel for AveragePool2dF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { pool, input, rows, output } = self;
        let pitch = pool.channels;
        Pool2dF32::<'_, true> { pool, input, rows, output, pitch }.run(simd);
    }
}
