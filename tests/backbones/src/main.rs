//! Writes the networks of this crate to a folder: all of them, or those that are named.

use std::path::Path;
use std::process::ExitCode;

use netkit_backbones::{ALL, Backbone};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((folder, names)) = arguments.split_first() else {
        eprintln!("usage: netkit-backbones FOLDER [NAME..]");
        return ExitCode::FAILURE;
    };
    let mut wanted = Vec::new();
    for name in names {
        let Some(backbone) = Backbone::named(name) else {
            let names = ALL.map(|backbone| backbone.name).join(", ");
            eprintln!("no network {name:?}: there are {names}");
            return ExitCode::FAILURE;
        };
        wanted.push(backbone);
    }
    if wanted.is_empty() {
        wanted.extend(ALL);
    }
    for backbone in wanted {
        let path = Path::new(folder).join(backbone.name).with_extension("nk");
        let bytes = backbone.file();
        if let Err(error) = std::fs::write(&path, &bytes) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        println!("{}: {} bytes", path.display(), bytes.len());
    }
    ExitCode::SUCCESS
}
