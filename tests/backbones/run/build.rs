//! Makes the networks. A file that is there and right is left alone, so that what includes it is not built
//! anew.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
    for backbone in netkit_backbones::ALL {
        let path = out.join(backbone.name).with_extension("nk");
        let bytes = backbone.file();
        if std::fs::read(&path).is_ok_and(|present| present == bytes) {
            continue;
        }
        std::fs::write(&path, bytes).unwrap();
    }
}
