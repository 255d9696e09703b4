//! Models on the heap without a detour over the stack.

use alloc::alloc::{alloc_zeroed, handle_alloc_error};
use alloc::boxed::Box;
use core::alloc::Layout;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::slice;

/// A type with a value that is all zeros.
///
/// Safe to implement with any value: [`boxed`] looks at its bytes when it is compiled.
pub trait Zero: Sized {
    /// The value.
    const ZERO: Self;
}

/// [`Zero::ZERO`] on the heap, in memory that the allocator hands out zeroed: no copy of the value ever exists
/// elsewhere, also without optimisation. Does not compile where a byte of the value is not zero.
#[must_use]
pub fn boxed<T: Zero>() -> Box<T> {
    const {
        let zero = ManuallyDrop::new(T::ZERO);
        assert!(is_zero(&zero), "the value is not all zeros");
    }
    let memory = zeroed::<T>();
    // SAFETY: the memory is as the global allocator gives it for the layout of `T`, and its bytes are those of
    // `T::ZERO`: all initialised and zero, as asserted above. Equal bytes without provenance are the same value.
    unsafe { Box::from_raw(memory.as_ptr()) }
}

/// Zeroed memory as a box of `T` owns it.
fn zeroed<T>() -> NonNull<T> {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        return NonNull::dangling();
    }
    // SAFETY: the layout has a size.
    let memory = unsafe { alloc_zeroed(layout) };
    NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// What [`is_zero`] looks at in one round. The interpreter that runs it counts branches and gives up at two million, so
/// a round covers many bytes without any.
#[repr(C, packed)]
struct Block([u128; 32]);

/// Whether every byte of a value is zero. Padding, which has no value, and pointers fail to compile: this runs in
/// constants only.
const fn is_zero<T>(value: &T) -> bool {
    let start = ptr::from_ref(value).cast::<u8>();
    let count = size_of::<T>() / size_of::<Block>();
    // SAFETY: a block needs no alignment, and `count` of them lie inside the value. If one has bytes that are not
    // initialised, compilation ends where they are looked at.
    let blocks = unsafe { slice::from_raw_parts(start.cast::<Block>(), count) };
    let mut index = 0;
    while index < count {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, rest @ ..] = blocks[index].0;
        let [q, r, s, t, u, v, w, x, y, z, aa, bb, cc, dd, ee, ff] = rest;
        let left = a | b | c | d | e | f | g | h | i | j | k | l | m | n | o | p;
        let right = q | r | s | t | u | v | w | x | y | z | aa | bb | cc | dd | ee | ff;
        if left | right != 0 {
            return false;
        }
        index += 1;
    }
    // SAFETY: the whole value, as bytes, under the same condition.
    let bytes = unsafe { slice::from_raw_parts(start, size_of::<T>()) };
    let mut index = count * size_of::<Block>();
    while index < bytes.len() {
        if bytes[index] != 0 {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Large([u8; 64 << 20]);

    impl Zero for Large {
        const ZERO: Self = Self([0; 64 << 20]);
    }

    /// The value is far larger than the stack of a test's thread.
    /// Pitfall B32: large arrays travel over the stack.
    #[test]
    fn b32_a_large_value_does_not_touch_the_stack() {
        let large = boxed::<Large>();
        assert_eq!(large.0.len(), 64 << 20);
        assert_eq!((large.0[0], large.0[(64 << 20) - 1]), (0, 0));
    }

    #[test]
    fn an_empty_value_needs_no_memory() {
        struct Empty;
        impl Zero for Empty {
            const ZERO: Self = Self;
        }
        let _: Box<Empty> = boxed();
    }

    #[test]
    fn zero_is_told_from_not_zero() {
        const {
            assert!(is_zero(&[0u8; 1000]));
            let mut bytes = [0u8; 1000];
            bytes[999] = 1;
            assert!(!is_zero(&bytes));
            bytes[999] = 0;
            bytes[255] = 1;
            assert!(!is_zero(&bytes));
            assert!(!is_zero(&1u16));
        }
    }
}
