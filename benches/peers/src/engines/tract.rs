//! tract, through its ONNX front end.

use std::path::Path;
use std::sync::Arc;

use tract_onnx::prelude::*;

use super::Python;
use crate::measure::{Local, Runner, Session};
use crate::model::{DType, Model, Result, Values, nchw_shape, to_nchw, to_nhwc};

pub fn open(_: &Python, model: &Model) -> Result<Option<Box<dyn Runner>>> {
    let Some(path) = model.file("onnx") else { return Ok(None) };
    Ok(Some(Box::new(Local(Tract::new(&path, model)?))))
}

pub struct Tract {
    plan: Arc<TypedRunnableModel>,
    input: TValue,
    output: Option<TValue>,
    dtype: DType,
    input_shape: Vec<usize>,
    output_shape: Vec<usize>,
}

impl Tract {
    pub fn new(path: &Path, model: &Model) -> Result<Self> {
        let plan = tract_onnx::onnx().model_for_path(path)?.into_optimized()?.into_runnable()?;
        Ok(Self {
            plan,
            input: Tensor::zero_dt(f32::datum_type(), &[1])?.into(),
            output: None,
            dtype: model.dtype,
            input_shape: model.input_shape.clone(),
            output_shape: model.output_shape.clone(),
        })
    }
}

impl Session for Tract {
    fn set_input(&mut self, input: &Values) -> Result<()> {
        let shape = nchw_shape(&self.input_shape);
        let tensor = match input {
            Values::F32(values) => Tensor::from_shape(&shape, &to_nchw(values, &self.input_shape))?,
            Values::Int8(values) => {
                Tensor::from_shape(&shape, &to_nchw(values, &self.input_shape))?
            }
        };
        self.input = tensor.into_tvalue();
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        self.output = self.plan.run(tvec![self.input.clone()])?.pop();
        Ok(())
    }

    fn output(&self) -> Result<Values> {
        let output = self.output.as_ref().ok_or("no run yet")?;
        Ok(match self.dtype {
            DType::F32 => Values::F32(to_nhwc(
                output.try_as_plain_ram()?.as_slice::<f32>()?,
                &self.output_shape,
            )),
            DType::Int8 => Values::Int8(to_nhwc(
                output.try_as_plain_ram()?.as_slice::<i8>()?,
                &self.output_shape,
            )),
        })
    }
}
