//! Weights in file order, a row for each output channel, as columns of sixteen channels: what packs panels at run time.
//!
//! The values are those of [`netkit_core::pack`], which packs beforehand, but for lanes past the last channel: nothing
//! reads them, and here they repeat it.

use super::tile_s8::unrolled;
use crate::simd::{Kernel, Simd};
use crate::simd_s8::{KernelS8, SimdS8};
use core::ops::Range;
use netkit_core::op::DepthwiseConv2d;
use netkit_core::pack::{
    GROUP, GROUP_BYTES, PANEL, RowGroups, Runs, pack_depthwise_conv2d_f32, pack_depthwise_panel_s8,
};

/// Transposes values of 32 bits, whatever they are.
pub(crate) trait Transpose: Copy {
    /// Columns that are transposed at once.
    const COLUMNS: usize = 4;

    /// [`COLUMNS`](Self::COLUMNS) values of sixteen rows, from `at` on: column `at + c` to `to + c · pitch` values.
    ///
    /// # Safety
    /// So many values can be read of each row, and sixteen written for each column. No alignment is asked.
    #[inline(always)]
    unsafe fn transpose(self, rows: &[*const u32; PANEL], at: usize, to: *mut u32, pitch: usize) {
        // SAFETY: the caller vouches for all columns.
        unsafe { transpose_one_by_one(rows, at..at + Self::COLUMNS, to, pitch) };
    }

    /// The first `columns` values of sixteen rows, fewer than [`COLUMNS`](Self::COLUMNS).
    ///
    /// # Safety
    /// As many values can be read of each row, and sixteen written for each.
    #[inline(always)]
    unsafe fn transpose_few(
        self,
        rows: &[*const u32; PANEL],
        columns: usize,
        to: *mut u32,
        pitch: usize,
    ) {
        // SAFETY: the caller vouches for all columns.
        unsafe { transpose_one_by_one(rows, 0..columns, to, pitch) };
    }
}

/// # Safety
/// Each row can be read at `columns`, and sixteen values written for each.
#[inline(always)]
unsafe fn transpose_one_by_one(
    rows: &[*const u32; PANEL],
    columns: Range<usize>,
    to: *mut u32,
    pitch: usize,
) {
    for (lane, row) in rows.iter().enumerate() {
        for (i, column) in columns.clone().enumerate() {
            // SAFETY: the caller vouches for the column in each row.
            let value = unsafe { row.wrapping_add(column).read_unaligned() };
            // SAFETY: the caller vouches for sixteen values of the column.
            unsafe { to.wrapping_add(i * pitch + lane).write_unaligned(value) };
        }
    }
}

/// The first `columns` values of sixteen rows.
///
/// # Safety
/// As many values can be read of each row, and sixteen written for each.
#[inline(always)]
unsafe fn transpose_all<S: Transpose>(
    simd: S,
    rows: &[*const u32; PANEL],
    columns: usize,
    to: *mut u32,
    pitch: usize,
) {
    if columns < S::COLUMNS {
        // SAFETY: the caller vouches for the columns.
        return unsafe { simd.transpose_few(rows, columns, to, pitch) };
    }
    let last = columns - S::COLUMNS;
    let mut at = 0;
    loop {
        // SAFETY: `at + COLUMNS ≤ columns`, for which the caller vouches.
        unsafe { simd.transpose(rows, at, to.wrapping_add(at * pitch), pitch) };
        if at == last {
            return;
        }
        // The last ones may have been there before: then they are written again.
        at = (at + S::COLUMNS).min(last);
    }
}

/// Rows `k` of a panel of a `[out, depth]` matrix, as
/// [`pack_panel_f32`](netkit_core::pack::pack_panel_f32).
pub(crate) struct PackPanelF32<'a> {
    pub(crate) weights: &'a [f32],
    pub(crate) depth: usize,
    /// From the panel's first channel to the layer's last.
    pub(crate) channels: Range<usize>,
    pub(crate) k: Range<usize>,
    pub(crate) scale: Option<&'a [f32]>,
    /// `[k.len()][16]`
    pub(crate) panel: &'a mut [f32],
}

