"""A network in two forms at once: the layers a `.nk` file stores, and the primitive operators they mean.

The builder methods of `Network` draw random weights, append the stored layer with its weight/bias pairs, and append the
primitive operators with batch norms already folded. Every twin (ONNX, TFLite, the graph that burn runs) is written from
the primitive operators, so that all engines get the same arithmetic and the same weights.

Shapes are (height, width, channels) for maps and (features,) for vectors, without a batch dimension.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Operator:
    """One primitive operator. `weight` is OHWI for conv, [C, kh, kw] for depthwise, [out, in] for dense."""

    kind: str  # conv depthwise dense max_pool avg_pool flatten add layer_norm gelu grn softmax
    inputs: list[int]
    output: int
    weight: np.ndarray | None = None
    bias: np.ndarray | None = None
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  # top, left, bottom, right
    relu: bool = False
    eps: float = 0.0


@dataclass
class Pair:
    """One weight/bias pair in catalog order."""

    weight: np.ndarray
    bias: np.ndarray


@dataclass
class Network:
    """`shapes[v]` is the shape of value `v`; value 0 is the input, the last operator's output is the output."""

    kind: str  # "mlp" or "cnn"
    input_shape: tuple[int, ...]
    rng: np.random.Generator
    layers: list[dict] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    # False once a layer was added that the int8 form of the format cannot hold.
    int8_storable: bool = True
    # False once an operator was added that no `.nk` layer expresses.
    storable: bool = True

    def __post_init__(self):
        self.shapes.append(tuple(self.input_shape))
        self.current = 0

    # ---- what the network is, measured

    @property
    def output_shape(self):
        return self.shapes[self.current]

    def operator_macs(self, operator):
        """Multiply-accumulates of one operator; element-wise operators count none."""
        output = self.shapes[operator.output]
        if operator.kind == "conv":
            return math.prod(output) * math.prod(operator.weight.shape[1:])
        if operator.kind == "depthwise":
            return math.prod(output) * math.prod(operator.kernel)
        if operator.kind == "dense":
            return operator.weight.size
        return 0

    # ---- random weights

    def _normal(self, shape, fan_in, gain):
        return (self.rng.standard_normal(shape) * math.sqrt(gain / fan_in)).astype(np.float32)

    def _weights(self, shape, relu):
        """He initialisation, so that activations keep their size through any depth, and small biases."""
        weight = self._normal(shape, math.prod(shape[1:]), 2.0 if relu else 1.0)
        return Pair(weight, (0.1 * self.rng.standard_normal(shape[0])).astype(np.float32))

    def _batch_norm(self, channels, scale=1.0):
        gamma = scale * (1.0 + 0.1 * self.rng.standard_normal(channels))
        return Pair(gamma.astype(np.float32), (0.1 * self.rng.standard_normal(channels)).astype(np.float32))

    @staticmethod
    def _fold(pair, norm):
        scale = norm.weight.reshape((-1,) + (1,) * (pair.weight.ndim - 1))
        return Pair(pair.weight * scale, pair.bias * norm.weight + norm.bias)

    # ---- primitive operators

    def _emit(self, kind, shape, inputs=None, **attributes):
        self.shapes.append(tuple(shape))
        output = len(self.shapes) - 1
        self.operators.append(Operator(kind, inputs or [self.current], output, **attributes))
        self.current = output
        return output

    def _windowed(self, kind, channels, kernel, stride, pads, **attributes):
        height, width, _ = self.shapes[self.current]
        top, left, bottom, right = pads
        shape = (
            (height + top + bottom - kernel[0]) // stride + 1,
            (width + left + right - kernel[1]) // stride + 1,
            channels,
        )
        return self._emit(kind, shape, kernel=kernel, stride=stride, pads=pads, **attributes)

    def _conv(self, pair, stride, pad, relu):
        filters, kh, kw, _ = pair.weight.shape
        self._windowed(
            "conv", filters, (kh, kw), stride, (pad,) * 4, weight=pair.weight, bias=pair.bias, relu=relu
        )

    def _depthwise(self, pair, stride, pad, relu):
        channels, kh, kw = pair.weight.shape
        self._windowed(
            "depthwise", channels, (kh, kw), stride, (pad,) * 4, weight=pair.weight, bias=pair.bias, relu=relu
        )

    def _add(self, left, right, relu):
        self._emit("add", self.shapes[left], inputs=[left, right], relu=relu)

    # ---- stored layers

    def dense(self, units, activation="none"):
        relu = activation == "relu"
        pair = self._weights((units, self.shapes[self.current][0]), relu)
        self.layers.append(dict(type="dense", units=units, activation=activation))
        self.pairs.append(pair)
        self._emit("dense", (units,), weight=pair.weight, bias=pair.bias, relu=relu)
        if activation == "softmax":
            self._emit("softmax", (units,))
        return self

    def conv(self, filters, kernel, stride=1, pad=0, activation="relu"):
        relu = activation == "relu"
        pair = self._weights((filters, kernel, kernel, self.shapes[self.current][2]), relu)
        self.layers.append(
            dict(type="conv2d", kernel=kernel, stride=stride, filters=filters, pad=pad, activation=activation)
        )
        self.pairs.append(pair)
        self._conv(pair, stride, pad, relu)
        return self

    def wide_conv(self, filters, kernel_h, kernel_w, stride, pads, activation="relu"):
        """A convolution with a non-square kernel or uneven padding: no `.nk` layer holds it."""
        self.storable = False
        relu = activation == "relu"
        pair = self._weights((filters, kernel_h, kernel_w, self.shapes[self.current][2]), relu)
        self.pairs.append(pair)
        self._windowed(
            "conv", filters, (kernel_h, kernel_w), stride, pads, weight=pair.weight, bias=pair.bias, relu=relu
        )
        return self

    def depthwise(self, kernel, stride=1, pad=0, activation="relu"):
        channels = self.shapes[self.current][2]
        relu = activation == "relu"
        pair = self._weights((channels, kernel, kernel), relu)
        self.layers.append(
            dict(type="depthwise_conv2d", kernel=kernel, stride=stride, channels=channels, pad=pad, activation=activation)
        )
        self.pairs.append(pair)
        self._depthwise(pair, stride, pad, relu)
        return self

    def pool(self, kind, size, stride, pad=0):
        self.layers.append(dict(type=f"{kind}_pool2d", size=size, stride=stride, pad=pad))
        self._windowed(f"{kind}_pool", self.shapes[self.current][2], (size, size), stride, (pad,) * 4)
        return self

    def flatten(self):
        self.layers.append(dict(type="flatten"))
        self._emit("flatten", (math.prod(self.shapes[self.current]),))
        return self

    def uib(self, out_channels, start_kernel, middle_kernel, stride, ratio):
        """MobileNetV4's universal inverted bottleneck; the middle depthwise takes the stride where there is one."""
        block_input, in_channels = self.current, self.shapes[self.current][2]
        expanded = make_divisible(in_channels * ratio)
        residual = stride == 1 and in_channels == out_channels
        self.layers.append(
            dict(type="mobilenetv4_uib", in_channels=in_channels, out_channels=out_channels, start=start_kernel,
                 middle=middle_kernel, stride=stride, ratio=ratio)
        )
        steps = []
        if start_kernel:
            steps.append(((in_channels, start_kernel, start_kernel), 1 if middle_kernel else stride, False))
        steps.append(((expanded, 1, 1, in_channels), 1, True))
        if middle_kernel:
            steps.append(((expanded, middle_kernel, middle_kernel), stride, True))
        steps.append(((out_channels, 1, 1, expanded), 1, False))
        for index, (shape, step_stride, relu) in enumerate(steps):
            last = index == len(steps) - 1
            pair = self._weights(shape, relu)
            norm = self._batch_norm(shape[0], 0.5 if last and residual else 1.0)
            self.pairs += [pair, norm]
            emit = self._depthwise if len(shape) == 3 else self._conv
            emit(self._fold(pair, norm), step_stride, shape[1] // 2, relu)
        if residual:
            self._add(self.current, block_input, relu=False)
        return self

    def resnet_block(self, out_channels, stride=1):
        self.int8_storable = False
        block_input, in_channels = self.current, self.shapes[self.current][2]
        self.layers.append(
            dict(type="resnet_basic_block", in_channels=in_channels, out_channels=out_channels, stride=stride)
        )
        first, first_norm = self._weights((out_channels, 3, 3, in_channels), True), self._batch_norm(out_channels)
        second, second_norm = self._weights((out_channels, 3, 3, out_channels), False), self._batch_norm(out_channels, 0.5)
        self.pairs += [first, first_norm, second, second_norm]
        self._conv(self._fold(first, first_norm), stride, 1, True)
        self._conv(self._fold(second, second_norm), 1, 1, False)
        branch, shortcut = self.current, block_input
        if stride != 1 or in_channels != out_channels:
            projection, norm = self._weights((out_channels, 1, 1, in_channels), False), self._batch_norm(out_channels)
            self.pairs += [projection, norm]
            self.current = block_input
            self._conv(self._fold(projection, norm), stride, 0, False)
            shortcut = self.current
        self._add(branch, shortcut, relu=True)
        return self

    def convnext_block(self, eps=1e-6):
        self.int8_storable = False
        block_input, channels = self.current, self.shapes[self.current][2]
        self.layers.append(dict(type="convnextv2_block", channels=channels, eps=eps))
        depthwise = self._weights((channels, 7, 7), False)
        norm = self._batch_norm(channels)
        expand = self._weights((4 * channels, channels), True)
        response = self._batch_norm(4 * channels, 0.5)
        project = self._weights((channels, 4 * channels), False)
        self.pairs += [depthwise, norm, expand, response, project]
        height, width, _ = self.shapes[block_input]
        narrow, wide = (height, width, channels), (height, width, 4 * channels)
        self._depthwise(depthwise, 1, 3, False)
        self._emit("layer_norm", narrow, weight=norm.weight, bias=norm.bias, eps=eps)
        self._conv(Pair(expand.weight[:, None, None, :], expand.bias), 1, 0, False)
        self._emit("gelu", wide)
        self._emit("grn", wide, weight=response.weight, bias=response.bias, eps=eps)
        self._conv(Pair(project.weight[:, None, None, :], project.bias), 1, 0, False)
        self._add(self.current, block_input, relu=False)
        return self


def make_divisible(value, divisor=8):
    """Rounds a channel count to a multiple of 8, never below 90 % of it (format section 7.9, in f32)."""
    value = np.float32(value)
    rounded = max(divisor, int(value + np.float32(divisor / 2)) // divisor * divisor)
    return rounded + divisor if rounded < int(np.float32(0.9) * value) else rounded
