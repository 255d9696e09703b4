//! Compiling the firmware: with the user's toolchain where it has the target, else from the library's source.

use crate::target::{Emulator, Target};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// The directory of the firmware workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where a build put its binaries.
pub(crate) struct Built {
    directory: PathBuf,
    extension: &'static str,
}

impl Built {
    /// The image of one workload.
    pub(crate) fn image(&self, workload: &str) -> PathBuf {
        self.directory.join(workload).with_extension(self.extension)
    }
}

/// The workloads: every binary of `firmware-board`.
pub(crate) fn workloads() -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace().join("board/src/bin"))? {
        let path = entry?.path();
        if let (Some(name), Some("rs")) =
            (path.file_stem(), path.extension().and_then(|e| e.to_str()))
        {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Builds `workloads` for the machine this runs on; their output is the expectation.
pub(crate) fn for_host(workloads: &[String]) -> Result<Built, String> {
    let directory = workspace().join("target");
    let mut command = cargo(workloads);
    command.env("CARGO_TARGET_DIR", &directory);
    // Nothing is measured here, and the results do not depend on it: what compiles fast.
    command
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    run(command, "host")?;
    Ok(Built { directory: directory.join("release"), extension: "" })
}

/// Builds `workloads` for `target`.
pub(crate) fn for_target(
    target: &Target,
    workloads: &[String],
    cmsis_nn: Option<&Path>,
) -> Result<Built, String> {
    let mut command = cargo(workloads);
    command.env("NETKIT_MACHINE", target.memory);
    if let Some(feature) = target.feature {
        command.args(["--features", feature]);
    }
    if let Some(folder) = cmsis_nn {
        command.env("CMSIS_NN_LIB_DIR", folder.join(target.name)).args(["--features", "cmsis-nn"]);
    }
    compile(command, target)
}

/// Builds the crate in `examples/bare-metal` for `target`, whose machine it must be written for.
pub(crate) fn example(target: &Target) -> Result<PathBuf, String> {
    let mut command = clean_cargo();
    command.current_dir(workspace().join("../../examples/bare-metal"));
    command.args(["build", "--release", "--quiet"]);
    Ok(compile(command, target)?.image("bare-metal"))
}

/// Runs a build command for `target`.
fn compile(mut command: Command, target: &Target) -> Result<Built, String> {
    // One directory for each set of flags: cargo would rebuild everything, core included, when they change.
    let name = match target.emulator {
        Emulator::QemuAarch64 { .. } => "aarch64",
        _ => target.name,
    };
    let directory = workspace().join("target").join(name);
    command
        .env("CARGO_TARGET_DIR", &directory)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", target.optimisation)
        .args(["--target", target.triple]);
    let mut flags = vec![target.rustflags.to_owned()];
    if target.has_std() {
        // Static and at fixed addresses: no library of the target is needed, and the counter finds its markers.
        flags.push("-Ctarget-feature=+crt-static -Crelocation-model=static".to_owned());
        flags.push("-Clinker=aarch64-linux-gnu-gcc".to_owned());
    }
    if !has_library(target.triple) {
        let compiler = source_compiler()?;
        let library = if target.has_std() { "std,panic_abort" } else { "core" };
        command.arg(format!("-Zbuild-std={library}")).env("RUSTC", compiler);
        // The flag above is unstable. It also makes the compiler show `cfg(target_feature)` values that a stable one
        // hides, so nothing in netkit may choose by those where the lists differ.
        command.env("RUSTC_BOOTSTRAP", "1");
        if !target.has_std() {
            flags.push(format!("-Clinker={}", linker()?.display()));
        }
    }
    command.env("RUSTFLAGS", flags.join(" ").trim());
    run(command, target.name)?;
    Ok(Built {
        directory: directory.join(target.triple).join("release"),
        extension: if target.emulator == Emulator::Node { "wasm" } else { "" },
    })
}

/// What stands in the way of building for and running on `target`, if anything.
pub(crate) fn missing(target: &Target) -> Option<String> {
    let found = |program: &str| {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).any(|directory| directory.join(program).is_file())
    };
    if !found(target.program()) {
        return Some(format!("no {}", target.program()));
    }
    if target.triple.starts_with("thumb") && !found("arm-none-eabi-objdump") {
        return Some("no arm-none-eabi-objdump (Debian: binutils-arm-none-eabi)".to_owned());
    }
    if target.has_std() && !found("aarch64-linux-gnu-gcc") {
        return Some("no aarch64-linux-gnu-gcc to link with".to_owned());
    }
    if has_library(target.triple) {
        return None;
    }
    source_compiler().err()
}

/// The compiler the targets are built with, as it names itself.
pub(crate) fn compiler(targets: &[Target]) -> Result<String, String> {
    let own = targets.iter().all(|target| has_library(target.triple));
    let compiler = if own { "rustc".into() } else { source_compiler()? };
    let output = Command::new(&compiler).arg("--version").output();
    let output = output.map_err(|error| format!("{}: {error}", compiler.display()))?;
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(version.split(" (").next().unwrap_or_default().trim().to_owned())
}

fn cargo(workloads: &[String]) -> Command {
    let mut command = clean_cargo();
    command.current_dir(workspace());
    command.args(["build", "--release", "--quiet", "--package", "firmware-board"]);
    for workload in workloads {
        command.args(["--bin", workload]);
    }
    command
}

/// Cargo without what the one that started this program has set.
fn clean_cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Set by the cargo that started this program; they would reach build scripts and confuse them.
    for variable in ["RUSTC", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR"] {
        command.env_remove(variable);
    }
    command
}

fn run(mut command: Command, what: &str) -> Result<(), String> {
    let status = command.stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("building for {what} failed: {status}")),
        Err(error) => Err(format!("cargo cannot be started: {error}")),
    }
}

/// Whether the default toolchain has the target's library, which `rustup target add` installs.
fn has_library(triple: &str) -> bool {
    let printed = rustc(&["--print", "target-libdir", "--target", triple]);
    printed.is_some_and(|directory| Path::new(&directory).is_dir())
}

fn rustc(arguments: &[&str]) -> Option<String> {
    let output = Command::new("rustc").args(arguments).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// A compiler that comes with its library's source: `NETKIT_SOURCE_RUSTC`, or that of Debian's `rustc-web` and
/// `rust-web-src`.
fn source_compiler() -> Result<PathBuf, String> {
    let compiler =
        env::var_os("NETKIT_SOURCE_RUSTC").map_or("/usr/bin/rustc".into(), PathBuf::from);
    if compiler.exists() {
        return Ok(compiler);
    }
    Err("the target's library is not installed: `rustup target add`, or set NETKIT_SOURCE_RUSTC to a compiler that \
         has its library's source (Debian: rustc-web and rust-web-src)"
        .to_owned())
}

/// The linker of rustup's toolchain, or the system's: Debian's compiler comes without one for bare targets.
fn linker() -> Result<PathBuf, String> {
    let sysroot = rustc(&["--print", "sysroot"]).map(PathBuf::from);
    let host = rustc(&["--print", "host-tuple"]).unwrap_or_default();
    let bundled = sysroot.map(|root| root.join("lib/rustlib").join(host).join("bin/rust-lld"));
    let candidates = bundled.into_iter().chain(["/usr/bin/ld.lld".into()]);
    let mut present = candidates.filter(|path| path.exists());
    present.next().ok_or_else(|| "no rust-lld and no ld.lld (Debian: lld)".to_owned())
}
