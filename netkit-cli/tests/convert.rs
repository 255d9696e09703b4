//! `netkit convert` as a user runs it.

use netkit_core::diag::FirstError;
use netkit_core::format::{ModelDescription, NkFile};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn netkit(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netkit")).args(arguments).output().unwrap()
}

fn model(name: &str) -> String {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
    models.join(name).to_str().unwrap().to_owned()
}

/// A path of its own for each test.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("convert");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    drop(fs::remove_file(&path));
    path
}

fn success(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn read(path: &Path) -> ModelDescription {
    let bytes = fs::read(path).unwrap();
    ModelDescription::from_file(&NkFile::parse(&bytes, &mut FirstError::new()).unwrap())
}

fn npy(descriptor: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header =
        format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

#[test]
fn a_model_is_converted_compared_and_written() {
    let target = scratch("written.nk");
    let text = success(&netkit(&[
        "convert",
        &model("onnx/mnist_cnn.onnx"),
        "-o",
        target.to_str().unwrap(),
    ]));
    for part in ["conv2d 3×3×32 relu", "Conv `conv1`", "compared with the source", "wrote "] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    let expected = read(Path::new(&model("mnist_cnn.nk")));
    let written = read(&target);
    assert_eq!((written.layers, written.pairs), (expected.layers, expected.pairs));
    assert!(written.cases.is_empty());
}

#[test]
fn digits_become_cases_one_of_each_class() {
    let images = fs::read(model("digits/images.u8")).unwrap();
    let labels = fs::read(model("digits/labels.u8")).unwrap();
    let pixels: Vec<u8> =
        images[..100 * 784].iter().flat_map(|&it| (f32::from(it) / 255.0).to_le_bytes()).collect();
    let (inputs, classes) = (scratch("inputs.npy"), scratch("labels.npy"));
    fs::write(&inputs, npy("<f4", "(100, 28, 28, 1)", &pixels)).unwrap();
    fs::write(&classes, npy("|u1", "(100,)", &labels[..100])).unwrap();
    let target = scratch("cases.nk");
    let source = model("onnx/mnist_cnn.onnx");
    let [inputs, classes] = [&inputs, &classes].map(|path| path.to_str().unwrap());
    let to = ["-o", target.to_str().unwrap()];
    let convert = |more: &[&str]| {
        netkit(&[&["convert", &source, "--cases", inputs][..], more, &to[..]].concat())
    };
    let text = success(&convert(&["--labels", classes]));
    assert!(text.contains("embedded 10 test cases"), "{text}");
    let written = read(&target);
    let classes: Vec<_> = written.cases.iter().map(|case| case.label).collect();
    let mut sorted = classes.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..10).map(Some).collect::<Vec<_>>(), "{classes:?}");

    success(&convert(&["--case-count", "3"]));
    let written = read(&target);
    let named: Vec<_> = written.cases.iter().map(|case| (&*case.name, case.label)).collect();
    assert_eq!(named, [("input 0", None), ("input 1", None), ("input 2", None)]);

    let error = failure(&convert(&["--tolerance", "0"]));
    assert!(error.contains("misses its output"), "{error}");
    for wrong in ["-1", "-1e-3", "inf", "NaN", "far"] {
        let output = convert(&["--tolerance", wrong]);
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("a finite number that is not negative"), "{wrong}: {error}");
    }
}

#[test]
fn inputs_of_another_shape_are_refused() {
    let inputs = scratch("wrong.npy");
    fs::write(&inputs, npy("|u1", "(2, 27, 28)", &[0; 2 * 27 * 28])).unwrap();
    let error = failure(&netkit(&[
        "convert",
        &model("onnx/mnist_cnn.onnx"),
        "--cases",
        inputs.to_str().unwrap(),
        "--check",
    ]));
    assert!(error.contains("wrong.npy: an array of shape [2, 27, 28]"), "{error}");
}

#[test]
fn check_writes_nothing() {
    let source = scratch("checked.onnx");
    fs::copy(model("onnx/mnist_mlp.onnx"), &source).unwrap();
    let written = source.with_extension("nk");
    drop(fs::remove_file(&written));
    let text = success(&netkit(&["convert", "--check", source.to_str().unwrap()]));
    assert!(text.contains("checked.onnx converts"), "{text}");
    assert!(!written.exists());
    // Without it, the result stands beside the source.
    success(&netkit(&["convert", source.to_str().unwrap()]));
    assert!(written.exists());
}

