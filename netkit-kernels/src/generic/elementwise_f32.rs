//! Functions of each element alone: activations, sums, scale and shift.

use super::activation::apply;
use crate::simd::{Kernel, Simd};
use netkit_core::op::{Activation, PerChannel};

/// `output = activation(input)`
pub(crate) struct ActivationF32<'a> {
    pub(crate) activation: Activation,
    pub(crate) input: &'a [f32],
    pub(crate) output: &'a mut [f32],
}

impl Kernel for ActivationF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let chunks = self.input.chunks(S::LANES).zip(self.output.chunks_mut(S::LANES));
        for (x, y) in chunks {
            simd.store(y, apply(simd, self.activation, simd.load(x)));
        }
    }
}

/// `data = activation(data)`: the pass that follows a kernel whose tiles do not apply this one.
pub(crate) struct ActivationInPlaceF32<'a> {
    pub(crate) activation: Activation,
    pub(crate) data: &'a mut [f32],
}

impl Kernel for ActivationInPlaceF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // One comparison for all elements: a constant activation needs none inside the loop.
        match self.activation {
            Activation::Sigmoid => in_place(simd, Activation::Sigmoid, self.data),
            Activation::Tanh => in_place(simd, Activation::Tanh, self.data),
            Activation::Silu => in_place(simd, Activation::Silu, self.data),
            Activation::Gelu => in_place(simd, Activation::Gelu, self.data),
            simple => in_place(simd, simple, self.data),
        }
    }
}

#[inline(always)]
fn in_place<S: Simd>(simd: S, activation: Activation, data: &mut [f32]) {
    let (whole, tail) = data.split_at_mut(data.len() - data.len() % S::LANES);
    for x in whole.chunks_exact_mut(S::LANES) {
        let y = apply(simd, activation, simd.load(x));
        simd.store(x, y);
    }
    if !tail.is_empty() {
        let y = apply(simd, activation, simd.load(tail));
        simd.store(tail, y);
    }
}

/// `output = activation(a + b)`
pub(crate) struct AddF32<'a> {
    pub(crate) activation: Activation,
    pub(crate) a: &'a [f32],
    pub(crate) b: &'a [f32],
    pub(crate) output: &'a mut [f32],
}

impl Kernel for AddF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let inputs = self.a.chunks(S::LANES).zip(self.b.chunks(S::LANES));
        for ((a, b), y) in inputs.zip(self.output.chunks_mut(S::LANES)) {
            let sum = simd.add(simd.load(a), simd.load(b));
            simd.store(y, apply(simd, self.activation, sum));
        }
    }
}

/// `output = activation(input · scale[c] + shift[c])`
pub(crate) struct BatchNormF32<'a> {
    pub(crate) shape: PerChannel,
    pub(crate) input: &'a [f32],
    pub(crate) scale: &'a [f32],
    pub(crate) shift: &'a [f32],
    pub(crate) activation: Activation,
    pub(crate) output: &'a mut [f32],
}

impl Kernel for BatchNormF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let channels = self.shape.channels.max(1);
        let pixels = self.input.chunks_exact(channels);
        for (x, y) in pixels.zip(self.output.chunks_exact_mut(channels)) {
            let constants = self.scale.chunks(S::LANES).zip(self.shift.chunks(S::LANES));
            let data = x.chunks(S::LANES).zip(y.chunks_mut(S::LANES));
            for ((scale, shift), (x, y)) in constants.zip(data) {
                let value = simd.mul_add(simd.load(x), simd.load(scale), simd.load(shift));
                simd.store(y, apply(simd, self.activation, value));
            }
        }
    }
}
