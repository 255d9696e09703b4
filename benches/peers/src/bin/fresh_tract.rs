//! One MNIST CNN inference with tract, the model compiled in.

use netkit_peers::fresh::{digit, finish};
use tract_onnx::prelude::*;

static MODEL: &[u8] = include_bytes!("../../made/models/mnist_cnn_f32.onnx");
static CASES: &[u8] = include_bytes!("../../made/models/mnist_cnn_f32.cases");

fn main() -> TractResult<()> {
    let plan =
        tract_onnx::onnx().model_for_read(&mut &*MODEL)?.into_optimized()?.into_runnable()?;
    let input = Tensor::from_shape(&[1, 1, 28, 28], &digit(CASES))?;
    let output = plan.run(tvec![input.into_tvalue()])?;
    finish(output[0].try_as_plain_ram()?.as_slice()?);
    Ok(())
}
