//! The model of one small layer that `benches/models.rs` measures the cost of a call with.

use std::path::Path;

use netkit_core::format::{Activation, Dense, Layer, ModelDescription, NetworkKind};
use netkit_core::format::{OwnedPair, OwnedTensor, TensorData};
use netkit_core::tensor::Shape;

netkit::model!(OneLayer = "benches/one_layer.nk");

fn weight(index: u32) -> f32 {
    index as f32 / 16.0 - 0.5
}

fn bytes() -> Vec<u8> {
    let tensor = |dims: &[u32], data| OwnedTensor {
        shape: Shape::new(dims).unwrap(),
        data: TensorData::F32(data),
    };
    let mut model = ModelDescription::new(NetworkKind::Mlp, Shape::new(&[1, 4]).unwrap());
    model.push(
        Layer::Dense(Dense { units: 4, activation: Activation::None, alpha: 0.01 }),
        [OwnedPair {
            weight: tensor(&[4, 4], (0..16).map(weight).collect()),
            bias: tensor(&[4], vec![1.0, 2.0, 3.0, 4.0]),
        }],
    );
    model.to_bytes().unwrap()
}

/// `BLESS=1 cargo test --test one_layer` writes it anew.
#[test]
fn the_file_is_what_this_writes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/one_layer.nk");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, bytes()).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == bytes());
}

#[test]
fn it_computes_its_layer() {
    let output = OneLayer::new().forward(&[1.0, 0.0, 0.0, 2.0]);
    let expected: [f32; 4] = core::array::from_fn(|row| {
        let row = row as u32;
        row as f32 + 1.0 + weight(4 * row) + 2.0 * weight(4 * row + 3)
    });
    assert_eq!(output, expected);
}
