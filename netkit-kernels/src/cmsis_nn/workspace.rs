//! Scratch sizes: what CMSIS-NN version 7 asks for, computed before it can be asked.
//!
//! The library is one of three: in plain C, for processors with the DSP extension, or with vectors (MVE). Each is compiled in
//! when *it* is compiled, so the answer is the largest of those that can be linked for this target. A layer is given to
//! the library only if it asks for no more.

use super::takes;
use crate::filter::FilterForm;
use netkit_core::op::{Conv2d, Dense, DepthwiseConv2d};

/// Whether a library with the DSP extension's kernels can be linked. On hosts, where only tests link one, all can.
const DSP: bool = cfg!(any(not(netkit_micro), netkit_cmsis_nn_dsp));

/// Whether a library with vector kernels can be linked.
const MVE: bool = cfg!(any(not(netkit_micro), netkit_cmsis_nn_mve));

/// Alignment of what scratch is divided into: a vector of MVE.
const PART: usize = 16;

const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

pub(super) const fn part(bytes: usize) -> usize {
    bytes.saturating_add(PART - 1) / PART * PART
}

/// Bytes of the arrays of multipliers and shifts.
const fn factors(channels: usize) -> usize {
    channels.saturating_mul(8)
}

/// The library's own buffer for a convolution.
pub(super) const fn conv2d_buffer(conv: &Conv2d) -> usize {
    let w = &conv.window;
    let depth = w.taps().saturating_mul(conv.in_channels);
    if w.taps() == 1 && w.pad_top == 0 && w.pad_left == 0 {
        // Only if compiled by armclang.
        return if DSP { conv.in_channels.saturating_mul(4) } else { 0 };
    }
    let plain = depth.div_ceil(4).saturating_mul(16);
    let mve = if MVE { depth.div_ceil(16).saturating_mul(64) } else { 0 };
    larger(plain, mve)
}

/// The library's own buffer for a depthwise convolution.
pub(super) const fn depthwise_conv2d_buffer(conv: &DepthwiseConv2d) -> usize {
    let w = &conv.window;
    let small = w.kernel_h == 3 && w.kernel_w == 3 && w.pad_top <= 1 && w.pad_left <= 1;
    let taps = w.taps();
    let dsp = if DSP && !small { taps.saturating_mul(conv.channels).saturating_mul(2) } else { 0 };
    // Four pixels of 124 channels.
    let mve = if MVE { taps.saturating_mul(496) } else { 0 };
    larger(dsp, mve)
}

/// Scratch of a convolution on the library: its buffer, multipliers, shifts.
const fn conv2d(conv: &Conv2d) -> usize {
    if !takes::conv2d(conv) {
        return 0;
    }
    part(conv2d_buffer(conv)).saturating_add(factors(conv.out_channels))
}

/// Scratch of a depthwise convolution on the library: its buffer, multipliers, shifts, the filter with channels last.
const fn depthwise_conv2d(conv: &DepthwiseConv2d) -> usize {
    if !takes::depthwise_conv2d(conv) {
        return 0;
    }
    let filter = conv.window.taps().saturating_mul(conv.channels).div_ceil(4).saturating_mul(4);
    part(depthwise_conv2d_buffer(conv))
        .saturating_add(factors(conv.channels))
        .saturating_add(filter)
}

/// Scratch of a dense layer on the library: multipliers, shifts.
const fn dense(dense: &Dense) -> usize {
    if takes::dense(dense) { factors(dense.out_features) } else { 0 }
}

/// Scratch of [`conv2d_s8`](crate::Kernels::conv2d_s8).
#[must_use]
pub const fn conv2d_s8(conv: &Conv2d, form: FilterForm) -> usize {
    let own = crate::workspace_s8::conv2d_s8(conv, form);
    match form {
        FilterForm::File => larger(own, conv2d(conv)),
        FilterForm::Packed => own,
    }
}

/// Scratch of [`depthwise_conv2d_s8`](crate::Kernels::depthwise_conv2d_s8).
#[must_use]
pub const fn depthwise_conv2d_s8(conv: &DepthwiseConv2d, form: FilterForm) -> usize {
    let own = crate::workspace_s8::depthwise_conv2d_s8(conv, form);
    match form {
        FilterForm::File => larger(own, depthwise_conv2d(conv)),
        FilterForm::Packed => own,
    }
}

/// Scratch of [`dense_s8`](crate::Kernels::dense_s8).
#[must_use]
pub const fn dense_s8(layer: &Dense, form: FilterForm) -> usize {
    let own = crate::workspace_s8::dense_s8(layer, form);
    match form {
        FilterForm::File => larger(own, dense(layer)),
        FilterForm::Packed => own,
    }
}
