//! The small networks of every layer kind compute something: firmware that agrees on them agrees on more than zeros.

use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit_backbones::small;
use std::collections::BTreeSet;

/// The file where the loader wants it: at a multiple of 4.
fn aligned(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

#[test]
fn outputs_differ_and_follow_the_input() {
    let mut arena = Bump::heap(1 << 20).unwrap();
    for network in small() {
        let bytes = network.model.to_bytes().unwrap_or_else(|e| panic!("{}: {e}", network.name));
        let words = aligned(&bytes);
        arena.reset();
        let mut loaded = Network::load(&bytemuck::cast_slice(&words)[..bytes.len()], &arena)
            .unwrap_or_else(|error| panic!("{}: {error}", network.name));
        let mut outputs = [vec![0.0; loaded.output_len()], vec![0.0; loaded.output_len()]];
        for (seed, output) in [1_usize, 2].into_iter().zip(&mut outputs) {
            let input =
                (0..loaded.input_len()).map(|i| ((i * seed * 37) % 101) as f32 / 32.0 - 1.5);
            loaded.forward(&input.collect::<Vec<f32>>(), output).unwrap();
            assert!(output.iter().all(|value| value.is_finite()), "{}", network.name);
            let distinct: BTreeSet<u32> = output.iter().map(|value| value.to_bits()).collect();
            let wanted = output.len().min(10) / 2;
            assert!(distinct.len() > wanted, "{}: {output:?}", network.name);
        }
        let [first, second] = &outputs;
        assert_ne!(first, second, "{}: two inputs, one output", network.name);
    }
}
