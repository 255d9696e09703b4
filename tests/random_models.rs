//! Random models of every kind against an independent evaluator: float within a tolerance, int8 to the bit.
//!
//! The models come from `tests/reference/generate.py`, which needs Python with numpy and the evaluator
//! `nkref.py` (in the folder `NETKIT_NKREF`, else beside the corpus). `NETKIT_PYTHON` names the interpreter,
//! `NETKIT_RANDOM_COUNT` the number of models.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit_core::diag::FirstError;
use netkit_core::format::{CaseInput, NkFile};
use netkit_kernels::Kernels;

fn generate() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let nkref = std::env::var_os("NETKIT_NKREF")
        .map_or_else(|| root.join("../shared/tools"), PathBuf::from);
    if !nkref.join("nkref.py").is_file() {
        println!("skipped: no evaluator at {}", nkref.display());
        return None;
    }
    let python = std::env::var("NETKIT_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_numpy = Command::new(&python).args(["-c", "import numpy"]).output();
    if !has_numpy.is_ok_and(|output| output.status.success()) {
        println!("skipped: {python} has no numpy");
        return None;
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("random-models");
    let _ = std::fs::remove_dir_all(&out);
    let count = std::env::var("NETKIT_RANDOM_COUNT").unwrap_or_else(|_| "400".into());
    let status = Command::new(&python)
        .arg(root.join("tests/reference/generate.py"))
        .arg("--nkref")
        .arg(&nkref)
        .arg("--out")
        .arg(&out)
        .args(["--count", &count])
        .status()
        .unwrap();
    assert!(status.success(), "the generator failed");
    Some(out)
}

#[test]
fn random_models_agree_with_the_evaluator() {
    let Some(folder) = generate() else { return };
    let mut arena = Bump::heap(64 << 20).unwrap();
    let paths = support::nk_files(&folder);
    assert!(paths.len() > 100, "only {} models", paths.len());
    for path in &paths {
        let bytes = support::aligned(&std::fs::read(path).unwrap());
        let file = NkFile::parse(bytes.as_bytes(), &mut FirstError::new()).unwrap();
        let tolerance = file.tolerance().unwrap();
        for kernels in Kernels::all() {
            arena.reset();
            let mut network = Network::load(bytes.as_bytes(), &arena)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
                .with_kernels(kernels);
            for case in file.cases() {
                let isa = kernels.isa().name();
                let expected: Vec<f32> = case.expected.iter().collect();
                match case.input {
                    CaseInput::F32(input) => {
                        let input: Vec<f32> = input.iter().collect();
                        let mut output = vec![0.0; network.output_len()];
                        network.forward(&input, &mut output).unwrap();
                        for (index, (actual, expected)) in output.iter().zip(&expected).enumerate()
                        {
                            assert!(
                                (actual - expected).abs() <= tolerance,
                                "{} on {isa}: output {index} is {actual}, not {expected} within {tolerance}",
                                path.display(),
                            );
                        }
                    }
                    CaseInput::I8(input) => {
                        let input: Vec<i8> = input.iter().collect();
                        let mut output = vec![0; network.output_len()];
                        network.forward_i8(&input, &mut output).unwrap();
                        let quant = network.output_quant().unwrap();
                        let output: Vec<f32> =
                            output.iter().map(|&q| quant.dequantize(q)).collect();
                        assert_eq!(output, expected, "{} on {isa}", path.display());
                    }
                }
            }
        }
    }
}
