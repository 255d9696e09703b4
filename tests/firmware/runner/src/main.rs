//! Builds the firmware for every target, runs it under an emulator, compares what it prints with the host, counts
//! instructions, and compares these with a budget.
//!
//! `cargo run -- --help` in `tests/firmware` says how.

mod build;
mod counter;
mod emulate;
mod image;
mod inspect;
mod measurements;
mod options;
mod profile;
mod report;
mod target;
mod transcript;

use counter::{Counter, Plugin};
use image::Image;
use inspect::{Inspection, Listing, is_int8, network_products};
use measurements::{Key, Measurements, Metric};
use options::Options;
use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;
use target::{TARGETS, Target};
use transcript::Transcript;

fn main() -> ExitCode {
    match session() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the command line asks; false when something failed that has been told already.
fn session() -> Result<bool, String> {
    let workloads = build::workloads().map_err(|error| format!("board/src/bin: {error}"))?;
    let options = Options::parse(std::env::args().skip(1), workloads)?;
    if options.list {
        for target in TARGETS {
            println!("target {:<14} {:<26} {}", target.name, target.core, target.triple);
        }
        for workload in &options.workloads {
            println!("workload {workload}");
        }
        return Ok(true);
    }
    let expectations = expectations(&options.workloads)?;
    let counter = Counter::compile();
    if let Err(reason) = &counter {
        println!("instructions are not counted: {reason}");
    }
    let mut measured =
        Measurements { compiler: build::compiler(&options.targets)?, ..Default::default() };
    let mut passed = true;
    for target in &options.targets {
        if let Some(reason) = build::missing(target) {
            println!("{:<14} skipped: {reason}", target.name);
            passed &= !options.require_all;
            continue;
        }
        let held: Vec<String> =
            options.workloads.iter().filter(|workload| target.holds(workload)).cloned().collect();
        let built = match build::for_target(target, &held, options.cmsis_nn.as_deref()) {
            Ok(built) => built,
            Err(message) => {
                println!("{:<14} FAILED: {message}", target.name);
                passed = false;
                continue;
            }
        };
        for (workload, expected) in &expectations {
            if !target.holds(workload) {
                println!(
                    "{:<14} {workload:<20} does not fit into the machine's flash",
                    target.name
                );
                continue;
            }
            let own_kernels = options.cmsis_nn.is_none();
            let profile = options.profile;
            let trial = Trial { target, workload, expected, profile, own_kernels };
            match trial.run(&built, counter.as_ref().ok(), &mut measured) {
                Ok(summary) => println!("{:<14} {workload:<20} {summary}", target.name),
                Err(message) => {
                    println!("{:<14} {workload:<20} FAILED: {message}", target.name);
                    passed = false;
                }
            }
        }
    }
    if options.cmsis_nn.is_some() {
        // Another program: its counts are told and no more.
        return Ok(passed && !options.targets.is_empty());
    }
    passed &= example(&options)?;
    if options.bless {
        record(measured)?
    } else {
        passed &= within_budget(&measured)?
    }
    Ok(passed)
}

/// The target whose machine `examples/bare-metal` is written for.
const EXAMPLE_TARGET: &str = "m4";

/// Builds and runs the example of the guide, if its target was asked for: it must read its digit as the label says.
fn example(options: &Options) -> Result<bool, String> {
    let target = options.targets.iter().find(|target| target.name == EXAMPLE_TARGET);
    let Some(target) = target.filter(|target| build::missing(target).is_none()) else {
        return Ok(true);
    };
    let labels = build::workspace().join("../../models/digits/labels.u8");
    let labels = fs::read(&labels).map_err(|error| format!("{}: {error}", labels.display()))?;
    let label = labels.first().ok_or("there are no labels")?;
    let printed = build::example(target).and_then(|image| emulate::on_target(target, &image, None));
    let verdict = match printed {
        Ok(text) if text.trim() == format!("digit: {label}") => Ok(()),
        Ok(text) => Err(format!("FAILED: {text:?}, and the digit is {label}")),
        Err(message) => Err(format!("FAILED: {message}")),
    };
    let text = verdict.as_ref().map_or_else(String::as_str, |()| "ok");
    println!("{:<14} {:<20} {text}", target.name, "examples/bare-metal");
    Ok(verdict.is_ok())
}

/// What each workload prints on the host.
fn expectations(workloads: &[String]) -> Result<BTreeMap<String, Transcript>, String> {
    let built = build::for_host(workloads)?;
    let mut expectations = BTreeMap::new();
    for workload in workloads {
        let printed = emulate::on_host(&built.image(workload))?;
        let transcript = Transcript::parse(&printed)?;
        if transcript.results.is_empty() {
            return Err(format!("{workload} prints no result on the host"));
        }
        expectations.insert(workload.clone(), transcript);
    }
    Ok(expectations)
}

/// One workload on one target.
struct Trial<'a> {
    target: &'a Target,
    workload: &'a str,
    expected: &'a Transcript,
    profile: bool,
    /// Whether no other library computes layers.
    own_kernels: bool,
}

