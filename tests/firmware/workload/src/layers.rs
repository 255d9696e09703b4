//! Small networks that between them hold every kind of layer: float ones, and int8 ones with the kinds that int8 has.
//!
//! Two inputs each, the first of them measured. Which networks there are is the business of `netkit-backbones`, whose tests
//! hold its list against the format's catalogue.

use crate::random::Random;
use crate::{Board, Report, forward};
use netkit::{Model, QuantizedModel};
use netkit_core::op::Activation;

include!(concat!(env!("OUT_DIR"), "/networks.rs"));

pub(crate) const RUNS: [&str; 2] = ["first", "second"];

/// Never inlined: one network's memory is on the stack at a time.
#[inline(never)]
fn float<B: Board, M, const INPUT: usize, const OUTPUT: usize>(board: &mut B)
where
    M: Model<Input = [f32; INPUT], Output = [f32; OUTPUT]> + Default,
{
    sizes::<M>(board);
    let mut random = Random(1);
    let mut model = M::default();
    for name in RUNS {
        let mut input = [0.0; INPUT];
        input.fill_with(|| f32::from(random.next() as i8) / 64.0);
        let mut output = [0.0; OUTPUT];
        if name == RUNS[0] {
            forward::float(board, M::NAME, &mut model, &input, &mut output);
        } else {
            model.forward_observed(&input, &mut output, forward::mark::<B>);
        }
        Report::f32(board, M::NAME, &output);
    }
}

/// As `float`.
#[inline(never)]
fn int8<B: Board, M, const INPUT: usize, const OUTPUT: usize>(board: &mut B)
where
    M: QuantizedModel<QuantizedInput = [i8; INPUT], QuantizedOutput = [i8; OUTPUT]> + Default,
{
    sizes::<M>(board);
    let mut random = Random(1);
    let mut model = M::default();
    for name in RUNS {
        let mut input = [0; INPUT];
        input.fill_with(|| random.next() as i8);
        let mut output = [0; OUTPUT];
        if name == RUNS[0] {
            forward::int8(board, M::NAME, &mut model, &input, &mut output);
        } else {
            model.forward_i8_observed(&input, &mut output, forward::mark::<B>);
        }
        Report::i8(board, M::NAME, &output);
    }
}

fn sizes<M: Model>(board: &mut impl Board) {
    Report::remark(board, M::NAME, "data", M::WEIGHT_BYTES as i32);
    Report::remark(board, M::NAME, "arena", M::ARENA_BYTES as i32);
}

/// Each activation by itself, the one operator that no file asks for: it always finds room in its layer.
fn activations(board: &mut impl Board) {
    let activations = [
        ("relu", Activation::Relu),
        ("relu6", Activation::Relu6),
        ("leaky_relu", Activation::LeakyRelu(0.1)),
        ("sigmoid", Activation::Sigmoid),
        ("tanh", Activation::Tanh),
        ("silu", Activation::Silu),
        ("gelu", Activation::Gelu),
    ];
    let mut input = [0.0; 37];
    for (index, value) in input.iter_mut().enumerate() {
        *value = (index as f32 - 18.0) * 0.45;
    }
    for (name, activation) in activations {
        let mut output = [0.0; 37];
        netkit_kernels::activation_f32(activation, &input, &mut output);
        Report::f32(board, name, &output);
    }
}
