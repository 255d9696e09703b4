//! The `.nk` format, graph, checks and memory planner of netkit.
#![no_std]
#![forbid(unsafe_code)]
#[cfg(feature = "alloc")]
extern crate alloc;
