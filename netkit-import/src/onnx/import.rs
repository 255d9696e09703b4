//! The walk over an ONNX graph that builds netkit's, collecting every obstacle on the way.

use super::constant::{Constants, data_type};
use super::layout;
use super::model::{Dimension, Model, Node, Port};
use super::operators::{self, Operands, stored};
use crate::conversion::{Import, Interface};
use crate::graph::{Op, ValueId};
use crate::obstacle::{Obstacle, Origin, Refusal, shape_text};
use crate::options::Options;
use crate::view::{Run, View};
use netkit_core::tensor::Shape;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What a name stands for besides a constant.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    /// A computed value and how the source sees it.
    Value(ValueId, View),
    /// The result of something that was refused, of a shape nobody knows.
    Unknown,
}

/// Reads the nodes of `model` that its outputs depend on.
pub(super) fn import(model: &Model, options: &Options) -> Import {
    Importer {
        model,
        options,
        live: live_names(model),
        constants: Constants::new(model),
        bound: HashMap::new(),
        budget: model.weight_budget,
        result: Import::default(),
    }
    .run()
}

struct Importer<'m> {
    model: &'m Model,
    options: &'m Options,
    /// The values that the outputs depend on.
    live: HashSet<&'m str>,
    constants: Constants<'m>,
    bound: HashMap<&'m str, Bound>,
    budget: usize,
    result: Import,
}

/// The names that the outputs depend on, found from the back.
pub(super) fn live_names(model: &Model) -> HashSet<&str> {
    let mut live: HashSet<&str> = model.outputs.iter().map(|port| port.name.as_str()).collect();
    for node in model.nodes.iter().rev() {
        if node.outputs.iter().any(|name| live.contains(name.as_str())) {
            live.extend(node.inputs.iter().map(String::as_str).filter(|name| !name.is_empty()));
        }
    }
    live
}

/// The nodes that the outputs depend on.
pub(super) fn live_nodes<'m>(model: &'m Model, live: &HashSet<&'m str>) -> Vec<&'m Node> {
    let is_live = |node: &&Node| node.outputs.iter().any(|name| live.contains(name.as_str()));
    model.nodes.iter().filter(is_live).collect()
}

/// The newest version of the default operator set whose operators are read as it defines them.
const NEWEST_OPSET: i64 = 28;

impl<'m> Importer<'m> {
    fn run(mut self) -> Import {
        let model = self.model;
        if model.opset > NEWEST_OPSET {
            let refusal = Refusal::new(format!(
                "the model uses version {} of ONNX's operators; the newest that netkit knows is {NEWEST_OPSET}, and \
                 what a later one changes would be misread",
                model.opset
            ));
            let help = format!("export it with opset {NEWEST_OPSET} or older, such as 18");
            self.refuse(refusal.help(help).in_model());
        }
        if model.opset < 7 {
            let refusal = Refusal::new(format!(
                "the model uses version {} of ONNX's operators, which is from before 2018",
                model.opset
            ));
            self.refuse(refusal.help("export it with opset 13 or newer").in_model());
        }
        let inputs: Vec<&Port> =
            model.inputs.iter().filter(|port| self.live.contains(port.name.as_str())).collect();
        if inputs.len() != 1 {
            let refusal = match inputs.as_slice() {
                [] => Refusal::new("the output depends on no input"),
                many => {
                    Refusal::new(format!("the model has {} inputs: {}", many.len(), names(many)))
                        .help("only models with one input can be converted")
                }
            };
            self.refuse(refusal.in_model());
        }
        for port in inputs {
            match self.input(port) {
                Ok(interface) => _ = self.result.input.get_or_insert(interface),
                Err(refusal) => {
                    self.refuse(refusal.in_model());
                    self.bound.insert(&port.name, Bound::Unknown);
                }
            }
        }
        for node in live_nodes(model, &self.live) {
            self.node(node);
        }
        if model.outputs.len() != 1 {
            let outputs: Vec<_> = model.outputs.iter().collect();
            let refusal = Refusal::new(format!(
                "the model has {} outputs: {}",
                outputs.len(),
                names(&outputs)
            ));
            self.refuse(refusal.help("only models with one output can be converted").in_model());
        }
        for port in &model.outputs {
            if let Err(refusal) = self.output(port) {
                self.refuse(refusal.in_model());
            }
        }
        self.result
    }

