//! One MNIST CNN inference with netkit, the model compiled in.

use netkit_peers::fresh::{digit, finish};

netkit::model!(MnistCnn = "made/models/mnist_cnn_f32.nk");

static CASES: &[u8] = include_bytes!("../../made/models/mnist_cnn_f32.cases");

fn main() {
    static NETWORK: std::sync::Mutex<MnistCnn> = std::sync::Mutex::new(MnistCnn::new());
    let mut input = [0.0; MnistCnn::INPUT_LEN];
    input.copy_from_slice(&digit(CASES));
    let mut network = NETWORK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    finish(&network.forward(&input));
}
