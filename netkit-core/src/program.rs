//! The end of the pipeline: a checked, planned network, ready to be printed as code or run.

use crate::check;
use crate::diag::{Code, Diagnostic, Sink, Site};
use crate::format::NkFile;
use crate::graph::{Builder, Graph, Node, Value, ValueId};
use crate::lower::{LayerInfo, lower, max_nodes};
use crate::op::{Activation, Op, Pool2d};
use crate::plan::{Placement, Plan, Slot};
use crate::quant::{AddStage, Multiplier, OutputStage, SoftmaxStage};
use crate::tensor::Shape;

/// How much storage [`compile`] needs for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageSize {
    /// Nodes.
    pub nodes: usize,
    /// Values, and planner slots.
    pub values: usize,
    /// Layers.
    pub layers: usize,
}

impl StorageSize {
    /// Enough for `file`: an upper bound, close to what is used.
    #[must_use]
    pub fn of(file: &NkFile<'_>) -> Self {
        let nodes = 1 + file.layers().map(|layer| max_nodes(&layer)).sum::<usize>();
        Self { nodes, values: nodes + 1, layers: file.layers().len() }
    }
}

/// Storage the caller lends: arrays of fillers ([`Node::EMPTY`] and its like), at least
/// [`StorageSize::of`] the file long.
#[derive(Debug)]
pub struct Storage<'s> {
    /// For the graph's nodes.
    pub nodes: &'s mut [Node],
    /// For the graph's values.
    pub values: &'s mut [Value],
    /// For the plan.
    pub slots: &'s mut [Slot],
    /// For the layer table.
    pub layers: &'s mut [LayerInfo],
}

/// [`Storage`] on the heap.
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct OwnedStorage {
    nodes: alloc::vec::Vec<Node>,
    values: alloc::vec::Vec<Value>,
    slots: alloc::vec::Vec<Slot>,
    layers: alloc::vec::Vec<LayerInfo>,
}

#[cfg(feature = "alloc")]
impl OwnedStorage {
    /// Enough for `file`.
    #[must_use]
    pub fn of(file: &NkFile<'_>) -> Self {
        let size = StorageSize::of(file);
        Self {
            nodes: alloc::vec![Node::EMPTY; size.nodes],
            values: alloc::vec![Value::EMPTY; size.values],
            slots: alloc::vec![Slot::EMPTY; size.values],
            layers: alloc::vec![LayerInfo::EMPTY; size.layers],
        }
    }

    /// Lends it.
    pub fn lend(&mut self) -> Storage<'_> {
        Storage {
            nodes: &mut self.nodes,
            values: &mut self.values,
            slots: &mut self.slots,
            layers: &mut self.layers,
        }
    }
}

/// A network that is known to be right: every shape, size and quantization agrees, and every value has
/// its place. The macro prints its steps, the runtime makes them.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a, 's> {
    file: NkFile<'a>,
    graph: Graph<'s>,
    plan: Plan<'s>,
    layers: &'s [LayerInfo],
}

/// Lowers, checks and plans a parsed file. `None` if anything was reported to `sink`.
pub fn compile<'a, 's>(
    file: &NkFile<'a>,
    storage: Storage<'s>,
    sink: &mut dyn Sink,
) -> Option<Program<'a, 's>> {
    let count = file.layers().len();
    let Some((layers, _)) = storage.layers.split_at_mut_checked(count) else {
        let _ = sink.report(Diagnostic::new(Code::Storage, Site::FILE));
        return None;
    };
    let builder = Builder::new(storage.nodes, storage.values);
    let graph = lower(file, builder, layers, sink)?;
    if !check::cases(file, &graph, sink) {
        return None;
    }
    let enough_slots = storage.slots.len() >= graph.values().len();
    let Some(plan) = Plan::new(&graph, storage.slots) else {
        let code = if enough_slots { Code::TooLarge } else { Code::Storage };
        let _ = sink.report(Diagnostic::new(code, Site::FILE));
        return None;
    };
    Some(Program { file: *file, graph, plan, layers })
}

