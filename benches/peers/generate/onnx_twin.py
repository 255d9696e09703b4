"""The network as ONNX: NCHW, static shapes, batch 1. int8 as QDQ, the form that ONNX Runtime fuses."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .network import Network

OPSET = 20  # the first with Gelu's tanh form
IR_VERSION = 9


def onnx_shape(shape):
    """(h, w, c) → [1, c, h, w]; (n,) → [1, n]."""
    return [1, shape[2], shape[0], shape[1]] if len(shape) == 3 else [1, shape[0]]


class Writer:
    def __init__(self, network: Network):
        self.network = network
        self.nodes, self.initializers = [], []
        self.count = 0
        self.flattened_from = {op.output: network.shapes[op.inputs[0]] for op in network.operators if op.kind == "flatten"}

    def constant(self, array, hint):
        name = f"{hint}_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, kind, inputs, output=None, **attributes):
        self.count += 1
        output = output or f"t{self.count}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=f"{kind}_{self.count}", **attributes))
        return output

    def arranged(self, operator, weight):
        """The weight in ONNX's order: OIHW, C1HW, or [out, in] with `in` permuted from NHWC to NCHW after a flatten."""
        if operator.kind == "conv":
            return weight.transpose(0, 3, 1, 2)
        if operator.kind == "depthwise":
            return weight[:, None]
        shape = self.flattened_from.get(operator.inputs[0])
        if shape is None:
            return weight
        return weight.reshape((-1,) + shape).transpose(0, 3, 1, 2).reshape(weight.shape)

    def weighted(self, operator, x, weight, bias):
        if operator.kind == "dense":
            return self.node("Gemm", [x, weight, bias], transB=1)
        return self.node(
            "Conv", [x, weight, bias],
            kernel_shape=list(operator.kernel), strides=[operator.stride] * 2, pads=list(operator.pads),
            group=operator.weight.shape[0] if operator.kind == "depthwise" else 1,
        )

    def unweighted(self, operator, inputs):
        if operator.kind == "flatten":
            return self.node("Flatten", inputs, axis=1)
        if operator.kind == "add":
            return self.node("Add", inputs)
        if operator.kind == "softmax":
            return self.node("Softmax", inputs, axis=-1)
        height, width, _ = self.network.shapes[operator.inputs[0]]
        if operator.kind == "avg_pool" and operator.kernel == (height, width) and not any(operator.pads):
            return self.node("GlobalAveragePool", inputs)
        return self.node(
            "MaxPool" if operator.kind == "max_pool" else "AveragePool", inputs,
            kernel_shape=list(operator.kernel), strides=[operator.stride] * 2, pads=list(operator.pads),
        )

    def model(self, input_type, output):
        network = self.network
        graph = helper.make_graph(
            self.nodes, "network",
            [helper.make_tensor_value_info("input", input_type, onnx_shape(network.input_shape))],
            [helper.make_tensor_value_info(output, input_type, onnx_shape(network.output_shape))],
            self.initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString()


class Float(Writer):
    def write(self):
        names, last = {0: "input"}, None
        # ConvNeXt's channel-last middle, as PyTorch exports it: values held as [1, h, w, c] instead of [1, c, h, w].
        channels_last = set()
        for operator in self.network.operators:
            inputs = [names[v] for v in operator.inputs]
            source = operator.inputs[0]
            if operator.kind == "layer_norm":
                x = self.node("Transpose", inputs, perm=[0, 2, 3, 1])
                scale, shift = self.constant(operator.weight, "scale"), self.constant(operator.bias, "shift")
                y = self.node("LayerNormalization", [x, scale, shift], axis=-1, epsilon=operator.eps)
                channels_last.add(operator.output)
            elif source in channels_last and operator.kind == "conv":
                matrix = self.constant(operator.weight[:, 0, 0, :].T, "weight")
                y = self.node("Add", [self.node("MatMul", [inputs[0], matrix]), self.constant(operator.bias, "bias")])
                channels_last.add(operator.output)
            elif operator.kind == "gelu":
                y = self.node("Gelu", inputs, approximate="tanh")
                channels_last.add(operator.output)
            elif operator.kind == "grn":
                y = self.response_norm(operator, inputs[0])
                channels_last.add(operator.output)
            elif operator.weight is not None:
                weight = self.constant(self.arranged(operator, operator.weight), "weight")
                y = self.weighted(operator, inputs[0], weight, self.constant(operator.bias, "bias"))
            else:
                for index, value in enumerate(operator.inputs):
                    if value in channels_last:
                        inputs[index] = self.node("Transpose", [inputs[index]], perm=[0, 3, 1, 2])
                y = self.unweighted(operator, inputs)
            names[operator.output] = last = self.node("Relu", [y]) if operator.relu else y
        return self.model(TensorProto.FLOAT, last)

    def response_norm(self, operator, x):
        axes = self.constant(np.array([1, 2], np.int64), "axes")
        response = self.node("ReduceL2", [x, axes], keepdims=1)
        mean = self.node("ReduceMean", [response, self.constant(np.array([-1], np.int64), "axes")], keepdims=1)
        eps = self.constant(np.array(operator.eps, np.float32), "eps")
        ratio = self.node("Div", [response, self.node("Add", [mean, eps])])
        scaled = self.node("Mul", [self.node("Mul", [x, ratio]), self.constant(operator.weight, "gamma")])
        shifted = self.node("Add", [scaled, self.constant(operator.bias, "beta")])
        return self.node("Add", [shifted, x])


class Int8(Writer):
    """Weights and activations int8 with DequantizeLinear before and QuantizeLinear after every operator."""

    def __init__(self, quantized):
        super().__init__(quantized.network)
        self.quantized = quantized

    def parameters(self, quant):
        return [
            self.constant(np.array(quant.scale, np.float32), "scale"),
            self.constant(np.array(quant.zero_point, np.int8), "zero"),
        ]

    def weight(self, operator, record):
        channels = len(record.pair.bias)
        per_channel = record.channel_scales is not None
        scales = record.scales_of(channels) if per_channel else np.float32(record.weight_scale)
        zeros = np.zeros(channels if per_channel else (), np.int8)
        axis = dict(axis=0) if per_channel else {}
        stored = self.constant(self.arranged(operator, record.pair.weight), "weight")
        weight = self.node(
            "DequantizeLinear", [stored, self.constant(np.asarray(scales), "scale"), self.constant(zeros, "zero")], **axis
        )
        bias_scales = np.asarray(np.float32(record.input.scale) * scales, np.float32)
        stored = self.constant(record.pair.bias, "bias")
        zeros = np.zeros(zeros.shape, np.int32)
        bias = self.node(
            "DequantizeLinear", [stored, self.constant(bias_scales, "scale"), self.constant(zeros, "zero")], **axis
        )
        return weight, bias

    def write(self):
        names, quants, last = {0: "input"}, self.quantized.quants, None
        for index, operator in enumerate(self.network.operators):
            inputs = [
                self.node("DequantizeLinear", [names[v]] + self.parameters(quants[v])) for v in operator.inputs
            ]
            if operator.weight is not None:
                y = self.weighted(operator, inputs[0], *self.weight(operator, self.quantized.records[index]))
            else:
                y = self.unweighted(operator, inputs)
            if operator.relu:
                y = self.node("Relu", [y])
            last = self.node("QuantizeLinear", [y] + self.parameters(quants[operator.output]))
            names[operator.output] = last
        return self.model(TensorProto.INT8, last)


class Integer(Writer):
    """int8 with the integer operators alone (ConvInteger, MatMulInteger), for engines without QDQ fusion.

    Values are f32 between operators and quantised to uint8 before each weighted one: zero points move by 128.
    """

    def __init__(self, quantized):
        super().__init__(quantized.network)
        self.quantized = quantized

    def parameters(self, quant):
        return [
            self.constant(np.array(quant.scale, np.float32), "scale"),
            self.constant(np.array(quant.zero_point + 128, np.uint8), "zero"),
        ]

    def weighted(self, operator, x, weight, zero_point):
        zero = self.constant(np.array(zero_point + 128, np.uint8), "zero")
        if operator.kind == "dense":
            return self.node("MatMulInteger", [x, self.constant(weight.T, "weight"), zero])
        return self.node(
            "ConvInteger", [x, self.constant(weight, "weight"), zero],
            kernel_shape=list(operator.kernel), strides=[operator.stride] * 2, pads=list(operator.pads),
            group=operator.weight.shape[0] if operator.kind == "depthwise" else 1,
        )

    def write(self):
        quants = self.quantized.quants
        names = {0: self.node("DequantizeLinear", ["input"] + self.parameters(quants[0]))}
        bytes_of = {0: "input"}
        for index, operator in enumerate(self.network.operators):
            source = operator.inputs[0]
            if operator.weight is None:
                y = self.unweighted(operator, [names[v] for v in operator.inputs])
            else:
                if source not in bytes_of:
                    bytes_of[source] = self.node("QuantizeLinear", [names[source]] + self.parameters(quants[source]))
                record = self.quantized.records[index]
                weight = self.arranged(operator, record.pair.weight)
                acc = self.weighted(operator, bytes_of[source], weight, quants[source].zero_point)
                column = (-1,) if operator.kind == "dense" else (-1, 1, 1)
                scales = (quants[source].scale * record.scales_of(len(record.pair.bias))).astype(np.float32)
                y = self.node("Cast", [acc], to=TensorProto.FLOAT)
                y = self.node("Mul", [y, self.constant(scales.reshape(column), "scale")])
                bias = (record.pair.bias * scales).astype(np.float32).reshape(column)
                y = self.node("Add", [y, self.constant(bias, "bias")])
            names[operator.output] = self.node("Relu", [y]) if operator.relu else y
        last = self.node("QuantizeLinear", [names[self.network.current]] + self.parameters(quants[self.network.current]))
        return self.model(TensorProto.UINT8, last)


def float_model(network: Network) -> bytes:
    return Float(network).write()


def int8_model(quantized) -> bytes:
    return Int8(quantized).write()


def integer_model(quantized) -> bytes:
    return Integer(quantized).write()
