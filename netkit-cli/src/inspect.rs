//! `netkit inspect`: what a model file holds.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use netkit::runtime::scratch_bytes;
use netkit_core::format::{Layer, NkFile};
use netkit_core::plan::CACHE_LINE;
use netkit_core::program::Program;
use netkit_kernels::FilterForm;
use serde_json::{Value, json};

use crate::hex::{self, Section};
use crate::model_file::ModelFile;
use crate::session::Session;
use crate::size::{bytes, grouped};
use crate::table;

/// Shows what a model file holds.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The model file
    model: PathBuf,
    /// Also load the model, run it on zeros (if that is a matter of seconds) and show memory, tensors and
    /// quantization
    #[arg(long)]
    full: bool,
    /// Dump a section field by field
    #[arg(long, value_name = "SECTION", conflicts_with_all = ["json", "full"])]
    hex: Option<Section>,
    /// Print JSON, errors too (on standard error)
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    session: Session,
}

/// Memory of a loaded model, as the arena confirms it.
struct Memory {
    after_load: usize,
    after_forward: usize,
    activations: usize,
    workspace: usize,
    /// What the loader keeps beside them: tables of layers and steps, factors that it computes of weights, the quantized input
    /// and output of an int8 model.
    tables: usize,
    /// `ARENA_BYTES` of the model compiled in for a machine like this.
    compiled_in: usize,
    remaining: usize,
    capacity: usize,
    payload: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let file = ModelFile::read(&arguments.model)?;
    file.with_program(|program| {
        if let Some(section) = arguments.hex {
            if !hex::print(program.file(), section) {
                bail!("{} has no such section", file.path.display());
            }
            return Ok(());
        }
        let memory = if arguments.full { Some(measure(arguments, &file)?) } else { None };
        if arguments.json {
            say!("{}", as_json(&file, program, memory.as_ref()));
            return Ok(());
        }
        summary(&file, program);
        if let Some(memory) = memory {
            print_memory(&memory);
            catalog(program.file());
            quantization(program.file());
        }
        Ok(())
    })
}

/// Largest model that is run, which only confirms that running takes no memory: some seconds.
const MOST_WORK: u64 = 20_000_000_000;

/// Loads the model and runs it on zeros.
fn measure(arguments: &Arguments, file: &ModelFile) -> Result<Memory> {
    let arena = arguments.session.arena()?;
    let mut network = arguments.session.load(file, &arena)?;
    let after_load = arena.used();
    if network.program().work() <= MOST_WORK {
        let input = vec![0.0; network.input_len()];
        let mut output = vec![0.0; network.output_len()];
        network.forward(&input, &mut output)?;
    }
    let header = network.program().file().header();
    let (activations, workspace) = (network.activation_bytes(), network.workspace_bytes());
    Ok(Memory {
        after_load,
        after_forward: arena.used(),
        activations,
        workspace,
        tables: after_load.saturating_sub(activations + workspace),
        compiled_in: compiled_in(network.program()),
        remaining: arena.remaining(),
        capacity: arena.capacity(),
        payload: header.weights_bytes as usize + header.biases_bytes as usize,
    })
}

/// `ARENA_BYTES` of the code that `netkit::model!` makes of a program, without options: activations, and behind them the
/// most that kernels of this build take as scratch beside filters in the form that they are given in.
fn compiled_in(program: &Program<'_, '_>) -> usize {
    let activations = program.plan().arena_bytes().next_multiple_of(CACHE_LINE);
    let float = netkit_kernels::layout! { panels { FilterForm::Packed } file { FilterForm::File } };
    let int8 =
        netkit_kernels::layout_s8! { panels { FilterForm::Packed } file { FilterForm::File } };
    let form = if program.is_quantized() { int8 } else { float };
    let scratch = program.steps().map(|step| scratch_bytes(&step, form)).max().unwrap_or(0);
    (activations + scratch).next_multiple_of(CACHE_LINE)
}

fn dims(dims: &[u32]) -> String {
    dims.iter().map(u32::to_string).collect::<Vec<_>>().join("×")
}

fn parameters(program: &Program<'_, '_>) -> u64 {
    program.layers().iter().map(|layer| layer.parameters).sum()
}

