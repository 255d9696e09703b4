//! Transposition of values of 32 bits, four of four rows at a time.

use crate::arch::transpose::Transpose;
use crate::isa::{Dotprod, Neon};
use core::arch::aarch64::*;
use netkit_core::pack::PANEL;

#[target_feature(enable = "neon")]
#[inline]
fn columns(rows: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
    let [a, b, c, d] = rows;
    let (a, b) = (vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b));
    let (c, d) = (vreinterpretq_u32_u8(c), vreinterpretq_u32_u8(d));
    let even = [vreinterpretq_u64_u32(vtrn1q_u32(a, b)), vreinterpretq_u64_u32(vtrn1q_u32(c, d))];
    let odd = [vreinterpretq_u64_u32(vtrn2q_u32(a, b)), vreinterpretq_u64_u32(vtrn2q_u32(c, d))];
    [
        vreinterpretq_u8_u64(vtrn1q_u64(even[0], even[1])),
        vreinterpretq_u8_u64(vtrn1q_u64(odd[0], odd[1])),
        vreinterpretq_u8_u64(vtrn2q_u64(even[0], even[1])),
        vreinterpretq_u8_u64(vtrn2q_u64(odd[0], odd[1])),
    ]
}

/// Sixteen rows of four values.
///
/// # Safety
/// See [`Transpose::transpose`].
#[target_feature(enable = "neon")]
#[inline]
unsafe fn transpose(rows: &[*const u32; PANEL], at: usize, to: *mut u32, pitch: usize) {
    for first in [0, 4, 8, 12] {
        let mut four = [vdupq_n_u8(0); 4];
        for (to, row) in four.iter_mut().zip(rows.iter().skip(first)) {
            // SAFETY: the caller vouches for four values of each row.
            *to = unsafe { vld1q_u8(row.wrapping_add(at).cast()) };
        }
        for (i, column) in columns(four).into_iter().enumerate() {
            let to = to.wrapping_add(i * pitch + first).cast();
            // SAFETY: the caller vouches for sixteen values of each column.
            unsafe { vst1q_u8(to, column) };
        }
    }
}

macro_rules! neon {
    ($token:ident) => {
        impl Transpose for $token {
            #[inline(always)]
            unsafe fn transpose(
                self,
                rows: &[*const u32; PANEL],
                at: usize,
                to: *mut u32,
                pitch: usize,
            ) {
                // SAFETY: the token proves NEON; the caller vouches for rows and columns.
                unsafe { transpose(rows, at, to, pitch) };
            }
        }
    };
}

neon!(Neon);
neon!(Dotprod);
