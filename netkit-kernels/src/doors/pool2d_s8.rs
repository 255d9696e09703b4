//! `max_pool2d_s8`, `average_pool2d_s8`.

use super::check::{has, require, rows_exist, window_is_sane};
use crate::dispatch::Kernels;
use crate::generic::average_pool2d_s8::AveragePool2dS8;
use crate::generic::max_pool2d_s8::MaxPool2dS8;
use core::ops::Range;
use netkit_core::op::Pool2d;

impl Kernels {
    /// Rows `rows` of the maximum over each window's in-bounds taps; −128 where there is none. `input`
    /// is the whole NHWC map, `output` just the rows asked for and quantized as the input.
    pub fn max_pool2d_s8(self, pool: &Pool2d, input: &[i8], rows: Range<usize>, output: &mut [i8]) {
        let w = &pool.window;
        require!(window_is_sane(w), "max_pool2d_s8: a window of {w:?}");
        require!(rows_exist(&rows, w.out_h), "max_pool2d_s8: rows {rows:?} of {}", w.out_h);
        let inputs = [w.in_h, w.in_w, pool.channels];
        require!(has(input.len(), &inputs), "max_pool2d_s8: input length");
        let outputs = [rows.len(), w.out_w, pool.channels];
        require!(has(output.len(), &outputs), "max_pool2d_s8: output length");
        let call = MaxPool2dS8 { pool: *pool, input, rows, output };
        #[cfg(feature = "cmsis-nn")]
        let Some(call) = self.offer(call) else { return };
        self.run_s8(call);
    }

    /// Rows `rows` of the mean over each window's in-bounds taps, ties rounded away from the raw value
    /// 0; 0 where there is no tap. `input` is the whole NHWC map, `output` just the rows asked for and
    /// quantized as the input.
    ///
    /// Exact: [`rounding_mean`](netkit_core::quant::rounding_mean), whatever the number of taps; on microcontrollers, up to
    /// 2^23 of them.
    pub fn average_pool2d_s8(
        self,
        pool: &Pool2d,
        input: &[i8],
        rows: Range<usize>,
        output: &mut [i8],
    ) {
        let w = &pool.window;
        require!(window_is_sane(w), "average_pool2d_s8: a window of {w:?}");
        require!(rows_exist(&rows, w.out_h), "average_pool2d_s8: rows {rows:?} of {}", w.out_h);
        let inputs = [w.in_h, w.in_w, pool.channels];
        require!(has(input.len(), &inputs), "average_pool2d_s8: input length");
        let outputs = [rows.len(), w.out_w, pool.channels];
        require!(has(output.len(), &outputs), "average_pool2d_s8: output length");
        self.run_s8(AveragePool2dS8 { pool: *pool, input, rows, output });
    }
}
