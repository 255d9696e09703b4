//! Upsampling, concatenation and copying: exact, for both element types.

use crate::harness::*;
use bytemuck::Pod;
use netkit_core::op::{Concat, Upsample2x};
use netkit_kernels::{concat, copy, reference, upsample2x};

pub(crate) fn upsample<T: Pod + PartialEq + core::fmt::Debug>(
    shape: &Upsample2x,
    input: &[T],
    offset: usize,
) {
    let Upsample2x { in_h, in_w, channels } = *shape;
    let mut expected = vec![T::zeroed(); 4 * in_h * in_w * channels];
    reference::upsample2x(shape, input, &mut expected);
    let input = Guarded::new(input, offset);
    for cut in cuts(2 * in_h) {
        let mut actual = Vec::new();
        for rows in cut {
            let mut output = Guarded::output(rows.len() * 2 * in_w * channels, offset + 3);
            upsample2x(shape, input.get(), rows, output.get_mut());
            output.check();
            actual.extend_from_slice(output.get());
        }
        assert_eq!(actual, expected, "{shape:?}");
    }
}

#[test]
fn upsampling_agrees_with_the_reference() {
    let random = &mut Random::new(1);
    for channels in 1..40 {
        let shape = Upsample2x { in_h: 1 + random.below(6), in_w: 1 + random.below(7), channels };
        let len = shape.in_h * shape.in_w * channels;
        upsample(&shape, &random.floats(len), channels);
        upsample(&shape, &random.bytes(len), channels);
    }
}

pub(crate) fn join<T: Pod + PartialEq + core::fmt::Debug>(
    shape: &Concat,
    inputs: &[Vec<T>],
    offset: usize,
) {
    let total: usize = shape.outer * shape.inner.iter().sum::<usize>();
    let mut expected = vec![T::zeroed(); total];
    let slices: Vec<&[T]> = inputs.iter().map(Vec::as_slice).collect();
    reference::concat(shape, &slices, &mut expected);
    let guarded: Vec<Guarded<T>> =
        inputs.iter().enumerate().map(|(i, input)| Guarded::new(input, offset + i)).collect();
    let slices: Vec<&[T]> = guarded.iter().map(Guarded::get).collect();
    let mut output = Guarded::output(total, offset + 5);
    concat(shape, &slices, output.get_mut());
    output.check();
    assert_eq!(output.get(), expected, "{shape:?}");
}

#[test]
fn concatenation_agrees_with_the_reference() {
    let random = &mut Random::new(2);
    for case in 0..200 {
        let outer = 1 + random.below(9);
        let mut inner = [0; 4];
        let count = 1 + random.below(inner.len());
        inner[..count].iter_mut().for_each(|len| *len = 1 + random.below(20));
        let shape = Concat { outer, inner };
        let lengths = || inner[..count].iter().map(|len| outer * len);
        let floats: Vec<_> = lengths().map(|len| random.floats(len)).collect();
        join(&shape, &floats, case);
        let bytes: Vec<_> = lengths().map(|len| random.bytes(len)).collect();
        join(&shape, &bytes, case);
    }
}

#[test]
fn a_copy_is_the_same() {
    let random = &mut Random::new(3);
    for len in 0..70 {
        let input = Guarded::new(&random.floats(len), len);
        let mut output = Guarded::output(len, len + 1);
        copy(input.get(), output.get_mut());
        output.check();
        assert_eq!(output.get(), input.get());
    }
}
