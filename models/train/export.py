"""From the trained ONNX files to what the repository ships: `.nk` files and test digits.

    python export.py [NAME...]       (all three without a name)

For each network: models/NAME.nk and models/NAME_int8.nk, each with ten real test digits as
embedded cases, after checking the accuracy of both over all 10,000 test digits. Besides,
models/digits/ with the first 1,000 test digits. Prints the figures of models/README.md.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import onnxruntime

import float_model
import int8_model
import mnist
import nk_file
import onnx_file
from networks import (
    NETWORKS,
    Network,
    fold_batch_norms,
    multiply_accumulates,
    parameter_count,
)
from quantize import SOFTMAX_OUTPUT, quantize

MODELS = Path(__file__).parent.parent

# What each network owes over the 10,000 test digits, in percent, and how much of it int8 may lose.
REQUIRED_ACCURACY = {"mnist_mlp": 98.0, "mnist_cnn": 99.0, "mnist_dscnn": 98.8}
INT8_MAY_LOSE = 0.5

CALIBRATION_DIGITS = 500
EXAMPLE_DIGITS = 1000

FLOAT_TOLERANCE = 1e-4
# Expected int8 outputs are exact: half a step of 1/256 lets no other value through.
INT8_TOLERANCE = 1 / 512


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the .nk files from the ONNX files.")
    parser.add_argument("name", nargs="*", help=f"one of {', '.join(NETWORKS)}; none means all")
    names = parser.parse_args().name or list(NETWORKS)
    data = mnist.load()
    write_digits(data)
    print("| network | parameters | MACs | file | bytes | of 10,000 | of the first 1,000 |")
    print("|---|---:|---:|---|---:|---:|---:|")
    for name in names:
        export(NETWORKS[name], data)


def write_digits(data: mnist.Mnist) -> None:
    """The first 1,000 test digits: 784 raw pixels each, and a label byte each."""
    folder = MODELS / "digits"
    folder.mkdir(exist_ok=True)
    (folder / "images.u8").write_bytes(data.test_images[:EXAMPLE_DIGITS].tobytes())
    (folder / "labels.u8").write_bytes(data.test_labels[:EXAMPLE_DIGITS].tobytes())


def export(trained: Network, data: mnist.Mnist) -> None:
    """Writes both `.nk` files of one network and prints its rows of the table."""
    path = MODELS / "onnx" / f"{trained.name}.onnx"
    network, parameters = fold_batch_norms(trained, onnx_file.read(trained, path))
    inputs = mnist.as_input(data.test_images)
    pixels = int8_model.quantize_pixels(data.test_images)
    calibration = mnist.as_input(data.train_images[:CALIBRATION_DIGITS])
    quantized = quantize(network, parameters, calibration)

    from_onnx = run_onnx(trained, path, inputs)
    from_f64 = in_batches(lambda x: float_model.probabilities(network, parameters, x), inputs)
    from_int8 = in_batches(lambda x: int8_model.run(network, quantized, x), pixels)

    deviation = float(np.abs(from_onnx - from_f64).max())
    assert deviation < FLOAT_TOLERANCE / 10, f"ONNX and f64 outputs differ by {deviation}"
    float_right = from_onnx.argmax(1) == data.test_labels
    assert (float_right == (from_f64.argmax(1) == data.test_labels)).all()
    int8_right = from_int8.argmax(1) == data.test_labels
    required = REQUIRED_ACCURACY[trained.name]
    assert 100 * float_right.mean() >= required, f"{100 * float_right.mean():.2f} % of {required} %"
    lost = 100 * (float_right.mean() - int8_right.mean())
    assert lost <= INT8_MAY_LOSE, f"int8 loses {lost:.2f} points"

    picked = case_digits(data.test_labels, float_right & int8_right)

    def cases(case_inputs: np.ndarray, expected: np.ndarray) -> list[nk_file.Case]:
        return [
            nk_file.Case(
                f"digit {data.test_labels[index]} (test image {index})",
                int(data.test_labels[index]),
                case_inputs[index].reshape(-1),
                expected[index].astype(np.float32),
            )
            for index in picked
        ]

    as_real = (from_int8.astype(np.float64) - SOFTMAX_OUTPUT.zero_point) * SOFTMAX_OUTPUT.scale
    float_bytes = nk_file.float_file(network, parameters, cases(inputs, from_f64), FLOAT_TOLERANCE)
    int8_bytes = nk_file.int8_file(network, quantized, cases(pixels, as_real), INT8_TOLERANCE)
    rows = ((trained.name, float_bytes, float_right), (f"{trained.name}_int8", int8_bytes, int8_right))
    for name, content, right in rows:
        (MODELS / f"{name}.nk").write_bytes(content)
        print(
            f"| {trained.name} | {parameter_count(network):,} | {multiply_accumulates(network):,} "
            f"| {name}.nk | {len(content):,} | {100 * right.mean():.2f} % "
            f"| {right[:EXAMPLE_DIGITS].sum()} |",
            flush=True,
        )


def case_digits(labels: np.ndarray, right: np.ndarray) -> list[int]:
    """For each class the first test digit that the float and the int8 network both get right."""
    return [int(np.flatnonzero((labels == digit) & right)[0]) for digit in range(10)]


def in_batches(function, inputs: np.ndarray, batch: int = 500) -> np.ndarray:
    parts = [function(inputs[i : i + batch]) for i in range(0, len(inputs), batch)]
    return np.concatenate(parts)


def run_onnx(network: Network, path: Path, inputs: np.ndarray) -> np.ndarray:
    """Every input through ONNX Runtime, one by one as the file's batch of 1 asks."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    shape = onnx_file.input_shape(network)
    assert math.prod(shape) == inputs[0].size
    # One channel: H x W x 1 and 1 x H x W hold the same bytes.
    outputs = [session.run(None, {onnx_file.INPUT: x.reshape(shape)})[0] for x in inputs]
    return np.concatenate(outputs)


if __name__ == "__main__":
    main()
