"""The expected outputs, computed with numpy alone: f32 in double precision, int8 by the format's integer arithmetic.

Neither an engine under test nor its kernels take part, so that no engine is its own judge.
"""

from __future__ import annotations

import math

import numpy as np

GELU_SCALE = 0.7978845608
INT32_MAX = 2**31 - 1


def windows(image, operator, fill):
    """[out_h, out_w, kh, kw, C]: every window of the padded image."""
    top, left, bottom, right = operator.pads
    padded = np.pad(image, ((top, bottom), (left, right), (0, 0)), constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(padded, operator.kernel, axis=(0, 1))
    return view[:: operator.stride, :: operator.stride].transpose(0, 1, 3, 4, 2)


def accumulate(operator, x, weight, bias):
    """Σ x·w + bias of a conv, depthwise or dense, in the double precision that x arrives in.

    int8 products stay below 2^53 by orders of magnitude, so the same code is exact for integers.
    """
    weight = weight.astype(np.float64)
    if operator.kind == "dense":
        return weight @ x + bias
    view = windows(x, operator, 0.0)
    if operator.kind == "depthwise":
        return np.einsum("hwijc,cij->hwc", view, weight) + bias
    out_h, out_w = view.shape[:2]
    flat = view.reshape(out_h * out_w, -1) @ weight.reshape(weight.shape[0], -1).T
    return flat.reshape(out_h, out_w, -1) + bias


def in_bounds(operator, x):
    return windows(np.ones(x.shape[:2] + (1,)), operator, 0.0).sum((2, 3))


def float_values(network, x):
    """Every value of the network for one input, in double precision."""
    values = {0: np.asarray(x, np.float64)}
    for operator in network.operators:
        a = values[operator.inputs[0]]
        if operator.kind in ("conv", "depthwise", "dense"):
            y = accumulate(operator, a, operator.weight, operator.bias)
        elif operator.kind == "max_pool":
            y = windows(a, operator, -np.inf).max((2, 3))
        elif operator.kind == "avg_pool":
            y = windows(a, operator, 0.0).sum((2, 3)) / in_bounds(operator, a)
        elif operator.kind == "flatten":
            y = a.reshape(-1)
        elif operator.kind == "add":
            y = a + values[operator.inputs[1]]
        elif operator.kind == "layer_norm":
            centred = a - a.mean(-1, keepdims=True)
            y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + operator.eps) * operator.weight + operator.bias
        elif operator.kind == "gelu":
            y = 0.5 * a * (1.0 + np.tanh(GELU_SCALE * (a + 0.044715 * a**3)))
        elif operator.kind == "grn":
            response = np.sqrt((a * a).sum((0, 1)))
            y = operator.weight * (a * (response / (response.mean() + operator.eps))) + operator.bias + a
        elif operator.kind == "softmax":
            exponent = np.exp(a - a.max())
            y = exponent / exponent.sum()
        else:
            raise ValueError(operator.kind)
        values[operator.output] = np.maximum(y, 0.0) if operator.relu else y
    return values


# ---- int8 (format section 8)


def fixed_point(real):
    """real → (multiplier, shift) with real ≈ multiplier · 2^(shift − 31)."""
    mantissa, shift = math.frexp(real)
    multiplier = math.floor(mantissa * 2.0**31 + 0.5)
    if multiplier == 2**31:
        multiplier, shift = 2**30, shift + 1
    return (0, 0) if shift < -31 else (multiplier, shift)


def doubling_high(a, b):
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    return np.where(nudged >= 0, nudged >> 31, -((-nudged) >> 31))


def divide_by_power(x, exponent):
    """x / 2^exponent to nearest, ties away from zero."""
    mask = (np.int64(1) << exponent) - 1
    return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))


def rescale(x, multiplier, shift):
    multiplier, shift = np.asarray(multiplier, np.int64), np.asarray(shift, np.int64)
    x = np.asarray(x, np.int64) << np.maximum(shift, 0)
    return divide_by_power(doubling_high(x, multiplier), np.maximum(-shift, 0))


def clamp(x, low=-128):
    return np.clip(x, low, 127).astype(np.int8)


