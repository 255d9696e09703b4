//! The board of every target without an operating system.

use crate::marker::between_markers;
use crate::semihosting::{self, Outcome};
use crate::stack;
use firmware_workload::{Board, Report};

/// A bare machine: semihosting for a console.
pub struct Machine {
    console: semihosting::Console,
}

impl Board for Machine {
    fn write(&mut self, text: &[u8]) {
        self.console.write(text);
    }

    #[inline(always)]
    fn mark_step() {
        crate::marker::step();
    }

    fn measure(&mut self, name: &str, body: impl FnOnce()) {
        let used = stack::high_water(|| between_markers(body));
        Report::remark(self, name, "region", used as i32);
    }
}

/// What the start-up code of each architecture calls, memory and stack being ready.
pub(crate) fn start() -> ! {
    let mut machine = Machine { console: semihosting::Console::open() };
    crate::run(&mut machine);
    semihosting::exit(Outcome::Success)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    semihosting::Console::open().write(b"panic\n");
    semihosting::exit(Outcome::Failure)
}
