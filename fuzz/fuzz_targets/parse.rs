#![no_main]

netkit_fuzz::fuzz!(PARSE);
