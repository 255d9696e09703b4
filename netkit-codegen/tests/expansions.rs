//! What the macro expands to: one snapshot for each family of models, its size whatever the weights, and its words for
//! mistakes, all without the compiler.
//!
//! After a change, look at `cargo insta review`, or at the diff that `INSTA_UPDATE=always` leaves.

#[path = "../../netkit-core/tests/format_support/mod.rs"]
mod format_support;

use netkit_codegen::{Memory, expand};
use netkit_core::format::{
    Activation, Conv2d, ConvNextV2Block, Dense, Layer, MobileNetV4Uib, ModelDescription,
    NetworkKind, OwnedPair, OwnedTensor, Pool2d, ResNetBasicBlock, TensorData, YoloxDecoupledHead,
};
use netkit_core::tensor::Shape;
use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use std::collections::BTreeSet;

fn pair(weight: &[u32], channels: u32) -> OwnedPair {
    let tensor = |dims: &[u32]| {
        let shape = Shape::new(dims).unwrap();
        OwnedTensor { shape, data: TensorData::F32(vec![0.5; shape.elements()]) }
    };
    OwnedPair { weight: tensor(weight), bias: tensor(&[channels]) }
}

fn cnn(input: [u32; 3]) -> ModelDescription {
    ModelDescription::new(NetworkKind::Cnn, Shape::new(&input).unwrap())
}

fn dense(units: u32, activation: Activation) -> Layer {
    Layer::Dense(Dense { units, activation, alpha: 0.01 })
}

/// Convolution, pool, flatten, dense, softmax; `filters` scales the number of weights.
fn digit_cnn(filters: u32) -> ModelDescription {
    let mut model = cnn([6, 6, 1]);
    model.push(
        Layer::Conv2d(Conv2d {
            kernel_size: 3,
            stride: 1,
            filters,
            activation: Activation::LeakyRelu,
            pad_h: 0,
            pad_w: 0,
            pad_extra: 0,
            alpha: 0.1,
        }),
        [pair(&[filters, 3, 3, 1], filters)],
    );
    let pool = Pool2d { pool_size: 2, stride: 2, pad_h: 0, pad_w: 0, pool_extra: 0 };
    model.push(Layer::MaxPool2d(pool), []);
    model.push(Layer::Flatten, []);
    model.push(dense(3, Activation::Softmax), [pair(&[3, 4 * filters], 3)]);
    model
}

fn resnet() -> ModelDescription {
    let mut model = cnn([4, 4, 2]);
    model.push(
        Layer::ResNetBasicBlock(ResNetBasicBlock { in_channels: 2, out_channels: 3, stride: 2 }),
        [
            pair(&[3, 3, 3, 2], 3),
            pair(&[3], 3),
            pair(&[3, 3, 3, 3], 3),
            pair(&[3], 3),
            pair(&[3, 1, 1, 2], 3),
            pair(&[3], 3),
        ],
    );
    model
}

fn mobilenet() -> ModelDescription {
    let mut model = cnn([4, 4, 8]);
    model.push(
        Layer::MobileNetV4Uib(MobileNetV4Uib {
            in_channels: 8,
            out_channels: 8,
            start_dw_kernel: 0,
            middle_dw_kernel: 3,
            stride: 1,
            middle_dw_downsample: 1,
            expand_ratio: 2.0,
        }),
        [
            pair(&[16, 1, 1, 8], 16),
            pair(&[16], 16),
            pair(&[16, 3, 3], 16),
            pair(&[16], 16),
            pair(&[8, 1, 1, 16], 8),
            pair(&[8], 8),
        ],
    );
    model
}

fn convnext() -> ModelDescription {
    let mut model = cnn([3, 3, 2]);
    model.push(
        Layer::ConvNextV2Block(ConvNextV2Block { channels: 2, eps: 1e-6 }),
        [pair(&[2, 7, 7], 2), pair(&[2], 2), pair(&[8, 2], 8), pair(&[8], 8), pair(&[2, 8], 2)],
    );
    model
}

fn yolox() -> ModelDescription {
    let mut model = cnn([2, 2, 3]);
    model.push(
        Layer::YoloxDecoupledHead(YoloxDecoupledHead {
            in_channels: 3,
            hidden_dim: 4,
            num_classes: 2,
            num_convs: 0,
        }),
        [
            pair(&[4, 1, 1, 3], 4),
            pair(&[2, 1, 1, 4], 2),
            pair(&[4, 1, 1, 4], 4),
            pair(&[1, 1, 1, 4], 1),
        ],
    );
    model
}

fn expansion(bytes: Vec<u8>, invocation: TokenStream) -> TokenStream {
    expand(&quote!(::netkit), invocation, &Memory::with("models/net.nk", bytes))
}

