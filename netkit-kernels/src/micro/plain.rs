//! Passes in plain Rust: `CHANNELS` of a convolution at a time, around inner loops that may be a processor's own.

use super::finish::Finish;
use super::{Passes, conv2d_s8, dense_s8, depthwise_conv2d_s8};
use core::array::from_fn;
use core::marker::PhantomData;
use core::ptr;
use netkit_core::quant::Multiplier;

/// Where halves lie that were widened four at a time.
const PLACES: [usize; 4] = [0, 2, 1, 3];

/// A group of four taps of two pixels.
pub(crate) type Group = [[i16; 4]; 2];

/// Passes around the inner loops `L`.
pub(crate) struct Plain<const CHANNELS: usize, L = Portable>(PhantomData<L>);

/// The loops over taps: from what sums start with to sums.
pub(crate) trait Loops<const CHANNELS: usize> {
    /// Adds to the sums of each row's channel, of both pixels, its products with `whole_groups + 1` groups. The last
    /// group's weights begin `back` before the end of the group before.
    ///
    /// # Safety
    ///
    /// The groups are there, and at each row as many weights, less `back`.
    unsafe fn conv2d(
        rows: [*const i8; CHANNELS],
        columns: *const Group,
        whole_groups: usize,
        back: usize,
        sums: &mut [[i32; 2]; CHANNELS],
    );

    /// Adds to the sum of each row's feature its products with the inputs, to which `offset` is added.
    ///
    /// # Safety
    ///
    /// `taps` inputs are there, and at each row as many weights.
    unsafe fn dense(
        rows: [*const i8; dense_s8::BLOCK],
        input: *const i8,
        offset: i32,
        taps: usize,
        sums: &mut [i32; dense_s8::BLOCK],
    );

    /// Adds to the sums of four channels their products at the taps of `pass`, whose weights begin at `weights`.
    ///
    /// # Safety
    ///
    /// The inputs and weights of each tap inside are there.
    unsafe fn depthwise_conv2d(
        pass: &depthwise_conv2d_s8::Pass,
        weights: *const [i16; depthwise_conv2d_s8::BLOCK],
        sums: &mut [i32; depthwise_conv2d_s8::BLOCK],
    );
}

impl<const CHANNELS: usize, L: Loops<CHANNELS>> Passes for Plain<CHANNELS, L> {
    const CONV2D_CHANNELS: usize = CHANNELS;

    #[inline(never)]
    unsafe fn conv2d(pass: &mut conv2d_s8::Pass) {
        for _ in 0..pass.blocks {
            let rows: [*const i8; CHANNELS] = from_fn(|c| pass.weights.wrapping_add(c * pass.taps));
            // SAFETY: the caller says that as many biases as a block has are there.
            let bias: [i32; CHANNELS] = unsafe { ptr::read(pass.bias.cast()) };
            let mut sums = bias.map(|bias| [bias; 2]);
            // SAFETY: the caller says that the rows and the groups are there.
            unsafe {
                L::conv2d(rows, pass.columns.cast(), pass.whole_groups, pass.back, &mut sums);
            }
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
            let rows: [*const i8; BLOCK] = from_fn(|c| pass.weights.wrapping_add(c * pass.taps));
            // SAFETY: the caller says that as many biases as a block has are there.
            let mut sums: [i32; BLOCK] = unsafe { ptr::read(pass.bias.cast()) };
            // SAFETY: the caller says that the rows and the inputs are there.
            unsafe { L::dense(rows, pass.input, offset, pass.taps, &mut sums) };
            // SAFETY: the caller says that as many multipliers and outputs as a block has are there.
            unsafe { store(sums, &pass.finish, pass.multipliers, pass.output) };
            pass.weights = pass.weights.wrapping_add(BLOCK * pass.taps);
            pass.bias = pass.bias.wrapping_add(BLOCK);
            pass.multipliers = pass.multipliers.wrapping_add(BLOCK);
            pass.output = pass.output.wrapping_add(BLOCK);
        }
    }

