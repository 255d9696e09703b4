//! 3×3 convolution in Winograd's form.

use crate::harness::*;
use netkit_core::op::{Activation, Conv2d, Padding, Window};
use netkit_core::pack::{pack_conv2d_winograd_f32, packed_conv2d_winograd_f32_len};
use netkit_kernels::{Kernels, reference, workspace};

pub(crate) fn conv(
    input: (usize, usize),
    padding: Padding,
    in_channels: usize,
    out_channels: usize,
) -> Option<Conv2d> {
    let window = Window::new(input, (3, 3), 1, padding)?;
    Some(Conv2d { window, in_channels, out_channels })
}

/// What the bound of each output is a multiple of: `|A|ᵀ [Σ (|G| |g| |G|ᵀ) ⊙ (|B|ᵀ |d| |B|)] |A| + |bias| + |residual|`.
fn magnitudes(conv: &Conv2d, input: &[f32], weights: &[f32], added: &[f32]) -> Vec<f32> {
    const G: [[f64; 3]; 4] = [[1.0, 0.0, 0.0], [0.5; 3], [0.5; 3], [0.0, 0.0, 1.0]];
    const B: [[f64; 4]; 4] =
        [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]];
    const A: [[f64; 4]; 2] = [[1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 1.0]];
    /// `m x mᵀ`
    fn both<const R: usize, const C: usize>(
        m: &[[f64; C]; R],
        x: impl Fn(usize, usize) -> f64,
    ) -> [[f64; R]; R] {
        std::array::from_fn(|i| {
            std::array::from_fn(|j| {
                (0..C * C).map(|k| m[i][k / C] * x(k / C, k % C) * m[j][k % C]).sum()
            })
        })
    }
    let (w, inputs, outputs) = (&conv.window, conv.in_channels, conv.out_channels);
    let mut filters = Vec::new();
    for o in 0..outputs {
        for c in 0..inputs {
            let tap = |i: usize, j: usize| weights[(o * 9 + i * 3 + j) * inputs + c];
            filters.push(both(&G, |i, j| f64::from(tap(i, j).abs())));
        }
    }
    let mut magnitudes = vec![0.0; w.out_pixels() * outputs];
    for row in (0..w.out_h).step_by(2) {
        for column in (0..w.out_w).step_by(2) {
            let tiles: Vec<_> = (0..inputs)
                .map(|c| {
                    both(&B, |i, j| {
                        let row = (row + i).checked_sub(w.pad_top).filter(|&row| row < w.in_h);
                        let column = (column + j).checked_sub(w.pad_left);
                        match (row, column.filter(|&column| column < w.in_w)) {
                            (Some(row), Some(column)) => {
                                f64::from(input[(row * w.in_w + column) * inputs + c].abs())
                            }
                            _ => 0.0,
                        }
                    })
                })
                .collect();
            for (o, filters) in filters.chunks(inputs.max(1)).enumerate() {
                let products = |i: usize, j: usize| -> f64 {
                    filters.iter().zip(&tiles).map(|(g, d)| g[i][j] * d[i][j]).sum()
                };
                let tile = both(&A, products);
                for (row, tile) in (row..w.out_h).zip(tile) {
                    for (column, sum) in (column..w.out_w).zip(tile) {
                        let at = (row * w.out_w + column) * outputs + o;
                        magnitudes[at] = sum as f32 + added[at].abs();
                    }
                }
            }
        }
    }
    magnitudes
}

