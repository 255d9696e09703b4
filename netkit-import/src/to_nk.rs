//! The graph as the layers of a `.nk` file, or everything that keeps it from being one.

mod elementwise;
mod window;

use crate::graph::{Activation, Conv2d, Dense, Graph, Node, Op, Window};
use crate::obstacle::{Obstacle, Obstacles, Origin, Refusal};
use netkit_core::format::{
    self, DepthwiseConv2d, Geometry, Layer, MAX_LAYERS, MAX_TENSORS, ModelDescription, NetworkKind,
    OwnedPair, OwnedTensor, Pool2d, TensorData, encode_conv2d, encode_depthwise, encode_pool,
};
use netkit_core::tensor::Shape;
use std::sync::Arc;

/// The layers and the node each comes from, or every obstacle. `found` are obstacles known before;
/// with them, what each node by itself cannot be is still looked for.
pub(crate) fn to_nk(
    graph: Graph,
    mut found: Vec<Obstacle>,
) -> Result<(ModelDescription, Vec<Arc<Origin>>), Obstacles> {
    let input = graph.inputs.first().map(|&input| graph.shape(input));
    let broken_chain = chain_refusal(&graph);
    let reads: Vec<Option<Shape>> = graph
        .nodes
        .iter()
        .map(|node| node.inputs.first().map(|&value| graph.shape(value)))
        .collect();
    let (mut layers, mut layer_count, mut pair_count) = (Vec::new(), 0, 0);
    for (node, read) in graph.nodes.into_iter().zip(reads) {
        let (Some(read), origin) = (read, node.origin.clone()) else { continue };
        match node_layers(node, read) {
            Ok(list) => {
                layer_count += list.len();
                pair_count += list.iter().filter(|(_, pair)| pair.is_some()).count();
                // Of what is too long anyway, no more is kept.
                if layer_count <= MAX_LAYERS as usize {
                    layers.extend(list.into_iter().map(|layer| (layer, origin.clone())));
                }
            }
            Err(refusals) => found.extend(refusals.into_iter().map(|it| it.at(&origin))),
        }
    }
    if let Some(obstacles) = Obstacles::new(found) {
        return Err(obstacles);
    }
    let Some(input) = input.filter(|_| layer_count > 0) else {
        return Err(Refusal::new("the model computes nothing").in_model().into());
    };
    if let Some(obstacle) = broken_chain {
        return Err(obstacle.into());
    }
    if layer_count > MAX_LAYERS as usize || pair_count > MAX_TENSORS as usize {
        let reason = format!(
            "the model has {layer_count} layers, {pair_count} of them with weights; a .nk file holds \
             {MAX_LAYERS} and {MAX_TENSORS}"
        );
        return Err(Refusal::new(reason).in_model().into());
    }
    let kind = match input.as_map() {
        Some(_) => NetworkKind::Cnn,
        None => NetworkKind::Mlp,
    };
    let mut model = ModelDescription::new(kind, input);
    let mut origins = Vec::with_capacity(layers.len());
    for ((layer, pair), origin) in layers {
        model.push(layer, pair);
        origins.push(origin);
    }
    Ok((model, origins))
}

/// What keeps the graph from being a chain. Joins are refused where they are read, and what branches
/// without joining again has several outputs, which are refused too; this is the last word.
fn chain_refusal(graph: &Graph) -> Option<Obstacle> {
    let mut current = *graph.inputs.first()?;
    for node in &graph.nodes {
        if node.inputs != [current] {
            let reason = "it does not read what the layer before it gives";
            let help = "only sequential models can be converted";
            return Some(Refusal::new(reason).help(help).at(&node.origin));
        }
        current = node.output;
    }
    (graph.outputs != [current])
        .then(|| Refusal::new("the output is not what the last layer gives").in_model())
}

type Encoded = (Layer, Option<OwnedPair>);

fn node_layers(node: Node, input: Shape) -> Result<Vec<Encoded>, Vec<Refusal>> {
    match node.op {
        Op::Refused => Ok(Vec::new()),
        Op::Dense(dense) => dense_layers(dense, input).map_err(|refusal| vec![refusal]),
        Op::Conv2d(conv) => convolution_layer(conv, input).map(|layer| vec![layer]),
        Op::MaxPool2d(window) => {
            pool_record(&window, input).map(|pool| vec![(Layer::MaxPool2d(pool), None)])
        }
        Op::AveragePool2d(window) => {
            pool_record(&window, input).map(|pool| vec![(Layer::AvgPool2d(pool), None)])
        }
        Op::Affine(affine) => {
            elementwise::affine(&affine, input).map(|it| vec![it]).map_err(|it| vec![it])
        }
        Op::Activation(activation) => {
            elementwise::activation(activation, input).map(|it| vec![it]).map_err(|it| vec![it])
        }
    }
}

fn dense_layers(dense: Dense, input: Shape) -> Result<Vec<Encoded>, Refusal> {
    let mut layers = Vec::with_capacity(2);
    if input.as_map().is_some() {
        layers.push((Layer::Flatten, None));
    }
    layers.push(dense_layer(dense, input)?);
    Ok(layers)
}

