//! One board for every target: how to start, print, measure and stop.
//!
//! A binary is one line, `firmware_board::firmware!(path::to::workload)`. The chip's own part is in the module of its
//! architecture; what bare-metal targets share is in [`semihosting`](self) and `stack`.
#![no_std]

#[cfg(target_os = "none")]
mod bare;
#[cfg(all(target_arch = "arm", target_os = "none"))]
mod cortex_m;
#[cfg(unix)]
mod hosted;
#[cfg(target_arch = "riscv32")]
mod riscv;
#[cfg(target_os = "none")]
mod semihosting;
#[cfg(target_os = "none")]
mod stack;
#[cfg(target_arch = "wasm32")]
mod wasm;

mod marker;

#[cfg(target_os = "none")]
pub use bare::Machine;
#[cfg(unix)]
pub use hosted::Machine;
#[cfg(target_arch = "wasm32")]
pub use wasm::Machine;

unsafe extern "Rust" {
    /// The workload of this binary, defined by [`firmware!`].
    safe fn netkit_workload(machine: &mut Machine);
}

/// Makes the current binary the firmware that runs `workload`, a function generic over the board.
#[macro_export]
macro_rules! firmware {
    ($workload:path) => {
        // SAFETY: the name is this project's own and each binary defines it once.
        #[unsafe(no_mangle)]
        fn netkit_workload(machine: &mut $crate::Machine) {
            $workload(machine);
        }
    };
}

/// Runs the binary's workload, an empty region first: what the counter reads for it is the cost of counting.
fn run(machine: &mut Machine) {
    use firmware_workload::Board;
    firmware_workload::check_backend();
    machine.measure("empty", || {});
    netkit_workload(machine);
}
