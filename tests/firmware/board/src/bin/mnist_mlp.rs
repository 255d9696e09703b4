//! `models/mnist_mlp.nk`.
#![no_std]
#![no_main]

firmware_board::firmware!(firmware_workload::digits::mnist_mlp::run);
