#!/usr/bin/env python3
"""nori split and nori extract: which cuts there are, what the parts give, what is refused."""
import os

import case
import npy_file
import model_file as f

DIGITS = os.path.join(case.DIGITS, "digits.onnx")


def float_value(name, dims):
    return f.value(name, f.tensor_type(f.FLOAT, dims))


def residual(blocks=3):
    """x -> blocks of relu(conv) + input, with a weight that all blocks share and a Shape of x."""
    weight = [0.25 * ((i * 7) % 5 - 2) for i in range(2 * 2 * 3 * 3)]
    nodes, x = [], "x"
    for b in range(blocks):
        nodes += [f.node("Conv", [x, "w"], ["c%d" % b], name="conv%d" % b, pads=[1, 1, 1, 1]),
                  f.node("Relu", ["c%d" % b], ["r%d" % b], name="relu%d" % b),
                  f.node("Add", ["r%d" % b, x], ["s%d" % b], name="add%d" % b)]
        x = "s%d" % b
    nodes.append(f.node("Identity", [x], ["y"], name="last"))
    return f.model(f.Graph(nodes, [float_value("x", [1, 2, 4, 4])], [float_value("y", [1, 2, 4, 4])],
                           [f.floats("w", [2, 2, 3, 3], weight)]), metadata=[("key", "word")])


