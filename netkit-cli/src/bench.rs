//! `netkit bench`: how fast a model runs here, and how near to what the machine can do.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use netkit::runtime::Network;
use netkit_core::op::{Activation, Conv2d, Padding, Window};
use netkit_core::quant::{Multiplier, OutputStage};
use netkit_kernels::{Filter, FilterForm, FilterS8, Isa, Kernels, workspace};
use serde_json::json;

use crate::model_file::ModelFile;
use crate::run::Profile;
use crate::session::Session;
use crate::size::grouped;
use crate::{progress, table};

/// Measures a model: latency, throughput, time of each step.
///
/// The runtime loader reads weights in the file's own order; `netkit::model!` has them packed and is faster.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The model file
    model: PathBuf,
    /// How long to measure, in seconds
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS", value_parser = parse_seconds)]
    time: f64,
    /// Print JSON, errors too (on standard error)
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    session: Session,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 3600.0 => Ok(seconds),
        _ => Err("expected more than 0 and at most 3600 seconds".into()),
    }
}

/// Runs that are always made, however long they take.
const MIN_RUNS: usize = 5;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let file = ModelFile::read(&arguments.model)?;
    let (macs, quantized) =
        file.with_program(|program| Ok((program.macs(), program.is_quantized())))?;
    let arena = arguments.session.arena()?;
    let mut network = arguments.session.load(&file, &arena)?;
    let isa = network.isa();
    let mut times = latencies(&mut network, arguments.time)?;
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    let (fastest, median, slow) = (at(0.0), at(0.5), at(0.99));
    let profile = profile(&mut network, times.len().clamp(MIN_RUNS, 200))?;
    let peak = peak_macs_per_second(isa, quantized);
    let rate = macs as f64 / (fastest * 1e-6);
    let steps: Vec<(String, f64, u64)> = network
        .program()
        .steps()
        .zip(&profile.fastest)
        .map(|(step, time)| {
            (table::step_name(&step), time.as_secs_f64() * 1e6, step.node.op.macs())
        })
        .collect();
    if arguments.json {
        let steps: Vec<_> = steps
            .iter()
            .map(|(name, time, macs)| json!({ "step": name, "microseconds": time, "macs": macs }))
            .collect();
        say!(
            "{}",
            json!({
                "model": file.name(),
                "isa": isa.name(),
                "runs": times.len(),
                "microseconds": { "min": fastest, "median": median, "p99": slow },
                "macs": macs,
                "macs_per_second": rate,
                "peak_macs_per_second": peak,
                "steps": steps,
            })
        );
        return Ok(());
    }
    say!("{} on {}, {} runs", file.name(), isa.name(), times.len());
    say!("latency: min {fastest:.2} µs, median {median:.2} µs, p99 {slow:.2} µs");
    say!(
        "throughput: {:.2} GMAC/s, {:.0} % of the {:.2} GMAC/s that a matrix product in the first-level cache reaches here",
        rate / 1e9,
        100.0 * rate / peak,
        peak / 1e9
    );
    let total: f64 = steps.iter().map(|(_, time, _)| time).sum();
    let mut rows = table::plain(&["step", "µs", "% of time", "MACs", "GMAC/s", "% of peak"]);
    for (name, time, macs) in &steps {
        let rate = *macs as f64 / (time * 1e-6);
        rows.add_row([
            name.clone(),
            format!("{time:.2}"),
            format!("{:.1}", 100.0 * time / total),
            grouped(*macs),
            if *macs > 0 { format!("{:.2}", rate / 1e9) } else { String::new() },
            if *macs > 0 { format!("{:.0}", 100.0 * rate / peak) } else { String::new() },
        ]);
    }
    table::right(&mut rows, &[1, 2, 3, 4, 5]);
    say!("\n{rows}");
    Ok(())
}

/// Input values that are neither all equal nor denormal.
fn input(len: usize) -> Vec<f32> {
    (0..len).map(|index| (index % 17) as f32 / 16.0).collect()
}

fn latencies(network: &mut Network<'_>, seconds: f64) -> Result<Vec<Duration>> {
    let budget = Duration::from_secs_f64(seconds);
    let mut times = Vec::with_capacity(1 << 16);
    let bar = progress::bar(100, "measuring");
    let started = Instant::now();
    if let Some(quant) = network.input_quant() {
        let values: Vec<i8> =
            input(network.input_len()).into_iter().map(|real| quant.quantize(real)).collect();
        let mut output = vec![0; network.output_len()];
        repeat(&bar, started, budget, &mut times, || network.forward_i8(&values, &mut output))?;
    } else {
        let values = input(network.input_len());
        let mut output = vec![0.0; network.output_len()];
        repeat(&bar, started, budget, &mut times, || network.forward(&values, &mut output))?;
    }
    bar.finish_and_clear();
    Ok(times)
}

