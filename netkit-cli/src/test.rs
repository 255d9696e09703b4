//! `netkit test`: replays the test cases that model files carry.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use indicatif::ProgressBar;
use owo_colors::{OwoColorize as _, Stream};
use serde_json::json;

use crate::model_file::{ModelFile, locate};
use crate::progress;
use crate::session::Session;
use crate::terminal::{harmless, harmless_lines};

/// Runs the test cases embedded in model files.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Model files, or folders of them
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Print JSON, errors too (on standard error)
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    session: Session,
}

struct Outcome {
    model: PathBuf,
    case: String,
    /// The largest deviation, or why it failed.
    verdict: Result<f32, String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut files = Vec::new();
    for path in &arguments.paths {
        collect(path, &mut files)?;
    }
    // One arena for all, reset between models and cases.
    let mut arena = arguments.session.arena()?;
    let bar = progress::bar(files.len() as u64, "models");
    let mut outcomes = Vec::new();
    let mut without_cases = Vec::new();
    let mut not_loaded = Vec::new();
    for path in &files {
        let before = outcomes.len();
        match test_file(path, arguments, &mut arena, &bar, &mut outcomes) {
            Ok(()) if outcomes.len() == before => without_cases.push(path.clone()),
            Ok(()) => {}
            Err(error) => {
                let error = format!("{error:#}");
                if !arguments.json {
                    print_not_loaded(path, &error, &bar);
                }
                not_loaded.push(json!({ "model": path.display().to_string(), "error": error }));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let failed = outcomes.iter().filter(|outcome| outcome.verdict.is_err()).count();
    let passed = outcomes.len() - failed;
    if arguments.json {
        let cases: Vec<_> = outcomes.iter().map(as_json).collect();
        let report =
            json!({ "cases": cases, "passed": passed, "failed": failed, "not_loaded": not_loaded });
        say!("{report}");
    } else {
        for path in &without_cases {
            say!("{}: no test cases", harmless(path.display()));
        }
        say!("Passed: {passed}");
        say!("Failed: {failed}");
        if !not_loaded.is_empty() {
            say!("Not loaded: {}", not_loaded.len());
        }
    }
    let mut wrong = Vec::new();
    if failed > 0 {
        wrong.push(format!("{failed} of {} test cases failed", outcomes.len()));
    }
    if !not_loaded.is_empty() {
        wrong.push(format!("{} of {} model files cannot be used", not_loaded.len(), files.len()));
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join(", and "));
    }
    if outcomes.is_empty() {
        bail!("there is no test case in {} model files", files.len());
    }
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        // Said at once: it is no test case that failed.
        files.push(locate(path)?);
        return Ok(());
    }
    let entries =
        fs::read_dir(path).with_context(|| format!("cannot read the folder {}", path.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        // A folder of such a name is no model, and a pipe may have no writer. What cannot be looked at fails below.
        let is_file = fs::metadata(&path).map_or(true, |metadata| metadata.is_file());
        if is_file && path.extension().is_some_and(|extension| extension == "nk") {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!("there is no .nk file in {}", path.display());
    }
    found.sort();
    files.append(&mut found);
    Ok(())
}

fn test_file(
    path: &Path,
    arguments: &Arguments,
    arena: &mut netkit::arena::Bump<'static>,
    bar: &ProgressBar,
    outcomes: &mut Vec<Outcome>,
) -> Result<()> {
    let file = ModelFile::read(path)?;
    let (cases, outputs) = file.with_program(|program| {
        Ok((program.file().cases().len(), program.output().shape.elements()))
    })?;
    let mut output = vec![0.0; outputs];
    for index in 0..cases {
        arena.reset();
        let mut network = arguments.session.load(&file, arena)?;
        let Some(report) = network.check_case(index, &mut output) else { break };
        let outcome = Outcome {
            model: file.path.clone(),
            case: report.name.to_owned(),
            verdict: report.verdict.map_err(|mismatch| mismatch.to_string()),
        };
        print_outcome(&outcome, arguments.json, bar);
        outcomes.push(outcome);
    }
    Ok(())
}

fn print_outcome(outcome: &Outcome, json: bool, bar: &ProgressBar) {
    if json {
        return;
    }
    let model = harmless(outcome.model.file_name().unwrap_or_default().display());
    let line = match &outcome.verdict {
        Ok(deviation) => format!(
            "{} {model}: {} (largest deviation {deviation:.1e})",
            "PASS".if_supports_color(Stream::Stdout, |text| text.green()),
            harmless(&outcome.case)
        ),
        Err(why) => format!(
            "{} {model}: {}: {}",
            "FAIL".if_supports_color(Stream::Stdout, |text| text.red()),
            harmless(&outcome.case),
            harmless(why)
        ),
    };
    bar.suspend(|| say!("{line}"));
}

/// A file that is no model, or that does not fit the arena: no test case of it has failed, for none was run.
fn print_not_loaded(path: &Path, error: &str, bar: &ProgressBar) {
    let model = harmless(path.file_name().unwrap_or_default().display());
    let head = "NOT LOADED".if_supports_color(Stream::Stdout, |text| text.red());
    // Indented, so that no line of it begins like one of ours.
    let error = harmless_lines(error).replace('\n', "\n  ");
    let line = format!("{head} {model}: {error}");
    bar.suspend(|| say!("{line}"));
}

fn as_json(outcome: &Outcome) -> serde_json::Value {
    let (deviation, error) = match &outcome.verdict {
        Ok(deviation) => (Some(*deviation), None),
        Err(why) => (None, Some(why)),
    };
    json!({
        "model": outcome.model.display().to_string(),
        "case": outcome.case,
        "passed": error.is_none(),
        "largest_deviation": deviation,
        "error": error,
    })
}
