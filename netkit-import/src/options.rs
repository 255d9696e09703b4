//! What a user can say about a conversion.

/// What the source leaves open, and how the result should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The input's shape in the source's own order, for a source that leaves sizes open. A batch that
    /// is left open is 1 without it.
    pub input_shape: Option<Vec<usize>>,
}
