//! A bump arena over memory the caller owns: pointer bumps, bulk reset, nothing hidden.
//!
//! [`Bump::alloc`] borrows the arena and [`Bump::reset`] borrows it mutably, so the compiler refuses a
//! program that uses memory after a reset:
//!
//! ```compile_fail,E0502
//! let mut memory = [0u8; 1024];
//! let mut arena = netkit::arena::Bump::init(&mut memory);
//! let block = arena.alloc(16, 4).unwrap();
//! arena.reset();
//! block[0] = 1; // error: `arena` is still borrowed
//! ```

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// Arena bytes to start from where nothing better is known: 64 KiB on microcontrollers (32-bit targets
/// without an operating system), 64 MiB on hosts.
pub const DEFAULT_CAPACITY: usize =
    if cfg!(target_os = "none") { 64 * 1024 } else { 64 * 1024 * 1024 };

/// Why memory could not be had.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ArenaError {
    /// The arena has too little room left. Arenas never grow.
    Exhausted {
        /// Bytes asked for, alignment padding included.
        requested: usize,
        /// Bytes left.
        remaining: usize,
    },
    /// An alignment that is not a power of two.
    Alignment(usize),
    /// A size that does not fit the address space.
    Overflow,
    /// The system refused the one allocation of a heap-backed arena.
    #[cfg(feature = "alloc")]
    OutOfMemory {
        /// Bytes asked for.
        requested: usize,
    },
}

impl fmt::Display for ArenaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted { requested, remaining } => write!(
                f,
                "the arena has {remaining} bytes left but at least {requested} are needed; give it at least {} \
                 bytes more, or `reset` it if what it holds is used no more",
                requested - remaining
            ),
            Self::Alignment(alignment) => {
                write!(f, "alignment {alignment} is not a power of two")
            }
            Self::Overflow => f.write_str("the size does not fit the address space"),
            #[cfg(feature = "alloc")]
            Self::OutOfMemory { requested } => {
                write!(f, "the system has no {requested} bytes for an arena; ask for less")
            }
        }
    }
}

impl core::error::Error for ArenaError {}
crate::error::debug_is_display!(ArenaError);

/// A bump arena over a caller's buffer, or over one heap allocation ([`Bump::heap`]).
///
/// Memory handed out is never given back one by one; [`reset`](Self::reset) takes all of it back. What
/// an allocation holds at first is whatever the buffer held.
pub struct Bump<'m> {
    base: NonNull<u8>,
    capacity: usize,
    used: Cell<usize>,
    high_water: Cell<usize>,
    /// Whether `base` is this arena's own heap allocation.
    #[cfg(feature = "alloc")]
    owned: bool,
    memory: PhantomData<&'m mut [u8]>,
}

// SAFETY: an arena is the exclusive owner of its memory, like the `&mut [u8]` it was made of; only its
// counters have interior mutability, and those move with it. It is not `Sync`.
unsafe impl Send for Bump<'_> {}

impl<'m> Bump<'m> {
    /// An empty arena over `memory`, which may be on the stack, in a `static` or anywhere else.
    #[must_use]
    pub fn init(memory: &'m mut [u8]) -> Self {
        let capacity = memory.len();
        let base = NonNull::from(memory).cast();
        Self {
            base,
            capacity,
            used: Cell::new(0),
            high_water: Cell::new(0),
            #[cfg(feature = "alloc")]
            owned: false,
            memory: PhantomData,
        }
    }

    /// Takes `size` bytes whose address is a multiple of `alignment`, padding before them if needed.
    ///
    /// # Errors
    ///
    /// When `alignment` is not a power of two or too little room is left; nothing is taken then.
    #[expect(clippy::mut_from_ref, reason = "each call hands out memory no other call does")]
    pub fn alloc(&self, size: usize, alignment: usize) -> Result<&mut [u8], ArenaError> {
        if !alignment.is_power_of_two() {
            return Err(ArenaError::Alignment(alignment));
        }
        let used = self.used.get();
        let address = self.base.addr().get().wrapping_add(used);
        let padding = address.wrapping_neg() & (alignment - 1);
        let requested = padding.checked_add(size).ok_or(ArenaError::Overflow)?;
        let remaining = self.capacity - used;
        if requested > remaining {
            return Err(ArenaError::Exhausted { requested, remaining });
        }
        self.used.set(used + requested);
        self.high_water.set(self.high_water.get().max(used + requested));
        // SAFETY: used + padding <= used + requested <= capacity, so the offset stays in the buffer
        // that `base` was made of.
        let start = unsafe { self.base.add(used + padding) };
        // SAFETY: the `size` bytes from `start` end at used + requested <= capacity; they are
        // initialised (a `&mut [u8]` or zeroed heap memory); `used` only moves forward while `self` is
        // borrowed, so no other slice covers them.
        Ok(unsafe { core::slice::from_raw_parts_mut(start.as_ptr(), size) })
    }

    /// Takes room for `len` elements and makes each a copy of `value`.
    ///
    /// `T` is `Copy`, so there is nothing to drop at a reset.
    ///
    /// # Errors
    ///
    /// When too little room is left.
    #[expect(clippy::mut_from_ref, reason = "each call hands out memory no other call does")]
    pub fn alloc_slice<T: Copy>(&self, len: usize, value: T) -> Result<&mut [T], ArenaError> {
        let size = len.checked_mul(size_of::<T>()).ok_or(ArenaError::Overflow)?;
        let first = self.alloc(size, align_of::<T>())?.as_mut_ptr().cast::<T>();
        for index in 0..len {
            // SAFETY: index < len and the allocation has room for len elements.
            let element = unsafe { first.add(index) };
            // SAFETY: `element` is in the allocation, aligned for T because `first` is.
            unsafe { element.write(value) };
        }
        // SAFETY: all len elements were just written; the memory is this call's alone.
        Ok(unsafe { core::slice::from_raw_parts_mut(first, len) })
    }

