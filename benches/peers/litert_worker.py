"""python litert_worker.py MODEL.tflite: serves one model over standard input and output, one JSON text a line.

First answer, unasked: {"operators": n, "outside": how many XNNPACK did not take}.
{"input": hex} → {"output": hex}; {"seconds": budget} → {"samples": [nanoseconds per inference of each batch]}.
An answer with "error" says why there is none.
"""

import json
import sys
import time
from itertools import repeat

import numpy as np
from ai_edge_litert.interpreter import Interpreter

BATCH_NS = 50_000  # as in measure.rs


def operators(interpreter):
    """(operators of the model, those that XNNPACK did not take).

    A delegate node names its boundary alone: what lies between its outputs and its inputs is inside.
    """
    details = interpreter._get_ops_details()
    own = [detail for detail in details if detail["op_name"] != "DELEGATE"]
    producer = {int(tensor): number for number, detail in enumerate(own) for tensor in detail["outputs"]}
    inside = set()
    for delegate in details:
        if delegate["op_name"] != "DELEGATE":
            continue
        boundary = set(map(int, delegate["inputs"]))
        pending = [int(tensor) for tensor in delegate["outputs"]]
        while pending:
            tensor = pending.pop()
            number = producer.get(tensor)
            if tensor in boundary or number is None or number in inside:
                continue
            inside.add(number)
            pending += [int(tensor) for tensor in own[number]["inputs"]]
    return len(own), len(own) - len(inside)


def turn(invoke, seconds):
    start = time.perf_counter_ns()
    invoke()
    once = time.perf_counter_ns()
    invoke()
    calls = min(max(BATCH_NS // max(time.perf_counter_ns() - once, 1), 1), 100_000)
    samples = []
    while not samples or time.perf_counter_ns() - start < seconds * 1e9:
        batch = time.perf_counter_ns()
        for _ in repeat(None, calls):
            invoke()
        samples.append((time.perf_counter_ns() - batch) / calls)
    return samples


def main():
    interpreter = Interpreter(sys.argv[1], num_threads=1)
    interpreter.allocate_tensors()
    source, sink = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    # What the wrapper's `invoke` forwards to. The wrapper itself refuses to run while somebody else holds this.
    invoke = interpreter._interpreter.Invoke
    total, left = operators(interpreter)
    print(json.dumps({"operators": total, "outside": left}), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if "input" in question:
                values = np.frombuffer(bytes.fromhex(question["input"]), source["dtype"])
                interpreter.set_tensor(source["index"], values.reshape(source["shape"]))
                invoke()
                answer = {"output": interpreter.get_tensor(sink["index"]).tobytes().hex()}
            else:
                answer = {"samples": turn(invoke, question["seconds"])}
        except Exception as error:  # whatever it is, the harness reports it and goes on
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
