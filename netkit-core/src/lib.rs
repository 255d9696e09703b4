//! The `.nk` format, graph, checks and memory planner of netkit.
#![no_std]
#![forbid(unsafe_code)]
#[cfg(feature = "alloc")]
extern crate alloc;

pub mod bytes;
pub mod diag;
pub mod format;
pub mod graph;
pub mod op;
pub mod plan;
pub mod quant;
pub mod tensor;
