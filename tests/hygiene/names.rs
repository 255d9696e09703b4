//! Models of every name, among things of every name: what generated code says means the same everywhere.
#![deny(warnings, clippy::all, clippy::pedantic)]
#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    dead_code,
    clippy::wrong_self_convention,
    clippy::new_ret_no_self,
    clippy::self_named_constructors,
    clippy::must_use_candidate,
    clippy::len_without_is_empty,
    clippy::float_cmp,
    missing_docs,
    uncommon_codepoints,
    mixed_script_confusables,
    reason = "names that get in the way"
)]

/// Types of these names, int8 in a module of its own, float in a function.
macro_rules! named {
    ($($module:ident: $name:ident)*) => { $(
        pub mod $module {
            netkit::model!(#[derive(Debug)] pub $name = "models/cnn_int8.nk");
            pub const LEN: ::core::primitive::usize = $name::INPUT_LEN;
            pub fn both() -> ::core::primitive::usize {
                netkit::model!(#[derive(Debug)] $name = "models/mlp.nk");
                $name::INPUT_LEN + LEN
            }
            pub fn batch() -> ::core::primitive::usize {
                netkit::model!(#[derive(Debug)] $name = "models/cnn_int8.nk", batch = 2);
                $name::BATCH
            }
        }
    )* };
}
named! {
    a1: nk
    a2: core
    a3: std
    a4: alloc
    a5: private
    a6: Modelnk
    a7: ModelModelnk
    a8: binding
    b1: i8
    b2: f32
    b3: u8
    b4: usize
    b5: bool
    b6: str
    c1: Result
    c2: Option
    c3: Some
    c4: None
    c5: Box
    c6: Default
    c7: FnMut
    c8: Send
    c9: Sized
    d1: Model
    d2: QuantizedModel
    d3: Arena
    d4: Region
    d5: Aligned
    d6: Layer
    d7: Step
    d8: Zero
    d9: Kernels
    e1: Input
    e2: Output
    e3: QuantizedInput
    e4: NAME
    e5: LAYERS
    e6: TENSORS
    e7: FILTERS
    e8: OPERATOR_0
    e9: CASES
    f1: input
    f2: output
    f3: arena
    f4: scratch
    f5: run
    f6: observe
    f7: forward
    f8: new
    f9: x0
    f10: count
    f11: sample
    f12: dense
    f13: BatchModel
    g1: r#type
    g2: r#fn
    g3: r#async
    g4: r#nk
    g5: r#try
    h1: Größe
    h2: 神经网络
    h3: _1
    h4: __
    h5: a_very_long_name_of_a_hundred_and_more_letters_that_nobody_would_write_but_that_the_compiler_takes_like_any_other_
    h6: macro_rules
    h7: union
    h8: auto
}

/// `nk` from a file's name has a capital, as every type has.
pub mod of_files {
    netkit::model!(#[derive(Debug)] pub "models/nk.nk");
    netkit::model!(#[derive(Debug)] pub "models/type.nk");
    netkit::model!(#[derive(Debug)] pub "models/ÜBER größe-神经.v2.nk");
    netkit::model!(#[derive(Debug)] pub First = "models/1st.nk");
    pub const ALL: usize = Nk::INPUT_LEN + Type::INPUT_LEN + ÜBERGröße神经V2::INPUT_LEN;
}

/// Values that every binding of generated code could be taken for, and traits whose methods every type has.
pub mod values {
    pub const arena: u8 = 0;
    pub const file: u8 = 1;
    pub static input: u8 = 2;
    pub const kernels: u8 = 3;
    pub static observe: u8 = 4;
    pub struct output;
    pub struct quantized();
    pub const room: u8 = 5;
    pub enum Of {
        scratch,
        y,
    }
    pub use self::Of::{scratch, y};
    pub const x0: u8 = 6;
    pub const x1: u8 = 7;
    pub const bytes: u8 = 8;
    pub const FILE: u8 = 9;
    pub const ALIGNED: u8 = 10;
    pub const count: u8 = 11;
    pub static sample: u8 = 12;
    pub const dense: u8 = 13;

    pub trait Everything: Sized {
        fn as_f32(self) -> f32 {
            0.0
        }
        fn as_i8(self) -> f32 {
            0.0
        }
        fn as_i32(self) -> f32 {
            0.0
        }
        fn as_bytes(self) -> f32 {
            0.0
        }
        fn as_multipliers(self) -> f32 {
            0.0
        }
        fn form(self) -> f32 {
            0.0
        }
        fn len(self) -> f32 {
            0.0
        }
        fn views(self) -> f32 {
            0.0
        }
        fn forward(self) -> f32 {
            0.0
        }
        fn forward_into(self) -> f32 {
            0.0
        }
        fn forward_batch_into(self) -> f32 {
            0.0
        }
        fn forward_i8_batch_into(self) -> f32 {
            0.0
        }
        fn next_multiple_of(self) -> f32 {
            0.0
        }
        fn unwrap_or(self) -> f32 {
            0.0
        }
        fn self_test(self) -> f32 {
            0.0
        }
        fn conv2d_f32(self) -> f32 {
            0.0
        }
        fn new() -> f32 {
            0.0
        }
    }
    impl<T> Everything for T {}

    netkit::model!(#[derive(Debug)] pub Float = "models/cnn.nk");
    netkit::model!(#[derive(Debug)] pub Mlp = "models/mlp.nk");
    netkit::model!(#[derive(Debug)] pub Quantized = "models/cnn_int8.nk");
    netkit::model!(#[derive(Debug)] pub Batches = "models/mlp.nk", batch = 3);
    netkit::model!(#[derive(Debug)] pub QuantizedBatches = "models/cnn_int8.nk", batch = 3);
    /// The loader's bytes.
    pub static BYTES: &[u8] = netkit::include_model!("models/mlp.nk");
}

#[test]
fn runs() {
    assert_eq!(a1::nk::new_boxed().self_test().unwrap().cases, 2);
    assert_eq!(values::Mlp::new().forward(&[1.0, 2.0]), [3.0, 3.0]);
    assert!(values::Float::new().forward(&[0.5; 72]).iter().all(|x| x.is_finite()));
    assert_eq!(values::Quantized::new_boxed().self_test().unwrap().cases, 2);
    assert_eq!(values::Batches::new().forward_batch(&[[1.0, 2.0]; 3]), [[3.0, 3.0]; 3]);
    let mut quantized = values::QuantizedBatches::new_boxed();
    assert_eq!(quantized.self_test().unwrap().cases, 2);
    let inputs = [-128, -5, 0, 1, 3, 90, 127].map(|x| [x; values::QuantizedBatches::INPUT_LEN]);
    let mut outputs = [[0; values::QuantizedBatches::OUTPUT_LEN]; 7];
    quantized.forward_i8_batch_into(&inputs, &mut outputs);
    assert_eq!(outputs, inputs.map(|input| quantized.forward_i8(&input)));
    assert_eq!(quantized.forward_i8_batch(&[inputs[1]; 3]), [outputs[1]; 3]);
    assert_eq!(values::BYTES[..4], *b"NKIT");
    assert_eq!(of_files::First::new().forward(&[1.0, 2.0]), [3.0, 3.0]);
}
