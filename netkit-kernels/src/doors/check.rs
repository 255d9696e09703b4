//! What every door checks, and what happens if it fails.

use core::ops::Range;
use netkit_core::op::{Pool2d, Window};

/// Leaves the door unless the condition holds: with debug assertions by a panic that says what is
/// wrong, without them by returning, the output untouched. So a release build has no panic path, and
/// a door stays sound for any caller. `or` precedes what a function returns then that checks for a door.
macro_rules! require {
    (or $otherwise:expr, $condition:expr, $($message:tt)+) => {
        let holds = $condition;
        debug_assert!(holds, $($message)+);
        if !holds {
            return $otherwise;
        }
    };
    ($condition:expr, $($message:tt)+) => {
        require!(or (), $condition, $($message)+);
    };
}
pub(super) use require;

/// Whether a slice has exactly the product of the factors, which must not overflow.
#[inline]
pub(super) const fn has(len: usize, factors: &[usize]) -> bool {
    let mut product = 1usize;
    let mut i = 0;
    while i < factors.len() {
        product = match product.checked_mul(factors[i]) {
            Some(product) => product,
            None => return false,
        };
        i += 1;
    }
    len == product
}

/// Whether output rows are in order and exist.
#[inline]
pub(super) const fn rows_exist(rows: &Range<usize>, out_h: usize) -> bool {
    rows.start <= rows.end && rows.end <= out_h
}

/// Whether all that is computed from a window (positions of taps, extents) stays in range.
#[inline]
pub(crate) const fn window_is_sane(window: &Window) -> bool {
    window.is_computable()
}

/// Whether a pool reads the map of a convolution, whose channels are the product of these factors.
#[inline]
const fn is_pool_of(pool: &Pool2d, conv: &Window, channels: &[usize]) -> bool {
    let w = &pool.window;
    window_is_sane(w)
        && w.in_h == conv.out_h
        && w.in_w == conv.out_w
        && has(pool.channels, channels)
}

/// Whether `output_len` elements, not none, are rows `rows` of a pool as in [`is_pool_of`]; `door` is who asks.
#[inline]
pub(super) fn pools(
    door: &str,
    pool: &Pool2d,
    conv: &Window,
    channels: &[usize],
    rows: &Range<usize>,
    output_len: usize,
) -> bool {
    let p = &pool.window;
    require!(or false, is_pool_of(pool, conv, channels), "{door}: a pool of {pool:?} of {conv:?}");
    require!(or false, rows_exist(rows, p.out_h), "{door}: rows {rows:?} of {}", p.out_h);
    let outputs = [rows.len(), p.out_w, pool.channels];
    require!(or false, has(output_len, &outputs), "{door}: output length");
    // Of nothing there is nothing to compute, and the factors beside one that is 0 may be anything.
    output_len > 0
}

/// Scratch as floats; `None` if it is too short or not aligned to a float.
#[inline]
pub(super) fn floats(scratch: &mut [u8], bytes: usize) -> Option<&mut [f32]> {
    bytemuck::try_cast_slice_mut(scratch.get_mut(..bytes)?).ok()
}
