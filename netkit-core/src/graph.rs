//! The graph: primitive operators in execution order, the values between them, and the constants they
//! read.
//!
//! A directed acyclic graph with any number of inputs and outputs; `.nk` files have one of each. It
//! lives in storage the caller lends, so building one allocates nothing. [`Builder`] is the only way to
//! make a [`Graph`]; it fuses what can be fused as nodes arrive (batch norms and maximum pools into
//! convolutions, activations and residual sums into their producers), so a graph never holds an unfused form.

use crate::op::{Activation, Op, Pool2d, Window};
use crate::quant::Quant;
use crate::tensor::{DType, Shape};

/// Inputs one node can have.
pub const MAX_INPUTS: usize = 4;

/// A value: an input of the graph or the output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(u16);

impl ValueId {
    /// Position in [`Graph::values`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a value before anything runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// Its shape; maps are NHWC without the batch.
    pub shape: Shape,
    /// `F32` or `I8`.
    pub dtype: DType,
    /// Scale and zero point of an `I8` value; meaningless for `F32`.
    pub quant: Quant,
    /// Whether something besides the next node reads it, so that fusing into its producer would change
    /// what that reader sees.
    pinned: bool,
}

impl Value {
    /// Filler for lent storage.
    pub const EMPTY: Self = Self {
        shape: match Shape::new(&[1]) {
            Some(shape) => shape,
            None => unreachable!(),
        },
        dtype: DType::F32,
        quant: Quant { scale: 1.0, zero_point: 0 },
        pinned: false,
    };

    /// A float value.
    #[must_use]
    pub const fn float(shape: Shape) -> Self {
        Self { shape, dtype: DType::F32, ..Self::EMPTY }
    }

    /// A quantized value.
    #[must_use]
    pub const fn quantized(shape: Shape, quant: Quant) -> Self {
        Self { shape, dtype: DType::I8, quant, ..Self::EMPTY }
    }

    /// Size in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.shape.elements() * self.dtype.size()
    }
}

/// A constant tensor: where it lies in the source bytes (the model file).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Element type.
    pub dtype: DType,
    /// Byte offset of the first element.
    pub offset: u32,
    /// Number of elements.
    pub elements: u32,
}

impl Constant {
    /// The bytes of this constant in `source`, which must be the bytes the graph was made from;
    /// empty if they do not reach that far.
    #[must_use]
    pub fn bytes<'a>(&self, source: &'a [u8]) -> &'a [u8] {
        let start = self.offset as usize;
        let len = self.len_bytes();
        source.get(start..).and_then(|tail| tail.get(..len)).unwrap_or(&[])
    }

    /// Size in bytes.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        self.elements as usize * self.dtype.size()
    }
}

/// The scale of each output channel of a quantized filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WeightScales {
    /// One for all.
    PerTensor(f32),
    /// Little-endian f32 in the source bytes, one for each channel.
    PerChannel {
        /// Byte offset of the first scale.
        offset: u32,
        /// Number of channels.
        channels: u32,
    },
}

impl WeightScales {
    /// The scale of `channel`, read from `source`; 0 beyond the table, which no checked graph reaches.
    #[must_use]
    pub fn get(&self, source: &[u8], channel: usize) -> f32 {
        match *self {
            Self::PerTensor(scale) => scale,
            Self::PerChannel { offset, channels } => {
                if channel >= channels as usize {
                    return 0.0;
                }
                let start = offset as usize + 4 * channel;
                source
                    .get(start..)
                    .and_then(|tail| tail.first_chunk())
                    .map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
            }
        }
    }
}

/// The constants of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Filter, or the scale of a normalisation.
    pub filter: Constant,
    /// Bias, or the shift of a normalisation. One for each output channel.
    pub bias: Constant,
    /// A batch norm folded into this node: `filter · scale[c]`, `bias · scale[c] + shift[c]`.
    pub fold: Option<Fold>,
    /// Scales of a quantized filter.
    pub scales: Option<WeightScales>,
}

/// A batch norm that follows a convolution and is computed as part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// `gamma / √(variance + ε)` of each channel.
    pub scale: Constant,
    /// `beta − mean · scale` of each channel.
    pub shift: Constant,
}

/// The bias of a convolution with a batch norm folded in: `bias · scale + shift`, each operation rounded
/// to f32. The macro and the runtime fold with this, so that they agree to the last bit.
#[must_use]
pub const fn fold_bias(bias: f32, scale: f32, shift: f32) -> f32 {
    bias * scale + shift
}

