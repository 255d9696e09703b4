//! Running an image under its emulator, with a time limit.

use crate::build::workspace;
use crate::counter::Plugin;
use crate::target::{Emulator, Target};
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// No workload takes a tenth of this; what takes longer hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs the host's build of a workload and returns what it printed.
pub(crate) fn on_host(image: &Path) -> Result<String, String> {
    run(Command::new(image))
}

/// Runs `image` on `target` and returns what it printed. The plugin, if any, counts along.
pub(crate) fn on_target(
    target: &Target,
    image: &Path,
    plugin: Option<&Plugin>,
) -> Result<String, String> {
    run(command(target, image, plugin.map(Plugin::argument)))
}

fn command(target: &Target, image: &Path, plugin: Option<OsString>) -> Command {
    let mut command = Command::new(target.program());
    match target.emulator {
        Emulator::QemuArm { machine, arguments } => {
            command.args(["-M", machine]).args(arguments);
            bare(&mut command, image);
        }
        Emulator::QemuRiscV => {
            command.args(["-M", "virt", "-bios", "none"]);
            bare(&mut command, image);
        }
        Emulator::QemuAarch64 { processor } => {
            command.args(["-cpu", processor]);
        }
        Emulator::Node => {
            command.arg(workspace().join("runner/node.js"));
        }
    }
    if let Some(argument) = plugin {
        command.arg("-plugin").arg(argument);
    }
    if !target.is_bare() {
        command.arg(image);
    }
    command
}

fn bare(command: &mut Command, image: &Path) {
    command
        .args(["-nographic", "-monitor", "none", "-serial", "null"])
        .args(["-semihosting-config", "enable=on,target=native"])
        .arg("-kernel")
        .arg(image);
}

fn run(mut command: Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let explain = |error: std::io::Error| format!("{program}: {error}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(explain)?;
    let stdout = gather(child.stdout.take());
    let stderr = gather(child.stderr.take());
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(explain)? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().map_err(explain)?;
            child.wait().map_err(explain)?;
            return Err(format!("{program}: still running after {} s", LIMIT.as_secs()));
        }
        thread::sleep(Duration::from_millis(2));
    };
    let printed = stdout.join().unwrap_or_default();
    let complaint = stderr.join().unwrap_or_default();
    if status.success() {
        Ok(printed)
    } else {
        let last = printed.lines().last().unwrap_or("nothing");
        let last: String = last.chars().take(200).collect();
        Err(format!("{program}: {status}; last printed: {last}\n{complaint}"))
    }
}

/// Reads a pipe to its end on a thread of its own, so that neither side waits for the other.
fn gather(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What came before a broken pipe is still worth showing.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
