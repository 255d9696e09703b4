//! Inner loops for RV32IM.
//!
//! There is no multiply-accumulate and there are many registers: a product costs two instructions, and loads are shared by
//! four channels and two pixels. A compiler holds a part of the eight sums only.

use crate::micro::plain::{Group, Loops};
use crate::micro::{dense_s8, depthwise_conv2d_s8};
use core::arch::asm;

/// RV32IM.
pub(crate) struct Rv32;

/// One row of a convolution's tap: its weight with both pixels' values.
macro_rules! conv2d_row {
    ($tap:literal, $row:literal, $first:literal, $second:literal) => {
        concat!(
            "lb {w}, ",
            $tap,
            "({",
            $row,
            "})\n",
            "mul {product}, {w}, {x}\n",
            "mul {w}, {w}, {y}\n",
            "add {",
            $first,
            "}, {",
            $first,
            "}, {product}\n",
            "add {",
            $second,
            "}, {",
            $second,
            "}, {w}\n",
        )
    };
}

/// One tap of four channels and two pixels.
macro_rules! conv2d_tap {
    ($tap:literal, $first:literal, $second:literal) => {
        concat!(
            "lh {x}, ",
            $first,
            "({columns})\n",
            "lh {y}, ",
            $second,
            "({columns})\n",
            conv2d_row!($tap, "row0", "a0", "b0"),
            conv2d_row!($tap, "row1", "a1", "b1"),
            conv2d_row!($tap, "row2", "a2", "b2"),
            conv2d_row!($tap, "row3", "a3", "b3"),
        )
    };
}

/// One row of a dense layer's tap.
macro_rules! dense_row {
    ($tap:literal, $row:literal, $sum:literal) => {
        concat!(
            "lb {w}, ",
            $tap,
            "({",
            $row,
            "})\n",
            "mul {w}, {w}, {x}\n",
            "add {",
            $sum,
            "}, {",
            $sum,
            "}, {w}\n",
        )
    };
}

/// One tap of four features.
macro_rules! dense_tap {
    ($tap:literal) => {
        concat!(
            "lb {x}, ",
            $tap,
            "({input})\n",
            "add {x}, {x}, {offset}\n",
            dense_row!($tap, "row0", "sum0"),
            dense_row!($tap, "row1", "sum1"),
            dense_row!($tap, "row2", "sum2"),
            dense_row!($tap, "row3", "sum3"),
        )
    };
}

/// One channel of a depthwise convolution's tap.
macro_rules! depthwise_channel {
    ($channel:literal, $weight:literal, $sum:literal) => {
        concat!(
            "lb {x}, ",
            $channel,
            "({input})\n",
            "lh {w}, ",
            $weight,
            "({weights})\n",
            "add {x}, {x}, {offset}\n",
            "mul {x}, {x}, {w}\n",
            "add {",
            $sum,
            "}, {",
            $sum,
            "}, {x}\n",
        )
    };
}

impl Loops<4> for Rv32 {
    #[inline(always)]
    unsafe fn conv2d(
        rows: [*const i8; 4],
        columns: *const Group,
        whole_groups: usize,
        back: usize,
        sums: &mut [[i32; 2]; 4],
    ) {
        let [row0, row1, row2, row3] = rows;
        let [[mut a0, mut b0], [mut a1, mut b1], [mut a2, mut b2], [mut a3, mut b3]] = *sums;
        // SAFETY: reads the groups up to the one at `end`, and as many weights of each row, the last four of which begin
        // `back` earlier; the caller says that they are there.
        unsafe {
            asm!(
                "2:",
                // Halves lie in the order 0, 2, 1, 3.
                conv2d_tap!("0", "0", "8"),
                conv2d_tap!("1", "4", "12"),
                conv2d_tap!("2", "2", "10"),
                conv2d_tap!("3", "6", "14"),
                "addi {row0}, {row0}, 4",
                "addi {row1}, {row1}, 4",
                "addi {row2}, {row2}, 4",
                "addi {row3}, {row3}, 4",
                "addi {columns}, {columns}, 16",
                "bltu {columns}, {end}, 2b",
                "bne {columns}, {end}, 3f",
                // The last group.
                "sub {row0}, {row0}, {back}",
                "sub {row1}, {row1}, {back}",
                "sub {row2}, {row2}, {back}",
                "sub {row3}, {row3}, {back}",
                "j 2b",
                "3:",
                row0 = inout(reg) row0 => _,
                row1 = inout(reg) row1 => _,
                row2 = inout(reg) row2 => _,
                row3 = inout(reg) row3 => _,
                columns = inout(reg) columns => _,
                end = in(reg) columns.wrapping_add(whole_groups),
                back = in(reg) back,
                a0 = inout(reg) a0,
                b0 = inout(reg) b0,
                a1 = inout(reg) a1,
                b1 = inout(reg) b1,
                a2 = inout(reg) a2,
                b2 = inout(reg) b2,
                a3 = inout(reg) a3,
                b3 = inout(reg) b3,
                x = out(reg) _,
                y = out(reg) _,
                w = out(reg) _,
                product = out(reg) _,
                options(readonly, nostack)
            );
        }
        *sums = [[a0, b0], [a1, b1], [a2, b2], [a3, b3]];
    }

