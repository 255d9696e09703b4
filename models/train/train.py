"""Trains the digit networks on MNIST and writes them as ONNX: models/onnx/NAME.onnx.

    python train.py [NAME...]        (all three without a name)

The steps after that, from ONNX to `.nk`, are export.py's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mnist
import onnx_file
from fit import Recipe, accuracy, fit
from networks import NETWORKS

ONNX_FOLDER = Path(__file__).parent.parent / "onnx"

RECIPES = {
    "mnist_mlp": Recipe(epochs=30, peak_learning_rate=3e-3, distortion=0.4),
    "mnist_cnn": Recipe(epochs=8, peak_learning_rate=3e-3, distortion=0.7),
    "mnist_dscnn": Recipe(epochs=12, peak_learning_rate=1e-2, distortion=0.7),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains the digit networks and writes ONNX files.")
    parser.add_argument("name", nargs="*", help=f"one of {', '.join(NETWORKS)}; none means all")
    names = parser.parse_args().name or list(NETWORKS)
    data = mnist.load()
    ONNX_FOLDER.mkdir(exist_ok=True)
    for name in names:
        network = NETWORKS[name]
        parameters = fit(network, data, RECIPES[name])
        reached = accuracy(network, parameters, data.test_images, data.test_labels)
        onnx_file.write(network, parameters, ONNX_FOLDER / f"{name}.onnx")
        print(f"{name}: {100 * reached:.2f} % of the test digits")


if __name__ == "__main__":
    main()
