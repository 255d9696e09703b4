//! What the tests of the format share: where the model files are.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};

/// The `.nk` files of the corpus and of this repository, by name, in order.
///
/// The corpus is the folder in `NETKIT_CORPUS`, else the one beside the repository.
pub(crate) fn model_files() -> Vec<(String, Vec<u8>)> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let corpus = match std::env::var_os("NETKIT_CORPUS") {
        Some(folder) => PathBuf::from(folder),
        None => repository.join("../shared/corpus"),
    };
    let mut files = read_folder(&corpus.join("nk"));
    if files.is_empty() {
        println!("skipped: no corpus");
    }
    files.extend(read_folder(&repository.join("models")));
    files
}

fn read_folder(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "nk"))
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}
