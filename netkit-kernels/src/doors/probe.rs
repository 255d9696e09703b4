//! What a benchmark divides by: work bounded by one limit of the machine. Not used by networks.

use crate::arch::probe::{MultiplyAddsF32, ReadF32, multiply_adds_s8};
use crate::dispatch::Kernels;

impl Kernels {
    /// Float multiply-adds of this instruction set on registers alone, some for each of `rounds`. Returns how many
    /// multiply-accumulates that was: over the time it took, the most that any kernel can reach.
    pub fn multiply_adds_f32(self, rounds: usize) -> u64 {
        self.run(MultiplyAddsF32 { rounds })
    }

    /// The same of int8 products, by the instructions that the kernels use: without VNNI `pmaddwd` and `paddd`, which takes
    /// the splitting of bytes into 16 bits as done.
    pub fn multiply_adds_s8(self, rounds: usize) -> u64 {
        multiply_adds_s8(self.choice(), rounds)
    }

    /// Reads a block once, in the widest loads of this instruction set, and returns its largest value: over the time it
    /// took, how fast the cache that holds the block can be read. Up to some hundred bytes at the end are left out.
    pub fn read_f32(self, block: &[f32]) -> f32 {
        self.run(ReadF32 { block })
    }
}
