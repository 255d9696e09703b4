//! rten, reading ONNX as it is. int8 in the form its documentation asks for: `ConvInteger` and `MatMulInteger` with
//! uint8 activations and int8 weights.

use std::path::Path;
use std::sync::Arc;

use rten::{Model as Network, ModelOptions, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{Tensor, TensorView};

use super::Python;
use crate::measure::{Local, Runner, Session};
use crate::model::{DType, Model, Result, Values, nchw_shape, to_nchw, to_nhwc};

pub fn open(_: &Python, model: &Model) -> Result<Option<Box<dyn Runner>>> {
    let form = match model.dtype {
        DType::F32 => "onnx",
        DType::Int8 => "integer.onnx",
    };
    let Some(path) = model.file(form) else { return Ok(None) };
    Ok(Some(match model.dtype {
        DType::F32 => Box::new(Local(Rten::<f32>::new(&path, model)?)),
        DType::Int8 => Box::new(Local(Rten::<u8>::new(&path, model)?)),
    }))
}

pub struct Rten<T> {
    network: Network,
    options: RunOptions,
    input: Tensor<T>,
    output: Option<Value>,
    input_shape: Vec<usize>,
    output_shape: Vec<usize>,
}

impl<T: Clone + Default> Rten<T> {
    pub fn new(path: &Path, model: &Model) -> Result<Self> {
        Ok(Self {
            network: ModelOptions::with_all_ops().prepack_weights(true).load_file(path)?,
            options: RunOptions::default()
                .with_thread_pool(Some(Arc::new(ThreadPool::with_num_threads(1)))),
            input: Tensor::from_data(
                nchw_shape(&model.input_shape).as_slice(),
                vec![T::default(); model.input_len],
            ),
            output: None,
            input_shape: model.input_shape.clone(),
            output_shape: model.output_shape.clone(),
        })
    }
}

impl<T> Rten<T> {
    fn run_on<'a>(&'a self) -> Result<Value>
    where
        ValueOrView<'a>: From<TensorView<'a, T>>,
    {
        Ok(self.network.run_one(self.input.view().into(), Some(self.options.clone()))?)
    }

    fn output_of<'a, U: Copy>(&'a self) -> Result<Vec<U>>
    where
        TensorView<'a, U>: TryFrom<&'a Value, Error = rten::TryFromValueError>,
        U: 'a,
    {
        let output = self.output.as_ref().ok_or("no run yet")?;
        let view: TensorView<'a, U> = output.try_into()?;
        Ok(to_nhwc(&view.to_vec(), &self.output_shape))
    }
}

impl Session for Rten<f32> {
    fn set_input(&mut self, input: &Values) -> Result<()> {
        let arranged = to_nchw(input.f32()?, &self.input_shape);
        self.input = Tensor::from_data(nchw_shape(&self.input_shape).as_slice(), arranged);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        self.output = Some(self.run_on()?);
        Ok(())
    }

    fn output(&self) -> Result<Values> {
        Ok(Values::F32(self.output_of()?))
    }
}

impl Session for Rten<u8> {
    fn set_input(&mut self, input: &Values) -> Result<()> {
        let shifted: Vec<u8> = input.int8()?.iter().map(|&v| (v as u8) ^ 0x80).collect();
        let arranged = to_nchw(&shifted, &self.input_shape);
        self.input = Tensor::from_data(nchw_shape(&self.input_shape).as_slice(), arranged);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        self.output = Some(self.run_on()?);
        Ok(())
    }

    fn output(&self) -> Result<Values> {
        Ok(Values::Int8(self.output_of::<u8>()?.into_iter().map(|v| (v ^ 0x80) as i8).collect()))
    }
}
