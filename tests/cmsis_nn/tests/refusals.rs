//! What the build script of `netkit-kernels` refuses to link, and how it says so: the script itself is compiled and run, as
//! cargo would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refusals").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The build script, compiled.
fn script() -> &'static Path {
    static SCRIPT: OnceLock<PathBuf> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        let script = folder("script").join("build-script");
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let status = Command::new(compiler)
            .args(["--edition=2024", "-Dwarnings", "-o"])
            .arg(&script)
            .arg(root().join("netkit-kernels/build.rs"))
            .status();
        assert!(status.unwrap().success(), "the build script does not compile");
        script
    })
}

/// Runs the script with the feature on.
fn run(library: Option<&Path>, triple: &str) -> Output {
    let arch = match triple.split('-').next().unwrap() {
        thumb if thumb.starts_with("thumb") => "arm",
        "riscv32imac" => "riscv32",
        other => other,
    };
    let mut command = Command::new(script());
    command.env_clear().env("CARGO_FEATURE_CMSIS_NN", "1");
    command.env("TARGET", triple).env("CARGO_CFG_TARGET_ARCH", arch);
    if let Some(folder) = library {
        command.env("CMSIS_NN_LIB_DIR", folder);
    }
    command.output().unwrap()
}

/// The message of a refusal.
fn refused(library: Option<&Path>, triple: &str) -> String {
    let Output { stdout, .. } = run(library, triple);
    let stdout = String::from_utf8(stdout).unwrap();
    // Cargo prints these, and fails.
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("cargo::error="));
    let message: String = lines.flat_map(|line| [line, "\n"]).collect();
    assert!(!message.is_empty(), "not refused: {stdout}");
    assert!(!stdout.contains("link-lib"), "{stdout}");
    assert!(stdout.contains("cargo:rerun-if-env-changed=CMSIS_NN_LIB_DIR"), "{stdout}");
    message
}

/// What the script tells cargo where it refuses nothing.
fn accepted(library: &Path, triple: &str) -> String {
    let Output { status, stdout, stderr } = run(Some(library), triple);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let stdout = String::from_utf8(stdout).unwrap();
    assert!(!stdout.contains("cargo::error"), "{stdout}");
    for line in [
        "cargo:rerun-if-env-changed=CMSIS_NN_LIB_DIR".to_owned(),
        format!("cargo:rerun-if-changed={}/libcmsis-nn.a", library.display()),
        format!("cargo:rustc-link-search=native={}", library.display()),
        "cargo:rustc-link-lib=static=cmsis-nn".to_owned(),
    ] {
        assert!(stdout.lines().any(|l| l == line), "no {line} in\n{stdout}");
    }
    stdout
}

#[track_caller]
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no {part:?} in\n{message}");
    }
}

const HOST: &str = "x86_64-unknown-linux-gnu";
const M0: &str = "thumbv6m-none-eabi";
const M3: &str = "thumbv7m-none-eabi";
const M4: &str = "thumbv7em-none-eabi";
const M4F: &str = "thumbv7em-none-eabihf";
const M33: &str = "thumbv8m.main-none-eabi";
const M33F: &str = "thumbv8m.main-none-eabihf";

#[test]
fn without_the_feature_nothing_is_asked_for() {
    let output = Command::new(script()).env_clear().env("TARGET", HOST).output().unwrap();
    assert!(output.status.success());
    assert!(!String::from_utf8(output.stdout).unwrap().contains("CMSIS_NN_LIB_DIR"));
}

#[test]
fn a_library_that_is_not_there() {
    says(&refused(None, M4F), &["CMSIS_NN_LIB_DIR is not set", "help: ", "libcmsis-nn.a"]);
    says(&refused(Some(Path::new("")), M4F), &["CMSIS_NN_LIB_DIR is not set"]);
    says(&refused(Some(Path::new("lib")), M4F), &["lib, which is relative", ".cargo/config.toml"]);
    let here = folder("absent");
    let absent = here.join("nowhere");
    says(&refused(Some(&absent), M4F), &["nowhere, which does not exist"]);
    says(&refused(Some(&here), M4F), &["there is no libcmsis-nn.a in ", "absent"]);
    let file = here.join("file");
    fs::write(&file, "").unwrap();
    says(&refused(Some(&file), M4F), &["file, which is not a folder"]);
}

#[test]
fn files_that_are_no_library() {
    let here = folder("broken");
    let with = |bytes: &[u8]| {
        fs::write(here.join("libcmsis-nn.a"), bytes).unwrap();
        refused(Some(&here), HOST)
    };
    says(&with(b""), &["not a static library"]);
    says(&with(b"#!/bin/sh\n"), &["not a static library"]);
    says(&with(b"!<thin>\n"), &["thin archive", "option T"]);
    says(&with(b"!<arch>\n"), &["holds no object files"]);
    says(&with(b"!<arch>\nshort"), &["not a static library"]);
    let header = |name: &str, size: &str| format!("{name:<16}{:<32}{size:<10}`\n", "0");
    let member = |name: &str, content: &str| {
        format!("!<arch>\n{}{content}", header(name, &content.len().to_string()))
    };
    says(&with(member("notes.txt/", "text").as_bytes()), &["notes.txt", "is not an object file"]);
    let absurd = format!("!<arch>\n{}", header("a.o/", "99999999"));
    says(&with(absurd.as_bytes()), &["not a static library"]);
    let negative = format!("!<arch>\n{}", header("a.o/", "-1"));
    says(&with(negative.as_bytes()), &["not a static library"]);
}

