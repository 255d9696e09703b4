//! Whole processes: start, load the MNIST CNN, one inference, end. One small program an engine (`src/bin/fresh_*.rs`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde::Serialize;

use crate::arguments::Arguments;
use crate::engines::Python;
use crate::model::Result;

#[derive(Serialize)]
pub struct Process {
    pub engine: String,
    pub minimum_ms: f64,
    pub median_ms: f64,
    pub peak_mib: f64,
    /// The program and, for ONNX Runtime and LiteRT, the shared libraries of the engine itself.
    pub binary_mib: f64,
}

const STARTS: usize = 21;

struct Program {
    engine: &'static str,
    /// The program's name in the folder of this one; `None` for the Python worker.
    name: Option<&'static str>,
}

/// The process that does nothing: always there, to be subtracted from the others.
const EMPTY: &str = "no engine";

const PROGRAMS: &[Program] = &[
    Program { engine: EMPTY, name: Some("fresh_empty") },
    Program { engine: "netkit", name: Some("fresh_netkit") },
    Program { engine: "ONNX Runtime", name: Some("fresh_onnxruntime") },
    Program { engine: "LiteRT (from Python)", name: None },
    #[cfg(feature = "tract")]
    Program { engine: "tract", name: Some("fresh_tract") },
    #[cfg(feature = "rten")]
    Program { engine: "rten", name: Some("fresh_rten") },
    #[cfg(feature = "burn")]
    Program { engine: "burn", name: Some("fresh_burn") },
];

pub fn measure(python: &Python, arguments: &Arguments) -> Result<Vec<Process>> {
    let own = std::env::current_exe()?;
    let folder = own.parent().ok_or("this program is in no folder")?;
    let mut commands = Vec::new();
    for program in PROGRAMS.iter().filter(|program| {
        program.engine == EMPTY
            || arguments.wants_engine(program.engine.split(" (").next().unwrap_or(""))
    }) {
        let (mut command, parts): (Command, Vec<PathBuf>) = match program.name {
            Some(name) => {
                let path = folder.join(name);
                let mut parts = vec![path.clone()];
                let mut command = Command::new(path);
                if name == "fresh_onnxruntime" {
                    command
                        .arg(&python.onnxruntime)
                        .arg(arguments.models.join("mnist_cnn_f32.onnx"));
                    parts.push(python.onnxruntime.clone());
                }
                (command, parts)
            }
            None => {
                let mut command = Command::new(&python.interpreter);
                command
                    .arg(python.scripts.join("litert_fresh.py"))
                    .arg(arguments.models.join("mnist_cnn_f32.tflite"));
                (command, litert_libraries(python)?)
            }
        };
        command.stderr(std::process::Stdio::null());
        commands.push((program.engine, command, parts, Vec::new(), 0.0f64));
    }
    for _ in 0..STARTS {
        for (engine, command, _, times, peak) in &mut commands {
            let start = Instant::now();
            let output = command.output()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            if !output.status.success() {
                return Err(
                    format!("the fresh process of {engine} ended with {}", output.status).into()
                );
            }
            *peak = peak.max(peak_mib(&String::from_utf8_lossy(&output.stdout))?);
        }
    }
    commands
        .into_iter()
        .map(|(engine, _, parts, mut times, peak_mib)| {
            times.sort_by(f64::total_cmp);
            let bytes = parts.iter().map(|part| Ok(part.metadata()?.len())).sum::<Result<u64>>()?;
            Ok(Process {
                engine: engine.to_owned(),
                minimum_ms: times[0],
                median_ms: times[times.len() / 2],
                peak_mib,
                binary_mib: bytes as f64 / f64::from(1 << 20),
            })
        })
        .collect()
}

/// The interpreter's extension and the library that it links.
fn litert_libraries(python: &Python) -> Result<Vec<PathBuf>> {
    let packages =
        python.onnxruntime.ancestors().nth(3).ok_or("the library is in no environment")?;
    let folder: &Path = &packages.join("ai_edge_litert");
    Ok(["_pywrap_litert_interpreter_wrapper.so", "libpywrap_litert_common.so"]
        .map(|name| folder.join(name))
        .into())
}

/// How each program ends: says which output was largest, so that the inference cannot be optimised away, and what memory
/// the process had at most.
pub fn finish(output: &[f32]) {
    let class =
        output.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(class, _)| class);
    println!("class {class}");
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default());
}

/// The first example of the MNIST CNN, out of the bytes of its `.cases`.
pub fn digit(cases: &[u8]) -> Vec<f32> {
    cases[..4 * 28 * 28]
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

/// The programs report the `VmHWM` of their own memory map: the peak that a parent is told of a child includes the moment
/// before the child replaced the parent's image.
fn peak_mib(printed: &str) -> Result<f64> {
    let line = printed
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("the process printed no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn peak_memory_is_read_from_the_status_line() {
        assert_eq!(super::peak_mib("class 3\nVmHWM:\t    2048 kB\n").unwrap(), 2.0);
        assert!(super::peak_mib("class 3\n").is_err());
    }
}
