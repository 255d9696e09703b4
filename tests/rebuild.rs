//! A model that changes on disk changes the program: pitfall B38, weights that are not those of the file.

#[path = "../netkit-core/tests/format_support/mod.rs"]
mod format_support;
mod scratch;

use scratch::Scratch;

/// A package whose model comes from its folder, or from its build script.
fn package(scratch: &Scratch, path: &str) {
    scratch.write(
        "Cargo.toml",
        format!(
            "[package]\nname = \"rebuilt\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [dependencies]\nnetkit = {}\n\n[workspace]\n",
            Scratch::netkit("")
        ),
    );
    scratch.write(
        "src/main.rs",
        format!(
            "netkit::model!(Small = {path:?});\n\n\
             fn main() {{\n    println!(\"{{:?}}\", Small::new().forward(&[1.0, 2.0]));\n}}\n"
        ),
    );
}

/// The worked model with another value in its last bias; the file keeps its length.
fn small(bias: f32) -> Vec<u8> {
    let mut bytes = format_support::worked_mlp().to_bytes().unwrap();
    bytes[220..224].copy_from_slice(&bias.to_le_bytes());
    bytes
}

fn answer(scratch: &Scratch) -> String {
    scratch.cargo_passes("", &["run", "-q"])
}

#[test]
fn b38_editing_the_model_rebuilds() {
    let scratch = Scratch::new("rebuild");
    package(&scratch, "models/small.nk");
    scratch.write("models/small.nk", small(0.0));
    assert_eq!(answer(&scratch), "[3.0, 3.0]\n");
    scratch.write("models/small.nk", small(0.5));
    assert_eq!(answer(&scratch), "[3.0, 3.5]\n");

    // A model that breaks is an error, and mending it is enough.
    scratch.write("models/small.nk", &small(0.0)[..100]);
    assert!(!scratch.cargo("", &["run", "-q"]).status.success());
    scratch.write("models/small.nk", small(0.25));
    assert_eq!(answer(&scratch), "[3.0, 3.25]\n");
}

#[test]
fn b38_a_build_script_that_writes_another_model_rebuilds() {
    let scratch = Scratch::new("rebuild-out-dir");
    package(&scratch, "$OUT_DIR/made/small.nk");
    scratch.write(
        "build.rs",
        "fn main() {\n    println!(\"cargo::rerun-if-changed=source.nk\");\n    \
         let out = std::path::PathBuf::from(std::env::var_os(\"OUT_DIR\").unwrap()).join(\"made\");\n    \
         std::fs::create_dir_all(&out).unwrap();\n    \
         std::fs::copy(\"source.nk\", out.join(\"small.nk\")).unwrap();\n}\n",
    );
    scratch.write("source.nk", small(0.0));
    assert_eq!(answer(&scratch), "[3.0, 3.0]\n");
    scratch.write("source.nk", small(0.5));
    assert_eq!(answer(&scratch), "[3.0, 3.5]\n");
}
