//! Float panels: a convolution's filter as `[⌈out / 16⌉][depth][16]`, a depthwise one as
//! `[taps][channels]`. A convolution [that is a dense layer](crate::op::Window::is_whole_map) keeps the order of the file:
//! each weight is used once.
//!
//! Every packer takes the per-channel factor of a folded batch norm: what is written is `w · scale`
//! rounded to `f32`, as if the weights had been folded beforehand.

use super::PANEL;
use crate::op::{Conv2d, DepthwiseConv2d};
use core::ops::Range;

/// Elements of a packed convolution filter: `⌈out / 16⌉ · 16 · depth`, as many as in the file where its order is kept,
/// saturating.
#[must_use]
pub const fn packed_conv2d_f32_len(conv: &Conv2d) -> usize {
    let depth = conv.window.taps().saturating_mul(conv.in_channels);
    if conv.window.is_whole_map() {
        return depth.saturating_mul(conv.out_channels);
    }
    depth.saturating_mul(conv.out_channels.div_ceil(PANEL)).saturating_mul(PANEL)
}

/// Elements of a packed depthwise filter: as many as in the file, saturating.
#[must_use]
pub const fn packed_depthwise_conv2d_f32_len(conv: &DepthwiseConv2d) -> usize {
    conv.window.taps().saturating_mul(conv.channels).saturating_mul(conv.multiplier)
}

/// Packs a convolution filter from file order. `None`, with nothing promised about `packed`, where a
/// length does not fit the operator.
#[must_use]
pub fn pack_conv2d_f32(
    conv: &Conv2d,
    weights: &[f32],
    scale: Option<&[f32]>,
    packed: &mut [f32],
) -> Option<()> {
    let depth = conv.window.taps().checked_mul(conv.in_channels)?;
    if packed.len() != packed_conv2d_f32_len(conv)
        || weights.len() != depth.checked_mul(conv.out_channels)?
    {
        return None;
    }
    if depth == 0 {
        return Some(());
    }
    if conv.window.is_whole_map() {
        packed.copy_from_slice(weights);
        for (scale, row) in scale.unwrap_or(&[]).iter().zip(packed.chunks_exact_mut(depth)) {
            row.iter_mut().for_each(|weight| *weight *= scale);
        }
        return scale.is_none_or(|scale| scale.len() == conv.out_channels).then_some(());
    }
    for (panel, packed) in packed.chunks_exact_mut(depth * PANEL).enumerate() {
        let first = panel * PANEL;
        pack_panel_f32(weights, depth, first..conv.out_channels, 0..depth, scale, packed)?;
    }
    Some(())
}

/// Packs rows `k` of one panel of a `[out, depth]` matrix: up to 16 channels from `channels.start`, the
/// missing ones zero, into `[k.len()][16]`. `None` where a range or length does not fit.
#[must_use]
#[inline]
pub fn pack_panel_f32(
    weights: &[f32],
    depth: usize,
    channels: Range<usize>,
    k: Range<usize>,
    scale: Option<&[f32]>,
    panel: &mut [f32],
) -> Option<()> {
    let present = channels.len().min(PANEL);
    let (panel, rest) = panel.as_chunks_mut::<PANEL>();
    if panel.len() != k.len() || !rest.is_empty() {
        return None;
    }
    for lane in 0..present {
        let channel = channels.start.checked_add(lane)?;
        let start = channel.checked_mul(depth)?;
        let source = weights.get(start.checked_add(k.start)?..start.checked_add(k.end)?)?;
        match scale {
            Some(scale) => {
                let scale = *scale.get(channel)?;
                for (row, &weight) in panel.iter_mut().zip(source) {
                    row[lane] = weight * scale;
                }
            }
            None => {
                for (row, &weight) in panel.iter_mut().zip(source) {
                    row[lane] = weight;
                }
            }
        }
    }
    if present < PANEL {
        for row in panel {
            row[present..].fill(0.0);
        }
    }
    Some(())
}

