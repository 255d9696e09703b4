//! What users see when something is wrong: one program for each kind of mistake, and the compiler's answer.
//!
//! Files that break each rule are those of the format's own tests. After a change of wording, look at what
//! `TRYBUILD=overwrite cargo test --test ui` makes of the `.stderr` files.
#![allow(clippy::duplicate_mod, reason = "the format's tests share their models")]

#[path = "../netkit-core/tests/format_network_rules.rs"]
mod format_network_rules;
#[path = "../netkit-core/tests/format_rules.rs"]
mod format_rules;

use std::fs;
use std::path::{Path, PathBuf};

/// The package in which the programs are compiled: what their paths are relative to.
fn scratch_package() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("tests/trybuild/netkit")
}

/// Models without a fault of their own, and one fault after the other.
fn write_models(folder: &Path) {
    let small = format_rules::format_support::worked_mlp().to_bytes().unwrap();
    let save = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let damaged = |damage: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = small.clone();
        damage(&mut bytes);
        bytes
    };
    save("small.nk", &small);
    save("1st.nk", &small);
    save("empty.nk", &[]);
    save("truncated.nk", &small[..200]);
    save(
        "non_finite.nk",
        &damaged(&|bytes| bytes[184..188].copy_from_slice(&f32::NAN.to_le_bytes())),
    );
    save(
        "several.nk",
        &damaged(&|bytes| {
            bytes[9] = 3; // input_rank
            bytes[56] = 9; // activation of the first layer
            bytes[74] = 1; // a reserved byte of the second
            bytes[180..184].copy_from_slice(&f32::INFINITY.to_le_bytes());
        }),
    );
}

#[test]
fn users_see_what_is_wrong() {
    let package = scratch_package();
    let (models, broken) = (package.join("models"), package.join("broken"));
    for folder in [&models, &broken] {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).unwrap();
    }
    write_models(&models);

    let rules = fs::read_to_string("tests/ui/rules.rs").unwrap();
    let mut files = format_rules::broken_files();
    files.extend(format_network_rules::broken_files());
    assert!(files.len() > 60, "only {} rules", files.len());
    for (code, bytes) in files {
        let code = code.as_str();
        fs::write(broken.join(format!("{code}.nk")), bytes).unwrap();
        let line = format!("netkit::model!({code} = \"broken/{code}.nk\");");
        assert!(rules.lines().any(|known| known == line), "rules.rs lacks\n{line}");
    }

    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