    #[inline(always)]
    unsafe fn dense(
        rows: [*const i8; dense_s8::BLOCK],
        input: *const i8,
        offset: i32,
        taps: usize,
        sums: &mut [i32; dense_s8::BLOCK],
    ) {
        let [row0, row1, row2, row3] = rows;
        let [mut sum0, mut sum1, mut sum2, mut sum3] = *sums;
        // SAFETY: reads four inputs and weights of each row at a time while there are four, then one at a time; the
        // caller says that as many as there are taps are there.
        unsafe {
            asm!(
                "bgeu {input}, {groups_end}, 3f",
                "2:",
                dense_tap!("0"),
                dense_tap!("1"),
                dense_tap!("2"),
                dense_tap!("3"),
                "addi {input}, {input}, 4",
                "addi {row0}, {row0}, 4",
                "addi {row1}, {row1}, 4",
                "addi {row2}, {row2}, 4",
                "addi {row3}, {row3}, 4",
                "bltu {input}, {groups_end}, 2b",
                "3:",
                "bgeu {input}, {end}, 5f",
                "4:",
                dense_tap!("0"),
                "addi {input}, {input}, 1",
                "addi {row0}, {row0}, 1",
                "addi {row1}, {row1}, 1",
                "addi {row2}, {row2}, 1",
                "addi {row3}, {row3}, 1",
                "bltu {input}, {end}, 4b",
                "5:",
                input = inout(reg) input => _,
                groups_end = in(reg) input.wrapping_add(taps / 4 * 4),
                end = in(reg) input.wrapping_add(taps),
                offset = in(reg) offset,
                row0 = inout(reg) row0 => _,
                row1 = inout(reg) row1 => _,
                row2 = inout(reg) row2 => _,
                row3 = inout(reg) row3 => _,
                sum0 = inout(reg) sum0,
                sum1 = inout(reg) sum1,
                sum2 = inout(reg) sum2,
                sum3 = inout(reg) sum3,
                x = out(reg) _,
                w = out(reg) _,
                options(readonly, nostack)
            );
        }
        *sums = [sum0, sum1, sum2, sum3];
    }

    #[inline(always)]
    unsafe fn depthwise_conv2d(
        pass: &depthwise_conv2d_s8::Pass,
        weights: *const [i16; depthwise_conv2d_s8::BLOCK],
        sums: &mut [i32; depthwise_conv2d_s8::BLOCK],
    ) {
        let [mut sum0, mut sum1, mut sum2, mut sum3] = *sums;
        // SAFETY: reads the inputs and weights of four channels at `rows` times `columns` taps; the caller says that
        // they are there.
        unsafe {
            asm!(
                "2:",
                "mv {column}, {columns}",
                "3:",
                // Weights lie in the order 0, 2, 1, 3.
                depthwise_channel!("0", "0", "sum0"),
                depthwise_channel!("1", "4", "sum1"),
                depthwise_channel!("2", "2", "sum2"),
                depthwise_channel!("3", "6", "sum3"),
                "add {input}, {input}, {tap_step}",
                "addi {weights}, {weights}, 8",
                "addi {column}, {column}, -1",
                "bnez {column}, 3b",
                "add {input}, {input}, {input_skip}",
                "add {weights}, {weights}, {weights_skip}",
                "addi {rows}, {rows}, -1",
                "bnez {rows}, 2b",
                input = inout(reg) pass.input => _,
                weights = inout(reg) weights => _,
                tap_step = in(reg) pass.tap_step,
                input_skip = in(reg) pass.input_skip,
                weights_skip = in(reg) pass.weights_skip,
                rows = inout(reg) pass.rows => _,
                columns = in(reg) pass.columns,
                column = out(reg) _,
                offset = in(reg) i32::from(pass.offset as i16),
                sum0 = inout(reg) sum0,
                sum1 = inout(reg) sum1,
                sum2 = inout(reg) sum2,
                sum3 = inout(reg) sum3,
                x = out(reg) _,
                w = out(reg) _,
                options(readonly, nostack)
            );
        }
        *sums = [sum0, sum1, sum2, sum3];
    }
}
