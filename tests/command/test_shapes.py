#!/usr/bin/env python3
"""nori rebatch and nori shapes: batches that a model has written into it, and sizes of its inputs."""
import os

import case
import model_file as f
import npy_file

DIGITS = os.path.join(case.DIGITS, "digits.onnx")


def value(name, dims, elem=f.FLOAT):
    return f.value(name, f.tensor_type(elem, dims))


def numbers(count):
    return [((i * 37) % 19 - 9) / 8 for i in range(count)]


def weights(name, *dims):
    count = 1
    for d in dims:
        count *= d
    return f.floats(name, dims, numbers(count))


def conv_reshape_gemm(shape=(1, -1), opset=13):
    """Declared for one item, and a Reshape has it as well."""
    return f.model(f.Graph(
        [f.node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
         f.node("Reshape", ["c", "shape"], ["r"], name="flat"),
         f.node("Gemm", ["r", "g", "b"], ["y"], name="head")],
        [value("x", [1, 2, 4, 4])], [value("y", [1, 5])],
        [weights("w", 3, 2, 3, 3), f.ints("shape", [len(shape)], shape), weights("g", 48, 5),
         weights("b", 5)]), opset)


class Rebatch(case.Case):
    def write(self, name, dims, data):
        return self.file(name, npy_file.npy("<f4", dims, data))

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return npy_file.read_npy(file.read())[2]

    def rebatch(self, data, *args, **more):
        model = self.file("m.onnx", data)
        done = self.nori("rebatch", model, "--output", self.path("made.onnx"), "--json", *args, **more)
        if done.code == 0:
            self.nori("check", self.path("made.onnx"), "--strict")
        return done

    def test_a_wrong_batch_says_what_to_do(self):
        model = self.file("m.onnx", conv_reshape_gemm())
        x = self.write("x.npy", [4, 2, 4, 4], numbers(128))
        for level in "012":
            err = self.nori("run", model, "--input", "x=" + x, "--level", level, code=3).err
            for word in ('"x"', "axis 0", "expected 1", "got 4", "flat (Reshape)", "rebatch"):
                self.assertIn(word, err)

    def test_four_rows_are_four_runs(self):
        for shape in ((1, -1), (1, 48)):
            r = self.rebatch(conv_reshape_gemm(shape)).json()
            self.assertEqual([m["path"] for m in r["mended"]], ["flat (Reshape)"])
            self.assertTrue(r["proof"]["agrees"])
            made = self.path("made.onnx")
            data = numbers(128)
            self.nori("run", made, "--input", "x=" + self.write("all.npy", [4, 2, 4, 4], data), "--output",
                      self.path("all_y.npy"), "--level", "0")
            rows = self.read("all_y.npy")
            for i in range(4):
                one = self.write("one.npy", [1, 2, 4, 4], data[32 * i:32 * i + 32])
                self.nori("run", self.path("m.onnx"), "--input", "x=" + one, "--output",
                          self.path("one_y.npy"), "--level", "0")
                for a, b in zip(self.read("one_y.npy"), rows[5 * i:5 * i + 5], strict=True):
                    self.assertAlmostEqual(a, b, places=4)

    def test_a_size_or_a_name(self):
        self.rebatch(conv_reshape_gemm(), "--batch", "4")
        shapes = lambda: [v["shape"] for k in ("inputs", "outputs") for v in self.nori(
            "inspect", self.path("made.onnx"), "--json").json()[k]]
        self.assertEqual(shapes(), [[4, 2, 4, 4], [4, 5]])
        self.rebatch(conv_reshape_gemm(), "--batch", "items")
        self.assertEqual(shapes(), [["items", 2, 4, 4], ["items", 5]])
        self.rebatch(conv_reshape_gemm(), "--batch", "0", code=2)
        self.rebatch(conv_reshape_gemm(), "--input", "nobody", code=2)
        self.rebatch(conv_reshape_gemm(), "--input", "x:7", code=2)

    def test_heads_and_a_class_token(self):
        """A token for all is joined to each item; heads are taken apart and put together."""
        graph = f.Graph(
            [f.node("Concat", ["token", "x"], ["t"], name="join", axis=1),
             f.node("Reshape", ["t", "apart"], ["a"], name="apart"),
             f.node("Transpose", ["a"], ["h"], name="turn", perm=[0, 2, 1, 3]),
             f.node("Reshape", ["h", "flat"], ["m"], name="heads"),
             f.node("MatMul", ["m", "w"], ["p"], name="product"),
             f.node("Reshape", ["p", "four"], ["q"], name="four"),
             f.node("Expand", ["q", "four"], ["e"], name="wide"),  # 1 keeps the size
             f.node("Slice", ["e", "zero", "one", "zero"], ["s"], name="slice"),
             f.node("ReduceMean", ["s"], ["y"], name="mean", axes=[1, 2, 3], keepdims=0)],
            [value("x", [1, 3, 8])], [value("y", [1])],
            [weights("token", 1, 1, 8), weights("w", 4, 4), f.ints("apart", [4], [1, 4, 2, 4]),
             f.ints("flat", [3], [2, 4, 4]), f.ints("four", [4], [1, 2, 4, 4]), f.ints("zero", [1], [0]),
             f.ints("one", [1], [1])])
        r = self.rebatch(f.model(graph, opset=13)).json()
        self.assertEqual([m["path"].split()[0] for m in r["mended"]],
                         ["join", "apart", "heads", "four", "slice"])
        self.assertTrue(r["proof"]["agrees"])

    def test_bodies_of_if_and_loop(self):
        """Constants in the bodies and around them; what bodies declare of the old batch goes."""
        for text, names in (("""<ir_version: 8, opset_import: ["": 13]>
g (float[1,2,2] x, bool c) => (float[1,4] y) <int64[2] shape = {1, 4}> {
    [choose] y = If (c) <
        then_branch: graph = a () => (float[1,4] ya) { [flat] ya = Reshape(x, shape) },
        else_branch: graph = b () => (float[1,4] yb) <int64[2] own = {1, 4}> {
            n = Neg(x)
            [flat2] yb = Reshape(n, own) }> }
""", ["choose > flat", "choose > flat2"]), ("""<ir_version: 8, opset_import: ["": 13]>
g (float[1,4] x, int64 m) => (float[1,4] y) <bool t = {1}> {
    [rounds] y = Loop (m, t, x) <body: graph = body (int64 i, bool c, float[1,4] h) => (bool d, float[1,4] o)
        <int64[3] three = {1, 2, 2}, int64[2] two = {1, 4}, float[1,2,2] add = {1, 2, 3, 4}> {
            d = Identity(c)
            [apart] r = Reshape(h, three)
            more = Add(r, add)
            [inner] f = If (c) <
                then_branch: graph = p () => (float[1,4] q) { [flat] q = Reshape(more, two) },
                else_branch: graph = v () => (float[1,4] w) { [flat2] w = Reshape(more, two) }>
            o = Relu(f) }> }
""", ["rounds > apart", "rounds > inner > flat", "rounds > inner > flat2"])):
            path = self.path("b.txt")
            with open(path, "w") as out:
                out.write(text)
            self.nori("build", path, "-o", self.path("b.onnx"), "--quiet")
            with open(self.path("b.onnx"), "rb") as model:
                r = self.rebatch(model.read(), "--input", "x:0").json()
            self.assertEqual([m["path"].split(" (")[0] for m in r["mended"]], names)
            self.assertTrue(r["proof"]["agrees"] and r["proof"]["ran"])

    def test_first_states_of_a_recurrent_net(self):
        graph = f.Graph([f.node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
                         f.node("GRU", ["t", "w", "r", "", "", "h"], ["y", "last"], name="gru",
                                hidden_size=3),
                         f.node("Squeeze", ["last", "axis"], ["z"], name="squeeze")],
                        [value("x", [1, 4, 2])], [value("z", [1, 3])],
                        [weights("w", 1, 9, 2), weights("r", 1, 9, 3), weights("h", 1, 1, 3),
                         f.ints("axis", [1], [0])])
        r = self.rebatch(f.model(graph, opset=13)).json()
        self.assertEqual([m["path"] for m in r["mended"]], ["gru (GRU)"])
        self.assertTrue(r["proof"]["agrees"])

    def test_older_forms(self):
        graph = f.Graph([f.node("Reshape", ["x"], ["r"], name="old", shape=[1, 8]),
                         f.node("Slice", ["r"], ["y"], name="cut", axes=[0, 1], starts=[0, 2], ends=[1, 6])],
                        [value("x", [1, 2, 4])], [value("y", [1, 4])])
        r = self.rebatch(f.model(graph, opset=4)).json()
        self.assertEqual(len(r["mended"]), 2)
        self.assertTrue(r["proof"]["agrees"])

    def test_what_cannot_be(self):
        graph = lambda *nodes, y=[2], consts=(): f.model(f.Graph(
            list(nodes), [value("x", [1, 2])], [value("y", y)], list(consts)), opset=13)
        squeeze = graph(f.node("Squeeze", ["x", "a"], ["y"], name="away"), consts=[f.ints("a", [1], [0])])
        self.assertIn("away (Squeeze)", self.rebatch(squeeze, code=4).err)
        mixed = graph(f.node("Softmax", ["x"], ["y"], name="soft", axis=0), y=[1, 2])
        self.assertIn("mixes the items", self.rebatch(mixed, code=4).err)
        summed = graph(f.node("ReduceSum", ["x", "a"], ["y"], name="sum", keepdims=0),
                       consts=[f.ints("a", [1], [0])])
        self.assertIn("sum (ReduceSum)", self.rebatch(summed, code=4).err)
        self.assertFalse(os.path.exists(self.path("made.onnx")))


