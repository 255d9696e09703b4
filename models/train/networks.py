"""The three digit networks, as lists of layers, and what can be told from the list alone.

Tensors are NHWC. Parameters are a dict from layer name to a dict of arrays, in one layout from
training to the `.nk` file:

    conv       weight [filters, kernel, kernel, in]     bias [filters]
    depthwise  weight [channels, kernel, kernel]        bias [channels]
    dense      weight [units, in]                       bias [units]

A layer with a batch norm has `gamma`, `beta`, `mean`, `variance` [channels] in place of the bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

BATCH_NORM_EPSILON = 1e-3


@dataclass(frozen=True)
class Conv:
    """Square convolution; `padding` on all four sides; bias or batch norm; then the activation."""

    name: str
    filters: int
    kernel: int = 3
    stride: int = 1
    padding: int = 0
    batch_norm: bool = False
    activation: str = "relu"


@dataclass(frozen=True)
class Depthwise:
    """One square filter a channel; otherwise as `Conv`."""

    name: str
    kernel: int = 3
    stride: int = 1
    padding: int = 0
    batch_norm: bool = False
    activation: str = "relu"


@dataclass(frozen=True)
class MaxPool:
    """Square windows that do not overlap; an incomplete last row or column is dropped."""

    size: int


@dataclass(frozen=True)
class GlobalAveragePool:
    """The mean over height and width; keeps a 1x1 map."""


@dataclass(frozen=True)
class Flatten:
    """H x W x C to a vector, channels fastest."""


@dataclass(frozen=True)
class Dense:
    name: str
    units: int
    activation: str = "relu"


@dataclass(frozen=True)
class Network:
    name: str
    input_shape: tuple[int, ...]
    layers: tuple


def _separable(index: int, filters: int, stride: int = 1) -> tuple:
    """Depthwise 3x3, then pointwise to `filters`, each with batch norm and relu."""
    return (
        Depthwise(f"depthwise{index}", stride=stride, padding=1, batch_norm=True),
        Conv(f"pointwise{index}", filters, kernel=1, batch_norm=True),
    )


MLP = Network(
    "mnist_mlp",
    (784,),
    (Dense("dense1", 128), Dense("dense2", 10, "softmax")),
)

CNN = Network(
    "mnist_cnn",
    (28, 28, 1),
    (
        Conv("conv1", 32),
        MaxPool(2),
        Conv("conv2", 64),
        MaxPool(2),
        Flatten(),
        Dense("dense1", 128),
        Dense("dense2", 10, "softmax"),
    ),
)

DSCNN = Network(
    "mnist_dscnn",
    (28, 28, 1),
    (
        Conv("stem", 32, stride=2, padding=1, batch_norm=True),
        *_separable(1, 64),
        *_separable(2, 64, stride=2),
        *_separable(3, 96),
        *_separable(4, 96),
        GlobalAveragePool(),
        Flatten(),
        Dense("dense", 10, "softmax"),
    ),
)

NETWORKS = {network.name: network for network in (MLP, CNN, DSCNN)}


def output_shape(layer, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of `layer`'s output for an input of `shape`."""
    match layer:
        case Conv() | Depthwise():
            overhang = 2 * layer.padding - layer.kernel
            return (
                (shape[0] + overhang) // layer.stride + 1,
                (shape[1] + overhang) // layer.stride + 1,
                layer.filters if isinstance(layer, Conv) else shape[2],
            )
        case MaxPool(size):
            return (shape[0] // size, shape[1] // size, shape[2])
        case GlobalAveragePool():
            return (1, 1, shape[2])
        case Flatten():
            return (math.prod(shape),)
        case Dense(units=units):
            return (units,)


def with_shapes(network: Network):
    """Yields (layer, input shape, output shape)."""
    shape = network.input_shape
    for layer in network.layers:
        out = output_shape(layer, shape)
        yield layer, shape, out
        shape = out


def weight_shape(layer, in_shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of the layer's weight, None where it has none."""
    match layer:
        case Conv():
            return (layer.filters, layer.kernel, layer.kernel, in_shape[-1])
        case Depthwise():
            return (in_shape[-1], layer.kernel, layer.kernel)
        case Dense():
            return (layer.units, in_shape[-1])


def has_batch_norm(layer) -> bool:
    return getattr(layer, "batch_norm", False)


def parameter_count(network: Network) -> int:
    """Weights and biases once batch norms are folded: what the `.nk` file stores."""
    shapes = (weight_shape(layer, in_shape) for layer, in_shape, _ in with_shapes(network))
    return sum(math.prod(shape) + shape[0] for shape in shapes if shape)


def multiply_accumulates(network: Network) -> int:
    """Multiply-accumulates of conv, depthwise and dense layers, padded taps counted."""
    total = 0
    for layer, in_shape, out_shape in with_shapes(network):
        shape = weight_shape(layer, in_shape)
        if shape:
            total += math.prod(out_shape) * math.prod(shape[1:])
    return total


def fold_batch_norms(network: Network, parameters: dict) -> tuple[Network, dict]:
    """The same function without batch norms: each is folded into the layer before it.

    Computed in f64, rounded to f32 once.
    """
    layers, folded = [], {}
    for layer in network.layers:
        if not has_batch_norm(layer):
            layers.append(layer)
            if hasattr(layer, "name"):
                folded[layer.name] = parameters[layer.name]
            continue
        p = {key: np.asarray(value, np.float64) for key, value in parameters[layer.name].items()}
        scale = p["gamma"] / np.sqrt(p["variance"] + np.float64(np.float32(BATCH_NORM_EPSILON)))
        per_filter = scale.reshape(-1, *[1] * (p["weight"].ndim - 1))
        layers.append(replace(layer, batch_norm=False))
        folded[layer.name] = {
            "weight": (p["weight"] * per_filter).astype(np.float32),
            "bias": (p["beta"] - p["mean"] * scale).astype(np.float32),
        }
    return replace(network, layers=tuple(layers)), folded
