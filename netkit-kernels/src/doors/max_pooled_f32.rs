//! `conv2d_max_pool2d_f32`, `depthwise_conv2d_max_pool2d_f32`.

use super::bands::in_bands;
use super::check::{floats, pools, require};
use super::{conv2d_f32, depthwise_conv2d_f32};
use crate::dispatch::Kernels;
use crate::filter::Filter;
use crate::generic::conv2d_f32::Conv2dF32;
#[cfg(target_arch = "x86_64")]
use crate::generic::conv2d_f32::is_common;
use crate::generic::depthwise_conv2d_f32::DepthwiseConv2dF32;
use crate::generic::max_pool2d_f32::MaxPool2dF32;
use crate::parallel::{Piece, compute, product};
use crate::workspace;
use core::ops::Range;
use netkit_core::op::{Activation, Conv2d, DepthwiseConv2d, Pool2d};

/// What `conv2d_max_pool2d_f32` is given.
struct Given<'a> {
    conv: &'a Conv2d,
    pool: &'a Pool2d,
    input: &'a [f32],
    filter: Filter<'a>,
    bias: &'a [f32],
    activation: Activation,
    rows: Range<usize>,
    output: &'a mut [f32],
    scratch: &'a mut [u8],
}

impl Kernels {
    /// Rows `rows` of the maximum pool of a convolution, whose map is never whole in memory.
    ///
    /// `pool` reads the map that [`conv2d_f32`](Self::conv2d_f32) gives for `conv` without a residual; `output` is just
    /// the pool's rows asked for; `scratch` is at least [`workspace::conv2d_max_pool2d_f32`] bytes; the rest is as there.
    ///
    /// The result is to the last bit what [`max_pool2d_f32`](Self::max_pool2d_f32) makes of the whole map.
    #[cfg_attr(target_arch = "x86_64", inline)]
    #[allow(clippy::too_many_arguments, reason = "what a convolution and a pool read and write")]
    pub fn conv2d_max_pool2d_f32(
        self,
        conv: &Conv2d,
        pool: &Pool2d,
        input: &[f32],
        filter: Filter<'_>,
        bias: &[f32],
        activation: Activation,
        rows: Range<usize>,
        output: &mut [f32],
        scratch: &mut [u8],
    ) {
        // As in `conv2d_f32`; but of two panels of channels at a time (`conv2d_band_plan_f32`) there are never three vectors.
        let given = Given { conv, pool, input, filter, bias, activation, rows, output, scratch };
        #[cfg(target_arch = "x86_64")]
        if is_common(conv, filter, activation) {
            return self.common_conv2d_max_pool2d_f32(given);
        }
        self.any_conv2d_max_pool2d_f32(given);
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    fn common_conv2d_max_pool2d_f32(self, given: Given<'_>) {
        self.conv2d_max_pool2d_f32_of::<false>(given);
    }

    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn any_conv2d_max_pool2d_f32(self, given: Given<'_>) {
        self.conv2d_max_pool2d_f32_of::<true>(given);
    }

    /// Any layer, or one that is common.
    #[inline(always)]
    fn conv2d_max_pool2d_f32_of<const ANY: bool>(self, given: Given<'_>) {
        let Given { conv, pool, input, filter, bias, activation, rows, output, scratch } = given;
        let Some(form) = conv2d_f32::checked_form(conv, input, filter, bias) else { return };
        let (w, p) = (&conv.window, &pool.window);
        if !pools("conv2d_max_pool2d_f32", pool, w, &[conv.out_channels], &rows, output.len()) {
            return;
        }
        let scratch_bytes = workspace::conv2d_max_pool2d_f32(conv, pool, form);
        let fits = floats(scratch, scratch_bytes).is_some();
        require!(fits, "conv2d_max_pool2d_f32: scratch too short or not aligned");
        let (conv, pool) = (*conv, *pool);
        let row_macs =
            product([w.out_w, w.kernel_h, w.kernel_w, conv.in_channels, conv.out_channels]);
        let row_macs = row_macs.saturating_mul(p.stride_h);
        compute(Piece { rows, output, residual: None, scratch }, row_macs, |piece| {
            let Piece { rows, output, scratch, .. } = piece;
            let (group, plan) = workspace::conv2d_band_plan_f32(&conv, &pool, form);
            let Some(scratch) = floats(scratch, scratch_bytes) else { return };
            let (scratch, band) = scratch.split_at_mut(scratch.len().saturating_sub(plan.len));
            let depth = w.taps() * conv.in_channels;
            // Some channels at a time, so that their weights stay in a first-level cache for all bands.
            for first in (0..conv.out_channels).step_by(group) {
                let channels = first..(first + group).min(conv.out_channels);
                let some = Conv2d { out_channels: channels.len(), ..conv };
                let filter = match filter {
                    Filter::File { values, scale } => Filter::File {
                        values: values
                            .get(channels.start * depth..channels.end * depth)
                            .unwrap_or(&[]),
                        scale: scale.and_then(|scale| scale.get(channels.clone())),
                    },
                    #[cfg(not(netkit_micro))]
                    Filter::Packed(values) => {
                        let len = netkit_core::pack::packed_conv2d_f32_len(&some);
                        let start = channels.start * depth;
                        Filter::Packed(values.get(start..start + len).unwrap_or(&[]))
                    }
                };
                let bias = bias.get(channels.clone()).unwrap_or(&[]);
                in_bands(
                    &Pool2d { channels: channels.len(), ..pool },
                    rows.clone(),
                    plan.rows,
                    band,
                    |rows, band| {
                        self.run(Conv2dF32::<'_, ANY> {
                            conv: some,
                            input,
                            filter,
                            bias,
                            residual: None,
                            activation,
                            rows,
                            output: band,
                            scratch: &mut *scratch,
                        });
                    },
                    |pool, rows, input| {
                        let start = rows.start * p.out_w * conv.out_channels + channels.start;
                        self.run(MaxPool2dF32 {
                            pool: *pool,
                            input,
                            rows: 0..pool.window.out_h,
                            output: output.get_mut(start..).unwrap_or(&mut []),
                            pitch: conv.out_channels,
                        });
                    },
                );
            }
        });
    }

