//! Inner loops for Cortex-M0 and M0+ (and M23): ARMv6-M and ARMv8-M Baseline.
//!
//! Eight registers can be loaded to and multiplied, and a product overwrites a factor; the others can be added to. So sums
//! live in the high ones, and a product is taken where a factor is used for the last time. A compiler keeps the sums on the
//! stack.

use crate::micro::plain::{Group, Loops};
use crate::micro::{dense_s8, depthwise_conv2d_s8};
use core::mem::offset_of;

/// ARMv6-M, which the build script has found the target to be.
pub(crate) struct Thumb1;

/// What the assembly of a convolution reads and writes.
#[repr(C)]
struct Conv2dTaps {
    rows: [*const i8; 2],
    columns: *const Group,
    /// The last group.
    end: *const Group,
    back: usize,
    sums: [[i32; 2]; 2],
}

/// What the assembly of a dense layer reads and writes.
#[repr(C)]
struct DenseTaps {
    rows: [*const i8; dense_s8::BLOCK],
    input: *const i8,
    offset: i32,
    taps: usize,
    sums: [i32; dense_s8::BLOCK],
}

/// What the assembly of a depthwise convolution reads and writes.
#[repr(C)]
struct DepthwiseTaps {
    input: *const i8,
    weights: *const [i16; depthwise_conv2d_s8::BLOCK],
    tap_step: usize,
    rows: usize,
    columns: usize,
    offset: i32,
    input_skip: usize,
    weights_skip: usize,
    sums: [i32; depthwise_conv2d_s8::BLOCK],
}

impl Loops<2> for Thumb1 {
    #[inline(always)]
    unsafe fn conv2d(
        rows: [*const i8; 2],
        columns: *const Group,
        whole_groups: usize,
        back: usize,
        sums: &mut [[i32; 2]; 2],
    ) {
        let end = columns.wrapping_add(whole_groups);
        let mut taps = Conv2dTaps { rows, columns, end, back, sums: *sums };
        // SAFETY: the caller's promise.
        unsafe { conv2d(&mut taps) };
        *sums = taps.sums;
    }

    #[inline(always)]
    unsafe fn dense(
        rows: [*const i8; dense_s8::BLOCK],
        input: *const i8,
        offset: i32,
        taps: usize,
        sums: &mut [i32; dense_s8::BLOCK],
    ) {
        let mut taps = DenseTaps { rows, input, offset, taps, sums: *sums };
        // SAFETY: the caller's promise; there are at least four taps.
        unsafe { dense(&mut taps) };
        *sums = taps.sums;
    }

    #[inline(always)]
    unsafe fn depthwise_conv2d(
        pass: &depthwise_conv2d_s8::Pass,
        weights: *const [i16; depthwise_conv2d_s8::BLOCK],
        sums: &mut [i32; depthwise_conv2d_s8::BLOCK],
    ) {
        let mut taps = DepthwiseTaps {
            input: pass.input,
            weights,
            tap_step: pass.tap_step,
            rows: pass.rows,
            columns: pass.columns,
            offset: i32::from(pass.offset as i16),
            input_skip: pass.input_skip,
            weights_skip: pass.weights_skip,
            sums: *sums,
        };
        // SAFETY: the caller's promise; there is a row and a column.
        unsafe { depthwise_conv2d(&mut taps) };
        *sums = taps.sums;
    }
}

/// Loads the four sums at an offset from r0 into r8 to r11; r4 is lost.
macro_rules! load_sums {
    () => {
        "ldr r4, [r0, {sums}]
        mov r8, r4
        ldr r4, [r0, {sums} + 4]
        mov r9, r4
        ldr r4, [r0, {sums} + 8]
        mov r10, r4
        ldr r4, [r0, {sums} + 12]
        mov r11, r4"
    };
}

/// Stores r8 to r11 where they came from. The structure's address is at the stack pointer; r0 and r4 are lost.
macro_rules! store_sums {
    () => {
        "ldr r0, [sp]
        mov r4, r8
        str r4, [r0, {sums}]
        mov r4, r9
        str r4, [r0, {sums} + 4]
        mov r4, r10
        str r4, [r0, {sums} + 8]
        mov r4, r11
        str r4, [r0, {sums} + 12]"
    };
}

/// One tap of two channels, whose weights are at r0 and r1 plus r2, and two pixels, whose values are halves of words from
/// r3 on.
macro_rules! conv2d_tap {
    ($first:literal, $second:literal, $half:literal) => {
        concat!(
            "ldr r4, [r3, ",
            $first,
            "]\n",
            "ldr r5, [r3, ",
            $second,
            "]\n",
            "ldrsb r6, [r0, r2]\n",
            $half,
            "\n",
            "mov r7, r6\n",
            "muls r7, r4, r7\n",
            "add r8, r7\n",
            "muls r6, r5, r6\n",
            "add r9, r6\n",
            "ldrsb r6, [r1, r2]\n",
            "muls r4, r6, r4\n",
            "add r10, r4\n",
            "muls r5, r6, r5\n",
            "add r11, r5\n",
            "adds r2, #1\n",
        )
    };
}

