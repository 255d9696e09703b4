//! `netkit bench`: how fast a model runs here, and how near to what the machine can do.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use netkit::runtime::Network;
use netkit_core::program::Step;
use netkit_kernels::{Isa, Kernels};
use serde_json::{Value, json};

use crate::model_file::ModelFile;
use crate::run::Profile;
use crate::session::Session;
use crate::size::grouped;
use crate::{progress, table};

/// Measures a model: latency, throughput, and each step against what the machine can do at most.
///
/// The bound of a step is the larger of its multiply-accumulates at the arithmetic peak and one read of its weights from
/// the second-level cache, both measured in the same run. It leaves out activations and all that is not a
/// multiply-accumulate, and an algorithm with fewer of them, such as Winograd's, may go below it.
///
/// The runtime loader reads weights in the file's own order; `netkit::model!` has them packed and is faster.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The model file
    model: PathBuf,
    /// How long to measure, in seconds
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS", value_parser = parse_seconds,
          allow_hyphen_values = true)]
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
    file.with_program(|_| Ok(()))?;
    let arena = arguments.session.arena()?;
    let mut network = arguments.session.load(&file, &arena)?;
    let mut times = latencies(&mut network, arguments.time)?;
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    let profile = profile(&mut network, times.len().clamp(MIN_RUNS, 200))?;
    let peaks = Peaks::measure(network.isa(), network.program().is_quantized());
    let report = Report {
        model: &file.name(),
        isa: network.isa(),
        runs: times.len(),
        fastest: at(0.0),
        median: at(0.5),
        slow: at(0.99),
        peaks,
        rows: Row::of_steps(&network, &profile, &peaks),
    };
    if arguments.json {
        say!("{}", report.json())
    } else {
        report.print()
    }
    Ok(())
}

/// What the machine can do at most, on one instruction set and one thread.
#[derive(Clone, Copy)]
struct Peaks {
    macs_per_second: f64,
    /// From a block that fits the second-level cache only.
    bytes_per_second: f64,
}

impl Peaks {
    fn measure(isa: Isa, quantized: bool) -> Self {
        let kernels = Kernels::for_isa(isa).unwrap_or_else(Kernels::native);
        let macs_per_second = best_rate(|| {
            const ROUNDS: usize = 2048;
            let macs = if quantized {
                kernels.multiply_adds_s8(ROUNDS)
            } else {
                kernels.multiply_adds_f32(ROUNDS)
            };
            macs as f64
        });
        // Larger than any first-level cache, well inside the second-level caches of the last ten years.
        let block = vec![1.0f32; 192 * 1024 / size_of::<f32>()];
        let bytes_per_second = best_rate(|| {
            std::hint::black_box(kernels.read_f32(std::hint::black_box(&block)));
            size_of_val(block.as_slice()) as f64
        });
        Self { macs_per_second, bytes_per_second }
    }
}

/// The highest rate at which `work` makes the units that it returns, a second.
fn best_rate(mut work: impl FnMut() -> f64) -> f64 {
    let started = Instant::now();
    let mut best = 0.0f64;
    while started.elapsed() < Duration::from_millis(50) {
        let start = Instant::now();
        let units = work();
        best = best.max(units / start.elapsed().as_secs_f64());
    }
    best
}

/// One step, or the sum of all.
struct Row {
    name: String,
    microseconds: f64,
    macs: u64,
    weight_bytes: u64,
    /// Microseconds below which it cannot be.
    bound: f64,
    /// Whether reading weights is that bound, not arithmetic.
    reading: bool,
}

impl Row {
    fn of_steps(network: &Network<'_>, profile: &Profile, peaks: &Peaks) -> Vec<Self> {
        let clock = clock_overhead();
        let time = |time: &Duration| time.saturating_sub(clock).as_secs_f64() * 1e6;
        let steps = network.program().steps().zip(&profile.fastest);
        steps.map(|(step, fastest)| Self::new(&step, time(fastest), peaks)).collect()
    }

    fn new(step: &Step<'_, '_>, microseconds: f64, peaks: &Peaks) -> Self {
        let macs = step.node.op.macs();
        let constants = step.node.weights.map(|weights| [weights.filter, weights.bias]);
        let constants = constants.iter().flatten();
        let weight_bytes = constants.map(|constant| constant.len_bytes() as u64).sum();
        let arithmetic = 1e6 * macs as f64 / peaks.macs_per_second;
        let read = 1e6 * weight_bytes as f64 / peaks.bytes_per_second;
        Self {
            name: table::step_name(step),
            microseconds,
            macs,
            weight_bytes,
            bound: arithmetic.max(read),
            reading: read > arithmetic,
        }
    }

    fn gmacs(&self) -> f64 {
        rate(self.macs, self.microseconds) / 1e9
    }

    /// How much of its time the bound explains.
    fn percent_of_bound(&self) -> f64 {
        share(self.bound, self.microseconds)
    }

