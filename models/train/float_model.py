"""Float evaluation with NumPy in f64: the reference for test cases and for calibration."""

from __future__ import annotations

import numpy as np

from networks import Conv, Dense, Depthwise, Flatten, GlobalAveragePool, MaxPool, Network
from windows import convolution, depthwise, windows


def activations(network: Network, parameters: dict, inputs: np.ndarray):
    """Runs a network without batch norms on inputs [n, 28, 28, 1].

    Yields (layer, output of the layer before its softmax) for each layer, in f64.
    """
    x = inputs.astype(np.float64).reshape(-1, *network.input_shape)
    for layer in network.layers:
        own = parameters.get(getattr(layer, "name", None))
        match layer:
            case Conv():
                x = convolution(x, own["weight"], layer.stride, layer.padding)
            case Depthwise():
                x = depthwise(x, own["weight"], layer.stride, layer.padding)
            case MaxPool(size):
                x = windows(x, size, size, 0).max((3, 4))
            case GlobalAveragePool():
                x = x.mean((1, 2), keepdims=True)
            case Flatten():
                x = x.reshape(len(x), -1)
            case Dense():
                x = x @ own["weight"].astype(np.float64).T
        if own is not None:
            x = x + own["bias"].astype(np.float64)
        if getattr(layer, "activation", None) == "relu":
            x = np.maximum(x, 0)
        yield layer, x


def probabilities(network: Network, parameters: dict, inputs: np.ndarray) -> np.ndarray:
    """The network's output [n, classes], in f64."""
    *_, (_, logits) = activations(network, parameters, inputs)
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    return exponentials / exponentials.sum(1, keepdims=True)
