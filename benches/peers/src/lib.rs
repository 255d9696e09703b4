//! Parts of the peer comparison: `main.rs` runs it, `bin/fresh_*.rs` are the whole-process programs it starts.

pub mod arguments;
pub mod engines;
pub mod fresh;
pub mod graph;
pub mod measure;
pub mod model;
pub mod peak;
pub mod report;
