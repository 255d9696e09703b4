//! Dense layers: two output features at a time.

use super::{is_usual, rescale};
use crate::generic::dense_s8::DenseS8;
use netkit_core::op::Dense;

/// Output features whose sums are kept before they are rescaled.
const BLOCK: usize = 16;

/// Computes the layer, or returns false where it cannot and has written nothing.
pub(crate) fn dense_s8(call: &mut DenseS8<'_>, weights: &[i8]) -> bool {
    let Dense { in_features, out_features, .. } = call.dense;
    if in_features == 0 || out_features == 0 || !is_usual(call.multipliers) {
        return false;
    }
    let inputs = call.input.chunks_exact(in_features);
    for (input, output) in inputs.zip(call.output.chunks_exact_mut(out_features)) {
        let weights = weights.chunks(BLOCK * in_features);
        let biases = call.bias.chunks(BLOCK);
        let multipliers = call.multipliers.chunks(BLOCK);
        let blocks = weights.zip(biases).zip(multipliers).zip(output.chunks_mut(BLOCK));
        for (((weights, bias), multipliers), output) in blocks {
            let (mut start, mut sums) = ([0; BLOCK], [0; BLOCK]);
            features(weights, input, &mut sums, &mut start);
            for (start, &bias) in start.iter_mut().zip(bias) {
                *start = bias.wrapping_sub(start.wrapping_mul(call.input_zero_point));
            }
            rescale(&sums, &start, multipliers, call.stage, output);
        }
    }
    true
}

/// For each feature, its weights' products with the input, summed, and the weights alone, summed.
///
/// A weight is used once: what it adds because of the zero point is counted on the way, not in a pass of its own.
#[inline(never)]
fn features(weights: &[i8], input: &[i8], products: &mut [i32; BLOCK], sums: &mut [i32; BLOCK]) {
    let taps = input.len().max(1);
    let pairs = weights.chunks(2 * taps);
    let products = products.as_chunks_mut::<2>().0;
    let sums = sums.as_chunks_mut::<2>().0;
    for ((rows, products), sums) in pairs.zip(products).zip(sums) {
        let a = rows.get(..taps).unwrap_or(&[]);
        // A last feature without a partner is computed twice.
        let b = rows.get(taps..).filter(|b| !b.is_empty()).unwrap_or(a);
        let [mut a_products, mut b_products, mut a_sum, mut b_sum] = [0_i32; 4];
        for ((&a, &b), &x) in a.iter().zip(b).zip(input) {
            let (a, b, x) = (i32::from(a), i32::from(b), i32::from(x));
            a_products = a_products.wrapping_add(a * x);
            b_products = b_products.wrapping_add(b * x);
            a_sum = a_sum.wrapping_add(a);
            b_sum = b_sum.wrapping_add(b);
        }
        *products = [a_products, b_products];
        *sums = [a_sum, b_sum];
    }
}