impl Kernel for PackPanelF32<'_> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { weights, depth, channels, k, scale, panel } = self;
        let fits = channels.end.checked_mul(depth).is_some_and(|len| len <= weights.len())
            && !channels.is_empty()
            && k.start <= k.end
            && k.end <= depth
            && k.len().checked_mul(PANEL).is_some_and(|len| len <= panel.len())
            && scale.is_none_or(|scale| channels.end <= scale.len());
        if !fits {
            return;
        }
        let first = channels.start;
        let mut rows = [weights.as_ptr().cast::<u32>(); PANEL];
        let mut scales = [1.0; PANEL];
        for (lane, (row, to)) in rows.iter_mut().zip(&mut scales).enumerate() {
            let channel = (first + lane).min(channels.end - 1);
            *row = row.wrapping_add(channel * depth + k.start);
            if let Some(scale) = scale.and_then(|scale| scale.get(channel)) {
                *to = *scale;
            }
        }
        let to = panel.as_mut_ptr();
        // SAFETY: `fits`: every channel has `depth` weights, of which `k` are some, and the panel as many rows.
        unsafe { transpose_all(simd, &rows, k.len(), to.cast(), PANEL) };
        if scale.is_some() {
            for row in panel.as_chunks_mut::<PANEL>().0.iter_mut().take(k.len()) {
                for (row, scale) in row.chunks_mut(S::LANES).zip(scales.chunks(S::LANES)) {
                    let scaled = simd.mul(simd.load(row), simd.load(scale));
                    simd.store(row, scaled);
                }
            }
        }
    }
}

/// The panel of a convolution or dense layer, as [`pack_panel_s8`](netkit_core::pack::pack_panel_s8).
pub(crate) struct PackPanelS8<'a> {
    pub(crate) runs: Runs,
    /// From the panel's first channel to the layer's last.
    pub(crate) channels: Range<usize>,
    pub(crate) weights: &'a [i8],
    pub(crate) panel: &'a mut [i8],
}

impl KernelS8 for PackPanelS8<'_> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        let Self { runs, channels, weights, panel } = self;
        let taps = runs.taps();
        let fits = channels.end.checked_mul(taps).is_some_and(|len| len <= weights.len())
            && !channels.is_empty()
            && runs.panel_len() <= panel.len();
        if !fits {
            return;
        }
        let first = channels.start;
        let (fours, tail) = (runs.len / GROUP, runs.len % GROUP);
        let all_groups = runs.count * runs.groups();
        for run in 0..runs.count {
            let mut rows = [weights.as_ptr(); PANEL];
            for (lane, row) in rows.iter_mut().enumerate() {
                let channel = (first + lane).min(channels.end - 1);
                *row = row.wrapping_add(channel * taps + run * runs.len);
            }
            let groups = (1 + run * runs.groups()) * GROUP_BYTES;
            let to = panel.as_mut_ptr().wrapping_add(groups);
            // SAFETY: `fits`: every channel has `taps` weights, of which these are a run, and the panel as many groups.
            unsafe { transpose_all(simd, &casts(rows), fours, to.cast(), PANEL) };
            if tail > 0 {
                let to = to.wrapping_add(fours * GROUP_BYTES);
                for (lane, row) in rows.iter().enumerate() {
                    let mut four = [0; GROUP];
                    for (i, to) in four.iter_mut().enumerate().take(tail) {
                        // SAFETY: the run's last weights.
                        *to = unsafe { row.wrapping_add(fours * GROUP + i).read() };
                    }
                    let to = to.wrapping_add(lane * GROUP).cast();
                    // SAFETY: the run's last group, of 64 bytes.
                    unsafe { <*mut [i8; GROUP]>::write(to, four) };
                }
            }
        }
        // SAFETY: the panel has room for its sums and all groups.
        unsafe { sum_weights(simd, panel.as_mut_ptr(), all_groups) };
    }
}