/// Packs channels `channels` of a depthwise filter from file order into `[taps][channels.len()]`.
/// `None` where a range or length does not fit.
#[must_use]
#[inline]
pub fn pack_depthwise_conv2d_f32(
    taps: usize,
    channels: Range<usize>,
    weights: &[f32],
    scale: Option<&[f32]>,
    packed: &mut [f32],
) -> Option<()> {
    let width = channels.len();
    if packed.len() != taps.checked_mul(width)? {
        return None;
    }
    let source = weights.get(channels.start.checked_mul(taps)?..channels.end.checked_mul(taps)?)?;
    if width == 0 || taps == 0 {
        return Some(());
    }
    let scale = match scale {
        Some(scale) => Some(scale.get(channels)?),
        None => None,
    };
    for (tap, row) in packed.chunks_exact_mut(width).enumerate() {
        let column = source.iter().skip(tap).step_by(taps);
        match scale {
            Some(scale) => {
                for ((to, &weight), &scale) in row.iter_mut().zip(column).zip(scale) {
                    *to = weight * scale;
                }
            }
            None => {
                for (to, &weight) in row.iter_mut().zip(column) {
                    *to = weight;
                }
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

    fn conv(out_channels: usize, in_channels: usize) -> Conv2d {
        let window = Window::new((5, 5), (2, 3), 1, Padding::default()).unwrap();
        Conv2d { window, in_channels, out_channels }
    }

    #[test]
    fn panels_hold_sixteen_channels_of_one_row_side_by_side() {
        for out in [1, 15, 16, 17, 33] {
            let conv = conv(out, 3);
            let depth = 18;
            let weights: Vec<f32> = (0..out * depth).map(|i| i as f32).collect();
            let scale: Vec<f32> = (0..out).map(|o| 0.3 + o as f32).collect();
            for scale in [None, Some(&scale[..])] {
                let mut packed = vec![f32::NAN; packed_conv2d_f32_len(&conv)];
                pack_conv2d_f32(&conv, &weights, scale, &mut packed).unwrap();
                for (i, &value) in packed.iter().enumerate() {
                    let (panel, k, lane) = (i / (depth * 16), i / 16 % depth, i % 16);
                    let o = panel * 16 + lane;
                    let factor = scale.map_or(1.0, |s| s.get(o).copied().unwrap_or(0.0));
                    let expected = if o < out { weights[o * depth + k] * factor } else { 0.0 };
                    assert_eq!(value, expected, "out {out}, panel {panel}, k {k}, lane {lane}");
                }
            }
        }
    }

    #[test]
    fn part_of_a_panel_is_that_part_of_the_whole() {
        let conv = conv(20, 3);
        let weights: Vec<f32> = (0..20 * 18).map(|i| i as f32).collect();
        let mut whole = vec![0.0; packed_conv2d_f32_len(&conv)];
        pack_conv2d_f32(&conv, &weights, None, &mut whole).unwrap();
        let mut part = vec![f32::NAN; 5 * 16];
        pack_panel_f32(&weights, 18, 16..20, 7..12, None, &mut part).unwrap();
        assert_eq!(part, whole[(18 + 7) * 16..(18 + 12) * 16]);
    }

    #[test]
    fn depthwise_taps_come_first() {
        let weights: Vec<f32> = (0..5 * 6).map(|i| i as f32).collect();
        let scale = [1.0, 2.0, 3.0, 4.0, 5.0];
        let mut packed = [f32::NAN; 6 * 2];
        pack_depthwise_conv2d_f32(6, 3..5, &weights, Some(&scale), &mut packed).unwrap();
        for (i, value) in packed.into_iter().enumerate() {
            let (tap, channel) = (i / 2, 3 + i % 2);
            assert_eq!(value, weights[channel * 6 + tap] * scale[channel]);
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let conv = conv(17, 3);
        let weights = [0.0; 17 * 18];
        let mut packed = [0.0; 32 * 18];
        assert!(pack_conv2d_f32(&conv, &weights, None, &mut packed).is_some());
        assert!(pack_conv2d_f32(&conv, &weights[1..], None, &mut packed).is_none());
        assert!(pack_conv2d_f32(&conv, &weights, None, &mut packed[1..]).is_none());
        assert!(pack_conv2d_f32(&conv, &weights, Some(&[1.0; 16]), &mut packed).is_none());
        assert!(pack_panel_f32(&weights, 18, 16..17, 17..19, None, &mut packed[..32]).is_none());
        assert!(
            pack_depthwise_conv2d_f32(6, 4..6, &weights[..30], None, &mut packed[..12]).is_none()
        );
    }
}
