//! Work that one limit of the machine bounds and nothing else: arithmetic, reading.

use crate::dispatch::Choice;
use crate::simd::{Kernel, Simd};
use core::hint::black_box;

/// Independent sums: more than latency times throughput of any multiply-add here, fewer than the registers.
pub(super) const CHAINS: usize = 12;

/// Multiply-adds that stay in registers.
pub(crate) struct MultiplyAddsF32 {
    pub(crate) rounds: usize,
}

impl Kernel for MultiplyAddsF32 {
    /// How many multiply-accumulates that was.
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        let (a, b) = (simd.splat(black_box(0.5)), simd.splat(black_box(0.25)));
        let mut sums = [simd.splat(0.0); CHAINS];
        for _ in 0..self.rounds {
            for sum in &mut sums {
                *sum = simd.mul_add(*sum, a, b);
            }
        }
        black_box(sums);
        (self.rounds * CHAINS * S::LANES) as u64
    }
}

/// One read of a block, a maximum a vector.
pub(crate) struct ReadF32<'a> {
    pub(crate) block: &'a [f32],
}

impl Kernel for ReadF32<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        const AT_ONCE: usize = 8;
        let mut most = [simd.splat(f32::MIN); AT_ONCE];
        for vectors in self.block.chunks_exact(AT_ONCE * S::LANES) {
            for (i, most) in most.iter_mut().enumerate() {
                // SAFETY: the chunk has AT_ONCE vectors.
                let x = unsafe { simd.load_pointer(vectors.as_ptr().wrapping_add(i * S::LANES)) };
                *most = simd.max(x, *most);
            }
        }
        most.map(|vector| simd.reduce_max(vector)).into_iter().fold(f32::MIN, f32::max)
    }
}

/// Int8 multiply-accumulates by the instructions that this set's kernels use; returns how many that was.
///
/// Each step's products depend on the sums of the step before: there is nothing to move out of the loop.
pub(crate) fn multiply_adds_s8(choice: Choice, rounds: usize) -> u64 {
    let steps = (rounds * CHAINS) as u64;
    match choice {
        #[cfg(netkit_portable)]
        Choice::Scalar(_) => {
            scalar(rounds);
            steps
        }
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        choice => steps * super::x86_64::probe::probe_s8(choice, rounds),
        #[allow(
            unreachable_patterns,
            reason = "sets of other machines, which have no probe of their own yet"
        )]
        _ => {
            scalar(rounds);
            steps
        }
    }
}

#[allow(
    dead_code,
    reason = "not used where every set has a probe of its own and there are no portable kernels"
)]
fn scalar(rounds: usize) {
    let factor = black_box(3);
    let mut sums = [black_box(1i32); CHAINS];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = sum.wrapping_add(i32::from(*sum as i8) * factor);
        }
    }
    black_box(sums);
}
