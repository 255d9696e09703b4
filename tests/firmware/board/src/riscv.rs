//! RISC-V without an operating system: the few instructions before Rust can run.

use core::arch::global_asm;

// Pointers, then .data from its image, then .bss to zero, then Rust. Word by word: the linker script aligns both.
global_asm!(
    ".section .start, \"ax\"",
    ".global _start",
    "_start:",
    ".option push",
    ".option norelax",
    "la gp, __global_pointer$",
    ".option pop",
    "la sp, _stack_start",
    "la t0, trap",
    "csrw mtvec, t0",
    "la t0, __sidata",
    "la t1, __sdata",
    "la t2, __edata",
    "1: bgeu t1, t2, 2f",
    "lw t3, 0(t0)",
    "sw t3, 0(t1)",
    "addi t0, t0, 4",
    "addi t1, t1, 4",
    "j 1b",
    "2: la t1, __sbss",
    "la t2, __ebss",
    "3: bgeu t1, t2, 4f",
    "sw zero, 0(t1)",
    "addi t1, t1, 4",
    "j 3b",
    "4: call {start}",
    ".balign 4",
    "trap: call {trap}",
    start = sym start,
    trap = sym trap,
);

extern "C" fn start() -> ! {
    crate::bare::start()
}

/// A trap must end the run, not hang it.
extern "C" fn trap() -> ! {
    panic!()
}
