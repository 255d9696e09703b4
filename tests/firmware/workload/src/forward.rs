//! Measured inferences: every step of the network is marked for the instruction counter, and named where names cost nothing.

use crate::{Board, Report};
use netkit::{Model, QuantizedModel, Step};

/// More than any network here has.
const MOST_STEPS: usize = 96;

/// Marks a step. An inference that is not measured takes it too: with another observer the network's code would be in the
/// image twice.
pub(crate) fn mark<B: Board>(_: Step) {
    B::mark_step();
}

/// Measures one inference as the region `name`.
pub(crate) fn float<B: Board, M: Model>(
    board: &mut B,
    name: &str,
    model: &mut M,
    input: &M::Input,
    output: &mut M::Output,
) {
    board.measure(name, || model.forward_observed(input, output, mark::<B>));
    if B::HAS_ROOM {
        let mut steps = Steps::new();
        model.forward_observed(input, output, |step| steps.push(step));
        steps.report(board, name);
    }
}

/// As [`float`].
pub(crate) fn int8<B: Board, M: QuantizedModel>(
    board: &mut B,
    name: &str,
    model: &mut M,
    input: &M::QuantizedInput,
    output: &mut M::QuantizedOutput,
) {
    board.measure(name, || model.forward_i8_observed(input, output, mark::<B>));
    if B::HAS_ROOM {
        let mut steps = Steps::new();
        model.forward_i8_observed(input, output, |step| steps.push(step));
        steps.report(board, name);
    }
}

/// The steps of a network.
struct Steps {
    steps: [Option<Step>; MOST_STEPS],
    count: usize,
}

impl Steps {
    fn new() -> Self {
        Self { steps: [None; MOST_STEPS], count: 0 }
    }

    fn push(&mut self, step: Step) {
        self.steps[self.count] = Some(step);
        self.count += 1;
    }

    fn report(&self, board: &mut impl Board, name: &str) {
        for step in self.steps.iter().flatten() {
            Report::step(board, name, step);
        }
    }
}
