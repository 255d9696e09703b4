#!/usr/bin/env python3
"""Random .nk models of every kind, with inputs and expected outputs from the independent evaluator.

    generate.py --nkref DIR --out DIR [--count N] [--seed S]

`--nkref` is the folder that holds nkref.py. Each model carries its inputs and outputs as test cases, so a
file needs nothing beside it. Model i depends on (seed, i) alone. Float expectations are evaluated in float32 and
carry a tolerance of 5e-5 of the largest output (at least 1); int8 expectations are exact: the dequantized
output integers.
"""
import argparse
import pathlib
import sys

import numpy as np

MAX_CASE_VALUES = 16384


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


class Net:
    """A layer list that grows while its shape is tracked."""

    def __init__(self, nk, rng, quantized):
        self.nk, self.rng, self.quantized = nk, rng, quantized
        self.h, self.w = int(rng.integers(1, 15)), int(rng.integers(1, 15))
        self.c = pick(rng, 1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 33)
        self.shape = (self.h, self.w, self.c)
        self.layers = []

    def activation(self):
        return pick(self.rng, 0, 1, 5) if self.quantized else int(self.rng.integers(0, 6))

    def pads(self, kh, kw):
        """top, left, bottom, right such that the window fits and extras are encodable."""
        rng = self.rng
        top, left = int(rng.integers(0, kh + 1)), int(rng.integers(0, kw + 1))
        bottom = top + (int(rng.integers(0, 3)) if rng.random() < 0.3 else 0)
        right = left + (int(rng.integers(0, 3)) if rng.random() < 0.3 else 0)
        while self.h + top + bottom < kh:
            top, bottom = top + 1, bottom + 1
        while self.w + left + right < kw:
            left, right = left + 1, right + 1
        return top, left, bottom, right

    def advance(self, kh, kw, s, pads):
        top, left, bottom, right = pads
        self.h = (self.h + top + bottom - kh) // s + 1
        self.w = (self.w + left + right - kw) // s + 1

    def conv(self):
        k, s = pick(self.rng, 1, 1, 2, 3, 3, 5), pick(self.rng, 1, 1, 2, 3)
        filters = pick(self.rng, 1, 2, 3, 8, 9, 16, 17, 20, 31, 32, 40)
        pads = self.pads(k, k)
        self.layers.append(dict(type="conv2d", kernel_size=k, stride=s, filters=filters, activation=self.activation(),
                                pad_h=pads[0], pad_w=pads[1], pad_extra=self.nk.pad_extra_byte(*pads), alpha=0.1))
        self.advance(k, k, s, pads)
        self.c = filters

    def depthwise(self):
        kh, s = pick(self.rng, 1, 2, 3, 3, 5, 7), pick(self.rng, 1, 1, 2)
        kw = kh if self.rng.random() < 0.7 else pick(self.rng, 1, 2, 3, 5)
        while True:
            pads = self.pads(kh, kw)
            try:
                byte = self.nk.depthwise_byte(kh, kw, *pads)
                break
            except ValueError:
                continue
        self.layers.append(dict(type="depthwise_conv2d", kernel_h=kh, kernel_w=kw, stride=s, channels=self.c,
                                activation=self.activation(), pad_h=pads[0], pad_w=pads[1], kw_byte=byte, alpha=0.2))
        self.advance(kh, kw, s, pads)

    def pool(self):
        kh = int(self.rng.integers(1, min(self.h, 4) + 1))
        kw = kh if self.rng.random() < 0.6 else int(self.rng.integers(1, min(self.w, 4) + 1))
        kw = min(kw, self.w)
        s = pick(self.rng, 1, 2, kh)
        top, left = int(self.rng.integers(0, kh)), int(self.rng.integers(0, kw))
        bottom = min(kh - 1, top + pick(self.rng, 0, 0, 1))
        right = min(kw - 1, left + pick(self.rng, 0, 0, 1))
        pads = (top, left, bottom, right)
        self.layers.append(dict(type=pick(self.rng, "max_pool2d", "avg_pool2d"), pool_size=kh, stride=s, pad_h=top,
                                pad_w=left, pool_extra=self.nk.pool_extra_word(kh, kw, *pads)))
        self.advance(kh, kw, s, pads)

    def batch_norm(self):
        self.layers.append(dict(type="batch_norm2d", channels=self.c))

    def layer_norm(self):
        self.layers.append(dict(type="layernorm2d", channels=self.c, eps=1e-5))

    def convnext(self):
        self.layers.append(dict(type="convnextv2_block", channels=self.c, eps=1e-6))

    def uib(self):
        start, middle = pick(self.rng, 0, 3, 5), pick(self.rng, 0, 3, 5)
        down = pick(self.rng, 0, 1)
        can_stride = start > 0 or (middle > 0 and down)
        stride = pick(self.rng, 1, 1, 2) if can_stride else 1
        out = self.c if self.rng.random() < 0.5 else pick(self.rng, 4, 8, 10, 16, 24)
        ratio = pick(self.rng, 1.0, 2.0, 3.0, 4.0, 6.0)
        block = dict(type="mobilenetv4_uib", in_channels=self.c, out_channels=out, start_dw_kernel=start,
                     middle_dw_kernel=middle, stride=stride, middle_dw_downsample=down, expand_ratio=ratio)
        if start and self.nk.make_divisible(np.float32(self.c) * np.float32(ratio)) < self.c:
            return
        self.layers.append(block)
        start_stride = 1 if down and middle else stride
        middle_stride = stride if down else 1
        for k, s in ((start, start_stride), (middle, middle_stride)):
            if k:
                p = (k - 1) // 2
                self.advance(k, k, s, (p, p, p, p))
        self.c = out

    def resnet(self):
        stride = pick(self.rng, 1, 1, 2)
        out = self.c if self.rng.random() < 0.5 else pick(self.rng, 4, 8, 16, 19)
        self.layers.append(dict(type="resnet_basic_block", in_channels=self.c, out_channels=out, stride=stride))
        self.advance(3, 3, stride, (1, 1, 1, 1))
        self.c = out

    def head(self):
        classes, hidden = int(self.rng.integers(1, 9)), pick(self.rng, 8, 9, 16)
        self.layers.append(dict(type="yolox_decoupled_head", in_channels=self.c, hidden_dim=hidden, num_classes=classes,
                                num_convs=int(self.rng.integers(0, 4))))
        self.c = 5 + classes

    def pyramid(self):
        """A small detector: taps at 4x and 2x of the last map."""
        rng = self.rng
        h5, w5 = int(rng.integers(1, 3)), int(rng.integers(1, 3))
        c3, c4, c5 = (pick(rng, 2, 3, 8) for _ in range(3))
        self.h, self.w, self.c = 4 * h5, 4 * w5, pick(rng, 1, 3)
        self.shape = (self.h, self.w, self.c)
        self.layers = []
        for tap, c in ((0, c3), (1, c4), (None, c5)):
            s = 1 if tap == 0 else 2
            self.layers.append(dict(type="conv2d", kernel_size=3, stride=s, filters=c, activation=pick(rng, 0, 1),
                                    pad_h=1, pad_w=1, pad_extra=0))
            self.advance(3, 3, s, (1, 1, 1, 1))
            if tap is not None:
                self.layers.append(dict(type="feature_tap", channels=c, tap_id=tap))
                if rng.random() < 0.3:
                    self.layers.append(dict(type="batch_norm2d", channels=c))
        classes = int(rng.integers(1, 6))
        self.layers.append(dict(type="yolox_pafpn_multiscale", c3_channels=c3, c4_channels=c4, c5_channels=c5,
                                hidden_dim=pick(rng, 8, 12), num_classes=classes, num_convs=int(rng.integers(0, 3))))
        self.h, self.w, self.c = 1, 1, 21 * h5 * w5 * (5 + classes)

    def dense_head(self):
        self.layers.append(dict(type="flatten"))
        for last in ([False, True] if self.rng.random() < 0.5 else [True]):
            units = pick(self.rng, 1, 2, 10, 16, 17, 33)
            activation = pick(self.rng, 0, 6) if last else self.activation()
            self.layers.append(dict(type="dense", units=units, activation=activation, alpha=0.05))


