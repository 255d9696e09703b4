//! Where in a model a diagnostic points.

use core::fmt;

use crate::format::LayerKind;

/// A place in a model: a layer, a tensor or test case of it, and a byte of the file, as far as each
/// is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Site {
    /// The file layer, counted from 0 in execution order.
    pub layer: Option<u16>,
    /// What kind of layer that is.
    pub kind: Option<LayerKind>,
    /// A tensor, or the quantization record of a pair of them.
    pub tensor: Option<Tensor>,
    /// A test case, counted from 0.
    pub case: Option<u16>,
    /// A byte, counted from the start of the file.
    pub offset: Option<u64>,
}

/// A tensor of the file, by its place in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tensor {
    /// The weight tensor of a pair.
    Weight(u16),
    /// The bias tensor of a pair.
    Bias(u16),
    /// The quantization record of a pair.
    Quantization(u16),
}

impl Site {
    /// The file as a whole.
    pub const FILE: Self = Self { layer: None, kind: None, tensor: None, case: None, offset: None };

    /// A byte, counted from the start of the file.
    pub const fn byte(offset: u64) -> Self {
        Self { offset: Some(offset), ..Self::FILE }
    }

    /// A layer of a known kind.
    pub const fn layer(index: u16, kind: LayerKind) -> Self {
        Self { layer: Some(index), kind: Some(kind), ..Self::FILE }
    }

    /// The same place, at this byte.
    #[must_use]
    pub const fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// The same place, in this layer.
    #[must_use]
    pub const fn in_layer(mut self, index: u16, kind: Option<LayerKind>) -> Self {
        self.layer = Some(index);
        self.kind = kind;
        self
    }

    /// The same place, at this tensor.
    #[must_use]
    pub const fn tensor(mut self, tensor: Tensor) -> Self {
        self.tensor = Some(tensor);
        self
    }

    /// The same place, in this test case.
    #[must_use]
    pub const fn case(mut self, case: u16) -> Self {
        self.case = Some(case);
        self
    }

    /// Whether this names no part of the file in particular.
    pub fn is_whole_file(&self) -> bool {
        *self == Self::FILE
    }
}

/// `layer 3 (conv2d), weight tensor 2, byte 0x5c`.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(layer) = self.layer {
            write!(f, "layer {layer}")?;
            if let Some(kind) = self.kind {
                write!(f, " ({kind})")?;
            }
            separator = ", ";
        }
        if let Some(tensor) = self.tensor {
            write!(f, "{separator}{tensor}")?;
            separator = ", ";
        }
        if let Some(case) = self.case {
            write!(f, "{separator}test case {case}")?;
            separator = ", ";
        }
        if let Some(offset) = self.offset {
            write!(f, "{separator}byte {offset:#x}")?;
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("file") } else { Ok(()) }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weight(index) => write!(f, "weight tensor {index}"),
            Self::Bias(index) => write!(f, "bias tensor {index}"),
            Self::Quantization(index) => write!(f, "quantization record {index}"),
        }
    }
}
