//! Copies the model files at hand to `OUT_DIR` and writes a `netkit::model!` for each: the way for models that lie
//! outside of a package.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    println!("cargo::rerun-if-env-changed=NETKIT_CORPUS");
    println!("cargo::rerun-if-env-changed=NETKIT_MODELS");
    let corpus = match env::var_os("NETKIT_CORPUS") {
        Some(corpus) => PathBuf::from(corpus),
        None => root.join("../shared/corpus"),
    };
    let has_corpus = corpus.join("nk").is_dir();
    // More folders of models can be named, such as one of random models.
    let more = env::var_os("NETKIT_MODELS").unwrap_or_default();
    let folders = [("models", root.join("models")), ("corpus", corpus.join("nk"))]
        .into_iter()
        .chain(env::split_paths(&more).map(|folder| ("more", folder)));

    let (mut models, mut table) = (String::new(), String::new());
    let mut count = 0;
    for (origin, folder) in folders.filter(|(_, folder)| folder.is_dir()) {
        println!("cargo::rerun-if-changed={}", folder.display());
        for path in model_files(&folder) {
            println!("cargo::rerun-if-changed={}", path.display());
            let name = format!("{origin}_{count}.nk");
            // Version 4 is int8; what is generated for these tests has the exact integers as expectations.
            let exact = origin == "more" && fs::read(&path).unwrap().get(4) == Some(&4);
            fs::copy(&path, out.join(&name)).unwrap();
            let label = format!("{origin}/{}", path.file_name().unwrap().to_str().unwrap());
            writeln!(models, "netkit::model!(pub Model{count} = \"$OUT_DIR/{name}\");").unwrap();
            writeln!(table, "    ({label:?}, check::<Model{count}>, {exact}),").unwrap();
            count += 1;
        }
    }
    let generated = format!(
        "{models}\nconst HAS_CORPUS: bool = {has_corpus};\n\n#[rustfmt::skip]\nconst MODELS: &[(&str, Check, bool)] = &[\n{table}];\n"
    );
    fs::write(out.join("models.rs"), generated).unwrap();
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
