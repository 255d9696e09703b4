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

/// Text out of a file, without what would steer a terminal: control characters, and those that turn the direction of text,
/// become escapes. Line ends too, behind which a name could go on as a line that looks like the command's own.
pub(crate) fn harmless(text: impl ToString) -> String {
    text.to_string().chars().map(escaped).collect()
}

/// The same of a message of several lines.
pub(crate) fn harmless_lines(text: impl ToString) -> String {
    let keep = |character| if character == '\n' { "\n".to_owned() } else { escaped(character) };
    text.to_string().chars().map(keep).collect()
}

fn escaped(character: char) -> String {
    let turns_text = matches!(
        character,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    if character.is_control() || turns_text {
        character.escape_default().collect()
    } else {
        character.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{harmless, harmless_lines};

    #[test]
    fn names_do_not_steer_the_terminal() {
        let text = "\x1b[2Jé\r\0\u{9b}1m\n→\u{202e}";
        let escaped = "\\u{1b}[2Jé\\r\\u{0}\\u{9b}1m\n→\\u{202e}";
        assert_eq!(harmless_lines(text), escaped);
        assert_eq!(harmless(text), escaped.replace('\n', "\\n"));
    }
}
