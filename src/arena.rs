//! Memory for activations: [`Bump`], handed out at run time. Compiled networks bring their own, sized at compile time.

mod bump;
mod fixed;

pub use bump::{ArenaError, Bump, DEFAULT_CAPACITY};
// For generated code.
#[doc(hidden)]
pub use fixed::{Arena, Base, Element, Read, Region, Span, Write};
