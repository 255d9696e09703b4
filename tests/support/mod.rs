//! Where tests find models.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::path::{Path, PathBuf};

/// The corpus, if this machine has one.
pub(crate) fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("NETKIT_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        PathBuf::from,
    );
    if folder.is_dir() {
        Some(folder)
    } else {
        println!("skipped: no corpus at {}", folder.display());
        None
    }
}

/// The `.nk` files of a folder, in order.
pub(crate) fn nk_files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "nk"))
        .collect();
    paths.sort();
    paths
}

/// Every model of this repository and of the corpus.
pub(crate) fn all_models() -> Vec<PathBuf> {
    let mut paths = nk_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models"));
    assert!(!paths.is_empty(), "models/ holds no .nk file");
    if let Some(corpus) = corpus() {
        paths.extend(nk_files(&corpus.join("nk")));
    }
    paths
}

/// Bytes at an address that is a multiple of 64.
pub(crate) struct Aligned {
    memory: Vec<u128>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.memory)[self.start..self.start + self.len]
    }
}

/// A copy of `bytes` at an address that is a multiple of 64.
pub(crate) fn aligned(bytes: &[u8]) -> Aligned {
    let mut memory = vec![0u128; bytes.len().div_ceil(16) + 4];
    let all: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    let start = all.as_ptr().align_offset(64);
    all[start..start + bytes.len()].copy_from_slice(bytes);
    Aligned { memory, start, len: bytes.len() }
}
