#![no_main]

netkit_fuzz::fuzz!(CLI);
