//! How deep the stack went: paint it, run, look how far the paint is gone.

use core::arch::asm;

const PAINT: u32 = 0xa5c3_5a3c;

/// No workload here comes near this; painting megabytes would only cost time.
const DEEPEST: usize = 256 * 1024;

/// Bytes of stack `body` used below its caller's frame.
#[inline(never)]
pub(crate) fn high_water(body: impl FnOnce()) -> usize {
    let bottom = bottom();
    // SAFETY: from the end of static memory to just below this frame nothing lives.
    let top = unsafe { paint(bottom) };
    body();
    let mut word = bottom as *const u32;
    // SAFETY: stays below `top`, inside the painted words, which are ordinary memory.
    while (word as usize) < top && unsafe { word.read_volatile() } == PAINT {
        word = word.wrapping_add(1);
    }
    top - word as usize
}

/// The lowest address painted: the end of static memory, or as far down as is worth painting.
fn bottom() -> usize {
    unsafe extern "C" {
        /// Defined by the linker script: the first address after all statics.
        static __sheap: u32;
    }
    let limit = (&raw const __sheap) as usize;
    limit.max(stack_pointer().saturating_sub(DEEPEST)).next_multiple_of(4)
}

/// Paints from `bottom` up to the caller's stack pointer and returns the latter.
///
/// # Safety
///
/// Nothing may live between `bottom` and the stack pointer.
#[inline(always)]
unsafe fn paint(bottom: usize) -> usize {
    let top = stack_pointer() & !3;
    let mut word = bottom as *mut u32;
    while (word as usize) < top {
        // SAFETY: below the stack pointer, where the caller says nothing lives; the loop itself calls nothing.
        unsafe { word.write_volatile(PAINT) };
        word = word.wrapping_add(1);
    }
    top
}

#[inline(always)]
fn stack_pointer() -> usize {
    let pointer: usize;
    #[cfg(target_arch = "arm")]
    // SAFETY: reads a register.
    unsafe {
        asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "riscv32")]
    // SAFETY: reads a register.
    unsafe {
        asm!("mv {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}
