//! Counting executed instructions: a plugin of the emulator, compiled when first needed.

use crate::build::workspace;
use crate::image::{Architecture, Image};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The compiled plugin, ready to be told the addresses of an image.
pub(crate) struct Counter {
    shared_object: PathBuf,
}

/// The plugin with its arguments for one run.
pub(crate) struct Plugin {
    argument: OsString,
    counts: PathBuf,
    profile: Option<PathBuf>,
}

/// The instructions of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// All of them, what marks steps and the cost of an empty region taken off.
    pub(crate) total: u64,
    /// Those of each step marked in it. The last one's include the return from the network.
    pub(crate) steps: Vec<u64>,
}

/// The instruction that marks a step on an architecture, as `marker.rs` of `firmware-board` writes it.
const fn step_encoding(architecture: Architecture) -> u32 {
    match architecture {
        Architecture::Thumb => 0x46db,
        Architecture::RiscV => 0x02a0_2013,
        Architecture::Aarch64 => 0xd503_255f,
    }
}

/// How often one instruction was executed in a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executed {
    pub(crate) region: usize,
    pub(crate) address: u64,
    pub(crate) count: u64,
}

impl Counter {
    /// Compiles the plugin with `CC`, or `cc`.
    pub(crate) fn compile() -> Result<Self, String> {
        let shared_object = workspace().join("target/count.so");
        fs::create_dir_all(workspace().join("target")).map_err(|e| e.to_string())?;
        let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
        let status = Command::new(&compiler)
            .args([
                "-O2",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fvisibility=hidden",
                "-shared",
                "-fPIC",
                "-o",
            ])
            .arg(&shared_object)
            .arg(workspace().join("runner/plugin/count.c"))
            .status()
            .map_err(|error| format!("{}: {error}", compiler.display()))?;
        if status.success() {
            Ok(Self { shared_object })
        } else {
            Err("the plugin does not compile".to_owned())
        }
    }

    /// The plugin for a run of `image`; `None` when the image has no markers. With `profile`, it also counts each
    /// instruction apart.
    pub(crate) fn plugin(&self, image: &Image, path: &Path, profile: bool) -> Option<Plugin> {
        let begin = image.address("netkit_region_begin")?;
        let end = image.address("netkit_region_end")?;
        let counts = path.with_extension("counts");
        let mut argument = self.shared_object.clone().into_os_string();
        let step = step_encoding(image.architecture);
        argument.push(format!(",begin={begin:#x},end={end:#x},step={step:#x},out="));
        argument.push(&counts);
        let profile = profile.then(|| path.with_extension("profile"));
        if let Some(file) = &profile {
            argument.push(",profile=");
            argument.push(file);
        }
        Some(Plugin { argument, counts, profile })
    }
}

impl Plugin {
    /// What `-plugin` takes.
    pub(crate) fn argument(&self) -> OsString {
        self.argument.clone()
    }

    /// The instructions of each region, in order. The first region is an empty one and is left out.
    pub(crate) fn counts(&self) -> Result<Vec<Counts>, String> {
        counts(&read(&self.counts)?)
    }

    /// The instructions executed in each region but the empty one.
    pub(crate) fn profile(&self) -> Result<Vec<Executed>, String> {
        let Some(file) = &self.profile else { return Ok(Vec::new()) };
        let executed = numbers(&read(file)?, |line| {
            let mut words = line.split(' ');
            let region: usize = words.next()?.parse().ok()?;
            let address = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
            let count = words.next()?.parse().ok()?;
            Some(region.checked_sub(1).map(|region| Executed { region, address, count }))
        })?;
        Ok(executed.into_iter().flatten().collect())
    }
}

/// Reads what the plugin wrote: for each region how many instructions it took, then how many came before each step.
fn counts(text: &str) -> Result<Vec<Counts>, String> {
    let regions: Vec<Vec<u64>> =
        numbers(text, |line| line.split(' ').map(|word| word.parse().ok()).collect())?;
    let mut totals = regions.iter().map(|region| region[0]);
    let Some(empty) = totals.next() else {
        return Err("the plugin saw no region".to_owned());
    };
    let counts = regions.iter().skip(1).map(|region| {
        let (total, marks) = (region[0], &region[1..]);
        let ends = marks.iter().skip(1).chain([&total]);
        let steps = marks.iter().zip(ends).map(|(mark, end)| end.saturating_sub(mark + 1));
        let steps = steps.collect();
        Counts { total: total.saturating_sub(empty + marks.len() as u64), steps }
    });
    Ok(counts.collect())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn numbers<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let parsed =
        text.lines().map(|line| parse(line).ok_or_else(|| format!("the plugin wrote {line:?}")));
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use super::{Counts, counts};

    #[test]
    fn marks_and_the_empty_region_are_taken_off() {
        let read = counts("14\n114\n1020 5 105 505\n").unwrap();
        let plain = Counts { total: 100, steps: vec![] };
        let steps = Counts { total: 1020 - 14 - 3, steps: vec![99, 399, 514] };
        assert_eq!(read, [plain, steps]);
        assert!(counts("").is_err());
        assert!(counts("14\nmany\n").is_err());
    }
}
