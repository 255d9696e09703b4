//! The runtime loader: every model passes its own test cases, on every instruction set of this machine.

mod support;

use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit_core::diag::FirstError;
use netkit_core::format::{CaseInput, NkFile};
use netkit_kernels::{Isa, Kernels};

/// On x86-64 only a feature brings the portable kernels: the tests of this package ask for it.
#[test]
fn portable_kernels_are_tested_too() {
    assert!(Kernels::for_isa(Isa::Scalar).is_some());
}

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

/// Pitfall B24: state that is kept or wiped between calls. No layer of the format has any, so an answer depends on its
/// input alone, whatever was computed before, and values that are fed one at a time give what they give together.
#[test]
fn b24_an_answer_does_not_depend_on_earlier_ones() {
    let mut arena = Bump::heap(64 << 20).unwrap();
    for path in support::all_models() {
        let memory = support::aligned(&std::fs::read(&path).unwrap());
        arena.reset();
        let mut network = Network::load(memory.as_bytes(), &arena).unwrap();
        let len = network.input_len();
        let ramp: Vec<f32> = (0..len).map(|i| (i % 17) as f32 / 8.0 - 1.0).collect();
        let answer = |network: &mut Network<'_>, input: &[f32]| {
            let mut output = vec![0.0; network.output_len()];
            network.forward(input, &mut output).unwrap();
            output.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        };
        let first = answer(&mut network, &ramp);
        for other in [f32::NAN, f32::INFINITY, 1e30, -3.0] {
            answer(&mut network, &vec![other; len]);
            assert_eq!(answer(&mut network, &ramp), first, "{} after {other}", path.display());
        }
    }
}
