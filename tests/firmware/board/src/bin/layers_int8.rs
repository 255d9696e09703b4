//! Small networks that hold every kind of layer, in int8.
#![no_std]
#![no_main]

firmware_board::firmware!(firmware_workload::layers::run_int8);
