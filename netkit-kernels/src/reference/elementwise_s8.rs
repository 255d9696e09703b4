//! Int8 sum and softmax (sections 8.7 and 8.8).

use netkit_core::quant::{AddStage, SoftmaxStage};

/// Element-wise sum.
pub fn add_s8(stage: &AddStage, left: &[i8], right: &[i8], output: &mut [i8]) {
    for (i, to) in output.iter_mut().enumerate() {
        *to = stage.apply(left[i], right[i]);
    }
}

/// Softmax over all elements.
pub fn softmax_s8(stage: &SoftmaxStage, input: &[i8], output: &mut [i8]) {
    let max = input.iter().copied().max().map_or(0, i32::from);
    let exp = |q: i8| {
        let difference = i32::from(q) - max;
        (difference >= stage.min_difference).then(|| stage.exp(difference))
    };
    let sum = input.iter().filter_map(|&q| exp(q)).map(SoftmaxStage::term).sum();
    let normaliser = SoftmaxStage::normaliser(sum);
    for (to, &q) in output.iter_mut().zip(input) {
        *to = exp(q).map_or(-128, |exp| normaliser.apply(exp));
    }
}
