//! `netkit run`: one inference.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use netkit::runtime::{Elements, Observer};
use netkit_core::program::Step;
use serde_json::{Value, json};

use crate::model_file::ModelFile;
use crate::session::Session;
use crate::values::Input;
use crate::{size, table};

/// Runs a model on one input and prints what it gives.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The model file
    model: PathBuf,
    #[command(flatten)]
    input: Input,
    /// Take and give the int8 values of a quantized model as they are: -128 to 127, not pixels or other real
    /// numbers, which `netkit inspect --full` tells the scale and zero point of
    #[arg(long)]
    raw: bool,
    /// Print how long each step takes (the fastest of 10 runs)
    #[arg(long)]
    profile: bool,
    /// Print JSON, errors too (on standard error)
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    session: Session,
}

/// Times every step.
#[derive(Default)]
pub(crate) struct Profile {
    started: Option<Instant>,
    step: usize,
    /// The fastest time of each step so far.
    pub(crate) fastest: Vec<Duration>,
}

impl Observer for Profile {
    fn before(&mut self, step: &Step<'_, '_>) {
        self.step = step.index;
        self.started = Some(Instant::now());
    }

    fn after(&mut self, _: &Step<'_, '_>, _: Elements<'_>) {
        let Some(elapsed) = self.started.take().map(|started| started.elapsed()) else { return };
        if self.fastest.len() <= self.step {
            self.fastest.resize(self.step + 1, Duration::MAX);
        }
        let slot = &mut self.fastest[self.step];
        *slot = elapsed.min(*slot);
    }
}

const PROFILE_RUNS: usize = 10;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let file = ModelFile::read(&arguments.model)?;
    file.with_program(|_| Ok(()))?;
    let arena = arguments.session.arena()?;
    let mut network = arguments.session.load(&file, &arena)?;
    let mut profile = Profile::default();
    let runs = if arguments.profile { PROFILE_RUNS } else { 1 };
    let (input, output): (Vec<f32>, Vec<f32>);
    let raw = if arguments.raw {
        let Some(quant) = network.input_quant() else {
            bail!("--raw is for int8 models; {} computes in float32", file.path.display());
        };
        let values = arguments.input.raw(network.input_len(), quant.zero_point as i8)?;
        let mut out = vec![0; network.output_len()];
        for _ in 0..runs {
            network.forward_i8_observed(&values, &mut out, &mut profile)?;
        }
        input = values.into_iter().map(f32::from).collect();
        output = out.into_iter().map(f32::from).collect();
        true
    } else {
        input = arguments.input.floats(network.input_len())?;
        let mut out = vec![0.0; network.output_len()];
        for _ in 0..runs {
            network.forward_observed(&input, &mut out, &mut profile)?;
        }
        output = out;
        false
    };
    let steps: Vec<(String, f64)> = network
        .program()
        .steps()
        .zip(&profile.fastest)
        .map(|(step, time)| (table::step_name(&step), time.as_secs_f64() * 1e6))
        .collect();
    if arguments.json {
        let profile = match arguments.profile {
            true => format!(",\"profile\":{}", as_json(&steps)),
            false => String::new(),
        };
        // Not as one `Value`, which takes eight times the memory of the numbers in it.
        say!(
            "{{\"input\":[{}],\"isa\":{},\"model\":{},\"output\":[{}]{profile},\"raw\":{raw}}}",
            List(&input, ",", Value::from),
            json!(network.isa().name()),
            json!(file.name()),
            List(&output, ",", Value::from),
        );
        return Ok(());
    }
    let shape = |dims: &[u32]| dims.iter().map(u32::to_string).collect::<Vec<_>>().join("×");
    say!("input  {}: {}", shape(network.input_shape()), brief(&input));
    say!("output {}: {}", network.output_shape(), list(&output));
    if let Some((class, score)) = largest(&output) {
        say!("largest: output {class} = {score}");
    }
    if arguments.profile {
        let total: f64 = steps.iter().map(|(_, time)| time).sum();
        let mut rows = table::plain(&["step", "µs", "%"]);
        for (name, time) in &steps {
            rows.add_row([
                name.clone(),
                format!("{time:.2}"),
                format!("{:.1}", 100.0 * time / total),
            ]);
        }
        rows.add_row(["total".into(), format!("{total:.2}"), String::new()]);
        say!("\n{rows}");
        say!("instruction set: {}, arena {}", network.isa().name(), size::bytes(arena.used()));
    }
    Ok(())
}

fn as_json(steps: &[(String, f64)]) -> Value {
    let step = |(name, time): &(String, f64)| json!({ "step": name, "microseconds": time });
    steps.iter().map(step).collect()
}

/// Values with something between them, written one after the other: a small file may ask for millions.
struct List<'a, T>(&'a [f32], &'static str, fn(f32) -> T);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(values, between, shown) = self;
        for (index, &value) in values.iter().enumerate() {
            let between = if index > 0 { between } else { "" };
            write!(f, "{between}{}", shown(value))?;
        }
        Ok(())
    }
}

fn list(values: &[f32]) -> List<'_, f32> {
    List(values, ", ", |value| value)
}

/// All values, or the first of many.
fn brief(values: &[f32]) -> String {
    const SHOWN: usize = 16;
    if values.len() <= SHOWN {
        return list(values).to_string();
    }
    format!("{}, … ({} values)", list(&values[..SHOWN]), values.len())
}

fn largest(values: &[f32]) -> Option<(usize, f32)> {
    let mut best = None;
    for (index, &value) in values.iter().enumerate() {
        if best.is_none_or(|(_, largest)| value > largest) {
            best = Some((index, value));
        }
    }
    best
}
