//! Finding and reading a model file, and saying everything that is wrong with it.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use netkit_core::diag::{Diagnostic, Diagnostics};
use netkit_core::format::{HEADER_BYTES, MAGIC, NkFile};
use netkit_core::program::{OwnedStorage, Program, compile};
use serde_json::{Value, json};

use crate::terminal::harmless;

/// A model file in memory, aligned for its tensors.
pub(crate) struct ModelFile {
    /// Where it is, as the user wrote it.
    pub(crate) path: PathBuf,
    memory: Vec<u64>,
    len: usize,
}

impl ModelFile {
    /// Reads a file. Of one that does not exist, near names are suggested.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let path = locate(path)?;
        let failed = || format!("cannot read {}", path.display());
        if path.is_dir() {
            bail!("{} is a folder, not a model file", path.display());
        }
        let mut source = fs::File::open(&path).with_context(failed)?;
        let mut bytes = Vec::new();
        let header = HEADER_BYTES as u64;
        source.by_ref().take(header).read_to_end(&mut bytes).with_context(failed)?;
        if !bytes.starts_with(&MAGIC) {
            // Nothing behind will be looked at, and it may be endless.
            return Ok(Self::from_bytes(path, &bytes));
        }
        let limit = largest_size(&bytes);
        let length = source.metadata().with_context(failed)?.len();
        if length <= limit {
            source.take(limit + 1 - header).read_to_end(&mut bytes).with_context(failed)?;
        }
        if length > limit || bytes.len() as u64 > limit {
            bail!(
                "{} goes on after {limit} bytes, more than its header can account for",
                path.display()
            );
        }
        Ok(Self::from_bytes(path, &bytes))
    }

    /// A model file that is in memory already, perhaps not aligned.
    pub(crate) fn from_bytes(path: PathBuf, bytes: &[u8]) -> Self {
        let len = bytes.len();
        let mut memory = vec![0u64; len.div_ceil(8)];
        let target: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
        target[..len].copy_from_slice(bytes);
        Self { path, memory, len }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.memory)[..self.len]
    }

    /// The file's name without folder and extension, and without what would steer a terminal.
    pub(crate) fn name(&self) -> String {
        harmless(self.path.file_stem().unwrap_or_default().display())
    }

    /// Parses and compiles the file and hands over the program. Everything that is wrong is printed.
    pub(crate) fn with_program<T>(
        &self,
        work: impl FnOnce(&Program<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let mut sink = Diagnostics::new();
        let file = NkFile::parse(self.bytes(), &mut sink);
        let mut storage = file.as_ref().map(OwnedStorage::of);
        let program = file
            .as_ref()
            .zip(storage.as_mut())
            .and_then(|(file, storage)| compile(file, storage.lend(), &mut sink));
        match program {
            Some(program) => work(&program),
            None => Err(self.refusal(&sink)),
        }
    }

    /// All diagnostics as one error.
    fn refusal(&self, sink: &Diagnostics) -> anyhow::Error {
        Refusal { path: self.path.clone(), diagnostics: sink.iter().copied().collect() }.into()
    }
}

/// A model file that breaks rules of the format.
#[derive(Debug)]
pub(crate) struct Refusal {
    path: PathBuf,
    diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be used", self.path.display())?;
        for diagnostic in &self.diagnostics {
            write!(f, "\n  [{}] {diagnostic}", diagnostic.code.as_str())?;
            write!(f, "\n    hint: {}", diagnostic.hint())?;
        }
        match self.diagnostics.first() {
            Some(first) => write!(f, "\n`netkit explain {}` says more", first.code.as_str()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// The rules, for programs.
    pub(crate) fn as_json(&self) -> Value {
        let rules = self.diagnostics.iter().map(|diagnostic| {
            json!({
                "code": diagnostic.code.as_str(),
                "message": harmless(diagnostic),
                "hint": diagnostic.hint(),
                "layer": diagnostic.site.layer,
                "offset": diagnostic.site.offset,
            })
        });
        rules.collect()
    }
}

/// The most bytes that a file with this header can have. Reading stops there, so that nothing fills the memory which
/// only begins like a model.
fn largest_size(header: &[u8]) -> u64 {
    /// More than all layer records, descriptors and test cases that a file may have.
    const METADATA: u64 = 4 << 20;
    let size = |offset: usize| {
        let field = header.get(offset..).and_then(|rest| rest.first_chunk());
        field.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
    };
    let (weights, biases) = (size(40), size(44));
    // A table of channel scales is as long as the biases of its channels.
    weights + 2 * biases + METADATA
}

/// The path of something that is there; else what may have been meant.
pub(crate) fn locate(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        return Ok(path.to_owned());
    }
    let above = Path::new("..").join(path);
    let meant = if path.is_relative() && above.exists() {
        vec![harmless(above.display())]
    } else {
        near_names(path)
    };
    let suggestion = match meant.as_slice() {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    };
    bail!("{} does not exist{suggestion}", path.display())
}

/// Model files beside `path` whose names resemble it, nearest first.
fn near_names(path: &Path) -> Vec<String> {
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let parent = path.parent().unwrap_or(Path::new(""));
    let folder = if parent == Path::new("") { Path::new(".") } else { parent };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".nk"))
        .collect();
    let near = netkit_codegen::nearest(&wanted, names.iter().map(String::as_str));
    near.into_iter().map(|name| harmless(parent.join(name).display())).collect()
}
