//! Int8 panels: sixteen output channels side by side, taps in fours.
//!
//! Dot-product instructions multiply four adjacent bytes of the input with four of the filter and add
//! into 32 bits. A panel therefore holds, for each group of four taps, 64 bytes: four for each of its
//! 16 channels. In front stand the 16 sums of all weights as little-endian `i32`, which is what a
//! kernel needs to take the input's zero point (and an offset that makes the input unsigned) out of the
//! accumulator. Channels and taps that do not exist are 0, so whatever a kernel reads of the input past
//! the last tap does not matter.
//!
//! Which taps form a group follows from how the input lies in memory. Taps of one kernel row are
//! adjacent in an NHWC map, channels included, so a convolution groups along those [`Runs`]; few
//! channels (1 or 3 in a first layer) waste little that way. A depthwise convolution has one byte of
//! each pixel to offer: its groups run down four input rows, see [`RowGroups`].

use super::PANEL;
use crate::op::{Conv2d, Dense, DepthwiseConv2d};

/// Taps of one group: what a 32-bit lane holds.
pub const GROUP: usize = 4;

/// Bytes of a panel for one group of taps, and of its sums.
pub const GROUP_BYTES: usize = PANEL * GROUP;

/// The taps of one output as stretches of the input that are adjacent in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Number of stretches.
    pub count: usize,
    /// Bytes of each; the groups of a run are not shared with the next.
    pub len: usize,
}

impl Runs {
    /// One run a kernel row; with horizontal dilation, where pixels part, one a tap.
    #[must_use]
    pub const fn of_conv2d(conv: &Conv2d) -> Self {
        let window = &conv.window;
        if window.dilation_w == 1 || window.kernel_w == 1 {
            Self { count: window.kernel_h, len: window.kernel_w.saturating_mul(conv.in_channels) }
        } else {
            Self { count: window.taps(), len: conv.in_channels }
        }
    }

    /// A row of features.
    #[inline]
    #[must_use]
    pub const fn of_dense(dense: &Dense) -> Self {
        Self { count: 1, len: dense.in_features }
    }

    /// Groups of one run.
    #[inline]
    #[must_use]
    pub const fn groups(&self) -> usize {
        self.len.div_ceil(GROUP)
    }

    /// Taps of one output.
    #[must_use]
    pub const fn taps(&self) -> usize {
        self.count.saturating_mul(self.len)
    }

    /// Bytes of a panel with its sums, saturating.
    #[inline]
    #[must_use]
    pub const fn panel_len(&self) -> usize {
        self.count.saturating_mul(self.groups()).saturating_add(1).saturating_mul(GROUP_BYTES)
    }
}

/// How a depthwise kernel groups its taps: four input rows a group, `groups` of them below each other.
///
/// Four rows hold more than one placement of a kernel three high (or one, or two): interleaving them
/// once serves `phases` output rows, each with its own copy of the weights, shifted down by the stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowGroups {
    /// Groups of four input rows, enough for one kernel.
    pub groups: usize,
    /// Output rows that the groups serve; output row `p` starts `p · stride` input rows down.
    pub phases: usize,
}

impl RowGroups {
    /// The grouping of a depthwise convolution.
    #[must_use]
    pub const fn of(conv: &DepthwiseConv2d) -> Self {
        let window = &conv.window;
        let groups = window.kernel_h.div_ceil(GROUP);
        // Dilated taps lie on rows that the next output row does not use.
        let phases = if window.dilation_h == 1 && window.stride_h > 0 {
            (groups * GROUP - window.kernel_h) / window.stride_h + 1
        } else {
            1
        };
        Self { groups, phases }
    }

    /// Bytes of a panel with its sums, saturating: after the sums `[phases][kernel_w][groups]` times
    /// 64 bytes.
    #[must_use]
    pub const fn panel_len(&self, kernel_w: usize) -> usize {
        self.phases
            .saturating_mul(kernel_w)
            .saturating_mul(self.groups)
            .saturating_add(1)
            .saturating_mul(GROUP_BYTES)
    }
}

/// Bytes of a packed convolution filter, saturating.
#[must_use]
pub const fn packed_conv2d_s8_len(conv: &Conv2d) -> usize {
    Runs::of_conv2d(conv).panel_len().saturating_mul(conv.out_channels.div_ceil(PANEL))
}

