//! The values that a diagnostic sets against each other.

use core::fmt;

use crate::format::LayerKind;

/// Up to four dimensions, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    rank: u8,
    dims: [u32; 4],
}

impl Dims {
    /// The first four of `dims`, outermost first.
    pub fn new(dims: &[u32]) -> Self {
        let mut kept = [0; 4];
        for (slot, dim) in kept.iter_mut().zip(dims) {
            *slot = *dim;
        }
        Self { rank: dims.len().min(4) as u8, dims: kept }
    }

    /// The dimensions, outermost first.
    pub fn as_slice(&self) -> &[u32] {
        self.dims.get(..usize::from(self.rank)).unwrap_or(&self.dims)
    }
}

/// `8×3×3×4`.
impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rank == 0 {
            return f.write_str("no dimensions");
        }
        for (axis, dim) in self.as_slice().iter().enumerate() {
            if axis > 0 {
                f.write_str("×")?;
            }
            write!(f, "{dim}")?;
        }
        Ok(())
    }
}

/// What the dimensions of a shape in a message are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axes {
    /// Output channels, height, width, input channels.
    Ohwi,
    /// Channels, height, width.
    Chw,
    /// Outputs, inputs.
    Oi,
    /// Height and width of an input with its padding.
    PaddedInput,
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ohwi => "OHWI",
            Self::Chw => "CHW",
            Self::Oi => "OI",
            Self::PaddedInput => "the padded input, or less",
        })
    }
}

/// A value in a message: something found in the file or expected there.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing to say.
    Nothing,
    /// A whole number.
    Integer(i64),
    /// A number of things, named in the singular: `Count(3, "channel")` reads `3 channels`.
    Count(u64, &'static str),
    /// A real number.
    Float(f32),
    /// Bits, shown in hexadecimal.
    Bits(u64),
    /// Four bytes that usually spell a name.
    Bytes([u8; 4]),
    /// A shape, outermost dimension first.
    Shape(Dims),
    /// A shape and the names of its axes: `8×3×3×4 (OHWI)`.
    ShapeAs(Dims, Axes),
    /// A layer kind.
    Kind(LayerKind),
    /// The scale and zero point of a quantized tensor.
    Affine(f32, i32),
    /// Any whole number from the first to the last, both included.
    Between(i64, i64),
    /// This much or more.
    AtLeast(i64),
    /// This much or less.
    AtMost(i64),
    /// Words.
    Text(&'static str),
}

impl Value {
    /// A whole number. What does not fit into 64 bits with a sign is shown as the largest that
    /// does.
    pub fn integer(value: impl TryInto<i64>) -> Self {
        Self::Integer(value.try_into().unwrap_or(i64::MAX))
    }

    /// A shape, outermost dimension first.
    pub fn shape(dims: &[u32]) -> Self {
        Self::Shape(Dims::new(dims))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Nothing => Ok(()),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Count(1, thing) => write!(f, "1 {thing}"),
            Self::Count(count, thing) => write!(f, "{count} {thing}s"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Bits(bits) => write!(f, "{bits:#06x}"),
            Self::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Shape(dims) => write!(f, "{dims}"),
            Self::ShapeAs(dims, axes) => write!(f, "{dims} ({axes})"),
            Self::Kind(kind) => write!(f, "{kind}"),
            Self::Affine(scale, zero_point) => {
                write!(f, "scale {scale:?} and zero point {zero_point}")
            }
            Self::Between(first, last) => write!(f, "{first} to {last}"),
            Self::AtLeast(least) => write!(f, "at least {least}"),
            Self::AtMost(most) => write!(f, "at most {most}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn values_read_as_text() {
        let cases: [(Value, &str); 13] = [
            (Value::Nothing, ""),
            (Value::integer(-3), "-3"),
            (Value::integer(u64::MAX), "9223372036854775807"),
            (Value::Count(1, "channel"), "1 channel"),
            (Value::Count(3, "channel"), "3 channels"),
            (Value::Float(f32::NAN), "NaN"),
            (Value::Float(0.01), "0.01"),
            (Value::Bits(0x18), "0x0018"),
            (Value::Bytes(*b"NK\x00\xff"), "\"NK\\x00\\xff\""),
            (Value::ShapeAs(Dims::new(&[8, 3, 3, 4]), Axes::Ohwi), "8×3×3×4 (OHWI)"),
            (Value::shape(&[]), "no dimensions"),
            (Value::Between(1, 4), "1 to 4"),
            (Value::Affine(0.5, -128), "scale 0.5 and zero point -128"),
        ];
        for (value, text) in cases {
            assert_eq!(value.to_string(), text);
        }
    }
}
