"""Writes `.nk` files, float (version 3) and int8 (version 4), as docs/format.md describes them.

Only the layers of the digit networks: dense, conv2d, depthwise_conv2d, both pools, flatten.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from networks import Conv, Dense, Depthwise, Flatten, GlobalAveragePool, MaxPool, Network, with_shapes
from quantize import QuantizedLayer

_ACTIVATIONS = {"none": 0, "relu": 1, "softmax": 6}
_ALPHA = 0.01
_HAS_CASES, _IS_QUANTIZED, _HAS_INT8_INPUTS = 1, 2, 4
_F32, _I8, _I32 = 1, 2, 3
_DTYPES = {np.dtype(np.float32): _F32, np.dtype(np.int8): _I8, np.dtype(np.int32): _I32}


@dataclass(frozen=True)
class Case:
    """One embedded test: `input` f32 (or i8 in an int8 file), `expected` f32, both flattened."""

    name: str
    label: int
    input: np.ndarray
    expected: np.ndarray


def float_file(network: Network, parameters: dict, cases: list[Case], tolerance: float) -> bytes:
    """A version 3 file. The network has no batch norms."""
    pairs = [(p["weight"], p["bias"]) for p in _in_order(network, parameters)]
    return _file(network, pairs, [], cases, tolerance)


def int8_file(network: Network, layers: dict, cases: list[Case], tolerance: float) -> bytes:
    """A version 4 file with one weight scale an output channel."""
    ordered = _in_order(network, layers)
    pairs = [(layer.weight, layer.bias) for layer in ordered]
    return _file(network, pairs, ordered, cases, tolerance)


def _file(
    network: Network,
    pairs: list[tuple[np.ndarray, np.ndarray]],
    quantized: list[QuantizedLayer],
    cases: list[Case],
    tolerance: float,
) -> bytes:
    weights = b"".join(_bytes(weight) for weight, _ in pairs)
    weights += bytes(-len(weights) % 4)
    biases = b"".join(_bytes(bias) for _, bias in pairs)
    is_mlp = len(network.input_shape) == 1
    shape = (1, *network.input_shape) if is_mlp else network.input_shape
    flags = _HAS_CASES if cases else 0
    if quantized:
        flags |= _IS_QUANTIZED | (_HAS_INT8_INPUTS if cases else 0)
    records = [_layer_record(*described) for described in with_shapes(network)]
    sections = [
        b"NKIT",
        struct.pack("<IBBH", 4 if quantized else 3, 1 if is_mlp else 2, len(shape), flags),
        struct.pack("<4I", *shape, *[0] * (4 - len(shape))),
        struct.pack("<5I", len(records), len(pairs), len(pairs), len(weights), len(biases)),
        *records,
        *[_descriptor(weight) for weight, _ in pairs],
        *[_descriptor(bias) for _, bias in pairs],
        _quan(quantized) if quantized else b"",
        weights,
        biases,
        _tcas(cases, tolerance) if cases else b"",
    ]
    return b"".join(sections)


def _in_order(network: Network, by_name: dict) -> list:
    return [by_name[layer.name] for layer in network.layers if hasattr(layer, "name")]


def _bytes(array: np.ndarray) -> bytes:
    return array.astype(array.dtype.newbyteorder("<")).tobytes()


def _layer_record(layer, in_shape: tuple[int, ...], out_shape: tuple[int, ...]) -> bytes:
    match layer:
        case Dense():
            activation = _ACTIVATIONS[layer.activation]
            return struct.pack("<B3xIB3xf", 1, layer.units, activation, _ALPHA)
        case Conv():
            # The last of the four bytes is the excess of the end padding: none.
            geometry = (layer.kernel, layer.stride, layer.filters)
            extra = 0
            kind = 2
        case Depthwise():
            # Here it is the width of the kernel, which says the same.
            geometry = (layer.kernel, layer.stride, in_shape[-1])
            extra = layer.kernel
            kind = 7
        case MaxPool(size):
            return struct.pack("<B3xIIBBH", 3, size, size, 0, 0, 0)
        case GlobalAveragePool():
            height, width, _ = in_shape
            assert height == width, "a pool record with width 0 is square"
            return struct.pack("<B3xIIBBH", 5, height, 1, 0, 0, 0)
        case Flatten():
            return struct.pack("<B3x", 4)
    activation = _ACTIVATIONS[layer.activation]
    return struct.pack(
        "<B3xIIIBBBBf", kind, *geometry, activation, layer.padding, layer.padding, extra, _ALPHA
    )


def _descriptor(array: np.ndarray) -> bytes:
    dims = (*array.shape, *[0] * (4 - array.ndim))
    return struct.pack("<BBxx4II", array.ndim, _DTYPES[array.dtype], *dims, array.size)


def _quan(layers: list[QuantizedLayer]) -> bytes:
    out = [b"QUAN", struct.pack("<HH", len(layers), 1)]
    for layer in layers:
        scales = layer.weight_scales
        out.append(
            struct.pack(
                "<fifififi",
                layer.input.scale,
                layer.input.zero_point,
                scales.max(),
                0,
                layer.input.scale * scales[0],
                0,
                layer.output.scale,
                layer.output.zero_point,
            )
        )
    for layer in layers:
        out.append(struct.pack("<I", len(layer.weight_scales)) + _bytes(layer.weight_scales))
    return b"".join(out)


def _tcas(cases: list[Case], tolerance: float) -> bytes:
    out = [b"TCAS", struct.pack("<If", len(cases), tolerance)]
    for case in cases:
        name = case.name.encode()
        out += [
            bytes([len(name)]) + name + bytes(-(1 + len(name)) % 4),
            struct.pack("<i", case.label),
            struct.pack("<I", case.input.size) + _bytes(case.input),
            struct.pack("<I", case.expected.size) + _bytes(case.expected),
        ]
    return b"".join(out)