/// One convolution: every cut of the rows, against the reference.
pub(crate) fn check(kernels: Kernels, conv: Conv2d, activation: Activation, seed: u64) {
    let random = &mut Random::new(seed);
    let (w, inputs, outputs) = (conv.window, conv.in_channels, conv.out_channels);
    let input = random.floats(w.in_pixels() * inputs);
    let weights = random.floats(outputs * 9 * inputs);
    let scale = random.floats(outputs);
    let bias = random.floats(outputs);
    let out_len = w.out_pixels() * outputs;
    let residual = random.floats(out_len);
    let scale = random.choose(&[None, Some(&scale[..])]);
    let residual = random.choose(&[None, Some(&residual[..])]);
    let offset = random.below(16);
    let what = || {
        let (scaled, added) = (scale.is_some(), residual.is_some());
        let isa = kernels.isa().name();
        format!("{isa}: {conv:?} {activation:?}, scale {scaled}, residual {added}, seed {seed}")
    };

    let folded: Vec<f32> = match scale {
        None => weights.clone(),
        Some(scale) => {
            weights.iter().enumerate().map(|(i, w)| w * scale[i / (9 * inputs)]).collect()
        }
    };
    let mut expected = vec![0.0; out_len];
    reference::conv2d_f32(&conv, &input, &folded, &bias, residual, activation, &mut expected);
    let added: Vec<f32> = (0..out_len)
        .map(|i| bias[i % outputs].abs() + residual.map_or(0.0, |residual| residual[i].abs()))
        .collect();
    let magnitudes = magnitudes(&conv, &input, &folded, &added);
    // The bound in the door's documentation follows from the sharper one.
    let largest = input.iter().fold(0.0, |largest: f32, x| largest.max(x.abs()));
    for (i, &magnitude) in magnitudes.iter().enumerate() {
        let filter = folded.chunks(9 * inputs).nth(i % outputs).unwrap();
        let sum: f32 = filter.iter().map(|w| w.abs()).sum();
        assert!(magnitude <= (16.0 * largest * sum + added[i]) * 1.00001, "{}", what());
    }

    let mut packed = vec![0.0; packed_conv2d_winograd_f32_len(&conv)];
    pack_conv2d_winograd_f32(&conv, &weights, scale, &mut packed).unwrap();
    let input = Guarded::new(&input, offset);
    let bias = Guarded::new(&bias, offset + 9);
    let packed = Guarded::new(&packed, offset + 3);
    let run = |rows: std::ops::Range<usize>| {
        let mut scratch = Scratch::new(workspace::conv2d_winograd_f32(&conv));
        let elements = rows.start * w.out_w * outputs..rows.end * w.out_w * outputs;
        let mut output = Guarded::output(elements.len(), offset + 7);
        let residual = residual.map(|residual| Guarded::new(&residual[elements], offset + 5));
        kernels.conv2d_winograd_f32(
            &conv,
            input.get(),
            packed.get(),
            bias.get(),
            residual.as_ref().map(Guarded::get),
            activation,
            rows,
            output.get_mut(),
            scratch.get(),
        );
        output.check();
        scratch.check();
        output.get().to_vec()
    };
    let whole = run(0..w.out_h);
    let bound = |i: usize| sum_bound(inputs + 9, magnitudes[i], expected[i]);
    assert_within(&whole, &expected, bound, what);
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for cut in cuts(w.out_h) {
        let pieces: Vec<f32> = cut.into_iter().flat_map(&run).collect();
        assert!(bits(&whole) == bits(&pieces), "{}: a cut of the rows shows", what());
    }
}

/// Even and odd heights and widths, down to a single output, with and without padding on each side, and padding that is
/// wider than the kernel.
#[test]
fn every_size_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(1);
        for (top, left, bottom, right) in
            [(0, 0, 0, 0), (1, 1, 1, 1), (1, 0, 0, 1), (0, 1, 1, 0), (4, 3, 5, 4)]
        {
            let padding = Padding { top, left, bottom, right };
            for in_h in [1, 2, 3, 4, 7] {
                for in_w in [1, 2, 3, 5, 8, 11] {
                    let (inputs, outputs) = (1 + random.below(40), 1 + random.below(70));
                    let Some(conv) = conv((in_h, in_w), padding, inputs, outputs) else { continue };
                    check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
                }
            }
        }
    });
}

#[test]
fn every_channel_tail_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(2);
        let padding = Padding::symmetric(1, 1);
        for channels in channel_counts(kernels) {
            let other = 1 + random.below(8);
            for (inputs, outputs) in [(other, channels), (channels, other), (channels, channels)] {
                let conv = conv((5, 4), padding, inputs, outputs).unwrap();
                check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
            }
        }
    });
}

