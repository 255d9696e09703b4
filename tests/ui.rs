//! What users see when something is wrong: one program for each kind of mistake, and the compiler's answer.
//!
//! Files that break each rule are those of the format's own tests. After a change of wording, look at what
//! `TRYBUILD=overwrite cargo test --test ui` makes of the `.stderr` files.
#![allow(clippy::duplicate_mod, reason = "the format's tests share their models")]

#[path = "../netkit-core/tests/format_network_rules.rs"]
mod format_network_rules;
#[path = "../netkit-core/tests/format_rules.rs"]
mod format_rules;

use netkit_core::diag::Code;
use std::collections::{BTreeMap, BTreeSet};
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
    save("int8.nk", &format_rules::format_support::int8_cnn().to_bytes().unwrap());
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

/// Rules that no file breaks, so that no program can show them at its path literal, and the tests that do.
const NOT_OF_A_FILE: [(Code, &str); 3] = [
    // Where a loader's bytes lie; the macro aligns its own.
    (Code::PayloadAlignment, "b31_every_truncation_and_misalignment_is_refused"),
    // Sums of sizes that a host of 64 bits can always hold, since each is capped; and tensors behind 4 GiB of a file.
    (Code::TooLarge, "sizes_that_do_not_fit_the_address_space_are_refused"),
    // Tables that a caller of `compile` lends; those of the macro grow.
    (Code::Storage, "storage_that_is_too_small_is_refused"),
];

/// One error of a `.stderr` file: its first line, and the lines below that are not about the place.
struct Answer {
    message: String,
    hints: Vec<String>,
    at: String,
}

/// The errors that the compiler gave for all rules, by code.
fn answers() -> BTreeMap<String, Vec<Answer>> {
    let text = fs::read_to_string("tests/ui/rules.stderr").unwrap();
    let mut answers = BTreeMap::<String, Vec<Answer>>::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let mut lines = block.lines();
        let first = lines.next().unwrap();
        let known = first.strip_prefix("error: broken/").and_then(|rest| rest.split_once(".nk: "));
        let (file, rest) = known.unwrap_or_else(|| panic!("a follow-on error:\n{block}"));
        let (message, code) = rest.rsplit_once(" [").unwrap();
        assert_eq!(code, format!("{file}]"), "a file that breaks another rule:\n{block}");
        let lines: Vec<&str> = lines.map(str::trim).collect();
        let hints = lines.iter().filter_map(|line| line.strip_prefix("hint: "));
        let source = lines.iter().find(|line| line.contains("netkit::model!("));
        answers.entry(file.to_owned()).or_default().push(Answer {
            message: message.to_owned(),
            hints: hints.map(str::to_owned).collect(),
            at: source.map_or_else(String::new, |line| (*line).to_owned()),
        });
    }
    answers
}

/// A code that is added has to be added here: to the programs of `tests/ui`, or to the list above.
#[test]
fn every_code_has_one_answer_with_its_own_wording_and_hint() {
    let answers = answers();
    let elsewhere: BTreeMap<_, _> = NOT_OF_A_FILE.into_iter().collect();
    let mut titles = BTreeSet::new();
    let mut explanations = BTreeSet::new();
    for code in Code::ALL {
        let name = code.as_str();
        assert!(
            titles.insert(code.title()),
            "{name}: another code has the title {:?}",
            code.title()
        );
        assert!(explanations.insert(code.explanation()), "{name}: another code is explained so");
        let found = answers.get(name);
        if elsewhere.contains_key(code) {
            assert!(found.is_none(), "{name} has an answer in tests/ui after all");
            continue;
        }
        let [only] = found.map_or(&[][..], Vec::as_slice) else {
            panic!("{name} ({}) has no answer in tests/ui, or several", code.title());
        };
        assert!(
            !only.message.is_empty() && !only.message.contains('{'),
            "{name}: {}",
            only.message
        );
        assert_eq!(only.hints, [code.hint()], "{name}");
        assert!(
            only.at.contains(&format!("netkit::model!({name} = \"broken/{name}.nk\");")),
            "{}",
            only.at
        );
    }
    for name in answers.keys() {
        assert!(Code::from_text(name).is_some(), "{name} is no code");
    }
    let tests = [
        "tests/loader.rs",
        "netkit-core/tests/compile_models.rs",
        "netkit-core/src/plan/assign.rs",
    ]
    .map(|path| fs::read_to_string(path).unwrap())
    .concat();
    for (code, test) in NOT_OF_A_FILE {
        assert!(
            tests.contains(&format!("#[test]\nfn {test}()"))
                || tests.contains(&format!("#[test]\n    fn {test}()")),
            "{}: {test} is gone",
            code.as_str()
        );
    }
}
