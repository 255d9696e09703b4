//! The memory plan: where each value lives while the network runs.
//!
//! Values that the caller does not hold share one arena. Two values may overlap when no step needs both.
//! The plan covers activations only: a kernel's scratch depends on the target and is added behind them
//! by whoever knows it (the generated code's constants, the loader).

mod assign;
mod liveness;

pub use liveness::Lifetime;

use crate::graph::{Graph, ValueId};
use assign::assign;

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In the caller's input.
    Input,
    /// In the caller's output.
    Output,
    /// In the arena, at a byte offset.
    Arena {
        /// Byte offset from the start of the arena, a multiple of [`ALIGNMENT`].
        offset: usize,
    },
}

/// Alignment of every buffer in the arena, in bytes.
pub const ALIGNMENT: usize = 16;

/// Buffers of at least this many bytes start on a cache line.
const LARGE: usize = 1024;

/// Alignment of large buffers, and of an arena as a whole, in bytes.
pub const CACHE_LINE: usize = 64;

/// What the planner keeps of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where the value lives.
    pub placement: Placement,
    /// When it is needed.
    pub lifetime: Lifetime,
    /// Its size in bytes.
    pub bytes: usize,
    /// The best offset found so far while strategies are tried.
    candidate: usize,
}

impl Slot {
    /// Filler for lent storage.
    pub const EMPTY: Self = Self {
        placement: Placement::Input,
        lifetime: Lifetime { first: 0, last: 0 },
        bytes: 0,
        candidate: 0,
    };

    /// Alignment this buffer wants.
    const fn alignment(&self) -> usize {
        if self.bytes >= LARGE { CACHE_LINE } else { ALIGNMENT }
    }

    fn in_arena(&self) -> bool {
        matches!(self.placement, Placement::Arena { .. })
    }
}

/// Placements of all values of a graph, and the size of the arena they share.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'s> {
    slots: &'s [Slot],
    arena_bytes: usize,
}

impl<'s> Plan<'s> {
    /// Plans a graph in lent storage of at least one slot a value; `None` if there are fewer or the
    /// arena would not fit an address space.
    #[must_use]
    pub fn new(graph: &Graph<'_>, storage: &'s mut [Slot]) -> Option<Self> {
        let slots = storage.get_mut(..graph.values().len())?;
        for (index, (slot, value)) in slots.iter_mut().zip(graph.values()).enumerate() {
            let placement = if graph.inputs().iter().any(|id| id.index() == index) {
                Placement::Input
            } else if graph.outputs().iter().any(|id| id.index() == index) {
                Placement::Output
            } else {
                Placement::Arena { offset: 0 }
            };
            *slot = Slot { placement, bytes: value.bytes(), ..Slot::EMPTY };
        }
        liveness::mark(graph, slots);
        let arena_bytes = assign(slots)?;
        Some(Self { slots, arena_bytes })
    }

    /// Where a value lives.
    #[must_use]
    pub fn placement(&self, id: ValueId) -> Placement {
        self.slots[id.index()].placement
    }

    /// All values, by [`ValueId::index`].
    #[must_use]
    pub const fn slots(&self) -> &'s [Slot] {
        self.slots
    }

    /// Bytes of the arena that activations take.
    #[must_use]
    pub const fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }
}
