//! CMSIS-NN, Arm's library for Cortex-M, as a backend: the feature `cmsis-nn`.
//!
//! The library is the user's, compiled by them and found by `build.rs`. Before it is given anything it is asked a question
//! whose answer tells how it rounds ([`CmsisNn::detect`]). Then it may take a layer, or decline, and the kernels of this
//! crate compute it: where the library cannot do it or could give other bits ([`takes`]), where it asks for more scratch than
//! [`workspace`] foresaw, and where it returns anything but success.
//!
//! What is relied on without being checked is what no caller of a C library can check: that the library linked does what
//! its header says.

mod sys;
mod takes;
#[cfg(test)]
mod tests;
pub(crate) mod workspace;

use crate::filter_s8::FilterS8;
use crate::generic::conv2d_s8::Conv2dS8;
use crate::generic::dense_s8::DenseS8;
use crate::generic::depthwise_conv2d_s8::DepthwiseConv2dS8;
use crate::generic::max_pool2d_s8::MaxPool2dS8;
use core::ops::Range;
use core::ptr;
use netkit_core::op::{Dense, Window};
use netkit_core::quant::{Multiplier, OutputStage, requantize};
use sys::{
    ARM_CMSIS_NN_SUCCESS, cmsis_nn_activation, cmsis_nn_context, cmsis_nn_conv_params,
    cmsis_nn_dims, cmsis_nn_dw_conv_params, cmsis_nn_fc_params, cmsis_nn_per_channel_quant_params,
    cmsis_nn_pool_params, cmsis_nn_tile,
};

/// The token of a library that is linked and rounds as netkit does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CmsisNn {
    /// Whether it is compiled for processors with vectors (MVE): it then wants sums of dense layers' weights.
    vectors: bool,
}

/// What the library may take.
pub(crate) trait Layer {
    /// Computes the layer, or declines. If it declines the output may hold anything.
    fn compute_on(&mut self, library: CmsisNn) -> bool;
}

impl Layer for Conv2dS8<'_> {
    fn compute_on(&mut self, library: CmsisNn) -> bool {
        in_file_order(self.filter).is_some_and(|weights| library.conv2d_s8(self, weights))
    }
}

impl Layer for DepthwiseConv2dS8<'_> {
    fn compute_on(&mut self, library: CmsisNn) -> bool {
        in_file_order(self.filter).is_some_and(|weights| library.depthwise_conv2d_s8(self, weights))
    }
}

/// With the sums of [`row_sums`](netkit_core::pack::row_sums), or none.
impl Layer for (DenseS8<'_>, &[i32]) {
    fn compute_on(&mut self, library: CmsisNn) -> bool {
        let (call, sums) = self;
        in_file_order(call.filter).is_some_and(|weights| library.dense_s8(call, weights, sums))
    }
}

impl Layer for MaxPool2dS8<'_> {
    fn compute_on(&mut self, library: CmsisNn) -> bool {
        library.max_pool2d_s8(self)
    }
}

/// The weights of a filter that the library can read.
fn in_file_order(filter: FilterS8<'_>) -> Option<&[i8]> {
    match filter {
        FilterS8::File(weights) => Some(weights),
        #[cfg(not(netkit_micro))]
        FilterS8::Packed(_) => None,
    }
}

/// The factor of [`PROBE`]'s question.
const PROBE_MULTIPLIER: Multiplier = Multiplier { multiplier: 0x5A82_799A, shift: -9 };

/// Sums for which two roundings and one differ.
const PROBE: [i32; 4] = [-69_873, -69_149, -68_425, -67_701];

const PROBE_STAGE: OutputStage = OutputStage { zero_point: 0, low: -128, high: 127 };

