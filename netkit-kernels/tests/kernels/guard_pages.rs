//! Are the guard pages that other tests rely on there at all?
#![cfg(all(unix, not(miri)))]

use crate::harness::{Guarded, Place};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

/// Set in the process that is to end by touching a guard page.
const TOUCH: &str = "NETKIT_TOUCH_GUARD_PAGE";

#[test]
fn b30_touching_a_guard_page_ends_the_process() {
    if let Ok(place) = std::env::var(TOUCH) {
        let behind = place == "behind";
        let place = if behind { Place::BeforeGuardPage } else { Place::BehindGuardPage };
        place.put(|| {
            let values = Guarded::new(&[1.0f32; 77], 0);
            let first = values.get().as_ptr();
            let outside = if behind { first.wrapping_add(77) } else { first.wrapping_sub(1) };
            // SAFETY: none: the page is mapped without access, and the test expects a signal here.
            let touched = unsafe { outside.read_volatile() };
            println!("{touched}");
        });
        return;
    }
    for side in ["before", "behind"] {
        let this = std::env::current_exe().unwrap();
        let test = "guard_pages::b30_touching_a_guard_page_ends_the_process";
        // Where this process is emulated, the system cannot start another without being told how.
        let runner = std::env::var("NETKIT_RUNNER").unwrap_or_default();
        let mut words = runner.split_whitespace();
        let mut command = match words.next() {
            Some(emulator) => Command::new(emulator),
            None => Command::new(&this),
        };
        if !runner.is_empty() {
            command.args(words).arg(this);
        }
        let output = command.args(["--exact", test]).env(TOUCH, side).output().unwrap();
        let signal = output.status.signal();
        // SIGBUS on some systems; AddressSanitizer catches the signal and exits with a report.
        let report = String::from_utf8_lossy(&output.stderr).contains("AddressSanitizer");
        assert!(matches!(signal, Some(7 | 10 | 11)) || report, "{side}: {output:?}");
    }
}
