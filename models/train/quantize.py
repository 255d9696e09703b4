"""Post-training quantization to int8: weights per output channel, activations by their extremes.

What comes out follows section 8 of docs/format.md. Ranges are taken in f64 and rounded to f32
once, so that they do not depend on the order in which a machine sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import float_model
from networks import Network

# The largest sum of one product is 255 * 127; a bias plus all of them has to fit an i32.
_LARGEST_PRODUCT = 255 * 128


@dataclass(frozen=True)
class Quantization:
    """Real value = scale * (q - zero_point)."""

    scale: np.float32
    zero_point: int


@dataclass(frozen=True)
class QuantizedLayer:
    """One conv, depthwise or dense: weights i8 in the float layout, bias i32 in units of
    input.scale * weight_scales[channel]; `output` is that of the logits where a softmax follows."""

    input: Quantization
    output: Quantization
    weight_scales: np.ndarray
    weight: np.ndarray
    bias: np.ndarray


# Pixels / 255 in 0..1 become q = pixel - 128, with no loss.
PIXELS = Quantization(np.float32(1 / 255), -128)
SOFTMAX_OUTPUT = Quantization(np.float32(1 / 256), -128)


def quantize(network: Network, parameters: dict, calibration: np.ndarray) -> dict:
    """Quantizes a network without batch norms: a dict from layer name to `QuantizedLayer`.

    `calibration` holds the inputs [n, 28, 28, 1] whose activations set the ranges. Pools and
    flatten pass the quantization of their input through.
    """
    quantized = {}
    current = PIXELS
    for layer, output in float_model.activations(network, parameters, calibration):
        if not hasattr(layer, "name"):
            continue
        target = _activation_quantization(output.min(), output.max())
        own = parameters[layer.name]
        quantized[layer.name] = _quantize_layer(own["weight"], own["bias"], current, target)
        current = target
    return quantized


def _activation_quantization(low: float, high: float) -> Quantization:
    """The whole of -128..127 over low..high, widened to hold 0, which is represented exactly."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = np.float32(max(high - low, 1e-6) / 255)
    zero_point = int(np.clip(np.rint(-128 - low / np.float64(scale)), -128, 127))
    return Quantization(scale, zero_point)


def _quantize_layer(
    weight: np.ndarray, bias: np.ndarray, input: Quantization, output: Quantization
) -> QuantizedLayer:
    channels = weight.shape[0]
    flat = weight.reshape(channels, -1).astype(np.float64)
    bias = bias.astype(np.float64)
    # A channel of next to no weight would need a bias beyond i32: its scale is held up.
    bias_limit = 2**31 - 1 - _LARGEST_PRODUCT * flat.shape[1] - 2**16
    smallest = np.abs(bias) / (np.float64(input.scale) * bias_limit)
    scales = np.maximum(np.maximum(np.abs(flat).max(1) / 127, smallest), 1e-12).astype(np.float32)
    wide = scales.astype(np.float64)
    rounded = np.clip(np.rint(flat / wide[:, None]), -127, 127)
    return QuantizedLayer(
        input=input,
        output=output,
        weight_scales=scales,
        weight=rounded.astype(np.int8).reshape(weight.shape),
        bias=np.rint(bias / (np.float64(input.scale) * wide)).astype(np.int32),
    )