    fn refuse(&mut self, obstacle: Obstacle) {
        self.result.obstacles.push(obstacle);
    }

    /// Binds an input of the graph.
    fn input(&mut self, port: &'m Port) -> Result<Interface, Refusal> {
        if port.element_type != data_type::FLOAT {
            return Err(Refusal::new(format!(
                "the input `{}` is of type {}",
                port.name,
                data_type::name(port.element_type)
            ))
            .help("only float32 inputs can be converted"));
        }
        let dims = self.input_dims(port)?;
        let view = self.input_layout(port, &dims);
        let shape = match &view {
            Some((map, _)) => stored(map)?,
            None if dims.len() == 2 => stored(&dims)?,
            None => stored(&[1, dims.iter().product()])?,
        };
        let view = view.map_or_else(|| View::contiguous(&dims), |(_, view)| view);
        let value = self.result.graph.add_value(shape);
        self.result.graph.inputs.push(value);
        self.bound.insert(&port.name, Bound::Value(value, view.clone()));
        Ok(Interface { name: port.name.clone(), dims, view })
    }

    /// The shape of an input as numbers: a symbolic batch is 1, other symbols must be given.
    fn input_dims(&self, port: &Port) -> Result<Vec<usize>, Refusal> {
        let name = &port.name;
        let dims = match (&port.dims, &self.options.input_shape) {
            (None, None) => {
                return Err(Refusal::new(format!("the shape of the input `{name}` is unknown"))
                    .help("give it: --input-shape 1,3,224,224, say"));
            }
            (None, Some(given)) => given.clone(),
            (Some(declared), None) => {
                let number = |(axis, dim): (usize, &Dimension)| match dim {
                    Dimension::Fixed(size) => Some(*size),
                    Dimension::Symbol(_) => (axis == 0).then_some(1),
                };
                let dims: Option<Vec<_>> = declared.iter().enumerate().map(number).collect();
                dims.ok_or_else(|| {
                    let declared: Vec<_> = declared.iter().map(ToString::to_string).collect();
                    Refusal::new(format!(
                        "the input `{name}` has the shape [{}], which is not fixed",
                        declared.join(", ")
                    ))
                    .help("give the shape in numbers: --input-shape 1,3,224,224, say")
                })?
            }
            (Some(declared), Some(given)) => {
                let contradicts = declared.len() != given.len()
                    || declared.iter().zip(given).skip(1).any(
                        |(declared, given)| matches!(declared, Dimension::Fixed(size) if size != given),
                    );
                if contradicts {
                    let declared: Vec<_> = declared.iter().map(ToString::to_string).collect();
                    return Err(Refusal::new(format!(
                        "the input `{name}` has the shape [{}], not {given:?}",
                        declared.join(", ")
                    ))
                    .help("only the batch and sizes that are not fixed can be given"));
                }
                given.clone()
            }
        };
        let product = dims.iter().try_fold(1u32, |product, &size| {
            u32::try_from(size).ok().and_then(|size| product.checked_mul(size))
        });
        if product.is_none() {
            return Err(Refusal::new(format!(
                "the input `{name}` has the shape {dims:?}: more elements than 32 bits can count"
            )));
        }
        if dims.is_empty() || dims.len() > 4 || product == Some(0) {
            return Err(Refusal::new(format!(
                "the input `{name}` has the shape {dims:?}; vectors, matrices and maps can be converted"
            )));
        }
        if dims.len() == 4 && dims[0] != 1 {
            let single: Vec<_> = [1].iter().chain(&dims[1..]).map(ToString::to_string).collect();
            return Err(Refusal::new(format!(
                "the input `{name}` is a batch of {} maps; netkit runs one at a time",
                dims[0]
            ))
            .help(format!("give its shape: --input-shape {}", single.join(","))));
        }
        Ok(dims)
    }