/// Bytes of a packed dense filter, saturating.
#[inline]
#[must_use]
pub const fn packed_dense_s8_len(dense: &Dense) -> usize {
    Runs::of_dense(dense).panel_len().saturating_mul(dense.out_features.div_ceil(PANEL))
}

/// Bytes of a packed depthwise filter, saturating.
#[must_use]
pub const fn packed_depthwise_conv2d_s8_len(conv: &DepthwiseConv2d) -> usize {
    let channels = conv.channels.saturating_mul(conv.multiplier);
    RowGroups::of(conv).panel_len(conv.window.kernel_w).saturating_mul(channels.div_ceil(PANEL))
}

/// Packs a convolution filter from file order. `None`, with nothing promised about `packed`, where a
/// length does not fit the operator.
#[must_use]
pub fn pack_conv2d_s8(conv: &Conv2d, weights: &[i8], packed: &mut [i8]) -> Option<()> {
    pack_runs(Runs::of_conv2d(conv), conv.out_channels, weights, packed)
}

/// Packs a dense filter from file order. `None`, with nothing promised about `packed`, where a length
/// does not fit the operator.
#[must_use]
pub fn pack_dense_s8(dense: &Dense, weights: &[i8], packed: &mut [i8]) -> Option<()> {
    pack_runs(Runs::of_dense(dense), dense.out_features, weights, packed)
}

fn pack_runs(runs: Runs, channels: usize, weights: &[i8], packed: &mut [i8]) -> Option<()> {
    let panel_len = runs.panel_len();
    if packed.len() != panel_len.checked_mul(channels.div_ceil(PANEL))?
        || weights.len() != runs.taps().checked_mul(channels)?
    {
        return None;
    }
    for (panel, packed) in packed.chunks_exact_mut(panel_len).enumerate() {
        pack_panel_s8(runs, panel * PANEL, weights, packed)?;
    }
    Some(())
}

/// Packs the panel of a convolution or dense filter whose first channel is `first`. `None` where a
/// length does not fit.
#[must_use]
#[inline]
pub fn pack_panel_s8(runs: Runs, first: usize, weights: &[i8], panel: &mut [i8]) -> Option<()> {
    if panel.len() != runs.panel_len() || runs.len == 0 || runs.count == 0 {
        return None;
    }
    let (groups, _) = panel.as_chunks_mut::<GROUP_BYTES>();
    let (sums, groups) = groups.split_first_mut()?;
    let taps = runs.taps();
    let rows = weights.get(first.checked_mul(taps)?..)?;
    for lane in 0..PANEL {
        let at = lane * GROUP..(lane + 1) * GROUP;
        // Past the last channel there is nothing to read, and the lane is zero.
        let row = rows.get(lane * taps..(lane + 1) * taps).unwrap_or(&[]);
        let mut sum = 0i32;
        if row.is_empty() {
            for group in groups.iter_mut() {
                group[at.clone()].fill(0);
            }
        }
        for (run, groups) in row.chunks_exact(runs.len).zip(groups.chunks_exact_mut(runs.groups()))
        {
            let (fours, tail) = run.as_chunks::<GROUP>();
            for (group, four) in groups.iter_mut().zip(fours) {
                group[at.clone()].copy_from_slice(four);
            }
            if let (Some(group), false) = (groups.last_mut(), tail.is_empty()) {
                let mut four = [0; GROUP];
                four[..tail.len()].copy_from_slice(tail);
                group[at.clone()].copy_from_slice(&four);
            }
            sum = run.iter().fold(sum, |sum, &w| sum.wrapping_add(i32::from(w)));
        }
        sums[at].copy_from_slice(&sum.to_le_bytes().map(|byte| byte as i8));
    }
    Some(())
}

