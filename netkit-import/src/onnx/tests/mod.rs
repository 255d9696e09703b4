//! Small models made on the spot, converted and compared with the source.

mod build;
mod geometry;
mod hostile;
mod layouts;
mod nk;
mod operators;
mod refusals;

use crate::onnx::Model;
use crate::{Conversion, Options};
use build::Build;
use netkit_core::diag::FirstError;
use netkit_core::format::{Layer, LayerKind, NkFile};
use netkit_core::program::{OwnedStorage, compile};

/// Numbers between −1 and 1, the same in every run.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn convert(build: &Build) -> Conversion {
    convert_with(build, &Options::default())
}

fn convert_with(build: &Build, options: &Options) -> Conversion {
    build.model().convert(options).unwrap_or_else(|obstacles| panic!("{obstacles}"))
}

/// Converts and checks that the result is a valid file and computes the same as the source.
fn agrees(build: &Build) -> Conversion {
    agrees_with(build, &Options::default())
}

fn agrees_with(build: &Build, options: &Options) -> Conversion {
    let conversion = convert_with(build, options);
    let bytes = conversion.model.to_bytes().unwrap();
    let mut sink = FirstError::new();
    let file = NkFile::parse(&bytes, &mut sink).unwrap();
    let mut storage = OwnedStorage::of(&file);
    let compiled = compile(&file, storage.lend(), &mut sink).is_some();
    assert!(compiled, "{}", sink.first().unwrap());
    compare(&build.model(), &conversion);
    conversion
}

fn compare(source: &Model, conversion: &Conversion) {
    let count: usize = conversion.input.dims().iter().product();
    for seed in 1..=3 {
        let input: Vec<f32> = numbers(count, seed).iter().map(|x| 4.0 * x).collect();
        let expected = source.evaluate(conversion.input.dims(), &input).unwrap();
        let stored = conversion.input.to_netkit_order(&input).unwrap();
        let output = nk::evaluate(&conversion.model, &stored);
        let output = conversion.output.to_source_order(&output).unwrap();
        assert_eq!(output.len(), expected.len());
        for (actual, expected) in output.iter().zip(&expected) {
            assert!(
                (actual - expected).abs() <= 1e-5 * (1.0 + expected.abs()),
                "{actual} instead of {expected}\n{output:?}\n{:?}",
                conversion.model.layers
            );
        }
    }
}

fn kinds(conversion: &Conversion) -> Vec<LayerKind> {
    conversion.model.layers.iter().map(Layer::kind).collect()
}

/// The obstacles, each as one text.
fn obstacles(build: &Build) -> Vec<String> {
    obstacles_with(build, &Options::default())
}

fn obstacles_with(build: &Build, options: &Options) -> Vec<String> {
    match build.model().convert(options) {
        Ok(conversion) => panic!("converted to {:?}", conversion.model.layers),
        Err(obstacles) => obstacles.as_slice().iter().map(ToString::to_string).collect(),
    }
}

/// The one obstacle there is; it must contain each of `parts`.
fn obstacle(build: &Build, parts: &[&str]) {
    let all = obstacles(build);
    let [only] = all.as_slice() else { panic!("{all:#?}") };
    for part in parts {
        assert!(only.contains(part), "`{part}` is missing in\n{only}");
    }
}
