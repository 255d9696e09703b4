//! Normalisations.

use netkit_core::op::PerChannel;

/// `(x − mean) / √(variance + epsilon) · gamma[c] + beta[c]` over the channels of each pixel.
pub fn layer_norm_f32(
    shape: &PerChannel,
    epsilon: f32,
    input: &[f32],
    gamma: &[f32],
    beta: &[f32],
    output: &mut [f32],
) {
    let channels = shape.channels;
    for pixel in 0..shape.pixels {
        let x = &input[pixel * channels..(pixel + 1) * channels];
        let (mut mean, mut variance) = (0.0, 0.0);
        for &x in x {
            mean += f64::from(x) / channels as f64;
        }
        for &x in x {
            variance += (f64::from(x) - mean) * (f64::from(x) - mean) / channels as f64;
        }
        for c in 0..channels {
            let normal = (f64::from(x[c]) - mean) / libm::sqrt(variance + f64::from(epsilon));
            output[pixel * channels + c] =
                (normal * f64::from(gamma[c]) + f64::from(beta[c])) as f32;
        }
    }
}

/// `G[c] = √(Σ_pixels x²)`, `N[c] = G[c] / (mean_c G + epsilon)`, `gamma[c] · x · N[c] + beta[c] + x`.
pub fn global_response_norm_f32(
    shape: &PerChannel,
    epsilon: f32,
    input: &[f32],
    gamma: &[f32],
    beta: &[f32],
    output: &mut [f32],
) {
    let channels = shape.channels;
    let norm = |c: usize| {
        let mut squares = 0.0;
        for pixel in 0..shape.pixels {
            let x = f64::from(input[pixel * channels + c]);
            squares += x * x;
        }
        libm::sqrt(squares)
    };
    let mut mean = 0.0;
    for c in 0..channels {
        mean += norm(c) / channels as f64;
    }
    for c in 0..channels {
        let factor = norm(c) / (mean + f64::from(epsilon));
        for pixel in 0..shape.pixels {
            let i = pixel * channels + c;
            let x = f64::from(input[i]);
            output[i] = (f64::from(gamma[c]) * x * factor + f64::from(beta[c]) + x) as f32;
        }
    }
}

/// `e^(x − max) / Σ e^(x − max)` over all elements.
pub fn softmax_f32(input: &[f32], output: &mut [f32]) {
    let Some(&first) = input.first() else { return };
    let mut max = first;
    for &x in input {
        if x > max {
            max = x;
        }
    }
    let mut sum = 0.0;
    for &x in input {
        sum += libm::exp(f64::from(x) - f64::from(max));
    }
    for i in 0..input.len() {
        output[i] = (libm::exp(f64::from(input[i]) - f64::from(max)) / sum) as f32;
    }
}