/// Packs a depthwise filter from file order. `None`, with nothing promised about `packed`, where a
/// length does not fit the operator.
#[must_use]
pub fn pack_depthwise_conv2d_s8(
    conv: &DepthwiseConv2d,
    weights: &[i8],
    packed: &mut [i8],
) -> Option<()> {
    let channels = conv.channels.checked_mul(conv.multiplier)?;
    let panel_len = RowGroups::of(conv).panel_len(conv.window.kernel_w);
    if packed.len() != panel_len.checked_mul(channels.div_ceil(PANEL))?
        || weights.len() != channels.checked_mul(conv.window.taps())?
    {
        return None;
    }
    for (panel, packed) in packed.chunks_exact_mut(panel_len).enumerate() {
        pack_depthwise_panel_s8(conv, panel * PANEL, weights, packed)?;
    }
    Some(())
}

/// Packs the panel of a depthwise filter whose first channel is `first`. `None` where a length does not
/// fit.
#[must_use]
#[inline]
pub fn pack_depthwise_panel_s8(
    conv: &DepthwiseConv2d,
    first: usize,
    weights: &[i8],
    panel: &mut [i8],
) -> Option<()> {
    let window = &conv.window;
    let RowGroups { groups, phases } = RowGroups::of(conv);
    if panel.len() != RowGroups::of(conv).panel_len(window.kernel_w) {
        return None;
    }
    panel.fill(0);
    let (vectors, _) = panel.as_chunks_mut::<GROUP_BYTES>();
    let (sums, vectors) = vectors.split_first_mut()?;
    let taps = window.taps();
    let filters = weights.get(first.checked_mul(taps)?..)?;
    for lane in 0..PANEL {
        let Some(filter) = filters.get(lane * taps..(lane + 1) * taps) else { break };
        let sum = filter.iter().fold(0i32, |sum, &w| sum.wrapping_add(i32::from(w)));
        sums[lane * GROUP..][..GROUP].copy_from_slice(&sum.to_le_bytes().map(|byte| byte as i8));
        for phase in 0..phases {
            for (tap, &weight) in filter.iter().enumerate() {
                let row = phase * window.stride_h + tap / window.kernel_w;
                let column = tap % window.kernel_w;
                let vector = (phase * window.kernel_w + column) * groups + row / GROUP;
                vectors[vector][lane * GROUP + row % GROUP] = weight;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::op::{Padding, Window};
    use std::{vec, vec::Vec};

    fn window(kernel: (u32, u32), stride: u32) -> Window {
        Window::new((9, 9), kernel, stride, Padding::default()).unwrap()
    }

    fn weights(len: usize) -> Vec<i8> {
        (0..len).map(|i| (i * 37 % 251) as u8 as i8).collect()
    }

    fn sum_at(packed: &[i8], at: usize) -> i32 {
        let bytes: Vec<u8> = packed[at..at + 4].iter().map(|&byte| byte as u8).collect();
        i32::from_le_bytes(bytes.try_into().unwrap())
    }

    #[test]
    fn convolutions_group_along_kernel_rows() {
        for (out, inner, dilation) in [(1, 1, 1), (16, 3, 1), (17, 4, 1), (33, 5, 2)] {
            let mut window = window((2, 3), 1);
            window.dilation_w = dilation;
            let conv = Conv2d { window, in_channels: inner, out_channels: out };
            let taps = 6 * inner;
            let weights = weights(out * taps);
            let mut packed = vec![99; packed_conv2d_s8_len(&conv)];
            pack_conv2d_s8(&conv, &weights, &mut packed).unwrap();
            let run = if dilation == 1 { 3 * inner } else { inner };
            let groups = run.div_ceil(4);
            let panel_len = 64 + taps / run * groups * 64;
            assert_eq!(packed.len(), panel_len * out.div_ceil(16));
            for o in 0..out.div_ceil(16) * 16 {
                let base = o / 16 * panel_len;
                let channel = weights.get(o * taps..(o + 1) * taps);
                let sum = channel.map_or(0, |w| w.iter().map(|&w| i32::from(w)).sum());
                assert_eq!(sum_at(&packed, base + o % 16 * 4), sum);
                for r in 0..taps / run {
                    for k in 0..groups * 4 {
                        let at = base + 64 + (r * groups + k / 4) * 64 + o % 16 * 4 + k % 4;
                        let expected =
                            channel.filter(|_| k < run).map_or(0, |channel| channel[r * run + k]);
                        assert_eq!(
                            packed[at], expected,
                            "out {out}, channel {o}, run {r}, byte {k}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn dense_rows_are_one_run() {
        let dense = Dense { rows: 1, in_features: 5, out_features: 2 };
        let mut packed = vec![99; packed_dense_s8_len(&dense)];
        pack_dense_s8(&dense, &[1, 2, 3, 4, 5, -1, -2, -3, -4, -5], &mut packed).unwrap();
        assert_eq!(packed.len(), 3 * 64);
        assert_eq!((sum_at(&packed, 0), sum_at(&packed, 4), sum_at(&packed, 8)), (15, -15, 0));
        assert_eq!(packed[64..72], [1, 2, 3, 4, -1, -2, -3, -4]);
        assert_eq!(packed[128..136], [5, 0, 0, 0, -5, 0, 0, 0]);
    }

    #[test]
    fn four_rows_serve_as_many_output_rows_as_fit() {
        for (kernel_h, stride, groups, phases) in [
            (1, 1, 1, 4),
            (3, 1, 1, 2),
            (3, 2, 1, 1),
            (4, 1, 1, 1),
            (5, 1, 2, 4),
            (5, 2, 2, 2),
            (7, 1, 2, 2),
        ] {
            let conv = DepthwiseConv2d {
                window: window((kernel_h, 3), stride),
                channels: 1,
                multiplier: 1,
            };
            assert_eq!(RowGroups::of(&conv), RowGroups { groups, phases });
        }
    }

    #[test]
    fn depthwise_weights_move_down_with_the_phase() {
        for (kernel, stride, channels) in [((3, 2), 1, 5), ((5, 3), 2, 17), ((1, 1), 1, 16)] {
            let conv = DepthwiseConv2d { window: window(kernel, stride), channels, multiplier: 1 };
            let RowGroups { groups, phases } = RowGroups::of(&conv);
            let (kh, kw) = (kernel.0 as usize, kernel.1 as usize);
            let weights = weights(channels * kh * kw);
            let mut packed = vec![99; packed_depthwise_conv2d_s8_len(&conv)];
            pack_depthwise_conv2d_s8(&conv, &weights, &mut packed).unwrap();
            let panel_len = 64 * (1 + phases * kw * groups);
            for c in 0..channels.div_ceil(16) * 16 {
                let base = c / 16 * panel_len;
                let filter = weights.get(c * kh * kw..(c + 1) * kh * kw);
                let sum = filter.map_or(0, |w| w.iter().map(|&w| i32::from(w)).sum());
                assert_eq!(sum_at(&packed, base + c % 16 * 4), sum);
                for (phase, j, row) in (0..phases).flat_map(|p| {
                    (0..kw).flat_map(move |j| (0..groups * 4).map(move |r| (p, j, r)))
                }) {
                    let vector = (phase * kw + j) * groups + row / 4;
                    let value = packed[base + 64 + vector * 64 + c % 16 * 4 + row % 4];
                    let tap = row.checked_sub(phase * stride as usize).filter(|&i| i < kh);
                    let expected = tap.and_then(|i| Some(filter?[i * kw + j])).unwrap_or(0);
                    assert_eq!(
                        value, expected,
                        "channel {c}, phase {phase}, row {row}, column {j}"
                    );
                }
            }
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let conv = Conv2d { window: window((3, 3), 1), in_channels: 2, out_channels: 17 };
        let weights = weights(17 * 18);
        let mut packed = vec![0; packed_conv2d_s8_len(&conv)];
        assert!(pack_conv2d_s8(&conv, &weights, &mut packed).is_some());
        assert!(pack_conv2d_s8(&conv, &weights[1..], &mut packed).is_none());
        assert!(pack_conv2d_s8(&conv, &weights, &mut packed[1..]).is_none());
        let depthwise = DepthwiseConv2d { window: window((3, 3), 1), channels: 17, multiplier: 2 };
        let mut packed = vec![0; packed_depthwise_conv2d_s8_len(&depthwise)];
        assert!(pack_depthwise_conv2d_s8(&depthwise, &weights, &mut packed).is_some());
        assert!(pack_depthwise_conv2d_s8(&depthwise, &weights[9..], &mut packed).is_none());
        assert!(pack_depthwise_conv2d_s8(&depthwise, &weights, &mut packed[64..]).is_none());
    }
}