/// An operator applied to values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// What is computed.
    pub op: Op,
    inputs: [ValueId; MAX_INPUTS],
    input_count: u8,
    /// What it produces.
    pub output: ValueId,
    /// What it reads besides its inputs.
    pub weights: Option<Weights>,
    /// Index of the file layer it comes from.
    pub layer: u16,
    /// Which part of a fused layer it is, empty for a plain one.
    pub part: &'static str,
}

impl Node {
    /// Filler for lent storage.
    pub const EMPTY: Self = Self {
        op: Op::Copy { len: 0 },
        inputs: [ValueId(0); MAX_INPUTS],
        input_count: 0,
        output: ValueId(0),
        weights: None,
        layer: 0,
        part: "",
    };

    /// The values it reads, in the operator's order.
    #[must_use]
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs[..usize::from(self.input_count).min(MAX_INPUTS)]
    }
}

/// Operators in execution order. Every value is produced before it is read.
#[derive(Clone, Copy, Debug)]
pub struct Graph<'s> {
    nodes: &'s [Node],
    values: &'s [Value],
    input: ValueId,
    output: ValueId,
}

impl<'s> Graph<'s> {
    /// The nodes in execution order.
    #[must_use]
    pub const fn nodes(&self) -> &'s [Node] {
        self.nodes
    }

    /// The values, by [`ValueId::index`].
    #[must_use]
    pub const fn values(&self) -> &'s [Value] {
        self.values
    }

    /// One value.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &'s Value {
        &self.values[id.index()]
    }

    /// The values the caller provides.
    #[must_use]
    pub fn inputs(&self) -> &[ValueId] {
        core::slice::from_ref(&self.input)
    }

    /// The values the caller receives.
    #[must_use]
    pub fn outputs(&self) -> &[ValueId] {
        core::slice::from_ref(&self.output)
    }
}

/// The lent storage is too small for the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Builds a [`Graph`] in lent storage, fusing as it goes.
#[derive(Debug)]
pub struct Builder<'s> {
    nodes: &'s mut [Node],
    node_count: usize,
    values: &'s mut [Value],
    value_count: usize,
    layer: u16,
}

impl<'s> Builder<'s> {
    /// An empty graph in the given storage.
    #[must_use]
    pub fn new(nodes: &'s mut [Node], values: &'s mut [Value]) -> Self {
        Self { nodes, node_count: 0, values, value_count: 0, layer: 0 }
    }

    /// Nodes pushed from now on come from file layer `index`.
    pub fn enter_layer(&mut self, index: u16) {
        self.layer = index;
    }

