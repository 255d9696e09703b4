//! The runtime loader: every model passes its own test cases, on every instruction set of this machine.

mod support;

use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit_core::diag::FirstError;
use netkit_core::format::{CaseInput, NkFile};
use netkit_kernels::Kernels;

#[test]
fn models_pass_their_cases_on_every_instruction_set() {
    let mut arena = Bump::heap(64 << 20).unwrap();
    for path in support::all_models() {
        let memory = support::aligned(&std::fs::read(&path).unwrap());
        let bytes = memory.as_bytes();
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
