//! No file makes the importer panic, or use more memory than a multiple of its own size. One test, since
//! the peak is that of the whole process.

use netkit_import::{Options, onnx};
use peak_alloc::PeakAlloc;
use std::path::{Path, PathBuf};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The most memory a file may make use of: a multiple of its size, and what 2^16 empty nodes or 2^17 empty
/// attributes take.
fn most(file: &[u8]) -> usize {
    64 * file.len() + (24 << 20)
}

/// Parses and converts; gives how far it came.
fn run(file: &[u8], what: &dyn std::fmt::Debug) -> Stage {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let stage = match onnx::Model::parse(file.to_vec()) {
        Err(error) => {
            drop(error.to_string());
            Stage::Refused
        }
        Ok(model) => match model.convert(&Options::default()) {
            Err(obstacles) => {
                drop(obstacles.to_string());
                Stage::Parsed
            }
            Ok(conversion) => {
                drop(conversion.model.to_bytes());
                Stage::Converted
            }
        },
    };
    let used = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(used <= most(file), "{what:?}: {used} bytes for a file of {}", file.len());
    stage
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Refused,
    Parsed,
    Converted,
}

/// A protobuf field that is bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(content);
    bytes
}

/// A model of operator set 13 with this graph.
fn model(graph: &[u8]) -> Vec<u8> {
    let opset = field(8, &[0x10, 13]);
    [opset, field(7, graph)].concat()
}

fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    const MANY: usize = 1 << 19;
    let node = |content: &[u8]| field(1, content);
    let name = |number, text: &str| field(number, text.as_bytes());
    let input = |dims: &[u8]| {
        let shape = field(2, dims);
        let tensor = field(1, &[vec![0x08, 1], shape].concat());
        field(11, &[name(1, "x"), field(2, &tensor)].concat())
    };
    let dim = |size: &[u8]| field(1, &[&[0x08], size].concat());
    let output = field(12, &name(1, "y"));
    let relu = node(&[name(1, "x"), name(2, "y"), name(4, "Relu")].concat());
    let huge = [0xff, 0xff, 0xff, 0x7f];
    vec![
        ("empty nodes", model(&node(&[]).repeat(MANY))),
        ("empty initializers", model(&field(5, &[]).repeat(MANY))),
        ("empty attributes", model(&node(&field(5, &[]).repeat(MANY)))),
        ("empty names", model(&node(&field(1, &[]).repeat(MANY)))),
        ("as many nodes as may be", model(&node(&[]).repeat(1 << 16))),
        ("as many attributes as may be", model(&node(&field(5, &[]).repeat(64)).repeat(1 << 12))),
        ("operator sets", field(8, &[]).repeat(MANY)),
        ("symbolic sizes", model(&[input(&field(1, &[]).repeat(MANY)), output.clone()].concat())),
        (
            "a huge map",
            model(
                &[
                    input(&[dim(&[1]), dim(&huge), dim(&[1]), dim(&[2])].concat()),
                    relu.clone(),
                    output.clone(),
                ]
                .concat(),
            ),
        ),
        (
            "a tensor that says more than it holds",
            model(
                &[
                    field(5, &[vec![0x08], huge.to_vec(), vec![0x10, 1], name(8, "c")].concat()),
                    node(&[name(1, "x"), name(1, "c"), name(2, "y"), name(4, "Mul")].concat()),
                    input(&[dim(&[1]), dim(&[4])].concat()),
                    output,
                ]
                .concat(),
            ),
        ),
        ("a length beyond the file", vec![0x3a, 0xff, 0xff, 0xff, 0xff, 0x07, 0]),
        ("groups in groups", vec![0x3b; 1 << 16]),
    ]
}

fn xorshift(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state as usize
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        println!("skipped: no {}", folder.display());
        return Vec::new();
    };
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "onnx"))
        .collect();
    files.sort();
    files
}

#[test]
fn no_file_makes_a_panic_or_fills_the_memory() {
    for (what, file) in hostile() {
        assert_ne!(run(&file, &what), Stage::Converted, "{what}");
    }

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = std::env::var_os("NETKIT_CORPUS")
        .map_or_else(|| root.join("../../shared/corpus"), PathBuf::from);
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for path in [files(&root.join("../models/onnx")), files(&corpus.join("onnx"))].concat() {
        let whole = std::fs::read(&path).unwrap();
        assert_ne!(run(&whole, &path), Stage::Refused);
        let rounds = if whole.len() < 100_000 { 1000 } else { 50 };
        let mut stages = Vec::new();
        for round in 0..rounds {
            let mut file = whole.clone();
            match round % 4 {
                0 => file.truncate(xorshift(&mut state) % whole.len()),
                1 => {
                    let at = xorshift(&mut state) % whole.len();
                    let count = xorshift(&mut state) % 64;
                    file.drain(at..(at + count).min(whole.len()));
                }
                _ => {}
            }
            for _ in 0..xorshift(&mut state) % 4 {
                // What is not weights lies mostly at the two ends.
                let length = file.len().max(1);
                let at = match xorshift(&mut state) % 3 {
                    0 => xorshift(&mut state) % length.min(2000),
                    1 => length - 1 - xorshift(&mut state) % length.min(2000),
                    _ => xorshift(&mut state) % length,
                };
                let interesting = [0, 1, 0x7f, 0x80, 0xff, xorshift(&mut state) as u8];
                if let Some(byte) = file.get_mut(at) {
                    *byte = interesting[xorshift(&mut state) % interesting.len()];
                }
            }
            stages.push(run(&file, &(&path, round)));
        }
        // The damage is of every kind.
        assert!(stages.contains(&Stage::Refused), "{path:?}");
    }
}
