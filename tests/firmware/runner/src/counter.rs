//! Counting executed instructions: a plugin of the emulator, compiled when first needed.

use crate::build::workspace;
use crate::image::Image;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The compiled plugin, ready to be told the addresses of an image.
pub(crate) struct Counter {
    library: PathBuf,
}

/// The plugin with its arguments for one run.
pub(crate) struct Plugin {
    argument: OsString,
    counts: PathBuf,
    profile: Option<PathBuf>,
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
        let library = workspace().join("target/count.so");
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
            .arg(&library)
            .arg(workspace().join("runner/plugin/count.c"))
            .status()
            .map_err(|error| format!("{}: {error}", compiler.display()))?;
        if status.success() {
            Ok(Self { library })
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
        let mut argument = self.library.clone().into_os_string();
        argument.push(format!(",begin={begin:#x},end={end:#x},out="));
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

    /// The instructions of each region, in order, the cost of an empty one taken off. The first region is that empty
    /// one and is left out.
    pub(crate) fn counts(&self) -> Result<Vec<u64>, String> {
        let text = read(&self.counts)?;
        let counts: Vec<u64> = numbers(&text, |line| line.parse().ok())?;
        let Some((empty, regions)) = counts.split_first() else {
            return Err("the plugin saw no region".to_owned());
        };
        Ok(regions.iter().map(|count| count.saturating_sub(*empty)).collect())
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

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn numbers<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let parsed =
        text.lines().map(|line| parse(line).ok_or_else(|| format!("the plugin wrote {line:?}")));
    parsed.collect()
}
