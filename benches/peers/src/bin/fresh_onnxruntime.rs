//! One MNIST CNN inference with ONNX Runtime: `fresh_onnxruntime LIBRARY MODEL.onnx`.

use netkit_peers::fresh::{digit, finish};
use ort::session::Session;
use ort::value::Tensor;

static CASES: &[u8] = include_bytes!("../../made/models/mnist_cnn_f32.cases");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(library), Some(model)) = (arguments.next(), arguments.next()) else {
        return Err("usage: fresh_onnxruntime LIBRARY MODEL.onnx".into());
    };
    let environment = ort::init_from(library)?.build()?;
    let mut session =
        Session::builder(&environment)?.with_intra_threads(1)?.commit_from_file(model)?;
    let input = Tensor::from_array(([1usize, 1, 28, 28], digit(CASES)))?;
    let outputs = session.run(ort::inputs![input])?;
    finish(outputs[0].try_extract_tensor::<f32>()?.1);
    Ok(())
}
