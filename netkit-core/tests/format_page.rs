//! docs/format.md has what code and messages name: every rule, and every section.

use std::fs;
use std::path::{Path, PathBuf};

use netkit_core::diag::Code;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page() -> String {
    fs::read_to_string(repository().join("docs/format.md")).unwrap()
}

/// Whether the page has a section of this number, as a heading or in bold.
fn has_section(page: &str, number: &str) -> bool {
    let starts = [format!("## {number}. "), format!("### {number} "), format!("**{number} ")];
    page.lines().any(|line| starts.iter().any(|start| line.starts_with(start)))
}

#[test]
fn every_rule_is_on_the_page() {
    let page = page();
    let words: Vec<&str> = page.split([' ', ',', ';', '\n']).collect();
    for code in Code::ALL {
        let rule = code.rule();
        let found = match rule {
            "limit" => page.contains("`limit`"),
            _ if rule.starts_with("S-") => words.contains(&rule),
            _ => has_section(&page, rule),
        };
        assert!(found, "{}: {rule} is not in docs/format.md", code.as_str());
    }
}

/// The page's table of section 10 is the list: what stands there is checked, under one code or several.
#[test]
fn every_rule_of_the_page_has_a_code() {
    let page = page();
    let ids = |row: &str| -> Vec<String> {
        let first = row.split('|').nth(1).unwrap_or_default();
        let ids = first.split(", ").map(str::trim).filter(|id| id.starts_with("S-"));
        ids.map(str::to_owned).collect()
    };
    let rules: Vec<String> =
        page.lines().filter(|line| line.starts_with('|')).flat_map(ids).collect();
    assert!(rules.len() > 40, "{rules:?}");
    for (at, rule) in rules.iter().enumerate() {
        assert!(Code::ALL.iter().any(|code| code.rule() == rule), "{rule} has no code");
        assert!(!rules[..at].contains(rule), "{rule} stands there twice");
    }
}

#[test]
fn every_section_that_sources_name_is_on_the_page() {
    let page = page();
    let mut folders: Vec<PathBuf> =
        ["src", "netkit-core/src", "netkit-cli/src", "netkit-kernels/src/reference"]
            .map(|folder| repository().join(folder))
            .into();
    let mut named = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for (_, after) in
                text.match_indices("ection ").map(|(at, it)| text.split_at(at + it.len()))
            {
                let end =
                    after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
                let number = after[..end].trim_end_matches('.');
                if !number.is_empty() {
                    named += 1;
                    assert!(has_section(&page, number), "{}: section {number}", path.display());
                }
            }
        }
    }
    assert!(named > 30, "{named} sections are named: the search does not find them");
}
