//! No inference: what a process costs by itself.

use netkit_peers::fresh::{digit, finish};

static CASES: &[u8] = include_bytes!("../../made/models/mnist_cnn_f32.cases");

fn main() {
    finish(&digit(CASES));
}
