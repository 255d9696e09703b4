//! The C interface of CMSIS-NN as it is used here: structures, and declarations of the wrapper functions.
//!
//! These have not changed from version 4 to 7; the functions below the wrappers have, so none of them is declared.

#![allow(non_camel_case_types, reason = "the names of the C header")]

use core::ffi::c_void;

/// Scratch memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct cmsis_nn_context {
    pub(crate) buf: *mut c_void,
    pub(crate) size: i32,
}

/// A shape.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct cmsis_nn_dims {
    pub(crate) n: i32,
    pub(crate) h: i32,
    pub(crate) w: i32,
    pub(crate) c: i32,
}

/// A pair of width and height, width first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct cmsis_nn_tile {
    pub(crate) w: i32,
    pub(crate) h: i32,
}

/// The clamp of an output.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct cmsis_nn_activation {
    pub(crate) min: i32,
    pub(crate) max: i32,
}

/// Parameters of a convolution. The output's offset is its zero point, the input's the negated one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct cmsis_nn_conv_params {
    pub(crate) input_offset: i32,
    pub(crate) output_offset: i32,
    pub(crate) stride: cmsis_nn_tile,
    pub(crate) padding: cmsis_nn_tile,
    pub(crate) dilation: cmsis_nn_tile,
    pub(crate) activation: cmsis_nn_activation,
}

/// Parameters of a depthwise convolution.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct cmsis_nn_dw_conv_params {
    pub(crate) input_offset: i32,
    pub(crate) output_offset: i32,
    pub(crate) ch_mult: i32,
    pub(crate) stride: cmsis_nn_tile,
    pub(crate) padding: cmsis_nn_tile,
    pub(crate) dilation: cmsis_nn_tile,
    pub(crate) activation: cmsis_nn_activation,
}

/// Parameters of a fully connected layer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct cmsis_nn_fc_params {
    pub(crate) input_offset: i32,
    pub(crate) filter_offset: i32,
    pub(crate) output_offset: i32,
    pub(crate) activation: cmsis_nn_activation,
}

/// Parameters of a pool.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct cmsis_nn_pool_params {
    pub(crate) stride: cmsis_nn_tile,
    pub(crate) padding: cmsis_nn_tile,
    pub(crate) activation: cmsis_nn_activation,
}

/// Factors of the output channels. The library only reads through the pointers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct cmsis_nn_per_channel_quant_params {
    pub(crate) multiplier: *mut i32,
    pub(crate) shift: *mut i32,
}

/// The factor of all outputs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(netkit_cmsis_nn_7, allow(dead_code, reason = "version 7 has a wrapper"))]
pub(crate) struct cmsis_nn_per_tensor_quant_params {
    pub(crate) multiplier: i32,
    pub(crate) shift: i32,
}

/// One factor, or one for each output. The library only reads through the pointers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(netkit_cmsis_nn_7), allow(dead_code, reason = "only version 7 has the wrapper"))]
pub(crate) struct cmsis_nn_quant_params {
    pub(crate) multiplier: *mut i32,
    pub(crate) shift: *mut i32,
    pub(crate) is_per_channel: i32,
}

/// The status that means success; any other is negative.
///
/// The C type is an enumeration, of one byte where enumerations are short and of four elsewhere. The callee extends the
/// sign either way, so functions are declared as returning `i32`.
pub(crate) const ARM_CMSIS_NN_SUCCESS: i32 = 0;

