//! When each value is needed.

use super::Slot;
use crate::graph::Graph;

/// The steps during which a value must be kept: from the one that produces it to the last that reads it,
/// both included, so that a step's inputs and output never share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Index of the producing node; 0 for an input of the graph.
    pub first: u16,
    /// Index of the last node that reads it; the producer itself if none does.
    pub last: u16,
}

impl Lifetime {
    /// Whether some step needs both.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Fills in the lifetime of every slot.
pub(super) fn mark(graph: &Graph<'_>, slots: &mut [Slot]) {
    for (step, node) in graph.nodes().iter().enumerate() {
        let step = step as u16;
        slots[node.output.index()].lifetime = Lifetime { first: step, last: step };
        for input in node.inputs() {
            slots[input.index()].lifetime.last = step;
        }
    }
}
