//! From sums to outputs: rescaled, narrowed and stored, four vectors at a time.

use super::tile_s8::unrolled;
use crate::simd_s8::{KernelOn, NO_MULTIPLIER, SimdS8, moderate, moderate_start};
use netkit_core::pack::PANEL;
use netkit_core::quant::{Multiplier, OutputStage};

/// How sums are rescaled: what is known of them, the multipliers and the output stage. Numbers, which functions can have as
/// parameters: closures would not always be compiled into their callers.
pub(crate) const ANY: u8 = 0;
/// Every multiplier and sum is [`moderate`].
pub(crate) const MODERATE: u8 = 1;
/// They are, and what is below zero is clamped to zero, as by a ReLU.
pub(crate) const POSITIVE: u8 = 2;

/// What turns the sums of `V` vectors of channels into outputs.
#[derive(Clone, Copy)]
pub(crate) struct Channels<S: SimdS8, const V: usize> {
    pub(crate) scales: [S::Scales; V],
    pub(crate) how: u8,
    /// Channels to store.
    count: usize,
    pub(crate) stage: OutputStage,
}

impl<S: SimdS8, const V: usize> Channels<S, V> {
    /// For the channels of `multipliers`, at most `V · LANES`, whose sums add `taps` products to
    /// `start`.
    #[inline(always)]
    pub(crate) fn new(
        simd: S,
        multipliers: &[Multiplier],
        start: &[i32],
        taps: usize,
        stage: OutputStage,
    ) -> Self {
        // Four vectors are stored at once: those of a whole number of pixels.
        const { assert!(matches!(V, 1 | 2 | 4)) };
        let mut scales = [simd.scales(&[NO_MULTIPLIER; PANEL]); V];
        let mut rest = multipliers;
        for to in &mut scales {
            // Those of whole panels where they lie.
            let mut lanes = [NO_MULTIPLIER; PANEL];
            let from = rest.first_chunk().unwrap_or_else(|| {
                for (to, from) in lanes.iter_mut().zip(rest) {
                    *to = *from;
                }
                &lanes
            });
            *to = simd.scales(from);
            rest = rest.get(S::LANES..).unwrap_or(&[]);
        }
        let room = moderate_start(taps);
        let moderate = if S::TELLS_MODERATE && start.len() >= V * S::LANES {
            let mut all = true;
            unrolled!(v < V <= 4 {
                // SAFETY: `start` has V · LANES values.
                let sums = unsafe { simd.load_sums(start.as_ptr().wrapping_add(v * S::LANES)) };
                all &= simd.are_moderate(sums, &scales[v], room as i32);
            });
            all
        } else {
            // Without a way out of the middle, so that vectors do it.
            let moderate = multipliers.iter().fold(true, |all, &m| all & moderate(m));
            let start = start.get(..V * S::LANES).unwrap_or(start);
            start.iter().fold(moderate, |all, start| all & (start.unsigned_abs() < room))
        };
        let clamped = S::RESCALES_POSITIVE && i32::from(stage.low) >= stage.zero_point;
        Self {
            scales,
            how: match (moderate, clamped) {
                (false, _) => ANY,
                (true, false) => MODERATE,
                (true, true) => POSITIVE,
            },
            count: multipliers.len().min(V * S::LANES),
            stage,
        }
    }
}

impl<S: SimdS8, const V: usize> Channels<S, V> {
    /// Whether all `V` vectors are to be stored, and multipliers and sums are moderate.
    #[inline(always)]
    pub(crate) fn are_simple(&self) -> bool {
        self.how != ANY && self.count == V * S::LANES
    }
}

/// Stores the outputs of `pixels` pixels whose sums are `[pixels][V · LANES]`, each pixel's channels
/// `pitch` bytes after those of the one before. What does not fit the output is left out.
pub(crate) struct StoreS8<'a, S: SimdS8, const V: usize> {
    pub(crate) channels: &'a Channels<S, V>,
    pub(crate) pixels: usize,
    /// Where the sums end amid four vectors, what is behind them is read, too.
    pub(crate) sums: &'a [i32],
    pub(crate) output: &'a mut [i8],
    pub(crate) pitch: usize,
}

