//! Memory for activations: [`Arena`], sized at compile time, and [`Bump`], handed out at run time.

mod bump;
mod fixed;

pub use bump::{ArenaError, Bump, DEFAULT_CAPACITY};
pub use fixed::{Arena, Base, Element, Read, Region, Span, Write};
