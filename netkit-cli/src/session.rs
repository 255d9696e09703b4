//! Running a model: its arena, its input, its output.

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use netkit::arena::{Bump, DEFAULT_CAPACITY};
use netkit::error::LoadErrorKind;
use netkit::runtime::Network;
use netkit_kernels::{Isa, Kernels};

use crate::model_file::ModelFile;
use crate::size;

/// Options of every verb that runs a model.
#[derive(Debug, Args)]
pub(crate) struct Session {
    /// Memory for activations and workspace, such as 64K, 64KiB or 64M
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value_t = DEFAULT_CAPACITY,
          hide_default_value = true)]
    pub(crate) arena: usize,
    /// Use the kernels of this instruction set instead of the best
    #[arg(long, value_name = "NAME", value_parser = parse_isa)]
    pub(crate) isa: Option<Isa>,
}

fn parse_isa(name: &str) -> Result<Isa, String> {
    let known = || Isa::ALL.map(Isa::name).join(", ");
    let isa = Isa::from_name(name)
        .ok_or_else(|| format!("no instruction set {name:?}; there are {}", known()))?;
    match Kernels::for_isa(isa) {
        Some(_) => Ok(isa),
        None => Err(format!("this machine does not have {name}")),
    }
}

impl Session {
    /// The one allocation of a session.
    pub(crate) fn arena(&self) -> Result<Bump<'static>> {
        Bump::heap(self.arena).context("cannot make the arena")
    }

    /// Loads a model into the arena.
    pub(crate) fn load<'a>(&self, file: &'a ModelFile, arena: &'a Bump<'_>) -> Result<Network<'a>> {
        let network = Network::load(file.bytes(), arena).map_err(|error| {
            let (model, capacity) = (file.path.display(), size::bytes(arena.capacity()));
            let what = format!("cannot load {model} into an arena of {capacity}");
            // The loader stops at the first part that has no room, and no arena here holds more than one network.
            match (error.kind(), Network::arena_bytes(file.bytes())) {
                (LoadErrorKind::Arena(_), Ok(takes)) => {
                    let shown = size::grouped(takes as u64);
                    anyhow!("{what}: it takes {shown} bytes; give it them with --arena {takes}")
                }
                _ => anyhow::Error::new(error).context(what),
            }
        })?;
        Ok(match self.isa.and_then(Kernels::for_isa) {
            Some(kernels) => network.with_kernels(kernels),
            None => network,
        })
    }
}
