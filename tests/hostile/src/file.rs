//! A `.nk` file read, compiled, written.

use netkit_core::diag::{Diagnostics, FirstError};
use netkit_core::format::{CaseInput, ModelDescription, NkFile};
use netkit_core::plan::Placement;
use netkit_core::program::{OwnedStorage, compile};

/// A file is a view or a list of reasons; both sinks see the same; every message can be printed.
pub(crate) fn parse(bytes: &[u8]) -> bool {
    let (mut all, mut first) = (Diagnostics::new(), FirstError::new());
    let file = NkFile::parse(bytes, &mut all);
    assert_eq!(file.is_some(), all.is_empty());
    assert_eq!(NkFile::parse(bytes, &mut first).is_some(), file.is_some());
    let head = |found: &netkit_core::diag::Diagnostic| (found.code, found.site);
    assert_eq!(first.first().as_ref().map(head), all.iter().next().map(head));
    printable(&all, bytes.len());
    let Some(file) = file else { return false };
    for pair in file.pairs() {
        for tensor in [pair.weight, pair.bias] {
            assert_eq!(tensor.as_bytes().len(), tensor.shape.elements() * tensor.dtype.size());
        }
    }
    for case in file.cases() {
        let finite = |value: f32| value.is_finite();
        assert!(case.expected.iter().all(finite) && !case.name.is_empty());
        if let CaseInput::F32(values) = case.input {
            assert!(values.iter().all(finite));
        }
    }
    assert!(file.quant_records().all(|record| record.weight_scale(0) > 0.0));
    true
}

/// Sites lie in the file and messages are whole. A damaged file may break hundreds of rules, which takes long to print:
/// the first few and a few others are.
fn printable(diagnostics: &Diagnostics, length: usize) {
    let step = (diagnostics.iter().len() / 4).max(1);
    for (index, found) in diagnostics.iter().enumerate() {
        assert!(found.site.offset.is_none_or(|offset| offset <= length as u64));
        if index >= 3 && !index.is_multiple_of(step) {
            continue;
        }
        let text = found.to_string();
        // Every placeholder of the catalogue's wording is filled in; braces of the file's own bytes may stand.
        for placeholder in ["{field}", "{found}", "{expected}", "{is}"] {
            assert!(!text.contains(placeholder), "{text}");
        }
    }
}

/// A program, whose values lie inside the arena and never on what a step reads, or a list of reasons.
pub(crate) fn compile_whole(bytes: &[u8]) -> bool {
    let mut sink = Diagnostics::new();
    let Some(file) = NkFile::parse(bytes, &mut sink) else { return false };
    let mut storage = OwnedStorage::of(&file);
    let program = compile(&file, storage.lend(), &mut sink);
    assert_eq!(program.is_some(), sink.is_empty());
    printable(&sink, bytes.len());
    let Some(program) = program else { return false };
    let arena = program.plan().arena_bytes();
    for step in program.steps() {
        let range = |operand: netkit_core::program::Operand<'_>| {
            let Placement::Arena { offset } = operand.placement else { return None };
            let value = operand.value;
            Some(offset..offset + value.shape.elements() * value.dtype.size())
        };
        let output = range(step.output());
        assert!(output.as_ref().is_none_or(|output| output.end <= arena), "{output:?} of {arena}");
        for input in step.inputs().filter_map(range) {
            assert!(input.end <= arena, "{input:?} of {arena}");
            if let Some(output) = &output {
                let apart = input.end <= output.start || output.end <= input.start;
                let both = step.inputs().filter_map(range).any(|other| other == *output);
                assert!(apart || both, "step {} writes on what it reads", step.index);
            }
        }
    }
    true
}

/// What was read can be written, read back the same, and written to the same bytes.
pub(crate) fn roundtrip(bytes: &[u8]) -> bool {
    let Some(file) = NkFile::parse(bytes, &mut FirstError::new()) else { return false };
    let written = ModelDescription::from_file(&file).to_bytes().expect("a valid file is writable");
    assert!(written.len() <= bytes.len());
    let again = NkFile::parse(&written, &mut FirstError::new()).expect("what is written is valid");
    let description = ModelDescription::from_file(&again);
    assert_eq!(description.to_bytes().expect("still writable"), written);
    true
}
