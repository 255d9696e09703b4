//! Passes for Cortex-M3: ARMv7-M without the DSP extension.
//!
//! A multiply-accumulate and a load that sign-extends are the tools. Two channels of two pixels share their loads, so
//! that a product costs two instructions; in the registers there are, a compiler does not hold more than half of it.

use crate::micro::Passes;
use crate::micro::conv2d_s8::Pass as Conv2dPass;
use crate::micro::dense_s8::Pass as DensePass;
use crate::micro::depthwise_conv2d_s8::Pass as DepthwisePass;
use core::mem::offset_of;

/// ARMv7-M, which the build script has found the target to be.
pub(crate) struct Thumb2;

impl Passes for Thumb2 {
    const CONV2D_CHANNELS: usize = 2;

    #[inline(always)]
    unsafe fn conv2d(pass: &mut Conv2dPass) {
        // SAFETY: the caller's promise.
        unsafe { conv2d(pass) };
    }

    #[inline(always)]
    unsafe fn dense(pass: &mut DensePass) {
        // SAFETY: the caller's promise.
        unsafe { dense(pass) };
    }

    #[inline(always)]
    unsafe fn depthwise_conv2d(pass: &mut DepthwisePass) {
        // SAFETY: the caller's promise.
        unsafe { depthwise_conv2d(pass) };
    }
}

/// Rescales the sum in a register to an int8 value, still sign-extended; r4 and r5 are lost.
///
/// The doubling high product is twice the high word, plus bit 31 of the low word, plus bit 30 of it for rounding, which
/// the shift leaves in the carry. The second rounding, ties away from zero, adds the sign, shifts by all but one, adds
/// one with the zero point, and shifts by one more while saturating.
macro_rules! rescale {
    ($sum:literal, $multiplier:literal, $shift:literal, $doubled_zero_point:literal) => {
        concat!(
            "smull r4, ",
            $sum,
            ", ",
            $sum,
            ", ",
            $multiplier,
            "\n",
            "lsls r5, r4, #2\n",
            "adc ",
            $sum,
            ", ",
            $sum,
            ", ",
            $sum,
            "\n",
            "add ",
            $sum,
            ", ",
            $sum,
            ", r4, lsr #31\n",
            "add ",
            $sum,
            ", ",
            $sum,
            ", ",
            $sum,
            ", asr #31\n",
            "asr ",
            $sum,
            ", ",
            $sum,
            ", ",
            $shift,
            "\n",
            "add ",
            $sum,
            ", ",
            $sum,
            ", ",
            $doubled_zero_point,
            "\n",
            "ssat ",
            $sum,
            ", #8, ",
            $sum,
            ", asr #1\n",
        )
    };
}

/// Clamps a register to r6 and r7.
macro_rules! clamp {
    ($value:literal) => {
        concat!(
            "cmp ", $value, ", r6\n", "it lt\n", "movlt ", $value, ", r6\n", "cmp ", $value,
            ", r7\n", "it gt\n", "movgt ", $value, ", r7\n",
        )
    };
}

/// Clamps r9 to r12, if the pass at lr asks for it; the label follows at once.
macro_rules! clamp_four {
    ($label:literal) => {
        concat!(
            "ldr r2, [lr, {clamps}]\n",
            "cbz r2, ",
            $label,
            "f\n",
            "ldrsb r6, [lr, {low}]\n",
            "ldrsb r7, [lr, {high}]\n",
            clamp!("r9"),
            clamp!("r10"),
            clamp!("r11"),
            clamp!("r12"),
            $label,
            ":\n",
        )
    };
}

/// Rescales the sums in r9 to r12, clamps them, and stores them as four adjacent outputs. lr points to the pass, whose
/// multipliers and outputs are used up; the label is used once. Goes back to label 2 if there is another block.
macro_rules! finish_four {
    ($label:literal) => {
        concat!(
            "ldr r7, [lr, {multipliers}]\n",
            "ldr r8, [lr, {doubled_zero_point}]\n",
            "ldm r7!, {{r0, r1, r2, r3}}\n",
            "mvn r1, r1\n",
            "mvn r3, r3\n",
            rescale!("r9", "r0", "r1", "r8"),
            rescale!("r10", "r2", "r3", "r8"),
            "ldm r7!, {{r0, r1, r2, r3}}\n",
            "str r7, [lr, {multipliers}]\n",
            "mvn r1, r1\n",
            "mvn r3, r3\n",
            rescale!("r11", "r0", "r1", "r8"),
            rescale!("r12", "r2", "r3", "r8"),
            clamp_four!($label),
            "bfi r9, r10, #8, #8\n",
            "bfi r9, r11, #16, #8\n",
            "bfi r9, r12, #24, #8\n",
            "ldrd r0, r1, [lr, {output}]\n",
            "str r9, [r0], #4\n",
            "subs r1, #1\n",
            "strd r0, r1, [lr, {output}]\n",
            "bne 2b\n",
        )
    };
}