/// The tokens with every byte string replaced by one that tells its length.
fn abridged(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => {
                let mut abridged =
                    proc_macro2::Group::new(group.delimiter(), abridged(group.stream()));
                abridged.set_span(group.span());
                abridged.into()
            }
            TokenTree::Literal(literal) => match syn::parse_str(&literal.to_string()) {
                Ok(syn::Lit::ByteStr(bytes)) => {
                    let text = format!("<{} bytes>", bytes.value().len());
                    proc_macro2::Literal::byte_string(text.as_bytes()).into()
                }
                _ => literal.into(),
            },
            token => token,
        })
        .collect()
}

fn pretty(tokens: TokenStream) -> String {
    prettyplease::unparse(&syn::parse2(abridged(tokens)).unwrap())
}

macro_rules! snapshot {
    ($name:ident, $model:expr) => {
        #[test]
        fn $name() {
            let bytes = $model.to_bytes().unwrap();
            let tokens = expansion(bytes, quote!(pub Net = "models/net.nk"));
            insta::assert_snapshot!(stringify!($name), pretty(tokens));
        }
    };
}

snapshot!(multilayer_perceptron, format_support::worked_mlp());
snapshot!(convolutional_network, digit_cnn(4));
snapshot!(int8_network, format_support::int8_cnn());
snapshot!(resnet_block, resnet());
snapshot!(inverted_bottleneck, mobilenet());
snapshot!(convnext_block, convnext());
snapshot!(detection_head, yolox());

/// One convolution of 3×3 that pays in Winograd's form, and one that does not.
fn winograd() -> ModelDescription {
    let mut model = cnn([8, 8, 32]);
    for (filters, channels) in [(40, 32), (3, 40)] {
        model.push(
            Layer::Conv2d(Conv2d {
                kernel_size: 3,
                stride: 1,
                filters,
                activation: Activation::Relu,
                pad_h: 1,
                pad_w: 1,
                pad_extra: 0,
                alpha: 0.0,
            }),
            [pair(&[filters, 3, 3, channels], filters)],
        );
    }
    model
}

#[test]
fn convolution_in_winograds_form() {
    let bytes = winograd().to_bytes().unwrap();
    let invocation = quote!(pub Net = "models/net.nk", convolution = winograd);
    insta::assert_snapshot!(pretty(expansion(bytes, invocation)));
}

#[test]
fn several_inputs_at_once() {
    let invocation = || quote!(pub Net = "models/net.nk", batch = 4);
    for (name, model) in
        [("float_batches", digit_cnn(4)), ("int8_batches", format_support::int8_cnn())]
    {
        let tokens = expansion(model.to_bytes().unwrap(), invocation());
        insta::assert_snapshot!(name, pretty(tokens));
    }
}

/// `convolution = direct` is what is said by saying nothing.
#[test]
fn the_default_may_be_said() {
    let bytes = winograd().to_bytes().unwrap();
    let unsaid = expansion(bytes.clone(), quote!(pub Net = "models/net.nk"));
    let said = expansion(bytes.clone(), quote!(pub Net = "models/net.nk", convolution = direct));
    assert_eq!(unsaid.to_string(), said.to_string());
    let other = expansion(bytes, quote!(pub Net = "models/net.nk", convolution = winograd));
    assert_ne!(unsaid.to_string(), other.to_string());
}

#[test]
fn errors_stand_in_for_the_type() {
    let tokens = expansion(b"NKIT".to_vec(), quote!(#[cfg(all())] pub Net = "models/net.nk"));
    insta::assert_snapshot!(pretty(tokens));
}

fn count(tokens: &TokenStream) -> usize {
    tokens.clone().into_iter().fold(0, |sum, token| match token {
        TokenTree::Group(group) => sum + 2 + count(&group.stream()),
        _ => sum + 1,
    })
}

/// Every literal of an expansion.
fn literals(tokens: TokenStream, found: &mut Vec<syn::Lit>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => literals(group.stream(), found),
            TokenTree::Literal(literal) => found.push(syn::Lit::new(literal)),
            _ => {}
        }
    }
}

/// Pitfall B13: no float of a model is printed as a literal, which negative and non-finite ones break; they are bit patterns.
#[test]
fn b13_no_float_of_a_model_is_a_literal() {
    let models = [digit_cnn(4), resnet(), mobilenet(), convnext(), yolox()];
    for model in models {
        let mut found = Vec::new();
        literals(expansion(model.to_bytes().unwrap(), quote!(Net = "models/net.nk")), &mut found);
        assert!(found.len() > 20);
        // But the zeros that an output begins with.
        let of_the_model = |literal: &syn::Lit| match literal {
            syn::Lit::Float(float) => float.base10_digits() != "0.0",
            _ => false,
        };
        assert!(!found.iter().any(of_the_model));
    }
}

