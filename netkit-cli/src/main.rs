//! The `netkit` command line.
#![forbid(unsafe_code)]
fn main() {}
