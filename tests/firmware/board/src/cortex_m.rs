//! Cortex-M: cortex-m-rt brings memory up, turns the FPU on and calls here.

#[cortex_m_rt::entry]
fn main() -> ! {
    crate::bare::start()
}

/// A fault must end the run, not hang it.
#[cortex_m_rt::exception]
unsafe fn HardFault(_: &cortex_m_rt::ExceptionFrame) -> ! {
    panic!()
}
