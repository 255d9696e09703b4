//! Workspaces that tests write, build and change: for what only a crate of one's own can show.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A workspace in a folder of its own. The scratch workspaces of all tests build into one folder, so that netkit is
/// compiled once for all.
pub(crate) struct Scratch {
    root: PathBuf,
}

impl Scratch {
    /// An empty folder.
    pub(crate) fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        let scratch = Self { root };
        // The versions that the repository builds with: nothing new is looked up.
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock");
        if lock.exists() {
            scratch.write("Cargo.lock", fs::read(lock).unwrap());
        }
        scratch
    }

    /// Where something of the workspace is.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Writes a file, and the folders it lies in.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Adds to the end of a file.
    pub(crate) fn append(&self, path: &str, content: &str) {
        let text = fs::read_to_string(self.root.join(path)).unwrap();
        self.write(path, text + content);
    }

    /// The value of a `netkit` dependency in a manifest.
    pub(crate) fn netkit(more: &str) -> String {
        format!("{{ path = {:?}{more} }}", env!("CARGO_MANIFEST_DIR"))
    }

    /// Where something is that was built with optimisation.
    pub(crate) fn release(&self, file: &str) -> PathBuf {
        target().join("release").join(file)
    }

    /// The bytes of a program that was built with optimisation.
    pub(crate) fn binary(&self, name: &str) -> Vec<u8> {
        fs::read(self.release(&format!("{name}{}", std::env::consts::EXE_SUFFIX))).unwrap()
    }

    fn command(&self, folder: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command
            .args(arguments)
            .current_dir(self.root.join(folder))
            .env("CARGO_TARGET_DIR", target())
            .env("CARGO_TERM_COLOR", "never")
            // Of the test's own build; they would change what is built here.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        command
    }

    /// Runs cargo in a folder of the workspace.
    pub(crate) fn cargo(&self, folder: &str, arguments: &[&str]) -> Output {
        self.command(folder, arguments).output().unwrap()
    }

    /// Runs cargo, which must succeed, and looks on: what the most expensive compiler that it started took.
    #[cfg(target_os = "linux")]
    pub(crate) fn cost_of_rustc(&self, folder: &str, arguments: &[&str]) -> Cost {
        let mut cargo = self.command(folder, arguments).spawn().unwrap();
        let mut cost = Cost::default();
        let status = loop {
            if let Some(status) = cargo.try_wait().unwrap() {
                break status;
            }
            for process in fs::read_dir("/proc").unwrap() {
                if let Some(seen) = Cost::of_rustc(&process.unwrap().path(), cargo.id()) {
                    cost.peak_bytes = cost.peak_bytes.max(seen.peak_bytes);
                    cost.seconds = cost.seconds.max(seen.seconds);
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        };
        assert!(status.success(), "cargo {arguments:?} in {folder:?}");
        cost
    }

    /// Runs cargo and fails the test where it fails; what it printed.
    pub(crate) fn cargo_passes(&self, folder: &str, arguments: &[&str]) -> String {
        let output = self.cargo(folder, arguments);
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "cargo {arguments:?} in {folder:?}:\n{err}\n{out}");
        out
    }
}

/// What a process took.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// The most memory that it had at once.
    pub(crate) peak_bytes: u64,
    /// Of a processor: other processes on the machine add next to nothing to it.
    pub(crate) seconds: f64,
}

#[cfg(target_os = "linux")]
impl Cost {
    /// So far, of the process whose folder of `/proc` this is, if it is a compiler that `parent` started.
    fn of_rustc(process: &Path, parent: u32) -> Option<Self> {
        // `PID (NAME) STATE PPID …`, user and system time 11 and 12 fields behind the state, in hundredths.
        let stat = fs::read_to_string(process.join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        if name != "rustc" || fields.get(1)?.parse() != Ok(parent) {
            return None;
        }
        let hundredths =
            fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Some(Self { peak_bytes: 1024 * kib.unwrap_or(0), seconds: hundredths / 100.0 })
    }
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("scratch-target")
}
