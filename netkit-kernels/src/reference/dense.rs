//! The dense layer.

use super::activation;
use netkit_core::op::{Activation, Dense};

/// `activation(weights · x + bias)` for each row; `weights` are `[out, in]`.
pub fn dense_f32(
    dense: &Dense,
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
    function: Activation,
    output: &mut [f32],
) {
    for row in 0..dense.rows {
        for o in 0..dense.out_features {
            let mut sum = f64::from(bias[o]);
            for i in 0..dense.in_features {
                sum += f64::from(weights[o * dense.in_features + i])
                    * f64::from(input[row * dense.in_features + i]);
            }
            output[row * dense.out_features + o] = activation(function, sum) as f32;
        }
    }
}