impl Trial<'_> {
    /// Runs, compares and measures; returns a line for the console.
    fn run(
        &self,
        built: &build::Built,
        counter: Option<&Counter>,
        measured: &mut Measurements,
    ) -> Result<String, String> {
        let path = built.image(self.workload);
        let image = if self.target.has_elf() { Some(Image::read(&path)?) } else { None };
        let profile = self.profile || (self.target.is_bare() && is_int8(self.workload));
        let plugin = counter.zip(image.as_ref()).and_then(|(c, i)| c.plugin(i, &path, profile));
        let transcript =
            Transcript::parse(&emulate::on_target(self.target, &path, plugin.as_ref())?)?;
        let differences = transcript.compare(self.expected);
        if !differences.is_empty() {
            let lines: Vec<String> = differences.iter().map(|d| format!("\n    {d}")).collect();
            return Err(format!("not what the host computes{}", lines.concat()));
        }
        let mut keep = |region: &str, metric, value| {
            let key = Key {
                target: self.target.name.to_owned(),
                workload: self.workload.to_owned(),
                region: region.to_owned(),
                metric,
            };
            measured.values.insert(key, value);
        };
        let mut summary = "ok".to_owned();
        if let Some(image) = image.as_ref().filter(|_| self.target.is_bare()) {
            let data: u64 = transcript.remarks("data").map(|(_, bytes)| bytes).sum();
            let code = image.size.flash.saturating_sub(data);
            // Of several networks one is there at a time.
            let arena = transcript.remarks("arena").map(|(_, bytes)| bytes).max();
            let memory = image.size.statics + arena.unwrap_or(0);
            keep("-", Metric::Code, code);
            keep("-", Metric::Memory, memory);
            summary += &format!(", code {code}, weights and inputs {data}, memory {memory}");
        }
        let regions: Vec<(&str, u64)> =
            transcript.remarks("region").filter(|(name, _)| *name != "empty").collect();
        let counts = plugin.as_ref().map_or(Ok(Vec::new()), Plugin::counts)?;
        if plugin.is_some() && counts.len() != regions.len() {
            return Err(format!(
                "{} regions were counted, {} were run",
                counts.len(),
                regions.len()
            ));
        }
        for (index, (region, stack)) in regions.iter().enumerate() {
            summary += &format!("\n    {region}:");
            if let Some(count) = counts.get(index) {
                keep(region, Metric::Instructions, count.total);
                summary += &format!(" {} instructions", count.total);
                let names: Vec<&str> = self.expected.steps(region).collect();
                if names.len() != count.steps.len() {
                    return Err(format!(
                        "{region}: {} steps were counted, the host makes {}",
                        count.steps.len(),
                        names.len()
                    ));
                }
                for (name, &count) in names.into_iter().zip(&count.steps) {
                    keep(name, Metric::Instructions, count);
                }
            }
            if self.target.is_bare() {
                keep(region, Metric::Stack, *stack);
                summary += &format!(", stack {stack}");
            }
        }
        if let (Some(plugin), Some(image)) = (&plugin, &image) {
            let executed = plugin.profile()?;
            if self.profile {
                for (index, (region, _)) in regions.iter().enumerate() {
                    summary += &profile::table(region, index, &executed, image);
                }
            }
            if self.target.is_bare() {
                let inspection = Inspection {
                    target: self.target,
                    workload: self.workload,
                    image,
                    listing: &Listing::read(self.target, &path, image, &executed)?,
                    executed: &executed,
                    regions: &regions.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
                    own_kernels: self.own_kernels,
                    products: network_products(self.workload),
                };
                let complaints = inspection.complaints();
                if !complaints.is_empty() {
                    let lines: Vec<String> =
                        complaints.iter().take(8).map(|line| format!("\n    {line}")).collect();
                    return Err(format!("the machine code is not as it must be{}", lines.concat()));
                }
            }
        }
        Ok(summary)
    }
}

/// Writes what was measured to the budget and to the page with the tables.
fn record(measured: Measurements) -> Result<(), String> {
    let mut budget = Measurements::read(&Measurements::path())?;
    budget.merge(measured);
    let write = |path: &std::path::Path, text: String| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write(&Measurements::path(), budget.to_string())?;
    let page = report::page();
    let text = fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    let text = report::with_tables(&text, &budget)
        .ok_or_else(|| format!("{}: the comments around the tables are gone", page.display()))?;
    write(&page, text)
}

/// Compares with the budget and tells. Another compiler's counts are told but do not fail.
fn within_budget(measured: &Measurements) -> Result<bool, String> {
    let budget = Measurements::read(&Measurements::path())?;
    let regressions = measured.regressions(&budget);
    for regression in &regressions {
        println!("over budget: {regression}");
    }
    let news = measured.news(&budget);
    if news > 0 {
        println!(
            "{news} measurements are new or below budget by more than 1 %: --bless records them"
        );
    }
    if budget.compiler != measured.compiler && !regressions.is_empty() {
        println!(
            "the budget is that of {}, this is {}: not a failure",
            budget.compiler, measured.compiler
        );
        return Ok(true);
    }
    Ok(regressions.is_empty())
}
