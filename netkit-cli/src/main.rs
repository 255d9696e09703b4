//! The `netkit` command line: one verb a module.
#![forbid(unsafe_code)]

mod convert;

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
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().verb {
        Verb::Convert(arguments) => convert::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