impl<S: SimdS8, const V: usize> KernelOn<S> for StoreS8<'_, S, V> {
    type Output = ();

    #[inline(always)]
    fn run_on(self, simd: S) {
        if !self.is_whole() {
            return simd.call(StorePart(self));
        }
        match self.channels.how {
            // SAFETY: they are whole.
            POSITIVE if S::RESCALES_POSITIVE => unsafe { self.store_whole::<POSITIVE>(simd) },
            ANY => simd.call(StoreAny(self)),
            // SAFETY: they are whole.
            _ => unsafe { self.store_whole::<MODERATE>(simd) },
        }
    }
}

impl<S: SimdS8, const V: usize> StoreS8<'_, S, V> {
    /// Whether all channels are to be stored, and sums and output have all that are.
    #[inline(always)]
    fn is_whole(&self) -> bool {
        let full = V * S::LANES;
        let before = self.pixels.saturating_sub(1).saturating_mul(self.pitch);
        let vectors = self.pixels.checked_mul(V).and_then(|sums| sums.checked_next_multiple_of(4));
        self.channels.count == full
            && self.output.len() >= before.saturating_add(full)
            && vectors
                .and_then(|vectors| vectors.checked_mul(S::LANES))
                .is_some_and(|len| len <= self.sums.len())
    }

    /// The loop is not unrolled: a tile's worth of rescaling is kilobytes of code. It reads the sums
    /// from memory, which costs little beside it.
    ///
    /// # Safety
    /// They [are whole](Self::is_whole).
    #[inline(always)]
    unsafe fn store_whole<const HOW: u8>(self, simd: S) {
        // Copies, which stores to the output cannot change: they stay in registers.
        let Channels { scales, stage, .. } = *self.channels;
        let (mut from, mut to) = (self.sums.as_ptr(), self.output.as_mut_ptr());
        let mut left = self.pixels * V;
        // Where a tile's sums are stored at once, the loop is unrolled, and it is known what is behind the last four.
        let apart = if S::STORES_EACH_TILE { left % 4 } else { 0 };
        while left > apart {
            // SAFETY: the caller vouches for the sums.
            let rescaled = unsafe { rescale_quad::<S, V, HOW>(simd, from, 4, &scales) };
            let outputs = simd.narrow(rescaled, &stage);
            // SAFETY: the caller vouches for the outputs of the pixels that are left.
            unsafe { store_quad::<S, V>(simd, to, self.pitch, left, outputs) };
            from = from.wrapping_add(4 * S::LANES);
            to = to.wrapping_add(4 / V * self.pitch);
            left = left.saturating_sub(4);
        }
        if apart > 0 {
            // SAFETY: as above.
            let rescaled = unsafe { rescale_quad::<S, V, HOW>(simd, from, apart, &scales) };
            let outputs = simd.narrow(rescaled, &stage);
            // SAFETY: as above.
            unsafe { store_quad::<S, V>(simd, to, self.pitch, apart, outputs) };
        }
    }
}

/// Rescaled sums.
#[inline(always)]
pub(super) fn rescale_as<S: SimdS8, const HOW: u8>(
    simd: S,
    sums: S::Sums,
    scales: &S::Scales,
) -> S::Sums {
    match HOW {
        POSITIVE => simd.rescale_positive(sums, scales),
        MODERATE => simd.rescale::<true>(sums, scales),
        _ => simd.rescale::<false>(sums, scales),
    }
}

/// The first `count` of four vectors of sums, rescaled; something else behind them.
///
/// # Safety
/// `from` is valid for reading that many vectors.
#[inline(always)]
pub(super) unsafe fn rescale_quad<S: SimdS8, const V: usize, const HOW: u8>(
    simd: S,
    from: *const i32,
    count: usize,
    scales: &[S::Scales; V],
) -> [S::Sums; 4] {
    let mut rescaled = [simd.splat(0); 4];
    unrolled!(i < 4 {
        if i < count {
            // SAFETY: the caller vouches for the sums.
            let sums = unsafe { simd.load_sums(from.wrapping_add(i * S::LANES)) };
            rescaled[i] = rescale_as::<S, HOW>(simd, sums, &scales[i % V]);
        }
    });
    rescaled
}

