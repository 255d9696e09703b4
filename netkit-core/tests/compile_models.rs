//! The whole pipeline over real files: parse, lower, check, plan.
#![cfg(feature = "alloc")]

use std::path::{Path, PathBuf};

use netkit_core::diag::{Code, Diagnostics};
use netkit_core::format::NkFile;
use netkit_core::graph::{Node, Value};
use netkit_core::lower::LayerInfo;
use netkit_core::op::Op;
use netkit_core::plan::{Placement, Slot};
use netkit_core::program::{OwnedStorage, Storage, StorageSize, compile};

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
    // A layer counts all of its output; the step in front of a fused pool leaves out what the pool does not read.
    let whole: u64 = program
        .steps()
        .map(|step| {
            let macs = step.node.op.macs();
            let (window, channels) = match &step.node.op {
                Op::Conv2d { conv, pool: Some(_), .. } => (conv.window, conv.out_channels),
                Op::DepthwiseConv2d { conv, pool: Some(_), .. } => {
                    (conv.window, conv.channels * conv.multiplier)
                }
                _ => return macs,
            };
            let layer = program.layers().iter().rfind(|l| usize::from(l.first_node) <= step.index);
            let computed = (window.out_h * window.out_w * channels) as u64;
            macs / computed * layer.unwrap().output.elements() as u64
        })
        .sum();
    assert_eq!(program.macs(), whole, "{path:?}");
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

/// Tables of any length may be lent; one that is too short for the model is told as such.
#[test]
fn storage_that_is_too_small_is_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/mnist_cnn.nk");
    let bytes = std::fs::read(path).unwrap();
    let file = NkFile::parse(&bytes, &mut Diagnostics::new()).unwrap();
    let size = StorageSize::of(&file);
    let with = |[nodes, values, slots, layers]: [usize; 4]| {
        let mut storage = (
            vec![Node::EMPTY; nodes],
            vec![Value::EMPTY; values],
            vec![Slot::EMPTY; slots],
            vec![LayerInfo::EMPTY; layers],
        );
        let lent = Storage {
            nodes: &mut storage.0,
            values: &mut storage.1,
            slots: &mut storage.2,
            layers: &mut storage.3,
        };
        let mut sink = Diagnostics::new();
        let compiled = compile(&file, lent, &mut sink).is_some();
        assert_eq!(compiled, sink.is_empty());
        sink.iter().map(|found| found.code).collect::<Vec<_>>()
    };
    let enough = [size.nodes, size.values, size.values, size.layers];
    assert_eq!(with(enough), []);
    for table in 0..4 {
        // How much of the promised size this model needs is not for here to say, but nothing is too little.
        let mut refused = 0;
        for count in 0..enough[table] {
            let mut counts = enough;
            counts[table] = count;
            match with(counts)[..] {
                [] => {}
                [Code::Storage] => refused += 1,
                ref other => panic!("table {table} of {count}: {other:?}"),
            }
        }
        assert!(refused > 0, "table {table}");
    }
}

/// Both payloads together may have more than 4 GiB, but where a tensor lies is kept in 32 bits: the second bias here would be
/// read from the file's header.
#[cfg(target_pointer_width = "64")]
#[test]
fn tensors_behind_four_gib_are_refused() {
    let (input, units) = (1u32 << 20, [1023u32, 1024]);
    let weights = [[units[0], input], [units[1], units[0]]];
    let bytes = |tensors: &[u32]| 4 * tensors.iter().sum::<u32>();
    let payloads = [bytes(&weights.map(|dims| dims[0] * dims[1])), bytes(&units)];
    let mut file = b"NKIT".to_vec();
    let mut put = |words: &[u32]| file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    put(&[3, 0x0201, 1, input, 0, 0, 2, 2, 2, payloads[0], payloads[1]]);
    for units in units {
        put(&[1, units, 0, 0]);
    }
    for [rows, columns] in weights {
        put(&[0x0102, rows, columns, 0, 0, rows * columns]);
    }
    for channels in units {
        put(&[0x0101, channels, 0, 0, 0, channels]);
    }
    assert!(
        file.len() as u64 + payloads.iter().map(|&bytes| u64::from(bytes)).sum::<u64>() > 1 << 32
    );
    // Pages of zeros that nobody touches.
    let mut whole = vec![0; file.len() + payloads[0] as usize + payloads[1] as usize];
    whole[..file.len()].copy_from_slice(&file);
    let mut sink = Diagnostics::new();
    assert!(NkFile::parse(&whole, &mut sink).is_none());
    let codes: Vec<Code> = sink.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, [Code::TooLarge]);
}
