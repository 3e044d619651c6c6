#!/usr/bin/env python3
"""nori quantize and nori quant: options, samples, exit codes; the arithmetic is tested in C."""
import os

import case
import model_file as m
import npy_file as n

MODEL = os.path.join(case.DIGITS, "digits.onnx")


class Quantize(case.Case):
    def setUp(self):
        super().setUp()
        self.out = self.path("q.onnx")

    def quantize(self, *args, model=MODEL, **more):
        return self.nori("quantize", model, "--output", self.out, *args, **more)

    def test_one_message_and_no_file(self):
        wrong = self.file("wrong.npy", n.npy("<f4", [1, 3, 28, 28], [0] * 2352))
        for data, code in ((self.path("absent"), 3), (self.file("text.pb", "text"), 3),
                           (self.file("text.png", "text"), 3), (wrong, 3)):
            r = self.quantize("--data", data, "--json", code=code)
            self.assertIn("message", r.json()["error"])  # one object, not two
            self.assertEqual(r.err.count("error:"), 1)
            self.assertFalse(os.path.exists(self.out))
        number = self.file("i.onnx", m.one_node("Identity", [1, 4], [1, 4]))
        picture = os.path.join(case.DIGITS, "pictures", "7_00.png")
        r = self.quantize("--data", picture, model=number, code=2)  # as nori run says of it
        self.assertIn("does not look like a picture", r.err)

    def test_steps_without_error_are_told(self):
        self.quantize("--random", "2", "--no-search")
        again = self.nori("quantize", self.out, "--output", self.path("r.onnx"), "--random", "2").out
        self.assertNotIn("nan", again)
        self.assertRegex(again, r"left out: exact, was exact|not done: ")

    def test_options_that_do_nothing_are_refused(self):
        r = self.quantize("--random", "1", "--exclude", "nowhere", code=2)
        self.assertIn("--exclude nowhere", r.err)
        self.quantize("--random", "1", "--exclude", "/head*", "--exclude", "Relu")
        for kind in ("dynamic", "weights"):
            for args in (("--method", "mse"), ("--symmetric",), ("--activations", "int8"),
                         ("--percentile", "99")):
                self.assertIn(args[0], self.quantize("--kind", kind, *args, code=2).err)
        for args in (("--weights", "int8"), ("--per-tensor",), ("--block", "32"), ("--packed",)):
            self.assertIn(args[0], self.quantize("--kind", "fp16", *args, code=2).err)
        self.assertIn("--half-io", self.quantize("--random", "1", "--half-io", code=2).err)
        self.quantize("--random", "1", "--method", "minmax", "--percentile", "99", code=2)
        self.quantize("--random", "1", "--percentile", "99")

    def test_names_are_not_cut(self):
        name = "layer/" * 10 + "Conv"
        graph = m.Graph([m.node("Conv", ["x", "w"], ["y" * 40], name=name)],
                        [m.value("x", m.tensor_type(m.FLOAT, [1, 1, 4, 4]))],
                        [m.value("y" * 40, m.tensor_type(m.FLOAT, [1, 1, 4, 4]))],
                        [m.floats("w", [1, 1, 1, 1], [2])])
        path = self.file("c.onnx", m.model(graph))
        out = self.quantize("--random", "2", "--nodes", "--values", "--size-first", model=path).out
        self.assertIn(name, out)
        self.assertIn("y" * 40 + " ", out)
        self.assertNotIn(" \n", out)
        self.assertIn(name, self.nori("bench", path, "--runs", "1", "--profile", "--level", "0").out)

    def test_half_types(self):
        for kind, name in (("fp16", "float16"), ("bf16", "bfloat16")):
            r = self.quantize("--kind", kind, "--random", "2", "--nodes")
            self.assertIn("%-11s    19 of 19 nodes" % name, r.out)
            self.assertIn("2.00 times smaller", r.out)
            self.assertIn("float32[batch,10]", self.nori("inspect", self.out).out)
            self.quantize("--kind", kind, "--half-io")
            self.assertIn("%s[batch,10]" % name, self.nori("inspect", self.out).out)
            self.nori("check", self.out)
            self.nori("run", self.out)

    def read(self, path):
        with open(path, "rb") as f:
            return f.read()

    def test_what_has_little_work_stays_float(self):
        graph = m.Graph([m.node("MatMul", ["x", "w"], ["y"], name="tiny")],
                        [m.value("x", m.tensor_type(m.FLOAT, [1, 4]))],
                        [m.value("y", m.tensor_type(m.FLOAT, [1, 4]))],
                        [m.floats("w", [4, 4], range(16))])
        path = self.file("tiny.onnx", m.model(graph))
        r = self.quantize("--random", "20", "--nodes", model=path)
        self.assertIn("too little work", r.out)
        self.assertIn("--size-first", r.out)
        self.assertIn("no node computes on integers", r.err)
        r = self.quantize("--random", "20", "--size-first", model=path)
        self.assertRegex(r.out, r"integers +1 of 1 node")
        for other in ("--no-search", "--spare-slow"):
            self.assertIn("--size-first", self.quantize("--random", "1", "--size-first", other, code=2).err)

    def test_budgets_have_units(self):
        for text in ("sqnr=20", "sqnr=20%", "top1=1", "top1=1dB", "max-latency=5", "max-latency=5s",
                     "speed=3", "sqnr=dB", "sqnr=-1dB"):
            self.assertIn("unit", self.quantize("--random", "1", "--budget", text, code=2).err)
        self.quantize("--random", "2", "--budget", "sqnr=25dB", "--budget", "top1=50%", "--budget",
                      "max-latency=1000ms")
        for args in (("--budget", "sqnr=25dB"), ("--without", "fold"), ("--no-search",), ("--spare-slow",), ("--size-first",)):
            self.assertIn(args[0], self.quantize("--kind", "dynamic", *args, code=2).err)
        self.quantize("--random", "1", "--without", "folding", code=2)
        self.quantize("--random", "1", "--rounding", "gptq", code=2)
        self.quantize("--kind", "weights", "--rounding", "gptq", code=2)

    def test_more_samples_from_few(self):
        pictures = os.path.join(case.DIGITS, "pictures", "7_00.png")
        r = self.quantize("--data", pictures, "--perturb", "12", "--json").json()
        self.assertEqual(r["samples"], 12)
        first = self.read(self.out)
        self.quantize("--data", pictures, "--perturb", "12")
        self.assertEqual(first, self.read(self.out))  # the same every time
        self.assertEqual(self.quantize("--data", pictures, "--json").json()["samples"], 1)

    def test_report_and_page(self):
        page = self.path("report.html")
        pictures = os.path.join(case.DIGITS, "pictures")
        r = self.quantize("--data", pictures, "--without", "bias", "--html", page, "--json").json()
        steps = {s["name"]: s for s in r["steps"]}
        self.assertEqual(steps["correct biases"]["reason"], "switched off")
        self.assertTrue(any(t["pareto"] for t in r["tries"]))
        self.assertGreater(r["float_ms"], 0)
        self.assertGreater(r["output_sqnr"], 20)
        convs = [n for n in r["nodes"] if n["op"] == "Conv"]
        self.assertTrue(all(n["float_ms"] > 0 and n["int_ms"] > 0 for n in convs))
        text = self.read(page).decode("utf-8")
        self.assertIn("<svg", text)
        self.assertIn("Agreement by depth", text)
        for outside in ("http:", "https:", "<script", "src="):
            self.assertNotIn(outside, text)

    def test_nothing_to_quantize(self):
        path = self.file("r.onnx", m.one_node("Relu", [1, 4], [1, 4]))
        r = self.quantize("--random", "1", model=path)
        self.assertIn("warning: no node computes on integers", r.err)
        self.assertIn("exact on every output", r.out)


if __name__ == "__main__":
    case.main()
