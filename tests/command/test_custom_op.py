#!/usr/bin/env python3
"""nori --ops-library: the example of examples/custom_op through run, check, inspect, bench, caps."""
import os
import subprocess
import sys

import case

LIBRARY = os.environ["NORI_MOVING_MEAN"]
EXAMPLE = os.path.join(case.SOURCE, "examples", "custom_op")


class CustomOp(case.Case):
    def setUp(self):
        super().setUp()
        subprocess.run([sys.executable, os.path.join(EXAMPLE, "make_model.py"), self.folder.name],
                       check=True)
        self.model, self.data = self.path("model.onnx"), self.path("test_data_set_0")
        self.ops = ("--ops-library", LIBRARY)

    def test_run(self):
        self.nori("run", self.model, *self.ops, "--test-data", self.data, "--threads", "2")
        refused = self.nori("run", self.model, "--test-data", self.data, code=4)
        self.assertIn("MovingMean, domain example.nori, opset 1: the domain is not known", refused.err)

    def test_check(self):
        self.assertEqual(self.nori("check", self.model, *self.ops, "--json").json()["findings"], [])
        with open(self.model, "rb") as f:
            data = f.read()
        wrong = self.file("wrong.onnx", data.replace(b"\x0a\x06window", b"\x0a\x06wandow"))
        said = self.nori("check", wrong, *self.ops, code=1).out
        self.assertIn("window", said)

    def test_inspect(self):
        seen = self.nori("inspect", self.model, *self.ops, "--nodes").out
        self.assertIn("MovingMean", seen)
        self.assertIn("4]", seen)  # six values, window 3

    def test_bench(self):
        profile = self.nori("bench", self.model, *self.ops, "--dim", "rows=3", "--profile",
                            "--runs", "2").out
        self.assertRegex(profile, r"MovingMean.*custom|custom.*MovingMean")

    def test_caps(self):
        line = self.nori("caps", *self.ops, "--op", "MovingMean").out
        self.assertRegex(line, r"example.nori +MovingMean +1 +custom +float32,float64")
        self.nori("caps", "--op", "MovingMean", code=1)

    def test_libraries_that_do_not_load(self):
        absent = self.path("absent.so")
        r = self.nori("run", self.model, "--ops-library", absent, code=4)
        self.assertEqual(r.err.count(absent), 1)
        self.assertIn("--ops-library", self.nori("run", self.model, code=4).err)
        none = self.nori("run", self.model, "--ops-library", self.path("none.so"), code=4).err
        self.assertIn("none.so", none)
        lacking = self.nori("run", self.model, "--ops-library", os.environ["NORI_LACKING_OPS"],
                            code=4).err
        self.assertIn("lacking_ops.so", lacking)
        self.assertIn("nori_function_of_a_later_version", lacking)
        other = self.nori("run", self.model, "--ops-library", "libm.so.6", code=4).err
        self.assertIn("libm.so.6", other)
        self.assertIn("nori_register_ops", other)
        twice = self.nori("run", self.model, *self.ops, *self.ops, code=2).err
        self.assertIn("there already is one", twice)


if __name__ == "__main__":
    case.main()
