"""The trained networks as ONNX files, written and read back.

Batch 1, NCHW, operators as the usual exporters write them: a convolution without bias is followed
by BatchNormalization, Gemm keeps its weight as [units, in] (`transB = 1`).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from networks import (
    BATCH_NORM_EPSILON,
    Conv,
    Dense,
    Depthwise,
    Flatten,
    GlobalAveragePool,
    MaxPool,
    Network,
    has_batch_norm,
    with_shapes,
)

OPSET, IR_VERSION = 13, 8
INPUT, OUTPUT = "image", "probabilities"


def input_shape(network: Network) -> list[int]:
    """The shape of the ONNX input: batch 1, channels before height and width."""
    if len(network.input_shape) == 1:
        return [1, *network.input_shape]
    height, width, channels = network.input_shape
    return [1, channels, height, width]


def write(network: Network, parameters: dict, path: Path) -> None:
    """Writes the network with all its parameters."""
    nodes, initializers = [], []
    value = INPUT

    def emit(operator: str, name: str, *constants: str, **attributes) -> None:
        nonlocal value
        nodes.append(
            helper.make_node(operator, [value, *constants], [name], name=name, **attributes)
        )
        value = name

    def constant(layer, key: str, array: np.ndarray) -> str:
        name = f"{layer.name}.{key}"
        array = np.ascontiguousarray(array, np.float32)
        initializers.append(numpy_helper.from_array(array, name))
        return name

    counts: dict[str, int] = {}

    def numbered(operator: str) -> str:
        counts[operator] = counts.get(operator, 0) + 1
        return f"{operator}{counts[operator]}"

    for layer, weight in zip(network.layers, _to_onnx_weights(network, parameters)):
        own = parameters.get(getattr(layer, "name", None), {})
        match layer:
            case Conv() | Depthwise():
                constants = [constant(layer, "weight", weight)]
                if not layer.batch_norm:
                    constants.append(constant(layer, "bias", own["bias"]))
                emit(
                    "Conv",
                    layer.name,
                    *constants,
                    kernel_shape=[layer.kernel] * 2,
                    strides=[layer.stride] * 2,
                    pads=[layer.padding] * 4,
                    group=weight.shape[0] if isinstance(layer, Depthwise) else 1,
                )
            case MaxPool(size):
                emit("MaxPool", numbered("pool"), kernel_shape=[size] * 2, strides=[size] * 2)
            case GlobalAveragePool():
                emit("GlobalAveragePool", numbered("pool"))
            case Flatten():
                emit("Flatten", numbered("flatten"), axis=1)
            case Dense():
                bias = constant(layer, "bias", own["bias"])
                emit("Gemm", layer.name, constant(layer, "weight", weight), bias, transB=1)
        if has_batch_norm(layer):
            keys = ("gamma", "beta", "mean", "variance")
            constants = [constant(layer, key, own[key]) for key in keys]
            emit(
                "BatchNormalization",
                f"{layer.name}_norm",
                *constants,
                epsilon=BATCH_NORM_EPSILON,
            )
        match getattr(layer, "activation", None):
            case "relu":
                emit("Relu", f"{layer.name}_relu")
            case "softmax":
                emit("Softmax", OUTPUT, axis=1)

    classes = list(with_shapes(network))[-1][2][0]
    graph = helper.make_graph(
        nodes,
        network.name,
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, input_shape(network))],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [1, classes])],
        initializers,
    )
    model = helper.make_model(
        graph,
        producer_name="netkit models/train",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def read(network: Network, path: Path) -> dict:
    """The parameters of a file that `write` wrote for `network`, bit for bit."""
    parameters: dict[str, dict] = {}
    for initializer in onnx.load(path).graph.initializer:
        layer, key = initializer.name.split(".")
        parameters.setdefault(layer, {})[key] = numpy_helper.to_array(initializer)
    for layer, in_shape, hwc in _with_flattened_map(network):
        if not hasattr(layer, "name"):
            continue
        own = parameters[layer.name]
        weight = own["weight"]
        match layer:
            case Conv():
                weight = weight.transpose(0, 2, 3, 1)
            case Depthwise():
                weight = weight[:, 0]
            case Dense() if hwc:
                height, width, channels = hwc
                weight = weight.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
                weight = weight.reshape(weight.shape[0], -1)
        own["weight"] = np.ascontiguousarray(weight)
    return parameters


def _to_onnx_weights(network: Network, parameters: dict):
    """Each layer's weight in ONNX layout, None for layers without."""
    for layer, in_shape, hwc in _with_flattened_map(network):
        own = parameters.get(getattr(layer, "name", None))
        match layer:
            case Conv():
                yield own["weight"].transpose(0, 3, 1, 2)
            case Depthwise():
                yield own["weight"][:, None]
            case Dense() if hwc:
                # Flatten sees C x H x W here, H x W x C in the network: permute the columns.
                yield own["weight"].reshape(-1, *hwc).transpose(0, 3, 1, 2).reshape(
                    layer.units, math.prod(hwc)
                )
            case Dense():
                yield own["weight"]
            case _:
                yield None


def _with_flattened_map(network: Network):
    """Yields (layer, input shape, the map that a Flatten just before the layer flattened)."""
    hwc = None
    for layer, in_shape, _ in with_shapes(network):
        yield layer, in_shape, hwc
        hwc = in_shape if isinstance(layer, Flatten) else None
