//! Folding and fusion: fewer operators that compute the same.
//!
//! Nothing here knows a source or a target. A value that something else reads too, or that is an output
//! of the graph, is never changed.

use crate::graph::{Activation, Affine, Channels, Dense, Graph, Node, Op, ValueId};

/// Rewrites `graph` until nothing more folds. One pass suffices: each node is looked at after
/// everything it reads.
pub(crate) fn rewrite(graph: &mut Graph) {
    let mut rewriter = Rewriter::new(graph);
    for index in 0..rewriter.graph.nodes.len() {
        rewriter.visit(index);
    }
    let mut removed = rewriter.removed.into_iter();
    graph.nodes.retain(|_| removed.next() == Some(false));
}

struct Rewriter<'g> {
    graph: &'g mut Graph,
    /// The node that produces each value.
    producer: Vec<Option<usize>>,
    /// How many nodes read each value, and whether it is an output counts as one.
    uses: Vec<usize>,
    removed: Vec<bool>,
}

impl<'g> Rewriter<'g> {
    fn new(graph: &'g mut Graph) -> Self {
        let mut producer = vec![None; graph.value_count()];
        let mut uses = vec![0; graph.value_count()];
        for (index, node) in graph.nodes.iter().enumerate() {
            producer[node.output.index()] = Some(index);
            node.inputs.iter().for_each(|input| uses[input.index()] += 1);
        }
        graph.outputs.iter().for_each(|output| uses[output.index()] += 1);
        let removed = vec![false; graph.nodes.len()];
        Self { graph, producer, uses, removed }
    }

    fn visit(&mut self, index: usize) {
        match &self.graph.nodes[index].op {
            Op::Affine(affine) if is_identity(affine) => self.remove_identity(index),
            Op::Affine(_) => self.fold_affine_back(index),
            Op::Activation(Activation::None) => self.remove_identity(index),
            Op::Activation(_) => self.fuse_activation(index),
            Op::Dense(_) => self.fold_affine_forward(index),
            _ => {}
        }
    }

    /// The only input of node `index`, and the node that produces it if nothing else reads it.
    fn private_producer(&self, index: usize) -> Option<usize> {
        let &[input] = self.graph.nodes[index].inputs.as_slice() else { return None };
        self.producer[input.index()].filter(|_| self.uses[input.index()] == 1)
    }

    /// Lets `earlier` produce what `later` did, which disappears.
    fn absorb(&mut self, earlier: usize, later: usize) {
        let output = self.graph.nodes[later].output;
        self.graph.nodes[earlier].output = output;
        self.producer[output.index()] = Some(earlier);
        self.removed[later] = true;
    }

    fn remove_identity(&mut self, index: usize) {
        // Where the input has other readers, or is the graph's own, a copy would have to stay.
        if let Some(producer) = self.private_producer(index) {
            self.absorb(producer, index);
            return;
        }
        let Node { ref inputs, output, .. } = self.graph.nodes[index];
        let &[input] = inputs.as_slice() else { return };
        if self.graph.outputs.contains(&output) {
            return;
        }
        self.redirect(index, output, input);
    }

    /// Lets the readers of `from`, which node `index` produced, read `to`.
    fn redirect(&mut self, index: usize, from: ValueId, to: ValueId) {
        for node in &mut self.graph.nodes[index + 1..] {
            node.inputs.iter_mut().filter(|input| **input == from).for_each(|input| *input = to);
        }
        self.uses[to.index()] += self.uses[from.index()];
        self.uses[to.index()] -= 1;
        self.removed[index] = true;
    }

    /// A scale and shift after a linear operator becomes part of its weights.
    fn fold_affine_back(&mut self, index: usize) {
        let Some(producer) = self.private_producer(index) else { return };
        let (before, after) = self.graph.nodes.split_at_mut(index);
        // Activations are fused in order, so this one has none yet.
        let Op::Affine(affine) = &after[0].op else { return };
        let folded = match &mut before[producer].op {
            Op::Conv2d(conv) if conv.activation == Activation::None => {
                let taps = conv.weights.len() / conv.out_channels;
                scale_rows(&mut conv.weights, &mut conv.bias, taps, affine)
            }
            Op::Dense(dense) if dense.activation == Activation::None => {
                scale_rows(&mut dense.weights, &mut dense.bias, dense.in_features, affine)
            }
            Op::Affine(first) if first.activation == Activation::None => {
                match compose(first, affine) {
                    Some(composed) => {
                        *first = composed;
                        true
                    }
                    None => false,
                }
            }
            _ => false,
        };
        if folded {
            self.absorb(producer, index);
        }
    }

