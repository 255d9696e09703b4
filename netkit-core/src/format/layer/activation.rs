//! The activations that a layer with weights can end in (section 4).

use core::fmt;

/// An activation function, applied after the bias (section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `x`
    #[default]
    None,
    /// `max(x, 0)`
    Relu,
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// `tanh x`
    Tanh,
    /// `x` above 0, `alpha · x` below
    LeakyRelu,
    /// `min(max(x, 0), 6)`
    Relu6,
    /// `e^(x - max) / Σ e^(x - max)` over all elements of the output
    Softmax,
}

impl Activation {
    /// Every activation, by its code.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Relu,
        Self::Sigmoid,
        Self::Tanh,
        Self::LeakyRelu,
        Self::Relu6,
        Self::Softmax,
    ];

    /// The byte that stands for it.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The activation that `code` stands for.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The name in the format's description.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Relu => "relu",
            Self::Sigmoid => "sigmoid",
            Self::Tanh => "tanh",
            Self::LeakyRelu => "leaky_relu",
            Self::Relu6 => "relu6",
            Self::Softmax => "softmax",
        }
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
