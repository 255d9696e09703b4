//! Room in the arena for what the plan leaves to the caller.

use netkit_core::plan::{ALIGNMENT, Placement, Plan, Slot};

/// Where a quantized copy of the input fits among the activations without making the arena larger, for as long as the
/// input is read. `None` where it fits nowhere.
pub(super) fn for_input(plan: &Plan<'_>, input: &Slot, arena_bytes: usize) -> Option<usize> {
    let mut offset = 0;
    loop {
        let end = offset + input.bytes;
        if end > arena_bytes {
            return None;
        }
        // Every round passes one slot for good, so this ends.
        let taken = plan.slots().iter().find_map(|slot| match slot.placement {
            Placement::Arena { offset: start }
                if slot.lifetime.overlaps(&input.lifetime)
                    && start < end
                    && offset < start + slot.bytes =>
            {
                Some(start + slot.bytes)
            }
            _ => None,
        });
        match taken {
            Some(behind) => offset = behind.next_multiple_of(ALIGNMENT),
            None => return Some(offset),
        }
    }
}
