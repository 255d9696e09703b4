//! The graph every importer builds and every rewrite works on: operators over maps stored NHWC, with
//! the constants they own, whatever the source's layout was.
//!
//! It can say more than a `.nk` file can hold — branches, groups, uneven strides — so that what stands
//! in the way is decided in one place, [`crate::to_nk`].

use crate::obstacle::Origin;
use netkit_core::op::Padding;
use netkit_core::tensor::Shape;
use std::sync::Arc;

/// A value: an input of the graph or the output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ValueId(usize);

impl ValueId {
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

/// Operators in execution order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    /// The shape of each value: `[height, width, channels]`, or `[rows, features]`.
    shapes: Vec<Shape>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<ValueId>,
    pub(crate) outputs: Vec<ValueId>,
}

/// An operator applied to values.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) op: Op,
    pub(crate) inputs: Vec<ValueId>,
    pub(crate) output: ValueId,
    /// The source's node, for messages.
    pub(crate) origin: Arc<Origin>,
}

/// What a node computes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Dense(Dense),
    Conv2d(Conv2d),
    MaxPool2d(Window),
    /// Padding does not count.
    AveragePool2d(Window),
    Affine(Affine),
    Activation(Activation),
    /// Something that was refused. It keeps the graph connected, so that the search for obstacles can
    /// go on behind it.
    Refused,
}

/// `y[r, o] = activation(bias[o] + Σ_i weights[o, i] · x[r, i])`; a map is read in its stored order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dense {
    pub(crate) in_features: usize,
    pub(crate) out_features: usize,
    /// `[out_features, in_features]`.
    pub(crate) weights: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) activation: Activation,
}

/// A convolution in `groups` equal parts: output channel `o` reads the `in_channels / groups` channels
/// of its group. A depthwise convolution has as many groups as input channels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conv2d {
    pub(crate) window: Window,
    pub(crate) in_channels: usize,
    pub(crate) out_channels: usize,
    pub(crate) groups: usize,
    /// `[out_channels, kernel_height, kernel_width, in_channels / groups]`.
    pub(crate) weights: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) activation: Activation,
}

/// `activation(x · scale[c] + shift[c])`, `c` the last axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Affine {
    pub(crate) scale: Channels,
    pub(crate) shift: Channels,
    pub(crate) activation: Activation,
}

/// A number for each channel, in double precision so that what is folded into weights is rounded once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Channels {
    /// The same for all.
    Same(f64),
    /// One for each.
    Each(Vec<f64>),
}

impl Channels {
    /// That of `channel`; there is one for each channel of the value it is applied to.
    pub(crate) fn get(&self, channel: usize) -> f64 {
        match self {
            Self::Same(value) => *value,
            Self::Each(values) => values.get(channel).copied().unwrap_or_default(),
        }
    }

    /// One for each of `channels` channels, rounded.
    pub(crate) fn to_rounded(&self, channels: usize) -> Vec<f32> {
        (0..channels).map(|channel| self.get(channel) as f32).collect()
    }
}

/// A window sliding over height and width; pairs are (height, width). Padding is resolved to numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) kernel: (u32, u32),
    pub(crate) stride: (u32, u32),
    pub(crate) dilation: (u32, u32),
    pub(crate) padding: Padding,
    /// Height and width of the output.
    pub(crate) output: (u32, u32),
}

/// An element-wise function, or softmax over all elements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Activation {
    #[default]
    None,
    Relu,
    Relu6,
    LeakyRelu(f32),
    Sigmoid,
    Tanh,
    Softmax,
}

impl Activation {
    /// The one function that equals `self` followed by `next`, if it is among these.
    pub(crate) fn then(self, next: Self) -> Option<Self> {
        use Activation::{LeakyRelu, None, Relu, Relu6, Sigmoid, Softmax, Tanh};
        match (self, next) {
            (first, None) => Some(first),
            (None, next) => Some(next),
            (Relu | Relu6, Relu6) | (Relu6, Relu | LeakyRelu(_)) => Some(Relu6),
            (Relu, Relu | LeakyRelu(_)) => Some(Relu),
            // What is never negative and at most 1 passes through.
            (Sigmoid | Softmax, Relu | Relu6 | LeakyRelu(_)) => Some(self),
            (LeakyRelu(slope), Relu) if slope >= 0.0 => Some(Relu),
            (LeakyRelu(slope), Relu6) if slope >= 0.0 => Some(Relu6),
            (Tanh | LeakyRelu(_) | Relu | Relu6 | Sigmoid | Softmax, _) => Option::None,
        }
    }

