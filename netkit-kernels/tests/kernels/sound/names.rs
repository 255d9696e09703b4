//! The doors there are, read off their sources: so that a test notices one that it does not know. `tests/hostile` has this
//! file, too.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Not asked for: they measure, and take neither files nor values.
const MEASURE: [&str; 3] = ["multiply_adds_f32", "multiply_adds_s8", "read_f32"];

/// The names of all doors of the package `netkit-kernels` in this folder.
pub(crate) fn names(package: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in fs::read_dir(package.join("src/doors")).unwrap() {
        for line in fs::read_to_string(file.unwrap().path()).unwrap().lines() {
            let door = line.trim_start().strip_prefix("pub fn ");
            // A macro's functions call the methods of their names.
            let Some(door) = door.filter(|door| !door.starts_with('$')) else { continue };
            let name = door.split(['(', '<']).next().unwrap();
            if !MEASURE.contains(&name) {
                names.insert(name.to_owned());
            }
        }
    }
    assert!(names.len() > 25, "{names:?}");
    names
}
