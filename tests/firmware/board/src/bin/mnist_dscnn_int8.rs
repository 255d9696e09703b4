//! `models/mnist_dscnn_int8.nk`.
#![no_std]
#![no_main]

firmware_board::firmware!(firmware_workload::digits::mnist_dscnn_int8::run);