def cnn(nk, rng, quantized):
    net = Net(nk, rng, quantized)
    if not quantized and rng.random() < 0.12:
        net.pyramid()
    else:
        steps = ["conv", "conv", "depthwise", "pool", "uib"]
        if not quantized:
            steps += ["batch_norm", "layer_norm", "convnext", "resnet", "head"]
        for _ in range(int(rng.integers(1, 6))):
            if net.h * net.w * net.c > 6000:
                break
            getattr(net, pick(rng, *steps))()
        if not net.layers or (quantized and not any(l["type"] in ("conv2d", "depthwise_conv2d", "mobilenetv4_uib")
                                                   for l in net.layers)):
            net.conv()
    if rng.random() < 0.4 and net.h * net.w * net.c <= 3000:
        net.dense_head()
    return "cnn", net.shape, net.layers


def mlp(nk, rng, quantized):
    features = pick(rng, 1, 2, 7, 16, 33, 64, 100, 200)
    count = int(rng.integers(1, 5))
    layers = []
    for i in range(count):
        last = i == count - 1
        activation = pick(rng, 0, 1, 5) if quantized else int(rng.integers(0, 6))
        if last:
            activation = pick(rng, activation, 6)
        layers.append(dict(type="dense", units=pick(rng, 1, 3, 10, 16, 31, 64), activation=activation, alpha=0.03))
    softmax = any(l["activation"] == 6 for l in layers)
    rows = 1 if quantized or softmax else pick(rng, 1, 1, 2, 3)
    return "mlp", (rows, features), layers


