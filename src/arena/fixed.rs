//! The memory a compiled network computes in: an arena whose size is part of its type, and typed views into it whose
//! places are part of theirs.
//!
//! Generated code knows every buffer's place at compile time, so the proofs that views stay inside the arena, are
//! aligned, and do not meet what is written at the same time are compile-time assertions. What is left at run time is
//! pointer arithmetic with constants: no check, no branch, no way to panic.

use core::fmt;
use core::marker::PhantomData;
use core::slice;

use netkit_core::plan::CACHE_LINE;

/// `BYTES` bytes on a cache line boundary, zero at first so that a `static` one takes no flash.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct Arena<const BYTES: usize> {
    bytes: [u8; BYTES],
}

const _: () = assert!(align_of::<Arena<0>>() == CACHE_LINE);

impl<const BYTES: usize> Arena<BYTES> {
    /// An arena of zeros.
    pub const ZERO: Self = Self { bytes: [0; BYTES] };

    /// The stretches `R` to read and `W` to write.
    ///
    /// Does not compile where one of them leaves the arena, is not aligned for its elements, or where one in `W`
    /// overlaps any other.
    #[inline(always)]
    pub fn views<R: Read, W: Write>(&mut self) -> (R::Views<'_>, W::Views<'_>) {
        const {
            assert!(all_inside(R::SPANS, BYTES), "a buffer to read leaves the arena");
            assert!(all_inside(W::SPANS, BYTES), "a buffer to write leaves the arena");
            assert!(apart(W::SPANS, R::SPANS), "a buffer is read and written by one step");
            assert!(apart_from_each_other(W::SPANS), "two buffers that one step writes overlap");
        }
        let base = Base { bytes: self.bytes.as_mut_ptr(), arena: PhantomData };
        (R::views(base), W::views(base))
    }
}

impl<const BYTES: usize> Default for Arena<BYTES> {
    fn default() -> Self {
        Self::ZERO
    }
}

impl<const BYTES: usize> fmt::Debug for Arena<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("bytes", &BYTES).finish()
    }
}

/// `LEN` elements of type `T`, `AT` bytes into an arena.
pub struct Region<T, const AT: usize, const LEN: usize>(PhantomData<T>);

/// What arenas hold: types for which every bit pattern is a value.
pub trait Element: sealed::Element + 'static {}

/// Regions that a step reads: a tuple of up to four.
pub trait Read: sealed::Regions {
    /// A shared slice for each.
    type Views<'a>
    where
        Self: 'a;

    #[doc(hidden)]
    fn views<'a>(base: Base<'a>) -> Self::Views<'a>
    where
        Self: 'a;
}

/// Regions that a step writes: a tuple of up to four.
pub trait Write: sealed::Regions {
    /// A mutable slice for each.
    type Views<'a>
    where
        Self: 'a;

    #[doc(hidden)]
    fn views<'a>(base: Base<'a>) -> Self::Views<'a>
    where
        Self: 'a;
}

/// Start of an arena that is borrowed mutably for `'a`.
///
/// Only [`Arena::views`] makes one, and only to give it to the two sets of regions it has proven to be inside the
/// arena and apart from each other.
#[derive(Clone, Copy)]
pub struct Base<'a> {
    bytes: *mut u8,
    arena: PhantomData<&'a mut [u8]>,
}

/// First byte and the one after the last.
#[derive(Clone, Copy)]
pub struct Span {
    start: usize,
    end: usize,
}

mod sealed {
    pub trait Element: Copy {}
    pub trait Regions {
        const SPANS: &'static [super::Span];
    }
}

macro_rules! elements {
    ($($element:ty),*) => { $(
        impl sealed::Element for $element {}
        impl Element for $element {}
    )* };
}
elements!(f32, i8, i32, u8);

impl<T: Element, const AT: usize, const LEN: usize> Region<T, AT, LEN> {
    /// Where it lies. Does not compile where it is not aligned or beyond the address space.
    const SPAN: Span = {
        assert!(AT.is_multiple_of(align_of::<T>()), "a buffer in the arena is not aligned");
        // An overflow here is a compile error as well.
        Span { start: AT, end: AT + LEN * size_of::<T>() }
    };

    #[inline(always)]
    fn view<'a>(base: Base<'a>) -> &'a [T] {
        let start = Self::start(base);
        // SAFETY: `start` is aligned and `LEN` elements from there lie inside the arena, initialised and, for every
        // pattern of bits, a value; for `'a` nobody writes to them, since `Arena::views` borrows the arena mutably
        // and has shown that the regions to write lie elsewhere.
        unsafe { slice::from_raw_parts(start, LEN) }
    }

    #[inline(always)]
    fn view_mut<'a>(base: Base<'a>) -> &'a mut [T] {
        let start = Self::start(base);
        // SAFETY: as in `view`, and no other region that is read or written for `'a` overlaps this one.
        unsafe { slice::from_raw_parts_mut(start, LEN) }
    }

    #[inline(always)]
    fn start(base: Base<'_>) -> *mut T {
        // SAFETY: `Arena::views` has shown that the region ends inside the arena, so its start is in bounds. The
        // arena is aligned to 64 bytes and `SPAN` asserts that `AT` is a multiple of the element's alignment.
        unsafe { base.bytes.add(Self::SPAN.start) }.cast()
    }
}

