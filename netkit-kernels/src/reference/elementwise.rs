//! Functions of each element.

use netkit_core::op::{Activation, PerChannel};

#[allow(clippy::manual_clamp, reason = "written as the format's document has it")]
/// The activation of one number, by its formula (section 4).
#[must_use]
pub fn activation(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu => {
            if x > 0.0 {
                x
            } else {
                0.0
            }
        }
        Activation::Relu6 => {
            if x < 0.0 {
                0.0
            } else if x > 6.0 {
                6.0
            } else {
                x
            }
        }
        Activation::LeakyRelu(alpha) => {
            if x > 0.0 {
                x
            } else {
                f64::from(alpha) * x
            }
        }
        Activation::Sigmoid => 1.0 / (1.0 + libm::exp(-x)),
        Activation::Tanh => libm::tanh(x),
        Activation::Silu => x / (1.0 + libm::exp(-x)),
        Activation::Gelu => {
            // As x · sigmoid(2u): f64's 1 + tanh(u) cancels where u is far below 0.
            let u = 0.797_884_560_8 * (x + 0.044_715 * x * x * x);
            x / (1.0 + libm::exp(-2.0 * u))
        }
    }
}

/// `activation(input)`
pub fn activation_f32(function: Activation, input: &[f32], output: &mut [f32]) {
    for i in 0..input.len() {
        output[i] = activation(function, f64::from(input[i])) as f32;
    }
}

/// `activation(a + b)`
pub fn add_f32(a: &[f32], b: &[f32], function: Activation, output: &mut [f32]) {
    for i in 0..output.len() {
        output[i] = activation(function, f64::from(a[i]) + f64::from(b[i])) as f32;
    }
}

/// `activation(input · scale[c] + shift[c])`
pub fn batch_norm_f32(
    shape: &PerChannel,
    input: &[f32],
    scale: &[f32],
    shift: &[f32],
    function: Activation,
    output: &mut [f32],
) {
    for pixel in 0..shape.pixels {
        for c in 0..shape.channels {
            let i = pixel * shape.channels + c;
            let y = f64::from(input[i]) * f64::from(scale[c]) + f64::from(shift[c]);
            output[i] = activation(function, y) as f32;
        }
    }
}
