"""The test vectors of section 12 of docs/format.md.   python -m unittest"""

import unittest

import numpy as np

from int8_model import _average, _rescale, _softmax, multiplier_of
from quantize import Quantization


class Int8Model(unittest.TestCase):
    def test_multipliers(self):
        for real, expected in (
            (1.0, (1073741824, 1)),
            (0.5, (1073741824, 0)),
            (0.75, (1610612736, 0)),
            (0.001, (1099511628, -9)),
            (2.5, (1342177280, 2)),
            (1.9999999999, (1073741824, 2)),
            (1e-12, (0, 0)),
            (1e10, (2147483647, 30)),
        ):
            self.assertEqual(multiplier_of(real), expected, real)

    def test_rescaling_rounds_twice(self):
        for x, real, expected in (
            (1000, 0.001, 1),
            (1500, 0.001, 2),
            (-1500, 0.001, -2),
            (2500, 0.001, 3),
            (12345, 0.0123, 152),
            (-12345, 0.0123, -152),
            (7, 2.5, 18),
            (-7, 2.5, -17),
            (1, 0.5, 1),
            (-1, 0.5, 0),
            (3, 0.5, 2),
            (-3, 0.5, -1),
        ):
            multiplier, shift = (np.int64(part) for part in multiplier_of(real))
            self.assertEqual(_rescale(np.int64(x), multiplier, shift), expected, (x, real))

    def test_averages_round_ties_away_from_raw_zero(self):
        for rows, expected in (
            ([[3, -2]], 1),
            ([[-5, -4], [-4, -5]], -5),
            ([[-3, -3], [-2, -2]], -3),
            ([[3, 3], [2, 2]], 3),
            ([[1, 0], [0, 0]], 0),
        ):
            image = np.array(rows, np.int8)[None, :, :, None]
            self.assertEqual(_average(image).item(), expected, rows)

    def test_softmax(self):
        logits = np.array([[-128, -3, 0, 5, 5, 7]], np.int8)
        for scale, expected in (
            (1.0, [-128, -128, -128, -101, -101, 73]),
            (0.75, [-128, -128, -127, -89, -89, 48]),
            (0.3, [-128, -122, -114, -66, -66, -15]),
            (0.1, [-128, -101, -92, -68, -68, -55]),
            (0.05, [-128, -90, -84, -72, -72, -66]),
            (0.004, [-101, -83, -83, -82, -82, -81]),
            (0.0039, [-101, -83, -83, -82, -82, -82]),
            (0.001, [-90, -85, -85, -84, -84, -84]),
        ):
            output = _softmax(logits, Quantization(np.float32(scale), 0))
            self.assertEqual(output[0].tolist(), expected, scale)


if __name__ == "__main__":
    unittest.main()
