//! What the firmware computes. The same functions run on the host and on every target; the runner compares what they
//! print.
//!
//! A workload talks to its [`Board`] only. It prints results as lines of a tiny grammar the runner reads back:
//!
//! ```text
//! i8 NAME V V V …        must equal the host's
//! f32 NAME HEX HEX …     bit patterns, must be near the host's
//! # NAME KEY VALUE       not compared: 'region' and the stack it took (0: not measured); bytes of 'data' in flash
//!                        (weights, inputs); bytes of the 'arena'
//! ```
//!
//! No `core::fmt` anywhere: it would be the largest part of the flash that is being measured.
#![no_std]

pub mod digits;
pub mod kernels_s8;
mod report;
pub mod smoke;

pub use report::Report;

/// The machine a workload runs on.
pub trait Board {
    /// Prints bytes to the console, unchanged.
    fn write(&mut self, text: &[u8]);

    /// Runs `body` as the measured region `name`: between the instruction counter's markers, on a painted stack.
    fn measure(&mut self, name: &str, body: impl FnOnce());
}
