//! Whole networks in the `.nk` format with random weights: MobileNetV4-Conv-Small, ResNet-18, ConvNeXt
//! V2-Atto and a YOLOX detector; and small networks around each kind of layer ([`around`]) and around
//! batch norms ([`batch_norms`]), and a few that hold everything and fit a microcontroller ([`small`]).
//!
//! Seeds are fixed and nothing in a file depends on the machine. Weights are scaled so that outputs are of
//! order 1 whatever the depth. Each file carries test cases whose outputs come from an independent evaluator:
//! they are kept in `expected/`, which `expected.py` writes.
//!
//! The files are too large for a repository (44 MB in one case), so whoever wants one makes it: in a build
//! script, in a test, or by hand with `cargo run -p netkit-backbones -- FOLDER`.

mod around;
mod batch_norm;
mod convnext_v2;
mod mobilenet_v4;
mod net;
mod quantize;
mod random;
mod resnet;
mod small;
mod yolox;

pub use around::around;
pub use batch_norm::{BatchNorms, batch_norms};
use netkit_core::format::{CaseData, ModelDescription, OwnedCase};
pub use small::{Small, small};

/// How far an output may be from the expected one. Outputs are of order 1.
pub const TOLERANCE: f32 = 1e-4;

/// Test cases of each network.
const CASES: u64 = 2;

/// A network that can be made.
#[derive(Clone, Copy, Debug)]
pub struct Backbone {
    /// Name of its file, without extension.
    pub name: &'static str,
    build: fn() -> ModelDescription,
    expected: &'static str,
}

/// Every network.
pub const ALL: [Backbone; 4] = [
    Backbone {
        name: "mobilenetv4_conv_small",
        build: mobilenet_v4::conv_small,
        expected: include_str!("../expected/mobilenetv4_conv_small.txt"),
    },
    Backbone {
        name: "resnet18",
        build: resnet::resnet18,
        expected: include_str!("../expected/resnet18.txt"),
    },
    Backbone {
        name: "convnextv2_atto",
        build: convnext_v2::atto,
        expected: include_str!("../expected/convnextv2_atto.txt"),
    },
    Backbone {
        name: "yolox_detector",
        build: yolox::detector,
        expected: include_str!("../expected/yolox_detector.txt"),
    },
];

impl Backbone {
    /// The network of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|backbone| backbone.name == name)
    }

    /// The network with its test cases.
    ///
    /// # Panics
    ///
    /// If the expected outputs are not numbers.
    #[must_use]
    pub fn model(&self) -> ModelDescription {
        let mut model = (self.build)();
        let expected: Vec<f32> = self
            .expected
            .lines()
            .map(|line| line.parse().unwrap_or_else(|_| panic!("{}: {line:?}", self.name)))
            .collect();
        let outputs = expected.len() / CASES as usize;
        let inputs = model.input.elements();
        model.tolerance = TOLERANCE;
        model.cases = (0..CASES)
            .zip(expected.chunks_exact(outputs))
            .map(|(case, expected)| OwnedCase {
                name: format!("input {case}"),
                label: None,
                input: CaseData::F32(random::Random::new(case).spread(inputs, 1.0)),
                expected: expected.to_vec(),
            })
            .collect();
        model
    }

    /// The bytes of its file.
    ///
    /// # Panics
    ///
    /// If the network breaks a rule of the format.
    #[must_use]
    pub fn file(&self) -> Vec<u8> {
        self.model().to_bytes().unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}
