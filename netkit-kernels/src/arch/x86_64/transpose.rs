//! Transposition of values of 32 bits: four of each of four rows within 128 bits, then whole quarters of vectors.

use crate::arch::transpose::Transpose;
use crate::isa::{Avx2, Avx512, Avx512Vnni, AvxVnni, Sse2};
use core::arch::x86_64::*;
use netkit_core::pack::PANEL;

#[target_feature(enable = "sse2")]
#[inline]
fn quarters_sse2(rows: [__m128i; 4]) -> [__m128i; 4] {
    let [a, b, c, d] = rows;
    let low = [_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d)];
    let high = [_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d)];
    [
        _mm_unpacklo_epi64(low[0], low[1]),
        _mm_unpackhi_epi64(low[0], low[1]),
        _mm_unpacklo_epi64(high[0], high[1]),
        _mm_unpackhi_epi64(high[0], high[1]),
    ]
}

/// Column `i` of the first four columns in the lower half of vector `i`, and of the next four in the upper.
#[target_feature(enable = "avx2")]
#[inline]
fn quarters_avx2(rows: [__m256i; 4]) -> [__m256i; 4] {
    let [a, b, c, d] = rows;
    let low = [_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d)];
    let high = [_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d)];
    [
        _mm256_unpacklo_epi64(low[0], low[1]),
        _mm256_unpackhi_epi64(low[0], low[1]),
        _mm256_unpacklo_epi64(high[0], high[1]),
        _mm256_unpackhi_epi64(high[0], high[1]),
    ]
}

/// Columns `i`, `4 + i`, `8 + i` and `12 + i` in the quarters of vector `i`.
#[target_feature(enable = "avx512f")]
#[inline]
fn quarters_avx512(rows: [__m512i; 4]) -> [__m512i; 4] {
    let [a, b, c, d] = rows;
    let low = [_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d)];
    let high = [_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d)];
    [
        _mm512_unpacklo_epi64(low[0], low[1]),
        _mm512_unpackhi_epi64(low[0], low[1]),
        _mm512_unpacklo_epi64(high[0], high[1]),
        _mm512_unpackhi_epi64(high[0], high[1]),
    ]
}

/// Four rows.
///
/// # Safety
/// Four values can be read of each.
#[target_feature(enable = "sse2")]
#[inline]
unsafe fn load_sse2(rows: [*const u32; 4]) -> [__m128i; 4] {
    let mut vectors = [_mm_setzero_si128(); 4];
    for (to, row) in vectors.iter_mut().zip(rows) {
        // SAFETY: the caller vouches for four values.
        *to = unsafe { _mm_loadu_si128(row.cast()) };
    }
    vectors
}

/// Four rows.
///
/// # Safety
/// Eight values can be read of each.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load_avx2(rows: [*const u32; 4]) -> [__m256i; 4] {
    let mut vectors = [_mm256_setzero_si256(); 4];
    for (to, row) in vectors.iter_mut().zip(rows) {
        // SAFETY: the caller vouches for eight values.
        *to = unsafe { _mm256_loadu_si256(row.cast()) };
    }
    vectors
}

/// Four rows, zeros where the mask is not set.
///
/// # Safety
/// The values that are set can be read of each.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn load_avx512(rows: [*const u32; 4], mask: __mmask16) -> [__m512i; 4] {
    let mut vectors = [_mm512_setzero_si512(); 4];
    for (to, row) in vectors.iter_mut().zip(rows) {
        // SAFETY: the caller vouches for the values of the mask.
        *to = unsafe { _mm512_maskz_loadu_epi32(mask, row.cast()) };
    }
    vectors
}

/// Columns `4 · c + i` as `[c][i]` of what [`quarters_avx512`] made of sixteen rows.
#[target_feature(enable = "avx512f")]
#[inline]
fn columns_avx512(fours: [[__m512i; 4]; 4]) -> [[__m512i; 4]; 4] {
    let mut columns = [[_mm512_setzero_si512(); 4]; 4];
    for i in 0..4 {
        let [a, b, c, d] = [fours[0][i], fours[1][i], fours[2][i], fours[3][i]];
        // Quarters 0 and 2 of two vectors, and 1 and 3.
        let even = [_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0x88>(c, d)];
        let odd = [_mm512_shuffle_i32x4::<0xdd>(a, b), _mm512_shuffle_i32x4::<0xdd>(c, d)];
        columns[0][i] = _mm512_shuffle_i32x4::<0x88>(even[0], even[1]);
        columns[1][i] = _mm512_shuffle_i32x4::<0x88>(odd[0], odd[1]);
        columns[2][i] = _mm512_shuffle_i32x4::<0xdd>(even[0], even[1]);
        columns[3][i] = _mm512_shuffle_i32x4::<0xdd>(odd[0], odd[1]);
    }
    columns
}

/// Four rows from `first` on, at `at`.
#[inline(always)]
fn four(rows: &[*const u32; PANEL], first: usize, at: usize) -> [*const u32; 4] {
    let row = |i: usize| rows[first + i].wrapping_add(at);
    [row(0), row(1), row(2), row(3)]
}