impl CmsisNn {
    /// The token, if the library rescales as [`requantize`] does. One that was compiled with
    /// `CMSIS_NN_USE_SINGLE_ROUNDING` does not.
    pub(crate) fn detect() -> Option<Self> {
        let dense = Dense { rows: 1, in_features: 1, out_features: PROBE.len() };
        // SAFETY: the structure is valid for the call.
        let sums = unsafe { sys::arm_fully_connected_s8_get_buffer_size(&fc_filter_dims(&dense)) };
        let library = Self { vectors: sums > 0 };
        let mut output = [0; PROBE.len()];
        let mut call = DenseS8 {
            dense,
            input: &[0],
            input_zero_point: 0,
            filter: FilterS8::File(&[0; PROBE.len()]),
            bias: &PROBE,
            multipliers: &[PROBE_MULTIPLIER; PROBE.len()],
            stage: PROBE_STAGE,
            output: &mut output,
            scratch: &mut [],
        };
        let done = library.dense_s8(&mut call, &[0; PROBE.len()], &PROBE);
        let same = PROBE
            .iter()
            .zip(output)
            .all(|(&sum, y)| y == requantize(sum, PROBE_MULTIPLIER, PROBE_STAGE));
        (done && same).then_some(library)
    }

    /// Computes a convolution, or declines.
    fn conv2d_s8(self, call: &mut Conv2dS8<'_>, weights: &[i8]) -> bool {
        let conv = call.conv;
        let (w, taps) = (&conv.window, conv.window.taps().saturating_mul(conv.in_channels));
        let whole = is_whole(&call.rows, w);
        if !(whole && takes::conv2d(&conv) && takes::stage(call.input_zero_point, call.stage)) {
            return false;
        }
        let reserved = workspace::part(workspace::conv2d_buffer(&conv));
        let channels = Channels { bias: call.bias, multipliers: call.multipliers, taps };
        let Some(mut scratch) = Scratch::new(call.scratch, reserved, channels) else {
            return false;
        };
        let params = cmsis_nn_conv_params {
            input_offset: -call.input_zero_point,
            output_offset: call.stage.zero_point,
            stride: stride(w),
            padding: padding(w),
            dilation: cmsis_nn_tile { w: 1, h: 1 },
            activation: activation(call.stage),
        };
        let input = dims(1, w.in_h, w.in_w, conv.in_channels);
        let filter = dims(conv.out_channels, w.kernel_h, w.kernel_w, conv.in_channels);
        let output = dims(1, w.out_h, w.out_w, conv.out_channels);
        let bias = dims(1, 1, 1, conv.out_channels);
        // SAFETY: the structures are valid for the call.
        let buffer = unsafe {
            sys::arm_convolve_wrapper_s8_get_buffer_size(&params, &input, &filter, &output)
        };
        let Some(context) = scratch.context(buffer) else { return false };
        // SAFETY: `takes` has made sure that the library computes exactly this output from exactly this input, whose
        // lengths the door has checked with those of filter, bias and factors; context and factors are parts of the
        // scratch, which nobody else uses, and the context is as large as the library has asked for.
        let status = unsafe {
            sys::arm_convolve_wrapper_s8(
                &context,
                &params,
                &scratch.factors(),
                &input,
                call.input.as_ptr(),
                &filter,
                weights.as_ptr(),
                &bias,
                call.bias.as_ptr(),
                &output,
                call.output.as_mut_ptr(),
            )
        };
        status == ARM_CMSIS_NN_SUCCESS
    }

