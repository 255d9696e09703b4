#!/usr/bin/env python3
"""Expected outputs of the networks in a folder, from the independent evaluator.

    expected.py --nkref DIR --models DIR [--out DIR]

Evaluates the inputs of the test cases of each file and writes the outputs of all cases one below the other, a
value a line, to NAME.txt; to `expected/` beside this script unless told otherwise. `--nkref` is the folder that
holds nkref.py.
"""
import argparse
import pathlib
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nkref", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "expected")
    args = parser.parse_args()
    sys.path.insert(0, str(args.nkref))
    sys.dont_write_bytecode = True
    import nkref

    args.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(args.models.glob("*.nk")):
        model = nkref.parse(path.read_bytes())
        for rule, text in nkref.strict_findings(model):
            raise SystemExit(f"{path}: {rule}: {text}")
        steps = nkref.plan(model)
        lines = [str(value) for case in model.cases for value in nkref.evaluate(model, case.input, steps)]
        (args.out / f"{path.stem}.txt").write_text("\n".join(lines) + "\n")
        print(f"{path.stem}: {len(lines)} values")


if __name__ == "__main__":
    main()
