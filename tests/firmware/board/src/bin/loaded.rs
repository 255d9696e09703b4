//! The small networks of every kind of layer, read from their files and compared with the compiled ones.
#![no_std]
#![no_main]

firmware_board::firmware!(firmware_workload::loaded::run);
