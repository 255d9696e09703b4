//! Int8 multiply-adds on registers, by the instructions of each set.

use crate::arch::probe::CHAINS;
use crate::dispatch::Choice;
use core::arch::x86_64::*;
use core::hint::black_box;

/// Does `rounds` times `CHAINS` steps; returns the multiply-accumulates of one.
pub(crate) fn probe_s8(choice: Choice, rounds: usize) -> u64 {
    match choice {
        #[cfg(netkit_portable)]
        Choice::Scalar(_) => 0,
        Choice::Sse2(_) => {
            // SAFETY: the token proves SSE2.
            unsafe { pairs_128(rounds) };
            8
        }
        Choice::Avx2(_) => {
            // SAFETY: the token proves AVX2.
            unsafe { pairs_256(rounds) };
            16
        }
        Choice::AvxVnni(_) => {
            // SAFETY: the token proves AVX2 and AVX-VNNI.
            unsafe { dots_256(rounds) };
            32
        }
        Choice::Avx512(_) => {
            // SAFETY: the token proves AVX-512 F and BW.
            unsafe { pairs_512(rounds) };
            32
        }
        Choice::Avx512Vnni(_) => {
            // SAFETY: the token proves AVX-512 F and VNNI.
            unsafe { dots_512(rounds) };
            64
        }
    }
}

/// A function of `rounds` times `CHAINS` steps on vectors.
macro_rules! probe {
    ($name:ident, $features:literal, $splat:ident, |$sum:ident, $factor:ident| $step:expr) => {
        #[target_feature(enable = $features)]
        fn $name(rounds: usize) {
            let $factor = $splat(black_box(3));
            let mut sums = [$splat(black_box(1)); CHAINS];
            for _ in 0..rounds {
                for sum in &mut sums {
                    let $sum = *sum;
                    *sum = $step;
                }
            }
            black_box(sums);
        }
    };
}

probe!(pairs_128, "sse2", _mm_set1_epi16, |sum, factor| _mm_add_epi32(
    sum,
    _mm_madd_epi16(sum, factor)
));
probe!(pairs_256, "avx2", _mm256_set1_epi16, |sum, factor| _mm256_add_epi32(
    sum,
    _mm256_madd_epi16(sum, factor)
));
probe!(pairs_512, "avx512f,avx512bw", _mm512_set1_epi16, |sum, factor| _mm512_add_epi32(
    sum,
    _mm512_madd_epi16(sum, factor)
));
probe!(dots_256, "avx2,avxvnni", _mm256_set1_epi8, |sum, factor| _mm256_dpbusd_avx_epi32(
    sum, sum, factor
));
probe!(dots_512, "avx512f,avx512vnni", _mm512_set1_epi8, |sum, factor| _mm512_dpbusd_epi32(
    sum, sum, factor
));
