//! Passes for Cortex-M; see [`micro`](crate::micro).
//!
//! The compiler does not say which of the architecture's extensions are there: the build script does, from
//! the target's name (`netkit_dsp`).

/// Runs a pass in assembly: its lines, then offsets into the structure, by name.
///
/// The lines find the structure in r0 and at the stack pointer, and may use every register. Two of them the compiler
/// does not give away, so they are saved here. This is not a naked function, whose text the linker would see without
/// knowing which extensions the processor has.
#[cfg(not(netkit_mve))]
macro_rules! assembly {
    ($pass:ident { $($line:expr),+ $(,)? }; $($name:ident = $offset:expr),+ $(,)?) => {
        // SAFETY: the lines read and write what the structure names, which the caller says is there, and nothing else
        // but the stack below the pointer; all registers they change are named or saved.
        unsafe {
            core::arch::asm!(
                "push {{r0, r6, r7}}",
                $($line,)+
                "pop {{r0, r6, r7}}",
                $($name = const $offset,)+
                inout("r0") core::ptr::from_mut($pass) => _,
                out("r1") _,
                out("r2") _,
                out("r3") _,
                out("r4") _,
                out("r5") _,
                out("r8") _,
                out("r9") _,
                out("r10") _,
                out("r11") _,
                out("r12") _,
                out("lr") _,
            );
        }
    };
}

#[cfg(netkit_dsp)]
pub(crate) mod dsp;
#[cfg(netkit_mve)]
pub(crate) mod mve;
#[cfg(netkit_thumb1)]
pub(crate) mod thumb1;
#[cfg(netkit_thumb2)]
pub(crate) mod thumb2;
