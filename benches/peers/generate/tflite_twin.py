"""The network as a TFLite flatbuffer, written through the schema classes that LiteRT's own package ships.

No converter is involved, so the int8 twin carries exactly the scales, zero points and integers of the `.nk` file.
"""

from __future__ import annotations

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from .network import Network

TYPES = {
    np.dtype("f4"): schema.TensorType.FLOAT32,
    np.dtype("i1"): schema.TensorType.INT8,
    np.dtype("i4"): schema.TensorType.INT32,
}
RELU, NONE = schema.ActivationFunctionType.RELU, schema.ActivationFunctionType.NONE
# The operator versions that carry per-channel int8 weights; older readers would misread them, newer ones do not care.
VERSIONS = {
    "CONV_2D": (1, 3), "DEPTHWISE_CONV_2D": (1, 3), "FULLY_CONNECTED": (1, 4), "MAX_POOL_2D": (1, 2),
    "AVERAGE_POOL_2D": (1, 2), "SOFTMAX": (1, 2), "ADD": (1, 2), "RESHAPE": (1, 1), "PAD": (1, 2),
    "MEAN": (1, 2),
}


class Writer:
    def __init__(self, network: Network, quantized=None):
        self.network, self.quantized = network, quantized
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.description = "netkit peer comparison"
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = []
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.model.subgraphs = [self.graph]
        self.codes = {}

    # ---- tensors

    def _tensor(self, name, shape, dtype, buffer=0, scales=None, zero_point=0, axis=0):
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.buffer = f"{name}_{len(self.graph.tensors)}", list(shape), buffer
        tensor.type = TYPES[np.dtype(dtype)]
        if scales is not None:
            scales = np.atleast_1d(np.asarray(scales, np.float32))
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = scales
            tensor.quantization.zeroPoint = np.full(scales.shape, zero_point, np.int64)
            tensor.quantization.quantizedDimension = axis
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(self, array, name, **quantization):
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        self.model.buffers.append(buffer)
        return self._tensor(name, array.shape, array.dtype, len(self.model.buffers) - 1, **quantization)

    def activation(self, shape, quant=None):
        if quant is None:
            return self._tensor("value", shape, np.float32)
        return self._tensor("value", shape, np.int8, scales=[quant.scale], zero_point=quant.zero_point)

    def value(self, v):
        """A fresh tensor for network value `v`."""
        shape = (1,) + self.network.shapes[v]
        return self.activation(shape, self.quantized.quants[v] if self.quantized else None)

    # ---- operators

    def emit(self, kind, inputs, output, options=None):
        if kind not in self.codes:
            code = schema.OperatorCodeT()
            code.builtinCode = getattr(schema.BuiltinOperator, kind)
            code.deprecatedBuiltinCode = min(code.builtinCode, 127)
            code.version = VERSIONS.get(kind, (1, 1))[self.quantized is not None]
            if kind == "FULLY_CONNECTED" and self.quantized and any(
                record.channel_scales is not None for record in self.quantized.records.values()
            ):
                code.version = 12
            self.model.operatorCodes.append(code)
            self.codes[kind] = len(self.model.operatorCodes) - 1
        operator = schema.OperatorT()
        operator.opcodeIndex, operator.inputs, operator.outputs = self.codes[kind], list(inputs), [output]
        if options is not None:
            operator.builtinOptions = options
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__[:-1])
        self.graph.operators.append(operator)
        return output

    def padded(self, operator, x):
        """TFLite knows SAME and VALID only; other paddings become a PAD before a VALID window."""
        if not any(operator.pads):
            return x, schema.Padding.VALID
        source = self.network.shapes[operator.inputs[0]]
        same = []
        for size, kernel in zip(source, operator.kernel):
            total = max((-(-size // operator.stride) - 1) * operator.stride + kernel - size, 0)
            same.append((total // 2, total - total // 2))
        top, left, bottom, right = operator.pads
        if same == [(top, bottom), (left, right)]:
            return x, schema.Padding.SAME
        amounts = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
        shape = (1, source[0] + top + bottom, source[1] + left + right, source[2])
        quant = self.quantized.quants[operator.inputs[0]] if self.quantized else None
        if operator.kind == "max_pool" and not self._never_negative(operator.inputs[0]):
            raise ValueError("a zero pad before a max pool needs an input that a ReLU made")
        y = self.activation(shape, quant)
        self.emit("PAD", [x, self.constant(amounts, "pads")], y, schema.PadOptionsT())
        return y, schema.Padding.VALID

    def _never_negative(self, v):
        return any(op.output == v and op.relu for op in self.network.operators)

    def weights(self, index, operator):
        arrange = {"conv": lambda w: w, "dense": lambda w: w, "depthwise": lambda w: w.transpose(1, 2, 0)[None]}
        arrange = arrange[operator.kind]
        if not self.quantized:
            return self.constant(arrange(operator.weight), "weight"), self.constant(operator.bias, "bias")
        record = self.quantized.records[index]
        per_channel = record.channel_scales is not None
        scales = record.channel_scales if per_channel else np.array([record.weight_scale], np.float32)
        axis = 3 if operator.kind == "depthwise" and per_channel else 0
        weight = self.constant(arrange(record.pair.weight), "weight", scales=scales, axis=axis)
        bias = self.constant(record.pair.bias, "bias", scales=np.float32(record.input.scale) * scales)
        return weight, bias

    def weighted(self, index, operator, x, y):
        activation = RELU if operator.relu else NONE
        if operator.kind == "dense":
            options = schema.FullyConnectedOptionsT()
            options.fusedActivationFunction = activation
            return self.emit("FULLY_CONNECTED", [x, *self.weights(index, operator)], y, options)
        x, padding = self.padded(operator, x)
        if operator.kind == "conv":
            options, kind = schema.Conv2DOptionsT(), "CONV_2D"
        else:
            options, kind = schema.DepthwiseConv2DOptionsT(), "DEPTHWISE_CONV_2D"
            options.depthMultiplier = 1
        options.padding, options.fusedActivationFunction = padding, activation
        options.strideH = options.strideW = operator.stride
        options.dilationHFactor = options.dilationWFactor = 1
        return self.emit(kind, [x, *self.weights(index, operator)], y, options)

    def pooled(self, operator, x, y):
        if operator.kind == "avg_pool" and operator.kernel == self.network.shapes[operator.inputs[0]][:2]:
            # What converters make of a global average pool; XNNPACK takes it in int8 too, unlike AVERAGE_POOL_2D.
            return self.reduced("MEAN", x, [1, 2], y)
        x, padding = self.padded(operator, x)
        options = schema.Pool2DOptionsT()
        options.padding, options.fusedActivationFunction = padding, NONE
        options.strideH = options.strideW = operator.stride
        options.filterHeight, options.filterWidth = operator.kernel
        return self.emit("MAX_POOL_2D" if operator.kind == "max_pool" else "AVERAGE_POOL_2D", [x], y, options)

    def binary(self, kind, a, b, shape, y=None):
        options = {"ADD": schema.AddOptionsT, "SUB": schema.SubOptionsT, "MUL": schema.MulOptionsT, "DIV": schema.DivOptionsT}
        return self.emit(kind, [a, b], self.activation(shape) if y is None else y, options[kind]())

    def reduced(self, kind, x, axes, y):
        options = schema.ReducerOptionsT()
        options.keepDims = True
        return self.emit(kind, [x, self.constant(np.array(axes, np.int32), "axes")], y, options)

    def layer_norm(self, operator, x, y):
        shape = (1,) + self.network.shapes[operator.output]
        per_pixel = shape[:3] + (1,)
        centred = self.binary("SUB", x, self.reduced("MEAN", x, [3], self.activation(per_pixel)), shape)
        square = self.binary("MUL", centred, centred, shape)
        variance = self.reduced("MEAN", square, [3], self.activation(per_pixel))
        eps = self.constant(np.array([operator.eps], np.float32), "eps")
        inverse = self.emit("RSQRT", [self.binary("ADD", variance, eps, per_pixel)], self.activation(per_pixel))
        scaled = self.binary("MUL", self.binary("MUL", centred, inverse, shape), self.constant(operator.weight, "gamma"), shape)
        return self.binary("ADD", scaled, self.constant(operator.bias, "beta"), shape, y)

    def response_norm(self, operator, x, y):
        shape = (1,) + self.network.shapes[operator.output]
        per_channel, scalar = (1, 1, 1, shape[3]), (1, 1, 1, 1)
        energy = self.reduced("SUM", self.binary("MUL", x, x, shape), [1, 2], self.activation(per_channel))
        response = self.emit("SQRT", [energy], self.activation(per_channel))
        eps = self.constant(np.array([operator.eps], np.float32), "eps")
        mean = self.binary("ADD", self.reduced("MEAN", response, [3], self.activation(scalar)), eps, scalar)
        ratio = self.binary("DIV", response, mean, per_channel)
        # gamma·ratio first: one pass over the map less than multiplying twice.
        factor = self.binary("MUL", ratio, self.constant(operator.weight, "gamma"), per_channel)
        scaled = self.binary("MUL", x, factor, shape)
        shifted = self.binary("ADD", scaled, self.constant(operator.bias, "beta"), shape)
        return self.binary("ADD", shifted, x, shape, y)

    def write(self):
        network = self.network
        tensors = {0: self.value(0)}
        for index, operator in enumerate(network.operators):
            inputs = [tensors[v] for v in operator.inputs]
            y = self.value(operator.output)
            if operator.kind in ("conv", "depthwise", "dense"):
                self.weighted(index, operator, inputs[0], y)
            elif operator.kind in ("max_pool", "avg_pool"):
                self.pooled(operator, inputs[0], y)
            elif operator.kind == "flatten":
                shape = np.array((1,) + network.shapes[operator.output], np.int32)
                options = schema.ReshapeOptionsT()
                options.newShape = shape
                self.emit("RESHAPE", [inputs[0], self.constant(shape, "shape")], y, options)
            elif operator.kind == "add":
                options = schema.AddOptionsT()
                options.fusedActivationFunction = RELU if operator.relu else NONE
                self.emit("ADD", inputs, y, options)
            elif operator.kind == "softmax":
                options = schema.SoftmaxOptionsT()
                options.beta = 1.0
                self.emit("SOFTMAX", inputs, y, options)
            elif operator.kind == "gelu":
                options = schema.GeluOptionsT()
                options.approximate = True
                self.emit("GELU", inputs, y, options)
            elif operator.kind == "layer_norm":
                self.layer_norm(operator, inputs[0], y)
            elif operator.kind == "grn":
                self.response_norm(operator, inputs[0], y)
            else:
                raise ValueError(operator.kind)
            tensors[operator.output] = y
        self.graph.inputs, self.graph.outputs = [tensors[0]], [tensors[network.current]]
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def float_model(network: Network) -> bytes:
    return Writer(network).write()


def int8_model(quantized) -> bytes:
    return Writer(quantized.network, quantized).write()
