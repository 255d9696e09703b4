//! What ends up in a program: one copy of the weights, no test cases that nobody runs, no arena.

mod scratch;

use netkit_core::format::{
    Activation, CaseData, Conv2d, Dense, Layer, ModelDescription, NetworkKind, OwnedCase,
    OwnedPair, OwnedTensor, TensorData,
};
use netkit_core::tensor::Shape;
use scratch::Scratch;

/// Bytes of the output map of the network below, and so the least that its arena takes.
const ARENA: usize = 4 << 20;
/// Height and width of that map, and of the input.
const SIDE: u32 = 128;
/// Channels of that map.
const FILTERS: u32 = 64;
const CASE: &str = "a case with a name that nothing else has";

/// Numbers that no compiler makes by itself, the same at every call.
fn noise(seed: u32, len: usize) -> Vec<f32> {
    let mut state = u64::from(seed) + 1;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f32 / (1 << 24) as f32 - 0.5
        })
        .collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A weight tensor made of noise, and its bias.
fn pair(seed: u32, dims: &[u32]) -> OwnedPair {
    let tensor = |seed, dims: &[u32]| {
        let shape = Shape::new(dims).unwrap();
        OwnedTensor { shape, data: TensorData::F32(noise(seed, shape.elements())) }
    };
    OwnedPair { weight: tensor(seed, dims), bias: tensor(seed + 1, &dims[..1]) }
}

/// A convolution to a large map, whose filter is packed where kernels want panels.
fn convolution() -> ModelDescription {
    let mut model = ModelDescription::new(NetworkKind::Cnn, Shape::new(&[SIDE, SIDE, 1]).unwrap());
    let conv = Conv2d {
        kernel_size: 4,
        stride: 1,
        filters: FILTERS,
        activation: Activation::Relu,
        pad_h: 1,
        pad_w: 1,
        pad_extra: 0x11,
        alpha: 0.01,
    };
    model.push(Layer::Conv2d(conv), [pair(1, &[FILTERS, 4, 4, 1])]);
    model
}

/// Behind the convolution one pixel of its map, and a dense layer, whose weights every kernel reads in file order.
fn network() -> ModelDescription {
    let mut model = convolution();
    let conv = Conv2d {
        kernel_size: 1,
        stride: SIDE,
        filters: 1,
        activation: Activation::None,
        pad_h: 0,
        pad_w: 0,
        pad_extra: 0,
        alpha: 0.01,
    };
    model.push(Layer::Conv2d(conv), [pair(3, &[1, 1, 1, FILTERS])]);
    model.push(Layer::Flatten, []);
    let dense = Dense { units: 50, activation: Activation::None, alpha: 0.01 };
    model.push(Layer::Dense(dense), [pair(5, &[50, 1])]);
    model.tolerance = 1e9;
    model.cases = vec![OwnedCase {
        name: CASE.into(),
        label: None,
        input: CaseData::F32(noise(7, (SIDE * SIDE) as usize)),
        expected: noise(8, 50),
    }];
    model
}

/// How often `part` occurs in `whole`.
fn occurrences(whole: &[u8], part: &[u8]) -> usize {
    whole.windows(part.len()).filter(|window| *window == part).count()
}

/// A package that depends on netkit.
fn package(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write(
        "Cargo.toml",
        format!(
            "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [dependencies]\nnetkit = {}\n\n[workspace]\n",
            Scratch::netkit("")
        ),
    );
    scratch
}

#[test]
fn a_program_holds_what_it_uses_once() {
    let scratch = package("binary");
    let model = network().to_bytes().unwrap();
    assert!(occurrences(&model, CASE.as_bytes()) == 1);
    scratch.write("models/net.nk", &model);
    let program = |body: &str| {
        format!(
            "use std::sync::Mutex;\nnetkit::model!(Net = \"models/net.nk\");\n\
             static NET: Mutex<Net> = Mutex::new(Net::new());\n\
             const _: () = assert!(Net::ARENA_BYTES >= {ARENA});\n\
             fn main() {{\n    let mut net = NET.lock().unwrap();\n    {body}\n}}\n"
        )
    };
    let forward = "let input = vec![std::env::args().count() as f32; Net::INPUT_LEN];\n    \
                   println!(\"{:?}\", net.forward(input.as_slice().try_into().unwrap()));";
    scratch.write("src/bin/forward.rs", program(forward));
    scratch.write("src/bin/self_test.rs", program("println!(\"{:?}\", net.self_test());"));
    scratch.cargo_passes("", &["build", "-q", "--release"]);
    let passed = scratch.cargo_passes("", &["run", "-q", "--release", "--bin", "self_test"]);
    assert!(passed.starts_with("Ok(SelfTest { cases: 1,"), "{passed}");

    let forward = scratch.binary("forward");
    let self_test = scratch.binary("self_test");
    // The arena is zeros that the file does not hold.
    assert!(forward.len() < ARENA, "{} bytes", forward.len());
    // The dense layer's weights, as they are in the file, once.
    assert_eq!(occurrences(&forward, &bytes(&noise(5, 50))), 1);
    // The biases.
    assert_eq!(occurrences(&forward, &bytes(&noise(2, FILTERS as usize))), 1);
    // The convolution's: in the order of the file or packed, not both.
    let filter = noise(1, 16 * FILTERS as usize);
    let row_of_panel: Vec<f32> = filter.iter().step_by(16).take(16).copied().collect();
    let in_file_order = occurrences(&forward, &bytes(&filter[..16]));
    let packed = occurrences(&forward, &bytes(&row_of_panel));
    assert_eq!(in_file_order + packed, 1, "{in_file_order} in file order, {packed} packed");
    // The test cases only where they are run.
    assert_eq!(occurrences(&forward, CASE.as_bytes()), 0);
    assert_eq!(occurrences(&self_test, CASE.as_bytes()), 1);
    let input = bytes(&noise(7, 64));
    assert_eq!((occurrences(&forward, &input), occurrences(&self_test, &input)), (0, 1));
}

/// Pitfall B32: large arenas and outputs without optimisation on a small stack. Only the kernels are optimised:
/// the tiles of a wide instruction set keep a hundred vectors, which unoptimised code spills to some 100 KiB of stack.
#[test]
fn b32_a_small_stack_is_enough() {
    let scratch = package("small-stack");
    scratch.append("Cargo.toml", "[profile.dev.package.netkit-kernels]\nopt-level = 1\n");
    scratch.write("models/map.nk", convolution().to_bytes().unwrap());
    scratch.write(
        "src/main.rs",
        "netkit::model!(Map = \"models/map.nk\");\n\n\
         fn run() {\n    \
             let mut map = Map::new_boxed();\n    \
             let input = vec![1.0; Map::INPUT_LEN];\n    \
             let mut output = vec![0.0; Map::OUTPUT_LEN];\n    \
             let array = output.as_mut_slice().try_into().unwrap();\n    \
             map.forward_into(input.as_slice().try_into().unwrap(), array);\n    \
             println!(\"{}\", output.iter().any(|&value| value > 0.0));\n\
         }\n\n\
         fn main() {\n    \
             let thread = std::thread::Builder::new().stack_size(64 * 1024);\n    \
             thread.spawn(run).unwrap().join().unwrap();\n\
         }\n",
    );
    assert_eq!(scratch.cargo_passes("", &["run", "-q"]), "true\n");
}
