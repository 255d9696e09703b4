//! Writes the linker script of the machine named in `NETKIT_MACHINE` (QEMU's name for it).

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where the memories of a machine lie: origin and length as the linker script wants them.
struct Memory {
    flash: (&'static str, &'static str),
    ram: (&'static str, &'static str),
}

/// The memory of `machine`. The secure aliases are used on machines with TrustZone.
fn memory(machine: &str) -> Memory {
    let (flash, ram) = match machine {
        "microbit" => (("0x00000000", "256K"), ("0x20000000", "16K")),
        // The same chip with the memories QEMU lets one enlarge.
        "microbit-large" => (("0x00000000", "512K"), ("0x20000000", "128K")),
        "lm3s6965evb" => (("0x00000000", "256K"), ("0x20000000", "64K")),
        "mps2-an385" | "mps2-an386" | "mps2-an500" => (("0x00000000", "4M"), ("0x20000000", "4M")),
        "mps2-an505" => (("0x10000000", "4M"), ("0x38000000", "4M")),
        "mps3-an547" => (("0x10000000", "512K"), ("0x31000000", "4M")),
        other => panic!(
            "NETKIT_MACHINE={other}: not a machine this firmware knows; let firmware-runner start the build"
        ),
    };
    Memory { flash, ram }
}

/// The workloads for which the memories of a BBC micro:bit are enough as they are.
const FITS_MICROBIT: [&str; 4] = ["layers_f32", "layers_int8", "mnist_mlp_int8", "smoke"];

/// Writes `memory.x`.
fn write_script(folder: &Path, Memory { flash, ram }: &Memory) {
    let text = format!(
        "MEMORY {{\n  FLASH : ORIGIN = {}, LENGTH = {}\n  RAM : ORIGIN = {}, LENGTH = {}\n}}\n",
        flash.0, flash.1, ram.0, ram.1
    );
    fs::create_dir_all(folder).expect("OUT_DIR is writable");
    fs::write(folder.join("memory.x"), text).expect("OUT_DIR is writable");
}

/// Every binary of this package.
fn binaries() -> Vec<String> {
    let entries = fs::read_dir("src/bin").expect("the package has binaries");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let names = paths.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    names.collect()
}

fn main() {
    println!("cargo:rerun-if-env-changed=NETKIT_MACHINE");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=riscv.x");
    println!("cargo:rerun-if-changed=src/bin");
    let set = |name| env::var(name).unwrap_or_default();
    if set("CARGO_CFG_TARGET_OS") != "none" {
        return;
    }
    let out = PathBuf::from(set("OUT_DIR"));
    let script = match set("CARGO_CFG_TARGET_ARCH").as_str() {
        "arm" => {
            let machine = set("NETKIT_MACHINE");
            for binary in binaries() {
                let machine = match machine.as_str() {
                    "microbit" if !FITS_MICROBIT.contains(&binary.as_str()) => "microbit-large",
                    machine => machine,
                };
                let folder = out.join(machine);
                write_script(&folder, &memory(machine));
                println!("cargo:rustc-link-arg-bin={binary}=-L{}", folder.display());
            }
            "link.x"
        }
        "riscv32" => {
            fs::copy("riscv.x", out.join("riscv.x")).expect("OUT_DIR is writable");
            "riscv.x"
        }
        other => panic!("no start-up code for bare {other}"),
    };
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-arg-bins=--nmagic");
    println!("cargo:rustc-link-arg-bins=-T{script}");
}
