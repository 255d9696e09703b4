//! Start-up, output and counting, with no library in between.
#![no_std]
#![no_main]

firmware_board::firmware!(firmware_workload::smoke::run);
