//! Arm's semihosting calls, which QEMU serves on RISC-V too: console output and the exit code.

use core::ffi::c_void;

const SYS_OPEN: usize = 0x01;
const SYS_WRITE: usize = 0x05;
const SYS_EXIT: usize = 0x18;

/// How the firmware ended.
pub(crate) enum Outcome {
    Success,
    Failure,
}

/// The emulator's standard output.
pub(crate) struct Console {
    handle: usize,
}

impl Console {
    pub(crate) fn open() -> Self {
        const NAME: &[u8] = b":tt\0";
        const MODE_WRITE: usize = 4;
        let arguments = [NAME.as_ptr() as usize, MODE_WRITE, NAME.len() - 1];
        // SAFETY: SYS_OPEN reads three words and the name they point to; all outlive the call.
        let handle = unsafe { call(SYS_OPEN, arguments.as_ptr().cast()) };
        Self { handle }
    }

    pub(crate) fn write(&mut self, text: &[u8]) {
        let arguments = [self.handle, text.as_ptr() as usize, text.len()];
        // SAFETY: SYS_WRITE reads three words and the text they point to; all outlive the call.
        unsafe { call(SYS_WRITE, arguments.as_ptr().cast()) };
    }
}

/// Ends the emulator, with exit code 0 for success.
pub(crate) fn exit(outcome: Outcome) -> ! {
    const APPLICATION_EXIT: usize = 0x20026;
    const RUN_TIME_ERROR: usize = 0x20023;
    let reason = match outcome {
        Outcome::Success => APPLICATION_EXIT,
        Outcome::Failure => RUN_TIME_ERROR,
    };
    loop {
        // SAFETY: on 32-bit targets SYS_EXIT takes the reason itself in place of a pointer and reads no memory.
        unsafe { call(SYS_EXIT, reason as *const c_void) };
    }
}

/// Asks the host for `operation`.
///
/// # Safety
///
/// `argument` must be what `operation` expects: a pointer to as many words as it reads, or its plain argument.
unsafe fn call(operation: usize, argument: *const c_void) -> usize {
    let result;
    #[cfg(target_arch = "arm")]
    // SAFETY: the caller vouches for the argument; the debugger preserves all registers but r0.
    unsafe {
        core::arch::asm!(
            "bkpt 0xab",
            inout("r0") operation => result,
            in("r1") argument,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(target_arch = "riscv32")]
    // SAFETY: the caller vouches for the argument. The three instructions are the marker the emulator looks for; they
    // must be uncompressed and must not straddle a page, hence the alignment.
    unsafe {
        core::arch::asm!(
            ".option push",
            ".option norvc",
            ".balign 16",
            "slli x0, x0, 0x1f",
            "ebreak",
            "srai x0, x0, 7",
            ".option pop",
            inout("a0") operation => result,
            in("a1") argument,
            options(nostack, preserves_flags)
        );
    }
    result
}
