//! Under an operating system: standard output. Used on the host, whose output is the expectation, and on AArch64 Linux.

extern crate std;

use crate::marker::between_markers;
use firmware_workload::{Board, Report};
use std::io::Write;

/// A process.
pub struct Machine {
    output: std::io::StdoutLock<'static>,
}

impl Board for Machine {
    fn write(&mut self, text: &[u8]) {
        self.output.write_all(text).expect("standard output is open");
    }

    #[inline(always)]
    fn mark_step() {
        crate::marker::step();
    }

    fn measure(&mut self, name: &str, body: impl FnOnce()) {
        between_markers(body);
        Report::remark(self, name, "region", 0);
    }
}

// SAFETY: every binary of this crate is `no_main`, so the C runtime's `main` is this one.
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    crate::run(&mut Machine { output: std::io::stdout().lock() });
    0
}
