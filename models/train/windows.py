"""Sliding windows over NHWC batches, shared by the float and the int8 evaluation."""

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