class Split(case.Case):
    def cuts(self, model, *args):
        return self.nori("split", model, "--list", "--json", *args).json()["cuts"]

    def split(self, model, *args, parts=2, **more):
        files = [self.path("part%d.onnx" % i) for i in range(parts)]
        outputs = [word for file in files for word in ("--output", file)]
        done = self.nori("split", model, *args, *outputs, "--json", **more)
        if done.code == 0:
            for file in files:
                self.nori("check", file, "--strict")
        return done, files

    def test_every_cut_of_a_residual_net(self):
        model = self.file("r.onnx", residual())
        cuts = self.cuts(model)
        self.assertEqual([c["values"] for c in cuts if not c["inputs"]], [["s0"], ["s1"], ["s2"]])
        self.assertEqual([c["values"] for c in cuts if c["inputs"]], [["c0"], ["r0"]])
        self.assertEqual({c["bytes"] for c in cuts}, {128})
        inside = self.cuts(model, "--most", "0")
        self.assertIn(["s0", "r1"], [c["values"] for c in inside])
        self.assertEqual([c for c in inside if c["values"] == ["r0"]][0]["inputs"], ["x"])
        for c in inside:
            r = self.split(model, "--at", ",".join(c["values"]))[0].json()
            self.assertTrue(r["proof"]["equal"])
            self.assertEqual(r["parts"][0]["bytes"], c["bytes"])
            self.assertEqual([v["name"] for v in r["parts"][0]["values"]], c["values"])
            self.assertEqual(r["parts"][0]["nodes"], c["nodes"])

    def test_what_reads_others_by_name_is_refused_at_once(self):
        text = self.path("g.txt")
        with open(text, "w") as out:
            out.write('<ir_version: 8, opset_import: ["": 12, "ai.onnx.preview.training": 1]>\n'
                      'g (float[2] x) => (float[2] b, float[2] dx) { [square] a = Mul(x, x) '
                      '[relu] b = Relu(a) [back] dx = ai.onnx.preview.training.Gradient '
                      '<xs: strings = ["x"], y: string = "b"> (x) }')
        model = self.path("g.onnx")
        self.nori("build", text, "-o", model, "--quiet")
        self.nori("run", model, "--quiet")
        for words in (["split", model, "--list"],
                      ["split", model, "--at", "a", "--output", self.path("1"), "--output", self.path("2")],
                      ["extract", model, "--from", "x", "--to", "dx", "--output", self.path("1")]):
            self.assertIn("back (Gradient) goes back through nodes", self.nori(*words, code=4).err)
        self.nori("extract", model, "--from", "a", "--to", "b", "--output", self.path("1"))

    def test_more_than_two_parts(self):
        r = self.split(DIGITS, "--at", "/features/features.6/MaxPool_output_0", "--at",
                       "/Flatten_output_0", "--dim", "batch=3", parts=3)[0].json()
        self.assertTrue(r["proof"]["ran"] and r["proof"]["equal"])
        self.assertEqual([p["bytes"] for p in r["parts"]], [3 * 16 * 14 * 14 * 4, 3 * 576 * 4, 0])

    def test_what_is_said_of_the_model_is_kept(self):
        for file in self.split(self.file("r.onnx", residual()), "--at", "s0")[1]:
            with open(file, "rb") as made:
                self.assertIn(b"word", made.read())

    def test_by_nodes(self):
        model = self.file("r.onnx", residual())
        r, _ = self.split(model, "--first", "conv0,relu0,s0")
        self.assertEqual([v["name"] for v in r.json()["parts"][0]["values"]], ["s0"])
        self.assertIn("relu0", self.split(model, "--first", "relu0", code=2)[0].err)
        self.assertIn("nobody", self.split(model, "--first", "nobody", code=2)[0].err)

    def test_what_a_body_reads_from_outside(self):
        body = lambda op: f.Graph([f.node(op, ["a", "k"], ["out"])], [], [float_value("out", [2])])
        graph = f.Graph([f.node("Relu", ["x"], ["a"], name="first"),
                         f.node("Neg", ["a"], ["b"], name="second"),
                         f.node("ReduceSum", ["b"], ["s"], name="sum", keepdims=0),
                         f.node("Less", ["s", "zero"], ["t"], name="test"),
                         f.node("If", ["t"], ["y"], name="choice", then_branch=body("Add"),
                                else_branch=body("Mul"))],
                        [float_value("x", [2])], [float_value("y", [2])],
                        [f.floats("k", [2], [3, 5]), f.floats("zero", [], [0])])
        model = self.file("if.onnx", f.model(graph))
        self.assertEqual(self.cuts(model, "--most", "0")[-1]["values"], ["a", "t"])
        for at in ("a", "a,b", "a,s", "a,t"):
            r = self.split(model, "--at", at)[0].json()
            self.assertTrue(r["proof"]["equal"], at)
        self.assertIn("also reads a", self.split(model, "--at", "t", code=2)[0].err)
        self.assertIn("inside node", self.split(model, "--at", "out", code=2)[0].err)

    def chained(self, files, model, sample):
        """The output of the parts one after another, and of the whole: numbers."""
        mid, end, whole = (self.path(name) for name in ("mid.npy", "end.npy", "whole.npy"))
        self.nori("run", files[0], sample, "--output", mid)
        self.nori("run", files[1], mid, "--output", end)
        self.nori("run", model, sample, "--output", whole)
        made = []
        for path in (end, whole):
            with open(path, "rb") as file:
                made.append(npy_file.read_npy(file.read())[2])
        return made

    def test_bytes_with_fixed_scales(self):
        """--byte-features with samples: QuantizeLinear behind the first part, no floats between the two."""
        at = "/features/features.6/MaxPool_output_0"
        images = os.path.join(case.DIGITS, "test_images.npy")
        done, files = self.split(DIGITS, "--at", at, "--byte-features", "--data", images, "--samples", "50")
        r = done.json()
        self.assertTrue(r["proof"]["equal"])  # of the parts as they were before
        b = r["byte_features"]
        v = b["values"][0]
        self.assertEqual((v["name"], v["fixed"], v["bytes_before"], v["bytes"]), (at, True, 4 * 3136, 3136))
        self.assertAlmostEqual(v["scale"], (v["max"] - v["min"]) / 255, 6)
        self.assertGreater(v["max_abs"], 0)
        self.assertLessEqual(v["max_abs"], v["scale"] * 0.501)  # the arithmetic of rounding
        self.assertEqual((b["samples"], b["output"], b["tolerance"]), (50, "logits", 0.05))
        self.assertTrue(0 < b["max_abs"] < 0.05 * b["peak"] and b["sqnr_db"] > 30)
        first, second = (self.nori("inspect", file, "--json").json() for file in files)
        for handed in first["outputs"], second["inputs"]:
            self.assertEqual([(o["name"], o["type"], o["shape"][1:]) for o in handed],
                             [(v["sent"], "uint8", [16, 14, 14])])
        parts, whole = self.chained(files, DIGITS, os.path.join(case.DIGITS, "pictures", "3_00.png"))
        far = max(abs(a - b) for a, b in zip(parts, whole))
        self.assertTrue(0 < far <= 0.05 * b["peak"], far)

    def test_bytes_by_each_call(self):
        """Without samples: scale and zero point go along; an output of the model that is also handed over
        stays a float."""
        nodes = [f.node("Relu", ["x"], ["a"]), f.node("Neg", ["a"], ["b"]), f.node("Add", ["a", "b"], ["y"])]
        graph = f.Graph(nodes, [float_value("x", [2, 8])], [float_value("a", [2, 8]), float_value("y", [2, 8])])
        model = self.file("m.onnx", f.model(graph))
        done, files = self.split(model, "--at", "a", "--byte-features")
        v = done.json()["byte_features"]["values"][0]
        self.assertEqual((v["sent"], v["fixed"], v["bytes_before"], v["bytes"]), ("a_bytes", False, 64, 16 + 5))
        first = self.nori("inspect", files[0], "--json").json()
        self.assertEqual([o["name"] for o in first["outputs"]],
                         ["a", "a_bytes", "a_bytes_scale", "a_bytes_zero_point"])

    def test_bytes_over_three_parts(self):
        """A value that two later parts read, of which one hands on another: each reads the bytes itself."""
        nodes = [f.node("Sigmoid", ["x"], ["a"]), f.node("Exp", ["a"], ["b"]), f.node("Add", ["a", "b"], ["y"])]
        graph = f.Graph(nodes, [float_value("x", [4])], [float_value("y", [4])])
        done, files = self.split(self.file("m.onnx", f.model(graph)), "--at", "a", "--at", "a,b", "--byte-features",
                                 "--random", "5", parts=3)
        b = done.json()["byte_features"]
        self.assertEqual([(v["name"], v["part"]) for v in b["values"]], [("a", 1), ("b", 2)])
        last = self.nori("inspect", files[2], "--json").json()
        self.assertEqual([i["name"] for i in last["inputs"]], ["a_bytes", "b_bytes"])

    def test_bytes_refused(self):
        at = ("--at", "/features/features.6/MaxPool_output_0")
        done, files = self.split(DIGITS, *at, "--byte-features", "--tolerance", "1e-6", code=3)
        self.assertIn("logits is off by", done.err)
        self.assertFalse(os.path.exists(files[0]))
        for args, word in (((*at, "--data", "x"), "--byte-features only"), ((*at, "--tolerance", "1"), "only"),
                           ((*at, "--byte-features", "--tolerance", "-1"), "at least 0")):
            self.assertIn(word, self.split(DIGITS, *args, code=2)[0].err)
        whole = f.Graph([f.node("Neg", ["x"], ["a"]), f.node("Neg", ["a"], ["y"])],
                        [f.value("x", f.tensor_type(f.INT64, [2]))], [f.value("y", f.tensor_type(f.INT64, [2]))])
        self.assertIn("no float32", self.split(self.file("i.onnx", f.model(whole)), "--at", "a", "--byte-features",
                                               code=2)[0].err)
        old = f.Graph([f.node("Neg", ["x"], ["a"]), f.node("Neg", ["a"], ["y"])], [float_value("x", [2])],
                      [float_value("y", [2])])
        old = self.file("o.onnx", f.model(old, opset=10))
        self.assertIn("DynamicQuantizeLinear", self.split(old, "--at", "a", "--byte-features", code=4)[0].err)
        self.split(old, "--at", "a", "--byte-features", "--random", "3")  # fixed scales do

    def test_refusals(self):
        model = self.file("r.onnx", residual())
        for at, word in (("nobody", "no value"), ("w", "a constant"), ("x", "an input"),
                         ("r1", "also reads s0"), ("y", "nothing behind"), ("a,,b", "empty name")):
            self.assertIn(word, self.split(model, "--at", at, code=2)[0].err)
        self.assertIn("does not lie behind",
                      self.split(model, "--at", "s1", "--at", "s0", parts=3, code=2)[0].err)
        self.assertIn("2 parts need", self.nori("split", model, "--at", "s0", "--output",
                                                self.path("a.onnx"), code=2).err)
        self.nori("split", model, code=2)
        self.nori("split", model, "--list", "--at", "s0", code=2)
        self.assertFalse(os.path.exists(self.path("part0.onnx")))

    def test_extract(self):
        model, part = self.file("r.onnx", residual()), self.path("part.onnx")
        r = self.nori("extract", model, "--from", "s0", "--to", "s1", "--output", part, "--json").json()
        self.assertEqual(([v["name"] for v in r["inputs"]], [v["name"] for v in r["outputs"]]),
                         (["s0"], ["s1"]))
        self.assertEqual(r["inputs"][0]["type"], "float32[1,2,4,4]")
        self.nori("check", part, "--strict")
        self.nori("run", part, "--seed", "1")
        self.assertIn("needs input", self.nori("extract", model, "--from", "s2", "--to", "s0",
                                               "--output", part, code=2).err)
        self.assertIn("a constant", self.nori("extract", model, "--from", "w", "--output", part,
                                              code=2).err)
        self.assertIn("no node", self.nori("extract", model, "--to", "x", "--output", part, code=2).err)
        self.nori("extract", model, "--output", part, code=2)


if __name__ == "__main__":
    case.main()
