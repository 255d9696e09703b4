//! What the library does otherwise than netkit, or not at all, must not be seen: the stand-in can be told to.

use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit_kernels::{Isa, Kernels};

netkit::model!(Cnn = "../../models/mnist_cnn_int8.nk");
netkit::model!(Dscnn = "../../models/mnist_dscnn_int8.nk");

unsafe extern "C" {
    safe fn stand_in_set(class: i32, rounds_once: i32, fails: i32, greed: i32);
    safe fn stand_in_count(kind: i32) -> u32;
}

const PIXELS: usize = 28 * 28;

/// Rows of the two pooled maps of `mnist_cnn_int8`: the library computes each with the rows of the convolution that it is the
/// maximum of, a layer of its own.
const BANDS: u32 = 13 + 5;

/// What the stand-in can be compiled for.
const CLASSES: [i32; 3] = [0, 1, 2];

fn digits() -> impl Iterator<Item = [i8; PIXELS]> {
    let (digits, _) = include_bytes!("../../../models/digits/images.u8").as_chunks::<PIXELS>();
    digits.iter().take(5).map(|digit| digit.map(|pixel| (pixel ^ 0x80).cast_signed()))
}

/// Convolutions, depthwise convolutions, dense layers and maxima that the library computed.
fn counts() -> [u32; 4] {
    [0, 1, 2, 3].map(|kind| stand_in_count(kind))
}

/// Runs a network, as the macro makes it and as the runtime loads it, and compares with our kernels; what the library
/// computed of one inference.
fn run(bytes: &[u8], mut forward: impl FnMut(&[i8; PIXELS]) -> [i8; 10], what: &str) -> [u32; 4] {
    let scalar = Kernels::for_isa(Isa::Scalar).unwrap();
    let native = Kernels::native();
    let (arena, other) = (Bump::heap(1 << 20).unwrap(), Bump::heap(1 << 20).unwrap());
    let mut before = Network::load(bytes, &other).unwrap().with_kernels(scalar);
    let mut behind = Network::load(bytes, &arena).unwrap().with_kernels(native);
    let mut seen = None;
    for digit in digits() {
        let (mut expected, mut output) = ([0; 10], [99; 10]);
        before.forward_i8(&digit, &mut expected).unwrap();
        let start = counts();
        behind.forward_i8(&digit, &mut output).unwrap();
        let by_runtime = counts();
        assert_eq!(output, expected, "runtime, {what}");
        assert_eq!(forward(&digit), expected, "macro, {what}");
        let by_macro = counts();
        let computed = [0, 1, 2, 3].map(|kind| by_runtime[kind] - start[kind]);
        // The macro asks which kernels there are at every inference, which the library answers with a dense layer.
        let probes = [0, 0, 1, 0];
        let again = [0, 1, 2, 3].map(|kind| by_macro[kind] - by_runtime[kind] - probes[kind]);
        assert_eq!(again, computed, "macro against runtime, {what}");
        assert_eq!(*seen.get_or_insert(computed), computed);
    }
    seen.unwrap()
}

fn run_cnn(what: &str) -> [u32; 4] {
    let mut model = Cnn::new_boxed();
    let bytes = netkit::include_model!("../../models/mnist_cnn_int8.nk");
    run(bytes, |digit| model.forward_i8(digit), what)
}

fn run_dscnn(what: &str) -> [u32; 4] {
    let mut model = Dscnn::new_boxed();
    let bytes = netkit::include_model!("../../models/mnist_dscnn_int8.nk");
    run(bytes, |digit| model.forward_i8(digit), what)
}

/// The switches are the process's, so this is one test.
#[test]
fn the_library_takes_layers_and_what_it_does_wrong_is_not_seen() {
    for class in CLASSES {
        // Everything is taken, so buffers and row sums are as each kind of library wants them.
        stand_in_set(class, 0, 0, 0);
        assert_eq!(run_cnn(&format!("class {class}")), [BANDS, 0, 2, BANDS]);
        let [convolutions, depthwise, dense, _] = run_dscnn(&format!("class {class}"));
        assert!(convolutions > 0 && depthwise > 0 && dense > 0, "class {class}");

        // It asks for more than foreseen: those layers are ours.
        stand_in_set(class, 0, 0, 1 << 20);
        assert_eq!(run_cnn(&format!("greedy, class {class}")), [0, 0, 2, BANDS]);
        assert_eq!(run_dscnn(&format!("greedy, class {class}"))[..2], [0, 0]);

        // It fails after the kernels were chosen, and leaves nonsense: all layers are ours.
        stand_in_set(class, 0, 0, 0);
        let behind = Kernels::native();
        assert!(behind.has_cmsis_nn());
        stand_in_set(class, 0, 1, 0);
        failing_layers_are_ours(behind);
        // And from then on it is not used.
        assert!(!Kernels::native().has_cmsis_nn());

        // It rounds once where netkit rounds twice: it is not used at all.
        stand_in_set(class, 1, 0, 0);
        assert!(!Kernels::native().has_cmsis_nn());
        let scalar = Kernels::for_isa(Isa::Scalar).unwrap();
        assert!(!scalar.with_cmsis_nn().has_cmsis_nn());
    }
}

/// A network on a library that fails at every layer.
fn failing_layers_are_ours(behind: Kernels) {
    let scalar = Kernels::for_isa(Isa::Scalar).unwrap();
    for bytes in [
        netkit::include_model!("../../models/mnist_cnn_int8.nk"),
        netkit::include_model!("../../models/mnist_dscnn_int8.nk"),
    ] {
        let (arena, other) = (Bump::heap(1 << 20).unwrap(), Bump::heap(1 << 20).unwrap());
        let mut before = Network::load(bytes, &other).unwrap().with_kernels(scalar);
        let mut after = Network::load(bytes, &arena).unwrap().with_kernels(behind);
        for digit in digits() {
            let (mut expected, mut output) = ([0; 10], [99; 10]);
            before.forward_i8(&digit, &mut expected).unwrap();
            after.forward_i8(&digit, &mut output).unwrap();
            assert_eq!(output, expected);
        }
    }
    assert_eq!(counts(), [0; 4]);
}
