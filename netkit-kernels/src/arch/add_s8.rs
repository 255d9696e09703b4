//! The int8 sum, four vectors at a time.

use crate::simd_s8::SimdS8;
use netkit_core::pack::PANEL;
use netkit_core::quant::AddStage;

/// `output = left + right`, as far as all three reach.
#[inline(always)]
pub(crate) fn add<S: SimdS8>(
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
            let (l, r) =
                (simd.rescale::<false>(l, &scales[0]), simd.rescale::<false>(r, &scales[1]));
            *sum = simd.rescale::<false>(simd.add(l, r), &scales[2]);
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
