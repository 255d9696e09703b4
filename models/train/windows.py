"""Windowed operations over NHWC batches in f64, shared by the float and the int8 evaluation."""

from __future__ import annotations

import numpy as np


def windows(x: np.ndarray, kernel: int, stride: int, padding: int) -> np.ndarray:
    """A view [n, rows, columns, kernel, kernel, channels] of `x` [n, height, width, channels].

    Padding is zero on all four sides.
    """
    if padding:
        x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (1, 2))
    return view[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)


def convolution(x: np.ndarray, weight: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """The sums of a convolution, weight [filters, kernel, kernel, channels]."""
    taps = windows(x, weight.shape[1], stride, padding)
    return np.tensordot(taps, weight.astype(np.float64), ([3, 4, 5], [1, 2, 3]))


def depthwise(x: np.ndarray, weight: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """The sums of a depthwise convolution, weight [channels, kernel, kernel]."""
    kernel = weight.shape[1]
    weight = weight.astype(np.float64)
    taps = windows(x, kernel, stride, padding)
    return sum(
        taps[:, :, :, i, j] * weight[:, i, j] for i in range(kernel) for j in range(kernel)
    )
