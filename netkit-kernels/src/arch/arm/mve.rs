//! Helium (MVE), where the compiler needs help: rescaling.

use core::arch::asm;
use netkit_core::quant::{Multiplier, OutputStage};

/// Outputs from sums, one a channel; `starts` are added first. No multiplier may shift to the left.
///
/// Four channels at a time. `vqrdmulh` is the doubling high product; the shift rounds ties up, so a product below zero
/// is first made one less. That one comes from the sign of both, the shift being negative where it shifts at all.
#[inline(never)]
pub(crate) fn rescale(
    sums: &[i32],
    starts: &[i32],
    multipliers: &[Multiplier],
    stage: OutputStage,
    output: &mut [i8],
) {
    const { assert!(size_of::<Multiplier>() == 8 && core::mem::offset_of!(Multiplier, shift) == 4) };
    let len = sums.len().min(starts.len()).min(multipliers.len()).min(output.len());
    if len == 0 {
        return;
    }
    // SAFETY: reads `len` sums, starts and multipliers, and writes as many outputs: lanes beyond them are masked off,
    // and every instruction here that touches memory obeys the mask.
    unsafe {
        asm!(
            "vdup.32 q4, {zero_point}",
            "vdup.32 q5, {low}",
            "vdup.32 q6, {high}",
            "dlstp.32 lr, {len}",
            "2:",
            "vldrw.u32 q0, [{sums}], #16",
            "vldrw.u32 q1, [{starts}], #16",
            "vadd.i32 q0, q0, q1",
            // The addresses of four multipliers.
            "vidup.u32 q7, r2, #8",
            "vldrw.u32 q2, [q7]",
            "vldrw.u32 q3, [q7, #4]",
            "vqrdmulh.s32 q0, q0, q2",
            "vand q1, q0, q3",
            "vshr.s32 q1, q1, #31",
            "vqadd.s32 q0, q0, q1",
            "vrshl.s32 q0, q0, q3",
            "vqadd.s32 q0, q0, q4",
            "vmax.s32 q0, q0, q5",
            "vmin.s32 q0, q0, q6",
            "vstrb.32 q0, [{output}], #4",
            "letp lr, 2b",
            zero_point = in(reg) stage.zero_point,
            low = in(reg) i32::from(stage.low),
            high = in(reg) i32::from(stage.high),
            len = in(reg) len,
            sums = inout(reg) sums.as_ptr() => _,
            starts = inout(reg) starts.as_ptr() => _,
            // An even register is asked for here.
            inout("r2") multipliers.as_ptr() => _,
            output = inout(reg) output.as_mut_ptr() => _,
            out("lr") _,
            out("q0") _,
            out("q1") _,
            out("q2") _,
            out("q3") _,
            out("q4") _,
            out("q5") _,
            out("q6") _,
            out("q7") _,
            options(nostack),
        );
    }
}
