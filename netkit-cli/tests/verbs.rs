//! The verbs as a user runs them: what they print, what they refuse, how they end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn netkit(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    Command::new(env!("CARGO_BIN_EXE_netkit")).args(arguments).current_dir(root).output().unwrap()
}

/// What a successful command prints.
fn printed(arguments: &[&str]) -> String {
    let output = netkit(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a failing command says; it must end with code 1 and without a panic.
fn refused(arguments: &[&str]) -> String {
    let output = netkit(arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
    assert!(error.starts_with("error: ") && !error.contains("panicked"), "{error}");
    error
}

/// A command line that clap refuses.
fn misused(arguments: &[&str]) -> String {
    let output = netkit(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verbs");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&printed(arguments)).unwrap()
}

#[test]
fn inspect_shows_the_model() {
    let shown = printed(&["inspect", "models/mnist_cnn.nk"]);
    for part in ["mnist_cnn", "CNN, float32", "28×28×1 (784 elements)", "2,631,040", "11×11×64"]
    {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert!(!shown.contains('\x1b'), "colours outside of a terminal");
}

#[test]
fn inspect_reports_bytes_that_add_up() {
    let report = json(&["inspect", "--full", "--json", "--arena", "1M", "models/mnist_cnn.nk"]);
    let memory = |name: &str| report["memory"][name].as_u64().unwrap();
    assert_eq!(memory("arena_capacity"), 1 << 20);
    assert_eq!(memory("arena_after_load") + memory("arena_remaining"), 1 << 20);
    assert_eq!(memory("arena_after_load"), memory("arena_after_forward"));
    let parts = ["activations", "workspace", "tables"].map(memory);
    assert_eq!(parts.iter().sum::<u64>(), memory("arena_after_load"));
    assert_eq!(memory("flash_payload"), 900_136);
    assert_eq!(report["layers"].as_array().unwrap().len(), 7);
    let shown = printed(&["inspect", "--full", "models/mnist_cnn_int8.nk"]);
    for part in [
        "the runtime loader, this machine",
        "kernel workspace",
        "loader's tables",
        "ARENA_BYTES",
        "flash payload",
        "128×1600",
        "channels, at",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
}

/// What is shown without compiling is what the compiler makes of it.
#[test]
fn inspect_knows_the_arena_of_a_compiled_model() {
    netkit::model!(Cnn = "../models/mnist_cnn.nk");
    netkit::model!(CnnInt8 = "../models/mnist_cnn_int8.nk");
    netkit::model!(DsCnn = "../models/mnist_dscnn.nk");
    netkit::model!(DsCnnInt8 = "../models/mnist_dscnn_int8.nk");
    netkit::model!(MlpInt8 = "../models/mnist_mlp_int8.nk");
    for (model, bytes) in [
        (Cnn::NAME, Cnn::ARENA_BYTES),
        (CnnInt8::NAME, CnnInt8::ARENA_BYTES),
        (DsCnn::NAME, DsCnn::ARENA_BYTES),
        (DsCnnInt8::NAME, DsCnnInt8::ARENA_BYTES),
        (MlpInt8::NAME, MlpInt8::ARENA_BYTES),
    ] {
        let report = json(&["inspect", "--full", "--json", &format!("models/{model}.nk")]);
        let memory = &report["memory"];
        assert_eq!(memory["compiled_in_arena_bytes"], bytes, "{model}");
        assert!(memory["arena_after_load"].as_u64().unwrap() > bytes as u64, "{model}");
    }
}

#[test]
fn inspect_dumps_every_section() {
    for section in ["header", "layers", "catalog", "weights", "biases", "tcas"] {
        let dump = printed(&["inspect", "--hex", section, "models/mnist_mlp.nk"]);
        assert!(dump.lines().count() >= 2 && dump.contains("000"), "{section}: {dump}");
    }
    let header = printed(&["inspect", "--hex", "header", "models/mnist_mlp.nk"]);
    assert!(header.contains("00000010  10 03 00 00"), "{header}");
    assert!(header.contains("input_shape[1]              784"), "{header}");
    assert!(
        printed(&["inspect", "--hex", "quan", "models/mnist_mlp_int8.nk"]).contains("in_scale")
    );
    assert!(
        refused(&["inspect", "--hex", "quan", "models/mnist_mlp.nk"]).contains("no such section")
    );
    // A dump is text, and of one section.
    for other in ["--json", "--full"] {
        let error = misused(&["inspect", "--hex", "header", other, "models/mnist_mlp.nk"]);
        assert!(error.contains("cannot be used with"), "{error}");
    }
}

#[test]
fn run_takes_values_from_everywhere_and_agrees() {
    let zeros = vec!["0"; 784].join(",");
    let expected = printed(&["run", "models/mnist_mlp.nk", "--zeros"]);
    assert_eq!(printed(&["run", "models/mnist_mlp.nk", "--input", &zeros]), expected);
    let csv = scratch("zeros.csv");
    fs::write(&csv, zeros.replace(',', "\n")).unwrap();
    assert_eq!(printed(&["run", "models/mnist_mlp.nk", "--input-file", text(&csv)]), expected);
    let bin = scratch("zeros.bin");
    fs::write(&bin, [0; 784 * 4]).unwrap();
    assert_eq!(printed(&["run", "models/mnist_mlp.nk", "--input-file", text(&bin)]), expected);
    let npy = scratch("zeros.npy");
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 784), }";
    file.extend_from_slice(format!("{header:<117}\n").as_bytes());
    file.extend_from_slice(&[0; 784 * 4]);
    fs::write(&npy, file).unwrap();
    assert_eq!(printed(&["run", "models/mnist_mlp.nk", "--input-file", text(&npy)]), expected);
    assert!(expected.contains("output 1×10: "), "{expected}");
}

#[test]
fn run_takes_raw_values_of_int8_models_only() {
    let report = json(&["run", "models/mnist_cnn_int8.nk", "--zeros", "--raw", "--json"]);
    let output = report["output"].as_array().unwrap();
    assert_eq!(output.len(), 10);
    assert!(output.iter().all(|q| (-128.0..=127.0).contains(&q.as_f64().unwrap())));
    assert!(refused(&["run", "models/mnist_cnn.nk", "--zeros", "--raw"]).contains("float32"));
    let mut values = vec!["0"; 784];
    values[3] = "128";
    let error =
        refused(&["run", "models/mnist_cnn_int8.nk", "--raw", "--input", &values.join(",")]);
    assert!(error.contains("input value 3 is 128"), "{error}");
}

#[test]
fn run_profiles_each_step() {
    let shown = printed(&["run", "models/mnist_cnn.nk", "--zeros", "--profile"]);
    assert!(shown.contains("2 conv2d") && shown.contains("total"), "{shown}");
}

#[test]
fn wrong_inputs_are_named() {
    let run = |input: &str| refused(&["run", "models/mnist_mlp.nk", "--input", input]);
    assert!(run("1,2,3").contains("takes 784 values, 3 were given"));
    assert!(run("1,zwei").contains("value 1, \"zwei\", is no number"));
    assert!(run(&vec!["nan"; 784].join(",")).contains("input value 0 is NaN"));
    assert!(run(&vec!["1e300"; 784].join(",")).contains("finite"));
    let odd = scratch("odd.bin");
    fs::write(&odd, [0; 7]).unwrap();
    let file = |path: &Path| refused(&["run", "models/mnist_mlp.nk", "--input-file", text(path)]);
    assert!(file(&odd).contains("7 bytes"));
    assert!(file(&scratch("none.csv")).contains("cannot read"));
    let (kinds, help) = (file(Path::new("README.md")), printed(&["run", "--help"]));
    for kind in [".npy", ".csv", ".txt", ".bin"] {
        assert!(kinds.contains(kind) && help.contains(kind), "{kind}: {kinds}\n{help}");
    }
    misused(&["run", "models/mnist_mlp.nk"]);
    misused(&["run", "models/mnist_mlp.nk", "--zeros", "--input", "1"]);
}

#[test]
fn wrong_files_are_named() {
    assert!(
        refused(&["inspect", "models/mnist_cmn.nk"]).contains("did you mean models/mnist_cnn.nk")
    );
    // No `./` in front, and nothing that shares but `.nk`.
    for (name, ending) in [
        ("mnist_cmn.nk", "does not exist; did you mean mnist_cnn.nk?\n"),
        ("q.nk", "q.nk does not exist\n"),
        ("lenet.nk", "lenet.nk does not exist\n"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netkit"));
        let output = command.args(["inspect", name]).current_dir("../models").output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.ends_with(ending), "{error}");
    }
    assert!(refused(&["inspect", "models"]).contains("is a folder"));
    let empty = scratch("empty.nk");
    fs::write(&empty, []).unwrap();
    assert!(refused(&["inspect", text(&empty)]).contains("[NK0101] the file is empty"));
    let whole =
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/mnist_mlp.nk")).unwrap();
    let cut = scratch("cut.nk");
    fs::write(&cut, &whole[..1000]).unwrap();
    for verb in ["inspect", "plan", "bench", "emit"] {
        let error = refused(&[verb, text(&cut)]);
        assert!(error.contains("[NK0115]") && error.contains("netkit explain"), "{error}");
    }
    assert!(refused(&["run", text(&cut), "--zeros"]).contains("[NK0115]"));
    let failed = netkit(&["test", text(&cut)]);
    assert_eq!(failed.status.code(), Some(1));
    let shown = String::from_utf8(failed.stdout).unwrap();
    assert!(shown.starts_with("NOT LOADED cut.nk: ") && !shown.contains("FAIL"), "{shown}");
    assert!(shown.contains("\n    [NK0115] ") && !shown.contains("\\n"), "{shown}");
    assert!(shown.ends_with("Passed: 0\nFailed: 0\nNot loaded: 1\n"), "{shown}");
    let error = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(error, "error: 1 of 1 model files cannot be used\n");
}

/// Another file than the one that was asked for is proposed, not read.
#[test]
fn a_model_one_folder_up_is_proposed() {
    let inside = Path::new(env!("CARGO_MANIFEST_DIR"));
    for verb in ["inspect", "test"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netkit"));
        let output =
            command.args([verb, "models/mnist_mlp.nk"]).current_dir(inside).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{error}");
        let expected = "does not exist; did you mean ../models/mnist_mlp.nk?";
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn arenas_have_sizes_and_limits() {
    let run = |size: &str| netkit(&["run", "models/mnist_mlp.nk", "--zeros", "--arena", size]);
    for size in ["64K", "64KiB", "65536", "1m"] {
        assert!(run(size).status.success(), "{size}");
    }
    let small = refused(&["run", "models/mnist_mlp.nk", "--zeros", "--arena", "100"]);
    assert!(small.contains("into an arena of 100 bytes: it takes "), "{small}");
    let huge = refused(&["run", "models/mnist_mlp.nk", "--zeros", "--arena", "4000000000G"]);
    assert!(huge.contains("cannot make the arena"), "{huge}");
    assert!(misused(&["run", "m.nk", "--zeros", "--arena", "64Q"]).contains("unknown unit"));
    assert!(
        misused(&["run", "m.nk", "--zeros", "--arena", "99999999999G"]).contains("does not fit")
    );
    assert!(misused(&["run", "m.nk", "--zeros", "--isa", "mmx"]).contains("no instruction set"));
}

#[test]
fn test_runs_folders_in_one_arena() {
    let shown = printed(&["test", "models"]);
    assert!(shown.contains("PASS mnist_cnn.nk: "), "{shown}");
    assert!(shown.contains("\nPassed: ") && shown.ends_with("Failed: 0\n"), "{shown}");
    let report = json(&["test", "--json", "models/mnist_mlp.nk"]);
    assert_eq!(report["failed"], 0);
    assert_eq!(
        report["passed"].as_u64().unwrap(),
        report["cases"].as_array().unwrap().len() as u64
    );
    assert!(refused(&["test", "netkit-cli/src"]).contains("no .nk file"));
    // What is not there is no test case that fails.
    let missing = refused(&["test", "models/mnist_mlp.nk", "models/mnist_ml.nk"]);
    assert!(missing.contains("does not exist; did you mean models/mnist_mlp.nk"), "{missing}");
    assert!(!missing.contains("test cases"), "{missing}");
}

/// Of a folder only files are models: a pipe would keep the command waiting for ever.
#[test]
fn test_leaves_out_what_is_no_file() {
    let folder = scratch("mixed");
    fs::create_dir_all(folder.join("folder.nk")).unwrap();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/mnist_mlp.nk");
    fs::copy(model, folder.join("model.nk")).unwrap();
    if cfg!(unix) && !folder.join("pipe.nk").exists() {
        let made = Command::new("mkfifo").arg(folder.join("pipe.nk")).status().unwrap();
        assert!(made.success());
    }
    let report = json(&["test", "--json", text(&folder)]);
    let cases = report["cases"].as_array().unwrap();
    assert!(cases.iter().all(|case| case["model"].as_str().unwrap().ends_with("model.nk")));
}

#[test]
fn a_failing_case_fails_the_command() {
    let mut bytes =
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/mnist_mlp.nk")).unwrap();
    // The last value that the last case expects.
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&0.75f32.to_le_bytes());
    let wrong = scratch("wrong.nk");
    fs::write(&wrong, bytes).unwrap();
    let output = netkit(&["test", text(&wrong)]);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("FAIL wrong.nk: ") && shown.contains("expected 0.75"), "{shown}");
    assert!(shown.ends_with("Failed: 1\n"), "{shown}");
}

#[test]
fn bench_measures() {
    let report =
        json(&["bench", "--time", "0.05", "--json", "--isa", "scalar", "models/mnist_mlp.nk"]);
    assert_eq!(report["isa"], "scalar");
    assert!(report["microseconds"]["min"].as_f64().unwrap() > 0.0);
    assert_eq!(report["macs"], 101_632);
    let steps = report["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3);
    assert_eq!(steps[0]["weight_bytes"], 4 * (784 * 128 + 128));
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let bound = number(&report["bound_microseconds"]);
    assert!(
        (steps.iter().map(|s| number(&s["bound_microseconds"])).sum::<f64>() - bound).abs() < 1e-6
    );
    for step in &steps[..2] {
        let arithmetic = 1e6 * number(&step["macs"]) / number(&report["peak_macs_per_second"]);
        let read =
            1e6 * number(&step["weight_bytes"]) / number(&report["peak_read_bytes_per_second"]);
        assert!(
            (number(&step["bound_microseconds"]) - arithmetic.max(read)).abs() < 1e-6,
            "{step}"
        );
        assert_eq!(step["bound_by"], if read > arithmetic { "read" } else { "arithmetic" });
    }
    // No multiply-accumulates and no weights: no bound.
    assert_eq!(number(&steps[2]["bound_microseconds"]), 0.0);
    let shown = printed(&["bench", "--time", "0.05", "models/mnist_mlp_int8.nk"]);
    for part in ["% of bound", "weight bytes", "100,352", "bound: "] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    for time in ["0", "-1", "-1e-3", "1e9", "long"] {
        let error = misused(&["bench", "--time", time, "models/mnist_mlp.nk"]);
        assert!(error.contains("more than 0 and at most 3600 seconds"), "{time}: {error}");
    }
}

#[test]
fn plan_shows_buffers_and_peak() {
    let shown = printed(&["plan", "models/mnist_cnn.nk"]);
    for part in ["conv2d_max_pool2d", "13×13×32", "21,632", "what would shrink it", "28,032 bytes"]
    {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert_eq!(json(&["plan", "--json", "models/mnist_cnn.nk"])["arena_bytes"], 28_032);
}

#[test]
fn emit_writes_what_the_macro_expands_to() {
    let code = printed(&["emit", "models/mnist_mlp.nk", "--name", "Digits"]);
    assert!(code.contains("pub struct Digits") && code.contains("/models/mnist_mlp.nk"), "{code}");
    assert!(code.lines().count() < 400);
    let path = scratch("model.rs");
    let written = netkit(&["emit", "models/mnist_mlp.nk", "--name", "Digits", "-o", text(&path)]);
    assert!(written.status.success() && written.stdout.is_empty());
    assert!(String::from_utf8_lossy(&written.stderr).starts_with("wrote "));
    assert_eq!(fs::read_to_string(&path).unwrap(), code);
    assert!(refused(&["emit", "models/mnist_mlp.nk", "--name", "1st"]).contains("no name"));
    let unwritable = refused(&["emit", "models/mnist_mlp.nk", "-o", "no/such/folder/model.rs"]);
    assert!(unwritable.contains("cannot write"), "{unwritable}");
    let itself = refused(&["emit", "models/mnist_mlp.nk", "-o", "models/mnist_mlp.nk"]);
    assert!(itself.contains("overwrite the model"), "{itself}");
}

/// Where the macro would expand to an error there is no code, and what was there stays.
#[test]
fn emit_writes_no_code_that_is_an_error() {
    let target = scratch("kept.rs");
    let emit = |model: &str, more: &[&str]| {
        fs::write(&target, "kept").unwrap();
        let error = refused(&[&["emit", model, "-o", text(&target)], more].concat());
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
        error
    };
    for name in ["123.nk", "self.nk"] {
        let model = scratch(name);
        fs::copy("../models/mnist_mlp.nk", &model).unwrap();
        let error = emit(text(&model), &[]);
        assert!(error.contains("makes no name for a type; give one: --name "), "{error}");
        printed(&["emit", text(&model), "--name", "Digits"]);
    }
    let error = emit("models/mnist_cnn_int8.nk", &["--convolution", "winograd"]);
    assert!(error.contains("leave --convolution out") && !error.contains('`'), "{error}");
    assert!(!printed(&["emit", "--help"]).contains("--out-dir"));
}

#[test]
fn emit_writes_code_for_batches() {
    let code = printed(&["emit", "models/mnist_mlp.nk", "--batch", "8"]);
    assert!(code.contains("pub const BATCH: nk::usize = 8;") && code.contains("forward_batch"));
    assert!(!printed(&["emit", "models/mnist_mlp.nk"]).contains("BATCH"));
    for wrong in ["0", "65536", "eight"] {
        assert!(misused(&["emit", "models/mnist_mlp.nk", "--batch", wrong]).contains("--batch"));
    }
}

#[test]
fn explain_knows_every_code() {
    let list = printed(&["explain"]);
    assert!(list.lines().count() > 60);
    for line in list.lines() {
        let code = line.split(' ').next().unwrap();
        assert!(printed(&["explain", code]).starts_with(code));
    }
    assert!(refused(&["explain", "NK9999"]).contains("lists them"));
}

#[test]
fn help_fits_a_terminal() {
    for verb in ["inspect", "run", "test", "bench", "plan", "emit", "explain", "convert"] {
        let help = printed(&[verb, "--help"]);
        assert!(help.contains("Usage: netkit "), "{help}");
    }
}

/// A reader that goes away early, as `| head -1` does, and a full disk.
#[cfg(unix)]
#[test]
fn an_output_that_takes_no_more_ends_the_command_without_a_panic() {
    use std::process::Stdio;

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let run = |arguments: &[&str], stdout: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netkit"));
        command.args(arguments).current_dir(&root).stdout(stdout).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let model = "models/mnist_mlp.nk";
    for arguments in [
        &["inspect", "--full", model][..],
        &["inspect", "--hex", "header", model],
        &["run", model, "--zeros"],
        &["test", model],
        &["plan", model],
        &["emit", model],
        &["explain"],
        &["convert", "--check", "models/onnx/mnist_mlp.onnx"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(run(arguments, writer.into()), (Some(1), String::new()), "{arguments:?}");
    }
    if let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") {
        let (code, error) = run(&["inspect", model], full.into());
        assert_eq!(code, Some(1));
        assert!(error.starts_with("error: cannot write to standard output"), "{error}");
    }
}

#[test]
fn with_json_errors_are_json_too() {
    let told = |arguments: &[&str]| {
        let output = netkit(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert!(error["error"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
        (String::from_utf8(output.stdout).unwrap(), error)
    };
    for verb in ["inspect", "plan", "bench"] {
        let (output, error) = told(&[verb, "--json", "models/nothing.nk"]);
        assert!(output.is_empty() && error["diagnostics"].is_null(), "{verb}: {error}");
    }
    let (_, error) = told(&["run", "--json", "models/mnist_mlp.nk", "--input", "1,2"]);
    assert_eq!(error["error"], "the model takes 784 values, 2 were given");

    let path = scratch("rules.nk");
    let mut model = fs::read("../models/mnist_mlp.nk").unwrap();
    model[9] = 3; // input_rank
    model[56] = 9; // activation of the first layer
    fs::write(&path, model).unwrap();
    let (_, error) = told(&["inspect", "--json", text(&path)]);
    let rules = error["diagnostics"].as_array().unwrap();
    let codes: Vec<_> = rules.iter().map(|rule| rule["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["NK0107", "NK0203"], "{error}");
    assert_eq!(rules[1]["layer"], 0);
    assert_eq!(rules[1]["offset"], 56);
    assert!(rules[1]["message"].as_str().unwrap().contains("activation is 9"), "{error}");

    // The report of the cases is still the one document on standard output.
    let (output, _) = told(&["test", "--json", text(&path)]);
    let report: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(report["failed"], 0);
    let [only] = &report["not_loaded"].as_array().unwrap()[..] else { panic!("{report}") };
    assert!(only["error"].as_str().unwrap().contains("NK0203"), "{only}");
}

#[test]
fn a_hyphen_is_standard_output_for_text_and_refused_for_models() {
    let arguments = ["emit", "models/mnist_mlp.nk", "--name", "Digits"];
    assert_eq!(printed(&[&arguments[..], &["-o", "-"]].concat()), printed(&arguments));
    assert!(!Path::new("../-").exists());
    let error = refused(&["convert", "models/onnx/mnist_mlp.onnx", "-o", "-"]);
    assert!(error.contains("standard output"), "{error}");
}

/// A name may hold anything but `/`, but it is no code.
#[cfg(unix)]
#[test]
fn what_emit_writes_is_the_same_code_whatever_the_name() {
    let name = "a\nfn main() {}\n\u{202e}\"\u{1b}[2J.nk";
    let path = scratch(name);
    fs::copy("../models/mnist_mlp.nk", &path).unwrap();
    let code = printed(&["emit", text(&path), "--name", "Digits"]);
    assert!(!code.contains(['\u{1b}', '\u{202e}']) && !code.contains("\nfn main"), "{code}");
    let tested = printed(&["test", text(&path)]);
    assert!(!tested.contains('\u{1b}'), "{tested}");
    assert!(!printed(&["inspect", text(&path)]).contains('\u{1b}'));
    fs::remove_file(&path).unwrap();
}

#[test]
fn files_of_any_length_are_read_to_a_limit() {
    let endless = |name: &str| {
        let path = scratch(name);
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        path
    };
    let onnx = endless("long.onnx");
    let error = refused(&["convert", text(&onnx)]);
    assert!(error.contains("2,147,483,647 bytes") && error.contains("ONNX"), "{error}");
    for name in ["long.npy", "long.csv", "long.bin"] {
        let values = endless(name);
        let error = refused(&["run", "models/mnist_mlp.nk", "--input-file", text(&values)]);
        assert!(error.contains("the most that is read of 784 input values"), "{error}");
        fs::remove_file(&values).unwrap();
    }
    let cases = endless("cases.npy");
    let error =
        refused(&["convert", "models/onnx/mnist_mlp.onnx", "--check", "--cases", text(&cases)]);
    assert!(error.contains("the most that is read of an array"), "{error}");
    fs::remove_file(&cases).unwrap();
    fs::remove_file(&onnx).unwrap();
}

/// However little there is: the arena that the error asks for is enough.
#[test]
fn an_arena_that_is_too_small_is_told_once() {
    for (model, small) in [("mnist_mlp", "64"), ("mnist_cnn", "4K"), ("mnist_cnn_int8", "1K")] {
        let model = format!("models/{model}.nk");
        let error = refused(&["run", &model, "--zeros", "--arena", small]);
        assert_eq!(error.matches("it takes ").count(), 1, "{error}");
        let enough = error.trim_end().rsplit(' ').next().unwrap();
        printed(&["run", &model, "--zeros", "--arena", enough]);
    }
}

#[test]
fn what_only_begins_like_a_model_is_not_read_to_its_end() {
    let path = scratch("endless.nk");
    let file = fs::File::create(&path).unwrap();
    // Sparse where the file system can, so it takes neither time nor space.
    file.set_len(1 << 40).unwrap();
    assert!(refused(&["inspect", text(&path)]).contains("NK0102"));
    let mut header = fs::read("../models/mnist_mlp.nk").unwrap();
    header.truncate(48);
    fs::write(&path, header).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let error = refused(&["inspect", text(&path)]);
    assert!(error.contains("more than its header can account for"), "{error}");
    fs::remove_file(&path).unwrap();
}

/// A model of a few layers without weights over a map of floats.
fn pools(map: [u32; 3], windows: &[u32]) -> Vec<u8> {
    let mut file = b"NKIT".to_vec();
    let [height, width, channels] = map;
    let header = [3, 0x0302, height, width, channels, 0, windows.len() as u32, 0, 0, 0, 0];
    let records = windows.iter().flat_map(|&window| [5, window, 1, 0]);
    file.extend(header.into_iter().chain(records).flat_map(u32::to_le_bytes));
    file
}

/// 64 bytes that ask for 2^52 additions: looking at them takes no time all the same.
#[test]
fn a_file_that_would_run_for_days_is_shown_at_once() {
    let model = scratch("days.nk");
    fs::write(&model, pools([16384, 16384, 1], &[8192])).unwrap();
    let report = json(&["inspect", "--full", "--json", text(&model)]);
    assert_eq!(report["memory"]["arena_after_load"], report["memory"]["arena_after_forward"]);
    assert!(printed(&["plan", text(&model)]).contains("no arena"));
}

/// Whatever a test case is called, what is printed of it is one line of text.
#[test]
fn names_of_cases_are_one_line_of_text() {
    let mut file = pools([1, 1, 1], &[1]);
    file[10] = 1; // TCAS
    let name = "a\x1b[2J\nPASS \u{202e}b";
    file.extend(b"TCAS");
    file.extend([1u32.to_le_bytes(), 0f32.to_le_bytes()].concat());
    file.push(name.len() as u8);
    file.extend(name.bytes());
    file.resize(file.len().next_multiple_of(4), 0);
    let [label, one, zero] = [u32::MAX, 1, 0].map(u32::to_le_bytes);
    file.extend([label, one, zero, one, zero].concat());
    let model = scratch("names.nk");
    fs::write(&model, file).unwrap();
    let escaped = r"a\u{1b}[2J\nPASS \u{202e}b";
    for (arguments, line) in [
        (&["test"][..], format!("PASS names.nk: {escaped} (largest")),
        (&["inspect", "--hex", "tcas"], format!("case 0: {escaped}")),
    ] {
        let shown = printed(&[arguments, &[text(&model)]].concat());
        assert!(shown.lines().any(|shown| shown.starts_with(&line)), "{line} in\n{shown}");
        assert!(!shown.contains(['\x1b', '\u{202e}']), "{shown:?}");
    }
}
