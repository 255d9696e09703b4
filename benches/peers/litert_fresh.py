"""python litert_fresh.py MODEL.tflite: one MNIST CNN inference with LiteRT."""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter(sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
cases = np.fromfile(sys.argv[1].removesuffix(".tflite") + ".cases", np.float32, 28 * 28)
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], cases.reshape(1, 28, 28, 1))
interpreter.invoke()
print("class", int(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).argmax()))
with open("/proc/self/status") as status:
    print(next(line for line in status if line.startswith("VmHWM:")), end="")
