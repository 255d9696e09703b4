"""python -m generate OUTPUT_DIR: writes every model of the comparison in every form, and what it must answer.

For each model NAME:

    NAME.nk             netkit (absent where the format has no such layer)
    NAME.onnx           ONNX Runtime, tract, rten; int8 as QDQ
    NAME.integer.onnx   rten: int8 with ConvInteger and MatMulInteger
    NAME.tflite         LiteRT, microflow
    NAME.graph          operators and weights for burn and embedded-nn (see `graph.py`)
    NAME.cases          inputs and expected outputs
    index.json          one entry a model: files, shapes, multiply-accumulates, tolerances, targets

Maps are NHWC in `.cases`. Everything follows from the fixed seed below: two runs write equal files.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib

import numpy as np

from . import graph, nk, onnx_twin, tflite_twin, zoo
from .evaluate import float_values, int8_values
from .quantize import quantize, to_int8

SEED = 20_240_607
CASES = 3
CALIBRATION = 4
# Largest accepted deviation over the largest expected magnitude. Engines sum in other orders and use other
# approximations of exp and tanh; 50 layers deep that stays below this by a factor of ten.
FLOAT_TOLERANCE = 1e-4
# Peers round int8 accumulators once and in float, the format twice and in integers: each weighted layer may differ by
# one step on a few values, and the steps of earlier layers spread. netkit itself is held to zero.
INT8_STEPS = 3
DEEP_INT8_STEPS = {"mobilenetv4_small": 8, "resnet18": 8}


def write(directory: pathlib.Path, only: list[str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    index = []
    for number, entry in enumerate(zoo.ENTRIES):
        if only and entry.name not in only:
            continue
        rng = np.random.default_rng([SEED, number])
        network = entry.build(rng)
        inputs = [rng.uniform(0.0, 1.0, network.input_shape).astype(np.float32) for _ in range(CASES + CALIBRATION)]
        cases, calibration = inputs[:CASES], inputs[CASES:]
        if entry.has_float:
            index.append(write_float(directory, entry, network, cases))
        if entry.has_int8:
            index.append(write_int8(directory, entry, network, cases, calibration))
        print(f"wrote {entry.name}", flush=True)
    (directory / "index.json").write_text(json.dumps(index, indent=1) + "\n")


def write_float(directory, entry, network, cases):
    expected = [float_values(network, x)[network.current].astype(np.float32) for x in cases]
    files = {"onnx": onnx_twin.float_model(network), "tflite": tflite_twin.float_model(network),
             "graph": graph.serialize(network)}
    if network.storable:
        files["nk"] = nk.serialize(network, network.pairs)
    return store(directory, entry, network, "f32", cases, expected, files, entry.target,
                 FLOAT_TOLERANCE * max(float(np.abs(y).max()) for y in expected))


def write_int8(directory, entry, network, cases, calibration):
    quantized = quantize(network, calibration + cases, entry.per_channel)
    inputs = [to_int8(x, quantized.quants[0]) for x in cases]
    expected = [int8_values(quantized, x)[network.current] for x in inputs]
    files = {"onnx": onnx_twin.int8_model(quantized), "tflite": tflite_twin.int8_model(quantized),
             "integer.onnx": onnx_twin.integer_model(quantized), "graph": graph.serialize(network, quantized)}
    if network.storable and network.int8_storable:
        records = quantized.stored_records()
        files["nk"] = nk.serialize(network, [record.pair for record in records], records)
    return store(directory, entry, network, "int8", inputs, expected, files, entry.target_int8, DEEP_INT8_STEPS.get(entry.name, INT8_STEPS))


def store(directory, entry, network, dtype, inputs, expected, files, target, tolerance):
    name = f"{entry.name}_{dtype}"
    for suffix, data in files.items():
        (directory / f"{name}.{suffix}").write_bytes(data)
    blob = b"".join(array.tobytes() for pair in zip(inputs, expected) for array in pair)
    (directory / f"{name}.cases").write_bytes(blob)
    size = 4 if dtype == "f32" else 1
    layers = [
        dict(kind=op.kind, macs=network.operator_macs(op), weight_bytes=op.weight.size * size + op.bias.size * 4)
        for op in network.operators if op.weight is not None
    ]
    return dict(
        name=name, title=f"{entry.title} {dtype}", dtype=dtype, forms=sorted(files), cases=len(inputs),
        input_shape=network.input_shape, output_shape=network.output_shape,
        input_len=math.prod(network.input_shape), output_len=math.prod(network.output_shape),
        layers=layers, tolerance=tolerance, target=target,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="generate", description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="names from zoo.py")
    arguments = parser.parse_args()
    write(arguments.directory, arguments.only)