impl<'a, 's> Program<'a, 's> {
    /// The file it was compiled from.
    #[must_use]
    pub const fn file(&self) -> &NkFile<'a> {
        &self.file
    }

    /// The bytes that the constants of the graph lie in.
    #[must_use]
    pub const fn source(&self) -> &'a [u8] {
        self.file.as_bytes()
    }

    /// The graph.
    #[must_use]
    pub const fn graph(&self) -> &Graph<'s> {
        &self.graph
    }

    /// The memory plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan<'s> {
        &self.plan
    }

    /// The file's layers, with their shapes and costs.
    #[must_use]
    pub const fn layers(&self) -> &'s [LayerInfo] {
        self.layers
    }

    /// Whether the network computes in int8.
    #[must_use]
    pub const fn is_quantized(&self) -> bool {
        self.file.header().is_quantized()
    }

    /// The input as the caller provides it.
    #[must_use]
    pub fn input(&self) -> &'s Value {
        self.graph.value(self.graph.inputs()[0])
    }

    /// The output as the caller receives it. Its shape is that of [`output_shape`](Self::output_shape)
    /// up to a flatten.
    #[must_use]
    pub fn output(&self) -> &'s Value {
        self.graph.value(self.graph.outputs()[0])
    }

    /// The shape of the last layer's output: flat behind a flatten.
    #[must_use]
    pub fn output_shape(&self) -> Shape {
        self.layers.last().map_or(self.output().shape, |layer| layer.output)
    }

    /// Multiply-accumulate operations of one inference.
    #[must_use]
    pub fn macs(&self) -> u64 {
        self.layers.iter().map(|layer| layer.macs).sum()
    }

    /// How long an inference may last, in [`Op::work`] of its steps and elements of their outputs. A small file may ask for
    /// more than anybody wants to wait for.
    #[must_use]
    pub fn work(&self) -> u64 {
        let each = |step: Step<'_, '_>| {
            step.node.op.work().saturating_add(step.output().value.shape.elements() as u64)
        };
        self.steps().map(each).fold(0, u64::saturating_add)
    }

    /// The steps in execution order.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = Step<'_, 's>> + '_ {
        self.graph.nodes().iter().enumerate().map(|(index, node)| Step {
            index,
            node,
            graph: &self.graph,
            plan: &self.plan,
        })
    }

    /// The fixed-point factor of an output channel of a quantized dense or convolution node.
    #[must_use]
    pub fn multiplier(&self, node: &Node, channel: usize) -> Multiplier {
        let weight_scale = node
            .weights
            .and_then(|weights| weights.scales)
            .map_or(0.0, |scales| scales.get(self.source(), channel));
        let input = node.inputs().first().map_or(1.0, |&id| self.graph.value(id).quant.scale);
        let output = self.graph.value(node.output).quant.scale;
        Multiplier::for_channel(input, weight_scale, output)
    }
}

/// One step of a program: a node and where its values live.
#[derive(Clone, Copy, Debug)]
pub struct Step<'p, 's> {
    /// Its place in execution order.
    pub index: usize,
    /// What is computed.
    pub node: &'s Node,
    graph: &'p Graph<'s>,
    plan: &'p Plan<'s>,
}

/// A value of a step.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'s> {
    /// Shape, type and quantization.
    pub value: &'s Value,
    /// Where it lives.
    pub placement: Placement,
}

impl<'s> Step<'_, 's> {
    fn operand(&self, id: ValueId) -> Operand<'s> {
        Operand { value: self.graph.value(id), placement: self.plan.placement(id) }
    }

    /// What it reads, in the operator's order.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = Operand<'s>> + '_ {
        self.node.inputs().iter().map(|&id| self.operand(id))
    }

    /// What it reads first.
    #[must_use]
    pub fn input(&self) -> Operand<'s> {
        self.operand(self.node.inputs()[0])
    }

    /// What it writes.
    #[must_use]
    pub fn output(&self) -> Operand<'s> {
        self.operand(self.node.output)
    }

    /// Whether it computes in int8.
    #[must_use]
    pub fn is_quantized(&self) -> bool {
        self.output().value.dtype == crate::tensor::DType::I8
    }

    /// The activation fused into it.
    #[must_use]
    pub fn activation(&self) -> Activation {
        match self.node.op {
            Op::Dense { activation, .. }
            | Op::Conv2d { activation, .. }
            | Op::DepthwiseConv2d { activation, .. }
            | Op::BatchNorm(_, activation)
            | Op::Add { activation, .. }
            | Op::Activation { activation, .. } => activation,
            _ => Activation::None,
        }
    }

    /// The maximum pool fused into it.
    #[must_use]
    pub const fn pool(&self) -> Option<&'s Pool2d> {
        match &self.node.op {
            Op::Conv2d { pool, .. } | Op::DepthwiseConv2d { pool, .. } => pool.as_ref(),
            _ => None,
        }
    }

    /// How the accumulators of a quantized step become its output. `None` for an activation without an int8
    /// form, which lowering does not let through.
    #[must_use]
    pub fn output_stage(&self) -> Option<OutputStage> {
        OutputStage::new(self.output().value.quant, self.activation())
    }

    /// The constants of a quantized sum; `None` for other operators.
    #[must_use]
    pub fn add_stage(&self) -> Option<AddStage> {
        let [left, right] = *self.node.inputs() else { return None };
        let quant = |id| self.operand(id).value.quant;
        AddStage::new(quant(left), quant(right), self.output().value.quant, self.activation())
    }

    /// The constants of a quantized softmax.
    #[must_use]
    pub fn softmax_stage(&self) -> SoftmaxStage {
        SoftmaxStage::new(self.input().value.quant.scale)
    }
}