/// Sixteen rows; stores the first `count` columns.
///
/// # Safety
/// See [`Transpose::transpose`]: of each row the values that the mask sets are read.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn transpose_avx512(
    rows: &[*const u32; PANEL],
    at: usize,
    mask: __mmask16,
    count: usize,
    to: *mut u32,
    pitch: usize,
) {
    // SAFETY: the caller vouches for what the mask sets.
    let a = unsafe { load_avx512(four(rows, 0, at), mask) };
    // SAFETY: as above.
    let b = unsafe { load_avx512(four(rows, 4, at), mask) };
    // SAFETY: as above.
    let c = unsafe { load_avx512(four(rows, 8, at), mask) };
    // SAFETY: as above.
    let d = unsafe { load_avx512(four(rows, 12, at), mask) };
    let fours = [quarters_avx512(a), quarters_avx512(b), quarters_avx512(c), quarters_avx512(d)];
    let columns = columns_avx512(fours);
    for (c, columns) in columns.into_iter().enumerate() {
        for (i, column) in columns.into_iter().enumerate() {
            if 4 * c + i < count {
                let to = to.wrapping_add((4 * c + i) * pitch).cast();
                // SAFETY: the caller vouches for sixteen values of each column.
                unsafe { _mm512_storeu_si512(to, column) };
            }
        }
    }
}

/// Sixteen rows of eight values.
///
/// # Safety
/// See [`Transpose::transpose`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn transpose_avx2(rows: &[*const u32; PANEL], at: usize, to: *mut u32, pitch: usize) {
    for first in [0, 8] {
        // SAFETY: the caller vouches for eight values of each row.
        let upper = unsafe { load_avx2(four(rows, first, at)) };
        // SAFETY: as above.
        let lower = unsafe { load_avx2(four(rows, first + 4, at)) };
        let (upper, lower) = (quarters_avx2(upper), quarters_avx2(lower));
        for (i, (upper, lower)) in upper.into_iter().zip(lower).enumerate() {
            let to = to.wrapping_add(i * pitch + first);
            let column = _mm256_permute2x128_si256::<0x20>(upper, lower);
            // SAFETY: the caller vouches for sixteen values of each column.
            unsafe { _mm256_storeu_si256(to.cast(), column) };
            let column = _mm256_permute2x128_si256::<0x31>(upper, lower);
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(to.wrapping_add(4 * pitch).cast(), column) };
        }
    }
}

/// Sixteen rows of four values.
///
/// # Safety
/// See [`Transpose::transpose`].
#[target_feature(enable = "sse2")]
#[inline]
unsafe fn transpose_sse2(rows: &[*const u32; PANEL], at: usize, to: *mut u32, pitch: usize) {
    for first in [0, 4, 8, 12] {
        // SAFETY: the caller vouches for four values of each row.
        let rows = unsafe { load_sse2(four(rows, first, at)) };
        for (i, column) in quarters_sse2(rows).into_iter().enumerate() {
            let to = to.wrapping_add(i * pitch + first).cast();
            // SAFETY: the caller vouches for sixteen values of each column.
            unsafe { _mm_storeu_si128(to, column) };
        }
    }
}

impl Transpose for Sse2 {
    #[inline(always)]
    unsafe fn transpose(self, rows: &[*const u32; PANEL], at: usize, to: *mut u32, pitch: usize) {
        // SAFETY: the token proves SSE2; the caller vouches for rows and columns.
        unsafe { transpose_sse2(rows, at, to, pitch) };
    }
}

macro_rules! avx2 {
    ($token:ident) => {
        impl Transpose for $token {
            const COLUMNS: usize = 8;

            #[inline(always)]
            unsafe fn transpose(
                self,
                rows: &[*const u32; PANEL],
                at: usize,
                to: *mut u32,
                pitch: usize,
            ) {
                // SAFETY: the token proves AVX2; the caller vouches for rows and columns.
                unsafe { transpose_avx2(rows, at, to, pitch) };
            }
        }
    };
}

macro_rules! avx512 {
    ($token:ident) => {
        impl Transpose for $token {
            const COLUMNS: usize = 16;

            #[inline(always)]
            unsafe fn transpose(
                self,
                rows: &[*const u32; PANEL],
                at: usize,
                to: *mut u32,
                pitch: usize,
            ) {
                // SAFETY: the token proves AVX-512; the caller vouches for rows and columns.
                unsafe { transpose_avx512(rows, at, u16::MAX, PANEL, to, pitch) };
            }

            #[inline(always)]
            unsafe fn transpose_few(
                self,
                rows: &[*const u32; PANEL],
                columns: usize,
                to: *mut u32,
                pitch: usize,
            ) {
                let mask = ((1u32 << columns.min(PANEL)) - 1) as u16;
                // SAFETY: the token proves AVX-512; the caller vouches for rows and columns.
                unsafe { transpose_avx512(rows, 0, mask, columns, to, pitch) };
            }
        }
    };
}

avx2!(Avx2);
avx2!(AvxVnni);
avx512!(Avx512);
avx512!(Avx512Vnni);
