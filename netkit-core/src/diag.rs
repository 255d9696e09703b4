//! What is said about a model that cannot be used: the same words from the macro, the command line
//! and the loader.
//!
//! A [`Diagnostic`] is a [`Code`] (which rule was broken), a [`Site`] (where), and the two values
//! that disagree. It owns nothing and allocates nothing; [`Display`](core::fmt::Display) puts the
//! sentence together from the table in [`Code`]. Checks hand diagnostics to a [`Sink`] and carry on
//! where that makes sense, so that a build shows everything that is wrong with a model at once
//! while a device stops at the first.

mod code;
mod site;
mod value;

use core::fmt;
use core::ops::ControlFlow;

pub use code::Code;
pub use site::{Site, Tensor};
pub use value::{Axes, Dims, Value};

/// One broken rule: which, where, what was found and what was expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diagnostic {
    /// The rule.
    pub code: Code,
    /// Where in the model.
    pub site: Site,
    /// The part of the site that the rule is about, in the words of the format: `stride`, `alpha`,
    /// `version`.
    pub field: &'static str,
    /// What the file holds.
    pub found: Value,
    /// What it would have to hold.
    pub expected: Value,
}

impl Diagnostic {
    /// A report that `code` is broken at `site`. The values are [`Value::Nothing`] until given.
    pub const fn new(code: Code, site: Site) -> Self {
        Self { code, site, field: "", found: Value::Nothing, expected: Value::Nothing }
    }

    /// The same with the name of the field that the rule is about.
    #[must_use]
    pub const fn field(mut self, field: &'static str) -> Self {
        self.field = field;
        self
    }

    /// The same with what was found.
    #[must_use]
    pub const fn found(mut self, found: Value) -> Self {
        self.found = found;
        self
    }

    /// The same with what was expected.
    #[must_use]
    pub const fn expected(mut self, expected: Value) -> Self {
        self.expected = expected;
        self
    }

    /// What to do about it: the code's hint, or a closer one where what was found allows it.
    pub const fn hint(&self) -> &'static str {
        let closer = match (self.code, self.found, self.expected) {
            (Code::Magic, Value::Bytes(start), _) => code::hint_of_other_file(start),
            (Code::Trailing, _, Value::Bytes(_)) => Some(code::UNANNOUNCED_CASES),
            _ => None,
        };
        match closer {
            Some(hint) => hint,
            None => self.code.hint(),
        }
    }
}

/// The site and the sentence, without code and hint: `layer 3 (conv2d), byte 0x5c: stride is 0,
/// expected at least 1`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.site.is_whole_file() {
            write!(f, "{}: ", self.site)?;
        }
        code::write_message(self, f)
    }
}

impl core::error::Error for Diagnostic {}

/// Where diagnostics go.
pub trait Sink {
    /// Takes a diagnostic and says whether the check should look for more: [`ControlFlow::Break`]
    /// stops it.
    fn report(&mut self, diagnostic: Diagnostic) -> ControlFlow<()>;
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn report(&mut self, diagnostic: Diagnostic) -> ControlFlow<()> {
        (**self).report(diagnostic)
    }
}

/// A sink that keeps the first diagnostic and stops the check there. It needs no allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstError {
    first: Option<Diagnostic>,
}

impl FirstError {
    /// A sink that has seen nothing.
    pub const fn new() -> Self {
        Self { first: None }
    }

    /// The diagnostic, if there was one.
    pub const fn first(&self) -> Option<Diagnostic> {
        self.first
    }
}

impl Sink for FirstError {
    fn report(&mut self, diagnostic: Diagnostic) -> ControlFlow<()> {
        self.first.get_or_insert(diagnostic);
        ControlFlow::Break(())
    }
}

/// A sink that passes everything on to another and remembers whether there was anything.
///
/// A stage gives its result only when [`is_clean`](Self::is_clean), however far it carried on after
/// a report.
#[derive(Debug)]
pub struct Watched<S> {
    inner: S,
    reported: bool,
}

impl<S: Sink> Watched<S> {
    /// Watches what goes into `inner`.
    pub const fn new(inner: S) -> Self {
        Self { inner, reported: false }
    }

    /// Whether nothing has been reported so far.
    pub const fn is_clean(&self) -> bool {
        !self.reported
    }
}

impl<S: Sink> Sink for Watched<S> {
    fn report(&mut self, diagnostic: Diagnostic) -> ControlFlow<()> {
        self.reported = true;
        self.inner.report(diagnostic)
    }
}

/// A sink that keeps every diagnostic, in the order of the checks.
#[cfg(feature = "alloc")]
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    all: alloc::vec::Vec<Diagnostic>,
}

#[cfg(feature = "alloc")]
impl Diagnostics {
    /// A sink that has seen nothing.
    pub const fn new() -> Self {
        Self { all: alloc::vec::Vec::new() }
    }

    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Everything that was reported, in the order of the checks.
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.all
    }

    /// Everything that was reported, in the order of the checks.
    pub fn iter(&self) -> core::slice::Iter<'_, Diagnostic> {
        self.all.iter()
    }

    /// Everything that was reported, in the order of the checks.
    pub fn into_vec(self) -> alloc::vec::Vec<Diagnostic> {
        self.all
    }
}

#[cfg(feature = "alloc")]
impl Sink for Diagnostics {
    fn report(&mut self, diagnostic: Diagnostic) -> ControlFlow<()> {
        self.all.push(diagnostic);
        ControlFlow::Continue(())
    }
}
