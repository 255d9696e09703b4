//! Passes in plain Rust, for any processor: `CHANNELS` of a convolution at a time.

use super::{Passes, conv2d_s8, dense_s8, depthwise_conv2d_s8};
use core::array::from_fn;
use core::ptr;

/// Where halves lie that were widened four at a time.
const PLACES: [usize; 4] = [0, 2, 1, 3];

/// No instruction in particular.
pub(crate) struct Plain<const CHANNELS: usize>;

impl<const CHANNELS: usize> Passes for Plain<CHANNELS> {
    const CONV2D_CHANNELS: usize = CHANNELS;

    #[inline(never)]
    unsafe fn conv2d(pass: &mut conv2d_s8::Pass) {
        for _ in 0..pass.blocks {
            let mut rows: [*const i8; CHANNELS] =
                from_fn(|c| pass.weights.wrapping_add(c * pass.taps));
            // SAFETY: the caller says that as many biases as a block has are there.
            let bias: [i32; CHANNELS] = unsafe { ptr::read(pass.bias.cast()) };
            let mut sums = bias.map(|bias| [bias; 2]);
            let mut columns: *const [[i16; 4]; 2] = pass.columns.cast();
            for _ in 0..pass.whole_groups {
                // SAFETY: a group before the last: four more taps of each row, and a group of columns.
                unsafe { group(&mut rows, columns, &mut sums) };
                columns = columns.wrapping_add(1);
            }
            rows = rows.map(|row| row.wrapping_sub(pass.back));
            // SAFETY: the last four taps of each row, and the last group of columns.
            unsafe { group(&mut rows, columns, &mut sums) };
            for (c, sums) in sums.into_iter().enumerate() {
                // SAFETY: the caller says that as many multipliers as a block has are there.
                let multiplier = unsafe { pass.multipliers.wrapping_add(c).read() };
                let [first, second] = sums.map(|sum| pass.finish.apply(sum, multiplier));
                let output = pass.output.wrapping_add(c);
                // SAFETY: the caller says that as many outputs of either pixel are there.
                unsafe { output.wrapping_add(pass.output_step).write(second) };
                // SAFETY: as above.
                unsafe { output.write(first) };
            }
            pass.weights = pass.weights.wrapping_add(CHANNELS * pass.taps);
            pass.bias = pass.bias.wrapping_add(CHANNELS);
            pass.multipliers = pass.multipliers.wrapping_add(CHANNELS);
            pass.output = pass.output.wrapping_add(CHANNELS);
        }
    }

    #[inline(never)]
    unsafe fn dense(pass: &mut dense_s8::Pass) {
        const BLOCK: usize = dense_s8::BLOCK;
        let offset = i32::from(pass.offset as i16);
        for _ in 0..pass.blocks {
            let mut rows: [*const i8; BLOCK] =
                from_fn(|c| pass.weights.wrapping_add(c * pass.taps));
            let mut input = pass.input;
            // SAFETY: the caller says that as many biases as a block has are there.
            let mut sums: [i32; BLOCK] = unsafe { ptr::read(pass.bias.cast()) };
            for _ in 0..pass.whole_groups {
                for _ in 0..4 {
                    // SAFETY: one more tap of each row and of the input.
                    unsafe { tap(&mut rows, &mut input, offset, &mut sums) };
                }
            }
            for _ in pass.back..4 {
                // SAFETY: as above; the last group has four taps less those that are in the one before.
                unsafe { tap(&mut rows, &mut input, offset, &mut sums) };
            }
            for (c, sum) in sums.into_iter().enumerate() {
                // SAFETY: the caller says that as many multipliers as a block has are there.
                let multiplier = unsafe { pass.multipliers.wrapping_add(c).read() };
                let value = pass.finish.apply(sum, multiplier);
                // SAFETY: the caller says that as many outputs are there.
                unsafe { pass.output.wrapping_add(c).write(value) };
            }
            pass.weights = pass.weights.wrapping_add(BLOCK * pass.taps);
            pass.bias = pass.bias.wrapping_add(BLOCK);
            pass.multipliers = pass.multipliers.wrapping_add(BLOCK);
            pass.output = pass.output.wrapping_add(BLOCK);
        }
    }