    /// Number of nodes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.node_count
    }

    /// Whether there are no nodes yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.node_count == 0
    }

    /// The nodes so far.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes[..self.node_count]
    }

    /// A value that no node produces.
    pub fn input(&mut self, value: Value) -> Result<ValueId, Full> {
        let slot = self.values.get_mut(self.value_count).ok_or(Full)?;
        let id = ValueId(u16::try_from(self.value_count).map_err(|_| Full)?);
        *slot = value;
        self.value_count += 1;
        Ok(id)
    }

    /// What is known of a value.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// Keeps `id` as it is: something reads it later, so nothing may be fused into its producer.
    pub fn pin(&mut self, id: ValueId) {
        self.values[id.index()].pinned = true;
    }

    /// Appends a node; its output is a new value.
    pub fn push(
        &mut self,
        op: Op,
        inputs: &[ValueId],
        weights: Option<Weights>,
        output: Value,
        part: &'static str,
    ) -> Result<ValueId, Full> {
        if inputs.len() > MAX_INPUTS || self.node_count == self.nodes.len() {
            return Err(Full);
        }
        let output = self.input(output)?;
        let mut node = Node {
            op,
            inputs: [ValueId(0); MAX_INPUTS],
            input_count: inputs.len() as u8,
            output,
            weights,
            layer: self.layer,
            part,
        };
        node.inputs[..inputs.len()].copy_from_slice(inputs);
        self.nodes[self.node_count] = node;
        self.node_count += 1;
        Ok(output)
    }

    /// Applies an activation to `value`: fused into its producer where that has room for one and nobody
    /// else reads it, otherwise a node of its own.
    pub fn activate(&mut self, value: ValueId, activation: Activation) -> Result<ValueId, Full> {
        if activation == Activation::None {
            return Ok(value);
        }
        if let Some(node) = self.open_producer(value)
            && let Some(slot) = activation_slot(&mut node.op)
            && *slot == Activation::None
        {
            *slot = activation;
            return Ok(value);
        }
        let known = *self.value(value);
        let len = known.shape.elements();
        let output = Value { pinned: false, ..known };
        self.push(Op::Activation { len, activation }, &[value], None, output, "activation")
    }

    /// Applies a batch norm: folded into the convolution that produces `value` where nothing forbids
    /// it, otherwise a node of its own. `batch_norm` is that node.
    pub fn batch_norm(
        &mut self,
        value: ValueId,
        fold: Fold,
        batch_norm: Op,
        part: &'static str,
    ) -> Result<ValueId, Full> {
        if let Some(node) = self.open_producer(value)
            && let Op::Conv2d { activation: Activation::None, residual: false, pool: None, .. }
            | Op::DepthwiseConv2d { activation: Activation::None, pool: None, .. } = node.op
            && let Some(weights) = &mut node.weights
            && weights.fold.is_none()
        {
            weights.fold = Some(fold);
            return Ok(value);
        }
        let output = Value { pinned: false, ..*self.value(value) };
        let weights = Weights { filter: fold.scale, bias: fold.shift, fold: None, scales: None };
        self.push(batch_norm, &[value], Some(weights), output, part)
    }

    /// The sum of two float values of one shape: fused as the residual of the convolution that
    /// produces `sum` where `addend` is there before it runs, otherwise a node of its own.
    pub fn add_float(&mut self, sum: ValueId, addend: ValueId) -> Result<ValueId, Full> {
        if addend != sum
            && self.producer_index(addend) < self.producer_index(sum)
            && let Some(node) = self.open_producer(sum)
            && let Op::Conv2d { activation: Activation::None, residual, pool: None, .. } =
                &mut node.op
            && !*residual
        {
            *residual = true;
            node.inputs[1] = addend;
            node.input_count = 2;
            return Ok(sum);
        }
        let output = Value { pinned: false, ..*self.value(sum) };
        let len = output.shape.elements();
        self.push(
            Op::Add { len, activation: Activation::None },
            &[sum, addend],
            None,
            output,
            "add",
        )
    }

    /// A maximum pool of `value`, which gives `output`: fused into the convolution that produces `value` where nobody
    /// else reads it, otherwise a node of its own. What the pool does not read a convolution with one does not
    /// compute.
    pub fn max_pool(
        &mut self,
        value: ValueId,
        pool: Pool2d,
        output: Value,
    ) -> Result<ValueId, Full> {
        if let Some(node) = self.open_producer(value)
            && let Some((window, slot)) = pool_slot(&mut node.op)
        {
            (window.out_h, window.out_w) = pool.window.reach();
            let (in_h, in_w) = (window.out_h, window.out_w);
            *slot = Some(Pool2d { window: Window { in_h, in_w, ..pool.window }, ..pool });
            self.values[value.index()] = output;
            return Ok(value);
        }
        self.push(Op::MaxPool2d(pool), &[value], None, output, "")
    }

    /// The finished graph. An output that no node produces is copied, so that every output has a
    /// producer of its own.
    pub fn finish(mut self, input: ValueId, output: ValueId) -> Result<Graph<'s>, Full> {
        let read_elsewhere = self.nodes().iter().any(|node| node.inputs().contains(&output));
        let output = if output == input || read_elsewhere {
            let value = *self.value(output);
            let len = value.shape.elements();
            self.push(Op::Copy { len }, &[output], None, value, "copy")?
        } else {
            output
        };
        let (nodes, values): (&'s [Node], &'s [Value]) = (self.nodes, self.values);
        Ok(Graph {
            nodes: &nodes[..self.node_count],
            values: &values[..self.value_count],
            input,
            output,
        })
    }

    /// One past the position of the node that produces `value`; 0 for an input of the graph.
    fn producer_index(&self, value: ValueId) -> usize {
        self.nodes().iter().rposition(|node| node.output == value).map_or(0, |index| index + 1)
    }

    /// The producer of `value`, if fusing into it changes nothing for anybody else.
    fn open_producer(&mut self, value: ValueId) -> Option<&mut Node> {
        if self.value(value).pinned
            || self.nodes().iter().any(|node| node.inputs().contains(&value))
        {
            return None;
        }
        self.nodes[..self.node_count].iter_mut().rev().find(|node| node.output == value)
    }
}

