//! Element-wise sums.

use crate::harness::*;
use netkit_kernels::{Kernels, reference};

/// Two tensors of this length, with every activation, against the reference.
pub(crate) fn add(kernels: Kernels, len: usize, random: &mut Random) {
    for activation in ACTIVATIONS {
        let (a, b) = (random.floats(len), random.floats(len));
        let mut expected = vec![0.0; len];
        reference::add_f32(&a, &b, activation, &mut expected);
        let (a, b) = (Guarded::new(&a, len), Guarded::new(&b, len + 3));
        let mut output = Guarded::output(len, len + 5);
        kernels.add_f32(a.get(), b.get(), activation, output.get_mut());
        output.check();
        let bound = |i: usize| sum_bound(1, (a.get()[i] + b.get()[i]).abs(), expected[i]);
        let what = || format!("{}: {len} {activation:?}", kernels.isa().name());
        assert_within(output.get(), &expected, bound, what);
    }
}

#[test]
fn sums_agree_with_the_reference() {
    on_each_isa(|kernels| {
        let random = &mut Random::new(1);
        for len in (0..70).chain([1000]) {
            add(kernels, len, random);
        }
    });
}
