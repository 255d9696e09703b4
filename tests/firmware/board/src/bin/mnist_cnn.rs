//! `models/mnist_cnn.nk`.
#![no_std]
#![no_main]

firmware_board::firmware!(firmware_workload::digits::mnist_cnn::run);