    /// Computes a depthwise convolution, or declines.
    fn depthwise_conv2d_s8(self, call: &mut DepthwiseConv2dS8<'_>, weights: &[i8]) -> bool {
        let conv = call.conv;
        let (w, channels) = (&conv.window, conv.channels);
        let whole = is_whole(&call.rows, w);
        let in_reach = !self.vectors || takes::depthwise_by_vectors(&conv);
        if !(whole
            && in_reach
            && takes::depthwise_conv2d(&conv)
            && takes::stage(call.input_zero_point, call.stage))
        {
            return false;
        }
        let reserved = workspace::part(workspace::depthwise_conv2d_buffer(&conv));
        let factors = Channels { bias: call.bias, multipliers: call.multipliers, taps: w.taps() };
        let Some(mut scratch) = Scratch::new(call.scratch, reserved, factors) else { return false };
        let Some(kernel) = scratch.channels_last(weights, channels) else { return false };
        let params = cmsis_nn_dw_conv_params {
            input_offset: -call.input_zero_point,
            output_offset: call.stage.zero_point,
            ch_mult: 1,
            stride: stride(w),
            padding: padding(w),
            dilation: cmsis_nn_tile { w: 1, h: 1 },
            activation: activation(call.stage),
        };
        let input = dims(1, w.in_h, w.in_w, channels);
        let filter = dims(1, w.kernel_h, w.kernel_w, channels);
        let output = dims(1, w.out_h, w.out_w, channels);
        let bias = dims(1, 1, 1, channels);
        // SAFETY: the structures are valid for the call.
        let buffer = unsafe {
            sys::arm_depthwise_conv_wrapper_s8_get_buffer_size(&params, &input, &filter, &output)
        };
        let Some(context) = scratch.context(buffer) else { return false };
        // SAFETY: `takes` has made sure that the library computes exactly this output from exactly this input, whose
        // lengths the door has checked with those of bias and factors; context, factors and filter are parts of the
        // scratch, which nobody else uses, and the context is as large as the library has asked for.
        let status = unsafe {
            sys::arm_depthwise_conv_wrapper_s8(
                &context,
                &params,
                &scratch.factors(),
                &input,
                call.input.as_ptr(),
                &filter,
                kernel,
                &bias,
                call.bias.as_ptr(),
                &output,
                call.output.as_mut_ptr(),
            )
        };
        status == ARM_CMSIS_NN_SUCCESS
    }

    /// Computes a dense layer, or declines; without `sums` it declines if it has vectors.
    fn dense_s8(self, call: &mut DenseS8<'_>, weights: &[i8], sums: &[i32]) -> bool {
        let dense = call.dense;
        if !(takes::dense(&dense) && takes::stage(call.input_zero_point, call.stage)) {
            return false;
        }
        let channels =
            Channels { bias: call.bias, multipliers: call.multipliers, taps: dense.in_features };
        let Some(factors) = Factors::new(call.scratch, channels) else { return false };
        let params = cmsis_nn_fc_params {
            input_offset: -call.input_zero_point,
            filter_offset: 0,
            output_offset: call.stage.zero_point,
            activation: activation(call.stage),
        };
        let input = dims(dense.rows, 1, 1, dense.in_features);
        let filter = fc_filter_dims(&dense);
        let output = dims(dense.rows, 1, 1, dense.out_features);
        let bias = dims(1, 1, 1, dense.out_features);
        // SAFETY: the structure is valid for the call.
        let buffer = unsafe { sys::arm_fully_connected_s8_get_buffer_size(&filter) };
        let context = match usize::try_from(buffer) {
            Ok(0) => cmsis_nn_context { buf: ptr::null_mut(), size: 0 },
            // What it asks for room for are the sums, which it reads.
            Ok(bytes) if sums.len() == dense.out_features && bytes <= size_of_val(sums) => {
                cmsis_nn_context { buf: sums.as_ptr().cast_mut().cast(), size: buffer }
            }
            _ => return false,
        };
        #[cfg(netkit_cmsis_nn_7)]
        let (function, factors) = (sys::arm_fully_connected_wrapper_s8, factors.any());
        #[cfg(not(netkit_cmsis_nn_7))]
        let (function, Some(factors)) = (sys::arm_fully_connected_s8, factors.of_tensor()) else {
            return false;
        };
        // SAFETY: the door has checked the lengths of all slices against the layer's, and `takes` that they fit the C
        // types; the context is either not used or only read, and as large as the library has asked for.
        let status = unsafe {
            function(
                &context,
                &params,
                &factors,
                &input,
                call.input.as_ptr(),
                &filter,
                weights.as_ptr(),
                &bias,
                call.bias.as_ptr(),
                &output,
                call.output.as_mut_ptr(),
            )
        };
        status == ARM_CMSIS_NN_SUCCESS
    }

