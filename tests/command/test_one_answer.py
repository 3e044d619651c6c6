#!/usr/bin/env python3
"""A quantized network gives one answer, bit for bit: on every level of the CPU, by plain C, by any number of
threads, in the form of pairs and in that of operators."""
import os

import case
import npy_file as n

DIGITS = os.path.join(case.DIGITS, "digits.onnx")
PICTURES = os.path.join(case.DIGITS, "pictures")
LEVELS = ("base", "avx2", "avx512")


class OneAnswer(case.Case):
    def answers(self, model):
        """{bytes of the outputs: who gave them}, for the first pictures of the test set."""
        with open(os.path.join(case.DIGITS, "test_images.npy"), "rb") as f:
            _, _, pixels = n.read_npy(f.read())
        batch = self.file("batch.npy", n.npy("<f4", [24, 1, 28, 28], [v / 255 for v in pixels[:24 * 784]]))
        found = {}
        for who, level, threads in ([("cpu", name, t) for name in LEVELS for t in ("1", "2", "5")]
                                    + [("reference", "base", "1")]):
            out = self.path("out.npy")
            self.nori("run", model, batch, "--output", out, "--provider", who, "--threads", threads,
                      "--quiet", env={"NORI_CPU": level})
            with open(out, "rb") as f:
                found.setdefault(f.read(), []).append((who, level, threads))
        return found

    def test_operators(self):
        """Integers from end to end: what stands between the first and the last node is exact everywhere."""
        model = self.path("operators.onnx")
        self.nori("quantize", DIGITS, "--output", model, "--data", PICTURES, "--form", "qoperator",
                  "--microsoft", "--per-tensor", "--no-search", "--quiet")
        found = self.answers(model)
        self.assertEqual(len(found), 1, list(found.values()))

    def test_pairs(self):
        model = self.path("pairs.onnx")
        self.nori("quantize", DIGITS, "--output", model, "--data", PICTURES, "--no-search", "--quiet")
        found = self.answers(model)
        by_cpu = [[who for who in group if who[0] == "cpu"] for group in found.values()]
        self.assertEqual(len([group for group in by_cpu if group]), 1, by_cpu)


if __name__ == "__main__":
    case.main()
