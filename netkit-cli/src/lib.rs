//! The `netkit` command line: one verb a module.
#![forbid(unsafe_code)]

mod bench;
mod convert;
mod emit;
mod explain;
mod hex;
mod inspect;
mod model_file;
mod plan;
mod progress;
mod run;
mod session;
mod size;
mod table;
mod test;
mod values;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Neural networks for Rust programs: work with .nk model files.
#[derive(Debug, Parser)]
#[command(name = "netkit", version, propagate_version = true)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Convert a trained model (.onnx) to a .nk file
    Convert(convert::Arguments),
    /// Show what a model file holds
    Inspect(inspect::Arguments),
    /// Run a model on one input
    Run(run::Arguments),
    /// Run the test cases embedded in model files
    Test(test::Arguments),
    /// Measure how fast a model runs
    Bench(bench::Arguments),
    /// Show the memory plan of a model
    Plan(plan::Arguments),
    /// Write the Rust code that the macro expands to
    Emit(emit::Arguments),
    /// Explain a diagnostic code
    Explain(explain::Arguments),
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().verb {
        Verb::Convert(arguments) => convert::run(&arguments),
        Verb::Inspect(arguments) => inspect::run(&arguments),
        Verb::Run(arguments) => run::run(&arguments),
        Verb::Test(arguments) => test::run(&arguments),
        Verb::Bench(arguments) => bench::run(&arguments),
        Verb::Plan(arguments) => plan::run(&arguments),
        Verb::Emit(arguments) => emit::run(&arguments),
        Verb::Explain(arguments) => explain::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
