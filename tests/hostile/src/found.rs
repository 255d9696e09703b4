//! The inputs that coverage-guided runs found: each takes a path through the code that no other takes.
//!
//! They lie in one file a target, `found/NAME.bin`: for each input its length, a little-endian `u32`, and its bytes. As
//! thousands of small files they would be a burden on every checkout. `.ci/sanitize keep` writes them.

use std::path::{Path, PathBuf};

/// The file of a target.
#[must_use]
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(format!("{name}.bin"))
}

/// The inputs as a file holds them.
#[must_use]
pub fn pack(inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut packed = Vec::new();
    for input in inputs {
        let len = u32::try_from(input.len()).expect("inputs of a few kilobytes");
        packed.extend_from_slice(&len.to_le_bytes());
        packed.extend_from_slice(input);
    }
    packed
}

/// The inputs of a file; `None` if it ends within one.
#[must_use]
pub fn unpack(mut packed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut inputs = Vec::new();
    while !packed.is_empty() {
        let (len, rest) = packed.split_first_chunk()?;
        let (input, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        inputs.push(input.to_vec());
        packed = rest;
    }
    Some(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out() {
        let inputs = vec![vec![], vec![7], vec![1; 300], vec![]];
        let packed = pack(&inputs);
        assert_eq!(unpack(&packed), Some(inputs));
        assert_eq!(unpack(&packed[..packed.len() - 1]), None);
    }
}