fn repeat<E>(
    bar: &indicatif::ProgressBar,
    started: Instant,
    budget: Duration,
    times: &mut Vec<Duration>,
    mut work: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    work()?;
    let mut shown = Duration::ZERO;
    while times.len() < MIN_RUNS || (started.elapsed() < budget && times.len() < 1_000_000) {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed());
        let elapsed = started.elapsed();
        if elapsed.saturating_sub(shown) > Duration::from_millis(100) {
            shown = elapsed;
            bar.set_position((100.0 * elapsed.as_secs_f64() / budget.as_secs_f64()) as u64);
        }
    }
    Ok(())
}

fn profile(network: &mut Network<'_>, runs: usize) -> Result<Profile> {
    let mut profile = Profile::default();
    let values = input(network.input_len());
    let mut output = vec![0.0; network.output_len()];
    for _ in 0..runs {
        network.forward_observed(&values, &mut output, &mut profile)?;
    }
    Ok(profile)
}

/// Multiply-accumulates a second of a 1×1 convolution whose operands stay in the first-level cache, its filter packed:
/// the fastest of some tens of milliseconds.
fn peak_macs_per_second(isa: Isa, quantized: bool) -> f64 {
    const PIXELS: usize = 56;
    const IN: usize = 128;
    const OUT: usize = 32;
    let kernels = Kernels::for_isa(isa).unwrap_or_else(Kernels::native);
    let Some(window) = Window::new((1, PIXELS), (1, 1), 1, Padding::default()) else { return 1.0 };
    let conv = Conv2d { window, in_channels: IN, out_channels: OUT };
    let macs = (PIXELS * IN * OUT) as f64;
    if quantized {
        let weights = vec![1i8; IN * OUT];
        let mut packed = vec![0; netkit_core::pack::packed_conv2d_s8_len(&conv)];
        let _ = netkit_core::pack::pack_conv2d_s8(&conv, &weights, &mut packed);
        let multipliers = [Multiplier { multiplier: 1 << 30, shift: -8 }; OUT];
        let stage = OutputStage { zero_point: 0, low: -128, high: 127 };
        let mut scratch = Scratch::of(workspace::conv2d_s8(&conv, FilterForm::Packed));
        let (input, mut output) = ([1; PIXELS * IN], [0; PIXELS * OUT]);
        macs / fastest(|| {
            kernels.conv2d_s8(
                &conv,
                &input,
                0,
                FilterS8::Packed(&packed),
                &[0; OUT],
                &multipliers,
                stage,
                0..1,
                &mut output,
                scratch.bytes(),
            );
        })
    } else {
        let weights = vec![0.5f32; IN * OUT];
        let mut packed = vec![0.0; netkit_core::pack::packed_conv2d_f32_len(&conv)];
        let _ = netkit_core::pack::pack_conv2d_f32(&conv, &weights, None, &mut packed);
        let mut scratch = Scratch::of(workspace::conv2d_f32(&conv, FilterForm::Packed));
        let (input, mut output) = ([1.0; PIXELS * IN], [0.0; PIXELS * OUT]);
        macs / fastest(|| {
            kernels.conv2d_f32(
                &conv,
                &input,
                Filter::Packed(&packed),
                &[0.0; OUT],
                None,
                Activation::None,
                0..1,
                &mut output,
                scratch.bytes(),
            );
        })
    }
}

/// The shortest time of `work` in seconds.
fn fastest(mut work: impl FnMut()) -> f64 {
    const INNER: u32 = 16;
    let started = Instant::now();
    let mut best = f64::MAX;
    while started.elapsed() < Duration::from_millis(60) {
        let start = Instant::now();
        for _ in 0..INNER {
            work();
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(INNER));
    }
    best
}

/// Scratch on a cache line.
struct Scratch {
    memory: Vec<u8>,
    len: usize,
}

impl Scratch {
    fn of(len: usize) -> Self {
        Self { memory: vec![0; len + workspace::ALIGNMENT], len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = self.memory.as_ptr().align_offset(workspace::ALIGNMENT);
        &mut self.memory[start..start + self.len]
    }
}
