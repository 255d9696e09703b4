//! Element types and shapes.

use core::fmt;

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// IEEE-754 binary32.
    F32,
    /// Signed 8-bit integer, quantized with a scale and a zero point.
    I8,
    /// Signed 32-bit integer: the biases of quantized layers.
    I32,
}

impl DType {
    /// Size of one element in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::F32 | Self::I32 => 4,
            Self::I8 => 1,
        }
    }

    /// The name used in messages: `float32`, `int8`, `int32`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::I8 => "int8",
            Self::I32 => "int32",
        }
    }
}

/// Up to four dimensions, outermost first: `[h, w, c]` for a map (NHWC without the batch),
/// `[rows, features]` for a matrix, `[n]` for a vector.
///
/// A `Shape` can only be made of non-zero dimensions whose product fits `u32`, so element counts and
/// byte sizes of a shape never overflow 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    rank: u8,
    dims: [u32; 4],
}

impl Shape {
    /// A shape of one to four non-zero dimensions whose product fits `u32`.
    #[must_use]
    pub const fn new(dims: &[u32]) -> Option<Self> {
        if dims.is_empty() || dims.len() > 4 {
            return None;
        }
        let mut kept = [0; 4];
        let mut product = 1u64;
        let mut i = 0;
        while i < dims.len() {
            product *= dims[i] as u64;
            if product == 0 || product > u32::MAX as u64 {
                return None;
            }
            kept[i] = dims[i];
            i += 1;
        }
        Some(Self { rank: dims.len() as u8, dims: kept })
    }

    /// The dimensions, outermost first.
    #[must_use]
    pub const fn dims(&self) -> &[u32] {
        self.dims.split_at(self.rank as usize).0
    }

    /// Number of elements.
    #[must_use]
    pub const fn elements(&self) -> usize {
        let mut product = 1;
        let mut i = 0;
        while i < self.rank as usize {
            product *= self.dims[i] as usize;
            i += 1;
        }
        product
    }

    /// Height, width and channels, if this is a map.
    #[must_use]
    pub const fn as_map(&self) -> Option<(usize, usize, usize)> {
        if self.rank == 3 {
            Some((self.dims[0] as usize, self.dims[1] as usize, self.dims[2] as usize))
        } else {
            None
        }
    }
}

/// Writes `28×28×1`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, dim) in self.dims().iter().enumerate() {
            if i > 0 {
                f.write_str("×")?;
            }
            write!(f, "{dim}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn overflowing_and_empty_shapes_cannot_be_made() {
        assert_eq!(Shape::new(&[]), None);
        assert_eq!(Shape::new(&[1, 2, 3, 4, 5]), None);
        assert_eq!(Shape::new(&[3, 0]), None);
        // 65537 × 65536 wraps 32 bits to 65536.
        assert_eq!(Shape::new(&[65537, 65536]), None);
        assert_eq!(Shape::new(&[u32::MAX, u32::MAX, u32::MAX, u32::MAX]), None);
        assert_eq!(Shape::new(&[65535, 65537]).map(|s| s.elements()), Some(0xffff_ffff));
    }

    #[test]
    fn a_map_reads_as_height_width_channels() {
        let map = Shape::new(&[28, 14, 3]).unwrap();
        assert_eq!(map.as_map(), Some((28, 14, 3)));
        assert_eq!(map.to_string(), "28×14×3");
        assert_eq!(Shape::new(&[7]).unwrap().as_map(), None);
    }
}
