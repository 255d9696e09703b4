//! The `netkit` command: [`netkit_cli::main`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    netkit_cli::main()
}
