//! The `netkit` command line: one verb a module.
#![forbid(unsafe_code)]

#[macro_use]
mod terminal;

mod bench;
mod convert;
mod emit;
mod explain;
mod hex;
mod inspect;
mod limited;
mod model_file;
mod plan;
mod progress;
mod run;
mod session;
mod size;
mod table;
mod test;
mod values;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt::Display;
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

/// Runs the command that the process was started with, and says how the process should end: 0 when it did what was
/// asked, 1 with a message on standard error when it could not, 2 when the arguments make no sense.
#[must_use]
pub fn main() -> ExitCode {
    let verb = CommandLine::parse().verb;
    let json = verb.json();
    let result = match verb {
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
            if json {
                complain!("{}", as_json(&error));
            } else {
                complain!("error: {}", terminal::harmless_lines(format!("{error:#}")));
            }
            ExitCode::FAILURE
        }
    }
}

impl Verb {
    /// Whether JSON was asked for, which errors are then too. Standard output keeps to the document that was asked for.
    const fn json(&self) -> bool {
        match self {
            Self::Inspect(arguments) => arguments.json,
            Self::Run(arguments) => arguments.json,
            Self::Test(arguments) => arguments.json,
            Self::Bench(arguments) => arguments.json,
            Self::Plan(arguments) => arguments.json,
            Self::Convert(_) | Self::Emit(_) | Self::Explain(_) => false,
        }
    }
}

/// An error as one line of JSON, with each rule that a refused model file breaks.
fn as_json(error: &anyhow::Error) -> serde_json::Value {
    let mut value = serde_json::json!({ "error": terminal::harmless_lines(format!("{error:#}")) });
    if let Some(refusal) = error.downcast_ref::<model_file::Refusal>() {
        value["diagnostics"] = refusal.as_json();
    }
    value
}

thread_local! {
    /// What [`check`] parses with: building it takes longer than parsing does.
    static COMMAND: RefCell<Command> = RefCell::new(CommandLine::command());
}

/// Whether arguments, without the program's name, are a command. Nothing is run.
///
/// # Errors
///
/// What the command would print instead of running: why it does not understand, or the help that was asked for.
pub fn check<A: Into<OsString> + Clone>(
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), impl Display> {
    let name = std::iter::once(OsString::from("netkit"));
    let line = name.chain(arguments.into_iter().map(Into::into));
    COMMAND.with_borrow_mut(|command| {
        let matches = command.try_get_matches_from_mut(line);
        let parsed =
            matches.and_then(|mut matches| CommandLine::from_arg_matches_mut(&mut matches));
        parsed.map(drop)
    })
}