    /// An activation becomes part of the operator before it; past maxima if it is monotone, since the
    /// largest of the results is the result of the largest.
    fn fuse_activation(&mut self, index: usize) {
        let Op::Activation(activation) = self.graph.nodes[index].op else { return };
        let Some(direct) = self.private_producer(index) else { return };
        let mut target = direct;
        while activation.is_monotone() && matches!(self.graph.nodes[target].op, Op::MaxPool2d(_)) {
            match self.private_producer(target) {
                Some(producer) => target = producer,
                None => return,
            }
        }
        let slot = self.graph.nodes[target].op.activation_mut();
        if let Some(first) = slot
            && let Some(joined) = first.then(activation)
        {
            *first = joined;
            self.absorb(direct, index);
        }
    }

    /// A scale and shift that could not be folded back becomes part of the dense layer behind it: no
    /// padding stands between them, so the two are one linear map.
    fn fold_affine_forward(&mut self, index: usize) {
        let Some(producer) = self.private_producer(index) else { return };
        let &[input] = self.graph.nodes[producer].inputs.as_slice() else { return };
        // In a map it may as well stay a layer of its own, as the source has it.
        if self.graph.shape(input).as_map().is_some() {
            return;
        }
        let (before, after) = self.graph.nodes.split_at_mut(index);
        let (Op::Affine(affine), Op::Dense(dense)) = (&before[producer].op, &mut after[0].op)
        else {
            return;
        };
        if affine.activation != Activation::None {
            return;
        }
        if !scale_columns(dense, affine) {
            return;
        }
        self.graph.nodes[index].inputs = vec![input];
        self.removed[producer] = true;
    }
}

fn is_identity(affine: &Affine) -> bool {
    let all = |channels: &Channels, value: f64| match channels {
        Channels::Same(same) => *same == value,
        Channels::Each(each) => each.iter().all(|it| *it == value),
    };
    affine.activation == Activation::None && all(&affine.scale, 1.0) && all(&affine.shift, 0.0)
}

/// Each row of weights times its scale; `bias · scale + shift`. Computed in double precision and
/// rounded once. Nothing happens if a result is not finite.
fn scale_rows(weights: &mut [f32], bias: &mut [f32], row: usize, affine: &Affine) -> bool {
    let scaled_bias: Vec<f32> = bias
        .iter()
        .enumerate()
        .map(|(channel, &bias)| apply(affine, channel, bias.into()) as f32)
        .collect();
    let scaled: Vec<f32> = weights
        .chunks_exact(row.max(1))
        .enumerate()
        .flat_map(|(channel, row)| {
            let scale = affine.scale.get(channel);
            row.iter().map(move |&weight| (f64::from(weight) * scale) as f32)
        })
        .collect();
    if !scaled.iter().chain(&scaled_bias).all(|value| value.is_finite()) {
        return false;
    }
    weights.copy_from_slice(&scaled);
    bias.copy_from_slice(&scaled_bias);
    true
}

fn apply(affine: &Affine, channel: usize, x: f64) -> f64 {
    x * affine.scale.get(channel) + affine.shift.get(channel)
}

/// `W · (x · scale + shift) + b = (W · diag(scale)) · x + (b + W · shift)`.
fn scale_columns(dense: &mut Dense, affine: &Affine) -> bool {
    let mut weights = dense.weights.clone();
    let mut bias = dense.bias.clone();
    for (row, bias) in weights.chunks_exact_mut(dense.in_features.max(1)).zip(&mut bias) {
        let mut sum = f64::from(*bias);
        for (channel, weight) in row.iter_mut().enumerate() {
            let value = f64::from(*weight);
            sum += value * affine.shift.get(channel);
            *weight = (value * affine.scale.get(channel)) as f32;
        }
        *bias = sum as f32;
    }
    if !weights.iter().chain(&bias).all(|value| value.is_finite()) {
        return false;
    }
    (dense.weights, dense.bias) = (weights, bias);
    true
}

