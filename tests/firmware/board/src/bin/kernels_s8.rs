//! Int8 kernels, layer by layer.
#![no_std]
#![no_main]

firmware_board::firmware!(firmware_workload::kernels_s8::run);
