//! Real ONNX files against the `.nk` files that others made of them.

use netkit_core::diag::FirstError;
use netkit_core::format::{ModelDescription, NkFile};
use netkit_import::{Conversion, Obstacles, Options, onnx};
use std::path::{Path, PathBuf};

/// The folder of files to try, or nothing, said aloud.
fn corpus() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = std::env::var_os("NETKIT_CORPUS")
        .map_or_else(|| root.join("../../shared/corpus"), PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no corpus");
    None
}

fn convert(path: &Path) -> Result<Conversion, Obstacles> {
    let model = onnx::Model::parse(std::fs::read(path).unwrap()).unwrap();
    model.convert(&Options::default())
}

fn read(path: &Path) -> ModelDescription {
    let bytes = std::fs::read(path).unwrap();
    let mut sink = FirstError::new();
    let file = NkFile::parse(&bytes, &mut sink);
    ModelDescription::from_file(&file.unwrap_or_else(|| panic!("{path:?}: {:?}", sink.first())))
}

/// Every ONNX file of `folder` with the path of its twin in `twins`.
fn twins(folder: &Path, twins: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut pairs: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "onnx"))
        .map(|path| {
            let twin = twins.join(path.file_stem().unwrap()).with_extension("nk");
            (path, twin)
        })
        .collect();
    pairs.sort();
    assert!(!pairs.is_empty(), "no .onnx file in {folder:?}");
    pairs
}

#[test]
fn corpus_files_become_their_twins_to_the_byte() {
    let Some(corpus) = corpus() else { return };
    for (source, twin) in twins(&corpus.join("onnx"), &corpus.join("nk")) {
        // One fused block of 30 nodes with a branch.
        if source.ends_with("import_convnextv2_block.onnx") {
            continue;
        }
        let conversion = convert(&source).unwrap_or_else(|it| panic!("{source:?}\n{it}"));
        let expected = read(&twin);
        let mut model = conversion.model;
        assert_eq!(conversion.origins.len(), model.layers.len());
        assert_eq!(model.layers, expected.layers, "{source:?}");
        model.cases = expected.cases;
        model.tolerance = expected.tolerance;
        assert!(
            model.to_bytes().unwrap() == std::fs::read(&twin).unwrap(),
            "{source:?}: other weights"
        );
    }
}

#[test]
fn what_cannot_be_converted_is_listed_whole() {
    let Some(corpus) = corpus() else { return };
    let obstacles = convert(&corpus.join("onnx/import_convnextv2_block.onnx")).unwrap_err();
    let operators: Vec<_> = obstacles
        .as_slice()
        .iter()
        .filter_map(|obstacle| Some(obstacle.origin.as_ref()?.operator.as_str()))
        .collect();
    for refused in ["LayerNormalization", "Erf", "ReduceL2", "Add", "Mul", "Div"] {
        assert!(operators.contains(&refused), "{refused} is missing\n{obstacles}");
    }
    for fine in ["Conv", "Identity", "Transpose", "Constant"] {
        assert!(!operators.contains(&fine), "{fine} is no obstacle\n{obstacles}");
    }
}

#[test]
fn the_models_of_this_repository_are_reproduced() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
    for (source, twin) in twins(&models.join("onnx"), &models) {
        let conversion = convert(&source).unwrap_or_else(|it| panic!("{source:?}\n{it}"));
        let expected = read(&twin);
        assert_eq!(conversion.model.layers, expected.layers, "{source:?}");
        assert_eq!(conversion.model.pairs, expected.pairs, "{source:?}");
    }
}
