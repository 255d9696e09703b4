//! The int8 sum, four vectors at a time.

use crate::simd_s8::{SimdS8, moderate};
use netkit_core::pack::PANEL;
use netkit_core::quant::{AddStage, Multiplier};

/// One half: the factor of the input with the larger scale, and of both where the scales are equal.
const HALF: Multiplier = Multiplier { multiplier: 1 << 30, shift: 0 };

/// How an input is rescaled.
const ANY: u8 = 0;
/// Its factor is [`moderate`], and so are its fractions.
const MODERATE: u8 = 1;
/// Its factor is [`HALF`].
const HALVED: u8 = 2;

/// `output = left + right`, as far as all three reach.
#[inline(always)]
pub(crate) fn add<S: SimdS8>(
    simd: S,
    stage: &AddStage,
    left: &[i8],
    right: &[i8],
    output: &mut [i8],
) {
    // Fractions stay within 2^28, and their sum below 2^29, if zero points are those of bytes.
    let bytes = stage.input_zero_points.iter().all(|zero_point| (-128..=127).contains(zero_point));
    // Where code space is scarce, there is one loop for all.
    let usual = !S::READS_FILE_ORDER && bytes && moderate(stage.output_multiplier);
    let [left_scale, right_scale] = stage.input_multipliers;
    let swapped = AddStage {
        input_zero_points: [stage.input_zero_points[1], stage.input_zero_points[0]],
        input_multipliers: [right_scale, left_scale],
        ..*stage
    };
    match (left_scale == HALF, right_scale == HALF) {
        (true, true) if usual => {
            blocks::<S, HALVED, HALVED>(simd, stage, left, right, output);
        }
        (true, false) if usual && moderate(right_scale) => {
            blocks::<S, HALVED, MODERATE>(simd, stage, left, right, output);
        }
        (false, true) if usual && moderate(left_scale) => {
            blocks::<S, HALVED, MODERATE>(simd, &swapped, right, left, output);
        }
        _ => blocks::<S, ANY, ANY>(simd, stage, left, right, output),
    }
}

#[inline(always)]
fn blocks<S: SimdS8, const LEFT: u8, const RIGHT: u8>(
    simd: S,
    stage: &AddStage,
    left: &[i8],
    right: &[i8],
    output: &mut [i8],
) {
    let [left_scale, right_scale] = stage.input_multipliers;
    let scales = [
        simd.scales(&[left_scale; PANEL]),
        simd.scales(&[right_scale; PANEL]),
        simd.scales(&[stage.output_multiplier; PANEL]),
    ];
    let zero_points =
        [simd.splat(stage.input_zero_points[0]), simd.splat(stage.input_zero_points[1])];
    let step = 4 * S::LANES;
    let blocks = left.chunks(step).zip(right.chunks(step)).zip(output.chunks_mut(step));
    for ((left, right), output) in blocks {
        // The last block goes through arrays, so that whole vectors can be read and written.
        let mut tail = [[0; 4 * PANEL]; 3];
        let len = output.len().min(left.len()).min(right.len());
        let whole = len == step;
        let (from, to) = if whole {
            ([left.as_ptr(), right.as_ptr()], output.as_mut_ptr())
        } else {
            let [l, r, o] = &mut tail;
            for (to, from) in l.iter_mut().zip(left) {
                *to = *from;
            }
            for (to, from) in r.iter_mut().zip(right) {
                *to = *from;
            }
            ([l.as_ptr(), r.as_ptr()], o.as_mut_ptr())
        };
        let mut sums = [simd.splat(0); 4];
        for (i, sum) in sums.iter_mut().enumerate() {
            let at = i * S::LANES;
            // SAFETY: both slices or arrays have 4 · LANES bytes.
            let l = unsafe { simd.load_fractions(from[0].wrapping_add(at), zero_points[0]) };
            // SAFETY: as above.
            let r = unsafe { simd.load_fractions(from[1].wrapping_add(at), zero_points[1]) };
            let l = rescale::<S, LEFT>(simd, l, &scales[0]);
            let r = rescale::<S, RIGHT>(simd, r, &scales[1]);
            let both = simd.add(l, r);
            *sum = if LEFT == ANY {
                simd.rescale::<false>(both, &scales[2])
            } else {
                simd.rescale::<true>(both, &scales[2])
            };
        }
        let outputs = simd.narrow(sums, &stage.output);
        // SAFETY: as above.
        unsafe { simd.store_outputs::<0, 4>(to, outputs) };
        if !whole {
            for (to, from) in output.iter_mut().zip(&tail[2]).take(len) {
                *to = *from;
            }
        }
    }
}

#[inline(always)]
fn rescale<S: SimdS8, const HOW: u8>(simd: S, fractions: S::Sums, scales: &S::Scales) -> S::Sums {
    match HOW {
        HALVED => simd.half(fractions, scales),
        MODERATE => simd.rescale::<true>(fractions, scales),
        _ => simd.rescale::<false>(fractions, scales),
    }
}
