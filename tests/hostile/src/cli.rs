//! The command line.

use crate::random::Random;
use std::ffi::OsString;

/// Arguments are understood or refused with a message; nothing is run.
pub(crate) fn run(bytes: &[u8]) -> bool {
    let arguments = bytes.split(|&byte| byte == 0).map(argument);
    match netkit_cli::check(arguments) {
        Ok(()) => true,
        Err(error) => {
            // Rendering takes several times what understanding does.
            if Random::of(bytes).below(8) == 0 {
                assert!(!error.to_string().is_empty());
            }
            false
        }
    }
}

/// Any bytes.
#[cfg(unix)]
fn argument(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

/// What is not UTF-8 cannot be given.
#[cfg(not(unix))]
fn argument(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}
