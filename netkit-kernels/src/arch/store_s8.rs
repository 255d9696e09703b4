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

    /// Stores the outputs of pixels whose sums are `[pixels][V · LANES]`, each pixel's channels from
    /// `pitch` bytes after those of the one before. What does not fit the output is left out.
    ///
    /// The loop is not unrolled: a tile's worth of rescaling is kilobytes of code. It reads the sums
    /// from memory, which costs little beside it.
    #[inline(always)]
    pub(crate) fn store(&self, simd: S, sums: &[i32], output: &mut [i8], pitch: usize) {
        let full = V * S::LANES;
        let pixels = sums.len() / full;
        let len = pixels.saturating_sub(1).saturating_mul(pitch).saturating_add(full);
        let whole = self.count == full && output.len() >= len;
        for (q, quad) in sums.chunks(4 * S::LANES).enumerate() {
            let vectors = quad.len() / S::LANES;
            let mut rescaled = [simd.splat(0); 4];
            for (i, (to, sums)) in rescaled.iter_mut().zip(quad.chunks_exact(S::LANES)).enumerate()
            {
                // SAFETY: the chunk has LANES sums.
                let sums = unsafe { simd.load_sums(sums.as_ptr()) };
                *to = simd.rescale(sums, &self.scales[(4 * q + i) % V]);
            }
            let outputs = simd.narrow(rescaled, &self.stage);
            let first = 4 * q;
            if whole {
                let at = first / V * pitch + first % V * S::LANES;
                let to = output.as_mut_ptr().wrapping_add(at);
                match V {
                    // SAFETY: `whole`: the `full` outputs of each pixel lie in the slice.
                    4 | 8 => unsafe { simd.store_outputs::<0, 4>(to, outputs) },
                    2 => {
                        // SAFETY: as above.
                        unsafe { simd.store_outputs::<0, 2>(to, outputs) };
                        if vectors > 2 {
                            // SAFETY: as above, of the next pixel.
                            unsafe { simd.store_outputs::<2, 2>(to.wrapping_add(pitch), outputs) };
                        }
                    }
                    _ => {
                        // SAFETY: as above.
                        unsafe { simd.store_outputs::<0, 1>(to, outputs) };
                        if vectors > 1 {
                            let to = to.wrapping_add(pitch);
                            // SAFETY: as above, of the next pixel.
                            unsafe { simd.store_outputs::<1, 1>(to, outputs) };
                        }
                        if vectors > 2 {
                            let to = to.wrapping_add(2 * pitch);
                            // SAFETY: as above, of the pixel after it.
                            unsafe { simd.store_outputs::<2, 1>(to, outputs) };
                        }
                        if vectors > 3 {
                            let to = to.wrapping_add(3 * pitch);
                            // SAFETY: as above, of the last.
                            unsafe { simd.store_outputs::<3, 1>(to, outputs) };
                        }
                    }
                }
            } else {
                let mut bytes = [0; 4 * PANEL];
                // SAFETY: the array holds four vectors of any set.
                unsafe { simd.store_outputs::<0, 4>(bytes.as_mut_ptr(), outputs) };
                for (i, bytes) in (first..first + vectors).zip(bytes.chunks_exact(S::LANES)) {
                    let start = i % V * S::LANES;
                    let len = self.count.saturating_sub(start).min(S::LANES);
                    let at = i / V * pitch + start;
                    if let Some(to) = output.get_mut(at..at + len) {
                        to.copy_from_slice(bytes.get(..len).unwrap_or(&[]));
                    }
                }
            }
        }
    }
}
