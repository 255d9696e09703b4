//! Results, and how they are printed: Markdown, so that a run can be pasted into a commit or an issue as it is.

use std::fmt;

use serde::Serialize;

use crate::engines::{NETKIT, NETKIT_RUNTIME, ONNX_RUNTIME, ONNX_RUNTIME_EXACT, is_peer};
use crate::fresh::Process;
use crate::model::{DType, Model};
use crate::peak::Peaks;

#[derive(Serialize)]
pub struct Report {
    engines: Vec<&'static str>,
    peaks: Peaks,
    pub processes: Vec<Process>,
    pub rows: Vec<Row>,
}

#[derive(Serialize)]
pub struct Row {
    name: String,
    title: String,
    int8: bool,
    macs: u64,
    /// Multiply-accumulates and weight bytes of each layer.
    layers: Vec<(u64, u64)>,
    tolerance: f64,
    target: Option<f64>,
    outcomes: Vec<Outcome>,
}

#[derive(Serialize)]
pub enum Outcome {
    Measured(Measured),
    /// The engine cannot express the model.
    Unsupported,
    Failed(String),
}

/// Times in microseconds per inference.
#[derive(Serialize)]
pub struct Measured {
    pub minimum: f64,
    pub median: f64,
    pub deviation: f64,
    pub agrees: bool,
    pub remark: Option<String>,
}

impl Row {
    pub fn new(model: &Model, outcomes: Vec<Outcome>) -> Row {
        Row {
            name: model.row(),
            title: model.title.clone(),
            int8: model.dtype == DType::Int8,
            macs: model.macs(),
            layers: model.layers.iter().map(|layer| (layer.macs, layer.weight_bytes)).collect(),
            tolerance: model.tolerance,
            target: model.target,
            outcomes,
        }
    }

    fn peak(&self, peaks: &Peaks) -> f64 {
        if self.int8 { peaks.int8() } else { peaks.f32() }
    }

    /// Microseconds below which no implementation of these multiplications gets: for each layer the larger of its
    /// arithmetic at the peak and one read of its weights from the second-level cache.
    fn roofline(&self, peaks: &Peaks) -> f64 {
        let layer = |&(macs, bytes): &(u64, u64)| {
            (macs as f64 / self.peak(peaks)).max(bytes as f64 / peaks.l2_bytes)
        };
        self.layers.iter().map(layer).sum::<f64>() * 1e6
    }

