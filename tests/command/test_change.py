#!/usr/bin/env python3
"""nori merge, rename and optimize, and data beside a model: what comes out, and what is refused."""
import os

import case
import model_file as f

DIGITS = os.path.join(case.DIGITS, "digits.onnx")


def value(name, dims, elem=f.FLOAT):
    return f.value(name, f.tensor_type(elem, dims))


def scale(name_in, name_out, factor, weight="w", opset=13, ir=8, axis="n", more=()):
    """out = in * factor, with a weight of that name."""
    return f.model(f.Graph([f.node("Mul", [name_in, weight], ["t"], name="times"),
                            f.node("Relu", ["t"], [name_out], name="cut")],
                           [value(name_in, [axis, 2])], [value(name_out, [axis, 2])],
                           [f.floats(weight, [2], [factor, -factor]), *more]), opset, ir)


class Change(case.Case):
    def made(self):
        return self.path("made.onnx")

    def change(self, verb, *args, **more):
        done = self.nori(verb, *args, "--output", self.made(), "--json", **more)
        if done.code == 0:
            self.nori("check", self.made(), "--strict")
        return done

    def same(self, model):
        self.nori("validate", model, "--against", self.made())

    def values(self, model, kind):
        return [v["name"] for v in self.nori("inspect", model, "--json").json()[kind]]

    # ---- merge ----

    def test_merge_with_clashing_names(self):
        a, b = self.file("a.onnx", scale("x", "y", 2)), self.file("b.onnx", scale("x2", "z", 3))
        r = self.change("merge", a, b, "--map", "y=x2").json()
        self.assertTrue(r["proof"]["equal"])
        self.assertGreater(r["renamed"], 2)  # w, t, and both nodes
        self.assertEqual((self.values(self.made(), "inputs"), self.values(self.made(), "outputs")),
                         (["x"], ["z"]))
        self.change("merge", a, b, "--map", "y=x2", "--keep", "--prefix", "second_")
        self.assertEqual(self.values(self.made(), "outputs"), ["y", "z"])
        with open(self.made(), "rb") as file:
            self.assertIn(b"second_w", file.read())

    def test_merge_brings_operator_sets_together(self):
        a = self.file("a.onnx", scale("x", "y", 2, opset=7, ir=3))
        b = self.file("b.onnx", scale("y", "z", 3, opset=17))
        r = self.change("merge", a, b).json()
        self.assertEqual((r["opset_a"], r["opset_b"], r["opset"]), (7, 17, 17))
        self.assertTrue(r["proof"]["agrees"])
        r = self.change("merge", b, self.file("c.onnx", scale("z", "q", 1, opset=9))).json()
        self.assertEqual(r["opset"], 17)

    def test_merge_shares_inputs(self):
        graph = f.Graph([f.node("Add", ["y", "x"], ["z"], name="sum")],
                        [value("y", ["n", 2]), value("x", ["n", 2])], [value("z", ["n", 2])])
        a, b = self.file("a.onnx", scale("x", "y", 2)), self.file("b.onnx", f.model(graph, 13))
        r = self.change("merge", a, b).json()
        self.assertEqual((r["joined"], r["shared"]), (1, 1))
        self.assertEqual(self.values(self.made(), "inputs"), ["x"])

    def test_merge_refusals(self):
        a, b = self.file("a.onnx", scale("x", "y", 2)), self.file("b.onnx", scale("p", "z", 3))
        c = self.file("c.onnx", f.one_node("Relu", [1, 2, 3], [1, 2, 3]))
        d = self.file("d.onnx", f.one_node("Relu", ["n", 3], ["n", 3]))
        i = self.file("i.onnx", f.one_node("Abs", ["n", 2], ["n", 2], elem=f.INT64))
        for second, args, word in ((b, (), "no output of the first"), (b, ("--map", "q=p"), "no output"),
                                   (b, ("--map", "y=q"), "no input"), (b, ("--map", "y"), "OUT=IN"),
                                   (c, ("--map", "y=x"), "rank"), (d, ("--map", "y=x"), "axis 1"),
                                   (i, ("--map", "y=x"), "int64"),
                                   (b, ("--map", "y=p", "--map", "y=p"), "two outputs")):
            self.assertIn(word, self.change("merge", a, second, *args, code=2).err)
        self.change("merge", a, code=2)
        self.assertFalse(os.path.exists(self.made()))

    # ---- rename ----

    def test_rename(self):
        self.change("rename", DIGITS, "--value", "image=picture", "--value", "logits=scores", "--axis",
                    "batch=items", "--node", "/head/Gemm=last")
        r = self.nori("inspect", self.made(), "--json").json()
        self.assertEqual((r["inputs"][0]["name"], r["inputs"][0]["shape"][0]), ("picture", "items"))
        self.assertEqual(r["outputs"][0]["name"], "scores")
        self.assertIn("last", self.nori("inspect", self.made(), "--nodes").out)
        self.change("rename", self.made(), "--value", "picture=scores", "--value", "scores=picture", code=2)

    def test_rename_back_gives_the_same_bytes(self):
        made, back = self.path("a.onnx"), self.path("b.onnx")
        self.nori("rename", DIGITS, "--value", "image=picture", "--axis", "batch=b", "--output", made)
        self.nori("rename", made, "--value", "picture=image", "--axis", "b=batch", "--output", back)
        with open(DIGITS, "rb") as old, open(back, "rb") as new:
            self.assertEqual(sorted(old.read()), sorted(new.read()))

    def test_rename_reaches_into_bodies(self):
        body = f.Graph([f.node("Add", ["k", "a"], ["out"])], [], [value("out", [2])])
        graph = f.Graph([f.node("Relu", ["x"], ["a"], name="first"),
                         f.node("If", ["t"], ["y"], name="choice", then_branch=body, else_branch=body)],
                        [value("x", [2]), value("t", [], f.BOOL)], [value("y", [2])],
                        [f.floats("k", [2], [1, 2])])
        model = self.file("if.onnx", f.model(graph))
        self.change("rename", model, "--value", "a=inner", "--value", "k=constant")
        self.nori("run", self.made(), "--seed", "1")
        self.assertIn("is a value of that name",
                      self.change("rename", model, "--value", "a=out", code=2).err)

    def test_rename_refusals(self):
        for args, word in ((("--value", "nobody=x"), "no value named"), (("--value", "image=logits"), "there is"),
                           (("--value", "image"), "OLD=NEW"), (("--axis", "nobody=x"), "no dimension"),
                           ((), "nothing to rename"),
                           (("--value", "image=a", "--value", "logits=a"), "two are to be")):
            self.assertIn(word, self.change("rename", DIGITS, *args, code=2).err)

    # ---- optimize ----

    def messy(self, opset=13):
        """y = relu(bn(conv(pad(x)))) by way of much that does nothing, and a shape that is known."""
        ones = lambda name, v: f.floats(name, [2], [v, v + 1])
        nodes = [f.node("Identity", ["x"], ["i"], name="identity"),
                 f.node("Cast", ["i"], ["same"], name="same_type", to=f.FLOAT),
                 f.node("Mul", ["same", "one"], ["m"], name="by_one"),
                 f.node("Pad", ["m", "pads"], ["p"], name="pad"),
                 f.node("Conv", ["p", "w"], ["c"], name="conv"),
                 f.node("BatchNormalization", ["c", "s", "b", "mean", "var"], ["n"], name="bn"),
                 f.node("Transpose", ["n"], ["t1"], name="t1", perm=[0, 2, 3, 1]),
                 f.node("Transpose", ["t1"], ["t2"], name="t2", perm=[0, 3, 1, 2]),
                 f.node("Relu", ["t2"], ["r1"], name="r1"), f.node("Relu", ["t2"], ["r2"], name="r2"),
                 f.node("Add", ["r1", "r2"], ["a"], name="sum"),
                 f.node("Neg", ["a"], ["unread"], name="unread"),
                 f.node("Mul", ["k", "many"], ["kk"], name="constants"),
                 f.node("Concat", ["k", "kk"], ["shape"], name="shape", axis=0),
                 f.node("Reshape", ["a", "shape"], ["f"], name="flat"),
                 f.node("MatMul", ["f", "v"], ["q"], name="product"), f.node("Add", ["q", "bias"], ["y"],
                                                                            name="bias")]
        weights = [0.1 * (i % 7 - 3) for i in range(36)]
        return f.model(f.Graph(nodes, [value("x", [1, 2, 4, 4])], [value("y", [1, 3])],
                               [f.floats("one", [], [1]), f.ints("pads", [8], [0, 0, 1, 1, 0, 0, 1, 1]),
                                f.floats("w", [2, 2, 3, 3], weights), ones("s", 1), ones("b", 0.5),
                                ones("mean", 0.25), ones("var", 2), f.ints("k", [1], [1]), f.ints("many", [1], [32]),
                                f.floats("v", [32, 3], [0.1] * 96), f.floats("bias", [3], [1, 2, 3])]), opset)

    def test_optimize(self):
        model = self.file("messy.onnx", self.messy())
        r = self.change("optimize", model).json()
        self.assertEqual((r["nodes_before"], r["nodes_after"]), (17, 5))
        self.assertEqual({o["op"] for o in self.nori("inspect", self.made(), "--json").json()["operators"]},
                         {"Conv", "Relu", "Add", "Reshape", "Gemm"})
        for name in ("fold", "identity", "transpose", "pad", "gemm", "affine", "same_nodes", "dead"):
            self.assertGreater(r["passes"][name], 0, name)
        self.assertTrue(r["proof"]["agrees"])
        self.same(model)
        for opset in ("--lowest", "--opset=9", "--opset=26"):
            self.nori("convert", model, opset, "--output", self.path("other.onnx"), "--quiet")
            r = self.change("optimize", self.path("other.onnx")).json()
            self.assertEqual(r["nodes_after"], 5, opset)
            self.same(model)

    def test_optimize_a_part_alone(self):
        model = self.file("messy.onnx", self.messy())
        r = self.change("optimize", model, "--passes", "identity,dead").json()
        self.assertEqual([n for n, c in r["passes"].items() if c], ["identity", "dead"])
        self.assertIn("same_constants", self.change("optimize", model, "--passes", "nothing", code=2).err)

    def test_rewrites_of_one_chain(self):
        """A Cast that casts nothing feeds a product by one: what is left is valid at every level."""
        nodes = [f.node("Cast", ["x"], ["same"], name="same_type", to=f.FLOAT),
                 f.node("Mul", ["same", "one"], ["y"], name="by_one")]
        model = self.file("n.onnx", f.model(f.Graph(nodes, [value("x", [2])], [value("y", [2])],
                                                    [f.floats("one", [], [1])])))
        self.nori("validate", model, "--levels")
        r = self.change("optimize", model).json()
        self.assertTrue(r["proof"]["equal"])
        self.nori("validate", self.made(), "--levels")
        self.same(model)

    def test_constants_of_one_content(self):
        nodes = [f.node("Add", ["x", "a"], ["s"], name="one"), f.node("Mul", ["s", "b"], ["y"], name="two")]
        model = self.file("c.onnx", f.model(f.Graph(nodes, [value("x", [2])], [value("y", [2])],
                                                    [f.floats("a", [2], [3, 5]), f.floats("b", [2], [3, 5])])))
        r = self.change("optimize", model).json()
        self.assertEqual((r["constants_before"], r["constants_after"]), (2, 1))
        self.same(model)

    # ---- external data ----

    def test_data_beside_the_model(self):
        big = self.path("data.bin")
        self.change("convert", DIGITS, "--external", "data.bin", "--threshold", "1k")
        self.assertEqual(os.path.getsize(big) % 4, 0)
        self.assertLess(os.path.getsize(self.made()), 20000)
        self.same(DIGITS)
        back = self.path("back.onnx")
        self.nori("convert", self.made(), "--embed", "--output", back)
        os.remove(big)
        self.nori("validate", DIGITS, "--against", back)

    def test_where_data_may_go(self):
        self.change("convert", DIGITS, "--external", "data.bin")
        made = self.made()
        for location, word in (("../d.bin", "'..'"), ("/tmp/d.bin", "absolute"), ("a\\b", "backslash"),
                               ("other.onnx", "the model itself"), ("data.bin", "has its data there"),
                               ("made.onnx", "has its data there")):
            err = self.nori("convert", made, "--external", location, "--output", self.path("other.onnx"),
                            code=2).err
            self.assertIn(word, err)
        self.nori("convert", made, "--external", "d.bin", "--embed", "--output", self.path("o.onnx"), code=2)
        self.nori("convert", made, "--threshold", "1", "--embed", "--output", self.path("o.onnx"), code=2)
        self.nori("check", made)  # its data is as it was

    def test_three_gigabytes_pass_through(self):
        """A weight of 3 GiB, all holes: checked, inspected, saved again and renamed in little memory."""
        size = 3 << 30
        entries = b"".join(f.put(13, f.put(1, k) + f.put(2, v)) for k, v in (
            ("location", "big.data"), ("offset", "0"), ("length", str(size))))
        weight = f.num(1, size >> 12) + f.num(1, 1024) + f.num(2, f.FLOAT) + f.put(8, "w") + entries + f.num(14, 1)
        graph = f.Graph([f.node("Gather", ["w", "i"], ["y"], name="rows")], [value("i", [2], f.INT64)],
                        [value("y", [2, 1024])], [weight])
        model = self.file("big.onnx", f.model(graph))
        with open(self.path("big.data"), "wb") as data:
            data.truncate(size)
        self.nori("check", model)
        self.nori("inspect", model)
        self.nori("rename", model, "--node", "rows=lines", "--output", self.made())
        self.assertEqual(os.path.getsize(self.made() + ".data"), size)
        self.assertLess(os.stat(self.made() + ".data").st_blocks * 512, 64 << 20)
        self.nori("check", self.made())
        self.assertIn("lines", self.nori("inspect", self.made(), "--nodes").out)
        self.assertIn("at most", self.nori("convert", model, "--embed", "--output", self.path("e.onnx"),
                                           code=None).err)
        if not case.SANITIZED:
            self.assertLess(case.peak_bytes(), 200 << 20)


if __name__ == "__main__":
    case.main()
