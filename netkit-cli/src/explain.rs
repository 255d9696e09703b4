//! `netkit explain`: the long form of a diagnostic.

use anyhow::{Result, anyhow};
use clap::Args;
use netkit_core::diag::Code;

/// Explains a diagnostic code, such as NK0504.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The code; without one, all codes are listed
    code: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Some(text) = &arguments.code else {
        for code in Code::ALL {
            say!("{}  {:14} {}", code.as_str(), code.rule(), code.title());
        }
        return Ok(());
    };
    let code = Code::from_text(text)
        .ok_or_else(|| anyhow!("there is no code {text:?}; `netkit explain` lists them"))?;
    say!("{}: {} (rule {})\n", code.as_str(), code.title(), code.rule());
    say!("{}", code.explanation());
    say!("\nWhat to do: {}", code.hint());
    say!("\nThe format and its rules: docs/format.md in netkit's repository");
    Ok(())
}
