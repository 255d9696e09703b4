//! The int8 digit networks on the linked library, through the macro and the runtime, equal to the bit to what the kernels
//! of this crate compute. These run with the real library as well.

use netkit::QuantizedModel;
use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit_kernels::{Isa, Kernels};

netkit::model!(Mlp = "../../models/mnist_mlp_int8.nk");
netkit::model!(Cnn = "../../models/mnist_cnn_int8.nk");
netkit::model!(Dscnn = "../../models/mnist_dscnn_int8.nk");

const PIXELS: usize = 28 * 28;
const DIGITS: usize = 50;

/// Test digits as these networks take them: 0 is −128, 255 is 127.
fn digits() -> impl Iterator<Item = [i8; PIXELS]> {
    let (digits, _) = include_bytes!("../../../models/digits/images.u8").as_chunks::<PIXELS>();
    digits.iter().take(DIGITS).map(|digit| digit.map(|pixel| (pixel ^ 0x80).cast_signed()))
}

fn check<M>(bytes: &[u8], model: &mut M)
where
    M: QuantizedModel<QuantizedInput = [i8; PIXELS], QuantizedOutput = [i8; 10]>,
{
    assert!(Kernels::native().has_cmsis_nn(), "the linked library is not used");
    let scalar = Kernels::for_isa(Isa::Scalar).unwrap();
    let (arena, other) = (Bump::heap(1 << 20).unwrap(), Bump::heap(1 << 20).unwrap());
    let mut behind = Network::load(bytes, &arena).unwrap();
    let mut before = Network::load(bytes, &other).unwrap().with_kernels(scalar);
    for (index, digit) in digits().enumerate() {
        let (mut expected, mut output) = ([0; 10], [99; 10]);
        before.forward_i8(&digit, &mut expected).unwrap();
        behind.forward_i8(&digit, &mut output).unwrap();
        assert_eq!(output, expected, "{}, digit {index}, runtime", M::NAME);
        assert_eq!(model.forward_i8(&digit), expected, "{}, digit {index}, macro", M::NAME);
    }
    assert!(model.self_test().is_ok());
}

#[test]
fn the_mlp_equals_to_the_bit() {
    check::<Mlp>(netkit::include_model!("../../models/mnist_mlp_int8.nk"), &mut Mlp::new_boxed());
}

#[test]
fn the_cnn_equals_to_the_bit() {
    check::<Cnn>(netkit::include_model!("../../models/mnist_cnn_int8.nk"), &mut Cnn::new_boxed());
}

#[test]
fn the_dscnn_equals_to_the_bit() {
    check::<Dscnn>(
        netkit::include_model!("../../models/mnist_dscnn_int8.nk"),
        &mut Dscnn::new_boxed(),
    );
}
