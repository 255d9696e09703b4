#!/usr/bin/env python3
"""What a model costs the compiler: wall time and peak memory of `cargo check` on a package that embeds one.

    benches/check_cost.py [MEGABYTES ...]        default: 0 1 10 50

0 is a package without a model, to subtract. Everything but the package itself is compiled before, and each figure is
the least of three. Memory is the largest of any process that cargo started, which is rustc's; the model is read and
packed by the procedural macro inside it. Models are two dense layers, or two convolutions, whose weights are packed.
"""

import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def descriptor(dims: list[int]) -> bytes:
    count = 1
    for dim in dims:
        count *= dim
    return struct.pack("<BBH4II", len(dims), 1, 0, *(dims + [0] * (4 - len(dims))), count)


def convolutions(megabytes: int) -> bytes:
    """A CNN of two 3x3 convolutions over 8x8 pixels, the second with about that many bytes of weights."""
    channels = 64
    filters = max(1, (megabytes << 20) // (4 * 9 * channels))
    shapes = [[channels, 3, 3, 1], [filters, 3, 3, channels]]
    records = b"".join(
        struct.pack("<4B3I4Bf", 2, 0, 0, 0, 3, 1, shape[0], 1, 0, 0, 0, 0.01) for shape in shapes
    )
    catalog = b"".join(map(descriptor, shapes)) + b"".join(descriptor([s[0]]) for s in shapes)
    weights = sum(shape[0] * 9 * shape[3] for shape in shapes)
    biases = sum(shape[0] for shape in shapes)
    header = struct.pack(
        "<4sIBBH4I5I", b"NKIT", 3, 2, 3, 0, 8, 8, 1, 0, 2, 2, 2, 4 * weights, 4 * biases
    )
    # Values that do not repeat from panel to panel.
    values = b"".join(struct.pack("<f", (i % 8191) / 8191 - 0.5) for i in range(8191))
    payload = (values * (4 * weights // len(values) + 1))[: 4 * weights] + bytes(4 * biases)
    return header + records + catalog + payload


def check(package: pathlib.Path, target: pathlib.Path) -> float:
    start = time.monotonic()
    subprocess.run(
        ["cargo", "check", "-q", "--offline"],
        cwd=package,
        check=True,
        env={**os.environ, "CARGO_TARGET_DIR": str(target)},
    )
    return time.monotonic() - start


def measure(megabytes: int, target: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        package = pathlib.Path(folder)
        (package / "src").mkdir()
        (package / "Cargo.toml").write_text(
            '[package]\nname = "cost"\nversion = "0.1.0"\nedition = "2024"\n\n'
            f'[dependencies]\nnetkit = {{ path = "{REPOSITORY}" }}\n\n[workspace]\n'
        )
        (package / "Cargo.lock").write_bytes((REPOSITORY / "Cargo.lock").read_bytes())
        source = package / "src/lib.rs"
        size = 0
        if megabytes:
            model = convolutions(megabytes)
            size = len(model)
            (package / "model.nk").write_bytes(model)
            text = 'netkit::model!(pub Cost = "model.nk");\n'
        else:
            text = "pub use netkit::Model;\n"
        source.write_text(text)
        check(package, target)
        times = []
        for _ in range(3):
            source.write_text(text)
            times.append(check(package, target))
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        print(f"{megabytes:3} MB ({size:9} bytes): {min(times):6.2f} s, peak {peak} MiB")


def main() -> None:
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        measure(int(sys.argv[2]), REPOSITORY / "target/check-cost")
        return
    for megabytes in sys.argv[1:] or ["0", "1", "10", "50"]:
        # A process each: the peak is that of all children so far.
        subprocess.run([sys.executable, __file__, "--one", megabytes], check=True)


if __name__ == "__main__":
    main()
