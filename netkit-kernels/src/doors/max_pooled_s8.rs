//! `conv2d_max_pool2d_s8`, `depthwise_conv2d_max_pool2d_s8`.

#[cfg(feature = "cmsis-nn")]
use super::bands::alone_with_input;
#[cfg(netkit_micro)]
use super::bands::as_computed;
use super::bands::in_bands;
use super::check::{pools, require};
use super::{conv2d_s8, depthwise_conv2d_s8};
use crate::dispatch::Kernels;
use crate::filter_s8::FilterS8;
use crate::generic::conv2d_s8::Conv2dS8;
use crate::generic::depthwise_conv2d_s8::DepthwiseConv2dS8;
use crate::generic::max_pool2d_s8::MaxPool2dS8;
#[cfg(not(netkit_micro))]
use crate::generic::max_pooled_s8::{MaxPooledConv2dS8, keeps_order};
use crate::parallel::{Piece, compute, product};
use crate::workspace;
use core::ops::Range;
use netkit_core::op::{Conv2d, DepthwiseConv2d, Pool2d};
use netkit_core::quant::{Multiplier, OutputStage};

impl Kernels {
    /// Rows `rows` of the maximum pool of a convolution in int8, whose map is never whole in memory.
    ///
    /// `pool` reads the map that [`conv2d_s8`](Self::conv2d_s8) gives for `conv`; `output` is just the pool's rows asked
    /// for; `scratch` is at least [`workspace::conv2d_max_pool2d_s8`] bytes, aligned as it says; the rest is as there.
    ///
    /// Exact: what [`max_pool2d_s8`](Self::max_pool2d_s8) makes of the whole map, whatever the instruction set, the form
    /// of the filter and the choice of `rows`.
    #[allow(clippy::too_many_arguments, reason = "what a convolution and a pool read and write")]
    pub fn conv2d_max_pool2d_s8(
        self,
        conv: &Conv2d,
        pool: &Pool2d,
        input: &[i8],
        input_zero_point: i32,
        filter: FilterS8<'_>,
        bias: &[i32],
        multipliers: &[Multiplier],
        stage: OutputStage,
        rows: Range<usize>,
        output: &mut [i8],
        scratch: &mut [u8],
    ) {
        let form = conv2d_s8::checked_form(conv, input, filter, bias, multipliers);
        let Some(form) = form else { return };
        let (w, p) = (&conv.window, &pool.window);
        if !pools("conv2d_max_pool2d_s8", pool, w, &[conv.out_channels], &rows, output.len()) {
            return;
        }
        let scratch = scratch.get_mut(..workspace::conv2d_max_pool2d_s8(conv, pool, form));
        require!(scratch.is_some(), "conv2d_max_pool2d_s8: scratch too short");
        let Some(scratch) = scratch else { return };
        let (conv, pool) = (*conv, *pool);
        #[cfg(not(netkit_micro))]
        let pools_sums = workspace::pools_sums(&pool) && keeps_order(multipliers);
        #[cfg(feature = "cmsis-nn")]
        #[cfg(not(netkit_micro))]
        let pools_sums = pools_sums && !self.has_cmsis_nn();
        let row_macs =
            product([w.out_w, w.kernel_h, w.kernel_w, conv.in_channels, conv.out_channels]);
        let row_macs = row_macs.saturating_mul(p.stride_h);
        compute(Piece { rows, output, residual: None, scratch }, row_macs, |piece| {
            let Piece { rows, output, scratch, .. } = piece;
            #[cfg(not(netkit_micro))]
            if pools_sums {
                let call = Conv2dS8 {
                    conv,
                    input,
                    input_zero_point,
                    filter,
                    bias,
                    multipliers,
                    stage,
                    rows: rows.clone(),
                    output: &mut *output,
                    scratch: &mut *scratch,
                };
                if self.run_s8(MaxPooledConv2dS8 { pool, call }) {
                    return;
                }
            }
            let plan = workspace::conv2d_band_plan_s8(&pool, form);
            let (scratch, band) = scratch.split_at_mut(scratch.len().saturating_sub(plan.len));
            let band = bytemuck::cast_slice_mut(band);
            let compute = |rows, map: &mut [i8]| {
                // The library takes whole convolutions only.
                #[cfg(feature = "cmsis-nn")]
                let (window, rows, input) =
                    alone_with_input(&conv.window, &rows, input, conv.in_channels);
                #[cfg(feature = "cmsis-nn")]
                let conv = Conv2d { window, ..conv };
                let call = Conv2dS8 {
                    conv,
                    input,
                    input_zero_point,
                    filter,
                    bias,
                    multipliers,
                    stage,
                    rows,
                    output: map,
                    scratch: &mut *scratch,
                };
                #[cfg(feature = "cmsis-nn")]
                let Some(call) = self.offer(call) else { return };
                self.run_s8(call);
            };
            self.pool_s8(&pool, rows, plan.rows, band, output, compute);
        });
    }

