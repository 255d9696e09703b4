"""Post-training quantisation to int8: min/max calibration, symmetric weights, int32 biases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .evaluate import float_values
from .network import Network, Pair


@dataclass(frozen=True)
class Quant:
    """real = scale · (q − zero_point); `scale` is an exact f32."""

    scale: float
    zero_point: int


SOFTMAX_OUTPUT = Quant(1.0 / 256.0, -128)


@dataclass
class Record:
    """The QUAN record of one pair. `channel_scales` is `None` where the whole tensor shares `weight_scale`."""

    pair: Pair
    input: Quant
    output: Quant
    weight_scale: float
    bias_scale: float
    channel_scales: np.ndarray | None

    def scales_of(self, channels):
        if self.channel_scales is not None:
            return self.channel_scales
        return np.full(channels, self.weight_scale, np.float32)


@dataclass
class QuantizedNetwork:
    """`quants[v]` for every value, `records[i]` for every operator with weights."""

    network: Network
    quants: dict[int, Quant]
    records: dict[int, Record]

    def stored_records(self):
        return [self.records[index] for index in sorted(self.records)]


def _affine(low, high):
    """The int8 scale and zero point of a range; zero is always exact."""
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    scale = float(np.float32((high - low) / 255.0)) or 1.0
    return Quant(scale, int(np.clip(round(-128 - low / scale), -128, 127)))


def quantize(network: Network, samples, per_channel: bool) -> QuantizedNetwork:
    ranges: dict[int, tuple[float, float]] = {}
    for sample in samples:
        for value, array in float_values(network, sample).items():
            low, high = ranges.get(value, (np.inf, -np.inf))
            ranges[value] = (min(low, array.min()), max(high, array.max()))

    quants = {0: _affine(*ranges[0])}
    shared = {}  # value → the value whose range it must share
    for position, operator in enumerate(network.operators):
        # The format keeps one quantisation for a residual sum and the projection that feeds it.
        following = network.operators[position + 1] if position + 1 < len(network.operators) else None
        if following and following.kind == "add" and following.inputs[0] == operator.output and network.int8_storable:
            shared[operator.output] = following.output
    records = {}
    for index, operator in enumerate(network.operators):
        source = quants[operator.inputs[0]]
        if operator.kind in ("max_pool", "avg_pool", "flatten"):
            quants[operator.output] = source
        elif operator.kind == "softmax":
            quants[operator.output] = SOFTMAX_OUTPUT
        else:
            quants[operator.output] = _affine(*ranges[shared.get(operator.output, operator.output)])
        if operator.weight is None:
            continue
        if operator.kind not in ("conv", "depthwise", "dense"):
            raise ValueError(f"{operator.kind} has no int8 form")
        channels = operator.weight.shape[0]
        largest = np.abs(operator.weight.reshape(channels, -1)).max(1)
        if not per_channel:
            largest = np.full_like(largest, largest.max())
        scales = (largest / 127.0).astype(np.float32)
        column = scales.reshape((-1,) + (1,) * (operator.weight.ndim - 1))
        weight = np.clip(np.round(operator.weight / column), -127, 127).astype(np.int8)
        bias = np.round(operator.bias / (np.float64(source.scale) * scales.astype(np.float64))).astype(np.int32)
        records[index] = Record(
            pair=Pair(weight, bias),
            input=source,
            output=quants[operator.output],
            weight_scale=float(scales.max()),
            bias_scale=float(np.float32(source.scale) * scales[0]),
            channel_scales=scales if per_channel and channels > 1 else None,
        )
    return QuantizedNetwork(network, quants, records)


def to_int8(values, quant):
    """The float edge (format section 8.9): divide in f32, round half to even, shift, clamp."""
    scaled = np.round(np.asarray(values, np.float32) / np.float32(quant.scale)) + quant.zero_point
    return np.clip(scaled, -128, 127).astype(np.int8)
