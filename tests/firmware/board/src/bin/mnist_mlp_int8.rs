//! `models/mnist_mlp_int8.nk`.
#![no_std]
#![no_main]

firmware_board::firmware!(firmware_workload::digits::mnist_mlp_int8::run);
