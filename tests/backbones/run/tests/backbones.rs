//! Whole networks: the macro and the runtime give the same bits, and both give what an independent
//! evaluator gives.

use std::path::{Path, PathBuf};
use std::process::Command;

use netkit::Model;
use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit_backbones::{ALL, TOLERANCE};
use netkit_backbones_tests::{ConvNextV2, FOLDER, MobileNetV4, ResNet18, YoloxDetector};
use netkit_core::format::CaseInput;
use netkit_kernels::{Isa, Kernels};

/// A file where the loader wants it: at a multiple of 4.
fn read(name: &str) -> (Vec<u64>, usize) {
    let bytes = std::fs::read(Path::new(FOLDER).join(name).with_extension("nk")).unwrap();
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
    (words, bytes.len())
}

/// The largest distance between two outputs; NaN counts as infinitely far.
fn deviation(actual: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(actual.len(), expected.len());
    let distances = actual.iter().zip(expected).map(|(a, b)| (a - b).abs());
    distances.fold(0.0, |most, distance| if distance <= most { most } else { distance })
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Runs every test case of a network through the macro and through the runtime on each instruction set.
fn check<M>(name: &str, layers: usize)
where
    M: Model + Default,
    for<'i> &'i M::Input: TryFrom<&'i [f32]>,
{
    assert_eq!(M::LAYERS.len(), layers, "{name}: layers");
    let (words, len) = read(name);
    let bytes = &bytemuck::cast_slice(&words)[..len];
    let mut arena = Bump::heap(64 << 20).unwrap();
    let native = Kernels::native().isa();
    let mut compiled = Box::<M>::default();
    let mut seen: Vec<Vec<u32>> = Vec::new();
    // On x86-64 only a feature brings the portable kernels.
    assert!(Kernels::for_isa(Isa::Scalar).is_some());
    for kernels in Kernels::all() {
        arena.reset();
        let mut loaded = Network::load(bytes, &arena).unwrap().with_kernels(kernels);
        let cases: Vec<(Vec<f32>, Vec<f32>)> = loaded
            .program()
            .file()
            .cases()
            .map(|case| match case.input {
                CaseInput::F32(input) => (input.iter().collect(), case.expected.iter().collect()),
                CaseInput::I8(_) => panic!("{name}: an int8 case in a float model"),
            })
            .collect();
        assert!(!cases.is_empty(), "{name}: no test cases");
        for (input, expected) in &cases {
            let mut output = vec![0.0; M::OUTPUT_LEN];
            loaded.forward(input, &mut output).unwrap();
            let off = deviation(&output, expected);
            println!("{name} on {}: off by {off:e}", kernels.isa().name());
            assert!(off <= TOLERANCE, "{name} on {}: off by {off}", kernels.isa().name());
            if kernels.isa() == native {
                let Ok(input) = input.as_slice().try_into() else {
                    panic!("{name}: the input's length")
                };
                assert_eq!(bits(compiled.forward(input).as_ref()), bits(&output), "{name}");
                seen.push(bits(&output));
            }
        }
    }
    // A network that ignores its input would agree with everything.
    assert_ne!(seen[0], seen[1], "{name}: two inputs, one output");
    let passed = compiled.self_test().unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(passed.cases, seen.len());
}

#[test]
fn mobilenet_v4_conv_small() {
    check::<MobileNetV4>("mobilenetv4_conv_small", 22);
}

#[test]
fn resnet18() {
    check::<ResNet18>("resnet18", 13);
}

#[test]
fn convnext_v2_atto() {
    check::<ConvNextV2>("convnextv2_atto", 24);
}

#[test]
fn yolox_detector() {
    check::<YoloxDetector>("yolox_detector", 10);
}

/// The outputs that are kept are what the evaluator gives for these very files.
///
/// Needs Python with numpy (`NETKIT_PYTHON`) and the folder of nkref.py (`NETKIT_NKREF`, else beside
/// the corpus).
#[test]
fn expected_outputs_are_the_evaluators() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let nkref = std::env::var_os("NETKIT_NKREF")
        .map_or_else(|| root.join("../shared/tools"), PathBuf::from);
    if !nkref.join("nkref.py").is_file() {
        println!("skipped: no evaluator at {}", nkref.display());
        return;
    }
    let python = std::env::var("NETKIT_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_numpy = Command::new(&python).args(["-c", "import numpy"]).output();
    if !has_numpy.is_ok_and(|output| output.status.success()) {
        println!("skipped: {python} has no numpy");
        return;
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("expected");
    let status = Command::new(&python)
        .arg(root.join("tests/backbones/expected.py"))
        .arg("--nkref")
        .arg(&nkref)
        .args(["--models", FOLDER, "--out"])
        .arg(&out)
        .status()
        .unwrap();
    assert!(status.success(), "the evaluator failed");
    let numbers = |path: PathBuf| -> Vec<f32> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    for backbone in ALL {
        let name = Path::new(backbone.name).with_extension("txt");
        let kept = numbers(root.join("tests/backbones/expected").join(&name));
        let fresh = numbers(out.join(&name));
        // Sums in float64 in another order, rounded to float32.
        let off = deviation(&fresh, &kept);
        assert!(off <= TOLERANCE / 100.0, "{}: off by {off}", backbone.name);
    }
}
