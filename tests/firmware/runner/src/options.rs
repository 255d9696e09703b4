//! The command line.

use crate::target::{TARGETS, Target};
use std::fs;
use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
usage: cargo run -- [OPTIONS]       (in tests/firmware)

  --target A,B      only these targets (see --list)
  --workload A,B    only these workloads
  --list            list targets and workloads
  --bless           record what is measured in budget.tsv and docs/microcontrollers.md
  --profile         show which functions the instructions are spent in
  --require-all     fail, rather than skip, where a toolchain or emulator is missing
  --cmsis-nn DIR    only the targets of which DIR has a folder, on the libcmsis-nn.a in it; not compared with the budget";

/// What was asked for.
pub(crate) struct Options {
    pub(crate) targets: Vec<Target>,
    pub(crate) workloads: Vec<String>,
    pub(crate) list: bool,
    pub(crate) bless: bool,
    pub(crate) profile: bool,
    pub(crate) require_all: bool,
    pub(crate) cmsis_nn: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments; `workloads` are those there are.
    pub(crate) fn parse(
        mut arguments: impl Iterator<Item = String>,
        workloads: Vec<String>,
    ) -> Result<Self, String> {
        let mut options = Self {
            targets: TARGETS.to_vec(),
            workloads,
            list: false,
            bless: false,
            profile: false,
            require_all: false,
            cmsis_nn: None,
        };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--target" => {
                    let names = names(&argument, arguments.next())?;
                    check(&names, |name| TARGETS.iter().any(|target| target.name == name))?;
                    options.targets.retain(|target| names.iter().any(|name| name == target.name));
                }
                "--workload" => {
                    let names = names(&argument, arguments.next())?;
                    check(&names, |name| {
                        options.workloads.iter().any(|workload| workload == name)
                    })?;
                    options.workloads.retain(|workload| names.contains(workload));
                }
                "--list" => options.list = true,
                "--bless" => options.bless = true,
                "--profile" => options.profile = true,
                "--require-all" => options.require_all = true,
                "--cmsis-nn" => {
                    let folder = arguments.next().ok_or("--cmsis-nn wants a folder")?;
                    let folder = fs::canonicalize(&folder).map_err(|e| format!("{folder}: {e}"))?;
                    options.targets.retain(|target| folder.join(target.name).is_dir());
                    options.cmsis_nn = Some(folder);
                }
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(options)
    }
}

fn names(option: &str, value: Option<String>) -> Result<Vec<String>, String> {
    let value = value.ok_or_else(|| format!("{option} wants names\n\n{USAGE}"))?;
    Ok(value.split(',').map(str::to_owned).collect())
}

fn check(names: &[String], exists: impl Fn(&str) -> bool) -> Result<(), String> {
    match names.iter().find(|name| !exists(name)) {
        Some(name) => Err(format!("there is no {name}; --list shows what there is")),
        None => Ok(()),
    }
}