    /// Whether a larger input never gives a smaller output, each element by itself: then it may as
    /// well be applied before a maximum as after.
    pub(crate) fn is_monotone(self) -> bool {
        match self {
            Self::None | Self::Relu | Self::Relu6 | Self::Sigmoid | Self::Tanh => true,
            Self::LeakyRelu(slope) => slope >= 0.0,
            Self::Softmax => false,
        }
    }
}

impl Op {
    /// Where an activation goes that is fused into this operator: behind the one that is there.
    pub(crate) fn activation_mut(&mut self) -> Option<&mut Activation> {
        match self {
            Self::Dense(dense) => Some(&mut dense.activation),
            Self::Conv2d(conv) => Some(&mut conv.activation),
            Self::Affine(affine) => Some(&mut affine.activation),
            Self::Activation(activation) => Some(activation),
            Self::MaxPool2d(_) | Self::AveragePool2d(_) | Self::Refused => None,
        }
    }
}

impl Graph {
    /// A new value of this shape.
    pub(crate) fn add_value(&mut self, shape: Shape) -> ValueId {
        self.shapes.push(shape);
        ValueId(self.shapes.len() - 1)
    }

    /// Appends a node and gives its output, a value of shape `output`.
    pub(crate) fn add_node(
        &mut self,
        op: Op,
        inputs: Vec<ValueId>,
        output: Shape,
        origin: &Arc<Origin>,
    ) -> ValueId {
        let output = self.add_value(output);
        self.nodes.push(Node { op, inputs, output, origin: origin.clone() });
        output
    }

    pub(crate) fn value_count(&self) -> usize {
        self.shapes.len()
    }

    pub(crate) fn shape(&self, value: ValueId) -> Shape {
        self.shapes[value.0]
    }
}

#[cfg(test)]
mod tests {
    use super::Activation::{self, LeakyRelu, None, Relu, Relu6, Sigmoid, Softmax, Tanh};

    fn evaluate(activation: Activation, x: f64) -> f64 {
        match activation {
            None => x,
            Relu => x.max(0.0),
            Relu6 => x.clamp(0.0, 6.0),
            LeakyRelu(slope) => {
                if x > 0.0 {
                    x
                } else {
                    f64::from(slope) * x
                }
            }
            Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Tanh => x.tanh(),
            Softmax => unreachable!("not element-wise"),
        }
    }

    #[test]
    fn joined_activations_compute_the_same() {
        let all = [None, Relu, Relu6, LeakyRelu(0.1), LeakyRelu(-0.5), Sigmoid, Tanh];
        let mut joined = 0;
        for first in all {
            for next in all {
                let Some(one) = first.then(next) else { continue };
                joined += 1;
                for step in -40..40 {
                    let x = f64::from(step) / 4.0;
                    assert_eq!(
                        evaluate(one, x),
                        evaluate(next, evaluate(first, x)),
                        "{first:?} then {next:?} at {x}"
                    );
                }
            }
        }
        assert_eq!(joined, 7 + 6 + 4 + 4 + 4 + 2);
    }

    #[test]
    fn monotone_activations_never_fall() {
        for activation in [None, Relu, Relu6, LeakyRelu(0.1), Sigmoid, Tanh] {
            assert!(activation.is_monotone());
            for step in -40..40 {
                let x = f64::from(step) / 4.0;
                assert!(evaluate(activation, x) <= evaluate(activation, x + 0.25));
            }
        }
        assert!(!LeakyRelu(-0.1).is_monotone());
        assert!(!Softmax.is_monotone());
    }
}
