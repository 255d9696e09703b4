//! The first 48 bytes (section 2): what kind of network, its input, and how large the other
//! sections are.

mod check;

use core::fmt;

use crate::tensor::Shape;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 48;
/// The first four bytes of every model file.
pub const MAGIC: [u8; 4] = *b"NKIT";
/// The most layer records a file may have.
pub const MAX_LAYERS: u32 = 100;
/// The most weight tensors, and the most bias tensors, a file may have.
pub const MAX_TENSORS: u32 = 128;

/// What kind of network a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetworkKind {
    /// Dense layers only; the input is `[rows, features]`.
    Mlp,
    /// Any layers; the input is `[height, width, channels]`.
    Cnn,
}

impl NetworkKind {
    /// The byte that stands for it.
    pub const fn code(self) -> u8 {
        match self {
            Self::Mlp => 1,
            Self::Cnn => 2,
        }
    }

    /// The kind that `code` stands for.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Mlp),
            2 => Some(Self::Cnn),
            _ => None,
        }
    }

    /// The number of input dimensions.
    pub const fn input_rank(self) -> u8 {
        match self {
            Self::Mlp => 2,
            Self::Cnn => 3,
        }
    }
}

impl fmt::Display for NetworkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mlp => "MLP",
            Self::Cnn => "CNN",
        })
    }
}

/// The flag bits of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// There are test cases.
    pub const CASES: u16 = 1;
    /// The model is quantized: a QUAN section is there, weights are int8 and biases int32.
    pub const QUANTIZED: u16 = 2;
    /// The inputs of the test cases are int8.
    pub const INT8_CASES: u16 = 4;

    /// Flags with these bits.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether there are test cases.
    pub const fn has_cases(self) -> bool {
        self.0 & Self::CASES != 0
    }

    /// Whether the model is quantized.
    pub const fn is_quantized(self) -> bool {
        self.0 & Self::QUANTIZED != 0
    }

    /// Whether the inputs of the test cases are int8.
    pub const fn has_int8_cases(self) -> bool {
        self.0 & Self::INT8_CASES != 0
    }
}

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The format version: 3 for float models, 4 for int8 models.
    pub version: u32,
    /// The kind of network.
    pub kind: NetworkKind,
    /// What is in the file besides layers and tensors.
    pub flags: Flags,
    /// The input: `[rows, features]` or `[height, width, channels]`.
    pub input: Shape,
    /// The number of layer records.
    pub layer_count: u32,
    /// The number of pairs of a weight and a bias tensor.
    pub pair_count: u32,
    /// The bytes of the weight payload, its padding included.
    pub weights_bytes: u32,
    /// The bytes of the bias payload.
    pub biases_bytes: u32,
}

impl Header {
    /// The input's dimensions, outermost first.
    pub const fn input_dims(&self) -> &[u32] {
        self.input.dims()
    }

    /// Whether the model computes in int8.
    pub const fn is_quantized(&self) -> bool {
        self.flags.is_quantized()
    }
}
