//! What the tests share: seeded inputs, guarded memory, comparisons, cases.

mod bound;
mod cases;
mod guarded;
mod layer_s8;
mod random;

pub(crate) use bound::{absolute, assert_within, sum_bound};
pub(crate) use cases::{ACTIVATIONS, WINDOWS, any_window, channel_counts, cuts, dilated, window};
pub(crate) use guarded::{Factors, Guarded, Place, Scratch};
pub(crate) use layer_s8::Layer;
pub(crate) use random::{Random, random_cases};

use netkit_kernels::Kernels;

/// Runs a test on the kernels of every instruction set this machine has, with its slices in every [`Place`]:
/// Pitfall B30, loads and stores past the end of a tail, ends the process at a guard page.
///
/// `NETKIT_ONLY_ISA`, a list of names, leaves out the others, which an emulated machine need not repeat.
pub(crate) fn on_each_isa(test: impl Fn(Kernels)) {
    on_each_isa_at(Place::ALL, test);
}

/// The same in these places only.
pub(crate) fn on_each_isa_at(places: &[Place], test: impl Fn(Kernels)) {
    let only = std::env::var("NETKIT_ONLY_ISA").unwrap_or_default();
    for kernels in Kernels::all() {
        let name = kernels.isa().name();
        if !only.is_empty() && !only.split([' ', ',']).any(|only| only == name) {
            continue;
        }
        for place in places {
            place.put(|| test(kernels));
        }
    }
}
