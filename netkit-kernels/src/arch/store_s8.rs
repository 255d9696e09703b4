//! From sums to outputs: rescaled, narrowed and stored, four vectors at a time.

use crate::simd_s8::SimdS8;
use netkit_core::pack::PANEL;
use netkit_core::quant::{Multiplier, OutputStage};

/// What turns the sums of `V` vectors of channels into outputs.
#[derive(Clone, Copy)]
pub(crate) struct Channels<S: SimdS8, const V: usize> {
    scales: [S::Scales; V],
    /// Channels to store.
    count: usize,
    stage: OutputStage,
}

impl<S: SimdS8, const V: usize> Channels<S, V> {
    /// For the channels of `multipliers`, at most `V · LANES`.
    #[inline(always)]
    pub(crate) fn new(simd: S, multipliers: &[Multiplier], stage: OutputStage) -> Self {
        const NONE: Multiplier = Multiplier { multiplier: 0, shift: 0 };
        let mut scales = [simd.scales(&[NONE; PANEL]); V];
        let mut chunks = multipliers.chunks(S::LANES);
        for to in &mut scales {
            let Some(chunk) = chunks.next() else { break };
            let mut lanes = [NONE; PANEL];
            for (to, from) in lanes.iter_mut().zip(chunk) {
                *to = *from;
            }
            *to = simd.scales(&lanes);
        }
        Self { scales, count: multipliers.len().min(V * S::LANES), stage }
    }

    /// Stores the outputs of `pixels` pixels whose sums are `[pixels][V · LANES]`, each pixel's channels
    /// `pitch` bytes after those of the one before. What does not fit the output is left out.
    ///
    /// The loop is not unrolled: a tile's worth of rescaling is kilobytes of code. It reads the sums
    /// from memory, which costs little beside it; where they end amid four vectors, the memory behind
    /// them is read, too.
    #[inline(always)]
    pub(crate) fn store(
        &self,
        simd: S,
        pixels: usize,
        sums: &[i32],
        output: &mut [i8],
        pitch: usize,
    ) {
        // Copies, which stores to the output cannot change: they stay in registers.
        let Self { scales, count, stage } = *self;
        let full = V * S::LANES;
        let len = pixels.saturating_sub(1).saturating_mul(pitch).saturating_add(full);
        let whole = count == full && output.len() >= len;
        let mut left = pixels * V;
        for (q, quad) in sums.chunks_exact(4 * S::LANES).enumerate() {
            if left == 0 {
                break;
            }
            let mut rescaled = [simd.splat(0); 4];
            for (i, to) in rescaled.iter_mut().enumerate() {
                // SAFETY: the chunk has 4 · LANES sums.
                let sums = unsafe { simd.load_sums(quad.as_ptr().wrapping_add(i * S::LANES)) };
                *to = simd.rescale(sums, &scales[i % V]);
            }
            let outputs = simd.narrow(rescaled, &stage);
            let (pixel, channel) = (4 * q / V, 4 * q % V * S::LANES);
            let at = pixel * pitch + channel;
            if whole {
                let to = output.as_mut_ptr().wrapping_add(at);
                // SAFETY: `whole`: the `full` outputs of `left` vectors' pixels lie in the slice.
                unsafe { store_quad::<S, V>(simd, to, pitch, left, outputs) };
            } else {
                let mut bytes = [0; 4 * PANEL];
                // SAFETY: the array holds four vectors of any set.
                unsafe { simd.store_outputs::<0, 4>(bytes.as_mut_ptr(), outputs) };
                let vectors = bytes.chunks_exact(S::LANES).take(left.min(4));
                for (i, bytes) in (4 * q..).zip(vectors) {
                    let start = i % V * S::LANES;
                    let len = count.saturating_sub(start).min(S::LANES);
                    let at = i / V * pitch + start;
                    copy_short(bytes.get(..len), output.get_mut(at..at + len));
                }
            }
            left = left.saturating_sub(4);
        }
    }
}

/// Stores the first `left` of four vectors of outputs: those of consecutive pixels, `V` each.
///
/// # Safety
/// `to` is valid for writing the outputs of that many pixels, each `pitch` bytes after the one before.
#[inline(always)]
unsafe fn store_quad<S: SimdS8, const V: usize>(
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
fn copy_short(from: Option<&[i8]>, to: Option<&mut [i8]>) {
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
