//! microflow: TFLite models of a few operators, int8, compiled in by its macro.

// The macro's expansion names its own crate without a leading `::` and does not follow the lints here.
#![allow(clippy::all)]

use microflow::buffer::{Buffer2D, Buffer4D};
use microflow::model;

use netkit_peers::engines::Python;
use netkit_peers::graph::{Graph, Quant};
use netkit_peers::measure::{Local, Runner, Session};
use netkit_peers::model::{Model, Result, Values};

/// The macro does not track the file it reads; naming it here makes an edited model rebuild.
const _: [&[u8]; 3] = [
    include_bytes!("../../made/models/mnist_mlp_int8.tflite"),
    include_bytes!("../../made/models/sine_mlp_int8.tflite"),
    include_bytes!("../../made/models/micro_speech_int8.tflite"),
];

#[model("made/models/mnist_mlp_int8.tflite")]
struct MnistMlp;

#[model("made/models/sine_mlp_int8.tflite")]
struct SineMlp;

#[model("made/models/micro_speech_int8.tflite")]
struct MicroSpeech;

pub fn open(_: &Python, model: &Model) -> Result<Option<Box<dyn Runner>>> {
    let Some(path) = model.file("graph") else { return Ok(None) };
    match model.name.as_str() {
        "mnist_mlp_int8" => boxed(&path, vector::<784>, MnistMlp::predict_quantized),
        "sine_mlp_int8" => boxed(&path, vector::<1>, SineMlp::predict_quantized),
        "micro_speech_int8" => boxed(&path, map::<49, 40>, MicroSpeech::predict_quantized),
        _ => Ok(None),
    }
}

fn vector<const N: usize>(values: &[i8]) -> Buffer2D<i8, 1, N> {
    Buffer2D::from_fn(|_, column| values[column])
}

fn map<const H: usize, const W: usize>(values: &[i8]) -> Buffer4D<i8, 1, H, W, 1> {
    [Buffer2D::from_fn(|row, column| [values[row * W + column]])]
}

fn boxed<I, const N: usize>(
    graph: &std::path::Path,
    arrange: fn(&[i8]) -> I,
    predict: fn(I) -> Buffer2D<f32, 1, N>,
) -> Result<Option<Box<dyn Runner>>>
where
    I: Copy + 'static,
{
    let graph = Graph::read(graph)?;
    let quant = graph.quants[graph.output];
    Ok(Some(Box::new(Local(MicroFlow { arrange, predict, input: None, output: None, quant }))))
}

struct MicroFlow<I, const N: usize> {
    arrange: fn(&[i8]) -> I,
    predict: fn(I) -> Buffer2D<f32, 1, N>,
    input: Option<I>,
    output: Option<Buffer2D<f32, 1, N>>,
    quant: Quant,
}

impl<I: Copy, const N: usize> Session for MicroFlow<I, N> {
    fn set_input(&mut self, input: &Values) -> Result<()> {
        self.input = Some((self.arrange)(input.int8()?));
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        self.output = Some((self.predict)(std::hint::black_box(self.input.ok_or("no input yet")?)));
        Ok(())
    }

    /// microflow gives reals only; back to steps for the comparison.
    fn output(&self) -> Result<Values> {
        let output = self.output.ok_or("no run yet")?;
        let steps = |&real: &f32| {
            (f64::from(real) / self.quant.scale).round() as i32 + self.quant.zero_point
        };
        Ok(Values::Int8(output.iter().map(|real| steps(real).clamp(-128, 127) as i8).collect()))
    }
}
