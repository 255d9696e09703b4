"""The networks of the comparison, with random weights from fixed seeds.

Speed does not depend on what the weights were trained for, and untrained weights need no download.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import numpy as np

from .network import Network


@dataclass(frozen=True)
class Entry:
    """`target` is the largest accepted netkit time over the best peer's time; `None` where no goal was set."""

    name: str
    title: str
    build: Callable[[np.random.Generator], Network]
    target: float | None = None
    target_int8: float | None = None
    has_float: bool = True
    has_int8: bool = True
    per_channel: bool = True


def mnist_mlp(rng):
    return Network("mlp", (784,), rng).dense(128, "relu").dense(10, "softmax")


def mnist_cnn(rng):
    network = Network("cnn", (28, 28, 1), rng)
    network.conv(32, 3).pool("max", 2, 2).conv(64, 3).pool("max", 2, 2)
    return network.flatten().dense(128, "relu").dense(10, "softmax")


def mnist_dscnn(rng):
    network = Network("cnn", (28, 28, 1), rng)
    network.conv(32, 3).depthwise(3, pad=1).pool("max", 2, 2)
    network.conv(64, 1).depthwise(3).pool("max", 2, 2)
    return network.flatten().dense(128, "relu").dense(10, "softmax")


def uib_block(rng):
    return Network("cnn", (7, 7, 64), rng).uib(96, start_kernel=5, middle_kernel=5, stride=2, ratio=3.0)


def convnext_block(rng):
    return Network("cnn", (8, 8, 40), rng).convnext_block()


def resnet_block(rng):
    return Network("cnn", (14, 14, 64), rng).resnet_block(64)


def mobilenetv4_small(rng):
    """MobileNetV4-Conv-Small, 1000 classes."""
    network = Network("cnn", (224, 224, 3), rng)
    network.conv(32, 3, 2, 1).conv(32, 3, 2, 1).conv(32, 1).conv(96, 3, 2, 1).conv(64, 1)
    for out_channels, start, middle, stride, ratio in (
        [(96, 5, 5, 2, 3.0)] + [(96, 0, 3, 1, 2.0)] * 4 + [(96, 3, 0, 1, 4.0)]
        + [(128, 3, 3, 2, 6.0), (128, 5, 5, 1, 4.0), (128, 0, 5, 1, 4.0), (128, 0, 5, 1, 3.0)]
        + [(128, 0, 3, 1, 4.0)] * 2
    ):
        network.uib(out_channels, start, middle, stride, ratio)
    network.conv(960, 1).pool("avg", 7, 1).conv(1280, 1)
    return network.flatten().dense(1000)


def resnet18(rng):
    network = Network("cnn", (224, 224, 3), rng)
    network.conv(64, 7, 2, 3).pool("max", 3, 2, 1)
    for channels, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        network.resnet_block(channels, stride)
    return network.pool("avg", 7, 1).flatten().dense(1000)


def sine_mlp(rng):
    """The shape of TensorFlow Lite Micro's hello-world network."""
    return Network("mlp", (1,), rng).dense(16, "relu").dense(16, "relu").dense(1)


def micro_speech(rng):
    """The shape of TensorFlow Lite Micro's keyword network: one 10×8 convolution, SAME padding, and a dense layer."""
    network = Network("cnn", (49, 40, 1), rng)
    network.wide_conv(8, 10, 8, 2, (4, 3, 5, 3))
    return network.flatten().dense(4, "softmax")


ENTRIES = [
    Entry("mnist_mlp", "MNIST MLP", mnist_mlp, 0.80, 0.75, per_channel=False),
    Entry("mnist_cnn", "MNIST CNN", mnist_cnn, 0.85, 0.48),
    Entry("mnist_dscnn", "MNIST DS-CNN", mnist_dscnn, 0.75, 0.36),
    Entry("uib_block", "UIB block 7×7×64", uib_block, 0.85, 0.50),
    Entry("convnext_block", "ConvNeXt V2 block 8×8×40", convnext_block, 0.40, has_int8=False),
    Entry("resnet_block", "ResNet basic block 14×14×64", resnet_block, 0.95, 0.85),
    Entry("mobilenetv4_small", "MobileNetV4-Conv-Small 224", mobilenetv4_small, 0.97, 0.65),
    Entry("resnet18", "ResNet-18 224", resnet18, 0.92, 0.85),
    Entry("sine_mlp", "sine MLP", sine_mlp, None, 0.35, has_float=False, per_channel=False),
    Entry("micro_speech", "micro_speech", micro_speech, None, 0.15, has_float=False, per_channel=False),
]
