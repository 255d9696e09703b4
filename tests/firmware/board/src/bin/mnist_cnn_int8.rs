//! `models/mnist_cnn_int8.nk`.
#![no_std]
#![no_main]

firmware_board::firmware!(firmware_workload::digits::mnist_cnn_int8::run);
