//! `activation_f32`, `add_f32`.

use super::check::require;
use crate::dispatch::Kernels;
use crate::generic::elementwise_f32::{ActivationF32, AddF32};
use netkit_core::op::Activation;

impl Kernels {
    /// `activation(input)`, element by element.
    ///
    /// Comparisons with NaN are false, as in the formulas of [`Activation`]: relu of NaN is 0, relu6 and
    /// the others give NaN. So do silu and gelu of −∞; no other number does. Errors: none for relu and relu6, one rounding for leaky relu, 4 ULP for
    /// sigmoid, tanh and silu, `4 + 2x²` ULP for gelu, whose exponent is a rounded polynomial. Results
    /// below `2^−120` may be any number below it, 0 included.
    pub fn activation_f32(self, activation: Activation, input: &[f32], output: &mut [f32]) {
        require!(input.len() == output.len(), "activation_f32: output length");
        self.run(ActivationF32 { activation, input, output });
    }

    /// `activation(a + b)`, element by element: one rounding plus what the activation adds.
    pub fn add_f32(self, a: &[f32], b: &[f32], activation: Activation, output: &mut [f32]) {
        require!(a.len() == output.len(), "add_f32: length of a");
        require!(b.len() == output.len(), "add_f32: length of b");
        self.run(AddF32 { activation, a, b, output });
    }
}
