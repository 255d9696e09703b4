//! The whole pipeline over real files: parse, lower, check, plan.
#![cfg(feature = "alloc")]

use std::path::{Path, PathBuf};

use netkit_core::diag::Diagnostics;
use netkit_core::format::NkFile;
use netkit_core::plan::Placement;
use netkit_core::program::{OwnedStorage, compile};

/// The `.nk` files of a folder, none if it is not there.
fn models(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "nk"))
        .collect();
    paths.sort();
    paths
}

fn corpus() -> PathBuf {
    std::env::var_os("NETKIT_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus"),
        PathBuf::from,
    )
}

/// Compiles a file, checks that no two values that one step needs overlap, and returns a line on it.
fn check(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let mut sink = Diagnostics::new();
    let file = NkFile::parse(&bytes, &mut sink).unwrap_or_else(|| panic!("{path:?}: {sink:?}"));
    let mut storage = OwnedStorage::of(&file);
    let program = compile(&file, storage.lend(), &mut sink);
    let messages: Vec<String> = sink.iter().map(ToString::to_string).collect();
    let program = program.unwrap_or_else(|| panic!("{path:?}: {messages:#?}"));
    assert!(sink.is_empty(), "{path:?}: {messages:#?}");
    for step in program.steps() {
        let range = |operand: netkit_core::program::Operand<'_>| match operand.placement {
            Placement::Arena { offset } => {
                let end = offset + operand.value.bytes();
                assert!(end <= program.plan().arena_bytes());
                Some(offset..end)
            }
            _ => None,
        };
        let Some(output) = range(step.output()) else { continue };
        for input in step.inputs().filter_map(range) {
            assert!(input.end <= output.start || output.end <= input.start, "{path:?}: {step:?}");
        }
    }
    format!(
        "{}: {} layers, {} nodes, {} MACs, {} arena bytes, output {}",
        path.file_name().unwrap().display(),
        program.layers().len(),
        program.graph().nodes().len(),
        program.macs(),
        program.plan().arena_bytes(),
        program.output_shape(),
    )
}

#[test]
fn models_of_this_repository_compile() {
    let paths = models(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../models"));
    assert!(!paths.is_empty(), "models/ holds no .nk file");
    for path in paths {
        println!("{}", check(&path));
    }
}

#[test]
fn corpus_models_compile() {
    let paths = models(&corpus().join("nk"));
    if paths.is_empty() {
        println!("skipped: no corpus");
    }
    for path in paths {
        println!("{}", check(&path));
    }
}