/// A dense layer on each row of its input, or on a whole map.
fn dense_layer(dense: Dense, input: Shape) -> Result<Encoded, Refusal> {
    let rows = if input.as_map().is_some() { 1 } else { input.dims()[0] };
    if rows > 1 && dense.activation == Activation::Softmax {
        return Err(Refusal::new(format!(
            "a softmax over {rows} rows; in a .nk file there is one over a single row"
        ))
        .help("give the input shape for a batch of 1: --input-shape"));
    }
    let (activation, alpha) = activation_code(dense.activation);
    let pair = pair(&[dense.out_features, dense.in_features], dense.weights, dense.bias)?;
    let units = narrow(dense.out_features)?;
    Ok((Layer::Dense(format::Dense { units, activation, alpha }), Some(pair)))
}

fn convolution_layer(conv: Conv2d, input: Shape) -> Result<Encoded, Vec<Refusal>> {
    let mut refusals = Vec::new();
    let depthwise = conv.groups > 1 && conv.groups == conv.in_channels;
    if depthwise && conv.out_channels != conv.in_channels {
        let multiplier = conv.out_channels / conv.in_channels;
        let reason = format!(
            "a depthwise convolution that makes {multiplier} channels of each; a .nk file can hold \
             those that make one"
        );
        refusals.push(Refusal::new(reason).help("put a 1×1 convolution before it instead"));
    } else if conv.groups > 1 && !depthwise {
        let reason = format!(
            "a convolution in {} groups; a .nk file can hold one group, or one for each channel",
            conv.groups
        );
        refusals.push(Refusal::new(reason).help("train with groups=1 or a depthwise convolution"));
    }
    if !depthwise && conv.window.kernel.0 != conv.window.kernel.1 {
        let (h, w) = conv.window.kernel;
        let reason = format!(
            "a {h}×{w} kernel; in a .nk file only depthwise kernels can be other than square"
        );
        refusals.push(Refusal::new(reason).help("train with a square kernel"));
    }
    let (activation, alpha) = activation_code(conv.activation);
    let (kernel_h, kernel_w) = (conv.window.kernel.0 as usize, conv.window.kernel.1 as usize);
    let layer = if depthwise {
        window::encode(&conv.window, input, false, encode_depthwise).and_then(
            |(geometry, (pad_h, pad_w, kw_byte))| {
                let channels = narrow(conv.out_channels).map_err(|it| vec![it])?;
                Ok(Layer::DepthwiseConv2d(DepthwiseConv2d {
                    kernel_h: geometry.kernel_h,
                    stride: geometry.stride,
                    channels,
                    activation,
                    pad_h,
                    pad_w,
                    kw_byte,
                    alpha,
                }))
            },
        )
    } else {
        // A kernel that is not square is refused above; the padding is still looked at.
        let square = Window { kernel: conv.window.kernel, ..conv.window };
        window::encode(&square, input, false, |geometry| {
            encode_conv2d(&Geometry { kernel_w: geometry.kernel_h, ..*geometry })
        })
        .and_then(|(geometry, (pad_h, pad_w, pad_extra))| {
            let filters = narrow(conv.out_channels).map_err(|it| vec![it])?;
            Ok(Layer::Conv2d(format::Conv2d {
                kernel_size: geometry.kernel_h,
                stride: geometry.stride,
                filters,
                activation,
                pad_h,
                pad_w,
                pad_extra,
                alpha,
            }))
        })
    };
    let layer = match layer {
        Ok(layer) if refusals.is_empty() => layer,
        Ok(_) => return Err(refusals),
        Err(more) => {
            refusals.extend(more);
            return Err(refusals);
        }
    };
    let dims: &[usize] = if depthwise {
        &[conv.out_channels, kernel_h, kernel_w]
    } else {
        &[conv.out_channels, kernel_h, kernel_w, conv.in_channels]
    };
    let pair = pair(dims, conv.weights, conv.bias).map_err(|it| vec![it])?;
    Ok((layer, Some(pair)))
}

fn pool_record(window: &Window, input: Shape) -> Result<Pool2d, Vec<Refusal>> {
    let (geometry, (pad_h, pad_w, pool_extra)) = window::encode(window, input, true, encode_pool)?;
    Ok(Pool2d { pool_size: geometry.kernel_h, stride: geometry.stride, pad_h, pad_w, pool_extra })
}

/// The code and the slope. Where there is no slope, the format wants 0.01.
fn activation_code(activation: Activation) -> (format::Activation, f32) {
    let code = match activation {
        Activation::None => format::Activation::None,
        Activation::Relu => format::Activation::Relu,
        Activation::Relu6 => format::Activation::Relu6,
        Activation::LeakyRelu(slope) => return (format::Activation::LeakyRelu, slope),
        Activation::Sigmoid => format::Activation::Sigmoid,
        Activation::Tanh => format::Activation::Tanh,
        Activation::Softmax => format::Activation::Softmax,
    };
    (code, 0.01)
}

fn pair(dims: &[usize], weights: Vec<f32>, bias: Vec<f32>) -> Result<OwnedPair, Refusal> {
    let shape = |dims: &[usize]| -> Result<Shape, Refusal> {
        let dims = dims.iter().map(|&dim| narrow(dim)).collect::<Result<Vec<_>, _>>()?;
        Shape::new(&dims)
            .ok_or_else(|| Refusal::new(format!("weights of shape {dims:?} are too large")))
    };
    Ok(OwnedPair {
        weight: OwnedTensor { shape: shape(dims)?, data: TensorData::F32(weights) },
        bias: OwnedTensor { shape: shape(&[bias.len()])?, data: TensorData::F32(bias) },
    })
}

fn narrow(size: usize) -> Result<u32, Refusal> {
    u32::try_from(size)
        .map_err(|_| Refusal::new(format!("{size} is more than the format can hold")))
}