    #[inline(never)]
    unsafe fn depthwise_conv2d(pass: &mut depthwise_conv2d_s8::Pass) {
        const BLOCK: usize = depthwise_conv2d_s8::BLOCK;
        let offset = i32::from(pass.offset as i16);
        for _ in 0..pass.blocks {
            // SAFETY: the caller says that as many biases as a block has are there.
            let mut sums: [i32; BLOCK] = unsafe { ptr::read(pass.bias.cast()) };
            let mut input = pass.input;
            let mut weights: *const [i16; BLOCK] =
                pass.weights.wrapping_byte_add(pass.first_weight).cast();
            for _ in 0..pass.rows {
                for _ in 0..pass.columns {
                    // SAFETY: the caller says that a block's inputs are at each tap inside.
                    let inputs: [i8; BLOCK] = unsafe { ptr::read(input.cast()) };
                    // SAFETY: the caller says that a block's weights are there for each tap.
                    let factors = unsafe { weights.read() };
                    for ((sum, x), place) in sums.iter_mut().zip(inputs).zip(PLACES) {
                        *sum += (i32::from(x) + offset) * i32::from(factors[place]);
                    }
                    input = input.wrapping_add(pass.tap_step);
                    weights = weights.wrapping_add(1);
                }
                input = input.wrapping_add(pass.input_skip);
                weights = weights.wrapping_byte_add(pass.weights_skip);
            }
            for (c, sum) in sums.into_iter().enumerate() {
                // SAFETY: the caller says that as many multipliers as a block has are there.
                let multiplier = unsafe { pass.multipliers.wrapping_add(c).read() };
                let value = pass.finish.apply(sum, multiplier);
                // SAFETY: the caller says that as many outputs are there.
                unsafe { pass.output.wrapping_add(c).write(value) };
            }
            pass.input = pass.input.wrapping_add(BLOCK);
            pass.weights = pass.weights.wrapping_byte_add(pass.block_step);
            pass.bias = pass.bias.wrapping_add(BLOCK);
            pass.multipliers = pass.multipliers.wrapping_add(BLOCK);
            pass.output = pass.output.wrapping_add(BLOCK);
        }
    }
}

/// Four taps of each row and both pixels.
///
/// # Safety
///
/// Four weights are at each row, and a group at `columns`.
#[inline(always)]
unsafe fn group<const CHANNELS: usize>(
    rows: &mut [*const i8; CHANNELS],
    columns: *const [[i16; 4]; 2],
    sums: &mut [[i32; 2]; CHANNELS],
) {
    let columns: *const i16 = columns.cast();
    for (tap, place) in PLACES.into_iter().enumerate() {
        // Half by half: read as one, halves of a word would have to be taken apart again.
        // SAFETY: the caller says that a group of columns is there.
        let first = i32::from(unsafe { columns.wrapping_add(place).read() });
        // SAFETY: as above.
        let second = i32::from(unsafe { columns.wrapping_add(4 + place).read() });
        for (row, sums) in rows.iter().zip(sums.iter_mut()) {
            // SAFETY: the caller says that four weights are there.
            let weight = i32::from(unsafe { row.wrapping_add(tap).read() });
            sums[0] += weight * first;
            sums[1] += weight * second;
        }
    }
    *rows = rows.map(|row| row.wrapping_add(4));
}

/// One tap of each row.
///
/// # Safety
///
/// One weight is at each row, and one input.
#[inline(always)]
unsafe fn tap<const ROWS: usize>(
    rows: &mut [*const i8; ROWS],
    input: &mut *const i8,
    offset: i32,
    sums: &mut [i32; ROWS],
) {
    // SAFETY: the caller says that an input is there.
    let x = i32::from(unsafe { input.read() }) + offset;
    *input = input.wrapping_add(1);
    for (row, sum) in rows.iter_mut().zip(sums) {
        // SAFETY: the caller says that a weight is there.
        *sum += x * i32::from(unsafe { row.read() });
        *row = row.wrapping_add(1);
    }
}