    /// Computes a maximum, or declines.
    fn max_pool2d_s8(self, call: &mut MaxPool2dS8<'_>) -> bool {
        let (pool, w) = (call.pool, &call.pool.window);
        if !(is_whole(&call.rows, w) && takes::max_pool2d(&pool)) {
            return false;
        }
        let context = cmsis_nn_context { buf: ptr::null_mut(), size: 0 };
        let params = cmsis_nn_pool_params {
            stride: stride(w),
            padding: padding(w),
            activation: cmsis_nn_activation { min: i8::MIN.into(), max: i8::MAX.into() },
        };
        let input = dims(1, w.in_h, w.in_w, pool.channels);
        let filter = dims(1, w.kernel_h, w.kernel_w, 1);
        let output = dims(1, w.out_h, w.out_w, pool.channels);
        // SAFETY: `takes` has made sure that the library computes exactly this output from exactly this input, whose
        // lengths the door has checked.
        let status = unsafe {
            sys::arm_max_pool_s8(
                &context,
                &params,
                &input,
                call.input.as_ptr(),
                &filter,
                &output,
                call.output.as_mut_ptr(),
            )
        };
        status == ARM_CMSIS_NN_SUCCESS
    }
}

/// The library computes whole maps.
fn is_whole(rows: &Range<usize>, window: &Window) -> bool {
    rows.start == 0 && rows.end == window.out_h
}

/// Dimensions that `takes` has seen: all fit.
fn dims(n: usize, h: usize, w: usize, c: usize) -> cmsis_nn_dims {
    let [n, h, w, c] = [n, h, w, c].map(|dimension| dimension as i32);
    cmsis_nn_dims { n, h, w, c }
}

fn fc_filter_dims(dense: &Dense) -> cmsis_nn_dims {
    dims(dense.in_features, 1, 1, dense.out_features)
}

fn stride(window: &Window) -> cmsis_nn_tile {
    cmsis_nn_tile { w: window.stride_w as i32, h: window.stride_h as i32 }
}

fn padding(window: &Window) -> cmsis_nn_tile {
    cmsis_nn_tile { w: window.pad_left as i32, h: window.pad_top as i32 }
}

fn activation(stage: OutputStage) -> cmsis_nn_activation {
    cmsis_nn_activation { min: stage.low.into(), max: stage.high.into() }
}

/// What the output channels of a layer have, and how many products a sum has.
#[derive(Clone, Copy)]
struct Channels<'a> {
    bias: &'a [i32],
    multipliers: &'a [Multiplier],
    taps: usize,
}

impl Channels<'_> {
    /// Whether the library computes all of them as we do.
    fn are_taken(self) -> bool {
        let mut channels = self.bias.iter().zip(self.multipliers);
        channels.all(|(&bias, &factor)| takes::channel(bias, factor, self.taps))
    }

    /// The factor that all have, if so.
    fn common(self) -> Option<Multiplier> {
        let (&first, rest) = self.multipliers.split_first()?;
        rest.iter().all(|&factor| factor == first).then_some(first)
    }

    /// Puts the factors, apart, into scratch, and what remains of it. `None` if it is too short.
    fn split(self, scratch: &mut [i32]) -> Option<(&mut [i32], &mut [i32], &mut [i32])> {
        let channels = self.multipliers.len();
        let (multipliers, rest) = scratch.split_at_mut_checked(channels)?;
        let (shifts, rest) = rest.split_at_mut_checked(channels)?;
        for ((multiplier, shift), factor) in
            multipliers.iter_mut().zip(shifts.iter_mut()).zip(self.multipliers)
        {
            *multiplier = factor.multiplier;
            *shift = factor.shift;
        }
        Some((multipliers, shifts, rest))
    }
}

/// Scratch as words; `None` if it is not aligned to them.
fn words(scratch: &mut [u8]) -> Option<&mut [i32]> {
    let whole = scratch.len() / size_of::<i32>() * size_of::<i32>();
    bytemuck::try_cast_slice_mut(scratch.get_mut(..whole)?).ok()
}

/// The scratch of a convolution, divided: the library's buffer, multipliers, shifts, the rest.
struct Scratch<'a> {
    buffer: &'a mut [i32],
    multipliers: &'a mut [i32],
    shifts: &'a mut [i32],
    rest: &'a mut [i32],
}

