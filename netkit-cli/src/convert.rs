//! `netkit convert`: a trained model of another tool becomes a `.nk` file.

mod cases;
mod verify;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use netkit_core::format::{Activation, Layer, ModelDescription};
use netkit_import::{Conversion, Obstacles, Options, onnx};
use std::fs;
use std::path::{Path, PathBuf};

use crate::limited;
use crate::model_file::ModelFile;
use crate::terminal::{harmless, harmless_lines};

/// Converts a model, checks the result against the source and writes it.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The model to convert: an ONNX file
    model: PathBuf,
    /// Where to write [default: beside the model, with the extension .nk]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only tell whether the model converts, and every obstacle if not; write nothing
    #[arg(long)]
    check: bool,
    /// The input's shape in the model's own order, for models that leave sizes open
    #[arg(long, value_name = "N,C,H,W", value_delimiter = ',')]
    input_shape: Option<Vec<usize>>,
    /// Embed test cases made from these inputs: an .npy array, one input a row, in the order the source
    /// model takes them
    #[arg(long, value_name = "INPUTS.npy")]
    cases: Option<PathBuf>,
    /// The classes of the inputs of --cases; only inputs that the model classifies so are embedded
    #[arg(long, value_name = "LABELS.npy", requires = "cases")]
    labels: Option<PathBuf>,
    /// How many cases to embed
    #[arg(long, value_name = "COUNT", default_value_t = 10, requires = "cases",
          value_parser = clap::value_parser!(u32).range(1..=16))]
    case_count: u32,
    /// How far an output may be from that of an embedded case
    #[arg(long, value_name = "DISTANCE", default_value_t = 1e-4, requires = "cases",
          value_parser = parse_distance, allow_hyphen_values = true)]
    tolerance: f32,
    /// Do not compare what the result computes with what the source computes
    #[arg(long)]
    no_verify: bool,
}

fn parse_distance(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(distance) if distance >= 0.0 && distance.is_finite() => Ok(distance),
        _ => Err("expected a finite number that is not negative".into()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = &arguments.model;
    if arguments.output.as_deref() == Some(Path::new("-")) {
        bail!("a model is not written to standard output; give a file with -o");
    }
    let source = parse(path)?;
    let mut options = Options::default();
    options.input_shape.clone_from(&arguments.input_shape);
    let mut conversion = source.convert(&options).map_err(|obstacles| report(path, &obstacles))?;
    for note in &conversion.notes {
        say!("note: {}", harmless(note));
    }
    print_table(&conversion);
    if let Some(inputs) = &arguments.cases {
        let embedded = cases::embed(
            &mut conversion,
            &source,
            inputs,
            arguments.labels.as_deref(),
            arguments.case_count as usize,
        )?;
        conversion.model.tolerance = arguments.tolerance;
        say!("{embedded}");
    }
    let bytes = conversion.model.to_bytes().context("the result breaks a rule of the format")?;
    let output = arguments.output.clone().unwrap_or_else(|| path.with_extension("nk"));
    if !arguments.no_verify {
        let file = ModelFile::from_bytes(output.clone(), &bytes);
        say!("{}", verify::verify(&source, &conversion, &file)?);
    }
    if arguments.check {
        say!("{} converts", harmless(path.display()));
        return Ok(());
    }
    if output
        .canonicalize()
        .is_ok_and(|output| path.canonicalize().is_ok_and(|path| path == output))
    {
        bail!("{} would be overwritten; give another place with -o", path.display());
    }
    fs::write(&output, &bytes).with_context(|| format!("cannot write {}", output.display()))?;
    say!("wrote {} ({} bytes)", harmless(output.display()), bytes.len());
    Ok(())
}

fn parse(path: &Path) -> Result<onnx::Model> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if !extension.eq_ignore_ascii_case("onnx") {
        if extension.eq_ignore_ascii_case("tflite") {
            bail!(
                "{}: .tflite files cannot be converted yet; export the model to ONNX",
                path.display()
            );
        }
        if extension.eq_ignore_ascii_case("nk") {
            return Err(onnx::ParseError::AlreadyNk).with_context(|| path.display().to_string());
        }
        bail!("{}: only .onnx files can be converted", path.display());
    }
    let file = limited::read(path, onnx::MAX_FILE_BYTES as u64, "an ONNX file")?;
    onnx::Model::parse(file).with_context(|| path.display().to_string())
}

/// Every obstacle to standard error, and their number as the error.
fn report(path: &Path, obstacles: &Obstacles) -> anyhow::Error {
    let list = obstacles.as_slice();
    for obstacle in list {
        complain!("{}\n", harmless_lines(obstacle));
    }
    let plural = if list.len() == 1 { "obstacle" } else { "obstacles" };
    anyhow!("{}: cannot be converted, {} {plural}", path.display(), list.len())
}

/// What each layer is and what it was made of.
fn print_table(conversion: &Conversion) {
    let (input, output) = (&conversion.input, &conversion.output);
    let order = |reordered| if reordered { ", channels moved last" } else { "" };
    say!(
        "{}: input `{}` {} as {}{}",
        conversion.model.kind,
        harmless(input.name()),
        text(input.dims()),
        conversion.model.input,
        order(input.is_reordered()),
    );
    let width = conversion.model.layers.iter().map(|layer| describe(layer).len()).max();
    let lines = conversion.model.layers.iter().zip(&conversion.origins);
    for (index, (layer, origin)) in lines.enumerate() {
        let (layer, origin) = (describe(layer), harmless(origin));
        say!("{index:4}  {layer:width$}  {origin}", width = width.unwrap_or(0));
    }
    say!(
        "output `{}` {}{}; {} weights",
        harmless(output.name()),
        text(output.dims()),
        order(output.is_reordered()),
        weights(&conversion.model),
    );
}

fn text(dims: &[usize]) -> String {
    dims.iter().map(ToString::to_string).collect::<Vec<_>>().join("×")
}

fn weights(model: &ModelDescription) -> usize {
    model.pairs.iter().map(|pair| pair.weight.data.len() + pair.bias.data.len()).sum()
}

fn describe(layer: &Layer) -> String {
    let name = layer.kind().name();
    let (details, activation) = match layer {
        Layer::Dense(dense) => (dense.units.to_string(), dense.activation),
        Layer::Conv2d(conv) => {
            (format!("{0}×{0}×{1}", conv.kernel_size, conv.filters), conv.activation)
        }
        Layer::DepthwiseConv2d(conv) => (conv.channels.to_string(), conv.activation),
        Layer::MaxPool2d(pool) | Layer::AvgPool2d(pool) => {
            let window = pool.geometry();
            (format!("{}×{}", window.kernel_h, window.kernel_w), Activation::None)
        }
        _ => (String::new(), Activation::None),
    };
    let activation = if activation == Activation::None { "" } else { activation.name() };
    [name, &details, activation].map(str::trim).join(" ").trim_end().to_owned()
}