/// [`StoreS8`] of sums or multipliers that are rarely as they are. Apart, as below.
struct StoreAny<'a, S: SimdS8, const V: usize>(StoreS8<'a, S, V>);

impl<S: SimdS8, const V: usize> KernelOn<S> for StoreAny<'_, S, V> {
    type Output = ();

    #[inline(always)]
    fn run_on(self, simd: S) {
        if self.0.is_whole() {
            // SAFETY: they are whole.
            unsafe { self.0.store_whole::<ANY>(simd) }
        }
    }
}

/// [`StoreS8`] where the channels end amid a vector: through an array, as far as they and the output
/// go. Apart, lest the registers of the usual case are saved for it.
struct StorePart<'a, S: SimdS8, const V: usize>(StoreS8<'a, S, V>);

impl<S: SimdS8, const V: usize> KernelOn<S> for StorePart<'_, S, V> {
    type Output = ();

    #[inline(always)]
    fn run_on(self, simd: S) {
        let StoreS8 { channels, pixels, sums, output, pitch } = self.0;
        for (i, sums) in sums.chunks_exact(S::LANES).take(pixels.saturating_mul(V)).enumerate() {
            // SAFETY: the chunk has LANES sums.
            let sums = unsafe { simd.load_sums(sums.as_ptr()) };
            let rescaled = simd.rescale::<false>(sums, &channels.scales[i % V]);
            let outputs = simd.narrow([rescaled; 4], &channels.stage);
            let mut bytes = [0; 4 * PANEL];
            // SAFETY: the array holds a vector of any set.
            unsafe { simd.store_outputs::<0, 1>(bytes.as_mut_ptr(), outputs) };
            let start = i % V * S::LANES;
            let len = channels.count.saturating_sub(start).min(S::LANES);
            let at = i / V * pitch + start;
            copy_short(bytes.get(..len), output.get_mut(at..at + len));
        }
    }
}

/// Stores the first `left` of four vectors of outputs: those of consecutive pixels, `V` each.
///
/// # Safety
/// `to` is valid for writing the outputs of that many pixels, each `pitch` bytes after the one before.
#[inline(always)]
pub(super) unsafe fn store_quad<S: SimdS8, const V: usize>(
    simd: S,
    to: *mut i8,
    pitch: usize,
    left: usize,
    outputs: S::Outputs,
) {
    match V {
        // SAFETY: the caller vouches for four vectors of one pixel.
        4 => unsafe { simd.store_outputs::<0, 4>(to, outputs) },
        2 => {
            // SAFETY: the caller vouches for two vectors of the first pixel.
            unsafe { simd.store_outputs::<0, 2>(to, outputs) };
            if left > 2 {
                // SAFETY: there is a second pixel.
                unsafe { simd.store_outputs::<2, 2>(to.wrapping_add(pitch), outputs) };
            }
        }
        _ => {
            // SAFETY: the caller vouches for one vector of the first pixel.
            unsafe { simd.store_outputs::<0, 1>(to, outputs) };
            if left > 1 {
                // SAFETY: there is a second pixel.
                unsafe { simd.store_outputs::<1, 1>(to.wrapping_add(pitch), outputs) };
            }
            if left > 2 {
                // SAFETY: there is a third.
                unsafe { simd.store_outputs::<2, 1>(to.wrapping_add(2 * pitch), outputs) };
            }
            if left > 3 {
                // SAFETY: there is a fourth.
                unsafe { simd.store_outputs::<3, 1>(to.wrapping_add(3 * pitch), outputs) };
            }
        }
    }
}

/// Copies fewer than a vector's bytes, without the call that a copy of any length would be.
#[inline(always)]
pub(super) fn copy_short(from: Option<&[i8]>, to: Option<&mut [i8]>) {
    let (Some(from), Some(to)) = (from, to) else { return };
    let (from_eights, from) = from.as_chunks::<8>();
    let (to_eights, to) = to.as_chunks_mut::<8>();
    for (to, from) in to_eights.iter_mut().zip(from_eights) {
        *to = *from;
    }
    let (from_twos, from) = from.as_chunks::<2>();
    let (to_twos, to) = to.as_chunks_mut::<2>();
    for (to, from) in to_twos.iter_mut().zip(from_twos) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.first_mut(), from.first()) {
        *to = *from;
    }
}