    /// Takes everything back. Impossible while anything allocated is still borrowed.
    pub fn reset(&mut self) {
        self.used.set(0);
    }

    /// Bytes handed out since the last reset, alignment padding included.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Bytes left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.capacity - self.used.get()
    }

    /// Bytes in all.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The most bytes that were ever handed out at once; a reset does not lower it.
    #[must_use]
    pub fn high_water(&self) -> usize {
        self.high_water.get()
    }
}

#[cfg(feature = "alloc")]
mod heap {
    extern crate alloc;
    use super::{ArenaError, Bump};
    use alloc::alloc::{Layout, alloc_zeroed, dealloc};
    use core::cell::Cell;
    use core::marker::PhantomData;
    use core::ptr::NonNull;

    /// A cache line, so that large buffers need no padding.
    const ALIGNMENT: usize = 64;

    impl Bump<'static> {
        /// An arena of `capacity` bytes on the heap: one zeroed allocation, made here, and none after.
        ///
        /// # Errors
        ///
        /// When the system refuses.
        pub fn heap(capacity: usize) -> Result<Self, ArenaError> {
            let requested = capacity.max(1);
            let out_of_memory = ArenaError::OutOfMemory { requested };
            let layout =
                Layout::from_size_align(requested, ALIGNMENT).map_err(|_| out_of_memory)?;
            // SAFETY: the layout's size is at least 1.
            let base = unsafe { alloc_zeroed(layout) };
            Ok(Self {
                base: NonNull::new(base).ok_or(out_of_memory)?,
                capacity,
                used: Cell::new(0),
                high_water: Cell::new(0),
                owned: true,
                memory: PhantomData,
            })
        }
    }

    impl Drop for Bump<'_> {
        fn drop(&mut self) {
            if self.owned
                && let Ok(layout) = Layout::from_size_align(self.capacity.max(1), ALIGNMENT)
            {
                // SAFETY: `heap` allocated this pointer with this very layout, and nothing borrows it
                // any more.
                unsafe { dealloc(self.base.as_ptr(), layout) };
            }
        }
    }
}

impl fmt::Debug for Bump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bump")
            .field("capacity", &self.capacity)
            .field("used", &self.used.get())
            .field("high_water", &self.high_water.get())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[repr(align(64))]
    struct Memory([u8; 256]);

    #[test]
    fn allocations_are_aligned_and_do_not_overlap() {
        let mut memory = Memory([0; 256]);
        let arena = Bump::init(&mut memory.0);
        let a = arena.alloc(3, 1).unwrap();
        let b = arena.alloc(8, 16).unwrap();
        let c = arena.alloc_slice(2, 0.0f32).unwrap();
        assert_eq!(b.as_ptr().addr() % 16, 0);
        a.fill(1);
        b.fill(2);
        c.fill(3.0);
        assert_eq!((&*a, &*b, &*c), (&[1; 3][..], &[2; 8][..], &[3.0; 2][..]));
        assert_eq!(arena.used(), 16 + 8 + 8);
        assert_eq!(arena.remaining(), 256 - 32);
    }

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let mut memory = Memory([0; 256]);
        let arena = Bump::init(&mut memory.0[1..]);
        assert_eq!(
            arena.alloc(255, 2).unwrap_err(),
            ArenaError::Exhausted { requested: 256, remaining: 255 }
        );
        assert_eq!(arena.alloc(1, 3).unwrap_err(), ArenaError::Alignment(3));
        assert_eq!(arena.alloc(1, 0).unwrap_err(), ArenaError::Alignment(0));
        assert_eq!(arena.alloc(usize::MAX, 2).unwrap_err(), ArenaError::Overflow);
        assert_eq!(arena.alloc_slice(usize::MAX / 4, 0u64).unwrap_err(), ArenaError::Overflow);
        assert_eq!(arena.used(), 0);
        assert!(arena.alloc(255, 1).is_ok());
        assert_eq!(arena.remaining(), 0);
        assert!(arena.alloc(0, 1).is_ok());
        assert!(arena.alloc(1, 1).is_err());
    }

    #[test]
    fn an_empty_buffer_is_an_arena_of_nothing() {
        let arena = Bump::init(&mut []);
        assert_eq!(arena.capacity(), 0);
        assert!(arena.alloc(0, 64).is_ok() || arena.used() == 0);
        assert!(arena.alloc(1, 1).is_err());
    }

    #[test]
    fn reset_reuses_memory_and_keeps_the_high_water_mark() {
        let mut memory = Memory([0; 256]);
        let mut arena = Bump::init(&mut memory.0);
        let first = arena.alloc(100, 4).unwrap().as_ptr().addr();
        arena.reset();
        assert_eq!((arena.used(), arena.high_water()), (0, 100));
        assert_eq!(arena.alloc_slice(3, 7u32).unwrap(), [7; 3]);
        assert_eq!((arena.used(), arena.high_water()), (12, 100));
        arena.reset();
        assert_eq!(arena.alloc(1, 1).unwrap().as_ptr().addr(), first);
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn a_heap_arena_is_zeroed_and_refuses_the_impossible() {
        let arena = Bump::heap(1000).unwrap();
        assert!(arena.alloc(1000, 64).unwrap().iter().all(|&byte| byte == 0));
        assert_eq!(
            Bump::heap(usize::MAX).unwrap_err(),
            ArenaError::OutOfMemory { requested: usize::MAX }
        );
        assert_eq!(Bump::heap(0).unwrap().capacity(), 0);
    }
}
