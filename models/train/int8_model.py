"""Int8 evaluation with NumPy, to the last bit as section 8 of docs/format.md defines it.

Whole batches at a time, so that all 10,000 test digits take seconds. Sums are taken in f64, where
they are exact: none reaches 2^53.
"""

from __future__ import annotations

import math

import numpy as np

from networks import Conv, Dense, Depthwise, Flatten, GlobalAveragePool, MaxPool, Network
from quantize import QuantizedLayer, Quantization
from windows import convolution, depthwise, windows

_I32_MAX = 2**31 - 1


def run(network: Network, layers: dict, inputs: np.ndarray) -> np.ndarray:
    """Outputs i8 [n, classes] for inputs i8 [n, 28, 28, 1]."""
    x = inputs.reshape(-1, *network.input_shape)
    for layer in network.layers:
        match layer:
            case Conv() | Depthwise() | Dense():
                own = layers[layer.name]
                q = _requantize(_accumulate(layer, own, x), own)
                floor = own.output.zero_point if layer.activation == "relu" else -128
                x = np.clip(q, floor, 127).astype(np.int8)
                if layer.activation == "softmax":
                    x = _softmax(x, own.output)
            case MaxPool(size):
                x = windows(x, size, size, 0).max((3, 4))
            case GlobalAveragePool():
                x = _average(x)
            case Flatten():
                x = x.reshape(len(x), -1)
    return x


def quantize_pixels(images: np.ndarray) -> np.ndarray:
    """The i8 input for u8 images [n, 28, 28]: pixel - 128."""
    return (images.astype(np.int16) - 128).astype(np.int8)[..., None]


def multiplier_of(real: float) -> tuple[int, int]:
    """Section 8.2: `real` as (multiplier, shift), multiplier / 2^31 * 2^shift."""
    if real <= 0:
        return 0, 0
    fraction, shift = math.frexp(real)
    multiplier = math.floor(fraction * 2**31 + 0.5)
    if multiplier == 2**31:
        multiplier, shift = 2**30, shift + 1
    if shift < -31:
        return 0, 0
    if shift > 30:
        return _I32_MAX, 30
    return multiplier, shift


def _accumulate(layer, own: QuantizedLayer, x: np.ndarray) -> np.ndarray:
    # Zero points are taken off first: a padded tap then is 0, as it has to be.
    real = x.astype(np.float64) - own.input.zero_point
    match layer:
        case Conv():
            total = convolution(real, own.weight, layer.stride, layer.padding)
        case Depthwise():
            total = depthwise(real, own.weight, layer.stride, layer.padding)
        case Dense():
            total = real @ own.weight.astype(np.float64).T
    return total.astype(np.int64) + own.bias


def _requantize(total: np.ndarray, own: QuantizedLayer) -> np.ndarray:
    real = [
        float(own.input.scale) * float(scale) / float(own.output.scale)
        for scale in own.weight_scales
    ]
    pairs = np.array([multiplier_of(value) for value in real], np.int64)
    return _rescale(total, pairs[:, 0], pairs[:, 1]) + own.output.zero_point


def _rescale(x: np.ndarray, multiplier, shift) -> np.ndarray:
    """Section 8.3, `mbqm`: two roundings."""
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    return _divide_by_power(_high_product(x << left, multiplier), right)


def _truncated(dividend: np.ndarray, divisor) -> np.ndarray:
    """Integer division towards zero."""
    return np.sign(dividend) * (np.abs(dividend) // divisor)


def _high_product(a, b) -> np.ndarray:
    """`srdhm`: a * b / 2^31 to nearest; never called with both -2^31."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return _truncated(product + np.where(product >= 0, 2**30, 1 - 2**30), 2**31)


def _divide_by_power(x: np.ndarray, exponent) -> np.ndarray:
    """`rdp`: x / 2^exponent to nearest, ties away from zero."""
    mask = (np.int64(1) << exponent) - 1
    threshold = (mask >> 1) + (x < 0)
    return (x >> exponent) + ((x & mask) > threshold)


def _average(x: np.ndarray) -> np.ndarray:
    """Section 8.5 over the whole map: raw values, ties away from raw 0."""
    count = x.shape[1] * x.shape[2]
    total = x.sum((1, 2), dtype=np.int64, keepdims=True)
    return _truncated(total + np.where(total > 0, count // 2, -(count // 2)), count).astype(np.int8)


def _softmax(logits: np.ndarray, quantization: Quantization) -> np.ndarray:
    """Section 8.8, row by row of logits i8 [n, units]."""
    multiplier, shift = multiplier_of(min(float(quantization.scale) * 2**26, float(_I32_MAX)))
    smallest = -math.floor(31 * 2**26 / 2.0**shift)
    wide = logits.astype(np.int64)
    below = wide - wide.max(1, keepdims=True)
    counted = below >= smallest
    arguments = _rescale(np.where(counted, below, 0), np.int64(multiplier), np.int64(shift))
    exponentials = _exponential(arguments)
    total = np.where(counted, _divide_by_power(exponentials, 12), 0).sum(1, keepdims=True)
    head = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    reciprocal = _reciprocal_of_one_plus((total << head) - 2**31)
    scaled = _divide_by_power(_high_product(reciprocal, exponentials), 35 - head) - 128
    return np.where(counted, np.clip(scaled, -128, 127), -128).astype(np.int8)


def _exponential(v: np.ndarray) -> np.ndarray:
    """e^v of v <= 0 in Q5.26, as Q0.31."""
    modulus = (v & (2**24 - 1)) - 2**24
    remainder = modulus - v
    x = modulus * 32 + 2**28
    x2 = _high_product(x, x)
    t = _divide_by_power(_high_product(x2, x2), 2) + _high_product(x2, x)
    cubic = _divide_by_power(_high_product(t, 715827883) + x2, 1)
    y = 1895147668 + _high_product(1895147668, x + cubic)
    factors = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
    for bit, factor in enumerate(factors, 24):
        y = np.where(remainder & (1 << bit), _high_product(y, factor), y)
    return np.where(v == 0, _I32_MAX, y)


def _reciprocal_of_one_plus(f: np.ndarray) -> np.ndarray:
    """1 / (1 + f) of f in 0..1, both Q0.31: three Newton steps."""
    total = f + _I32_MAX
    half = _truncated(total + np.where(total >= 0, 1, -1), 2)
    r = 1515870810 + _high_product(half, -1010580540)
    for _ in range(3):
        correction = _high_product(r, 2**29 - _high_product(half, r)) * 4
        r = r + np.clip(correction, -(2**31), _I32_MAX)
    return np.clip(2 * r, -(2**31), _I32_MAX)
