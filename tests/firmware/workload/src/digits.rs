//! The digit networks, compiled into the firmware: two real digits each, the first of them measured.

use crate::{Board, Report, forward};
use netkit::{Model, QuantizedModel};

const PIXELS: usize = 28 * 28;

/// Two test digits, a byte a pixel. Only these of the file become part of the image.
static DIGITS: [[u8; PIXELS]; 2] = {
    let file = include_bytes!("../../../../models/digits/images.u8").as_chunks().0;
    [file[0], file[3]]
};

/// Declares a module for each network, so that a binary holds one of them and no other's weights.
macro_rules! networks {
    ($($module:ident: $run:ident $name:ident = $path:literal;)+) => {$(
        #[doc = concat!("`", $path, "`.")]
        pub mod $module {
            netkit::model!(
                /// Reads a digit from 28×28 pixels.
                pub $name = $path
            );

            /// Runs the network.
            pub fn run(board: &mut impl crate::Board) {
                super::$run::<_, $name>(board, $name::new());
            }
        }
    )+};
}

networks! {
    mnist_mlp: float MnistMlp = "../../../models/mnist_mlp.nk";
    mnist_mlp_int8: int8 MnistMlpInt8 = "../../../models/mnist_mlp_int8.nk";
    mnist_cnn: float MnistCnn = "../../../models/mnist_cnn.nk";
    mnist_cnn_int8: int8 MnistCnnInt8 = "../../../models/mnist_cnn_int8.nk";
    mnist_dscnn: float MnistDscnn = "../../../models/mnist_dscnn.nk";
    mnist_dscnn_int8: int8 MnistDscnnInt8 = "../../../models/mnist_dscnn_int8.nk";
}

fn float<B: Board, M: Model<Input = [f32; PIXELS], Output = [f32; 10]>>(
    board: &mut B,
    mut model: M,
) {
    sizes::<M>(board);
    for (digit, name) in DIGITS.iter().zip(["first", "second"]) {
        let input = digit.map(|pixel| f32::from(pixel) / 255.0);
        let mut output = [0.0; 10];
        if name == "first" {
            forward::float(board, "forward", &mut model, &input, &mut output);
        } else {
            model.forward_observed(&input, &mut output, forward::mark::<B>);
        }
        Report::f32(board, name, &output);
    }
}

fn int8<B: Board, M: QuantizedModel<QuantizedInput = [i8; PIXELS], QuantizedOutput = [i8; 10]>>(
    board: &mut B,
    mut model: M,
) {
    sizes::<M>(board);
    for (digit, name) in DIGITS.iter().zip(["first", "second"]) {
        // How these networks are quantized: 0 is −128, 255 is 127.
        let input = digit.map(|pixel| (pixel ^ 0x80).cast_signed());
        let mut output = [0; 10];
        if name == "first" {
            forward::int8(board, "forward", &mut model, &input, &mut output);
        } else {
            model.forward_i8_observed(&input, &mut output, forward::mark::<B>);
        }
        Report::i8(board, name, &output);
    }
}

fn sizes<M: Model>(board: &mut impl Board) {
    Report::remark(board, M::NAME, "data", (M::WEIGHT_BYTES + size_of_val(&DIGITS)) as i32);
    Report::remark(board, M::NAME, "arena", M::ARENA_BYTES as i32);
}
