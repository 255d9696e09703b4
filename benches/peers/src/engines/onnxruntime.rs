//! ONNX Runtime, through the C interface of the shared library in the Python wheel: no interpreter in the way.

use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

use ort::environment::Environment;
use ort::session::{IoBinding, Session as OrtSession};
use ort::value::{PrimitiveTensorElementType, Tensor};
use ort::{AsPointer, sys};

use super::Python;
use crate::measure::{Local, Runner, Session};
use crate::model::{DType, Model, Result, Values, nchw_shape, to_nchw, to_nhwc};

/// As users get it.
pub fn open(python: &Python, model: &Model) -> Result<Option<Box<dyn Runner>>> {
    open_with(python, model, false)
}

/// With its slower int8 arithmetic, where it has two: without VNNI, the one that is used by default saturates sums of two
/// products in 16 bits.
pub fn open_exact(python: &Python, model: &Model) -> Result<Option<Box<dyn Runner>>> {
    if model.dtype == DType::Int8 && saturates() {
        open_with(python, model, true)
    } else {
        Ok(None)
    }
}

fn saturates() -> bool {
    #[cfg(target_arch = "x86_64")]
    return !std::arch::is_x86_feature_detected!("avx512vnni")
        && !std::arch::is_x86_feature_detected!("avxvnni");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

fn open_with(python: &Python, model: &Model, exact: bool) -> Result<Option<Box<dyn Runner>>> {
    let Some(path) = model.file("onnx") else { return Ok(None) };
    let environment = environment(&python.onnxruntime)?;
    Ok(Some(match model.dtype {
        DType::F32 => Box::new(Local(Bound::<f32>::new(environment, &path, model, exact)?)),
        DType::Int8 => Box::new(Local(Bound::<i8>::new(environment, &path, model, exact)?)),
    }))
}

/// Loads the library once; later calls must name the same one.
pub fn environment(library: &Path) -> Result<&'static Environment> {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    if let Some(environment) = ENVIRONMENT.get() {
        return Ok(environment);
    }
    let environment = ort::init_from(library)?.build()?;
    Ok(ENVIRONMENT.get_or_init(|| environment))
}

pub trait Element: PrimitiveTensorElementType + Copy + Default + std::fmt::Debug + 'static {
    fn of(values: &Values) -> Result<&[Self]>;
    fn values(elements: Vec<Self>) -> Values;
}

impl Element for f32 {
    fn of(values: &Values) -> Result<&[f32]> {
        values.f32()
    }

    fn values(elements: Vec<f32>) -> Values {
        Values::F32(elements)
    }
}

impl Element for i8 {
    fn of(values: &Values) -> Result<&[i8]> {
        values.int8()
    }

    fn values(elements: Vec<i8>) -> Values {
        Values::Int8(elements)
    }
}

/// A session with input and output bound to tensors that live as long as it: a run allocates and copies nothing.
pub struct Bound<T: Element> {
    session: OrtSession,
    binding: IoBinding,
    input: Tensor<T>,
    output: Tensor<T>,
    input_shape: Vec<usize>,
    output_shape: Vec<usize>,
}

impl<T: Element> Bound<T> {
    pub fn new(environment: &Environment, path: &Path, model: &Model, exact: bool) -> Result<Self> {
        let session = OrtSession::builder(environment)?
            .with_intra_threads(1)?
            .with_inter_threads(1)?
            .with_config_entry("session.x64quantprecision", if exact { "1" } else { "0" })?
            .commit_from_file(path)?;
        let input = Tensor::from_array((
            nchw_shape(&model.input_shape),
            vec![T::default(); model.input_len],
        ))?;
        let output = Tensor::from_array((
            nchw_shape(&model.output_shape),
            vec![T::default(); model.output_len],
        ))?;
        let (input_name, output_name) =
            (session.inputs()[0].name().to_owned(), session.outputs()[0].name().to_owned());
        let mut binding = session.create_binding()?;
        binding.bind_input(input_name, &input)?;
        // Bound through the C interface, so that `output` stays ours to read after each run.
        let name = std::ffi::CString::new(output_name)?;
        // SAFETY: the binding and the tensor are alive; the binding keeps its own reference to the value.
        check(unsafe {
            (ort::api().BindOutput)(binding.ptr().cast_mut(), name.as_ptr(), output.ptr())
        })?;
        Ok(Self {
            session,
            binding,
            input,
            output,
            input_shape: model.input_shape.clone(),
            output_shape: model.output_shape.clone(),
        })
    }
}

fn check(status: sys::OrtStatusPtr) -> Result<()> {
    // SAFETY: the status comes from the call just made and is given up here.
    unsafe { ort::Error::result_from_status(status) }.map_err(Into::into)
}

impl<T: Element> Session for Bound<T> {
    fn set_input(&mut self, input: &Values) -> Result<()> {
        let arranged = to_nchw(T::of(input)?, &self.input_shape);
        self.input.extract_tensor_mut().1.copy_from_slice(&arranged);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        // The C call itself: `run_binding` would build a map of outputs each time, which is not the engine's cost.
        // SAFETY: session and binding are alive, null options mean the defaults, and `&mut self` makes the call ours.
        check(unsafe {
            (ort::api().RunWithBinding)(
                self.session.ptr().cast_mut(),
                ptr::null(),
                self.binding.ptr(),
            )
        })
    }

    fn output(&self) -> Result<Values> {
        Ok(T::values(to_nhwc(self.output.extract_tensor().1, &self.output_shape)))
    }
}