/// As many channels as are transformed at a time, and more; depths whose panels do not fit a cache.
#[test]
fn deep_sums_agree_with_the_reference() {
    on_each_isa(|kernels| {
        for inputs in [63, 64, 65, 79, 80, 128, 150, 300] {
            let conv = conv((6, 5), Padding::symmetric(1, 1), inputs, 33).unwrap();
            check(kernels, conv, Activation::Relu, inputs as u64);
        }
    });
}

/// More tiles than one block takes; every number of tiles up to more than a register tile takes.
#[test]
fn any_number_of_tiles_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        for (input, inputs, outputs) in
            [((47, 38), 48, 17), ((11, 90), 100, 7), ((3, 300), 40, 33), ((12, 11), 200, 40)]
        {
            let conv = conv(input, Padding::symmetric(1, 1), inputs, outputs).unwrap();
            check(kernels, conv, Activation::Relu6, 3);
        }
        for tiles in 1..32 {
            let conv = conv((4, 2 * tiles + 2), Padding::default(), 9, 40).unwrap();
            check(kernels, conv, Activation::Silu, tiles as u64);
        }
    });
}

/// Pitfall B22: scratch sizes of another path than the one that runs. Each call gets exactly what `workspace` says,
/// between canaries and against a guard page.
#[test]
fn b22_any_geometry_agrees_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(6);
        for _ in 0..random_cases(100) {
            let mut pad = || random.choose(&[0, 0, 1, 1, 2, 3]);
            let padding = Padding { top: pad(), left: pad(), bottom: pad(), right: pad() };
            let input = (1 + random.below(12), 1 + random.below(15));
            let (inputs, outputs) = (1 + random.below(90), 1 + random.below(70));
            let Some(conv) = conv(input, padding, inputs, outputs) else { continue };
            check(kernels, conv, random.choose(&ACTIVATIONS), random.next());
        }
    });
}

/// Windows with another kernel, stride or dilation have no such form.
#[test]
fn what_has_no_such_form_is_refused() {
    let w = conv((6, 6), Padding::default(), 2, 2).unwrap().window;
    for window in [
        Window { kernel_h: 2, ..w },
        Window { kernel_w: 4, ..w },
        Window { stride_h: 2, ..w },
        Window { stride_w: 2, ..w },
        Window { dilation_h: 2, ..w },
        Window { dilation_w: 2, ..w },
        Window { kernel_h: usize::MAX, ..w },
        Window { pad_top: usize::MAX, ..w },
        Window { in_w: usize::MAX, ..w },
        Window { out_h: usize::MAX, ..w },
        Window { out_w: usize::MAX / 2, ..w },
    ] {
        let conv = Conv2d { window, in_channels: 2, out_channels: 2 };
        refused(conv, 72, 4096, 32);
    }
    let fits = conv((6, 6), Padding::default(), 2, 2).unwrap();
    let scratch = workspace::conv2d_winograd_f32(&fits);
    refused(fits, 71, scratch, 32);
    refused(fits, 72, scratch - 1, 32);
    refused(fits, 72, scratch, 31);
    refused(Conv2d { in_channels: usize::MAX, ..fits }, 72, scratch, 32);
    refused(Conv2d { out_channels: usize::MAX / 16, ..fits }, 72, scratch, 32);
}

fn refused(conv: Conv2d, input: usize, scratch: usize, output: usize) {
    on_each_isa(|kernels| {
        let (input, packed) = (vec![1.0; input], vec![1.0; 2 * 16 * 16]);
        let mut output = vec![7.0; output];
        let mut scratch = Scratch::new(scratch);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            kernels.conv2d_winograd_f32(
                &conv,
                &input,
                &packed,
                &[0.0; 2],
                None,
                Activation::None,
                0..4,
                &mut output,
                scratch.get(),
            );
        }));
        // A panic in builds with debug assertions, an output as it was in others.
        assert!(result.is_err() || output.iter().all(|&y| y == 7.0), "{conv:?}");
    });
}
