//! One MNIST CNN inference with rten, the model compiled in.

use std::sync::Arc;

use netkit_peers::fresh::{digit, finish};
use rten::{Model, RunOptions, ThreadPool, Value};
use rten_tensor::TensorView;
use rten_tensor::prelude::*;

static MODEL: &[u8] = include_bytes!("../../made/models/mnist_cnn_f32.onnx");
static CASES: &[u8] = include_bytes!("../../made/models/mnist_cnn_f32.cases");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Model::load_static_slice(MODEL)?;
    let input = Value::from_shape([1, 1, 28, 28], digit(CASES))?;
    let options =
        RunOptions::default().with_thread_pool(Some(Arc::new(ThreadPool::with_num_threads(1))));
    let output = model.run_one((&input).into(), Some(options))?;
    let view: TensorView<f32> = (&output).try_into()?;
    finish(&view.to_vec());
    Ok(())
}
