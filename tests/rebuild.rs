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

/// A folder whose name has something of everything that somebody might forget to quote.
#[cfg(unix)]
const FOLDER: &str = "it's \"q\" {0} #1 $HOME %20 \\ 神";
#[cfg(not(unix))]
const FOLDER: &str = "it's {0} #1 $HOME %20 神";

/// Copies one model to where `$OUT_DIR` paths find it, and writes code that names it.
const BUILD: &str = r#"
fn main() {
    println!("cargo::rerun-if-changed=models");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
    std::fs::copy("models/out.nk", out.join("made.nk")).unwrap();
    let code = "netkit::model!(pub Generated = \"$OUT_DIR/made.nk\");
        netkit::model!(pub InPackage = \"models/lib.nk\");";
    std::fs::write(out.join("code.rs"), code).unwrap();
}
"#;

/// Every place in a package that a model may stand in or come from.
const LIBRARY: &str = r#"
#![doc = include_str!("../README.md")]
#![deny(warnings)]

//! ```
//! netkit::model!(Made = "$OUT_DIR/made.nk");
//! assert_eq!(Made::OUTPUT_LEN, 2);
//! ```

netkit::model! { pub InLibrary = "models/lib.nk" }
pub mod generated {
    include!(concat!(env!("OUT_DIR"), "/code.rs"));
}
pub mod included {
    include!("../elsewhere/included.rs");
}
#[path = "../elsewhere/module.rs"]
pub mod module;
// Declared by another package's macro, which has models of its own by these names.
family::declare!(pub Declared);
family::declare_at!(pub DeclaredAt = "models/family.nk");

pub static LOADED: &[u8] = netkit::include_model!("models/lib.nk");
pub static LOADED_OUT: &[u8] = netkit::include_model!(concat!(env!("OUT_DIR"), "/made.nk"));

#[macro_export]
macro_rules! answers {
    ($($model:path),+ $(,)?) => { [$(<$model>::new().forward(&[1.0, 2.0])[1]),+] };
}

#[test]
fn runs() {
    netkit::model![Here = "models/lib.nk"];
    assert_eq!(Here::OUTPUT_LEN, 2);
}
"#;

const MAIN: &str = r#"
#![deny(warnings)]
use layouts::*;
netkit::model!(InProgram = "models/lib.nk");
fn main() {
    let last = |file: &[u8]| f32::from_le_bytes(file[220..224].try_into().unwrap());
    println!("{:?}", answers!(
        InProgram, InLibrary, generated::Generated, generated::InPackage, included::Included,
        module::InModule, Declared, DeclaredAt, family::Own, outside::Outside,
    ).map(|answer| answer - 3.0));
    println!("{:?}", [last(LOADED), last(LOADED_OUT)]);
}
"#;

/// A program of a kind that cargo builds beside the library.
const BESIDE: &str = "netkit::model!(Here = \"models/lib.nk\");\n\
     fn main() {\n    assert_eq!(Here::OUTPUT_LEN, layouts::InLibrary::OUTPUT_LEN);\n}\n";

/// Pitfalls B38 and B39: whichever file of a package names a model, the path begins at that package's Cargo.toml, and the model
/// that changes changes the program.
#[test]
fn b38_b39_every_layout_finds_its_model_and_rebuilds() {
    let scratch = Scratch::new("layouts");
    let netkit = format!("netkit = {}", Scratch::netkit(""));
    let at = |file: &str| format!("{FOLDER}/{file}");
    let manifest = |name: &str, more: &str| {
        format!(
            "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2021\"\ndescription = \"-\"\n\
             license = \"MIT\"\nrepository = \"-\"\n\n{more}\n[dependencies]\n{netkit}\n"
        )
    };
    scratch.write(
        "members/Cargo.toml",
        format!("[workspace]\nresolver = \"2\"\nmembers = [{FOLDER:?}, \"family\"]\n"),
    );
    scratch.write("members/Cargo.lock", std::fs::read(scratch.path("Cargo.lock")).unwrap());
    let member = |file: &str| format!("members/{}", at(file));
    scratch.write(
        &member("Cargo.toml"),
        manifest("layouts", "[[bench]]\nname = \"bench\"\nharness = false\n")
            + "family = { path = \"../family\" }\noutside = { path = \"../../outside\" }\n",
    );
    scratch.write(&member("build.rs"), BUILD);
    scratch.write(
        &member("README.md"),
        "```\nnetkit::model!(Net = \"models/lib.nk\");\nassert_eq!(Net::NAME, \"lib\");\n```\n",
    );
    scratch.write(&member("src/lib.rs"), LIBRARY);
    scratch.write(&member("src/main.rs"), MAIN);
    for file in ["examples/example.rs", "benches/bench.rs"] {
        scratch.write(&member(file), BESIDE);
    }
    scratch.write(&member("tests/test.rs"), BESIDE.replace("fn main", "#[test]\nfn runs"));
    let names = |name: &str| format!("netkit::model!(pub {name} = \"models/lib.nk\");\n");
    scratch.write(&member("elsewhere/included.rs"), names("Included"));
    scratch.write(&member("elsewhere/module.rs"), names("InModule"));
    scratch.write("members/family/Cargo.toml", manifest("family", ""));
    scratch.write(
        "members/family/src/lib.rs",
        "#[doc(hidden)]\npub use netkit;\nnetkit::model!(pub Own = \"models/family.nk\");\n\
         #[macro_export]\nmacro_rules! declare {\n    ($v:vis $name:ident) => {\n        \
         $crate::netkit::model!($v $name = \"models/family.nk\");\n    };\n}\n\
         #[macro_export]\nmacro_rules! declare_at {\n    ($v:vis $name:ident = $path:expr) => {\n        \
         $crate::netkit::model!($v $name = $path);\n    };\n}\n",
    );
    // A package of no workspace, which brings its own model.
    scratch.write("outside/Cargo.toml", manifest("outside", ""));
    scratch.write("outside/src/lib.rs", "netkit::model!(pub Outside = \"nets/outside.nk\");\n");

    let write = |step: f32| {
        let files = [
            (member("models/lib.nk"), 0.25),
            (member("models/out.nk"), 0.5),
            (member("models/family.nk"), 1.0),
            ("members/family/models/family.nk".to_owned(), 2.0),
            ("outside/nets/outside.nk".to_owned(), 4.0),
        ];
        for (file, bias) in files {
            scratch.write(&file, small(bias + step));
        }
    };
    let answers = |folder: &str, arguments: &[&str]| scratch.cargo_passes(folder, arguments);
    let expected = |step: f32| {
        let [lib, out, of_user, of_family, outside] =
            [0.25, 0.5, 1.0, 2.0, 4.0].map(|bias| bias + step);
        format!(
            "{:?}\n{:?}\n",
            [lib, lib, out, lib, lib, lib, of_user, of_user, of_family, outside],
            [lib, out]
        )
    };
    write(0.0);
    assert_eq!(answers("members", &["run", "-q", "-p", "layouts"]), expected(0.0));
    write(0.125);
    assert_eq!(answers(&format!("members/{FOLDER}"), &["run", "-q"]), expected(0.125));
    // Documentation, examples and benches too, from the root of the workspace.
    scratch.cargo_passes("members", &["test", "-q", "--workspace", "--all-targets"]);
    scratch.cargo_passes("members", &["test", "-q", "--workspace", "--doc"]);

    // With the compiler's own ways to name things otherwise.
    let remap = format!("--remap-path-prefix={}=/elsewhere", scratch.path("").display());
    let rustc =
        ["rustc", "-q", "-p", "layouts", "--lib", "--", "-Dwarnings", "-Cpanic=abort", &remap];
    scratch.cargo_passes("members", &rustc);

    // What is published holds the models.
    let list = scratch.cargo_passes("members/family", &["package", "--list", "--allow-dirty"]);
    assert!(list.lines().any(|file| file == "models/family.nk"), "{list}");
}