def model(nk, seed, index):
    rng = np.random.default_rng([seed, index])
    quantized = index % 2 == 1
    kind, shape, layers = (mlp if rng.random() < 0.2 else cnn)(nk, rng, quantized)
    tensors = nk.random_tensors(layers, kind, shape, rng)
    spec = nk.Spec(kind=kind, input_shape=shape, layers=layers, tensors=tensors, tolerance=1e-4)
    count = int(np.prod(shape))
    inputs = [(rng.standard_normal(count) * 1.5).astype(np.float32) for _ in range(2)]
    if quantized:
        spec = nk.quantize_spec(spec, inputs, per_channel=rng.random() < 0.7, softmax_scale=pick(rng, 1.0, 0.1, 0.02))
        inputs = [rng.integers(-128, 128, count).astype(np.int8) for _ in range(3)]
    parsed = nk.parse(nk.build(spec))
    steps = nk.plan(parsed)
    outputs = [nk.evaluate(parsed, x, steps) for x in inputs]
    if count > MAX_CASE_VALUES or outputs[0].size > MAX_CASE_VALUES:
        return None
    if quantized:
        scale, zero_point = nk.output_quant(parsed, steps)
        outputs = [(y.astype(np.float32) - np.float32(zero_point)) * np.float32(scale) for y in outputs]
    else:
        largest = max(1.0, max(float(np.abs(y).max()) for y in outputs))
        if not np.isfinite(largest) or largest > 1e6:
            return None
        spec.tolerance = 5e-5 * largest
    spec.cases = [(f"input {i}", -1, x, y) for i, (x, y) in enumerate(zip(inputs, outputs))]
    data = nk.build(spec)
    findings = [f for f in nk.strict_findings(nk.parse(data)) if f[0] != "S-QUAN-ASYM" and not (
        f[0] == "S-QUAN-ACT" and "activation 5" in f[1])]
    return None if findings else data


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nkref", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    sys.path.insert(0, str(args.nkref))
    sys.dont_write_bytecode = True
    import nkref as nk
    args.out.mkdir(parents=True, exist_ok=True)
    written = 0
    for index in range(args.count):
        try:
            data = model(nk, args.seed, index)
        except nk.NkError:
            continue
        if data is not None:
            form = "int8" if index % 2 else "float"
            (args.out / f"{args.seed}-{index:05}-{form}.nk").write_bytes(data)
            written += 1
    print(f"{written} models in {args.out}")


if __name__ == "__main__":
    main()