/// Pitfall B37: constant evaluation of weights. Whatever is computed from weights is computed by the macro: the
/// expansion holds no loop and no function that is evaluated at compile time but the constructors.
#[test]
fn b37_no_loop_is_left_to_constant_evaluation() {
    struct Walk {
        const_functions: Vec<String>,
        loops: usize,
    }
    impl<'a> syn::visit::Visit<'a> for Walk {
        fn visit_signature(&mut self, signature: &'a syn::Signature) {
            if signature.constness.is_some() {
                self.const_functions.push(signature.ident.to_string());
            }
        }
        fn visit_expr_for_loop(&mut self, _: &'a syn::ExprForLoop) {
            self.loops += 1;
        }
        fn visit_expr_while(&mut self, _: &'a syn::ExprWhile) {
            self.loops += 1;
        }
        fn visit_expr_loop(&mut self, _: &'a syn::ExprLoop) {
            self.loops += 1;
        }
    }
    let walk = |filters| {
        let bytes = digit_cnn(filters).to_bytes().unwrap();
        let file = syn::parse2(expansion(bytes, quote!(Net = "models/net.nk"))).unwrap();
        let mut walk = Walk { const_functions: Vec::new(), loops: 0 };
        syn::visit::Visit::visit_file(&mut walk, &file);
        (walk.const_functions, walk.loops)
    };
    let (functions, loops) = walk(4);
    assert_eq!(loops, 0);
    assert!(functions.iter().all(|name| name == "new"), "{functions:?}");
    assert_eq!(walk(20_000), (functions, loops));
}

/// Pitfalls B36 and B41: what compilers and editors chew on does not grow with the weights.
#[test]
fn b36_b41_the_number_of_tokens_does_not_depend_on_the_weights() {
    let tokens = |filters| {
        let bytes = digit_cnn(filters).to_bytes().unwrap();
        (bytes.len(), count(&expansion(bytes, quote!(Net = "models/net.nk"))))
    };
    let (small_bytes, small) = tokens(4);
    let (large_bytes, large) = tokens(20_000);
    assert!(large_bytes > 1000 * small_bytes, "{large_bytes} bytes");
    assert_eq!(small, large);
    let lines = pretty(expansion(digit_cnn(4).to_bytes().unwrap(), quote!(Net = "models/net.nk")));
    assert!(lines.lines().count() < 250, "{} lines", lines.lines().count());
}

/// A crate may have constants of any name. What generated code binds is hidden from them by a function of that name.
#[test]
fn bindings_are_functions_before() {
    #[derive(Default)]
    struct Walk {
        bound: BTreeSet<String>,
        hidden: BTreeSet<String>,
    }
    impl<'a> syn::visit::Visit<'a> for Walk {
        fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
            self.bound.insert(pattern.ident.to_string());
        }
        fn visit_use_rename(&mut self, rename: &'a syn::UseRename) {
            if rename.ident == "binding" {
                self.hidden.insert(rename.rename.to_string());
            }
        }
    }
    let models = [
        format_support::worked_mlp(),
        format_support::int8_cnn(),
        digit_cnn(4),
        resnet(),
        mobilenet(),
        convnext(),
        yolox(),
    ];
    let mut all = BTreeSet::new();
    for model in models {
        let bytes = model.to_bytes().unwrap();
        for invocation in [quote!(Net = "models/net.nk"), quote!(Net = "models/net.nk", batch = 2)]
        {
            let tokens = expansion(bytes.clone(), invocation);
            let mut walk = Walk::default();
            syn::visit::Visit::visit_file(&mut walk, &syn::parse2(tokens).unwrap());
            assert!(walk.bound.is_subset(&walk.hidden), "{:?} {:?}", walk.bound, walk.hidden);
            all.extend(walk.bound);
        }
    }
    for name in ["kernels", "x1", "observe", "count", "sample", "dense"] {
        assert!(all.contains(name), "{name} {all:?}");
    }
}

/// What `cfg` leaves out must be left out as a whole.
#[test]
fn conditions_stand_on_every_item() {
    let bytes = digit_cnn(4).to_bytes().unwrap();
    let tokens = expansion(
        bytes,
        quote!(
            #[cfg(feature = "x")]
            #[derive(Debug)]
            Net = "models/net.nk"
        ),
    );
    let file: syn::File = syn::parse2(tokens).unwrap();
    assert_eq!(file.items.len(), 2);
    for item in file.items {
        let attributes = match item {
            syn::Item::Struct(item) => item.attrs,
            syn::Item::Const(item) => item.attrs,
            _ => panic!("an item of another kind"),
        };
        assert!(attributes.iter().any(|attribute| attribute.path().is_ident("cfg")));
    }
}
