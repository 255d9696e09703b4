//! The runtime loader: every model passes its own test cases, on every instruction set of this machine.

mod support;

use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit_core::diag::FirstError;
use netkit_core::format::{CaseInput, NkFile};
use netkit_kernels::Kernels;

/// Bytes at an address that is a multiple of 64.
fn aligned(bytes: &[u8]) -> &'static [u8] {
    let memory = Vec::leak(vec![0u128; bytes.len().div_ceil(16) + 4]);
    let memory: &mut [u8] = bytemuck::cast_slice_mut(memory);
    let start = memory.as_ptr().align_offset(64);
    memory[start..start + bytes.len()].copy_from_slice(bytes);
    &memory[start..start + bytes.len()]
}

#[test]
fn models_pass_their_cases_on_every_instruction_set() {
    let mut arena = Bump::heap(64 << 20).unwrap();
    for path in support::all_models() {
        let bytes = aligned(&std::fs::read(&path).unwrap());
        if bytes[4] == 4 {
            continue;
        }
        for kernels in Kernels::all() {
            arena.reset();
            let mut network = Network::load(bytes, &arena)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
                .with_kernels(kernels);
            let file = NkFile::parse(bytes, &mut FirstError::new()).unwrap();
            let cases: Vec<_> = file.cases().collect();
            let tolerance = file.tolerance().unwrap_or(0.0);
            assert!(!cases.is_empty(), "{} has no cases", path.display());
            for case in cases {
                let CaseInput::F32(input) = case.input else { continue };
                let input: Vec<f32> = input.iter().collect();
                let mut output = vec![0.0; network.output_len()];
                network.forward(&input, &mut output).unwrap();
                for (actual, expected) in output.iter().zip(case.expected.iter()) {
                    assert!(
                        (actual - expected).abs() <= tolerance,
                        "{}, {:?} on {}: {actual} instead of {expected}",
                        path.display(),
                        case.name,
                        kernels.isa().name()
                    );
                }
            }
        }
    }
}
