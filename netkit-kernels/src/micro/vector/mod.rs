//! Int8 kernels for microcontrollers with vectors that the compiler uses by itself: Helium (MVE).
//!
//! Sums of products of bytes are one instruction for sixteen of them there, if both are bytes; so the input
//! keeps its zero point, and what that adds to a sum is taken off once for each channel. Loops over taps
//! and channels run to any length: the compiler has the processor mask the last vector. Whether it still
//! does so shows in the instructions the firmware counts.

pub(crate) mod conv2d_s8;
pub(crate) mod dense_s8;
pub(crate) mod depthwise_conv2d_s8;

#[cfg(netkit_mve)]
pub(crate) use crate::arch::arm::mve::rescale;
use netkit_core::quant::Multiplier;
#[cfg(not(netkit_mve))]
pub(crate) use portable::rescale;

/// Whether [`rescale`] is exact for these channels: it does not shift to the left.
fn is_usual(multipliers: &[Multiplier]) -> bool {
    multipliers.iter().all(|multiplier| multiplier.shift <= 0)
}

/// The products of every channel's weights with two columns of inputs, summed.
///
/// Two channels at a time, in a function of its own: eight slices are as many as the registers hold, and the compiler
/// keeps them there only if nothing else wants them.
#[inline(never)]
fn products(weights: &[i8], [x, y]: [&[i8]; 2], [to_x, to_y]: [&mut [i32]; 2]) {
    let taps = x.len().max(1);
    let pairs = weights.chunks_exact(2 * taps);
    let last = pairs.remainder();
    let (to_x, last_x) = to_x.as_chunks_mut();
    let (to_y, last_y) = to_y.as_chunks_mut();
    for ((rows, to_x), to_y) in pairs.zip(to_x).zip(to_y) {
        let a = rows.get(..taps).unwrap_or(&[]);
        let b = rows.get(taps..).unwrap_or(&[]);
        let (mut ax, mut ay, mut bx, mut by) = (0_i32, 0_i32, 0_i32, 0_i32);
        for (((&a, &b), &x), &y) in a.iter().zip(b).zip(x).zip(y) {
            let (a, b, x, y) = (i32::from(a), i32::from(b), i32::from(x), i32::from(y));
            ax = ax.wrapping_add(a * x);
            ay = ay.wrapping_add(a * y);
            bx = bx.wrapping_add(b * x);
            by = by.wrapping_add(b * y);
        }
        *to_x = [ax, bx];
        *to_y = [ay, by];
    }
    if let ([to_x], [to_y]) = (last_x, last_y) {
        let dot = |column: &[i8]| {
            let products = last.iter().zip(column).map(|(&w, &x)| i32::from(w) * i32::from(x));
            products.fold(0, i32::wrapping_add)
        };
        *to_x = dot(x);
        *to_y = dot(y);
    }
}

/// What sums start from: the bias, less what the input's zero point adds. `weights` are those of one channel after the
/// other, `taps` each.
#[inline(always)]
fn starts(weights: &[i8], taps: usize, bias: &[i32], zero_point: i32, starts: &mut [i32]) {
    let rows = weights.chunks_exact(taps.max(1));
    for ((row, &bias), start) in rows.zip(bias).zip(starts) {
        let sum: i32 = row.iter().map(|&weight| i32::from(weight)).sum();
        *start = bias.wrapping_sub(sum.wrapping_mul(zero_point));
    }
}

/// The same as the assembly, for tests on the host.
#[cfg(not(netkit_mve))]
mod portable {
    use netkit_core::quant::{Multiplier, OutputStage, requantize};

    /// Outputs from sums, one a channel; `starts` are added first.
    pub(crate) fn rescale(
        sums: &[i32],
        starts: &[i32],
        multipliers: &[Multiplier],
        stage: OutputStage,
        output: &mut [i8],
    ) {
        let channels = sums.iter().zip(starts).zip(multipliers);
        for (((&sum, &start), &multiplier), output) in channels.zip(output) {
            *output = requantize(sum.wrapping_add(start), multiplier, stage);
        }
    }
}
