//! What the macro makes, and the kernels under it, have no way to panic in an optimised program.
//!
//! A library without the standard library, whose panic handler calls a function that can be seen in the disassembly, is
//! built as one unit. Whatever could panic would keep that call.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod scratch;

use std::process::Command;

use scratch::Scratch;

#[test]
fn forward_has_no_panic_path() {
    let disassembler = Command::new("objdump").arg("--version").output();
    if !disassembler.is_ok_and(|output| output.status.success()) {
        println!("skipped: no objdump");
        return;
    }
    let scratch = Scratch::new("panic-free");
    scratch.write(
        "Cargo.toml",
        format!(
            "[package]\nname = \"panic-free\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\nnetkit = {}\n\n\
             [profile.release]\npanic = \"abort\"\nlto = \"fat\"\ncodegen-units = 1\n\n[workspace]\n",
            Scratch::netkit(", default-features = false")
        ),
    );
    let models = ["mnist_mlp", "mnist_cnn", "mnist_dscnn"];
    let mut source = String::from(
        "#![no_std]\n\n\
         #[panic_handler]\nfn panic(_: &core::panic::PanicInfo<'_>) -> ! {\n    it_panics()\n}\n\n\
         #[unsafe(no_mangle)]\n#[inline(never)]\nextern \"C\" fn it_panics() -> ! {\n    \
             loop {\n        core::hint::black_box(());\n    }\n}\n\n\
         // Named by the precompiled core library, and never called.\n\
         #[unsafe(no_mangle)]\nextern \"C\" fn rust_eh_personality() {}\n\n",
    );
    for model in models {
        for (suffix, ways) in [("", &["f32"][..]), ("_int8", &["f32", "i8"])] {
            let (file, name) = (format!("{model}{suffix}"), format!("Net{}", source.len()));
            let bytes = std::fs::read(format!("models/{file}.nk")).unwrap();
            scratch.write(&format!("models/{file}.nk"), bytes);
            source += &format!("netkit::model!({name} = \"models/{file}.nk\");\n");
            for way in ways {
                let function = if *way == "i8" { "forward_i8_into" } else { "forward_into" };
                source += &format!(
                    "#[unsafe(no_mangle)]\nextern \"C\" fn {file}_{way}(net: &mut {name}, \
                     input: &[{way}; {name}::INPUT_LEN], output: &mut [{way}; {name}::OUTPUT_LEN]) {{\n    \
                     net.{function}(input, output);\n}}\n\n"
                );
            }
            source += &format!("netkit::model!(Batch{name} = \"models/{file}.nk\", batch = 3);\n");
            for way in ways {
                let function =
                    if *way == "i8" { "forward_i8_batch_into" } else { "forward_batch_into" };
                source += &format!(
                    "#[unsafe(no_mangle)]\nextern \"C\" fn {file}_{way}_batch(net: &mut Batch{name}, \
                     input: &[[{way}; {name}::INPUT_LEN]; 8], \
                     output: &mut [[{way}; {name}::OUTPUT_LEN]; 8]) {{\n    \
                     net.{function}(input, output);\n}}\n\n"
                );
            }
        }
    }
    scratch.write("src/lib.rs", source);
    scratch.cargo_passes("", &["build", "-q", "--release"]);

    let library = scratch.release("libpanic_free.so");
    let output =
        Command::new("objdump").args(["-d", "--no-show-raw-insn", "-C"]).arg(library).output();
    let listing = String::from_utf8(output.unwrap().stdout).unwrap();
    for function in ["<mnist_cnn_f32>:", "<mnist_mlp_int8_i8_batch>:"] {
        assert!(listing.contains(function), "{function} is not there");
    }
    // Calls of core's panicking functions, by the function they stand in.
    let mut function = "";
    let mut panics = Vec::new();
    for line in listing.lines() {
        if line.ends_with(">:") {
            function = line;
        } else if line.contains("call") && line.contains("core::panicking::") {
            panics.push(format!("{function}\n    {line}"));
        }
    }
    panics.retain(|call| !call.contains("<core::panicking::"));
    assert!(panics.is_empty(), "{} panics:\n{}", panics.len(), panics.join("\n"));
}
