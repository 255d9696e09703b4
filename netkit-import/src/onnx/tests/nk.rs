//! What the layers of a `.nk` file compute, by the format's description, in double precision.

use netkit_core::format::{
    Activation, Geometry, Layer, ModelDescription, OwnedPair, TensorData, decode_conv2d,
    decode_depthwise, decode_pool,
};
use netkit_core::op::output_size;

struct Map {
    height: usize,
    width: usize,
    channels: usize,
    data: Vec<f64>,
}

/// Weights and biases of a pair.
fn tensors(pair: &OwnedPair) -> (Vec<f64>, Vec<f64>) {
    let [weight, bias] = [&pair.weight, &pair.bias].map(|tensor| match &tensor.data {
        TensorData::F32(values) => {
            assert_eq!(values.len(), tensor.shape.elements());
            values.iter().map(|&value| value.into()).collect()
        }
        other => panic!("{other:?} in a float model"),
    });
    (weight, bias)
}

fn activate(activation: Activation, alpha: f32, data: &mut [f64]) {
    if activation == Activation::Softmax {
        let largest = data.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        data.iter_mut().for_each(|x| *x = (*x - largest).exp());
        let sum: f64 = data.iter().sum();
        data.iter_mut().for_each(|x| *x /= sum);
        return;
    }
    for x in data {
        *x = match activation {
            Activation::None | Activation::Softmax => *x,
            Activation::Relu => x.max(0.0),
            Activation::Sigmoid => 1.0 / (1.0 + (-*x).exp()),
            Activation::Tanh => x.tanh(),
            Activation::LeakyRelu => {
                if *x > 0.0 {
                    *x
                } else {
                    f64::from(alpha) * *x
                }
            }
            Activation::Relu6 => x.clamp(0.0, 6.0),
        };
    }
}

/// Each output pixel from the in-bounds taps of its window: (tap index, input pixel index).
fn slide(
    map: &Map,
    geometry: &Geometry,
    mut f: impl FnMut(&[(usize, usize)], &mut Vec<f64>),
) -> (usize, usize, Vec<f64>) {
    let [kernel_h, kernel_w, stride, top, left] =
        [geometry.kernel_h, geometry.kernel_w, geometry.stride, geometry.top, geometry.left]
            .map(|value| value as usize);
    let size = |input: usize, kernel, start, end| {
        output_size(input as u32, kernel, geometry.stride, start, end).unwrap() as usize
    };
    let out_h = size(map.height, geometry.kernel_h, geometry.top, geometry.bottom);
    let out_w = size(map.width, geometry.kernel_w, geometry.left, geometry.right);
    let mut out = Vec::new();
    for row in 0..out_h {
        for column in 0..out_w {
            let mut taps = Vec::new();
            for i in 0..kernel_h {
                for j in 0..kernel_w {
                    let (y, x) = (row * stride + i, column * stride + j);
                    if (top..top + map.height).contains(&y) && (left..left + map.width).contains(&x)
                    {
                        taps.push((i * kernel_w + j, (y - top) * map.width + (x - left)));
                    }
                }
            }
            f(&taps, &mut out);
        }
    }
    (out_h, out_w, out)
}

fn pool(map: Map, geometry: &Geometry, f: impl Fn(&[f64]) -> f64) -> Map {
    let c = map.channels;
    let (height, width, data) = slide(&map, geometry, |taps, out| {
        assert!(!taps.is_empty(), "a window in the padding");
        for channel in 0..c {
            let values: Vec<_> = taps.iter().map(|&(_, at)| map.data[at * c + channel]).collect();
            out.push(f(&values));
        }
    });
    Map { height, width, channels: c, data }
}

