//! Reads a handwritten digit on a bare Cortex-M.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};

netkit::model!(
    /// Reads a digit from 28×28 pixels.
    Digits = "../../models/mnist_cnn_int8.nk"
);

// A model that grows beyond the board's memory does not compile.
const _: () = assert!(Digits::ARENA_BYTES <= 32 * 1024);

/// A picture of a digit: on a board it would come from a camera. A value, not a reference: that would keep the whole file,
/// a thousand pictures, in flash.
static PICTURE: [u8; Digits::INPUT_LEN] = {
    let file: &[[u8; Digits::INPUT_LEN]] =
        include_bytes!("../../../models/digits/images.u8").as_chunks().0;
    file[0]
};

#[entry]
fn main() -> ! {
    // In .bss: the network takes neither flash nor stack. The macro makes this a `&'static mut`, once.
    static mut DIGITS: Digits = Digits::new();

    // This network's inputs are pixels from 0 to 255, shifted by its zero point of -128.
    let input = PICTURE.map(|pixel| (pixel ^ 0x80).cast_signed());
    let scores = DIGITS.forward_i8(&input);

    let best = (0..scores.len()).max_by_key(|&digit| scores[digit]);
    hprintln!("digit: {}", best.unwrap_or(0));
    loop {
        // Ends the emulator; a debugger stops here.
        debug::exit(debug::EXIT_SUCCESS);
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {
        debug::exit(debug::EXIT_FAILURE);
    }
}