#[rustfmt::skip]
unsafe extern "C" {
    pub(crate) fn arm_convolve_wrapper_s8(
        ctx: *const cmsis_nn_context,
        conv_params: *const cmsis_nn_conv_params,
        quant_params: *const cmsis_nn_per_channel_quant_params,
        input_dims: *const cmsis_nn_dims, input_data: *const i8,
        filter_dims: *const cmsis_nn_dims, filter_data: *const i8,
        bias_dims: *const cmsis_nn_dims, bias_data: *const i32,
        output_dims: *const cmsis_nn_dims, output_data: *mut i8,
    ) -> i32;

    pub(crate) fn arm_convolve_wrapper_s8_get_buffer_size(
        conv_params: *const cmsis_nn_conv_params,
        input_dims: *const cmsis_nn_dims,
        filter_dims: *const cmsis_nn_dims,
        output_dims: *const cmsis_nn_dims,
    ) -> i32;

    pub(crate) fn arm_depthwise_conv_wrapper_s8(
        ctx: *const cmsis_nn_context,
        dw_conv_params: *const cmsis_nn_dw_conv_params,
        quant_params: *const cmsis_nn_per_channel_quant_params,
        input_dims: *const cmsis_nn_dims, input_data: *const i8,
        filter_dims: *const cmsis_nn_dims, filter_data: *const i8,
        bias_dims: *const cmsis_nn_dims, bias_data: *const i32,
        output_dims: *const cmsis_nn_dims, output_data: *mut i8,
    ) -> i32;

    pub(crate) fn arm_depthwise_conv_wrapper_s8_get_buffer_size(
        dw_conv_params: *const cmsis_nn_dw_conv_params,
        input_dims: *const cmsis_nn_dims,
        filter_dims: *const cmsis_nn_dims,
        output_dims: *const cmsis_nn_dims,
    ) -> i32;

    #[cfg(netkit_cmsis_nn_7)]
    pub(crate) fn arm_fully_connected_wrapper_s8(
        ctx: *const cmsis_nn_context,
        fc_params: *const cmsis_nn_fc_params,
        quant_params: *const cmsis_nn_quant_params,
        input_dims: *const cmsis_nn_dims, input_data: *const i8,
        filter_dims: *const cmsis_nn_dims, filter_data: *const i8,
        bias_dims: *const cmsis_nn_dims, bias_data: *const i32,
        output_dims: *const cmsis_nn_dims, output_data: *mut i8,
    ) -> i32;

    #[cfg(not(netkit_cmsis_nn_7))]
    pub(crate) fn arm_fully_connected_s8(
        ctx: *const cmsis_nn_context,
        fc_params: *const cmsis_nn_fc_params,
        quant_params: *const cmsis_nn_per_tensor_quant_params,
        input_dims: *const cmsis_nn_dims, input_data: *const i8,
        filter_dims: *const cmsis_nn_dims, filter_data: *const i8,
        bias_dims: *const cmsis_nn_dims, bias_data: *const i32,
        output_dims: *const cmsis_nn_dims, output_data: *mut i8,
    ) -> i32;

    pub(crate) fn arm_fully_connected_s8_get_buffer_size(filter_dims: *const cmsis_nn_dims) -> i32;

    pub(crate) fn arm_max_pool_s8(
        ctx: *const cmsis_nn_context,
        pool_params: *const cmsis_nn_pool_params,
        input_dims: *const cmsis_nn_dims, input_data: *const i8,
        filter_dims: *const cmsis_nn_dims,
        output_dims: *const cmsis_nn_dims, output_data: *mut i8,
    ) -> i32;
}

/// Sizes as C has them, on every target this is compiled for.
const _: () = {
    const POINTER: usize = size_of::<usize>();
    assert!(size_of::<cmsis_nn_context>() == 2 * POINTER);
    assert!(size_of::<cmsis_nn_dims>() == 16);
    assert!(size_of::<cmsis_nn_tile>() == 8);
    assert!(size_of::<cmsis_nn_activation>() == 8);
    assert!(size_of::<cmsis_nn_conv_params>() == 40);
    assert!(size_of::<cmsis_nn_dw_conv_params>() == 44);
    assert!(size_of::<cmsis_nn_fc_params>() == 20);
    assert!(size_of::<cmsis_nn_pool_params>() == 24);
    assert!(size_of::<cmsis_nn_per_channel_quant_params>() == 2 * POINTER);
    assert!(size_of::<cmsis_nn_per_tensor_quant_params>() == 8);
    assert!(size_of::<cmsis_nn_quant_params>() == if POINTER == 4 { 12 } else { 24 });
};
