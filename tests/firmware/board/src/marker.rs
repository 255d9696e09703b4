//! What does nothing, for the instruction counter to see: two functions, which the runner finds by name in the image, and
//! an instruction, which it knows by its encoding.

/// Keeps the optimiser from seeing that a marker has no effect, and from moving memory accesses across it. The comment
/// is all that tells the two markers apart: the optimiser would merge equal ones.
macro_rules! barrier {
    ($comment:literal) => {
        #[cfg(not(target_arch = "wasm32"))]
        // SAFETY: no instructions at all.
        unsafe {
            core::arch::asm!(concat!("/* ", $comment, " */"), options(nostack, preserves_flags));
        }
    };
}

/// Runs `body` between the markers.
///
/// Never inlined, nor are the markers: the instructions around `body` are then the same for every region, and the
/// runner subtracts those of an empty one.
#[inline(never)]
pub(crate) fn between_markers(body: impl FnOnce()) {
    netkit_region_begin();
    body();
    netkit_region_end();
}

/// Marks the begin of a step: an instruction that does nothing and that no compiler emits, the same as `STEP` in the
/// runner's `counter.rs`.
#[inline(always)]
pub(crate) fn step() {
    #[cfg(target_arch = "arm")]
    // SAFETY: moves a register to itself.
    unsafe {
        core::arch::asm!("mov r11, r11", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "riscv32")]
    // SAFETY: writes the register that is always zero.
    unsafe {
        core::arch::asm!("slti zero, zero, 42", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint without meaning.
    unsafe {
        core::arch::asm!("hint #42", options(nostack, preserves_flags));
    }
}

/// Where a region begins.
// SAFETY: the name is this project's own and is defined once.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn netkit_region_begin() {
    barrier!("begin");
}

/// Where a region ends.
// SAFETY: the name is this project's own and is defined once.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn netkit_region_end() {
    barrier!("end");
}