    /// How an input that is a map is stored: `[height, width, channels]` and the view of it. What
    /// reads it decides, since a source may keep its images channel-last and transpose them itself.
    /// Where nothing does, four axes mean NCHW; `None` is a vector or matrix.
    fn input_layout(&mut self, port: &'m Port, dims: &[usize]) -> Option<([usize; 3], View)> {
        if let Some(read) = demanded_layout(self.model, &self.live, &port.name, dims)
            && let &[1, channels, height, width] = read.dims().as_slice()
        {
            let strides = [0, 1, width * channels, channels];
            // Each run of the source's elements gets the stride its axis has in the stored map.
            let mut runs = Vec::new();
            for (axis, stride) in read.axes().iter().zip(strides) {
                let mut stride = stride;
                for run in axis.iter().rev() {
                    runs.push((run.stride, Run { size: run.size, stride }));
                    stride *= run.size;
                }
            }
            runs.sort_by_key(|&(source_stride, _)| std::cmp::Reverse(source_stride));
            let view = View::from_runs(runs.into_iter().map(|(_, run)| run).collect());
            if let Some(view) = view.reshape(dims) {
                return Some(([height, width, channels], view));
            }
        }
        match *dims {
            [1, channels, height, width] => {
                Some(([height, width, channels], View::nchw(height, width, channels)))
            }
            _ => None,
        }
    }

    fn node(&mut self, node: &'m Node) {
        let bound = &self.bound;
        let dims_of = |name: &str| match bound.get(name) {
            Some(Bound::Value(_, view)) => Some(view.dims()),
            _ => None,
        };
        if self.constants.absorb(node, dims_of) {
            return;
        }
        match self.convert(node) {
            Ok(Some((value, view))) => self.bind(node, Bound::Value(value, view)),
            Ok(None) => self.stand_in(node),
            Err(refusal) => {
                let origin = Arc::new(self.origin(node, None));
                self.refuse(refusal.at(&origin));
                self.stand_in(node);
            }
        }
    }

    /// The node's output; `None` where what it reads was refused and nothing can be said.
    fn convert(&mut self, node: &'m Node) -> Result<Option<(ValueId, View)>, Refusal> {
        if !matches!(node.domain.as_str(), "" | "ai.onnx") {
            return Err(Refusal::new(format!(
                "an operator of `{}`, not of standard ONNX",
                node.domain
            ))
            .help("export the model without the optimiser that put it there"));
        }
        let is_layout = layout::is_layout_operator(&node.operator);
        let converter = operators::converter(&node.operator);
        if converter.is_none() && !is_layout {
            return Err(Refusal::new("not supported").help(operators::help_with(&node.operator)));
        }
        let computed: Vec<_> =
            node.inputs.iter().filter(|name| self.bound.contains_key(name.as_str())).collect();
        if computed.len() > 1 {
            let names: Vec<_> = computed.iter().map(|name| format!("`{name}`")).collect();
            return Err(Refusal::new(format!("it joins computed values: {}", names.join(", ")))
                .help("only sequential models can be converted: one computed input an operator"));
        }
        for name in node.inputs.iter().filter(|name| !name.is_empty()) {
            match self.bound.get(name.as_str()) {
                Some(Bound::Value(..)) => {}
                Some(Bound::Unknown) => return Ok(None),
                None if self.constants.get(name).is_some() => {}
                None => {
                    return Err(Refusal::new(format!(
                        "invalid ONNX: it reads `{name}`, which no node before it produces"
                    )));
                }
            }
        }
        if let Some(extra) = node.outputs.iter().skip(1).find(|it| self.live.contains(it.as_str()))
        {
            return Err(Refusal::new(format!("its output `{extra}` is used"))
                .help("only the first output of an operator can be converted"));
        }
        if is_layout {
            let input = node.input(0).and_then(|name| self.bound.get(name));
            let Some(Bound::Value(value, view)) = input else {
                return Err(Refusal::new("invalid ONNX: it has no input"));
            };
            let constants = &mut self.constants;
            let view =
                layout::apply(node, view, self.model.opset, &mut |name| constants.get(name))?;
            return Ok(Some((*value, view)));
        }
        let Some(converter) = converter else { return Ok(None) };
        let converted = converter(&mut Operands {
            node,
            opset: self.model.opset,
            graph: &self.result.graph,
            bound: &self.bound,
            constants: &mut self.constants,
            budget: &mut self.budget,
        })?;
        let origin = Arc::new(self.origin(node, Some(converted.view.dims())));
        let graph = &mut self.result.graph;
        let value = graph.add_node(converted.op, vec![converted.input], converted.shape, &origin);
        Ok(Some((value, converted.view)))
    }

