//! Reading little-endian bytes: a cursor whose every step is checked, and borrowed views of packed
//! numbers.
//!
//! Nothing in a model file is trusted to be aligned: an int8 test input shifts everything behind it
//! by 1 to 3 bytes. Numbers are therefore assembled from bytes, never cast.

use core::fmt;
use core::marker::PhantomData;

/// A cursor over the bytes of a file. A read past the end gives `None` and leaves the cursor where
/// it was.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// A cursor at the first of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// A cursor at `offset`, or `None` where that lies behind the end. At the end exactly is
    /// allowed.
    pub fn at(bytes: &'a [u8], offset: usize) -> Option<Self> {
        (offset <= bytes.len()).then_some(Self { bytes, offset })
    }

    /// The offset of the next byte from the start of the file.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// How many bytes are left.
    pub const fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// The next `count` bytes, borrowed from the file.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.offset.checked_add(count)?;
        let taken = self.bytes.get(self.offset..end)?;
        self.offset = end;
        Some(taken)
    }

    /// The next `N` bytes, copied.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// The next two bytes as an unsigned integer.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next four bytes as an unsigned integer.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next four bytes as a signed integer.
    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    /// The next four bytes as an IEEE-754 binary32.
    pub fn f32(&mut self) -> Option<f32> {
        self.array().map(f32::from_le_bytes)
    }
}

/// A number that a model file stores packed, little-endian.
pub trait Number: Copy + private::Sealed {
    /// Bytes of one value.
    const BYTES: usize;

    /// The value stored in the first [`BYTES`](Self::BYTES) of `bytes`, or `None` where there are
    /// fewer.
    fn read(bytes: &[u8]) -> Option<Self>;
}

mod private {
    pub trait Sealed {}
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl private::Sealed for $type {}
        impl Number for $type {
            const BYTES: usize = size_of::<$type>();

            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|chunk| <$type>::from_le_bytes(*chunk))
            }
        }
    )*};
}

number!(f32, i32, i8);

/// Numbers stored back to back in a file, at any alignment, read one at a time.
///
/// ```
/// use netkit_core::bytes::Packed;
///
/// let values = Packed::<f32>::new(&[0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]);
/// assert_eq!(values.len(), 2);
/// assert_eq!(values.get(1), Some(2.0));
/// assert!(values.iter().eq([1.0, 2.0]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Packed<'a, T> {
    bytes: &'a [u8],
    number: PhantomData<T>,
}

impl<'a, T: Number> Packed<'a, T> {
    /// A view of `bytes`. Bytes that do not make up a whole value at the end are left out.
    pub fn new(bytes: &'a [u8]) -> Self {
        let whole = bytes.len() - bytes.len() % T::BYTES;
        Self { bytes: bytes.get(..whole).unwrap_or(&[]), number: PhantomData }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / T::BYTES
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The value at `index`, or `None` behind the end.
    pub fn get(&self, index: usize) -> Option<T> {
        T::read(self.bytes.get(index.checked_mul(T::BYTES)?..)?)
    }

    /// The values in order.
    pub const fn iter(&self) -> Values<'a, T> {
        Values { rest: self.bytes, number: PhantomData }
    }

    /// The bytes that hold the values.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a, T: Number> IntoIterator for Packed<'a, T> {
    type Item = T;
    type IntoIter = Values<'a, T>;

    fn into_iter(self) -> Values<'a, T> {
        self.iter()
    }
}

/// The values of a [`Packed`], in order.
#[derive(Clone, Debug)]
pub struct Values<'a, T> {
    rest: &'a [u8],
    number: PhantomData<T>,
}

impl<T: Number> Iterator for Values<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let value = T::read(self.rest)?;
        self.rest = self.rest.get(T::BYTES..)?;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.rest.len() / T::BYTES;
        (count, Some(count))
    }
}

impl<T: Number> ExactSizeIterator for Values<'_, T> {}

impl<T: Number + fmt::Debug> fmt::Debug for Packed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Packed<'_, f32> {
    /// The index of the first value that is infinite or not a number.
    pub fn first_non_finite(&self) -> Option<usize> {
        // Such a value has an exponent of all ones, to which adding one carries into the bit above.
        // Four values at a time keep the scan of a large model cheap where nothing is optimised, as
        // in the macro of a debug build.
        const EXPONENTS: u128 = 0x7f80_0000_7f80_0000_7f80_0000_7f80_0000;
        const ONES: u128 = 0x0080_0000_0080_0000_0080_0000_0080_0000;
        const CARRIES: u128 = 0x8000_0000_8000_0000_8000_0000_8000_0000;
        let (fours, _) = self.bytes.as_chunks::<16>();
        let mut clean = 0;
        for four in fours {
            if ((u128::from_le_bytes(*four) & EXPONENTS) + ONES) & CARRIES != 0 {
                break;
            }
            clean += 4;
        }
        let rest = self.bytes.get(4 * clean..)?;
        let index = Packed::<f32>::new(rest).iter().position(|value| !value.is_finite())?;
        Some(clean + index)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_read_past_the_end_leaves_the_cursor() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u16(), Some(0x0201));
        assert_eq!(reader.u16(), None);
        assert_eq!(reader.offset(), 2);
        assert_eq!(reader.take(usize::MAX), None);
        assert_eq!(reader.u8(), Some(3));
        assert_eq!(reader.u8(), None);
        assert_eq!(reader.remaining(), 0);
    }

    #[test]
    fn a_cursor_starts_inside_or_at_the_end() {
        assert!(Reader::at(&[1, 2], 2).is_some());
        assert!(Reader::at(&[1, 2], 3).is_none());
    }

    #[test]
    fn values_are_read_at_any_alignment() {
        let mut bytes = [0_u8; 12];
        for shift in 0..4 {
            bytes[shift..shift + 4].copy_from_slice(&(-2.5_f32).to_le_bytes());
            bytes[shift + 4..shift + 8].copy_from_slice(&7.0_f32.to_le_bytes());
            let values = Packed::<f32>::new(&bytes[shift..shift + 8]);
            assert!(values.iter().eq([-2.5, 7.0]));
            assert_eq!(values.get(0), Some(-2.5));
            assert_eq!(values.get(2), None);
            assert_eq!(values.get(usize::MAX), None);
        }
        assert!(Packed::<i8>::new(&[0x80, 0x7f]).iter().eq([-128, 127]));
        assert_eq!(Packed::<i32>::new(&[0xff, 0xff, 0xff, 0xff, 9]).len(), 1);
    }

    #[test]
    fn non_finite_values_are_found_at_every_place() {
        let finite = [0.0, -0.0, f32::MAX, f32::MIN, 1.5, -1e-3, f32::MIN_POSITIVE / 2.0];
        for length in 0..13 {
            let mut values: Vec<f32> = finite.iter().copied().cycle().take(length).collect();
            let find = |values: &[f32]| {
                let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                Packed::<f32>::new(&bytes).first_non_finite()
            };
            assert_eq!(find(&values), None);
            for place in (0..length).rev() {
                for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    values[place] = bad;
                    assert_eq!(find(&values), Some(place), "{bad} at {place} of {length}");
                }
            }
        }
    }
}