    fn measured<'a>(
        &'a self,
        engines: &'a [&'static str],
    ) -> impl Iterator<Item = (&'static str, &'a Measured)> {
        engines.iter().zip(&self.outcomes).filter_map(|(&name, outcome)| match outcome {
            Outcome::Measured(measured) => Some((name, measured)),
            _ => None,
        })
    }

    fn netkit<'a>(&'a self, engines: &'a [&'static str]) -> Option<&'a Measured> {
        self.measured(engines).find(|&(name, _)| name == NETKIT).map(|(_, measured)| measured)
    }

    /// The fastest peer whose answers agree.
    fn best_peer<'a>(&'a self, engines: &'a [&'static str]) -> Option<(&'static str, f64)> {
        self.measured(engines)
            .filter(|&(name, measured)| is_peer(name) && measured.agrees)
            .map(|(name, measured)| (name, measured.minimum))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Three significant digits.
fn figure(value: f64) -> String {
    match value {
        v if !v.is_finite() => "–".into(),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

impl Report {
    pub fn new(engines: Vec<&'static str>, peaks: Peaks) -> Report {
        Report { engines, peaks, processes: Vec::new(), rows: Vec::new() }
    }

    /// Whether every engine that ran gave the expected answers. An engine that fails to run is a note, not a
    /// disagreement, unless it is netkit. ONNX Runtime may saturate where its exact form shows that the model is the same.
    pub fn agrees(&self) -> bool {
        self.rows.iter().all(|row| {
            let exact = row
                .measured(&self.engines)
                .any(|(name, measured)| name == ONNX_RUNTIME_EXACT && measured.agrees);
            self.engines.iter().zip(&row.outcomes).all(|(&name, outcome)| match outcome {
                Outcome::Measured(measured) => measured.agrees || (name == ONNX_RUNTIME && exact),
                Outcome::Unsupported => true,
                Outcome::Failed(_) => is_peer(name),
            })
        })
    }

    fn summary(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let peers: Vec<_> = self.engines.iter().filter(|name| is_peer(name)).collect();
        write!(f, "| model | MMAC | roofline | netkit | GMAC/s | % of peak |")?;
        if self.engines.contains(&NETKIT_RUNTIME) {
            write!(f, " runtime |")?;
        }
        for peer in &peers {
            write!(f, " {peer} |")?;
        }
        writeln!(f, " netkit ÷ best | target |")?;
        writeln!(
            f,
            "|---|{}",
            "---:|".repeat(self.engines.len() + 6 + usize::from(!self.engines.contains(&NETKIT)))
        )?;
        for row in &self.rows {
            let netkit = row.netkit(&self.engines);
            write!(
                f,
                "| {} | {} | {} |",
                row.title,
                figure(row.macs as f64 / 1e6),
                figure(row.roofline(&self.peaks))
            )?;
            match netkit {
                Some(own) => {
                    let rate = row.macs as f64 / own.minimum / 1e3;
                    let share = 1e11 * rate / row.peak(&self.peaks);
                    write!(
                        f,
                        " {}{} | {} | {share:.0} |",
                        figure(own.minimum),
                        mark(own),
                        figure(rate)
                    )?;
                }
                None => write!(f, " – | – | – |")?,
            }
            for (name, outcome) in
                self.engines.iter().zip(&row.outcomes).filter(|(name, _)| **name != NETKIT)
            {
                match (outcome, netkit) {
                    (Outcome::Measured(peer), Some(own)) if is_peer(name) => write!(
                        f,
                        " {}{} ({}×) |",
                        figure(peer.minimum),
                        mark(peer),
                        figure(peer.minimum / own.minimum)
                    )?,
                    (Outcome::Measured(peer), _) => {
                        write!(f, " {}{} |", figure(peer.minimum), mark(peer))?
                    }
                    (Outcome::Unsupported, _) => write!(f, " – |")?,
                    (Outcome::Failed(_), _) => write!(f, " failed |")?,
                }
            }
            match (netkit, row.best_peer(&self.engines)) {
                (Some(own), Some((_, best))) => {
                    let ratio = own.minimum / best;
                    let verdict = match row.target {
                        Some(target) if ratio <= target => " ✓",
                        Some(_) => " ✗",
                        None => "",
                    };
                    write!(f, " {ratio:.2}{verdict} |")?;
                }
                _ => write!(f, " – |")?,
            }
            match row.target {
                Some(target) => writeln!(f, " ≤ {target:.2} |")?,
                None => writeln!(f, " – |")?,
            }
        }
        writeln!(f)
    }

    fn details(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            f,
            "| model | engine | min µs | median µs | × netkit | GMAC/s | % of peak | deviation | accepted |"
        )?;
        writeln!(f, "|---|---|{}", "---:|".repeat(7))?;
        for row in &self.rows {
            let own = row.netkit(&self.engines).map(|own| own.minimum);
            for (engine, measured) in row.measured(&self.engines) {
                let rate = row.macs as f64 / measured.minimum / 1e3;
                let accepted = if row.int8 && !is_peer(engine) { 0.0 } else { row.tolerance };
                writeln!(
                    f,
                    "| {} | {engine} | {} | {} | {} | {} | {:.0} | {:.2e}{} | {accepted:.1e} |",
                    row.title,
                    figure(measured.minimum),
                    figure(measured.median),
                    own.map_or("–".into(), |own| figure(measured.minimum / own)),
                    figure(rate),
                    1e11 * rate / row.peak(&self.peaks),
                    measured.deviation,
                    mark(measured),
                )?;
            }
        }
        writeln!(f)
    }

    fn notes(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for row in &self.rows {
            for (engine, outcome) in self.engines.iter().zip(&row.outcomes) {
                match outcome {
                    Outcome::Failed(error) => {
                        let line = error.split_whitespace().collect::<Vec<_>>().join(" ");
                        let short: String = line.chars().take(240).collect();
                        writeln!(f, "- {}, {engine}: failed: {short}", row.title)?;
                    }
                    Outcome::Measured(Measured { remark: Some(remark), .. }) => {
                        writeln!(f, "- {}, {engine}: {remark}", row.title)?;
                    }
                    _ => {}
                }
            }
        }
        writeln!(f)
    }

    fn processes(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.processes.is_empty() {
            return Ok(());
        }
        writeln!(f, "One fresh process, one MNIST CNN inference (f32):\n")?;
        writeln!(f, "| engine | wall ms, min | median | peak memory MiB | stripped binary MiB |")?;
        writeln!(f, "|---|{}", "---:|".repeat(4))?;
        for process in &self.processes {
            writeln!(
                f,
                "| {} | {} | {} | {} | {} |",
                process.engine,
                figure(process.minimum_ms),
                figure(process.median_ms),
                figure(process.peak_mib),
                figure(process.binary_mib),
            )?;
        }
        writeln!(f)
    }
}

/// A cross where the answers were out of tolerance.
fn mark(measured: &Measured) -> &'static str {
    if measured.agrees { "" } else { " ✗disagrees" }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let peaks = &self.peaks;
        writeln!(
            f,
            "Peaks of one thread, GMAC/s: f32 AVX2 {}, AVX-512 {}; int8 AVX2 {}, VNNI {}. L2 read: {} GB/s.\n",
            figure(peaks.avx2_f32 / 1e9),
            figure(peaks.avx512_f32 / 1e9),
            figure(peaks.avx2_int8 / 1e9),
            figure(peaks.vnni_int8 / 1e9),
            figure(peaks.l2_bytes / 1e9),
        )?;
        if !self.rows.is_empty() {
            writeln!(f, "Shortest µs per inference; in brackets the multiple of netkit's.\n")?;
            self.summary(f)?;
            self.details(f)?;
            self.notes(f)?;
        }
        self.processes(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        assert_eq!(figure(1234.6), "1235");
        assert_eq!(figure(12.345), "12.3");
        assert_eq!(figure(1.234), "1.23");
        assert_eq!(figure(0.1234), "0.123");
        assert_eq!(figure(f64::INFINITY), "–");
    }

    fn measured(minimum: f64, agrees: bool) -> Outcome {
        Outcome::Measured(Measured {
            minimum,
            median: minimum,
            deviation: 0.0,
            agrees,
            remark: None,
        })
    }

    fn row(outcomes: Vec<Outcome>) -> Row {
        Row {
            name: "m".into(),
            title: "M".into(),
            int8: false,
            macs: 3_000,
            layers: vec![(2_000, 10), (1_000, 4_000)],
            tolerance: 1e-4,
            target: Some(0.8),
            outcomes,
        }
    }

    #[test]
    fn roofline_takes_the_larger_bound_of_each_layer() {
        let peaks = Peaks { avx2_f32: 1e9, l2_bytes: 1e9, ..Peaks::default() };
        assert!((row(vec![]).roofline(&peaks) - 6.0).abs() < 1e-9);
    }

    #[test]
    fn a_wrong_peer_is_not_the_best_peer() {
        let engines = [NETKIT, "a", "b"];
        let row = row(vec![measured(1.0, true), measured(1.5, false), measured(2.0, true)]);
        assert_eq!(row.best_peer(&engines), Some(("b", 2.0)));
    }

    #[test]
    fn disagreement_and_a_failing_netkit_fail_the_run() {
        let run = |outcomes| {
            let mut report = Report::new(vec![NETKIT, "a"], Peaks::default());
            report.rows.push(row(outcomes));
            report.agrees()
        };
        assert!(run(vec![measured(1.0, true), Outcome::Failed("no such operator".into())]));
        assert!(!run(vec![measured(1.0, true), measured(1.0, false)]));
        assert!(!run(vec![Outcome::Failed("refused".into()), measured(1.0, true)]));
    }

    #[test]
    fn onnx_runtime_may_saturate_where_its_exact_form_agrees() {
        let run = |engines: [&'static str; 3], outcomes| {
            let mut report = Report::new(engines.to_vec(), Peaks::default());
            report.rows.push(row(outcomes));
            report.agrees()
        };
        let engines = [NETKIT, ONNX_RUNTIME, ONNX_RUNTIME_EXACT];
        let answers = |default, exact| vec![measured(1.0, true), measured(1.0, default), exact];
        assert!(run(engines, answers(false, measured(2.0, true))));
        assert!(!run(engines, answers(false, measured(2.0, false))));
        assert!(!run(engines, answers(false, Outcome::Unsupported)));
        assert!(!run(engines, answers(true, measured(2.0, false))));
        // Nobody else may.
        assert!(!run([NETKIT, "a", ONNX_RUNTIME_EXACT], answers(false, measured(2.0, true))));
    }
}
