//! Writes the linker script of the machine named in `NETKIT_MACHINE` (QEMU's name for it).

use std::path::PathBuf;
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
        // The same chip with the memories QEMU lets one enlarge; for what does not fit in 16 KiB.
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

fn main() {
    println!("cargo:rerun-if-env-changed=NETKIT_MACHINE");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=riscv.x");
    let set = |name| env::var(name).unwrap_or_default();
    if set("CARGO_CFG_TARGET_OS") != "none" {
        return;
    }
    let out = PathBuf::from(set("OUT_DIR"));
    let script = match set("CARGO_CFG_TARGET_ARCH").as_str() {
        "arm" => {
            let Memory { flash, ram } = memory(&set("NETKIT_MACHINE"));
            let memory = format!(
                "MEMORY {{\n  FLASH : ORIGIN = {}, LENGTH = {}\n  RAM : ORIGIN = {}, LENGTH = {}\n}}\n",
                flash.0, flash.1, ram.0, ram.1
            );
            fs::write(out.join("memory.x"), memory).expect("OUT_DIR is writable");
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
