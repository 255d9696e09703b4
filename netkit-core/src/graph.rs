//! The graph: primitive operators in execution order, the values between them, and the constants they
//! read. A directed acyclic graph with any number of inputs and outputs; `.nk` files have one of each.

/// Inputs one node can have.
pub const MAX_INPUTS: usize = 4;
