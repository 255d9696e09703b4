//! A model file mapped into memory: private, read-only.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

use crate::arena::Bump;
use crate::error::LoadError;
use crate::runtime::Network;

/// A mapped file. An empty one maps to no bytes.
#[derive(Debug)]
pub(crate) struct Mapping {
    map: Option<Mmap>,
}

impl Mapping {
    /// Maps a regular file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        // Before opening: a pipe would wait for a writer.
        let kind = std::fs::metadata(path)?;
        if kind.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !kind.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.len() == 0 {
            return Ok(Self { map: None });
        }
        // SAFETY: the mapping is private and read-only; that nobody truncates the file meanwhile is
        // what `Network::open` asks of its caller, and what no program that maps files can check.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Self { map: Some(map) })
    }

    fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }
}

/// Loads a network from a mapping that it then owns.
pub(crate) fn load_mapped<'a>(
    mapping: Mapping,
    arena: &'a Bump<'_>,
) -> Result<Network<'a>, LoadError> {
    let bytes: *const [u8] = mapping.bytes();
    // SAFETY: the mapped pages stay where they are while `mapping` lives, however it is moved. It is
    // dropped with the network (or below, with the error), and nothing that outlives the network
    // borrows from it: every accessor of `Network` that reaches the file borrows the network.
    let bytes: &'a [u8] = unsafe { &*bytes };
    let mut network = Network::load(bytes, arena)?;
    network.keep(mapping);
    Ok(network)
}