/// Rows of whatever as rows of values of 32 bits.
#[inline(always)]
fn casts<T>(rows: [*const T; PANEL]) -> [*const u32; PANEL] {
    let mut casts = [core::ptr::null(); PANEL];
    for (to, row) in casts.iter_mut().zip(rows) {
        *to = row.cast();
    }
    casts
}

/// Writes the sums of a panel's weights, those of the first `groups` groups.
///
/// # Safety
/// The panel's sums can be written, and the groups behind them read.
#[inline(always)]
unsafe fn sum_weights<S: SimdS8>(simd: S, panel: *mut i8, groups: usize) {
    // Their products with ones, of one byte or of two.
    let ones = if S::INPUT_BYTES == 1 { [1; 8] } else { [1, 0, 1, 0, 1, 0, 1, 0] };
    for lane in (0..PANEL).step_by(S::LANES) {
        // Four chains of sums, for the products' latency.
        let mut sums = [simd.parts(simd.splat(0)); 4];
        // SAFETY: four inputs.
        let inputs = unsafe { simd.splat_inputs(ones.as_ptr()) };
        let mut from = panel.cast_const().wrapping_add(GROUP_BYTES + lane * GROUP);
        let mut left = groups;
        while left >= 4 {
            unrolled!(i < 4 {
                // SAFETY: the caller vouches for all groups, and `LANES` divides a panel's channels.
                let weights = unsafe { simd.load_weights(from.wrapping_add(i * GROUP_BYTES)) };
                sums[i] = simd.dot(sums[i], inputs, weights);
            });
            from = from.wrapping_add(4 * GROUP_BYTES);
            left -= 4;
        }
        for _ in 0..left {
            // SAFETY: as above.
            let weights = unsafe { simd.load_weights(from) };
            sums[0] = simd.dot(sums[0], inputs, weights);
            from = from.wrapping_add(GROUP_BYTES);
        }
        let [a, b, c, d] = sums;
        let upper = simd.add(simd.total(a), simd.total(b));
        let sum = simd.add(upper, simd.add(simd.total(c), simd.total(d)));
        // SAFETY: the caller vouches for the sums, 64 bytes.
        unsafe { simd.store_sums(panel.wrapping_add(lane * GROUP).cast(), sum) };
    }
}

/// The panel of a depthwise convolution, as
/// [`pack_depthwise_panel_s8`].
pub(crate) struct PackDepthwisePanelS8<'a> {
    pub(crate) conv: &'a DepthwiseConv2d,
    /// From the panel's first channel to the last that there are weights of.
    pub(crate) channels: Range<usize>,
    pub(crate) weights: &'a [i8],
    pub(crate) panel: &'a mut [i8],
}

/// Taps of the largest depthwise kernel that is not packed weight by weight.
const MOST_TAPS: usize = 64;