fn summary(file: &ModelFile, program: &Program<'_, '_>) {
    let header = program.file().header();
    let arithmetic = if program.is_quantized() { "int8" } else { "float32" };
    let mut head = table::boxed(&[]);
    head.add_row(["model", &file.name()]);
    head.add_row(["type", &format!("{}, {arithmetic}", header.kind)]);
    head.add_row(["version", &header.version.to_string()]);
    head.add_row(["file", &bytes(file.bytes().len())]);
    head.add_row([
        "input",
        &format!("{} ({} elements)", dims(header.input_dims()), program.input().shape.elements()),
    ]);
    head.add_row([
        "output",
        &format!("{} ({} elements)", program.output_shape(), program.output().shape.elements()),
    ]);
    head.add_row(["weights", &grouped(parameters(program))]);
    head.add_row(["MACs", &grouped(program.macs())]);
    head.add_row(["test cases", &program.file().cases().len().to_string()]);
    say!("{head}");

    let mut rows = table::boxed(&["#", "layer", "settings", "output", "weights", "MACs"]);
    for (record, layer) in program.file().layers().zip(program.layers()) {
        rows.add_row([
            record.index.to_string(),
            record.kind().to_string(),
            settings(&record.layer, program, record.first_pair),
            layer.output.to_string(),
            grouped(layer.parameters),
            grouped(layer.macs),
        ]);
    }
    table::right(&mut rows, &[0, 4, 5]);
    say!("{rows}");
}

/// A record's fields in words.
fn settings(layer: &Layer, program: &Program<'_, '_>, first_pair: u32) -> String {
    let window = |g: netkit_core::format::Geometry| {
        let mut text = format!("{}×{} stride {}", g.kernel_h, g.kernel_w, g.stride);
        if (g.top, g.left, g.bottom, g.right) != (0, 0, 0, 0) {
            text += &format!(" padding {},{},{},{}", g.top, g.left, g.bottom, g.right);
        }
        text
    };
    let activated =
        |text: String, activation: netkit_core::format::Activation, alpha: f32| match activation {
            netkit_core::format::Activation::None => text,
            netkit_core::format::Activation::LeakyRelu => format!("{text} leaky_relu {alpha}"),
            other => format!("{text} {other}"),
        };
    match layer {
        Layer::Dense(l) => activated(format!("{} units", l.units), l.activation, l.alpha),
        Layer::Conv2d(l) => {
            let text = format!("{} filters {}", l.filters, window(l.geometry()));
            activated(text, l.activation, l.alpha)
        }
        Layer::DepthwiseConv2d(l) => {
            let pair = program.file().pair(first_pair as usize);
            let elements = pair.map_or(0, |pair| pair.weight.shape.elements() as u32);
            let text = l.geometry(elements).map_or_else(String::new, window);
            activated(text, l.activation, l.alpha)
        }
        Layer::MaxPool2d(l) | Layer::AvgPool2d(l) => window(l.geometry()),
        Layer::Flatten | Layer::BatchNorm2d(_) => String::new(),
        Layer::ConvNextV2Block(l) => format!("eps {:e}", l.eps),
        Layer::LayerNorm2d(l) => format!("eps {:e}", l.eps),
        Layer::MobileNetV4Uib(l) => format!(
            "{}→{} depthwise {}/{} stride {} expand {}",
            l.in_channels,
            l.out_channels,
            l.start_dw_kernel,
            l.middle_dw_kernel,
            l.stride,
            l.expand_ratio
        ),
        Layer::ResNetBasicBlock(l) => {
            format!("{}→{} stride {}", l.in_channels, l.out_channels, l.stride)
        }
        Layer::YoloxDecoupledHead(l) => {
            format!("hidden {} classes {} convs {}", l.hidden_dim, l.num_classes, l.num_convs)
        }
        Layer::FeatureTap(l) => format!("tap {}", l.tap_id),
        Layer::YoloxPafpnMultiscale(l) => {
            format!("hidden {} classes {} convs {}", l.hidden_dim, l.num_classes, l.num_convs)
        }
    }
}

