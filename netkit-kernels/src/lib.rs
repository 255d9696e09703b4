//! Neural-network kernels: portable, SIMD and bare metal.
#![no_std]
