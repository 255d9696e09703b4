//! Filters of 3×3 convolutions in Winograd's form.
//!
//! A tile of `m × m` outputs reads `(m + 2) × (m + 2)` inputs. With `d` those inputs and `g` the filter of one pair of
//! channels, the tile is `Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A`: one product for each position of the larger tile instead of nine
//! for each output. Positions are independent matrix products over the channels. What is packed is `G g Gᵀ`.
//!
//! Tiles of 4×4 would need a quarter of the products instead of four ninths, and 36 weights for 9. Their sums are worse
//! conditioned: the bound of the error has a factor of 1600 where that of 2×2 has 16, and of sums over 64 to 256 channels the
//! error was 4 times that of the plain sum, where that of 2×2 was two thirds of it.
//!
//! A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016.

use super::PANEL;
use crate::op::Conv2d;

/// Height and width of a tile of outputs.
pub const WINOGRAD_TILE: usize = 2;

/// Positions of a tile of transformed inputs, weights or products: rows times columns.
pub const WINOGRAD_POSITIONS: usize = (WINOGRAD_TILE + 2) * (WINOGRAD_TILE + 2);

/// `G` of F(2×2, 3×3).
const G: [[f64; 3]; WINOGRAD_TILE + 2] =
    [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]];

/// Whether a convolution has a Winograd form: 3×3, neither strided nor dilated.
#[must_use]
pub const fn has_winograd_form(conv: &Conv2d) -> bool {
    let w = &conv.window;
    w.kernel_h == 3
        && w.kernel_w == 3
        && w.stride_h == 1
        && w.stride_w == 1
        && w.dilation_h == 1
        && w.dilation_w == 1
}

/// Products in whose time the inputs, or the outputs, of one channel's tile are transformed: measured on AVX-512, where it
/// is the most.
const TRANSFORM: u64 = 200;

/// Tiles of a map below which reading 16 weights for 9 takes more time than the products that are saved.
const LEAST_TILES: u64 = 16;

/// Whether a convolution that has a [Winograd form](has_winograd_form) should be computed in it: whether that is expected to
/// take at most nine tenths of the time. A function of the geometry alone; about 32 channels on both sides are the least, on
/// maps of 7×7 and more.
#[must_use]
pub const fn winograd_pays(conv: &Conv2d) -> bool {
    const TILE: usize = WINOGRAD_TILE;
    let w = &conv.window;
    let (inputs, outputs) = (conv.in_channels as u64, conv.out_channels as u64);
    let tiles = (w.out_h.div_ceil(TILE) as u64).saturating_mul(w.out_w.div_ceil(TILE) as u64);
    let pixels = (w.out_h as u64).saturating_mul(w.out_w as u64);
    let pairs = inputs.saturating_mul(outputs);
    let products = pairs.saturating_mul(WINOGRAD_POSITIONS as u64);
    let transforms = inputs.saturating_add(outputs).saturating_mul(TRANSFORM);
    let here = products.saturating_add(transforms).saturating_mul(tiles);
    let directly = pairs.saturating_mul(9).saturating_mul(pixels);
    has_winograd_form(conv) && tiles >= LEAST_TILES && here <= directly / 10 * 9
}

/// Elements of a filter in Winograd's form: `⌈out / 16⌉ · 16 · positions · in`, saturating.
#[must_use]
pub const fn packed_conv2d_winograd_f32_len(conv: &Conv2d) -> usize {
    let panel = conv.in_channels.saturating_mul(WINOGRAD_POSITIONS * PANEL);
    panel.saturating_mul(conv.out_channels.div_ceil(PANEL))
}

/// Packs the filter of a 3×3 convolution from file order into `[⌈out / 16⌉][positions][in][16]`, the channels that are
/// missing zero. Each element is computed in `f64` and rounded once; with `scale`, the factors of a folded batch norm, from
/// `w · scale` rounded to `f32`. `None`, with nothing promised about `packed`, where a length does not fit the operator or
/// it [has no such form](has_winograd_form).
#[must_use]
pub fn pack_conv2d_winograd_f32(
    conv: &Conv2d,
    weights: &[f32],
    scale: Option<&[f32]>,
    packed: &mut [f32],
) -> Option<()> {
    let (inputs, outputs) = (conv.in_channels, conv.out_channels);
    let depth = inputs.checked_mul(9)?;
    if !has_winograd_form(conv)
        || packed.len() != packed_conv2d_winograd_f32_len(conv)
        || weights.len() != depth.checked_mul(outputs)?
        || scale.is_some_and(|scale| scale.len() != outputs)
    {
        return None;
    }
    if depth == 0 {
        return Some(());
    }
    packed.fill(0.0);
    let panel_len = WINOGRAD_POSITIONS * inputs * PANEL;
    for (channel, filter) in weights.chunks_exact(depth).enumerate() {
        let scale = match scale {
            Some(scale) => *scale.get(channel)?,
            None => 1.0,
        };
        let panel = packed.get_mut(channel / PANEL * panel_len..)?.get_mut(..panel_len)?;
        for input in 0..inputs {
            let mut taps = [0.0; 9];
            for (tap, &weight) in taps.iter_mut().zip(filter.iter().skip(input).step_by(inputs)) {
                *tap = f64::from(weight * scale);
            }
            let at = panel.iter_mut().skip(input * PANEL + channel % PANEL);
            for (to, value) in at.step_by(inputs * PANEL).zip(transformed(&taps)) {
                *to = value as f32;
            }
        }
    }
    Some(())
}