#[test]
fn what_is_no_onnx_file_is_told() {
    let target = scratch("not.onnx");
    fs::write(&target, b"GIF89a").unwrap();
    let error = failure(&netkit(&["convert", target.to_str().unwrap()]));
    assert!(error.starts_with("error: ") && error.contains("not an ONNX file"), "{error}");
    let error = failure(&netkit(&["convert", &model("digits/images.u8")]));
    assert!(error.contains("only .onnx files"), "{error}");
    let error = failure(&netkit(&["convert", &model("mnist_mlp.nk")]));
    assert!(error.contains("mnist_mlp.nk: this is a .nk file already"), "{error}");
    fs::copy(model("mnist_mlp.nk"), &target).unwrap();
    let error = failure(&netkit(&["convert", target.to_str().unwrap()]));
    assert!(error.contains("not.onnx: this is a .nk file already"), "{error}");
    let whole = fs::read(model("onnx/mnist_mlp.onnx")).unwrap();
    for length in [100, 5000, whole.len() - 1] {
        fs::write(&target, &whole[..length]).unwrap();
        let error = failure(&netkit(&["convert", target.to_str().unwrap()]));
        assert!(error.contains("cut short") && !error.contains("not an ONNX"), "{error}");
    }
    let error = failure(&netkit(&["convert", "model.TFLITE"]));
    assert!(error.contains("export the model to ONNX"), "{error}");
    let error = failure(&netkit(&["convert", "no_such_file.onnx"]));
    assert!(error.contains("cannot read no_such_file.onnx"), "{error}");
}

#[test]
fn every_obstacle_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = std::env::var_os("NETKIT_CORPUS")
        .map_or_else(|| root.join("../../shared/corpus"), PathBuf::from);
    if !corpus.is_dir() {
        println!("skipped: no corpus");
        return;
    }
    let source = corpus.join("onnx/import_convnextv2_block.onnx");
    let error = failure(&netkit(&["convert", "--check", source.to_str().unwrap()]));
    for part in ["Erf `/block/mlp/act/Erf`", "ReduceL2", "Add `/block/Add`", "8 obstacles"] {
        assert!(error.contains(part), "`{part}` is missing in\n{error}");
    }
}

/// However the path is spelled.
#[test]
fn the_source_is_not_overwritten() {
    let source = scratch("itself.onnx");
    fs::copy(model("onnx/mnist_mlp.onnx"), &source).unwrap();
    let size = fs::metadata(&source).unwrap().len();
    let folder = source.parent().unwrap();
    for spelling in [source.clone(), folder.join("../convert/itself.onnx")] {
        let arguments = ["convert", source.to_str().unwrap(), "-o", spelling.to_str().unwrap()];
        let refusal = failure(&netkit(&arguments));
        assert!(refusal.contains("would be overwritten"), "{refusal}");
        assert_eq!(fs::metadata(&source).unwrap().len(), size);
    }
}

/// A file of 100 bytes that says AveragePool over 4000×4000 of 8000×8000: 2^48 additions, and gigabytes of maps, which the
/// comparison would take.
#[test]
fn a_pool_without_end_is_not_compared() {
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }
    let varint = |number: u8, value: u16| [number << 3, value as u8 | 0x80, (value >> 7) as u8];
    let dims = [1, 1, 8000, 8000].map(|size| field(1, &varint(1, size))).concat();
    let port = |name: &[u8], dims: &[u8]| {
        let tensor = [&[0x08, 1][..], &field(2, dims)].concat();
        [field(1, name), field(2, &field(1, &tensor))].concat()
    };
    let sizes = [varint(8, 4000), varint(8, 4000)].concat();
    let window = [field(1, b"kernel_shape"), sizes, vec![0xa0, 1, 7]].concat();
    let node = [field(1, b"x"), field(2, b"y"), field(4, b"AveragePool"), field(5, &window)];
    let output = [field(1, b"y"), field(2, &field(1, &[0x08, 1]))].concat();
    let graph = [field(1, &node.concat()), field(11, &port(b"x", &dims)), field(12, &output)];
    let file = [field(8, &[0x10, 13]), field(7, &graph.concat())].concat();
    let source = scratch("pool.onnx");
    fs::write(&source, file).unwrap();
    let text = success(&netkit(&["convert", "--check", source.to_str().unwrap()]));
    assert!(text.contains("not compared with the source: 256128032008001"), "{text}");
}
