//! The transforms of Winograd's form F(2×2, 3×3), of some channels of one tile.

use crate::generic::activation::apply_simple;
use crate::simd::Simd;
use netkit_core::op::Activation;
use netkit_core::pack::{WINOGRAD_POSITIONS as POSITIONS, WINOGRAD_TILE as TILE};

/// Height and width of a tile of inputs.
pub(crate) const SIDE: usize = TILE + 2;

/// Outputs of a tile.
pub(crate) const OUTPUTS: usize = TILE * TILE;

/// `Bᵀ` times a column of inputs.
#[inline(always)]
fn input_transform<S: Simd>(simd: S, [a, b, c, d]: [S::Vector; SIDE]) -> [S::Vector; SIDE] {
    [simd.sub(a, c), simd.add(b, c), simd.sub(c, b), simd.sub(b, d)]
}

/// `Aᵀ` times a column of products.
#[inline(always)]
fn output_transform<S: Simd>(simd: S, [a, b, c, d]: [S::Vector; SIDE]) -> [S::Vector; TILE] {
    [simd.add(simd.add(a, b), c), simd.sub(simd.sub(b, c), d)]
}

/// `Bᵀ d B` of `W` channels, a multiple of the vector's length. Position `p` goes to `to[p · plane..]`; nothing is
/// written where not all of them fit.
#[inline(always)]
pub(crate) fn transform_inputs<S: Simd, const W: usize>(
    simd: S,
    pixels: &[&[f32; W]; POSITIONS],
    to: &mut [f32],
    plane: usize,
) {
    const { assert!(W.is_multiple_of(S::LANES)) };
    let last = plane.checked_mul(POSITIONS - 1).and_then(|last| last.checked_add(W));
    if last.is_none_or(|last| last > to.len()) {
        return;
    }
    let to = to.as_mut_ptr();
    let mut lane = 0;
    while lane < W {
        // Loops rather than closures, which would not be compiled for the instruction set.
        let mut columns = [[simd.splat(0.0); SIDE]; SIDE];
        for (j, to) in columns.iter_mut().enumerate() {
            let mut column = *to;
            for (i, value) in column.iter_mut().enumerate() {
                let pixel = pixels[i * SIDE + j].as_ptr();
                // SAFETY: `lane` is a multiple of LANES below W, which is one too.
                *value = unsafe { simd.load_pointer(pixel.wrapping_add(lane)) };
            }
            *to = input_transform(simd, column);
        }
        for i in 0..SIDE {
            let mut row = [simd.splat(0.0); SIDE];
            for (value, column) in row.iter_mut().zip(&columns) {
                *value = column[i];
            }
            for (j, value) in input_transform(simd, row).into_iter().enumerate() {
                let to = to.wrapping_add((i * SIDE + j) * plane + lane);
                // SAFETY: W floats of each position's plane are within the slice (checked above).
                unsafe { simd.store_pointer(to, value) };
            }
        }
        lane += S::LANES;
    }
}

/// `activation(Aᵀ p A + residual)` of `W` channels, a multiple of the vector's length, to the outputs that begin at
/// `offsets`, as far as they are within the slice.
#[inline(always)]
pub(crate) fn transform_outputs<S: Simd, const W: usize>(
    simd: S,
    products: &[&[f32; W]; POSITIONS],
    residual: Option<&[f32]>,
    activation: Activation,
    offsets: &[usize; OUTPUTS],
    output: &mut [f32],
) {
    const { assert!(W.is_multiple_of(S::LANES)) };
    let len = output.len().min(residual.map_or(usize::MAX, <[f32]>::len));
    let output = output.as_mut_ptr();
    let residual = residual.map(<[f32]>::as_ptr);
    // Outputs that are not wanted go here.
    let mut nowhere = [0.0f32; W];
    let nowhere = nowhere.as_mut_ptr();
    let (mut to, mut added) = ([nowhere; OUTPUTS], [nowhere.cast_const(); OUTPUTS]);
    for ((to, added), &offset) in to.iter_mut().zip(&mut added).zip(offsets) {
        if offset.checked_add(W).is_some_and(|end| end <= len) {
            *to = output.wrapping_add(offset);
            *added = residual.map_or(*added, |residual| residual.wrapping_add(offset));
        }
    }
    let mut lane = 0;
    while lane < W {
        let mut columns = [[simd.splat(0.0); TILE]; SIDE];
        for (j, to) in columns.iter_mut().enumerate() {
            let mut column = [simd.splat(0.0); SIDE];
            for (i, value) in column.iter_mut().enumerate() {
                let product = products[i * SIDE + j].as_ptr();
                // SAFETY: `lane` is a multiple of LANES below W, which is one too.
                *value = unsafe { simd.load_pointer(product.wrapping_add(lane)) };
            }
            *to = output_transform(simd, column);
        }
        for i in 0..TILE {
            let mut row = [simd.splat(0.0); SIDE];
            for (value, column) in row.iter_mut().zip(&columns) {
                *value = column[i];
            }
            for (j, mut value) in output_transform(simd, row).into_iter().enumerate() {
                let pixel = i * TILE + j;
                if residual.is_some() {
                    // SAFETY: W floats of the residual (checked above) or of `nowhere`.
                    let added = unsafe { simd.load_pointer(added[pixel].wrapping_add(lane)) };
                    value = simd.add(value, added);
                }
                let value = apply_simple(simd, activation, value);
                // SAFETY: W floats of the output (checked above) or of `nowhere`.
                unsafe { simd.store_pointer(to[pixel].wrapping_add(lane), value) };
            }
        }
        lane += S::LANES;
    }
}