/// See [`Loops::conv2d`].
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn conv2d(taps: &mut Conv2dTaps) {
    assembly! {
        taps {
        load_sums!(),
        "ldr r4, [r0, {end}]",
        "mov r12, r4",
        "ldr r3, [r0, {columns}]",
        "ldr r1, [r0, {rows} + 4]",
        "ldr r0, [r0, {rows}]",
        "movs r2, #0",
        "2:",
        // Halves lie in the order 0, 2, 1, 3.
        conv2d_tap!("#0", "#8", "sxth r4, r4\nsxth r5, r5"),
        conv2d_tap!("#4", "#12", "sxth r4, r4\nsxth r5, r5"),
        conv2d_tap!("#0", "#8", "asrs r4, r4, #16\nasrs r5, r5, #16"),
        conv2d_tap!("#4", "#12", "asrs r4, r4, #16\nasrs r5, r5, #16"),
        "adds r3, #16",
        "cmp r3, r12",
        "blo 2b",
        "bhi 3f",
        // The last group.
        "ldr r4, [sp]",
        "ldr r4, [r4, {back}]",
        "subs r2, r2, r4",
        "b 2b",
        "3:",
        store_sums!(),
        };
        rows = offset_of!(Conv2dTaps, rows),
        columns = offset_of!(Conv2dTaps, columns),
        end = offset_of!(Conv2dTaps, end),
        back = offset_of!(Conv2dTaps, back),
        sums = offset_of!(Conv2dTaps, sums),
    }
}

/// One row of a dense layer's tap: its weight, its product with r4, the sum.
macro_rules! dense_row {
    ($row:literal, $sum:literal) => {
        concat!("ldrsb r5, [", $row, ", r3]\n", "muls r5, r4, r5\n", "add ", $sum, ", r5\n",)
    };
}

/// See [`Loops::dense`].
///
/// # Safety
///
/// As there, and there is a tap.
#[inline(never)]
unsafe fn dense(taps: &mut DenseTaps) {
    assembly! {
        taps {
        load_sums!(),
        "ldr r4, [r0, {offset}]",
        "mov r12, r4",
        "ldr r4, [r0, {taps}]",
        "mov lr, r4",
        "ldr r7, [r0, {input}]",
        "ldr r6, [r0, {rows} + 12]",
        "ldr r2, [r0, {rows} + 8]",
        "ldr r1, [r0, {rows} + 4]",
        "ldr r0, [r0, {rows}]",
        "movs r3, #0",
        "2:",
        "ldrsb r4, [r7, r3]",
        "add r4, r12",
        dense_row!("r0", "r8"),
        dense_row!("r1", "r9"),
        dense_row!("r2", "r10"),
        dense_row!("r6", "r11"),
        "adds r3, #1",
        "cmp r3, lr",
        "blo 2b",
        store_sums!(),
        };
        rows = offset_of!(DenseTaps, rows),
        input = offset_of!(DenseTaps, input),
        offset = offset_of!(DenseTaps, offset),
        taps = offset_of!(DenseTaps, taps),
        sums = offset_of!(DenseTaps, sums),
    }
}

/// One channel of a tap: its input, its product with a weight, the sum.
macro_rules! depthwise_channel {
    ($input:literal, $weight:literal, $sum:literal) => {
        concat!(
            "ldrb r4, [r0, ",
            $input,
            "]\n",
            "sxtb r4, r4\n",
            "add r4, r12\n",
            $weight,
            "\n",
            "muls r4, r6, r4\n",
            "add ",
            $sum,
            ", r4\n",
        )
    };
}

/// See [`Loops::depthwise_conv2d`].
///
/// # Safety
///
/// As there, and there is a row and a column.
#[inline(never)]
unsafe fn depthwise_conv2d(taps: &mut DepthwiseTaps) {
    assembly! {
        taps {
        load_sums!(),
        "ldr r4, [r0, {offset}]",
        "mov r12, r4",
        "ldr r4, [r0, {rows}]",
        "mov lr, r4",
        "mov r7, r0",
        "ldr r2, [r7, {tap_step}]",
        "ldr r1, [r7, {weights}]",
        "ldr r0, [r7, {input}]",
        "2:",
        "ldr r3, [r7, {columns}]",
        "3:",
        // Weights lie in the order 0, 2, 1, 3.
        "ldr r5, [r1, #0]",
        depthwise_channel!("#0", "sxth r6, r5", "r8"),
        depthwise_channel!("#2", "asrs r6, r5, #16", "r10"),
        "ldr r5, [r1, #4]",
        depthwise_channel!("#1", "sxth r6, r5", "r9"),
        depthwise_channel!("#3", "asrs r6, r5, #16", "r11"),
        "adds r0, r0, r2",
        "adds r1, #8",
        "subs r3, #1",
        "bne 3b",
        "ldr r4, [r7, {input_skip}]",
        "adds r0, r0, r4",
        "ldr r4, [r7, {weights_skip}]",
        "adds r1, r1, r4",
        "mov r4, lr",
        "subs r4, #1",
        "mov lr, r4",
        "bne 2b",
        store_sums!(),
        };
        input = offset_of!(DepthwiseTaps, input),
        weights = offset_of!(DepthwiseTaps, weights),
        tap_step = offset_of!(DepthwiseTaps, tap_step),
        rows = offset_of!(DepthwiseTaps, rows),
        columns = offset_of!(DepthwiseTaps, columns),
        offset = offset_of!(DepthwiseTaps, offset),
        input_skip = offset_of!(DepthwiseTaps, input_skip),
        weights_skip = offset_of!(DepthwiseTaps, weights_skip),
        sums = offset_of!(DepthwiseTaps, sums),
    }
}