    fn json(&self) -> Value {
        json!({
            "step": self.name,
            "microseconds": self.microseconds,
            "macs": self.macs,
            "weight_bytes": self.weight_bytes,
            "bound_microseconds": self.bound,
            "bound_by": if self.reading { "read" } else { "arithmetic" },
            "percent_of_bound": self.percent_of_bound(),
        })
    }

    fn cells(&self, total: f64) -> [String; 8] {
        let computes = self.macs > 0;
        let when = |shown: bool, text: String| if shown { text } else { String::new() };
        let limit = if self.reading { "read" } else { "arithmetic" };
        [
            self.name.clone(),
            format!("{:.2}", self.microseconds),
            format!("{:.1}", share(self.microseconds, total)),
            when(computes, grouped(self.macs)),
            when(self.weight_bytes > 0, grouped(self.weight_bytes)),
            when(computes, format!("{:.2}", self.gmacs())),
            when(computes, format!("{:.2} {limit}", self.bound)),
            when(computes, format!("{:.0}", self.percent_of_bound())),
        ]
    }
}

/// Units a second; 0 where no time was measured.
fn rate(units: u64, microseconds: f64) -> f64 {
    if microseconds > 0.0 { 1e6 * units as f64 / microseconds } else { 0.0 }
}

/// `part` in per cent of `whole`; 0 where the whole was too short to be measured.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

/// What reading the clock twice takes: a part of every step's time that is not the step's.
fn clock_overhead() -> Duration {
    let once = || {
        let start = Instant::now();
        start.elapsed()
    };
    (0..1000).map(|_| once()).min().unwrap_or_default()
}

/// All that was measured, times in microseconds.
struct Report<'m> {
    model: &'m str,
    isa: Isa,
    runs: usize,
    fastest: f64,
    median: f64,
    slow: f64,
    peaks: Peaks,
    rows: Vec<Row>,
}

impl Report<'_> {
    fn macs(&self) -> u64 {
        self.rows.iter().map(|row| row.macs).sum()
    }

    fn bound(&self) -> f64 {
        self.rows.iter().map(|row| row.bound).sum()
    }

    fn json(&self) -> Value {
        json!({
            "model": self.model,
            "isa": self.isa.name(),
            "runs": self.runs,
            "microseconds": { "min": self.fastest, "median": self.median, "p99": self.slow },
            "macs": self.macs(),
            "macs_per_second": rate(self.macs(), self.fastest),
            "peak_macs_per_second": self.peaks.macs_per_second,
            "peak_read_bytes_per_second": self.peaks.bytes_per_second,
            "bound_microseconds": self.bound(),
            "percent_of_bound": share(self.bound(), self.fastest),
            "steps": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
        })
    }

    fn print(&self) {
        let (fastest, peaks) = (self.fastest, &self.peaks);
        say!("{} on {}, {} runs", self.model, self.isa.name(), self.runs);
        say!("latency: min {fastest:.2} µs, median {:.2} µs, p99 {:.2} µs", self.median, self.slow);
        let rate = rate(self.macs(), fastest);
        say!(
            "throughput: {:.2} GMAC/s, {:.0} % of the peak of {:.2} GMAC/s",
            rate / 1e9,
            share(rate, peaks.macs_per_second),
            peaks.macs_per_second / 1e9
        );
        say!(
            "bound: {:.2} µs, weights read once at {:.1} GB/s; {:.0} % of the time is explained by it",
            self.bound(),
            peaks.bytes_per_second / 1e9,
            share(self.bound(), fastest)
        );
        let total: f64 = self.rows.iter().map(|row| row.microseconds).sum();
        let mut table = table::plain(&[
            "step",
            "µs",
            "% of time",
            "MACs",
            "weight bytes",
            "GMAC/s",
            "bound, µs",
            "% of bound",
        ]);
        for row in &self.rows {
            table.add_row(row.cells(total));
        }
        table::right(&mut table, &[1, 2, 3, 4, 5, 6, 7]);
        say!("\n{table}");
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_measured_is_no_division_by_zero() {
        assert_eq!(share(1.0, 0.0), 0.0);
        assert_eq!(rate(1, 0.0), 0.0);
        assert_eq!(share(1.0, 4.0), 25.0);
        assert_eq!(rate(3, 1.0), 3e6);
    }

    #[test]
    fn a_stronger_instruction_set_has_a_higher_peak() {
        let peak = |isa| Peaks::measure(isa, false).macs_per_second;
        if let (Some(_), Some(_)) = (Kernels::for_isa(Isa::Avx2), Kernels::for_isa(Isa::Sse2)) {
            // Twice the width and one instruction for two. A machine that is busy with something else has its peaks now and
            // then: the highest of each set are compared, measured in turn until enough has been seen of the machine at rest.
            let (mut weaker, mut stronger) = (0.0f64, 0.0f64);
            let shown = (0..50).any(|_| {
                weaker = weaker.max(peak(Isa::Sse2));
                stronger = stronger.max(peak(Isa::Avx2));
                stronger > 1.5 * weaker
            });
            assert!(shown, "AVX2 {stronger:e}, SSE2 {weaker:e}");
        }
    }
}
