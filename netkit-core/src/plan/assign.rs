//! Lifetimes to offsets.
//!
//! Finding the smallest arena is bin packing in two dimensions, NP-hard in general; a chain is not: even
//! values at the bottom and odd ones against the top meet the lower bound, the largest pair of
//! neighbours. So three strategies are tried and the best kept: both ends in turn (optimal for chains), first fit by
//! size, first fit by time.

use super::{ALIGNMENT, Placement, Slot};

/// A way of choosing offsets.
#[derive(Clone, Copy)]
enum Strategy {
    /// Large buffers first, each at the lowest offset that is free during its lifetime.
    BySize,
    /// In execution order, each at the lowest offset that is free during its lifetime.
    ByTime,
}

/// Chooses an offset for every slot in the arena; returns the arena's size in bytes.
pub(super) fn assign(slots: &mut [Slot]) -> Option<usize> {
    let mut best = usize::MAX;
    if let Some(total) = both_ends(slots)? {
        best = total;
        keep(slots);
    }
    for strategy in [Strategy::BySize, Strategy::ByTime] {
        let total = first_fit(slots, strategy)?;
        if total < best {
            best = total;
            keep(slots);
        }
    }
    Some(best)
}

/// Makes the candidates the placements.
fn keep(slots: &mut [Slot]) {
    for slot in slots {
        if slot.in_arena() {
            slot.placement = Placement::Arena { offset: slot.candidate };
        }
    }
}

const fn round_up(bytes: usize, alignment: usize) -> Option<usize> {
    match bytes.checked_add(alignment - 1) {
        Some(sum) => Some(sum & !(alignment - 1)),
        None => None,
    }
}

/// Values in turn at the bottom and against the top. `Some(None)` if two of one end are needed at once.
fn both_ends(slots: &mut [Slot]) -> Option<Option<usize>> {
    // The lower bound: the most bytes any two neighbours need.
    let mut total = 0usize;
    let mut previous = 0usize;
    for slot in slots.iter().filter(|slot| slot.in_arena()) {
        let bytes = round_up(slot.bytes, slot.alignment())?;
        total = total.max(previous.checked_add(bytes)?);
        previous = bytes;
    }
    let total = round_up(total, ALIGNMENT)?;
    let mut top = false;
    for index in 0..slots.len() {
        if !slots[index].in_arena() {
            continue;
        }
        let slot = &slots[index];
        let offset = if top { (total - slot.bytes) & !(slot.alignment() - 1) } else { 0 };
        top = !top;
        slots[index].candidate = offset;
        if (0..index).any(|other| conflict(&slots[other], &slots[index])) {
            return Some(None);
        }
    }
    Some(Some(total))
}

fn conflict(a: &Slot, b: &Slot) -> bool {
    a.in_arena()
        && b.in_arena()
        && a.lifetime.overlaps(&b.lifetime)
        && a.candidate < b.candidate + b.bytes
        && b.candidate < a.candidate + a.bytes
}

/// Each buffer, in the strategy's order, at the lowest offset free during its lifetime. Quadratic in
/// the number of values for each buffer, cubic in all, and without memory of its own; networks have tens of
/// values.
fn first_fit(slots: &mut [Slot], strategy: Strategy) -> Option<usize> {
    const UNPLACED: usize = usize::MAX;
    for slot in slots.iter_mut() {
        slot.candidate = UNPLACED;
    }
    let mut total = 0;
    loop {
        let unplaced = (0..slots.len())
            .filter(|&index| slots[index].in_arena() && slots[index].candidate == UNPLACED);
        let next = match strategy {
            Strategy::BySize => {
                unplaced.max_by_key(|&index| (slots[index].bytes, slots.len() - index))
            }
            Strategy::ByTime => unplaced.min_by_key(|&index| slots[index].lifetime.first),
        };
        let Some(next) = next else { return round_up(total, ALIGNMENT) };
        let offset = lowest_free(slots, next, UNPLACED)?;
        slots[next].candidate = offset;
        total = total.max(offset.checked_add(slots[next].bytes)?);
    }
}

