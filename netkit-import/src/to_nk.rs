//! The graph as the layers of a `.nk` file, or everything that keeps it from being one.

use crate::graph::{Activation, Affine, Conv2d, Dense, Graph, Node, Op, Window};
use crate::obstacle::{Obstacle, Obstacles, Origin, Refusal};
use netkit_core::format::{
    self, BatchNorm2d, DepthwiseConv2d, Geometry, Layer, MAX_LAYERS, MAX_TENSORS, ModelDescription,
    NetworkKind, OwnedPair, OwnedTensor, Pool2d, TensorData, encode_conv2d, encode_depthwise,
    encode_pool,
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
            affine_layer(&affine, input).map(|layer| vec![layer]).map_err(|it| vec![it])
        }
        Op::Activation(activation) => {
            activation_layer(activation, input).map(|layer| vec![layer]).map_err(|it| vec![it])
        }
    }
}

fn dense_layers(dense: Dense, input: Shape) -> Result<Vec<Encoded>, Refusal> {
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
    let layer = Layer::Dense(format::Dense { units, activation, alpha });
    let mut layers = Vec::with_capacity(2);
    if input.as_map().is_some() {
        layers.push((Layer::Flatten, None));
    }
    layers.push((layer, Some(pair)));
    Ok(layers)
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
        encode(&conv.window, input, false, encode_depthwise).and_then(
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
        encode(&square, input, false, |geometry| {
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
    let (geometry, (pad_h, pad_w, pool_extra)) = encode(window, input, true, encode_pool)?;
    Ok(Pool2d { pool_size: geometry.kernel_h, stride: geometry.stride, pad_h, pad_w, pool_extra })
}

/// A scale and shift that stayed by itself: a batch norm, or with an activation, which the record of a
/// batch norm has no room for, a depthwise 1×1 convolution, which is the same arithmetic.
fn affine_layer(affine: &Affine, input: Shape) -> Result<Encoded, Refusal> {
    let Some((_, _, channels)) = input.as_map() else {
        return Err(Refusal::new("a scale and shift with no dense layer beside it to take it in")
            .help("in a .nk file only maps can be scaled and shifted by a layer of its own"));
    };
    limit_channels(channels)?;
    let (scale, shift) = (affine.scale.to_rounded(channels), affine.shift.to_rounded(channels));
    if affine.activation != Activation::None {
        return pointwise(scale, shift, affine.activation);
    }
    let channels_field = narrow(channels)?;
    let layer = Layer::BatchNorm2d(BatchNorm2d { channels: channels_field });
    Ok((layer, Some(pair(&[channels], scale, shift)?)))
}

/// An activation that nothing before it could take in.
fn activation_layer(activation: Activation, input: Shape) -> Result<Encoded, Refusal> {
    let Some((_, _, channels)) = input.as_map() else {
        return Err(Refusal::new("an activation with no layer before it to take it in")
            .help("in a .nk file an activation belongs to a dense or convolution layer"));
    };
    limit_channels(channels)?;
    pointwise(vec![1.0; channels], vec![0.0; channels], activation)
}

/// Keeps weights that the source does not hold within reason.
fn limit_channels(channels: usize) -> Result<(), Refusal> {
    const MOST: usize = 1 << 16;
    if channels > MOST {
        return Err(Refusal::new(format!("a layer on {channels} channels; the most is {MOST}")));
    }
    Ok(())
}

fn pointwise(scale: Vec<f32>, shift: Vec<f32>, activation: Activation) -> Result<Encoded, Refusal> {
    let (activation, alpha) = activation_code(activation);
    let channels = scale.len();
    let layer = Layer::DepthwiseConv2d(DepthwiseConv2d {
        kernel_h: 1,
        stride: 1,
        channels: narrow(channels)?,
        activation,
        pad_h: 0,
        pad_w: 0,
        kw_byte: 1,
        alpha,
    });
    Ok((layer, Some(pair(&[channels, 1, 1], scale, shift)?)))
}

/// The window as a record holds it. `encoder` writes its bytes, if it can.
///
/// Where a record cannot hold the padding as it is, another that gives the same windows may do: what
/// lies behind the last window is never read, so the end padding is free within a stride.
fn encode<T>(
    window: &Window,
    input: Shape,
    pool: bool,
    encoder: impl Fn(&Geometry) -> Option<T>,
) -> Result<(Geometry, T), Vec<Refusal>> {
    let Some((height, width, _)) = input.as_map() else {
        return Err(vec![Refusal::new("its input is no map")]);
    };
    let mut refusals = Vec::new();
    let (h, w) = (window.dilation.0, window.dilation.1);
    if (h != 1 && window.kernel.0 > 1) || (w != 1 && window.kernel.1 > 1) {
        let reason = format!("a dilation of {h}×{w}; a .nk file holds windows without dilation");
        refusals.push(Refusal::new(reason).help("train with dilation 1"));
    }
    // Where there is only one window along an axis, it never steps.
    let stride = match (window.stride, window.output) {
        ((h, w), _) if h == w => Some(h),
        ((_, w), (1, _)) => Some(w),
        ((h, _), (_, 1)) => Some(h),
        ((h, w), _) => {
            let reason =
                format!("strides of {h} and {w}; in a .nk file both axes have the same stride");
            refusals.push(Refusal::new(reason).help("train with the same stride on both axes"));
            None
        }
    };
    let (Some(stride), true) = (stride, refusals.is_empty()) else {
        return Err(refusals);
    };
    let padding = window.padding;
    let rows = end_paddings(
        (height, window.kernel.0, stride, window.output.0),
        (padding.top, padding.bottom),
        pool,
    );
    let columns = end_paddings(
        (width, window.kernel.1, stride, window.output.1),
        (padding.left, padding.right),
        pool,
    );
    for &bottom in &rows {
        for &right in &columns {
            let geometry = Geometry {
                kernel_h: window.kernel.0,
                kernel_w: window.kernel.1,
                stride,
                top: padding.top,
                left: padding.left,
                bottom,
                right,
            };
            if let Some(record) = encoder(&geometry) {
                return Ok((geometry, record));
            }
        }
    }
    let (kernel_h, kernel_w) = window.kernel;
    let reason = if rows.is_empty() || columns.is_empty() {
        "in a .nk file the padding at the start of an axis is at most 255, and that at the end as much \
         or up to 15 more"
    } else {
        "no record of a .nk file says this"
    };
    Err(vec![
        Refusal::new(format!(
            "a {kernel_h}×{kernel_w} window with padding top {}, left {}, bottom {}, right {}; {reason}",
            padding.top, padding.left, padding.bottom, padding.right
        ))
        .help("train with the same padding on both sides"),
    ])
}

/// The end paddings that a record can hold and that give the same windows, the source's own first.
fn end_paddings(
    (input, kernel, stride, output): (usize, u32, u32, u32),
    (start, end): (u32, u32),
    pool: bool,
) -> Vec<u32> {
    let [input, kernel, stride, output, start, end] =
        [input as i64, kernel.into(), stride.into(), output.into(), start.into(), end.into()];
    // output = ⌊(input + start + e − kernel) / stride⌋ + 1 for e from `least` on, stride many.
    let least = (output - 1) * stride + kernel - input - start;
    let last = least + stride - 1;
    let fits = |e: &i64| {
        (least..=last).contains(e)
            && (start..=start + 15).contains(e)
            && start <= 255
            && (!pool || *e < kernel)
    };
    let own = [end].into_iter().filter(fits);
    let others = (start..=start + 15).filter(|e| *e != end).filter(fits);
    own.chain(others).filter_map(|e| u32::try_from(e).ok()).collect()
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