macro_rules! regions {
    ($($region:ident $at:ident $len:ident),*) => {
        impl<$($region: Element, const $at: usize, const $len: usize),*> sealed::Regions
            for ($(Region<$region, $at, $len>,)*)
        {
            const SPANS: &'static [Span] = &[$(Region::<$region, $at, $len>::SPAN),*];
        }

        impl<$($region: Element, const $at: usize, const $len: usize),*> Read
            for ($(Region<$region, $at, $len>,)*)
        {
            type Views<'a> = ($(&'a [$region],)*)
            where
                Self: 'a;

            #[inline(always)]
            #[allow(unused_variables, clippy::unused_unit, reason = "no regions, no views")]
            fn views<'a>(base: Base<'a>) -> Self::Views<'a>
            where
                Self: 'a,
            {
                ($(Region::<$region, $at, $len>::view(base),)*)
            }
        }

        impl<$($region: Element, const $at: usize, const $len: usize),*> Write
            for ($(Region<$region, $at, $len>,)*)
        {
            type Views<'a> = ($(&'a mut [$region],)*)
            where
                Self: 'a;

            #[inline(always)]
            #[allow(unused_variables, clippy::unused_unit, reason = "no regions, no views")]
            fn views<'a>(base: Base<'a>) -> Self::Views<'a>
            where
                Self: 'a,
            {
                ($(Region::<$region, $at, $len>::view_mut(base),)*)
            }
        }
    };
}

regions!();
regions!(A AT_A LEN_A);
regions!(A AT_A LEN_A, B AT_B LEN_B);
regions!(A AT_A LEN_A, B AT_B LEN_B, C AT_C LEN_C);
regions!(A AT_A LEN_A, B AT_B LEN_B, C AT_C LEN_C, D AT_D LEN_D);

const fn all_inside(spans: &[Span], bytes: usize) -> bool {
    let mut i = 0;
    while i < spans.len() {
        if spans[i].end > bytes {
            return false;
        }
        i += 1;
    }
    true
}

const fn apart(left: &[Span], right: &[Span]) -> bool {
    let mut i = 0;
    while i < left.len() {
        let mut j = 0;
        while j < right.len() {
            if !disjoint(left[i], right[j]) {
                return false;
            }
            j += 1;
        }
        i += 1;
    }
    true
}

const fn apart_from_each_other(spans: &[Span]) -> bool {
    let mut i = 0;
    while i < spans.len() {
        let (before, rest) = spans.split_at(i);
        if !apart(before, &[rest[0]]) {
            return false;
        }
        i += 1;
    }
    true
}

const fn disjoint(a: Span, b: Span) -> bool {
    a.end <= b.start || b.end <= a.start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_typed_disjoint_and_keep_what_is_written() {
        let mut arena = Arena::<128>::ZERO;
        {
            let ((), (floats, bytes)) =
                arena.views::<(), (Region<f32, 0, 8>, Region<i8, 35, 29>)>();
            floats.fill(1.5);
            bytes.fill(-3);
        }
        let ((floats, bytes, all), (rest,)) = arena.views::<(
            Region<f32, 4, 7>,
            Region<i8, 35, 29>,
            Region<u8, 0, 64>,
        ), (Region<i32, 64, 16>,)>();
        assert_eq!(floats, [1.5; 7]);
        assert_eq!(bytes, [-3; 29]);
        assert_eq!(all[32..35], [0; 3]);
        assert_eq!(rest, [0; 16]);
    }

    #[test]
    fn an_empty_region_overlaps_nothing() {
        let mut arena = Arena::<64>::ZERO;
        let ((read,), (write,)) = arena.views::<(Region<f32, 0, 16>,), (Region<f32, 64, 0>,)>();
        assert_eq!((read.len(), write.len()), (16, 0));
    }

    #[test]
    fn overlap_is_seen_from_either_side() {
        let span = |start, end| Span { start, end };
        assert!(!apart(&[span(0, 8)], &[span(7, 9)]));
        assert!(!apart(&[span(7, 9)], &[span(8, 16), span(0, 8)]));
        assert!(!apart(&[span(0, 64)], &[span(8, 16)]));
        assert!(apart(&[span(0, 8)], &[span(8, 16)]));
        assert!(!apart_from_each_other(&[span(0, 8), span(16, 24), span(4, 12)]));
        assert!(apart_from_each_other(&[span(0, 8), span(16, 24), span(8, 16)]));
        assert!(!all_inside(&[span(0, 65)], 64));
    }
}
