//! What the fuzz targets share: half of the mutations are libFuzzer's, half know the structure of what they change.
//!
//! `cargo +nightly fuzz run runtime` fuzzes one target; `cargo run -p netkit-hostile --example seeds` writes the inputs to start from.
#![forbid(unsafe_code)]

pub use netkit_hostile;

use netkit_hostile::Target;
use netkit_hostile::random::Random;

/// Changes `data[..size]` in ways that the target's inputs are made of; gives the new size.
#[must_use]
pub fn mutate(target: &Target, data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = Random::new(seed.into());
    if random.below(2) == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let mut input = data[..size].to_vec();
    (target.mutate)(&mut random, &mut input);
    input.truncate(max_size);
    data[..input.len()].copy_from_slice(&input);
    input.len()
}

/// A fuzz target: the promise it holds the bytes against, and its mutator.
#[macro_export]
macro_rules! fuzz {
    ($target:ident) => {
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::mutate(&$crate::netkit_hostile::$target, data, size, max_size, seed)
        });
        libfuzzer_sys::fuzz_target!(|data: &[u8]| {
            let _ = ($crate::netkit_hostile::$target.run)(data);
        });
    };
}