impl KernelS8 for PackDepthwisePanelS8<'_> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        let Self { conv, channels, weights, panel } = self;
        let window = &conv.window;
        let (taps, groups) = (window.taps(), RowGroups::of(conv));
        let fits = channels.end.checked_mul(taps).is_some_and(|len| len <= weights.len())
            && !channels.is_empty()
            && groups.panel_len(window.kernel_w) <= panel.len();
        if !fits {
            return;
        }
        if !(GROUP..=MOST_TAPS).contains(&taps) {
            let panel = panel.get_mut(..groups.panel_len(window.kernel_w)).unwrap_or(&mut []);
            let weights = weights.get(..channels.end * taps).unwrap_or(&[]);
            let packed = pack_depthwise_panel_s8(conv, channels.start, weights, panel);
            debug_assert!(packed.is_some());
            return;
        }
        let mut rows = [weights.as_ptr(); PANEL];
        for (lane, row) in rows.iter_mut().enumerate() {
            *row = row.wrapping_add((channels.start + lane).min(channels.end - 1) * taps);
        }
        // Each channel's taps in fours, then its last four.
        let mut fours = [[0u32; PANEL]; MOST_TAPS / GROUP + 1];
        let whole = taps / GROUP;
        let to = fours.as_mut_ptr().cast();
        // SAFETY: `fits`: every channel has `taps` weights; `whole` is at most a quarter of `MOST_TAPS`.
        unsafe { transpose_all(simd, &casts(rows), whole, to, PANEL) };
        for row in &mut rows {
            *row = row.wrapping_add(taps - GROUP);
        }
        // SAFETY: `taps` is not less than four; there is room for one more.
        unsafe { transpose_one_by_one(&casts(rows), 0..1, to.wrapping_add(whole * PANEL), PANEL) };
        // Where a tap lies in its four.
        let place = |tap: usize| match tap / GROUP {
            four if four < whole => (four, 8 * (tap % GROUP)),
            _ => (whole, 8 * (GROUP + tap - taps)),
        };

        let (_, vectors) = panel.split_at_mut(GROUP_BYTES);
        let (vectors, _) = vectors.as_chunks_mut::<GROUP_BYTES>();
        let phases = window.kernel_w * groups.groups;
        for column in 0..window.kernel_w {
            for group in 0..groups.groups {
                let mut vector = [0u32; PANEL];
                for i in 0..GROUP.min(window.kernel_h - group * GROUP) {
                    let (four, shift) = place((group * GROUP + i) * window.kernel_w + column);
                    let from = fours.get(four).unwrap_or(&[0; PANEL]);
                    for (to, from) in vector.iter_mut().zip(from) {
                        *to |= (from >> shift & 0xff) << (8 * i);
                    }
                }
                if let Some(to) = vectors.get_mut(column * groups.groups + group) {
                    *to = bytemuck::cast(vector);
                }
            }
        }
        // What other output rows multiply with is the same, some rows further down.
        let (first, rest) = vectors.split_at_mut(phases.min(vectors.len()));
        for (phase, to) in rest.chunks_exact_mut(phases.max(1)).enumerate() {
            let down = (phase + 1) * window.stride_h;
            let columns = first.chunks_exact(groups.groups).zip(to.chunks_exact_mut(groups.groups));
            for (from, to) in columns {
                for (group, to) in to.iter_mut().enumerate() {
                    let above = |by: usize| -> [u32; PANEL] {
                        let vector =
                            group.checked_sub(down / GROUP + by).and_then(|at| from.get(at));
                        vector.map_or([0; PANEL], |vector| bytemuck::cast(*vector))
                    };
                    let (same, before) = (above(0), above(1));
                    let mut vector = [0u32; PANEL];
                    for ((to, same), before) in vector.iter_mut().zip(same).zip(before) {
                        let both = u64::from(same) << 32 | u64::from(before);
                        *to = (both >> (32 - 8 * (down % GROUP))) as u32;
                    }
                    *to = bytemuck::cast(vector);
                }
            }
        }
        // SAFETY: `fits`: the panel has its sums and, behind them, the vectors of the first phase.
        unsafe { sum_weights(simd, panel.as_mut_ptr(), phases) };
    }
}

/// Taps of a depthwise convolution, as [`pack_depthwise_conv2d_f32`].
pub(crate) struct PackTapsF32<'a> {
    pub(crate) taps: usize,
    pub(crate) channels: Range<usize>,
    /// Of all channels.
    pub(crate) weights: &'a [f32],
    pub(crate) scale: Option<&'a [f32]>,
    /// `[taps][channels.len()]`
    pub(crate) packed: &'a mut [f32],
}

