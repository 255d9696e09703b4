//! Why a model cannot be loaded or run.

use core::fmt;

pub use netkit_core::diag::{Code, Diagnostic};

use netkit_core::diag::{Site, Value};

use crate::arena::ArenaError;

/// `Debug` of errors is their sentence: `fn main() -> Result<(), Box<dyn Error>>` and `unwrap` print that.
macro_rules! debug_is_display {
    ($($error:ty),*) => { $(
        impl core::fmt::Debug for $error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    )* };
}
pub(crate) use debug_is_display;

debug_is_display!(LoadError, RunError, SignatureError);

/// Why a model could not be loaded: what is wrong, in which layer, at which byte.
///
/// Its text is that of the compiler and the command line. Where flash is scarce, match on [`kind`](Self::kind): `unwrap` and
/// `expect` keep every rule's sentences, some 8 kB, in the program.
pub struct LoadError {
    cause: Cause,
}

enum Cause {
    Model(Diagnostic),
    Arena(ArenaError),
    #[cfg(feature = "mmap")]
    Io(std::io::Error),
}

/// The kind of a [`LoadError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// The bytes are no model that can be run; the code says which rule they break.
    Model(Code),
    /// The arena is too small.
    Arena(ArenaError),
    /// The tensors do not lie at a multiple of 4 in memory.
    Misaligned,
    /// The file could not be read; with the feature `mmap`.
    #[cfg(feature = "mmap")]
    Io(std::io::ErrorKind),
}

impl LoadError {
    /// The tensor at a byte of the file lies at an address at which its values cannot be read.
    pub(crate) fn misaligned(offset: u64, address: usize) -> Self {
        let site = Site::byte(offset);
        let diagnostic = Diagnostic::new(Code::PayloadAlignment, site)
            .field("tensor")
            .found(Value::Bits(address as u64))
            .expected(Value::Text("a multiple of 4"));
        diagnostic.into()
    }

    /// What kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> LoadErrorKind {
        match &self.cause {
            Cause::Model(diagnostic) => match diagnostic.code {
                Code::PayloadAlignment => LoadErrorKind::Misaligned,
                code => LoadErrorKind::Model(code),
            },
            Cause::Arena(error) => LoadErrorKind::Arena(*error),
            #[cfg(feature = "mmap")]
            Cause::Io(error) => LoadErrorKind::Io(error.kind()),
        }
    }

    /// The full diagnosis of a model that breaks a rule: the same that the macro and the command line
    /// give.
    #[must_use]
    pub const fn diagnostic(&self) -> Option<&Diagnostic> {
        match &self.cause {
            Cause::Model(diagnostic) => Some(diagnostic),
            _ => None,
        }
    }

    /// The layer that is wrong, counted from 0.
    #[must_use]
    pub fn layer(&self) -> Option<u16> {
        self.diagnostic().and_then(|diagnostic| diagnostic.site.layer)
    }

    /// The offset of the wrong byte in the file.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match &self.cause {
            Cause::Model(diagnostic) => diagnostic.site.offset,
            _ => None,
        }
    }
}

impl From<Diagnostic> for LoadError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { cause: Cause::Model(diagnostic) }
    }
}

impl From<ArenaError> for LoadError {
    fn from(error: ArenaError) -> Self {
        Self { cause: Cause::Arena(error) }
    }
}

#[cfg(feature = "mmap")]
impl From<std::io::Error> for LoadError {
    fn from(error: std::io::Error) -> Self {
        Self { cause: Cause::Io(error) }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Model(diagnostic) => {
                write!(f, "[{}] {diagnostic}; {}", diagnostic.code.as_str(), diagnostic.hint())
            }
            #[cfg(feature = "alloc")]
            Cause::Arena(error @ ArenaError::Exhausted { .. }) => {
                write!(f, "{error} (`Network::arena_bytes` says what a model takes in all)")
            }
            Cause::Arena(error) => error.fmt(f),
            #[cfg(feature = "mmap")]
            Cause::Io(error) => error.fmt(f),
        }
    }
}

/// Without a source: what an arena or the system said is in the message already.
impl core::error::Error for LoadError {}

/// Why a loaded model did not run. Nothing was computed.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum RunError {
    /// The input has the wrong number of elements.
    InputLength {
        /// Elements the model takes.
        expected: usize,
        /// Elements given.
        found: usize,
    },
    /// The output has the wrong number of elements.
    OutputLength {
        /// Elements the model gives.
        expected: usize,
        /// Elements there is room for.
        found: usize,
    },
    /// int8 values for a float model.
    NotQuantized,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InputLength { expected, found } => {
                write!(f, "the model takes {expected} values, {found} were given")
            }
            Self::OutputLength { expected, found } => {
                write!(f, "the model gives {expected} values, there is room for {found}")
            }
            Self::NotQuantized => f.write_str("the model computes in float32; use `forward`"),
        }
    }
}

impl core::error::Error for RunError {}

/// A loaded model does not have the inputs and outputs the program was written for.
#[derive(Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum SignatureError {
    /// The shapes of the inputs differ.
    Input,
    /// The shapes of the outputs differ.
    Output,
    /// One is int8 and the other float32.
    ElementType,
    /// The int8 inputs have another scale or zero point.
    InputQuantization,
    /// The int8 outputs have another scale or zero point.
    OutputQuantization,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "the model's input has another shape than expected",
            Self::Output => "the model's output has another shape than expected",
            Self::ElementType => "one of the models is int8 and the other float32",
            Self::InputQuantization => "the model's int8 input has another scale or zero point",
            Self::OutputQuantization => "the model's int8 output has another scale or zero point",
        })
    }
}

impl core::error::Error for SignatureError {}

#[cfg(feature = "defmt")]
mod format {
    use super::{LoadError, SignatureError};
    use defmt::{Display2Format, Format, Formatter};

    impl Format for LoadError {
        fn format(&self, f: Formatter<'_>) {
            defmt::write!(f, "{}", Display2Format(self));
        }
    }

    impl Format for SignatureError {
        fn format(&self, f: Formatter<'_>) {
            defmt::write!(f, "{}", Display2Format(self));
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::self_test::{Mismatch, SelfTestError};
    use std::string::ToString as _;

    /// What `fn main() -> Result<(), Box<dyn Error>>` prints of an error is its sentence.
    #[test]
    fn debug_is_what_display_is() {
        fn same(error: impl core::error::Error) {
            let text = error.to_string();
            assert_eq!(std::format!("{error:?}"), text);
            assert_eq!(std::format!("{error:#?}"), text);
        }
        let arena = ArenaError::Exhausted { requested: 80, remaining: 64 };
        same(arena);
        same(LoadError::from(arena));
        same(LoadError::misaligned(48, 3));
        same(RunError::InputLength { expected: 784, found: 2 });
        same(SignatureError::Output);
        same(Mismatch::Class { actual: 1, expected: 2 });
        same(SelfTestError { case: 0, name: "seven", mismatch: Mismatch::Size });
    }

    /// Without `alloc` there is no such function to ask.
    #[test]
    fn a_small_arena_is_told_of_what_there_is() {
        let error = LoadError::from(ArenaError::Exhausted { requested: 80, remaining: 64 });
        let text = error.to_string();
        // The tables come first, and only they tell what else is needed.
        assert!(text.contains("give it at least 16 bytes more, or `reset` it"), "{text}");
        assert_eq!(text.contains("Network::arena_bytes"), cfg!(feature = "alloc"), "{text}");
    }
}
