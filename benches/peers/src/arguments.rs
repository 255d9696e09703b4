//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engines::Python;
use crate::model::Result;

const USAGE: &str = "\
usage: peers [options]
  --only TEXT        models whose name contains TEXT (several: comma-separated)
  --engines LIST     engines by their names in the table, comma-separated (netkit,ONNX Runtime)
  --rounds N         turns each engine gets on each model (7)
  --turn-ms N        length of a turn (100)
  --no-processes     leave the whole-process figures out
  --json PATH        write the results there too
  --models FOLDER    what `python -m generate` wrote (made/models beside this package)
  --python PATH      interpreter of the environment with the packages of requirements.txt (made/venv/bin/python)
";

pub struct Arguments {
    pub only: Vec<String>,
    pub engines: Vec<String>,
    pub rounds: usize,
    pub turn: Duration,
    pub processes: bool,
    pub json: Option<PathBuf>,
    pub models: PathBuf,
    interpreter: PathBuf,
}

impl Arguments {
    /// `Ok(None)` when only help was wanted.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Arguments>> {
        let home = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut parsed = Arguments {
            only: Vec::new(),
            engines: Vec::new(),
            rounds: 7,
            turn: Duration::from_millis(100),
            processes: true,
            json: None,
            models: home.join("made/models"),
            interpreter: home.join("made/venv/bin/python"),
        };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value\n{USAGE}"));
            let list = |text: String| text.split(',').map(str::to_owned).collect();
            match argument.as_str() {
                "--only" => parsed.only = list(value()?),
                "--engines" => parsed.engines = list(value()?),
                "--rounds" => parsed.rounds = value()?.parse::<usize>()?.max(1),
                "--turn-ms" => parsed.turn = Duration::from_millis(value()?.parse()?),
                "--no-processes" => parsed.processes = false,
                "--json" => parsed.json = Some(value()?.into()),
                "--models" => parsed.models = value()?.into(),
                "--python" => parsed.interpreter = value()?.into(),
                "--help" | "-h" => {
                    print!("{USAGE}");
                    return Ok(None);
                }
                _ => return Err(format!("unknown option {argument}\n{USAGE}").into()),
            }
        }
        Ok(Some(parsed))
    }

    pub fn wants_model(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| name.contains(text.as_str()))
    }

    pub fn wants_engine(&self, name: &str) -> bool {
        self.engines.is_empty()
            || self.engines.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
    }

    pub fn python(&self) -> Result<Python> {
        let missing = |what: &Path| format!("{} is not there; run.sh makes it", what.display());
        if !self.interpreter.exists() {
            return Err(missing(&self.interpreter).into());
        }
        // bin/python → lib/python3.x/site-packages/onnxruntime/capi/libonnxruntime.so.*
        let environment = self
            .interpreter
            .parent()
            .and_then(Path::parent)
            .ok_or("the interpreter is in no environment")?;
        let library = std::fs::read_dir(environment.join("lib"))?
            .flatten()
            .filter_map(|python| {
                std::fs::read_dir(python.path().join("site-packages/onnxruntime/capi")).ok()
            })
            .flat_map(|folder| folder.flatten().map(|entry| entry.path()))
            .find(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with("libonnxruntime.so"))
            })
            .ok_or_else(|| missing(&environment.join("lib/python*/site-packages/onnxruntime")))?;
        Ok(Python {
            interpreter: self.interpreter.clone(),
            onnxruntime: library,
            scripts: env!("CARGO_MANIFEST_DIR").into(),
        })
    }
}
