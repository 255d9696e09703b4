"""Writes `.nk` files: the layers of a `Network`, its catalog, and for int8 the QUAN section."""

from __future__ import annotations

import struct

import numpy as np

from .network import Network, Pair

ACTIVATIONS = {"none": 0, "relu": 1, "softmax": 6}
UNUSED_ALPHA = 0.01
DTYPES = {np.dtype("<f4"): 1, np.dtype("i1"): 2, np.dtype("<i4"): 3}


def _record(layer):
    """One layer record; the four-byte prefix is the kind and three reserved zeros."""
    kind = layer["type"]
    activation = ACTIVATIONS[layer.get("activation", "none")]
    if kind == "dense":
        return struct.pack("<IIB3xf", 1, layer["units"], activation, UNUSED_ALPHA)
    if kind == "conv2d":
        return struct.pack("<IIIIBBBBf", 2, layer["kernel"], layer["stride"], layer["filters"], activation, layer["pad"],
                           layer["pad"], 0, UNUSED_ALPHA)
    if kind in ("max_pool2d", "avg_pool2d"):
        return struct.pack("<IIIBBH", 3 if kind == "max_pool2d" else 5, layer["size"], layer["stride"], layer["pad"],
                           layer["pad"], 0)
    if kind == "flatten":
        return struct.pack("<I", 4)
    if kind == "depthwise_conv2d":
        return struct.pack("<IIIIBBBBf", 7, layer["kernel"], layer["stride"], layer["channels"], activation, layer["pad"],
                           layer["pad"], layer["kernel"], UNUSED_ALPHA)
    if kind == "convnextv2_block":
        return struct.pack("<IIIf", 8, layer["channels"], 0, layer["eps"])
    if kind == "mobilenetv4_uib":
        return struct.pack("<IIIBBBBfI", 9, layer["in_channels"], layer["out_channels"], layer["start"], layer["middle"],
                           layer["stride"], 1, layer["ratio"], 0)
    if kind == "resnet_basic_block":
        return struct.pack("<IIIB3x", 10, layer["in_channels"], layer["out_channels"], layer["stride"])
    raise ValueError(f"no record for {kind}")


def _descriptor(array):
    dims = array.shape + (0,) * (4 - array.ndim)
    return struct.pack("<BBH5I", array.ndim, DTYPES[array.dtype], 0, *dims, array.size)


def _quan(records):
    tables = any(record.channel_scales is not None for record in records)
    section = b"QUAN" + struct.pack("<HH", len(records), int(tables))
    for record in records:
        section += struct.pack("<fifififi", record.input.scale, record.input.zero_point, record.weight_scale, 0,
                               record.bias_scale, 0, record.output.scale, record.output.zero_point)
    if tables:
        for record in records:
            scales = np.asarray([] if record.channel_scales is None else record.channel_scales, "<f4")
            section += struct.pack("<I", scales.size) + scales.tobytes()
    return section


def serialize(network: Network, pairs: list[Pair], records=None) -> bytes:
    """The file's bytes. `records` (one for each pair) makes it an int8 file of version 4."""
    quantized = records is not None
    weights = [np.ascontiguousarray(pair.weight, "i1" if quantized else "<f4") for pair in pairs]
    biases = [np.ascontiguousarray(pair.bias, "<i4" if quantized else "<f4") for pair in pairs]
    weight_blob = b"".join(array.tobytes() for array in weights)
    weight_blob += b"\0" * (-len(weight_blob) % 4)
    bias_blob = b"".join(array.tobytes() for array in biases)
    mlp = network.kind == "mlp"
    shape = ((1,) + network.input_shape if mlp else network.input_shape)
    header = struct.pack("<4sIBBH4I5I", b"NKIT", 4 if quantized else 3, 1 if mlp else 2, len(shape), 2 if quantized else 0,
                         *(shape + (0,) * (4 - len(shape))), len(network.layers), len(weights), len(biases),
                         len(weight_blob), len(bias_blob))
    body = b"".join(map(_record, network.layers)) + b"".join(map(_descriptor, weights + biases))
    if quantized:
        body += _quan(records)
    return header + body + weight_blob + bias_blob
