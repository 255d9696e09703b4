//! Why a model cannot be written.

use alloc::boxed::Box;
use core::fmt;

use crate::diag::{Diagnostic, Tensor};

/// Why a description cannot be written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WriteError {
    /// A tensor's shape has another number of elements than the tensor.
    ElementCount {
        /// Which tensor.
        tensor: Tensor,
        /// How many elements there are.
        found: usize,
        /// How many the shape has.
        expected: usize,
    },
    /// The input of a case is not of the model's type: int8 for quantized models, float for others.
    CaseType {
        /// Which case, from 0.
        case: usize,
    },
    /// A number is larger than the field that the format has for it.
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        found: u64,
        /// How large it may be.
        most: u64,
    },
    /// The file breaks a rule of the format.
    Rule(Box<Diagnostic>),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ElementCount { tensor, found, expected } => {
                write!(f, "{tensor} has {found} elements, its shape {expected}")
            }
            Self::CaseType { case } => {
                write!(f, "the input of test case {case} is not of the model's type")
            }
            Self::TooLarge { what, found, most } => {
                write!(f, "{what} is {found}, the format has room for {most}")
            }
            Self::Rule(diagnostic) => write!(f, "{diagnostic}"),
        }
    }
}

impl core::error::Error for WriteError {}
