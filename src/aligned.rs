//! Constant bytes on a boundary, and typed views of them: the one place that casts.
//!
//! Weights reach the program as bytes: parts of a model file, or literals that the macro packed. An [`Aligned`]
//! holds them in a `static`, aligned for the kernels that read them where they lie.

use core::fmt;
use core::slice;

use netkit_core::quant::Multiplier;

/// Bytes whose first lies on a boundary given by `A`: [`Align16`] or [`Align64`].
///
/// ```
/// use netkit::aligned::{Align16, Aligned};
///
/// static WEIGHTS: Aligned<Align16, 8> = Aligned::new([0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]);
/// assert_eq!(WEIGHTS.as_f32(), [1.0, 2.0]);
/// ```
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Aligned<A, const BYTES: usize> {
    alignment: [A; 0],
    bytes: [u8; BYTES],
}

/// A boundary of 16 bytes: enough for every element type and for vector loads on microcontrollers.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
pub struct Align16;

/// A boundary of 64 bytes: a cache line, and the widest vector.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Align64;

/// [`Align16`] and [`Align64`].
pub trait Alignment: sealed::Sealed + Copy + 'static {}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for Align16 {}
impl sealed::Sealed for Align64 {}
impl Alignment for Align16 {}
impl Alignment for Align64 {}

impl<A: Alignment, const BYTES: usize> Aligned<A, BYTES> {
    /// The given bytes.
    #[must_use]
    pub const fn new(bytes: [u8; BYTES]) -> Self {
        Self { alignment: [], bytes }
    }

    /// A copy of the bytes that `bytes` points at. For initialisers of statics: the original does not reach the
    /// binary.
    #[must_use]
    pub const fn copy_of(bytes: &[u8; BYTES]) -> Self {
        Self::new(*bytes)
    }

    /// A copy of the `BYTES` bytes from `start`. For initialisers of statics: the rest does not reach the binary.
    ///
    /// # Panics
    ///
    /// Where `whole` ends before that: in an initialiser, a compile error.
    #[must_use]
    #[track_caller]
    pub const fn part_of(whole: &[u8], start: usize) -> Self {
        assert!(start <= whole.len(), "the part starts behind the end");
        match whole.split_at(start).1.first_chunk() {
            Some(bytes) => Self::copy_of(bytes),
            None => panic!("the part ends behind the end"),
        }
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; BYTES] {
        &self.bytes
    }

    /// The bytes as little-endian floats; a rest of fewer than 4 bytes is left out.
    #[must_use]
    pub const fn as_f32(&self) -> &[f32] {
        let start = self.bytes.as_ptr().cast::<f32>();
        // SAFETY: `alignment` puts `bytes`, the only field with a size, on a boundary of 16 bytes or more, and
        // `BYTES / 4` floats from there lie inside it. Every pattern of bits is a float.
        unsafe { slice::from_raw_parts(start, BYTES / size_of::<f32>()) }
    }

    /// The bytes as 8-bit integers.
    #[must_use]
    pub const fn as_i8(&self) -> &[i8] {
        let start = self.bytes.as_ptr().cast::<i8>();
        // SAFETY: `i8` has the size and alignment of `u8`, and every pattern of bits is one.
        unsafe { slice::from_raw_parts(start, BYTES) }
    }

    /// The bytes as little-endian 32-bit integers; a rest of fewer than 4 bytes is left out.
    #[must_use]
    pub const fn as_i32(&self) -> &[i32] {
        let start = self.bytes.as_ptr().cast::<i32>();
        // SAFETY: as in `as_f32`; every pattern of bits is an integer.
        unsafe { slice::from_raw_parts(start, BYTES / size_of::<i32>()) }
    }

    /// The bytes as fixed-point factors, each a multiplier and a shift of 4 bytes; a rest of fewer than 8 bytes is
    /// left out.
    #[must_use]
    pub const fn as_multipliers(&self) -> &[Multiplier] {
        const { assert!(size_of::<Multiplier>() == 8 && align_of::<Multiplier>() <= 16) }
        let start = self.bytes.as_ptr().cast::<Multiplier>();
        // SAFETY: as in `as_f32`; a `Multiplier` is `repr(C)` and two integers, so it has no padding, and every
        // pattern of bits is one.
        unsafe { slice::from_raw_parts(start, BYTES / size_of::<Multiplier>()) }
    }
}

impl<A, const BYTES: usize> fmt::Debug for Aligned<A, BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alignment = align_of::<A>();
        f.debug_struct("Aligned").field("bytes", &BYTES).field("alignment", &alignment).finish()
    }
}

/// The bytes as an array of little-endian floats; `None` where they are not aligned or of another length.
pub(crate) fn as_f32_array<const LEN: usize>(bytes: &[u8]) -> Option<&[f32; LEN]> {
    bytemuck::try_cast_slice(bytes).ok()?.try_into().ok()
}

/// The bytes as an array of 8-bit integers; `None` where they are of another length.
pub(crate) fn as_i8_array<const LEN: usize>(bytes: &[u8]) -> Option<&[i8; LEN]> {
    bytemuck::must_cast_slice(bytes).try_into().ok()
}

/// The memory of floats as 8-bit integers.
pub(crate) fn as_i8_mut(floats: &mut [f32]) -> &mut [i8] {
    bytemuck::must_cast_slice_mut(floats)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pitfall B31: embedded bytes are aligned by their type, not by luck.
    #[test]
    fn b31_parts_are_aligned_whatever_their_place() {
        static FILE: [u8; 100] = {
            let mut bytes = [0; 100];
            let mut i = 0;
            while i < 100 {
                bytes[i] = i as u8;
                i += 1;
            }
            bytes
        };
        static PART: Aligned<Align16, 13> = Aligned::part_of(&FILE, 7);
        static WIDE: Aligned<Align64, 93> = Aligned::part_of(&FILE, 7);
        assert_eq!(PART.as_bytes(), &FILE[7..20]);
        assert_eq!(PART.as_bytes().as_ptr().addr() % 16, 0);
        assert_eq!(WIDE.as_bytes().as_ptr().addr() % 64, 0);
        assert_eq!(PART.as_i8()[12], 19);
        assert_eq!(PART.as_f32().len(), 3);
        assert_eq!(PART.as_i32()[2], i32::from_le_bytes([15, 16, 17, 18]));
        assert_eq!(
            PART.as_multipliers(),
            [Multiplier {
                multiplier: i32::from_le_bytes([7, 8, 9, 10]),
                shift: i32::from_le_bytes([11, 12, 13, 14]),
            }]
        );
    }

    #[test]
    #[should_panic(expected = "behind the end")]
    fn a_part_beyond_the_end_is_refused() {
        let _ = Aligned::<Align16, 4>::part_of(&[0; 8], 5);
    }

    #[test]
    #[should_panic(expected = "behind the end")]
    fn a_start_beyond_the_end_is_refused() {
        let _ = Aligned::<Align16, 0>::part_of(&[0; 8], 9);
    }
}