/// The lowest aligned offset at which buffer `next` meets no placed buffer of an overlapping lifetime.
fn lowest_free(slots: &[Slot], next: usize, unplaced: usize) -> Option<usize> {
    let wanted = &slots[next];
    let mut offset = 0usize;
    loop {
        let end = offset.checked_add(wanted.bytes)?;
        let blocker = slots.iter().find(|slot| {
            slot.in_arena()
                && slot.candidate != unplaced
                && slot.lifetime.overlaps(&wanted.lifetime)
                && slot.candidate < end
                && offset < slot.candidate + slot.bytes
        });
        match blocker {
            // Every step passes one buffer for good, so this ends.
            Some(slot) => offset = round_up(slot.candidate + slot.bytes, wanted.alignment())?,
            None => return Some(offset),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::Lifetime;
    use super::*;
    use std::vec::Vec;

    fn slot(bytes: usize, first: u16, last: u16) -> Slot {
        Slot {
            placement: Placement::Arena { offset: 0 },
            lifetime: Lifetime { first, last },
            bytes,
            ..Slot::EMPTY
        }
    }

    fn check(slots: &[Slot], total: usize) {
        for (index, a) in slots.iter().enumerate() {
            let Placement::Arena { offset } = a.placement else { continue };
            assert!(offset % a.alignment() == 0 && offset + a.bytes <= total);
            for b in &slots[..index] {
                let Placement::Arena { offset: other } = b.placement else { continue };
                assert!(
                    !a.lifetime.overlaps(&b.lifetime)
                        || offset + a.bytes <= other
                        || other + b.bytes <= offset,
                    "{a:?} {b:?}"
                );
            }
        }
    }

    /// First fit by size leaves 27 units here; neighbours never need more than 19.
    #[test]
    fn a_chain_takes_its_largest_pair_of_neighbours() {
        let mut slots: Vec<Slot> = [10, 9, 8, 9]
            .iter()
            .enumerate()
            .map(|(i, &units)| slot(units * 64, i as u16, i as u16 + 1))
            .collect();
        let total = assign(&mut slots).unwrap();
        check(&slots, total);
        assert_eq!(total, 19 * 64);
    }

    #[test]
    fn nothing_in_the_arena_takes_nothing() {
        assert_eq!(assign(&mut []), Some(0));
        let mut slots = [Slot { placement: Placement::Output, ..slot(64, 0, 1) }];
        assert_eq!(assign(&mut slots), Some(0));
    }

    /// What `compile` reports as a model too large for the address space; on a host of 64 bits no file reaches it.
    #[test]
    fn sizes_that_do_not_fit_the_address_space_are_refused() {
        for bytes in [usize::MAX, usize::MAX - 15, usize::MAX / 2 + 1] {
            assert_eq!(assign(&mut [slot(bytes, 0, 3), slot(bytes, 1, 2)]), None, "{bytes}");
        }
        let mut one = [slot(usize::MAX - 127, 0, 1)];
        assert_eq!(assign(&mut one), Some(usize::MAX - 127));
        assert_eq!(assign(&mut [slot(usize::MAX, 0, 1)]), None);
        // Three of which any two fit.
        let third = usize::MAX / 5 * 2;
        let mut three = [slot(third, 0, 9), slot(third, 0, 9), slot(third, 0, 9)];
        assert_eq!(assign(&mut three), None);
    }

    #[test]
    fn random_lifetimes_never_collide_and_chains_are_optimal() {
        let mut state = 1u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for round in 0..2000 {
            let count = 1 + random(24) as usize;
            let chain = round % 2 == 0;
            let mut slots: Vec<Slot> = (0..count)
                .map(|i| {
                    let last = i as u64 + if chain { 1 } else { random(6) };
                    slot(1 + random(5000) as usize, i as u16, last as u16)
                })
                .collect();
            let total = assign(&mut slots).unwrap();
            check(&slots, total);
            let sum: usize = slots.iter().map(|s| s.bytes.next_multiple_of(64)).sum();
            assert!(total <= sum);
            if chain {
                let rounded = |s: &Slot| round_up(s.bytes, s.alignment()).unwrap();
                let bound = if count == 1 {
                    rounded(&slots[0])
                } else {
                    slots.windows(2).map(|w| rounded(&w[0]) + rounded(&w[1])).max().unwrap()
                };
                assert!(total <= bound, "{total} > {bound}");
            }
        }
    }
}
