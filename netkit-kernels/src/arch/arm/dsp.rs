//! Passes for Cortex-M with the DSP extension: M4, M7, M33, M35P, M55 without its vectors.
//!
//! Two 16-bit products a cycle (`smlad`) are what these cores have. Weights are read four at a time; `sxtb16`
//! widens the even and the odd ones into two registers, without shuffling, because the input is laid out
//! in the same order: 0, 2, 1, 3.
//!
//! The passes need all fourteen registers, which leaves none to a compiler that would keep its own values
//! beside them, and what lies between two inner loops (the bias, the rescaling, the store) is a good part
//! of the work where sums are short. So they are assembly as a whole.
//!
//! Words are loaded unaligned where rows are not a multiple of four long; ARMv7-M and ARMv8-M Mainline do
//! that in hardware, unless firmware sets `CCR.UNALIGN_TRP`.

use crate::micro::Passes;
use crate::micro::conv2d_s8::Pass as Conv2dPass;
use crate::micro::dense_s8::Pass as DensePass;
use crate::micro::depthwise_conv2d_s8::Pass as DepthwisePass;
use core::arch::asm;
use core::mem::offset_of;

/// The DSP extension, which the build script has found the target to have.
pub(crate) struct Dsp;

impl Passes for Dsp {
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
        if (pass.rows, pass.columns, pass.block_step) == (3, 3, 9 * 8) {
            // SAFETY: the caller's promise; all nine taps are there.
            unsafe { depthwise_conv2d_3x3(pass) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { depthwise_conv2d(pass) };
        }
    }

    #[inline(always)]
    fn widen(offset: u32, bytes: [i8; 4]) -> [u32; 2] {
        let word = u32::from_le_bytes(bytes.map(i8::cast_unsigned));
        [even(offset, word), odd(offset, word)]
    }
}

