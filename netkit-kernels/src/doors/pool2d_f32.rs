//! `max_pool2d_f32`, `average_pool2d_f32`.

use super::check::{has, require, rows_exist, window_is_sane};
use crate::dispatch::Kernels;
use crate::generic::average_pool2d_f32::AveragePool2dF32;
use crate::generic::max_pool2d_f32::MaxPool2dF32;
use core::ops::Range;
use netkit_core::op::Pool2d;

impl Kernels {
    /// Rows `rows` of the maximum over each window's in-bounds taps. `input` is the whole NHWC map,
    /// `output` just the rows asked for.
    ///
    /// Exact. A tap wins if it is greater than all before it, so NaN and −∞ never do; a window without
    /// a winner gives `−f32::MAX`.
    pub fn max_pool2d_f32(
        self,
        pool: &Pool2d,
        input: &[f32],
        rows: Range<usize>,
        output: &mut [f32],
    ) {
        let w = &pool.window;
        require!(window_is_sane(w), "max_pool2d_f32: a window of {w:?}");
        require!(rows_exist(&rows, w.out_h), "max_pool2d_f32: rows {rows:?} of {}", w.out_h);
        let inputs = [w.in_h, w.in_w, pool.channels];
        require!(has(input.len(), &inputs), "max_pool2d_f32: input length");
        let outputs = [rows.len(), w.out_w, pool.channels];
        require!(has(output.len(), &outputs), "max_pool2d_f32: output length");
        self.run(MaxPool2dF32 { pool: *pool, input, rows, output, pitch: pool.channels });
    }

    /// Rows `rows` of the mean over each window's in-bounds taps; 0 where there is none. `input` is the
    /// whole NHWC map, `output` just the rows asked for.
    ///
    /// The result differs from exact arithmetic by at most `n · 2^−24 · mean|x|`, `n` being the number
    /// of taps.
    pub fn average_pool2d_f32(
        self,
        pool: &Pool2d,
        input: &[f32],
        rows: Range<usize>,
        output: &mut [f32],
    ) {
        let w = &pool.window;
        require!(window_is_sane(w), "average_pool2d_f32: a window of {w:?}");
        require!(rows_exist(&rows, w.out_h), "average_pool2d_f32: rows {rows:?} of {}", w.out_h);
        let inputs = [w.in_h, w.in_w, pool.channels];
        require!(has(input.len(), &inputs), "average_pool2d_f32: input length");
        let outputs = [rows.len(), w.out_w, pool.channels];
        require!(has(output.len(), &outputs), "average_pool2d_f32: output length");
        self.run(AveragePool2dF32 { pool: *pool, input, rows, output });
    }
}