    /// Lets something stand for the output of a node that was refused, with the shape the file
    /// declares or the one of its only input, so that what follows is looked at too.
    fn stand_in(&mut self, node: &'m Node) {
        let inputs: Vec<ValueId> = node
            .inputs
            .iter()
            .filter_map(|name| match self.bound.get(name.as_str()) {
                Some(Bound::Value(value, _)) => Some(*value),
                _ => None,
            })
            .collect();
        let bound = match self.stand_in_shape(node) {
            Some((shape, view)) => {
                let origin = Arc::new(self.origin(node, Some(view.dims())));
                let value = self.result.graph.add_node(Op::Refused, inputs, shape, &origin);
                Bound::Value(value, view)
            }
            None => Bound::Unknown,
        };
        self.bind(node, bound);
        for name in node.outputs.iter().skip(1) {
            self.bound.insert(name, Bound::Unknown);
        }
    }

    /// How the output of a refused node would be stored: like the input, where the operator works on
    /// each element, or else by the shape the file declares.
    fn stand_in_shape(&self, node: &Node) -> Option<(Shape, View)> {
        let declared = node.outputs.first().and_then(|name| self.declared_dims(name));
        let like = node.inputs.first().filter(|_| operators::keeps_shape(&node.operator));
        if let Some(Bound::Value(value, view)) = like.and_then(|name| self.bound.get(name.as_str()))
            && declared.as_ref().is_none_or(|dims| *dims == view.dims())
        {
            return Some((self.result.graph.shape(*value), view.clone()));
        }
        let dims = declared?;
        match *dims.as_slice() {
            [1, channels, height, width] => {
                let shape = stored(&[height, width, channels]).ok()?;
                Some((shape, View::nchw(height, width, channels)))
            }
            [_, _] => Some((stored(&dims).ok()?, View::contiguous(&dims))),
            _ => {
                let elements = dims.iter().try_fold(1usize, |a, &b| a.checked_mul(b))?;
                Some((stored(&[1, elements]).ok()?, View::contiguous(&dims)))
            }
        }
    }

    fn declared_dims(&self, name: &str) -> Option<Vec<usize>> {
        let number = |(axis, dim): (usize, &Dimension)| match dim {
            Dimension::Fixed(size) => Some(*size),
            Dimension::Symbol(_) => (axis == 0).then_some(1),
        };
        self.model.declared.get(name)?.iter().enumerate().map(number).collect()
    }

    fn bind(&mut self, node: &'m Node, bound: Bound) {
        if let Some(name) = node.outputs.first().filter(|name| !name.is_empty()) {
            self.bound.insert(name, bound);
        }
    }

    fn origin(&mut self, node: &Node, output: Option<Vec<usize>>) -> Origin {
        let mut inputs = Vec::new();
        for name in node.inputs.iter().filter(|name| !name.is_empty()) {
            let dims = match self.bound.get(name.as_str()) {
                Some(Bound::Value(_, view)) => Some(view.dims()),
                Some(Bound::Unknown) => None,
                None => self.constants.get(name).and_then(Result::ok).map(|it| it.dims()),
            };
            inputs.push((name.clone(), dims));
        }
        let first = output.or_else(|| self.stand_in_shape(node).map(|(_, view)| view.dims()));
        let outputs = node.outputs.iter().filter(|name| !name.is_empty()).enumerate();
        let outputs = outputs
            .map(|(index, name)| (name.clone(), first.clone().filter(|_| index == 0)))
            .collect();
        Origin { node: node.name.clone(), operator: node.operator.clone(), inputs, outputs }
    }