    #[inline(never)]
    unsafe fn depthwise_conv2d(pass: &mut depthwise_conv2d_s8::Pass) {
        const BLOCK: usize = depthwise_conv2d_s8::BLOCK;
        for _ in 0..pass.blocks {
            // SAFETY: the caller says that as many biases as a block has are there.
            let mut sums: [i32; BLOCK] = unsafe { ptr::read(pass.bias.cast()) };
            if pass.rows > 0 && pass.columns > 0 {
                let weights = pass.weights.wrapping_byte_add(pass.first_weight);
                // SAFETY: the caller says that inputs and weights are there at each tap inside.
                unsafe { L::depthwise_conv2d(pass, weights, &mut sums) };
            }
            // SAFETY: the caller says that as many multipliers and outputs as a block has are there.
            unsafe { store(sums, &pass.finish, pass.multipliers, pass.output) };
            pass.input = pass.input.wrapping_add(BLOCK);
            pass.weights = pass.weights.wrapping_byte_add(pass.block_step);
            pass.bias = pass.bias.wrapping_add(BLOCK);
            pass.multipliers = pass.multipliers.wrapping_add(BLOCK);
            pass.output = pass.output.wrapping_add(BLOCK);
        }
    }
}

/// Stores the outputs that become of sums.
///
/// # Safety
///
/// As many multipliers and outputs are there.
#[inline(always)]
unsafe fn store<const N: usize>(
    sums: [i32; N],
    finish: &Finish,
    multipliers: *const Multiplier,
    output: *mut i8,
) {
    for (c, sum) in sums.into_iter().enumerate() {
        // SAFETY: the caller says that as many multipliers are there.
        let multiplier = unsafe { multipliers.wrapping_add(c).read() };
        let value = finish.apply(sum, multiplier);
        // SAFETY: the caller says that as many outputs are there.
        unsafe { output.wrapping_add(c).write(value) };
    }
}

/// No instruction in particular.
#[allow(dead_code, reason = "where a processor has loops of its own, these are for tests")]
pub(crate) struct Portable;

impl<const CHANNELS: usize> Loops<CHANNELS> for Portable {
    #[inline(always)]
    unsafe fn conv2d(
        mut rows: [*const i8; CHANNELS],
        mut columns: *const Group,
        whole_groups: usize,
        back: usize,
        sums: &mut [[i32; 2]; CHANNELS],
    ) {
        for _ in 0..whole_groups {
            // SAFETY: a group before the last: four more taps of each row, and a group of columns.
            unsafe { group(&mut rows, columns, sums) };
            columns = columns.wrapping_add(1);
        }
        rows = rows.map(|row| row.wrapping_sub(back));
        // SAFETY: the last four taps of each row, and the last group of columns.
        unsafe { group(&mut rows, columns, sums) };
    }

    #[inline(always)]
    unsafe fn dense(
        rows: [*const i8; dense_s8::BLOCK],
        input: *const i8,
        offset: i32,
        taps: usize,
        sums: &mut [i32; dense_s8::BLOCK],
    ) {
        for tap in 0..taps {
            // SAFETY: the caller says that so many inputs are there.
            let x = i32::from(unsafe { input.wrapping_add(tap).read() }) + offset;
            for (row, sum) in rows.iter().zip(sums.iter_mut()) {
                // SAFETY: the caller says that so many weights are there.
                *sum += x * i32::from(unsafe { row.wrapping_add(tap).read() });
            }
        }
    }

    #[inline(always)]
    unsafe fn depthwise_conv2d(
        pass: &depthwise_conv2d_s8::Pass,
        mut weights: *const [i16; depthwise_conv2d_s8::BLOCK],
        sums: &mut [i32; depthwise_conv2d_s8::BLOCK],
    ) {
        const BLOCK: usize = depthwise_conv2d_s8::BLOCK;
        let offset = i32::from(pass.offset as i16);
        let mut input = pass.input;
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
    }
}

/// Four taps of each row and both pixels.
///
/// # Safety
///
/// Four weights are at each row, and a group at `columns`.
#[inline(always)]
#[allow(dead_code, reason = "as `Portable`")]
unsafe fn group<const CHANNELS: usize>(
    rows: &mut [*const i8; CHANNELS],
    columns: *const Group,
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
