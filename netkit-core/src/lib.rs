//! The `.nk` format, graph, checks and memory planner of netkit.
//!
//! Sections of the format that documentation and messages name are those of `docs/format.md` in the repository.
#![no_std]
#![forbid(unsafe_code)]
#[cfg(feature = "alloc")]
extern crate alloc;

pub mod bytes;
mod check;
pub mod diag;
pub mod format;
pub mod graph;
pub mod lower;
pub mod op;
pub mod pack;
pub mod plan;
pub mod program;
pub mod quant;
pub mod tensor;