    /// Rows `rows` of the maximum pool of a depthwise convolution, whose map is never whole in memory.
    ///
    /// `pool` reads the map that [`depthwise_conv2d_f32`](Self::depthwise_conv2d_f32) gives for `conv`; `output` is just
    /// the pool's rows asked for; `scratch` is at least [`workspace::depthwise_conv2d_max_pool2d_f32`] bytes; the rest is
    /// as there.
    ///
    /// The result is to the last bit what [`max_pool2d_f32`](Self::max_pool2d_f32) makes of the whole map.
    #[allow(clippy::too_many_arguments, reason = "what a convolution and a pool read and write")]
    pub fn depthwise_conv2d_max_pool2d_f32(
        self,
        conv: &DepthwiseConv2d,
        pool: &Pool2d,
        input: &[f32],
        filter: Filter<'_>,
        bias: &[f32],
        activation: Activation,
        rows: Range<usize>,
        output: &mut [f32],
        scratch: &mut [u8],
    ) {
        let form = depthwise_conv2d_f32::checked_form(conv, input, filter, bias);
        let Some(form) = form else { return };
        let (w, p) = (&conv.window, &pool.window);
        let (door, channels) =
            ("depthwise_conv2d_max_pool2d_f32", [conv.channels, conv.multiplier]);
        if !pools(door, pool, w, &channels, &rows, output.len()) {
            return;
        }
        let scratch_bytes = workspace::depthwise_conv2d_max_pool2d_f32(conv, pool, form);
        let fits = floats(scratch, scratch_bytes).is_some();
        require!(fits, "depthwise_conv2d_max_pool2d_f32: scratch too short or not aligned");
        let (conv, pool) = (*conv, *pool);
        let row_macs = product([w.out_w, w.kernel_h, w.kernel_w, conv.channels, conv.multiplier]);
        let row_macs = row_macs.saturating_mul(p.stride_h);
        compute(Piece { rows, output, residual: None, scratch }, row_macs, |piece| {
            let Piece { rows, output, scratch, .. } = piece;
            let plan = workspace::band_plan_f32(&pool, pool.channels, form);
            let Some(scratch) = floats(scratch, scratch_bytes) else { return };
            let (scratch, band) = scratch.split_at_mut(scratch.len().saturating_sub(plan.len));
            let row_len = p.out_w * pool.channels;
            in_bands(
                &pool,
                rows,
                plan.rows,
                band,
                |rows, band| {
                    self.run(DepthwiseConv2dF32 {
                        conv,
                        input,
                        filter,
                        bias,
                        activation,
                        rows,
                        output: band,
                        scratch: &mut *scratch,
                    });
                },
                |pool, rows, band| {
                    let output = output.get_mut(rows.start * row_len..rows.end * row_len);
                    let output = output.unwrap_or(&mut []);
                    self.run(MaxPool2dF32 {
                        pool: *pool,
                        input: band,
                        rows: 0..pool.window.out_h,
                        output,
                        pitch: pool.channels,
                    });
                },
            );
        });
    }
}