    /// Rows `rows` of the maximum pool of a depthwise convolution in int8, whose map is never whole in memory.
    ///
    /// `pool` reads the map that [`depthwise_conv2d_s8`](Self::depthwise_conv2d_s8) gives for `conv`; `output` is just the
    /// pool's rows asked for; `scratch` is at least [`workspace::depthwise_conv2d_max_pool2d_s8`] bytes, aligned as it
    /// says; the rest is as there.
    ///
    /// Exact: what [`max_pool2d_s8`](Self::max_pool2d_s8) makes of the whole map, whatever the instruction set, the form
    /// of the filter and the choice of `rows`.
    #[allow(clippy::too_many_arguments, reason = "what a convolution and a pool read and write")]
    pub fn depthwise_conv2d_max_pool2d_s8(
        self,
        conv: &DepthwiseConv2d,
        pool: &Pool2d,
        input: &[i8],
        input_zero_point: i32,
        filter: FilterS8<'_>,
        bias: &[i32],
        multipliers: &[Multiplier],
        stage: OutputStage,
        rows: Range<usize>,
        output: &mut [i8],
        scratch: &mut [u8],
    ) {
        let form = depthwise_conv2d_s8::checked_form(conv, input, filter, bias, multipliers);
        let Some(form) = form else { return };
        let (w, p) = (&conv.window, &pool.window);
        let (door, channels) = ("depthwise_conv2d_max_pool2d_s8", [conv.channels, conv.multiplier]);
        if !pools(door, pool, w, &channels, &rows, output.len()) {
            return;
        }
        let bytes = workspace::depthwise_conv2d_max_pool2d_s8(conv, pool, form);
        let scratch = scratch.get_mut(..bytes);
        require!(scratch.is_some(), "depthwise_conv2d_max_pool2d_s8: scratch too short");
        let Some(scratch) = scratch else { return };
        let (conv, pool) = (*conv, *pool);
        let row_macs = product([w.out_w, w.kernel_h, w.kernel_w, conv.channels, conv.multiplier]);
        let row_macs = row_macs.saturating_mul(p.stride_h);
        compute(Piece { rows, output, residual: None, scratch }, row_macs, |piece| {
            let Piece { rows, output, scratch, .. } = piece;
            let plan = workspace::band_plan_s8(&pool, form);
            let (scratch, band) = scratch.split_at_mut(scratch.len().saturating_sub(plan.len));
            let band = bytemuck::cast_slice_mut(band);
            let compute = |rows, map: &mut [i8]| {
                #[cfg(feature = "cmsis-nn")]
                let (window, rows, input) =
                    alone_with_input(&conv.window, &rows, input, conv.channels);
                #[cfg(feature = "cmsis-nn")]
                let conv = DepthwiseConv2d { window, ..conv };
                let call = DepthwiseConv2dS8 {
                    conv,
                    input,
                    input_zero_point,
                    filter,
                    bias,
                    multipliers,
                    stage,
                    rows,
                    output: map,
                    scratch: &mut *scratch,
                };
                #[cfg(feature = "cmsis-nn")]
                let Some(call) = self.offer(call) else { return };
                self.run_s8(call);
            };
            self.pool_s8(&pool, rows, plan.rows, band, output, compute);
        });
    }

    /// Pools rows `rows`, which are `output`, of a map whose rows `compute` gives, in bands of `at_once` rows of the
    /// pool or row by row.
    #[inline]
    fn pool_s8(
        self,
        pool: &Pool2d,
        rows: Range<usize>,
        at_once: usize,
        band: &mut [i8],
        output: &mut [i8],
        compute: impl FnMut(Range<usize>, &mut [i8]),
    ) {
        // A library that is offered whole layers would have none of the pool.
        #[cfg(netkit_micro)]
        if cfg!(not(feature = "cmsis-nn")) {
            return as_computed(pool, rows, band, output, compute);
        }
        let row_len = pool.window.out_w * pool.channels;
        in_bands(pool, rows, at_once, band, compute, |pool, rows, band| {
            let output = output.get_mut(rows.start * row_len..rows.end * row_len);
            let output = output.unwrap_or(&mut []);
            let rows = 0..pool.window.out_h;
            let call = MaxPool2dS8 { pool: *pool, input: band, rows, output };
            #[cfg(feature = "cmsis-nn")]
            let Some(call) = self.offer(call) else { return };
            self.run_s8(call);
        });
    }
}