/// The stand-in with any compiler that is there; `None` where it is not.
fn compile(name: &str, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    let found = Command::new(compiler).arg("--version").output().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "no {compiler}");
        eprintln!("skipped: no {compiler}");
        return None;
    }
    let here = folder(name);
    let object = here.join("stand_in.o");
    let status = Command::new(compiler)
        .args(flags)
        .args(["-O1", "-c", "-o"])
        .arg(&object)
        .arg(root().join("tests/cmsis_nn/stand_in.c"))
        .status();
    assert!(status.unwrap().success(), "{name}");
    let archiver = if compiler.starts_with("arm-") { "arm-none-eabi-ar" } else { "ar" };
    let status =
        Command::new(archiver).arg("rcs").arg(here.join("libcmsis-nn.a")).arg(&object).status();
    assert!(status.unwrap().success(), "{name}");
    Some(here)
}

fn arm(name: &str, processor: &str, float: &str) -> Option<PathBuf> {
    let processor = format!("-mcpu={processor}");
    let float = format!("-mfloat-abi={float}");
    compile(name, "arm-none-eabi-gcc", &["-mthumb", &processor, &float])
}

#[test]
fn b35_floats_passed_otherwise() {
    let (Some(soft), Some(hard), Some(softfp)) = (
        arm("m4-soft", "cortex-m4", "soft"),
        arm("m4-hard", "cortex-m4", "hard"),
        arm("m4-softfp", "cortex-m4", "softfp"),
    ) else {
        return;
    };
    accepted(&soft, M4);
    accepted(&softfp, M4);
    accepted(&hard, M4F);
    for library in [&soft, &softfp] {
        says(
            &refused(Some(library), M4F),
            &["passes floats in integer registers (stand_in.o)", M4F, "-mfloat-abi=hard"],
        );
    }
    says(
        &refused(Some(&hard), M4),
        &["passes floats in floating-point registers (stand_in.o)", M4, "-mfloat-abi=soft"],
    );
}

#[test]
fn other_machines_and_processors() {
    let host = compile("host", "cc", &[])
        .filter(|_| cfg!(all(target_arch = "x86_64", target_os = "linux")));
    if let Some(host) = &host {
        accepted(host, HOST);
        says(&refused(Some(host), M4F), &["is compiled for x86-64", M4F]);
        says(&refused(Some(host), "aarch64-unknown-linux-gnu"), &["is compiled for x86-64"]);
    }
    let (Some(m0), Some(m3), Some(m4), Some(m33), Some(m55)) = (
        arm("m0", "cortex-m0", "soft"),
        arm("m3", "cortex-m3", "soft"),
        arm("m4", "cortex-m4", "soft"),
        arm("m33", "cortex-m33", "soft"),
        arm("m55", "cortex-m55", "soft"),
    ) else {
        return;
    };
    says(&refused(Some(&m3), HOST), &["is compiled for Arm (32 bits)", HOST]);
    says(
        &refused(Some(&m3), "riscv32imac-unknown-none-elf"),
        &["is compiled for Arm (32 bits)", "riscv32imac"],
    );
    // Each runs on its own line and those after it.
    let libraries = [(&m0, 0), (&m3, 1), (&m4, 2), (&m33, 3), (&m55, 3)];
    for (library, first) in libraries {
        for (index, triple) in [M0, M3, M4, M33].iter().enumerate() {
            if index >= first {
                accepted(library, triple);
            } else {
                let message = refused(Some(library), triple);
                says(&message, &["is compiled for Armv", "whose instructions", triple]);
            }
        }
    }
}

#[test]
fn what_the_library_is_compiled_for_is_found_out() {
    let (Some(m3), Some(m4), Some(m33), Some(m55)) = (
        arm("class-m3", "cortex-m3", "soft"),
        arm("class-m4", "cortex-m4", "hard"),
        arm("class-m33", "cortex-m33", "hard"),
        arm("class-m55", "cortex-m55", "hard"),
    ) else {
        return;
    };
    let cfgs = |library: &Path, triple| {
        let told = accepted(library, triple);
        ["7", "dsp", "mve"].map(|cfg| told.contains(&format!("cfg=netkit_cmsis_nn_{cfg}\n")))
    };
    assert_eq!(cfgs(&m3, M3), [true, false, false]);
    assert_eq!(cfgs(&m4, M4F), [true, true, false]);
    assert_eq!(cfgs(&m33, M33F), [true, true, false]);
    assert_eq!(cfgs(&m55, M33F), [true, true, true]);
}

#[test]
fn older_versions() {
    let Some(version_6) = compile("version-6", "cc", &["-DSTAND_IN_VERSION_6"]) else { return };
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        return;
    }
    assert!(!accepted(&version_6, HOST).contains("cfg=netkit_cmsis_nn_7"));
    // A library without what is needed.
    let flags = ["-Darm_max_pool_s8=arm_max_pool_q7"];
    let Some(ancient) = compile("ancient", "cc", &flags) else { return };
    says(&refused(Some(&ancient), HOST), &["lacks the function arm_max_pool_s8", "CMSIS-NN 6"]);
}