impl Kernel for PackTapsF32<'_> {
    type Output = ();

    /// Does nothing if a slice is too short.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { taps, channels, weights, scale, packed } = self;
        let width = channels.len();
        if width < PANEL {
            let done = pack_depthwise_conv2d_f32(taps, channels, weights, scale, packed);
            debug_assert!(done.is_some());
            return;
        }
        let fits = channels.end.checked_mul(taps).is_some_and(|len| len <= weights.len())
            && width.checked_mul(taps).is_some_and(|len| len <= packed.len())
            && scale.is_none_or(|scale| channels.end <= scale.len());
        if !fits {
            return;
        }
        for first in (0..width).step_by(PANEL) {
            // The last sixteen may include some of those before.
            let first = first.min(width - PANEL);
            let mut rows = [weights.as_ptr(); PANEL];
            for (lane, row) in rows.iter_mut().enumerate() {
                *row = row.wrapping_add((channels.start + first + lane) * taps);
            }
            let to = packed.as_mut_ptr().wrapping_add(first);
            // SAFETY: `fits`: every channel has `taps` weights, and each tap's row `width` values.
            unsafe { transpose_all(simd, &casts(rows), taps, to.cast(), width) };
        }
        let Some(scale) = scale.and_then(|scale| scale.get(channels)) else { return };
        for row in packed.chunks_exact_mut(width).take(taps) {
            for (row, scale) in row.chunks_mut(S::LANES).zip(scale.chunks(S::LANES)) {
                let scaled = simd.mul(simd.load(row), simd.load(scale));
                simd.store(row, scaled);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernels;
    use netkit_core::op::{Padding, Window};
    use netkit_core::pack::{pack_panel_f32, pack_panel_s8};
    use std::vec::Vec;

    /// Lanes that a panel from channel `first` of `channels` has.
    fn lanes(first: usize, channels: usize) -> usize {
        (channels - first).min(PANEL)
    }

    #[test]
    fn float_panels_are_those_packed_beforehand() {
        let shapes =
            [(1, 1, 0..1), (16, 9, 0..9), (17, 25, 3..25), (40, 70, 0..70), (21, 300, 7..41)];
        for (kernels, (channels, depth, k)) in
            Kernels::all().flat_map(|kernels| shapes.clone().map(|shape| (kernels, shape)))
        {
            let weights: Vec<f32> = (0..channels * depth).map(|i| i as f32 * 0.37).collect();
            let scale: Vec<f32> = (0..channels).map(|o| 0.3 + o as f32).collect();
            for (first, scale) in (0..channels)
                .step_by(PANEL)
                .flat_map(|first| [(first, None), (first, Some(&scale[..]))])
            {
                let (mut expected, mut panel) =
                    (std::vec![0.0; k.len() * PANEL], std::vec![f32::NAN; k.len() * PANEL]);
                pack_panel_f32(&weights, depth, first..channels, k.clone(), scale, &mut expected)
                    .unwrap();
                let all = first..channels;
                let packed = PackPanelF32 {
                    weights: &weights,
                    depth,
                    channels: all,
                    k: k.clone(),
                    scale,
                    panel: &mut panel,
                };
                kernels.run(packed);
                for (row, (panel, expected)) in
                    panel.chunks(PANEL).zip(expected.chunks(PANEL)).enumerate()
                {
                    let lanes = lanes(first, channels);
                    let isa = kernels.isa().name();
                    assert_eq!(
                        panel[..lanes],
                        expected[..lanes],
                        "{isa}: {channels}×{depth} from {first}, row {row}"
                    );
                }
            }
        }
    }

    #[test]
    fn int8_panels_are_those_packed_beforehand() {
        let shapes = [
            (1, 1, 1),
            (16, 3, 9),
            (17, 1, 64),
            (40, 3, 25),
            (33, 2, 130),
            (20, 5, 6),
            (16, 1, 1024),
        ];
        for (kernels, (channels, count, len)) in
            Kernels::all().flat_map(|kernels| shapes.map(|shape| (kernels, shape)))
        {
            let runs = Runs { count, len };
            let weights: Vec<i8> =
                (0..channels * runs.taps()).map(|i| (i * 37 % 251) as u8 as i8).collect();
            for first in (0..channels).step_by(PANEL) {
                let (mut expected, mut panel) =
                    (std::vec![0; runs.panel_len()], std::vec![99; runs.panel_len()]);
                pack_panel_s8(runs, first, &weights, &mut expected).unwrap();
                kernels.run_s8(PackPanelS8 {
                    runs,
                    channels: first..channels,
                    weights: &weights,
                    panel: &mut panel,
                });
                for (row, (panel, expected)) in
                    panel.chunks(GROUP_BYTES).zip(expected.chunks(GROUP_BYTES)).enumerate()
                {
                    let bytes = lanes(first, channels) * GROUP;
                    let isa = kernels.isa().name();
                    assert_eq!(
                        panel[..bytes],
                        expected[..bytes],
                        "{isa}: {channels}×{runs:?} from {first}, row {row}"
                    );
                }
            }
        }
    }

    #[test]
    fn depthwise_taps_are_those_packed_beforehand() {
        let shapes =
            [(16, 9, 0..16), (70, 25, 0..70), (70, 9, 16..57), (40, 49, 3..19), (9, 9, 2..9)];
        for (kernels, (channels, taps, block)) in
            Kernels::all().flat_map(|kernels| shapes.clone().map(|shape| (kernels, shape)))
        {
            let weights: Vec<f32> = (0..channels * taps).map(|i| i as f32 * 0.37).collect();
            let scale: Vec<f32> = (0..channels).map(|o| 0.3 + o as f32).collect();
            for scale in [None, Some(&scale[..])] {
                let (mut expected, mut packed) =
                    (std::vec![0.0; taps * block.len()], std::vec![f32::NAN; taps * block.len()]);
                pack_depthwise_conv2d_f32(taps, block.clone(), &weights, scale, &mut expected)
                    .unwrap();
                let kernel = PackTapsF32 {
                    taps,
                    channels: block.clone(),
                    weights: &weights,
                    scale,
                    packed: &mut packed,
                };
                kernels.run(kernel);
                assert_eq!(
                    packed,
                    expected,
                    "{}: {block:?} of {channels}×{taps}",
                    kernels.isa().name()
                );
            }
        }
    }

    #[test]
    fn int8_depthwise_panels_are_those_packed_beforehand() {
        let shapes = [
            (3, 3, 1),
            (3, 3, 2),
            (5, 5, 1),
            (5, 5, 2),
            (7, 7, 1),
            (2, 3, 1),
            (4, 2, 3),
            (1, 3, 1),
            (9, 9, 1),
            (8, 8, 2),
            (6, 4, 1),
        ];
        for (kernels, (kernel_h, kernel_w, stride)) in
            Kernels::all().flat_map(|kernels| shapes.map(|shape| (kernels, shape)))
        {
            let window =
                Window::new((20, 20), (kernel_h, kernel_w), stride, Padding::default()).unwrap();
            let conv = DepthwiseConv2d { window, channels: 21, multiplier: 2 };
            let len = RowGroups::of(&conv).panel_len(window.kernel_w);
            let weights: Vec<i8> =
                (0..42 * window.taps()).map(|i| (i * 37 % 251) as u8 as i8).collect();
            for first in (0..42).step_by(PANEL) {
                let (mut expected, mut panel) = (std::vec![0; len], std::vec![99; len]);
                pack_depthwise_panel_s8(&conv, first, &weights, &mut expected).unwrap();
                kernels.run_s8(PackDepthwisePanelS8 {
                    conv: &conv,
                    channels: first..42,
                    weights: &weights,
                    panel: &mut panel,
                });
                for (row, (panel, expected)) in
                    panel.chunks(GROUP_BYTES).zip(expected.chunks(GROUP_BYTES)).enumerate()
                {
                    let bytes = lanes(first, 42) * GROUP;
                    let isa = kernels.isa().name();
                    assert_eq!(
                        panel[..bytes],
                        expected[..bytes],
                        "{isa}: {kernel_h}×{kernel_w} from {first}, row {row}"
                    );
                }
            }
        }
    }
}