/// `G g Gᵀ`, row by row.
fn transformed(taps: &[f64; 9]) -> [f64; WINOGRAD_POSITIONS] {
    const SIDE: usize = WINOGRAD_TILE + 2;
    let (rows, _) = taps.as_chunks::<3>();
    let mut result = [0.0; WINOGRAD_POSITIONS];
    for (i, to) in result.chunks_exact_mut(SIDE).enumerate() {
        let mut combined = [0.0; 3];
        for (row, factor) in rows.iter().zip(G[i]) {
            for (sum, tap) in combined.iter_mut().zip(row) {
                *sum += factor * tap;
            }
        }
        for (to, factors) in to.iter_mut().zip(&G) {
            *to = factors.iter().zip(combined).map(|(factor, sum)| factor * sum).sum();
        }
    }
    result
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::op::{Padding, Window};
    use std::{vec, vec::Vec};

    fn conv(size: usize, in_channels: usize, out_channels: usize) -> Conv2d {
        let padding = Padding::symmetric(1, 1);
        let window = Window::new((size, size), (3, 3), 1, padding).unwrap();
        Conv2d { window, in_channels, out_channels }
    }

    /// `G g Gᵀ` of one filter, written out.
    fn expected(g: [[f64; 3]; 3]) -> [[f64; 4]; 4] {
        let column = |[a, b, c]: [f64; 3]| [a, (a + b + c) / 2.0, (a - b + c) / 2.0, c];
        let columns = [0, 1, 2].map(|j| column(g.map(|row| row[j])));
        [0, 1, 2, 3].map(|i| column(columns.map(|column| column[i])))
    }

    #[test]
    fn each_position_has_panels_of_its_own() {
        for (inputs, outputs) in [(1, 1), (3, 16), (5, 17), (2, 40)] {
            let conv = conv(4, inputs, outputs);
            let weights: Vec<f32> = (0..outputs * 9 * inputs).map(|i| (i as f32).sin()).collect();
            let scale: Vec<f32> = (0..outputs).map(|o| 0.3 + o as f32).collect();
            for scale in [None, Some(&scale[..])] {
                let mut packed = vec![f32::NAN; packed_conv2d_winograd_f32_len(&conv)];
                pack_conv2d_winograd_f32(&conv, &weights, scale, &mut packed).unwrap();
                for (i, &value) in packed.iter().enumerate() {
                    let (lane, input) = (i % PANEL, i / PANEL % inputs);
                    let position = i / PANEL / inputs % WINOGRAD_POSITIONS;
                    let output = i / PANEL / inputs / WINOGRAD_POSITIONS * PANEL + lane;
                    if output >= outputs {
                        assert_eq!(value, 0.0);
                        continue;
                    }
                    let factor = scale.map_or(1.0, |scale| scale[output]);
                    let tap = |tap: usize| {
                        f64::from(weights[(output * 9 + tap) * inputs + input] * factor)
                    };
                    let rows = [0, 3, 6].map(|first| [tap(first), tap(first + 1), tap(first + 2)]);
                    let exact = expected(rows)[position / 4][position % 4];
                    let error = (f64::from(value) - exact).abs();
                    assert!(
                        error <= exact.abs() / f64::from(1u32 << 24) + 1e-15,
                        "{value} {exact}"
                    );
                }
            }
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let good = conv(4, 3, 17);
        let (weights, scale) = ([0.0; 17 * 27], [1.0; 17]);
        let mut packed = vec![0.0; 2 * 16 * 3 * 16];
        let pack = |conv: &Conv2d, weights: &[f32], scale: Option<&[f32]>, packed: &mut [f32]| {
            pack_conv2d_winograd_f32(conv, weights, scale, packed).is_some()
        };
        assert!(pack(&good, &weights, Some(&scale), &mut packed));
        assert!(!pack(&good, &weights[1..], None, &mut packed));
        assert!(!pack(&good, &weights, Some(&scale[1..]), &mut packed));
        assert!(!pack(&good, &weights, None, &mut packed[1..]));
        let strided = Window { stride_h: 2, ..good.window };
        assert!(!pack(&Conv2d { window: strided, ..good }, &weights, None, &mut packed));
        let endless = Conv2d { in_channels: usize::MAX, ..good };
        assert!(!pack(&endless, &weights, None, &mut packed));
    }

    #[test]
    fn it_pays_with_many_channels_on_maps_that_are_not_small() {
        for (size, inputs, outputs, pays) in [
            (56, 64, 64, true),
            (7, 512, 512, true),
            (14, 32, 32, true),
            (28, 32, 32, true),
            (7, 64, 64, true),
            (7, 32, 32, false),
            (6, 512, 512, false),
            (56, 16, 16, false),
            (224, 3, 64, false),
            (224, 64, 3, false),
        ] {
            let conv = conv(size, inputs, outputs);
            assert_eq!(winograd_pays(&conv), pays, "{size}×{size}×{inputs}→{outputs}");
        }
        let good = conv(56, 64, 64);
        for window in [
            Window { kernel_h: 1, ..good.window },
            Window { stride_w: 2, ..good.window },
            Window { dilation_h: 2, ..good.window },
        ] {
            assert!(!winograd_pays(&Conv2d { window, ..good }));
        }
    }
}
