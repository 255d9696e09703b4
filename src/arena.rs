//! Memory for activations: [`Arena`], sized at compile time.

mod fixed;

pub use fixed::{Arena, Base, Element, Read, Region, Span, Write};
