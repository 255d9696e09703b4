//! Batch norms in every place where folding them into a convolution is right, wrong or impossible.

use netkit_core::format::{
    Activation, BatchNorm2d, CaseData, Conv2d, DepthwiseConv2d, FeatureTap, Geometry, Layer,
    ModelDescription, NetworkKind, OwnedCase, OwnedPair, OwnedTensor, Pool2d, TensorData,
};
use netkit_core::tensor::Shape;

/// A small network with batch norms, with a test case whose output is computed in float64, layer by layer.
#[derive(Clone, Debug)]
pub struct BatchNorms {
    /// What it is about.
    pub name: &'static str,
    /// The network.
    pub model: ModelDescription,
    /// Batch norms that must stay operators of their own.
    pub unfolded: usize,
}

const CHANNELS: usize = 3;
const WEIGHTS: [[f32; CHANNELS]; CHANNELS] =
    [[1.5, -2.0, 0.5], [0.25, 4.0, -1.0], [-1.0, 0.5, 3.0]];
const BIASES: [f32; CHANNELS] = [1.0, -0.75, 2.0];
const GAMMA: [f64; CHANNELS] = [-2.0, 0.0, 0.5];
const BETA: [f64; CHANNELS] = [3.0, -1.25, 0.0];
const MEAN: [f64; CHANNELS] = [0.5, 10.0, -0.25];
const VARIANCE: [f64; CHANNELS] = [0.25, 4.0, 1e-6];
const EPSILON: f64 = 1e-3;

/// One row of pixels.
const INPUT: [[f32; CHANNELS]; 4] =
    [[1.0, 2.0, -3.0], [-0.5, 0.0, 4.0], [0.0, 0.0, 0.0], [7.0, -1.5, 0.25]];

#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// A 1×1 convolution.
    Conv(Activation),
    Depthwise,
    MaxPool,
    Tap,
    BatchNorm,
}

/// Every network.
#[must_use]
pub fn batch_norms() -> Vec<BatchNorms> {
    use Part::{BatchNorm, Conv, Depthwise, MaxPool, Tap};
    const PLAIN: Part = Conv(Activation::None);
    [
        // Negative and zero gamma, and a bias that must be scaled too.
        ("behind_a_convolution", &[PLAIN, BatchNorm][..], 0),
        ("behind_a_depthwise_convolution", &[Depthwise, BatchNorm], 0),
        ("behind_an_activation", &[Conv(Activation::Relu), BatchNorm], 1),
        // The tap keeps what the convolution gives, not what the batch norm makes of it.
        ("behind_a_tap", &[PLAIN, Tap, BatchNorm], 1),
        ("behind_another", &[PLAIN, BatchNorm, BatchNorm], 1),
        ("behind_a_pool", &[PLAIN, MaxPool, BatchNorm], 1),
        ("in_front", &[BatchNorm, PLAIN], 1),
    ]
    .map(|(name, parts, unfolded)| BatchNorms { name, model: network(parts), unfolded })
    .into()
}

fn scales() -> [f32; CHANNELS] {
    core::array::from_fn(|c| (GAMMA[c] / (VARIANCE[c] + EPSILON).sqrt()) as f32)
}

fn shifts() -> [f32; CHANNELS] {
    let scales = scales();
    core::array::from_fn(|c| (BETA[c] - MEAN[c] * f64::from(scales[c])) as f32)
}

/// What a part makes of a pixel.
fn apply(part: Part, x: [f64; CHANNELS]) -> [f64; CHANNELS] {
    let (scales, shifts) = (scales(), shifts());
    core::array::from_fn(|c| match part {
        Part::Conv(activation) => {
            let products = WEIGHTS[c].iter().zip(x).map(|(&weight, x)| f64::from(weight) * x);
            let sum = f64::from(BIASES[c]) + products.sum::<f64>();
            if activation == Activation::Relu { sum.max(0.0) } else { sum }
        }
        Part::Depthwise => f64::from(WEIGHTS[c][0]) * x[c] + f64::from(BIASES[c]),
        Part::BatchNorm => x[c] * f64::from(scales[c]) + f64::from(shifts[c]),
        Part::MaxPool | Part::Tap => x[c],
    })
}

fn network(parts: &[Part]) -> ModelDescription {
    let channels = CHANNELS as u32;
    let point =
        Geometry { kernel_h: 1, kernel_w: 1, stride: 1, top: 0, left: 0, bottom: 0, right: 0 };
    let has_a_code = "a window without padding has a code";
    let mut model =
        ModelDescription::new(NetworkKind::Cnn, shape(&[1, INPUT.len() as u32, channels]));
    for &part in parts {
        match part {
            Part::Conv(activation) => {
                let layer = Conv2d::from_geometry(&point, channels, activation, 0.01);
                let pair = pair(&[channels, 1, 1, channels], &WEIGHTS.concat(), &BIASES);
                model.push(Layer::Conv2d(layer.expect(has_a_code)), [pair]);
            }
            Part::Depthwise => {
                let layer =
                    DepthwiseConv2d::from_geometry(&point, channels, Activation::None, 0.01);
                let pair = pair(&[channels, 1, 1], &WEIGHTS.map(|row| row[0]), &BIASES);
                model.push(Layer::DepthwiseConv2d(layer.expect(has_a_code)), [pair]);
            }
            Part::MaxPool => {
                let layer = Pool2d::from_geometry(&point).expect(has_a_code);
                model.push(Layer::MaxPool2d(layer), []);
            }
            Part::Tap => model.push(Layer::FeatureTap(FeatureTap { channels, tap_id: 0 }), []),
            Part::BatchNorm => {
                let pair = pair(&[channels], &scales(), &shifts());
                model.push(Layer::BatchNorm2d(BatchNorm2d { channels }), [pair]);
            }
        }
    }
    let outputs = INPUT.map(|pixel| {
        let pixel = pixel.map(f64::from);
        parts.iter().fold(pixel, |x, &part| apply(part, x)).map(|y| y as f32)
    });
    let largest = outputs.as_flattened().iter().fold(1.0f32, |most, y| most.max(y.abs()));
    // Folding rounds a weight, a product and a sum more than exact arithmetic does.
    model.tolerance = 16.0 * f32::EPSILON * largest;
    model.cases.push(OwnedCase {
        name: "pixels".into(),
        label: None,
        input: CaseData::F32(INPUT.concat()),
        expected: outputs.concat(),
    });
    model
}

fn shape(dims: &[u32]) -> Shape {
    Shape::new(dims).expect("one to four dimensions that are not 0")
}

fn pair(dims: &[u32], weights: &[f32], biases: &[f32]) -> OwnedPair {
    OwnedPair {
        weight: OwnedTensor { shape: shape(dims), data: TensorData::F32(weights.to_vec()) },
        bias: OwnedTensor {
            shape: shape(&[biases.len() as u32]),
            data: TensorData::F32(biases.to_vec()),
        },
    }
}
