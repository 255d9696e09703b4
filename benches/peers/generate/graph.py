"""The primitive operators in one file, for engines whose networks are built by hand: burn and embedded-nn.

u32 length of a JSON text, the text, then data. Each operator in the text carries the byte offset and shape of its weight
and bias, in the order of `network.Operator` (OHWI, [C, kh, kw], [out, in]); int8 networks carry the scale and zero point
of every value and the weight scales of every operator besides.
"""

from __future__ import annotations

import json
import struct

import numpy as np

from .network import Network


def serialize(network: Network, quantized=None) -> bytes:
    operators, blob = [], bytearray()

    def store(array, dtype):
        array = np.ascontiguousarray(array, dtype)
        blob.extend(bytes(-len(blob) % 4))
        place = dict(offset=len(blob), shape=list(array.shape))
        blob.extend(array.tobytes())
        return place

    for index, op in enumerate(network.operators):
        entry = dict(kind=op.kind, inputs=op.inputs, output=op.output, stride=op.stride, kernel=op.kernel, pads=op.pads,
                     relu=op.relu, eps=op.eps)
        if op.weight is not None and quantized is None:
            entry["weight"], entry["bias"] = store(op.weight, "<f4"), store(op.bias, "<f4")
        elif op.weight is not None:
            record = quantized.records[index]
            entry["weight"], entry["bias"] = store(record.pair.weight, "i1"), store(record.pair.bias, "<i4")
            entry["weight_scales"] = [float(scale) for scale in record.scales_of(len(record.pair.bias))]
            entry["per_channel"] = record.channel_scales is not None
        operators.append(entry)
    header = dict(shapes=network.shapes, output=network.current, operators=operators)
    if quantized is not None:
        header["quants"] = [
            dict(scale=quantized.quants[v].scale, zero_point=quantized.quants[v].zero_point)
            for v in range(len(network.shapes))
        ]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<I", len(text)) + text + bytes(blob)
