//! One wording for each rule: of a file that breaks it, the loader and the command line say what the macro said, which
//! `tests/ui` holds.
#![allow(clippy::duplicate_mod, reason = "the format's tests share their models")]

#[path = "../../netkit-core/tests/format_network_rules.rs"]
mod format_network_rules;
#[path = "../../netkit-core/tests/format_rules.rs"]
mod format_rules;

use netkit::arena::Bump;
use netkit::runtime::Network;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn macro_loader_and_command_line_use_the_same_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let of_the_macro = fs::read_to_string(root.join("tests/ui/rules.stderr")).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wording");
    fs::create_dir_all(&folder).unwrap();
    let mut files = format_rules::broken_files();
    files.extend(format_network_rules::broken_files());
    assert!(files.len() > 60, "only {} rules", files.len());
    for (code, bytes) in files {
        let (name, hint) = (code.as_str(), code.hint());
        let arena = Bump::heap(1 << 20).unwrap();
        let error = Network::load(&bytes, &arena).unwrap_err();
        let diagnostic = error.diagnostic().unwrap_or_else(|| panic!("{name}: {error}"));
        assert_eq!(diagnostic.code, code);
        let message = diagnostic.to_string();
        assert_eq!(error.to_string(), format!("[{name}] {message}; {hint}"));

        let answer = format!("error: broken/{name}.nk: {message} [{name}]\n       hint: {hint}\n");
        assert!(of_the_macro.contains(&answer), "the macro does not say\n{answer}");

        let path = folder.join(format!("{name}.nk"));
        fs::write(&path, &bytes).unwrap();
        let inspect = |more: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_netkit"));
            let output = command.arg("inspect").args(more).arg(&path).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{name}");
            String::from_utf8(output.stderr).unwrap()
        };
        let json: serde_json::Value = serde_json::from_str(&inspect(&["--json"])).unwrap();
        let [only] = &json["diagnostics"].as_array().unwrap()[..] else { panic!("{json}") };
        assert_eq!([&only["code"], &only["message"], &only["hint"]], [name, &message, hint]);
        let shown = inspect(&[]);
        for part in [name, &message, hint] {
            assert!(shown.contains(part), "{part}\nis not in\n{shown}");
        }
    }
}