/// Bytes 0 and 2 of a word, sign-extended, plus the halves of `offset`.
#[inline(always)]
fn even(offset: u32, word: u32) -> u32 {
    let halves;
    // SAFETY: computes on registers.
    unsafe {
        asm!(
            "sxtab16 {halves}, {offset}, {word}",
            halves = lateout(reg) halves,
            offset = in(reg) offset,
            word = in(reg) word,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    halves
}

/// Bytes 1 and 3 of a word, sign-extended, plus the halves of `offset`.
#[inline(always)]
fn odd(offset: u32, word: u32) -> u32 {
    let halves;
    // SAFETY: computes on registers.
    unsafe {
        asm!(
            "sxtab16 {halves}, {offset}, {word}, ror #8",
            halves = lateout(reg) halves,
            offset = in(reg) offset,
            word = in(reg) word,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    halves
}

/// The larger of each pair of bytes.
#[inline(always)]
pub(crate) fn maximum(a: [i8; 4], b: [i8; 4]) -> [i8; 4] {
    let word = |bytes: [i8; 4]| u32::from_le_bytes(bytes.map(i8::cast_unsigned));
    let larger: u32;
    // SAFETY: computes on registers. The difference is only there to set the flags that `sel` selects by, one a byte,
    // from nine bits.
    unsafe {
        asm!(
            "ssub8 {larger}, {a}, {b}",
            "sel {larger}, {a}, {b}",
            larger = out(reg) larger,
            a = in(reg) word(a),
            b = in(reg) word(b),
            options(pure, nomem, nostack)
        );
    }
    larger.to_le_bytes().map(u8::cast_signed)
}

/// Rescales the sum in a register to an int8 value, still sign-extended: `smmulr` of the doubled sum is the
/// doubling high product; the second rounding, ties away from zero, adds the sign, shifts by all but
/// one, adds one with the zero point, and shifts by one more while saturating.
macro_rules! rescale {
    ($sum:literal, $multiplier:literal, $shift:literal, $doubled_zero_point:literal) => {
        concat!(
            "lsl ",
            $sum,
            ", ",
            $sum,
            ", #1\n",
            "smmulr ",
            $sum,
            ", ",
            $sum,
            ", ",
            $multiplier,
            "\n",
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

/// Clamps the bytes of a register to those of two others; a fourth is lost.
macro_rules! clamp {
    ($bytes:literal, $low:literal, $high:literal, $lost:literal) => {
        concat!(
            "ssub8 ", $lost, ", ", $bytes, ", ", $low, "\n", "sel ", $bytes, ", ", $bytes, ", ",
            $low, "\n", "ssub8 ", $lost, ", ", $high, ", ", $bytes, "\n", "sel ", $bytes, ", ",
            $bytes, ", ", $high, "\n",
        )
    };
}

/// Rescales the sums in r9 to r12 and packs the results into r9, clamped. lr points to the pass, whose multipliers
/// are used up; the label follows at once.
macro_rules! rescale_four {
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
            "bfi r9, r10, #8, #8\n",
            "bfi r9, r11, #16, #8\n",
            "bfi r9, r12, #24, #8\n",
            "ldr r2, [lr, {clamps}]\n",
            "cbz r2, ",
            $label,
            "f\n",
            "ldrd r3, r4, [lr, {low}]\n",
            clamp!("r9", "r3", "r4", "r5"),
            $label,
            ":\n",
        )
    };
}

/// Four taps of two channels (weights at r0 and r1) and two pixels (r6): sums in r9 to r12.
macro_rules! conv2d_group {
    () => {
        "ldm r6!, {{r2, r3, r4, r5}}
        ldr r7, [r0], #4
        sxtb16 r8, r7
        sxtb16 r7, r7, ror #8
        smlad r9, r8, r2, r9
        smlad r10, r8, r4, r10
        smlad r9, r7, r3, r9
        smlad r10, r7, r5, r10
        ldr r7, [r1], #4
        sxtb16 r8, r7
        sxtb16 r7, r7, ror #8
        smlad r11, r8, r2, r11
        smlad r12, r8, r4, r12
        smlad r11, r7, r3, r11
        smlad r12, r7, r5, r12"
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
        "subs lr, #4",
        "blo 4f",
        "3:",
        conv2d_group!(),
        conv2d_group!(),
        conv2d_group!(),
        conv2d_group!(),
        "subs lr, #4",
        "bhs 3b",
        "4:",
        "adds lr, #4",
        "beq 6f",
        "5:",
        conv2d_group!(),
        "subs lr, #1",
        "bne 5b",
        "6:",
        "ldr r8, [sp]",
        "ldr r7, [r8, {back}]",
        "sub r0, r7",
        "sub r1, r7",
        conv2d_group!(),
        // r0 and r1 have reached the ends of their rows; the next block's begin at r1.
        "ldr lr, [sp]",
        "str r1, [lr, {weights}]",
        "ldr r7, [lr, {multipliers}]",
        "ldm r7!, {{r2, r3, r4, r5}}",
        "str r7, [lr, {multipliers}]",
        "mvn r3, r3",
        "mvn r5, r5",
        "ldr r8, [lr, {doubled_zero_point}]",
        rescale!("r9", "r2", "r3", "r8"),
        rescale!("r10", "r2", "r3", "r8"),
        rescale!("r11", "r4", "r5", "r8"),
        rescale!("r12", "r4", "r5", "r8"),
        "bfi r9, r11, #8, #8",
        "bfi r10, r12, #8, #8",
        "ldr r2, [lr, {clamps}]",
        "cbz r2, 7f",
        "ldrd r3, r4, [lr, {low}]",
        clamp!("r9", "r3", "r4", "r5"),
        clamp!("r10", "r3", "r4", "r5"),
        "7:",
        "ldrd r0, r1, [lr, {output}]",
        "strh r10, [r0, r1]",
        "strh r9, [r0], #2",
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
        clamps = offset_of!(Conv2dPass, finish.clamps),
        output = offset_of!(Conv2dPass, output),
        blocks = offset_of!(Conv2dPass, blocks),
    }
}

/// Four weights of one feature times the inputs in r5 and r6.
macro_rules! dense_row {
    ($load:literal, $sum:literal) => {
        concat!(
            "ldr r7, ",
            $load,
            "\n",
            "sxtb16 r8, r7\n",
            "sxtb16 r7, r7, ror #8\n",
            "smlad ",
            $sum,
            ", r8, r5, ",
            $sum,
            "\n",
            "smlad ",
            $sum,
            ", r7, r6, ",
            $sum,
            "\n",
        )
    };
}

/// Four weights of each of four features: rows 0 and 1 from r0 on, rows 2 and 3 from r1 on, r2 apart; sums in r9 to
/// r12.
macro_rules! dense_rows {
    () => {
        concat!(
            dense_row!("[r0, r2]", "r10"),
            dense_row!("[r0], #4", "r9"),
            dense_row!("[r1, r2]", "r12"),
            dense_row!("[r1], #4", "r11"),
        )
    };
}

/// Four inputs as 16-bit values without zero point.
macro_rules! dense_inputs {
    () => {
        "ldr r7, [r3], #4
        sxtab16 r5, r4, r7
        sxtab16 r6, r4, r7, ror #8"
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
        "ldr lr, [r8, {whole_groups}]",
        "add r1, r0, r2, lsl #1",
        "ldr r7, [r8, {bias}]",
        "ldm r7!, {{r9, r10, r11, r12}}",
        "str r7, [r8, {bias}]",
        "lsrs lr, #1",
        "bcc 3f",
        dense_inputs!(),
        dense_rows!(),
        "cmp lr, #0",
        "3:",
        "beq 5f",
        "4:",
        dense_inputs!(),
        dense_rows!(),
        dense_inputs!(),
        dense_rows!(),
        "subs lr, #1",
        "bne 4b",
        "5:",
        "ldr lr, [sp]",
        "ldr r7, [lr, {back}]",
        "sub r0, r7",
        "sub r1, r7",
        "sub r3, r7",
        dense_inputs!(),
        "ldrd r7, r8, [lr, {fresh_even}]",
        "and r5, r7",
        "and r6, r8",
        dense_rows!(),
        // r1 has reached the end of row 2; the next four begin after row 3.
        "add r1, r2",
        "str r1, [lr, {weights}]",
        rescale_four!("6"),
        "ldrd r0, r1, [lr, {output}]",
        "str r9, [r0], #4",
        "subs r1, #1",
        "strd r0, r1, [lr, {output}]",
        "bne 2b",
        };
        weights = offset_of!(DensePass, weights),
        input = offset_of!(DensePass, input),
        whole_groups = offset_of!(DensePass, whole_groups),
        back = offset_of!(DensePass, back),
        fresh_even = offset_of!(DensePass, fresh_even),
        bias = offset_of!(DensePass, bias),
        multipliers = offset_of!(DensePass, multipliers),
        doubled_zero_point = offset_of!(DensePass, finish.doubled_zero_point),
        low = offset_of!(DensePass, finish.low),
        clamps = offset_of!(DensePass, finish.clamps),
        output = offset_of!(DensePass, output),
    }
}

/// One tap of four channels: the input where `$load` says, weights from r1 on, sums in r9 to r12.
macro_rules! depthwise_tap {
    ($load:literal) => {
        concat!(
            "ldr r6, ",
            $load,
            "\n",
            "ldrd r7, r8, [r1], #8\n",
            "sxtab16 r5, r4, r6\n",
            "sxtab16 r6, r4, r6, ror #8\n",
            "smlabb r9, r5, r7, r9\n",
            "smlatt r11, r5, r7, r11\n",
            "smlabb r10, r6, r8, r10\n",
            "smlatt r12, r6, r8, r12\n",
        )
    };
}

/// Loads what a block begins with: input (r0), steps (r2, r3), offset (r4), biases (r9 to r12).
macro_rules! depthwise_begin {
    () => {
        "ldr r8, [sp]
        ldrd r0, r2, [r8, {input}]
        ldrd r3, r4, [r8, {row_step}]
        add r7, r0, #4
        str r7, [r8, {input}]
        ldr r7, [r8, {bias}]
        ldm r7!, {{r9, r10, r11, r12}}
        str r7, [r8, {bias}]
        ldr r1, [r8, {weights}]"
    };
}

/// Stores a block's outputs (r9) and goes back to label 2 if there is another. lr points to the pass.
macro_rules! depthwise_end {
    () => {
        "ldrd r0, r1, [lr, {output}]
        str r9, [r0], #4
        subs r1, #1
        strd r0, r1, [lr, {output}]
        bne 2b"
    };
}

/// See [`Passes::depthwise_conv2d`]: all nine taps of a 3×3 window.
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn depthwise_conv2d_3x3(pass: &mut DepthwisePass) {
    assembly! {
        pass {
        "2:",
        depthwise_begin!(),
        depthwise_tap!("[r0]"),
        depthwise_tap!("[r0, r2]"),
        depthwise_tap!("[r0, r2, lsl #1]"),
        "add r0, r3",
        depthwise_tap!("[r0]"),
        depthwise_tap!("[r0, r2]"),
        depthwise_tap!("[r0, r2, lsl #1]"),
        "add r0, r3",
        depthwise_tap!("[r0]"),
        depthwise_tap!("[r0, r2]"),
        depthwise_tap!("[r0, r2, lsl #1]"),
        "ldr lr, [sp]",
        "str r1, [lr, {weights}]",
        rescale_four!("3"),
        depthwise_end!(),
        };
        input = offset_of!(DepthwisePass, input),
        row_step = offset_of!(DepthwisePass, row_step),
        weights = offset_of!(DepthwisePass, weights),
        bias = offset_of!(DepthwisePass, bias),
        multipliers = offset_of!(DepthwisePass, multipliers),
        doubled_zero_point = offset_of!(DepthwisePass, finish.doubled_zero_point),
        low = offset_of!(DepthwisePass, finish.low),
        clamps = offset_of!(DepthwisePass, finish.clamps),
        output = offset_of!(DepthwisePass, output),
    }
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
        depthwise_begin!(),
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
        "4:",
        depthwise_tap!("[r0]"),
        "add r0, r2",
        "subs lr, #1",
        "bne 4b",
        "ldr r8, [sp]",
        "ldrd r5, r6, [r8, {input_skip}]",
        "ldr lr, [r8, {columns}]",
        "add r0, r5",
        "add r1, r6",
        "subs r3, #1",
        "bne 3b",
        "5:",
        "ldr lr, [sp]",
        rescale_four!("6"),
        depthwise_end!(),
        };
        input = offset_of!(DepthwisePass, input),
        row_step = offset_of!(DepthwisePass, row_step),
        weights = offset_of!(DepthwisePass, weights),
        rows = offset_of!(DepthwisePass, rows),
        columns = offset_of!(DepthwisePass, columns),
        block_step = offset_of!(DepthwisePass, block_step),
        input_skip = offset_of!(DepthwisePass, input_skip),
        bias = offset_of!(DepthwisePass, bias),
        multipliers = offset_of!(DepthwisePass, multipliers),
        doubled_zero_point = offset_of!(DepthwisePass, finish.doubled_zero_point),
        low = offset_of!(DepthwisePass, finish.low),
        clamps = offset_of!(DepthwisePass, finish.clamps),
        output = offset_of!(DepthwisePass, output),
    }
}