/// One tap of two channels (r0, r1) and two pixels, whose values the arguments load: sums in r9 to r12.
macro_rules! conv2d_tap {
    ($first:literal, $second:literal) => {
        concat!(
            "ldrsh r4, ",
            $first,
            "\n",
            "ldrsh r5, ",
            $second,
            "\n",
            "ldrsb r2, [r0], #1\n",
            "ldrsb r3, [r1], #1\n",
            "mla r9, r2, r4, r9\n",
            "mla r10, r2, r5, r10\n",
            "mla r11, r3, r4, r11\n",
            "mla r12, r3, r5, r12\n",
        )
    };
}

/// Four taps, in the order the columns (r6) have them.
macro_rules! conv2d_group {
    () => {
        concat!(
            conv2d_tap!("[r6], #16", "[r6, #-8]"),
            conv2d_tap!("[r6, #-12]", "[r6, #-4]"),
            conv2d_tap!("[r6, #-14]", "[r6, #-6]"),
            conv2d_tap!("[r6, #-10]", "[r6, #-2]"),
        )
    };
}

/// See [`Passes::conv2d`].
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn conv2d(pass: &mut Conv2dPass) {
    assembly! {
        pass {
        "2:",
        "ldr r8, [sp]",
        "ldrd r0, r1, [r8, {weights}]",
        "ldrd r6, lr, [r8, {columns}]",
        "ldr r7, [r8, {bias}]",
        "ldrd r9, r11, [r7], #8",
        "str r7, [r8, {bias}]",
        "add r1, r0, r1",
        "mov r10, r9",
        "mov r12, r11",
        "cmp lr, #0",
        "beq 4f",
        "3:",
        conv2d_group!(),
        "subs lr, #1",
        "bne 3b",
        "4:",
        "ldr r7, [r8, {back}]",
        "sub r0, r7",
        "sub r1, r7",
        conv2d_group!(),
        // r0 and r1 have reached the ends of their rows; the next block's begin at r1.
        "mov lr, r8",
        "str r1, [lr, {weights}]",
        "ldr r7, [lr, {multipliers}]",
        "ldm r7!, {{r0, r1, r2, r3}}",
        "str r7, [lr, {multipliers}]",
        "mvn r1, r1",
        "mvn r3, r3",
        "ldr r8, [lr, {doubled_zero_point}]",
        rescale!("r9", "r0", "r1", "r8"),
        rescale!("r10", "r0", "r1", "r8"),
        rescale!("r11", "r2", "r3", "r8"),
        rescale!("r12", "r2", "r3", "r8"),
        clamp_four!("5"),
        "ldrd r0, r1, [lr, {output}]",
        "add r1, r0",
        "strb r10, [r1]",
        "strb r12, [r1, #1]",
        "strb r9, [r0], #1",
        "strb r11, [r0], #1",
        "str r0, [lr, {output}]",
        "ldr r7, [lr, {blocks}]",
        "subs r7, #1",
        "str r7, [lr, {blocks}]",
        "bne 2b",
        };
        weights = offset_of!(Conv2dPass, weights),
        columns = offset_of!(Conv2dPass, columns),
        back = offset_of!(Conv2dPass, back),
        bias = offset_of!(Conv2dPass, bias),
        multipliers = offset_of!(Conv2dPass, multipliers),
        doubled_zero_point = offset_of!(Conv2dPass, finish.doubled_zero_point),
        low = offset_of!(Conv2dPass, finish.low),
        high = offset_of!(Conv2dPass, finish.high),
        clamps = offset_of!(Conv2dPass, finish.clamps),
        output = offset_of!(Conv2dPass, output),
        blocks = offset_of!(Conv2dPass, blocks),
    }
}

/// One tap of four features: rows 0 and 1 from r0 on, rows 2 and 3 from r1 on, r2 apart; input from r3 on, its offset
/// in r4.
macro_rules! dense_tap {
    () => {
        "ldrsb r5, [r3], #1
        ldrsb r7, [r0, r2]
        add r5, r4
        mla r10, r7, r5, r10
        ldrsb r7, [r0], #1
        mla r9, r7, r5, r9
        ldrsb r7, [r1, r2]
        mla r12, r7, r5, r12
        ldrsb r7, [r1], #1
        mla r11, r7, r5, r11"
    };
}

