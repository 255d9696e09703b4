//! Brings the model files at hand into `OUT_DIR` and writes a `netkit::model!` for each: the way for models that lie
//! outside of a package.
//!
//! They are the files of this repository and of the corpus, those of the folders in `NETKIT_MODELS`, small networks
//! around each kind of layer and around batch norms, those that fit a microcontroller, and, where Python with numpy and the independent evaluator are at hand, random models
//! (`NETKIT_RANDOM_MODELS` of them) that carry its answers.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use netkit_core::diag::Code;
use netkit_core::format::{LayerKind, WriteError};
use netkit_core::tensor::DType;

/// Random models through the macro, where nobody asks for more.
const RANDOM_MODELS: &str = "60";

/// Bytes of the largest model that is compiled a second time, for batches.
const LARGEST_IN_BATCHES: usize = 150_000;

/// The batches of one model after the other.
const BATCHES: [usize; 4] = [3, 1, 8, 2];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let corpus = match variable("NETKIT_CORPUS") {
        Some(corpus) => PathBuf::from(corpus),
        None => root.join("../shared/corpus"),
    };
    let has_corpus = corpus.join("nk").is_dir();
    let more = variable("NETKIT_MODELS").unwrap_or_default();
    let mut models = Models { out: &out, declared: String::new(), table: String::new(), count: 0 };

    let folders = [("models", root.join("models")), ("corpus", corpus.join("nk"))]
        .into_iter()
        .chain(env::split_paths(&more).map(|folder| ("more", folder)));
    for (origin, folder) in folders.filter(|(_, folder)| folder.is_dir()) {
        println!("cargo::rerun-if-changed={}", folder.display());
        for path in model_files(&folder) {
            println!("cargo::rerun-if-changed={}", path.display());
            models.add(&format!("{origin}/{}", file_name(&path)), &fs::read(&path).unwrap());
        }
    }
    for kind in LayerKind::ALL {
        for (dtype, name) in [(DType::F32, "float32"), (DType::I8, "int8")] {
            match netkit_backbones::around(kind, dtype).to_bytes() {
                Ok(bytes) => models.add(&format!("kinds/{}_{name}.nk", kind.name()), &bytes),
                Err(WriteError::Rule(rule)) if rule.code == Code::QuanLayerKind => {}
                Err(error) => panic!("{} in {name}: {error}", kind.name()),
            }
        }
    }
    for network in netkit_backbones::batch_norms() {
        let bytes = network.model.to_bytes();
        let bytes = bytes.unwrap_or_else(|error| panic!("{}: {error}", network.name));
        models.add(&format!("batch_norm/{}.nk", network.name), &bytes);
    }
    for network in netkit_backbones::small() {
        let bytes = network.model.to_bytes();
        let bytes = bytes.unwrap_or_else(|error| panic!("{}: {error}", network.name));
        models.add(&format!("small/{}.nk", network.name), &bytes);
    }
    let random = random_models(&root, &out.join("random"));
    for path in random.iter().flat_map(|folder| model_files(folder)) {
        models.add(&format!("random/{}", file_name(&path)), &fs::read(&path).unwrap());
    }

    let generated = format!(
        "{}\n/// Whether the corpus was there.\npub const HAS_CORPUS: bool = {has_corpus};\n\n\
         /// Whether random models were made.\npub const HAS_RANDOM: bool = {};\n\n\
         /// The models.\n#[rustfmt::skip]\npub static MODELS: &[Compiled] = &[\n{}];\n",
        models.declared,
        random.is_some(),
        models.table
    );
    fs::write(out.join("models.rs"), generated).unwrap();
}

/// The macro invocations, and the table of what they declare.
struct Models<'o> {
    out: &'o Path,
    declared: String,
    table: String,
    count: usize,
}

impl Models<'_> {
    fn add(&mut self, name: &str, bytes: &[u8]) {
        let count = self.count;
        let file = format!("model_{count}.nk");
        let path = self.out.join(&file);
        // What is right already stays as old as it is.
        if fs::read(&path).ok().as_deref() != Some(bytes) {
            fs::write(&path, bytes).unwrap();
        }
        // Version 4 is int8. What is generated for these tests has the exact integers as expectations.
        let is_int8 = bytes.get(4) == Some(&4);
        let exact = is_int8 && (name.starts_with("more/") || name.starts_with("random/"));
        let compare = if is_int8 { "compare_s8" } else { "compare" };
        writeln!(self.declared, "netkit::model!(pub Model{count} = \"$OUT_DIR/{file}\");").unwrap();
        let batch = match bytes.len() <= LARGEST_IN_BATCHES {
            true => {
                let batch = BATCHES[count % BATCHES.len()];
                writeln!(
                    self.declared,
                    "netkit::model!(pub Batches{count} = \"$OUT_DIR/{file}\", batch = {batch});"
                )
                .unwrap();
                format!("Some(compare_batches::<Batches{count}>)")
            }
            false => "None".to_owned(),
        };
        writeln!(
            self.table,
            "    Compiled {{ name: {name:?}, file: {path:?}, exact: {exact}, check: check::<Model{count}>, \
             compare: {compare}::<Model{count}>, batch: {batch} }},",
        )
        .unwrap();
        self.count += 1;
    }
}

/// Makes random models in `folder`, if what it takes is there.
fn random_models(root: &Path, folder: &Path) -> Option<PathBuf> {
    let generator = root.join("tests/reference/generate.py");
    println!("cargo::rerun-if-changed={}", generator.display());
    let nkref =
        variable("NETKIT_NKREF").map_or_else(|| root.join("../shared/tools"), PathBuf::from);
    let python = variable("NETKIT_PYTHON").unwrap_or_else(|| "python3".into());
    let count = variable("NETKIT_RANDOM_MODELS").unwrap_or_else(|| RANDOM_MODELS.into());
    let evaluator = nkref.join("nkref.py");
    println!("cargo::rerun-if-changed={}", evaluator.display());
    let has_numpy = Command::new(&python).args(["-c", "import numpy"]).output();
    if !evaluator.is_file() || !has_numpy.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let _ = fs::remove_dir_all(folder);
    // A seed of their own: the runtime runs many of the first seed.
    let made = Command::new(&python)
        .arg(&generator)
        .arg("--nkref")
        .arg(&nkref)
        .arg("--out")
        .arg(folder)
        .args(["--seed", "2", "--count"])
        .arg(&count)
        .status();
    assert!(made.is_ok_and(|status| status.success()), "the generator of random models failed");
    Some(folder.to_owned())
}

/// An environment variable that this build depends on.
fn variable(name: &str) -> Option<std::ffi::OsString> {
    println!("cargo::rerun-if-env-changed={name}");
    env::var_os(name)
}

fn file_name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

fn model_files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "nk"))
        .collect();
    paths.sort();
    paths
}
