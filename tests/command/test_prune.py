#!/usr/bin/env python3
"""nori prune: options, report, exit codes; what it does to graphs is tested in C."""
import os

import case

MODEL = os.path.join(case.DIGITS, "digits.onnx")
PICTURES = os.path.join(case.DIGITS, "pictures")


class Prune(case.Case):
    def prune(self, *args, **more):
        return self.nori("prune", MODEL, "--output", self.path("p.onnx"), *args, **more)

    def test_methods(self):
        for args, least in ((("--share", "0.3"), 15), (("--method", "2:4"), 2),
                            (("--method", "channels", "--share", "0.1"), 3)):
            r = self.prune("--data", PICTURES, "--json", *args).json()
            self.assertGreater(r["output_sqnr"], least)
            self.assertGreater(r["removed"], 0)
            self.nori("check", self.path("p.onnx"))
            self.nori("run", self.path("p.onnx"))
            self.nori("quantize", self.path("p.onnx"), "--output", self.path("q.onnx"), "--data",
                      PICTURES, "--no-search", "--quiet")
            self.nori("check", self.path("q.onnx"))
        self.assertLess(r["weight_bytes_after"], r["weight_bytes_before"])

    def test_text(self):
        out = self.prune("--method", "channels", "--share", "0.25", "--nodes").out
        self.assertIn("12 of 16", out)
        self.assertIn("not measured", out)
        self.assertIn("the output logits", out)

    def test_refusals(self):
        for args in (("--share", "0"), ("--share", "1"), ("--share", "x"), ("--method", "some"),
                     ("--method", "2:4", "--share", "0.5")):
            self.assertIn(args[-2], self.prune(*args, code=2).err)
        self.nori("prune", MODEL, code=2)


if __name__ == "__main__":
    case.main()