/// The one scale and shift that equals `first` followed by `next`.
fn compose(first: &Affine, next: &Affine) -> Option<Affine> {
    let join = |a: &Channels, b: &Channels, f: &dyn Fn(usize) -> f64| match (a, b) {
        (Channels::Same(_), Channels::Same(_)) => Channels::Same(f(0)),
        (Channels::Each(each), _) | (_, Channels::Each(each)) => {
            Channels::Each((0..each.len()).map(f).collect())
        }
    };
    let scale = join(&first.scale, &next.scale, &|channel| {
        first.scale.get(channel) * next.scale.get(channel)
    });
    let both_shift = match (&first.shift, &next.scale) {
        (Channels::Same(_), Channels::Same(_)) => &next.shift,
        (Channels::Each(_), _) => &first.shift,
        (_, scale) => scale,
    };
    let shift =
        join(both_shift, &next.shift, &|channel| apply(next, channel, first.shift.get(channel)));
    let finite = |channels: &Channels| match channels {
        Channels::Same(value) => value.is_finite(),
        Channels::Each(values) => values.iter().all(|value| value.is_finite()),
    };
    (finite(&scale) && finite(&shift)).then_some(Affine {
        scale,
        shift,
        activation: Activation::None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Conv2d, Window};
    use crate::obstacle::Origin;
    use netkit_core::op::Padding;
    use netkit_core::tensor::Shape;
    use std::sync::Arc;

    fn shape(dims: &[u32]) -> Shape {
        Shape::new(dims).unwrap()
    }

    fn conv(weights: &[f32], bias: &[f32]) -> Op {
        Op::Conv2d(Conv2d {
            window: window(),
            in_channels: weights.len() / bias.len(),
            out_channels: bias.len(),
            groups: 1,
            weights: weights.into(),
            bias: bias.into(),
            activation: Activation::None,
        })
    }

    fn window() -> Window {
        Window {
            kernel: (1, 1),
            stride: (1, 1),
            dilation: (1, 1),
            padding: Padding::default(),
            output: (2, 3),
        }
    }

    fn affine(scale: &[f64], shift: &[f64]) -> Op {
        Op::Affine(Affine {
            scale: Channels::Each(scale.into()),
            shift: Channels::Each(shift.into()),
            activation: Activation::None,
        })
    }

    /// A graph of maps of two channels; each operator reads the value with the given index, the first
    /// value being the input.
    fn graph(ops: &[(Op, usize)], outputs: &[usize]) -> Graph {
        let mut graph = Graph::default();
        let map = shape(&[2, 3, 2]);
        let mut values = vec![graph.add_value(map)];
        graph.inputs.push(values[0]);
        for (op, input) in ops {
            let origin = Arc::new(Origin::default());
            values.push(graph.add_node(op.clone(), vec![values[*input]], map, &origin));
        }
        graph.outputs = outputs.iter().map(|&index| values[index]).collect();
        graph
    }

    fn rewritten(ops: &[(Op, usize)], outputs: &[usize]) -> Vec<Op> {
        let mut graph = graph(ops, outputs);
        rewrite(&mut graph);
        // What is left is still connected.
        let mut known = graph.inputs.clone();
        for node in &graph.nodes {
            assert!(node.inputs.iter().all(|input| known.contains(input)));
            known.push(node.output);
        }
        assert!(graph.outputs.iter().all(|output| known.contains(output)));
        graph.nodes.into_iter().map(|node| node.op).collect()
    }

    fn activation(ops: &mut [Op], index: usize) -> Activation {
        *ops[index].activation_mut().unwrap()
    }

    const RELU: Op = Op::Activation(Activation::Relu);

    /// Pitfall B09: the old bias is scaled too.
    #[test]
    fn b09_a_batch_norm_scales_weights_and_the_old_bias() {
        // gamma −2, beta 3, mean 0.5, variance 0.25, epsilon 1e-3; bias 1.
        let factor = -2.0 / (0.25f64 + 1e-3).sqrt();
        let norm = affine(&[factor, 0.0], &[3.0 - 0.5 * factor, 7.0]);
        let ops = rewritten(&[(conv(&[2.0, 3.0, 4.0, 5.0], &[1.0, 1.0]), 0), (norm, 1)], &[2]);
        let [Op::Conv2d(conv)] = ops.as_slice() else { panic!("{ops:?}") };
        let close = |actual: f32, expected: f64| (f64::from(actual) - expected).abs() < 1e-6;
        assert!(close(conv.weights[0], 2.0 * factor) && close(conv.weights[1], 3.0 * factor));
        assert!(close(conv.bias[0], 1.0 * factor + 3.0 - 0.5 * factor), "{}", conv.bias[0]);
        assert_eq!((&conv.weights[2..], conv.bias[1]), (&[0.0, 0.0][..], 7.0));
    }

    #[test]
    fn a_batch_norm_is_not_folded_into_what_something_else_reads() {
        let norm = || affine(&[2.0, 2.0], &[0.0, 1.0]);
        let identity = || conv(&[1.0, 0.0, 0.0, 1.0], &[0.0, 0.0]);
        let ops = rewritten(&[(identity(), 0), (norm(), 1), (RELU, 1)], &[2, 3]);
        assert_eq!(ops, [identity(), norm(), RELU], "the convolution feeds two nodes");
        let ops = rewritten(&[(identity(), 0), (norm(), 1)], &[1, 2]);
        assert_eq!(ops, [identity(), norm()], "the convolution is an output");
    }

    #[test]
    fn a_batch_norm_is_not_folded_through_an_activation() {
        let norm = affine(&[2.0, 2.0], &[0.0, 1.0]);
        let mut ops =
            rewritten(&[(conv(&[1.0; 4], &[0.0; 2]), 0), (RELU, 1), (norm.clone(), 2)], &[3]);
        assert_eq!(activation(&mut ops, 0), Activation::Relu);
        assert_eq!(ops[1..], [norm]);
    }

    #[test]
    fn conv_norm_relu_is_one_operator() {
        let norm = affine(&[2.0, 2.0], &[0.0, 1.0]);
        let mut ops = rewritten(&[(conv(&[1.0; 4], &[0.5; 2]), 0), (norm, 1), (RELU, 2)], &[3]);
        assert_eq!((ops.len(), activation(&mut ops, 0)), (1, Activation::Relu));
        let Op::Conv2d(conv) = &ops[0] else { panic!("{ops:?}") };
        assert_eq!(
            (conv.weights.as_slice(), conv.bias.as_slice()),
            (&[2.0; 4][..], &[1.0, 2.0][..])
        );
    }

    #[test]
    fn a_monotone_activation_moves_before_a_maximum() {
        let pool = || Op::MaxPool2d(window());
        let ops = [(conv(&[1.0; 4], &[0.0; 2]), 0), (pool(), 1), (pool(), 2), (RELU, 3)];
        let mut after = rewritten(&ops, &[4]);
        assert_eq!(activation(&mut after, 0), Activation::Relu);
        assert_eq!(after[1..], [pool(), pool()]);

        let average = Op::AveragePool2d(window());
        let ops = [(conv(&[1.0; 4], &[0.0; 2]), 0), (average.clone(), 1), (RELU, 2)];
        let mut after = rewritten(&ops, &[3]);
        assert_eq!(activation(&mut after, 0), Activation::None);
        assert_eq!(after[1..], [average, RELU]);

        let softmax = Op::Activation(Activation::Softmax);
        let ops = [(conv(&[1.0; 4], &[0.0; 2]), 0), (pool(), 1), (softmax, 2)];
        assert_eq!(rewritten(&ops, &[3]).len(), 3);
        // Another reader wants the maximum itself.
        let ops = [(conv(&[1.0; 4], &[0.0; 2]), 0), (pool(), 1), (RELU, 2)];
        assert_eq!(rewritten(&ops, &[2, 3]).len(), 3);
    }

    #[test]
    fn scales_and_shifts_join() {
        let ops = rewritten(
            &[(affine(&[2.0, 3.0], &[1.0, 1.0]), 0), (affine(&[5.0, 7.0], &[0.5, 0.25]), 1)],
            &[2],
        );
        assert_eq!(ops, [affine(&[10.0, 21.0], &[5.5, 7.25])]);
        let same = |scale, shift| {
            Op::Affine(Affine {
                scale: Channels::Same(scale),
                shift: Channels::Same(shift),
                activation: Activation::None,
            })
        };
        assert_eq!(rewritten(&[(same(2.0, 1.0), 0), (same(3.0, 4.0), 1)], &[2]), [same(6.0, 7.0)]);
        let Some(Op::Affine(mixed)) =
            rewritten(&[(same(2.0, 1.0), 0), (affine(&[3.0, 4.0], &[0.0, 1.0]), 1)], &[2]).pop()
        else {
            panic!("not joined");
        };
        assert_eq!(mixed.scale.to_rounded(2), [6.0, 8.0]);
        assert_eq!(mixed.shift.to_rounded(2), [3.0, 5.0]);
        // Nothing is left of one that changes nothing.
        assert_eq!(rewritten(&[(same(1.0, 0.0), 0), (RELU, 1)], &[2]), [RELU]);
    }

    #[test]
    fn a_scale_before_a_dense_layer_becomes_part_of_it() {
        let mut graph = Graph::default();
        let origin = Arc::new(Origin::default());
        let input = graph.add_value(shape(&[1, 2]));
        graph.inputs.push(input);
        let norm = affine(&[2.0, 4.0], &[1.0, -1.0]);
        let scaled = graph.add_node(norm, vec![input], shape(&[1, 2]), &origin);
        let dense = Op::Dense(Dense {
            in_features: 2,
            out_features: 1,
            weights: vec![3.0, 5.0],
            bias: vec![0.5],
            activation: Activation::Tanh,
        });
        let output = graph.add_node(dense, vec![scaled], shape(&[1, 1]), &origin);
        graph.outputs.push(output);
        rewrite(&mut graph);
        let [Node { op: Op::Dense(dense), inputs, .. }] = graph.nodes.as_slice() else {
            panic!("{graph:?}")
        };
        assert_eq!(inputs, &[input]);
        assert_eq!((dense.weights.as_slice(), dense.bias[0]), (&[6.0, 20.0][..], 0.5 + 3.0 - 5.0));
        assert_eq!(dense.activation, Activation::Tanh);
    }
}
