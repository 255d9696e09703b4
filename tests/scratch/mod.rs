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

    /// Runs cargo in a folder of the workspace.
    pub(crate) fn cargo(&self, folder: &str, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(self.root.join(folder))
            .env("CARGO_TARGET_DIR", target())
            .env("CARGO_TERM_COLOR", "never")
            // Of the test's own build; they would change what is built here.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .output()
            .unwrap()
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

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("scratch-target")
}
