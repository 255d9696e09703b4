//! Makes the small networks of `netkit-backbones`, which between them hold every kind of layer, and a `netkit::model!` and a
//! file to load for each, so that none is forgotten.

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let (mut modules, mut float, mut int8) = (String::new(), String::new(), String::new());
    let mut loaded = String::new();
    for network in netkit_backbones::small() {
        let name = network.name;
        let bytes = network.model.to_bytes().unwrap_or_else(|error| panic!("{name}: {error}"));
        write_if_new(out.join(name).with_extension("nk"), &bytes);
        let (list, run) = match network.model.quant {
            None => (&mut float, "float"),
            Some(_) => (&mut int8, "int8"),
        };
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            modules,
            "pub(crate) mod {name} {{\n    netkit::model!(#[doc = \"`{name}`.\"] pub Network = \"$OUT_DIR/{name}.nk\");\n}}"
        );
        let lengths =
            format!("{{ {name}::Network::INPUT_LEN }}, {{ {name}::Network::OUTPUT_LEN }}");
        let _ = writeln!(list, "    {run}::<_, {name}::Network, {lengths}>(board);");
        let _ = writeln!(
            loaded,
            "    use crate::layers::{name};\n    \
             static {upper}: &[u8] = netkit::include_model!(concat!(env!(\"OUT_DIR\"), \"/{name}.nk\"));\n    \
             {run}::<_, {name}::Network, {lengths}>(board, {upper});",
            upper = name.to_uppercase()
        );
    }
    let source = format!(
        "{modules}\n/// Runs the float networks.\npub fn run_f32(board: &mut impl Board) {{\n{float}    activations(board);\n}}\n\n\
         /// Runs the int8 networks.\npub fn run_int8(board: &mut impl Board) {{\n{int8}}}\n"
    );
    write_if_new(out.join("networks.rs"), source.as_bytes());
    let source = format!(
        "/// Loads and runs every network.\npub fn run(board: &mut impl Board) {{\n{loaded}}}\n"
    );
    write_if_new(out.join("loaded.rs"), source.as_bytes());
}

/// What is there and right stays as old as it is, so that what includes it is not compiled again.
fn write_if_new(path: PathBuf, bytes: &[u8]) {
    if fs::read(&path).is_ok_and(|present| present == bytes) {
        return;
    }
    fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