def exp_negative(x):
    """e^x for x ≤ 0 in Q5.26, result in Q0.31."""
    remainder = (x & ((1 << 24) - 1)) - (1 << 24)
    a = (remainder << 5) + (1 << 28)
    a2 = doubling_high(a, a)
    tail = divide_by_power(doubling_high(a2, a2), 2) + doubling_high(a2, a)
    y = 1895147668 + doubling_high(1895147668, a + divide_by_power(doubling_high(tail, 715827883) + a2, 1))
    bits = remainder - x
    for bit, factor in zip(range(24, 31), (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)):
        y = np.where(bits & (1 << bit), doubling_high(y, factor), y)
    return np.where(x == 0, INT32_MAX, y)


def half_sum(a, b):
    total = a + b
    return (total + 1) // 2 if total >= 0 else -((1 - total) // 2)


def softmax_int8(logits, scale):
    multiplier, shift = fixed_point(min(scale * 2.0**26, float(INT32_MAX)))
    lowest = -math.floor(31.0 * 2**26 / 2.0**shift)
    difference = logits.astype(np.int64) - int(logits.max())
    taken = difference >= lowest
    exponent = exp_negative(rescale(np.where(taken, difference, 0), multiplier, shift))
    total = int(divide_by_power(exponent, 12)[taken].sum())
    head = 32 - total.bit_length()
    saturate = lambda v: max(-(2**31), min(INT32_MAX, int(v)))
    half = half_sum((total << head) - 2**31, INT32_MAX)
    r = 1515870810 + int(doubling_high(half, -1010580540))
    for _ in range(3):
        r += saturate(doubling_high(r, (1 << 29) - int(doubling_high(half, r))) * 4)
    scaled = divide_by_power(doubling_high(saturate(2 * r), exponent), 35 - head)
    return np.where(taken, clamp(scaled - 128), -128).astype(np.int8)


def add_int8(a, qa, b, qb, qy):
    twice = 2.0 * max(qa.scale, qb.scale)
    left = rescale((a.astype(np.int64) - qa.zero_point) << 20, *fixed_point(qa.scale / twice))
    right = rescale((b.astype(np.int64) - qb.zero_point) << 20, *fixed_point(qb.scale / twice))
    return rescale(left + right, *fixed_point(twice / (2.0**20 * qy.scale))) + qy.zero_point


def int8_values(quantized, x):
    """Every value of an int8 network for one int8 input."""
    values = {0: np.asarray(x, np.int8)}
    for index, operator in enumerate(quantized.network.operators):
        a, qa = values[operator.inputs[0]], quantized.quants[operator.inputs[0]]
        qy = quantized.quants[operator.output]
        if operator.kind in ("conv", "depthwise", "dense"):
            record = quantized.records[index]
            centred = a.astype(np.float64) - qa.zero_point
            acc = accumulate(operator, centred, record.pair.weight, record.pair.bias).astype(np.int64)
            scales = record.scales_of(len(record.pair.bias)).astype(np.float64)
            fixed = [fixed_point(qa.scale * scale / qy.scale) for scale in scales]
            y = rescale(acc, [m for m, _ in fixed], [s for _, s in fixed]) + qy.zero_point
            y = clamp(y, qy.zero_point if operator.relu else -128)
        elif operator.kind == "max_pool":
            y = windows(a.astype(np.int64), operator, -1000).max((2, 3)).astype(np.int8)
        elif operator.kind == "avg_pool":
            total = windows(a.astype(np.int64), operator, 0).sum((2, 3))
            count = in_bounds(operator, a).astype(np.int64)
            magnitude = (np.abs(total) + count // 2) // count
            y = clamp(np.where(total > 0, magnitude, -magnitude))
        elif operator.kind == "flatten":
            y = a.reshape(-1)
        elif operator.kind == "add":
            y = add_int8(a, qa, values[operator.inputs[1]], quantized.quants[operator.inputs[1]], qy)
            y = clamp(y, qy.zero_point if operator.relu else -128)
        elif operator.kind == "softmax":
            y = softmax_int8(a, qa.scale)
        else:
            raise ValueError(operator.kind)
        values[operator.output] = y
    return values