    /// Marks an output of the graph.
    fn output(&mut self, port: &'m Port) -> Result<(), Refusal> {
        let name = &port.name;
        let (value, view) = match self.bound.get(name.as_str()) {
            Some(Bound::Value(value, view)) => (*value, view.clone()),
            Some(Bound::Unknown) => return Ok(()),
            None if self.constants.get(name).is_some() => {
                return Err(Refusal::new(format!("the output `{name}` is a constant")));
            }
            None => {
                return Err(Refusal::new(format!("invalid ONNX: no node produces `{name}`")));
            }
        };
        let dims = view.dims();
        let shape = self.result.graph.shape(value);
        let in_known_order = match shape.as_map() {
            Some((height, width, channels)) => view == View::nchw(height, width, channels),
            None => false,
        };
        if !in_known_order && !view.is_contiguous() {
            return Err(Refusal::new(format!(
                "the output `{name}` of shape {} is in another order than netkit's {shape}",
                shape_text(&dims)
            ))
            .help("let the model end before the Flatten, Reshape or Transpose"));
        }
        if let Some(declared) = &port.dims {
            let agrees = declared.len() == dims.len()
                && declared.iter().zip(&dims).all(|(declared, actual)| match declared {
                    Dimension::Fixed(size) => size == actual,
                    Dimension::Symbol(_) => true,
                });
            if !agrees {
                let declared: Vec<_> = declared.iter().map(ToString::to_string).collect();
                self.result.notes.push(format!(
                    "the file declares the output `{name}` as {}; it is {}",
                    declared.join("×"),
                    shape_text(&dims)
                ));
            }
        }
        self.result.graph.outputs.push(value);
        let interface = Interface { name: name.clone(), dims, view };
        self.result.output.get_or_insert(interface);
        Ok(())
    }
}

/// The input as the first operator on maps that it reaches sees it, in terms of the source's own
/// element order: `[1, channels, height, width]`. If it reaches none unchanged, a transposition from
/// channel-last to channel-first tells as much; `None` without one.
fn demanded_layout<'m>(
    model: &'m Model,
    live: &HashSet<&'m str>,
    input: &'m str,
    dims: &[usize],
) -> Option<View> {
    let mut constants = Constants::new(model);
    let mut views: HashMap<&str, View> = HashMap::new();
    views.insert(input, View::contiguous(dims));
    let mut transposed = None;
    for node in live_nodes(model, live) {
        if constants.absorb(node, |name| views.get(name).map(View::dims)) {
            continue;
        }
        let Some(view) = node.inputs.iter().find_map(|name| views.get(name.as_str())) else {
            continue;
        };
        let on_maps = matches!(
            node.operator.as_str(),
            "Conv"
                | "MaxPool"
                | "AveragePool"
                | "GlobalMaxPool"
                | "GlobalAveragePool"
                | "BatchNormalization"
        );
        if on_maps && view.dims().len() == 4 {
            return Some(view.clone());
        }
        let next = if layout::is_layout_operator(&node.operator) {
            layout::apply(node, view, model.opset, &mut |name| constants.get(name)).ok()
        } else if operators::keeps_shape(&node.operator) {
            Some(view.clone())
        } else {
            None
        };
        if let (Some(view), Some(output)) = (next, node.outputs.first()) {
            let perm = node.ints("perm").ok().flatten();
            if node.operator == "Transpose" && perm == Some(&[0, 3, 1, 2]) {
                transposed.get_or_insert_with(|| view.clone());
            }
            views.insert(output, view);
        }
    }
    transposed
}

fn names(ports: &[&Port]) -> String {
    ports.iter().map(|port| format!("`{}`", port.name)).collect::<Vec<_>>().join(", ")
}
