//! Neural networks embedded into Rust programs at compile time.
#![no_std]
