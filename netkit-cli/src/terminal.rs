//! Writing to standard output and standard error, either of which may be closed or full.
//!
//! `println!` panics when it cannot write, and `netkit inspect model.nk | head -1` closes the pipe early.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write as _};
use std::process;

/// `println!`, but an output that takes no more ends the process instead of a panic.
macro_rules! say {
    ($($text:tt)*) => { $crate::terminal::print(format_args!("{}\n", format_args!($($text)*))) };
}

/// `eprintln!`, but without a panic where nobody listens.
macro_rules! complain {
    ($($text:tt)*) => { $crate::terminal::complain(format_args!("{}\n", format_args!($($text)*))) };
}

/// Writes to standard output. Where that fails the process ends with code 1, since the command did not do all that it
/// was asked for; silently when the reader has gone, who has seen enough.
pub(crate) fn print(text: Arguments<'_>) {
    let Err(error) = io::stdout().lock().write_fmt(text) else { return };
    if error.kind() != ErrorKind::BrokenPipe {
        complain!("error: cannot write to standard output: {error}");
    }
    process::exit(1);
}

/// Writes to standard error if possible.
pub(crate) fn complain(text: Arguments<'_>) {
    _ = io::stderr().lock().write_fmt(text);
}

/// Text out of a file, without what would steer a terminal: control characters but line ends become escapes.
pub(crate) fn harmless(text: impl ToString) -> String {
    let mut harmless = String::new();
    for character in text.to_string().chars() {
        if character.is_control() && character != '\n' {
            harmless.extend(character.escape_default());
        } else {
            harmless.push(character);
        }
    }
    harmless
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn names_do_not_steer_the_terminal() {
        assert_eq!(harmless("\x1b[2Jé\r\0\u{9b}1m\n→"), "\\u{1b}[2Jé\\r\\u{0}\\u{9b}1m\n→");
    }
}
