#!/usr/bin/env python3
"""nori split and nori extract: which cuts there are, what the parts give, what is refused."""
import os

import case
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