/// See [`Passes::dense`].
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn dense(pass: &mut DensePass) {
    assembly! {
        pass {
        "2:",
        "ldr r8, [sp]",
        "ldrd r0, r2, [r8, {weights}]",
        "ldrd r3, r4, [r8, {input}]",
        "sxth r4, r4",
        "ldrd lr, r6, [r8, {whole_groups}]",
        "add r1, r0, r2, lsl #1",
        "ldr r7, [r8, {bias}]",
        "ldm r7!, {{r9, r10, r11, r12}}",
        "str r7, [r8, {bias}]",
        "cmp lr, #0",
        "beq 4f",
        "3:",
        dense_tap!(),
        dense_tap!(),
        dense_tap!(),
        dense_tap!(),
        "subs lr, #1",
        "bne 3b",
        "4:",
        // Of the last group, the taps that the group before does not have.
        "rsb r6, r6, #4",
        "5:",
        dense_tap!(),
        "subs r6, #1",
        "bne 5b",
        // r1 has reached the end of row 2; the next four begin after row 3.
        "mov lr, r8",
        "add r1, r2",
        "str r1, [lr, {weights}]",
        finish_four!("6"),
        };
        weights = offset_of!(DensePass, weights),
        input = offset_of!(DensePass, input),
        whole_groups = offset_of!(DensePass, whole_groups),
        bias = offset_of!(DensePass, bias),
        multipliers = offset_of!(DensePass, multipliers),
        doubled_zero_point = offset_of!(DensePass, finish.doubled_zero_point),
        low = offset_of!(DensePass, finish.low),
        high = offset_of!(DensePass, finish.high),
        clamps = offset_of!(DensePass, finish.clamps),
        output = offset_of!(DensePass, output),
    }
}

/// One channel of a tap: input and weight as the arguments load them.
macro_rules! depthwise_channel {
    ($input:literal, $weight:literal, $sum:literal) => {
        concat!(
            "ldrsb r5, ",
            $input,
            "\n",
            "ldrsh r7, ",
            $weight,
            "\n",
            "add r5, r4\n",
            "mla ",
            $sum,
            ", r5, r7, ",
            $sum,
            "\n",
        )
    };
}

/// See [`Passes::depthwise_conv2d`].
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn depthwise_conv2d(pass: &mut DepthwisePass) {
    assembly! {
        pass {
        "2:",
        "ldr r8, [sp]",
        "ldrd r0, r2, [r8, {input}]",
        "ldr r4, [r8, {offset}]",
        "sxth r4, r4",
        "add r7, r0, #4",
        "str r7, [r8, {input}]",
        "ldr r7, [r8, {bias}]",
        "ldm r7!, {{r9, r10, r11, r12}}",
        "str r7, [r8, {bias}]",
        "ldr r1, [r8, {weights}]",
        "ldrd r3, r5, [r8, {block_step}]",
        "add r3, r1",
        "str r3, [r8, {weights}]",
        "add r1, r5",
        "ldrd r3, lr, [r8, {rows}]",
        // No row or no column: the bias alone.
        "cmp r3, #0",
        "it ne",
        "cmpne lr, #0",
        "beq 5f",
        "3:",
        "mov r6, lr",
        "4:",
        depthwise_channel!("[r0, #1]", "[r1, #4]", "r10"),
        depthwise_channel!("[r0, #2]", "[r1, #2]", "r11"),
        depthwise_channel!("[r0, #3]", "[r1, #6]", "r12"),
        depthwise_channel!("[r0]", "[r1], #8", "r9"),
        "add r0, r2",
        "subs r6, #1",
        "bne 4b",
        "ldrd r5, r6, [r8, {input_skip}]",
        "add r0, r5",
        "add r1, r6",
        "subs r3, #1",
        "bne 3b",
        "5:",
        "mov lr, r8",
        finish_four!("6"),
        };
        input = offset_of!(DepthwisePass, input),
        offset = offset_of!(DepthwisePass, offset),
        weights = offset_of!(DepthwisePass, weights),
        rows = offset_of!(DepthwisePass, rows),
        block_step = offset_of!(DepthwisePass, block_step),
        input_skip = offset_of!(DepthwisePass, input_skip),
        bias = offset_of!(DepthwisePass, bias),
        multipliers = offset_of!(DepthwisePass, multipliers),
        doubled_zero_point = offset_of!(DepthwisePass, finish.doubled_zero_point),
        low = offset_of!(DepthwisePass, finish.low),
        high = offset_of!(DepthwisePass, finish.high),
        clamps = offset_of!(DepthwisePass, finish.clamps),
        output = offset_of!(DepthwisePass, output),
    }
}