impl<'a> Scratch<'a> {
    /// Divides scratch, `reserved` bytes of it for the library, and fills in the factors. `None` if it is too short, not
    /// aligned, or the library would not compute these channels as we do.
    fn new(scratch: &'a mut [u8], reserved: usize, channels: Channels<'_>) -> Option<Self> {
        if !channels.are_taken() {
            return None;
        }
        let words = words(scratch)?;
        let (buffer, rest) = words.split_at_mut_checked(reserved / size_of::<i32>())?;
        let (multipliers, shifts, rest) = channels.split(rest)?;
        Some(Self { buffer, multipliers, shifts, rest })
    }

    /// The buffer, if it is as large as the library asks for.
    fn context(&mut self, bytes: i32) -> Option<cmsis_nn_context> {
        let enough = usize::try_from(bytes).is_ok_and(|bytes| bytes <= size_of_val(self.buffer));
        // `takes` limits sizes, so this fits; and the library goes by the size it has told.
        let size = i32::try_from(size_of_val(self.buffer)).ok()?;
        enough.then(|| cmsis_nn_context { buf: self.buffer.as_mut_ptr().cast(), size })
    }

    fn factors(&mut self) -> cmsis_nn_per_channel_quant_params {
        cmsis_nn_per_channel_quant_params {
            multiplier: self.multipliers.as_mut_ptr(),
            shift: self.shifts.as_mut_ptr(),
        }
    }

    /// A copy of a depthwise filter, `[channels][taps]` in the file and `[taps][channels]` in the library.
    fn channels_last(&mut self, weights: &[i8], channels: usize) -> Option<*const i8> {
        let rest: &mut [i8] = bytemuck::cast_slice_mut(self.rest);
        let copy = rest.get_mut(..weights.len())?;
        let taps = weights.len().checked_div(channels)?;
        if taps == 0 {
            return None;
        }
        for (channel, weights) in weights.chunks_exact(taps).enumerate() {
            let column = copy.get_mut(channel..)?.iter_mut().step_by(channels);
            for (copy, &weight) in column.zip(weights) {
                *copy = weight;
            }
        }
        Some(copy.as_ptr())
    }
}

/// The factors of a dense layer, one for all or one for each output.
struct Factors<'a> {
    common: Option<Multiplier>,
    multipliers: &'a [i32],
    shifts: &'a [i32],
}

impl<'a> Factors<'a> {
    /// Puts factors that differ into scratch. `None` if it is too short, not aligned, or the library would not compute
    /// these channels as we do.
    fn new(scratch: &'a mut [u8], channels: Channels<'_>) -> Option<Self> {
        if !channels.are_taken() {
            return None;
        }
        let common = channels.common();
        if common.is_some() || cfg!(not(netkit_cmsis_nn_7)) {
            return Some(Self { common, multipliers: &[], shifts: &[] });
        }
        let (multipliers, shifts, _) = channels.split(words(scratch)?)?;
        Some(Self { common, multipliers, shifts })
    }

    /// As the wrapper takes them.
    #[cfg(netkit_cmsis_nn_7)]
    fn any(&self) -> sys::cmsis_nn_quant_params {
        let (multiplier, shift): (*const i32, *const i32) = match &self.common {
            Some(factor) => (&factor.multiplier, &factor.shift),
            None => (self.multipliers.as_ptr(), self.shifts.as_ptr()),
        };
        sys::cmsis_nn_quant_params {
            multiplier: multiplier.cast_mut(),
            shift: shift.cast_mut(),
            is_per_channel: self.common.is_none().into(),
        }
    }

    /// As the function for one factor takes it.
    #[cfg(not(netkit_cmsis_nn_7))]
    fn of_tensor(&self) -> Option<sys::cmsis_nn_per_tensor_quant_params> {
        let Multiplier { multiplier, shift } = self.common?;
        Some(sys::cmsis_nn_per_tensor_quant_params { multiplier, shift })
    }
}