fn activation_slot(op: &mut Op) -> Option<&mut Activation> {
    match op {
        Op::Dense { activation, .. }
        | Op::Conv2d { activation, pool: None, .. }
        | Op::DepthwiseConv2d { activation, pool: None, .. }
        | Op::BatchNorm(_, activation)
        | Op::Add { activation, .. } => Some(activation),
        _ => None,
    }
}

/// Where a pool may be fused, and the window of the convolution it then belongs to. A residual is as large as the whole
/// map, of which a pool may read a part.
fn pool_slot(op: &mut Op) -> Option<(&mut Window, &mut Option<Pool2d>)> {
    match op {
        Op::Conv2d { conv, residual: false, pool: pool @ None, .. } => {
            Some((&mut conv.window, pool))
        }
        Op::DepthwiseConv2d { conv, pool: pool @ None, .. } => Some((&mut conv.window, pool)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Conv2d, Padding, PerChannel, Window};

    const CONSTANT: Constant = Constant { dtype: DType::F32, offset: 0, elements: 2 };
    const WEIGHTS: Weights = Weights { filter: CONSTANT, bias: CONSTANT, fold: None, scales: None };
    const FOLD: Fold = Fold { scale: CONSTANT, shift: CONSTANT };
    const BATCH_NORM: Op = Op::BatchNorm(PerChannel { pixels: 16, channels: 2 }, Activation::None);

    fn map() -> Value {
        Value::float(Shape::new(&[4, 4, 2]).unwrap())
    }

    fn conv() -> Op {
        let window = Window::new((4, 4), (1, 1), 1, Padding::default()).unwrap();
        Op::Conv2d {
            conv: Conv2d { window, in_channels: 2, out_channels: 2 },
            activation: Activation::None,
            residual: false,
            pool: None,
        }
    }

    fn pool() -> (Pool2d, Value) {
        let window = Window::new((4, 4), (3, 3), 2, Padding::default()).unwrap();
        (Pool2d { window, channels: 2 }, Value::float(Shape::new(&[1, 1, 2]).unwrap()))
    }

    #[test]
    fn a_pool_fuses_into_a_convolution_and_spares_it_what_it_does_not_read() {
        let (mut nodes, mut values) = ([Node::EMPTY; 8], [Value::EMPTY; 8]);
        let mut builder = Builder::new(&mut nodes, &mut values);
        let x = builder.input(map()).unwrap();
        let y = builder.push(conv(), &[x], Some(WEIGHTS), map(), "").unwrap();
        let y = builder.activate(y, Activation::Relu).unwrap();
        let (pool, pooled) = pool();
        assert_eq!(builder.max_pool(y, pool, pooled).unwrap(), y);
        // Nothing fuses behind it: it would be computed before the pool.
        let z = builder.activate(y, Activation::Relu6).unwrap();
        let z = builder.batch_norm(z, FOLD, BATCH_NORM, "").unwrap();
        let graph = builder.finish(x, z).unwrap();
        let names = ["conv2d_max_pool2d", "activation", "batch_norm"];
        assert!(graph.nodes().iter().map(|node| node.op.name()).eq(names));
        assert_eq!(graph.value(y).shape, pooled.shape);
        let Op::Conv2d { conv, activation: Activation::Relu, pool: Some(fused), .. } =
            graph.nodes()[0].op
        else {
            panic!("{:?}", graph.nodes()[0].op);
        };
        assert_eq!((conv.window.out_h, conv.window.out_w), (3, 3));
        assert_eq!(fused.window, Window { in_h: 3, in_w: 3, ..pool.window });
    }

    #[test]
    fn a_pool_of_a_map_that_others_read_or_that_has_a_residual_is_a_node() {
        for pinned in [true, false] {
            let (mut nodes, mut values) = ([Node::EMPTY; 8], [Value::EMPTY; 8]);
            let mut builder = Builder::new(&mut nodes, &mut values);
            let x = builder.input(map()).unwrap();
            let y = builder.push(conv(), &[x], Some(WEIGHTS), map(), "").unwrap();
            let y = if pinned {
                builder.pin(y);
                y
            } else {
                builder.add_float(y, x).unwrap()
            };
            let (pool, pooled) = pool();
            let z = builder.max_pool(y, pool, pooled).unwrap();
            assert_ne!(z, y);
            assert_eq!(builder.nodes()[1].op, Op::MaxPool2d(pool));
        }
    }

    #[test]
    fn one_pool_fuses_and_the_next_is_a_node() {
        let (mut nodes, mut values) = ([Node::EMPTY; 8], [Value::EMPTY; 8]);
        let mut builder = Builder::new(&mut nodes, &mut values);
        let x = builder.input(map()).unwrap();
        let y = builder.push(conv(), &[x], Some(WEIGHTS), map(), "").unwrap();
        let window = Window::new((4, 4), (1, 1), 1, Padding::default()).unwrap();
        let first = Pool2d { window, channels: 2 };
        assert_eq!(builder.max_pool(y, first, map()).unwrap(), y);
        let (second, pooled) = pool();
        assert_ne!(builder.max_pool(y, second, pooled).unwrap(), y);
    }

    #[test]
    fn batch_norm_activation_and_residual_fuse_into_a_convolution() {
        let (mut nodes, mut values) = ([Node::EMPTY; 8], [Value::EMPTY; 8]);
        let mut builder = Builder::new(&mut nodes, &mut values);
        let x = builder.input(map()).unwrap();
        let y = builder.push(conv(), &[x], Some(WEIGHTS), map(), "").unwrap();
        let y = builder.batch_norm(y, FOLD, BATCH_NORM, "").unwrap();
        let y = builder.add_float(y, x).unwrap();
        let y = builder.activate(y, Activation::Relu).unwrap();
        let graph = builder.finish(x, y).unwrap();
        assert_eq!(graph.nodes().len(), 1);
        let node = &graph.nodes()[0];
        assert_eq!(node.inputs(), [x, x]);
        assert_eq!(node.weights.unwrap().fold, Some(FOLD));
        assert!(matches!(node.op, Op::Conv2d { activation: Activation::Relu, residual: true, .. }));
    }

    /// Pitfall B09: a second reader of the convolution must not see the folded form.
    #[test]
    fn b09_a_pinned_or_activated_convolution_is_not_folded() {
        for pinned in [true, false] {
            let (mut nodes, mut values) = ([Node::EMPTY; 8], [Value::EMPTY; 8]);
            let mut builder = Builder::new(&mut nodes, &mut values);
            let x = builder.input(map()).unwrap();
            let y = builder.push(conv(), &[x], Some(WEIGHTS), map(), "").unwrap();
            if pinned {
                builder.pin(y);
            } else {
                builder.activate(y, Activation::Relu).unwrap();
            }
            let z = builder.batch_norm(y, FOLD, BATCH_NORM, "").unwrap();
            assert_ne!(z, y);
            let graph = builder.finish(x, z).unwrap();
            assert_eq!(graph.nodes().len(), 2);
            assert_eq!(graph.nodes()[0].weights.unwrap().fold, None);
        }
    }

    /// The residual must exist when the convolution runs.
    #[test]
    fn a_sum_with_a_later_value_is_a_node() {
        let (mut nodes, mut values) = ([Node::EMPTY; 8], [Value::EMPTY; 8]);
        let mut builder = Builder::new(&mut nodes, &mut values);
        let x = builder.input(map()).unwrap();
        let a = builder.push(conv(), &[x], Some(WEIGHTS), map(), "").unwrap();
        let b = builder.push(conv(), &[x], Some(WEIGHTS), map(), "").unwrap();
        let sum = builder.add_float(a, b).unwrap();
        assert_eq!(builder.len(), 3);
        // The other way round it would fuse into b, were b not read by then.
        assert_ne!(builder.add_float(b, a).unwrap(), b);
        assert!(matches!(builder.nodes()[2].op, Op::Add { .. }));
        assert_eq!(builder.finish(x, sum).unwrap().nodes().len(), 4);
    }

    #[test]
    fn an_output_that_is_the_input_is_copied() {
        let (mut nodes, mut values) = ([Node::EMPTY; 1], [Value::EMPTY; 2]);
        let mut builder = Builder::new(&mut nodes, &mut values);
        let x = builder.input(map()).unwrap();
        let graph = builder.finish(x, x).unwrap();
        assert!(matches!(graph.nodes()[0].op, Op::Copy { len: 32 }));
        assert_ne!(graph.outputs()[0], x);
    }

    #[test]
    fn storage_that_is_too_small_is_an_error() {
        let (mut nodes, mut values) = ([Node::EMPTY; 0], [Value::EMPTY; 1]);
        let mut builder = Builder::new(&mut nodes, &mut values);
        let x = builder.input(map()).unwrap();
        assert_eq!(builder.push(conv(), &[x], None, map(), ""), Err(Full));
        assert_eq!(builder.input(map()), Err(Full));
    }
}
