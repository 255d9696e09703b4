//! WebAssembly in any host that provides `console.write`; ours is `runner/node.js`.

use firmware_workload::{Board, Report};

#[link(wasm_import_module = "console")]
unsafe extern "C" {
    /// Prints `length` bytes of this module's memory from `text` on.
    fn write(text: *const u8, length: usize);
}

/// A WebAssembly instance.
pub struct Machine;

impl Board for Machine {
    fn write(&mut self, text: &[u8]) {
        // SAFETY: the host only reads, and only what the slice covers.
        unsafe { write(text.as_ptr(), text.len()) };
    }

    #[inline(always)]
    fn mark_step() {
        crate::marker::step();
    }

    fn measure(&mut self, name: &str, body: impl FnOnce()) {
        crate::marker::between_markers(body);
        Report::remark(self, name, "region", 0);
    }
}

/// What the host calls.
// SAFETY: the name is defined once in the module.
#[unsafe(no_mangle)]
extern "C" fn run() {
    crate::run(&mut Machine);
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}
