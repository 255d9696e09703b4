//! Transposition of values of 32 bits, four of four rows at a time.

use crate::arch::transpose::Transpose;
use crate::isa::Simd128;
use core::arch::wasm32::*;
use netkit_core::pack::PANEL;

#[inline(always)]
fn columns(rows: [v128; 4]) -> [v128; 4] {
    let [a, b, c, d] = rows;
    let low = [i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<0, 4, 1, 5>(c, d)];
    let high = [i32x4_shuffle::<2, 6, 3, 7>(a, b), i32x4_shuffle::<2, 6, 3, 7>(c, d)];
    [
        i64x2_shuffle::<0, 2>(low[0], low[1]),
        i64x2_shuffle::<1, 3>(low[0], low[1]),
        i64x2_shuffle::<0, 2>(high[0], high[1]),
        i64x2_shuffle::<1, 3>(high[0], high[1]),
    ]
}

impl Transpose for Simd128 {
    #[inline(always)]
    unsafe fn transpose(self, rows: &[*const u32; PANEL], at: usize, to: *mut u32, pitch: usize) {
        for first in [0, 4, 8, 12] {
            let mut four = [i32x4_splat(0); 4];
            for (to, row) in four.iter_mut().zip(rows.iter().skip(first)) {
                // SAFETY: the caller vouches for four values of each row.
                *to = unsafe { v128_load(row.wrapping_add(at).cast()) };
            }
            for (i, column) in columns(four).into_iter().enumerate() {
                let to = to.wrapping_add(i * pitch + first).cast();
                // SAFETY: the caller vouches for sixteen values of each column.
                unsafe { v128_store(to, column) };
            }
        }
    }
}