fn print_memory(memory: &Memory) {
    let mut rows = table::boxed(&["memory of the runtime loader, this machine", ""]);
    rows.add_row(["activations", &bytes(memory.activations)]);
    rows.add_row(["kernel workspace", &bytes(memory.workspace)]);
    rows.add_row(["loader's tables, factors and edges", &bytes(memory.tables)]);
    rows.add_row(["arena after load", &bytes(memory.after_load)]);
    rows.add_row(["arena after forward", &bytes(memory.after_forward)]);
    rows.add_row(["arena remaining", &bytes(memory.remaining)]);
    rows.add_row(["arena capacity", &bytes(memory.capacity)]);
    rows.add_row(["flash payload", &bytes(memory.payload)]);
    say!("{rows}");
    say!(
        "compiled in with netkit::model!, this machine: ARENA_BYTES {}, for weights are packed beforehand",
        bytes(memory.compiled_in)
    );
}

fn catalog(file: &NkFile<'_>) {
    let mut rows = table::boxed(&["pair", "weights", "type", "biases", "type", "bytes"]);
    for pair in file.pairs() {
        let total = pair.weight.as_bytes().len() + pair.bias.as_bytes().len();
        rows.add_row([
            pair.index.to_string(),
            pair.weight.shape.to_string(),
            pair.weight.dtype.name().to_string(),
            pair.bias.shape.to_string(),
            pair.bias.dtype.name().to_string(),
            grouped(total as u64),
        ]);
    }
    table::right(&mut rows, &[0, 5]);
    say!("{rows}");
}

fn quantization(file: &NkFile<'_>) {
    if file.quant_record(0).is_none() {
        return;
    }
    let mut rows =
        table::boxed(&["pair", "input scale", "zero", "weight scale", "output scale", "zero"]);
    for record in file.quant_records() {
        let weights = match record.channel_scales.len() {
            0 => format!("{:e}", record.weight.scale),
            channels => format!("{channels} channels, at most {:e}", record.weight.scale),
        };
        rows.add_row([
            record.index.to_string(),
            format!("{:e}", record.input.scale),
            record.input.zero_point.to_string(),
            weights,
            format!("{:e}", record.output.scale),
            record.output.zero_point.to_string(),
        ]);
    }
    table::right(&mut rows, &[0, 2, 5]);
    say!("{rows}");
}

fn as_json(file: &ModelFile, program: &Program<'_, '_>, memory: Option<&Memory>) -> Value {
    let header = program.file().header();
    let layers: Vec<Value> = program
        .file()
        .layers()
        .zip(program.layers())
        .map(|(record, layer)| {
            json!({
                "index": record.index,
                "kind": record.kind().name(),
                "settings": settings(&record.layer, program, record.first_pair),
                "output_shape": layer.output.dims(),
                "parameters": layer.parameters,
                "macs": layer.macs,
            })
        })
        .collect();
    let tensors: Vec<Value> = program
        .file()
        .pairs()
        .map(|pair| {
            json!({
                "weight": { "shape": pair.weight.shape.dims(), "dtype": pair.weight.dtype.name() },
                "bias": { "shape": pair.bias.shape.dims(), "dtype": pair.bias.dtype.name() },
            })
        })
        .collect();
    let mut value = json!({
        "name": file.name(),
        "kind": header.kind.to_string(),
        "version": header.version,
        "quantized": program.is_quantized(),
        "file_bytes": file.bytes().len(),
        "input_shape": header.input_dims(),
        "output_shape": program.output_shape().dims(),
        "parameters": parameters(program),
        "macs": program.macs(),
        "test_cases": program.file().cases().len(),
        "layers": layers,
        "tensors": tensors,
    });
    if let Some(memory) = memory {
        value["memory"] = json!({
            "arena_after_load": memory.after_load,
            "arena_after_forward": memory.after_forward,
            "activations": memory.activations,
            "workspace": memory.workspace,
            "tables": memory.tables,
            "compiled_in_arena_bytes": memory.compiled_in,
            "arena_remaining": memory.remaining,
            "arena_capacity": memory.capacity,
            "flash_payload": memory.payload,
        });
    }
    value
}
