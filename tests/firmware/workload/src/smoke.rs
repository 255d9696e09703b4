//! The smallest workload: proves start-up, output, initialised and zeroed memory, floats and the counter, with no
//! library in between. When this fails nothing else means anything.

use crate::{Board, Report};
use core::hint::black_box;

/// Adds a few products, in integers and floats.
pub fn run(board: &mut impl Board) {
    let weights: [i8; 64] = core::array::from_fn(|i| (i * 37 % 255) as i8);
    let input: [i8; 64] = core::array::from_fn(|i| (i * 91 % 251) as i8);
    let mut sum = 0;
    board.measure("dot", || {
        sum = black_box(&weights)
            .iter()
            .zip(black_box(&input))
            .map(|(&w, &x)| i32::from(w) * i32::from(x))
            .sum();
    });
    Report::i8(board, "dot", &sum.to_le_bytes().map(u8::cast_signed));
    Report::f32(board, "scaled", &[sum as f32 * black_box(0.125), sum as f32 / black_box(3.0)]);
}