pub(super) fn evaluate(model: &ModelDescription, input: &[f32]) -> Vec<f64> {
    let (height, width, channels) = model.input.as_map().unwrap_or_else(|| {
        let dims = model.input.dims();
        (1, dims[0] as usize, dims[1] as usize)
    });
    let data = input.iter().map(|&x| x.into()).collect();
    let mut map = Map { height, width, channels, data };
    let mut pairs = model.pairs.iter();
    for layer in &model.layers {
        map = match *layer {
            Layer::Dense(dense) => {
                let (weights, bias) = tensors(pairs.next().unwrap());
                let units = dense.units as usize;
                assert_eq!((weights.len(), bias.len()), (units * map.channels, units));
                let mut data = Vec::new();
                for row in map.data.chunks_exact(map.channels) {
                    for (weights, bias) in weights.chunks_exact(map.channels).zip(&bias) {
                        data.push(bias + weights.iter().zip(row).map(|(w, x)| w * x).sum::<f64>());
                    }
                }
                activate(dense.activation, dense.alpha, &mut data);
                Map { channels: units, data, ..map }
            }
            Layer::Conv2d(conv) => {
                let (weights, bias) = tensors(pairs.next().unwrap());
                let geometry = decode_conv2d(
                    conv.kernel_size,
                    conv.stride,
                    conv.pad_h,
                    conv.pad_w,
                    conv.pad_extra,
                );
                let (filters, c) = (conv.filters as usize, map.channels);
                let taps_of_filter = weights.len() / filters;
                assert_eq!(taps_of_filter, (conv.kernel_size * conv.kernel_size) as usize * c);
                let (height, width, mut data) = slide(&map, &geometry, |taps, out| {
                    for (filter, bias) in weights.chunks_exact(taps_of_filter).zip(&bias) {
                        let mut sum = *bias;
                        for &(tap, at) in taps {
                            for channel in 0..c {
                                sum += filter[tap * c + channel] * map.data[at * c + channel];
                            }
                        }
                        out.push(sum);
                    }
                });
                activate(conv.activation, conv.alpha, &mut data);
                Map { height, width, channels: filters, data }
            }
            Layer::DepthwiseConv2d(conv) => {
                let (weights, bias) = tensors(pairs.next().unwrap());
                let geometry = decode_depthwise(
                    conv.kernel_h,
                    conv.stride,
                    conv.pad_h,
                    conv.pad_w,
                    conv.kw_byte,
                    conv.channels,
                    weights.len() as u32,
                )
                .unwrap();
                let c = map.channels;
                assert_eq!((conv.channels as usize, bias.len()), (c, c));
                let area = weights.len() / c;
                let (height, width, mut data) = slide(&map, &geometry, |taps, out| {
                    for channel in 0..c {
                        let sum = taps.iter().map(|&(tap, at)| {
                            weights[channel * area + tap] * map.data[at * c + channel]
                        });
                        out.push(bias[channel] + sum.sum::<f64>());
                    }
                });
                activate(conv.activation, conv.alpha, &mut data);
                Map { height, width, channels: c, data }
            }
            Layer::MaxPool2d(it) => {
                let geometry =
                    decode_pool(it.pool_size, it.stride, it.pad_h, it.pad_w, it.pool_extra);
                pool(map, &geometry, |values| {
                    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
                })
            }
            Layer::AvgPool2d(it) => {
                let geometry =
                    decode_pool(it.pool_size, it.stride, it.pad_h, it.pad_w, it.pool_extra);
                pool(map, &geometry, |values| values.iter().sum::<f64>() / values.len() as f64)
            }
            Layer::Flatten => Map { height: 1, width: 1, channels: map.data.len(), data: map.data },
            Layer::BatchNorm2d(norm) => {
                let (scale, shift) = tensors(pairs.next().unwrap());
                assert_eq!(norm.channels as usize, map.channels);
                let scaled = map.data.iter().enumerate().map(|(index, x)| {
                    x * scale[index % map.channels] + shift[index % map.channels]
                });
                let data = scaled.collect();
                Map { data, ..map }
            }
            ref other => panic!("{other:?} is never made"),
        };
    }
    assert!(pairs.next().is_none());
    map.data
}
