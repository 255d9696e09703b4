//! What the firmware computes. The same functions run on the host and on every target; the runner compares what they
//! print.
//!
//! A workload talks to its [`Board`] only. It prints results as lines of a tiny grammar the runner reads back:
//!
//! ```text
//! i8 NAME V V V …        must equal the host's
//! f32 NAME HEX HEX …     bit patterns, must be near the host's
//! # NAME KEY VALUE       not compared: 'region' and the stack it took (0: not measured); a 'step' of the region before
//!                        and its place; bytes of 'data' in flash (weights, inputs); bytes of the 'arena'
//! ```
//!
//! No `core::fmt` anywhere: it would be the largest part of the flash that is being measured.
#![no_std]

pub mod digits;
mod forward;
pub mod kernels_s8;
pub mod layers;
pub mod loaded;
mod random;
mod report;
pub mod smoke;

pub use report::Report;

/// Stops where the firmware was built for a library that does not compute as netkit does: it would only seem to be used.
pub fn check_backend() {
    #[cfg(feature = "cmsis-nn")]
    assert!(netkit_kernels::Kernels::native().has_cmsis_nn());
}

/// The machine a workload runs on.
pub trait Board {
    /// Whether there is room for the names of steps. They are the same on every machine, so it is enough that the host
    /// tells them; elsewhere they would be part of the flash that is being measured.
    const HAS_ROOM: bool = cfg!(not(target_os = "none"));

    /// Marks, for the instruction counter, that a step of a network begins. No more than one instruction.
    fn mark_step();

    /// Prints bytes to the console, unchanged.
    fn write(&mut self, text: &[u8]);

    /// Runs `body` as the measured region `name`: between the instruction counter's markers, on a painted stack.
    fn measure(&mut self, name: &str, body: impl FnOnce());
}
