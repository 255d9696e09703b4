//! Pitfalls B36 and B41: what the compiler and the editor get to read does not grow with the weights.

use netkit_codegen::{Memory, expand};
use netkit_core::format::{
    Activation, Conv2d, Dense, Layer, ModelDescription, NetworkKind, OwnedPair, OwnedTensor,
    TensorData,
};
use netkit_core::tensor::Shape;
use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

fn pair(weight: &[u32], channels: u32) -> OwnedPair {
    let tensor = |dims: &[u32]| {
        let shape = Shape::new(dims).unwrap();
        let values = (0..shape.elements()).map(|i| (i % 251) as f32 / 251.0).collect();
        OwnedTensor { shape, data: TensorData::F32(values) }
    };
    OwnedPair { weight: tensor(weight), bias: tensor(&[channels]) }
}

/// A convolution and a dense layer on maps of `channels` channels.
fn model(channels: u32) -> Vec<u8> {
    let mut model = ModelDescription::new(NetworkKind::Cnn, Shape::new(&[4, 4, channels]).unwrap());
    let conv = Conv2d {
        kernel_size: 3,
        stride: 1,
        filters: channels,
        activation: Activation::Relu,
        pad_h: 0,
        pad_w: 0,
        pad_extra: 0,
        alpha: 0.01,
    };
    model.push(Layer::Conv2d(conv), [pair(&[channels, 3, 3, channels], channels)]);
    model.push(Layer::Flatten, []);
    let dense = Dense { units: 10, activation: Activation::Softmax, alpha: 0.01 };
    model.push(Layer::Dense(dense), [pair(&[10, 4 * channels], 10)]);
    model.to_bytes().unwrap()
}

/// Tokens, groups counted with what they hold.
fn count(tokens: TokenStream) -> usize {
    let size = |token| match token {
        TokenTree::Group(group) => 2 + count(group.stream()),
        _ => 1,
    };
    tokens.into_iter().map(size).sum()
}

fn tokens(channels: u32) -> (usize, usize) {
    let bytes = model(channels);
    let source = Memory::with("a.nk", bytes.as_slice());
    (bytes.len(), count(expand(&quote!(::netkit), quote!(Model = "a.nk"), &source)))
}

#[test]
fn b36_b41_the_expansion_does_not_grow_with_the_weights() {
    let (small_bytes, small) = tokens(16);
    let (large_bytes, large) = tokens(340);
    println!("{small_bytes} bytes: {small} tokens; {large_bytes} bytes: {large} tokens");
    assert!(large_bytes > 4_000_000 && large_bytes > 100 * small_bytes);
    assert_eq!(small, large);
    assert!(large < 5000, "{large} tokens for two layers");
}