class Shapes(case.Case):
    def shapes(self, model, *args, **more):
        made = self.path("made.onnx")
        done = self.nori("shapes", model, "--output", made, "--json", *args, **more)
        if done.code == 0:
            self.nori("check", made)
            return [v["type"] for v in done.json()["values"]]
        return done.err

    def test_fix_and_free(self):
        self.assertEqual(self.shapes(DIGITS, "--fix-dim", "batch=2"),
                         ["float32[2,1,28,28]", "float32[2,10]"])
        self.assertEqual(self.shapes(DIGITS, "--fix", "image:0=3"),
                         ["float32[3,1,28,28]", "float32[3,10]"])
        self.nori("validate", DIGITS, "--against", self.path("made.onnx"), "--dim", "batch=3", code=None)
        os.rename(self.path("made.onnx"), self.path("fixed.onnx"))
        self.assertEqual(self.shapes(self.path("fixed.onnx"), "--free", "image:0=n"),
                         ["float32[n,1,28,28]", "float32[n,10]"])
        self.nori("run", self.path("made.onnx"), "--seed", "1", "--dim", "n=5")

    def test_infer(self):
        self.shapes(DIGITS, "--infer")
        with open(self.path("made.onnx"), "rb") as made, open(DIGITS, "rb") as old:
            made, old = made.read(), old.read()
        self.assertGreater(made.count(b"/Flatten_output_0"), old.count(b"/Flatten_output_0"))

    def test_refusals(self):
        for args, word in ((("--fix-dim", "nobody=1"), "no input has a dimension"),
                           (("--fix", "nobody:0=1"), "no input"), (("--fix", "image:9=1"), "no axis 9"),
                           (("--fix", "image=1"), "was expected"), (("--free", "image"), "was expected"),
                           (("--fix-dim", "batch=-1"), "was expected"),
                           (("--fix", "image:0=99999999999999999999"), "was expected"), ((), "nothing to change")):
            self.assertIn(word, self.shapes(DIGITS, *args, code=2))
        self.shapes(DIGITS, "--fix", "image:1=3", code=3)


if __name__ == "__main__":
    case.main()
