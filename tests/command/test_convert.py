#!/usr/bin/env python3
"""nori opset and nori convert: what is said, what is written, what is refused."""
import os

import case
import model_file as f

DIGITS = os.path.join(case.DIGITS, "digits.onnx")


class Convert(case.Case):
    def one(self, name, *what, **more):
        return self.file(name, f.one_node(*what, **more))

    def convert(self, model, *args, **more):
        return self.nori("convert", model, "--output", self.path("made.onnx"), *args, **more)

    def same(self, model):
        """What was made is valid and gives what the model gives."""
        self.nori("check", self.path("made.onnx"))
        self.nori("validate", model, "--against", self.path("made.onnx"))

    def test_opset_says_who_needs_it(self):
        r = self.nori("opset", DIGITS, "--json").json()
        self.assertEqual((r["opset"], r["lowest"], r["lowest_ir"]), (16, 7, 4))
        self.assertEqual([b["op"] for b in r["needed_by"]], ["Gemm"])
        rows = {row["name"]: row for row in r["runtimes"]}
        old, new = rows["ONNX Runtime 1.10"], rows["ONNX Runtime 1.12"]
        self.assertTrue(old["refuses"] and old["lowest_loads"])
        self.assertIn("operator set 16, it takes 7 to 15", old["reason"])
        self.assertFalse(new["refuses"])
        text = self.nori("opset", DIGITS).out
        self.assertIn("--lowest --output", text)
        self.assertIn("/head/Gemm (Gemm)", text)

    def test_operators_are_refused_by_name(self):
        model = self.text("bits", 20, "(int32[2] x) => (int32[2] y)", "y = BitwiseNot(x)")
        r = self.nori("opset", model, "--json").json()
        self.assertEqual(r["lowest"], 18)
        self.assertIn("came with operator set 18", r["needed_by"][0]["reason"])
        rows = {row["name"]: row for row in r["runtimes"]}
        self.assertIn("operator BitwiseNot", rows["ONNX Runtime 1.12"]["reason"])
        self.assertFalse(rows["ONNX Runtime 1.12"]["lowest_loads"])

    def text(self, name, opset, ends, body):
        path = self.path(name + ".txt")
        with open(path, "w") as out:
            out.write('<ir_version: 9, opset_import: ["": %d]>\ng %s { %s }\n' % (opset, ends, body))
        self.nori("build", path, "-o", self.path(name + ".onnx"), "--quiet")
        return self.path(name + ".onnx")

    def test_operators_that_came_later_become_others(self):
        ends = ("(float[b,3,4] x) => (float[b,3,4] y) <float[4] s = {1, 2, 3, 4}, float[4] t = {0, 1, 0, 1},"
                " float[3,4] r = {1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8}>")
        for opset, lowest, body in (
                (20, 9, "y = Gelu(x)"), (20, 7, 'y = Gelu <approximate: string = "tanh"> (x)'),
                (22, 7, "y = HardSwish(x)"), (18, 7, "y = Mish(x)"), (13, 7, "y = Celu <alpha = 2.0> (x)"),
                (24, 7, "y = Swish <alpha = 1.5> (x)"), (19, 6, "i = Cast <to = 6> (x) y = CastLike(i, x)"),
                (16, 11, "b = GreaterOrEqual(x, s) y = Cast <to = 1> (b)"),
                (16, 11, "b = LessOrEqual(x, s) y = Cast <to = 1> (b)"),
                (17, 7, "y = LayerNormalization(x, s, t)"),
                (17, 7, "y = LayerNormalization <axis = 1, epsilon = 0.1> (x, r)"),
                (17, 7, "a, m, d = LayerNormalization(x, s, t) q = Add(m, d) y = Add(a, q)"),
                (17, 7, "h = Cast <to = 10> (x) s2 = Cast <to = 10> (s) u = LayerNormalization(h, s2) "
                        "y = Cast <to = 1> (u)"),
                (23, 7, "y = RMSNormalization(x, s)")):
            model = self.text("came", opset, ends, body)
            self.convert(model, "--opset", str(max(lowest, 7)))
            self.nori("validate", self.path("made.onnx"), "--against", model, "--shape", "x=2,3,4",
                      "--atol", "2e-3" if "10>" in body.replace(" ", "") else "1e-5")
            self.assertNotIn("com.", self.nori("inspect", self.path("made.onnx"), "--text").out)

    def test_what_only_runtimes_know_is_no_form_to_write(self):
        """ONNX Runtime has a LayerNormalization below 17. A file that has it keeps it; none gets it."""
        norm = "y = LayerNormalization(x, s)"
        ends = "(float[2,4] x) => (float[2,4] y) <float[4] s = {1, 2, 3, 4}>"
        self.convert(self.text("new", 17, ends, norm), "--lowest")
        self.assertNotIn("LayerNormalization", self.nori("inspect", self.path("made.onnx"), "--text").out)
        model = self.text("old", 11, ends, norm)
        found = self.nori("check", model, "--json").json()["findings"]
        self.assertIn("no operator of ONNX at this operator set", found[0]["message"])
        self.convert(model, "--opset", "9")
        self.assertIn("LayerNormalization", self.nori("inspect", self.path("made.onnx"), "--text").out)
        self.same(model)
        rows = {r["name"]: r for r in self.nori("opset", model, "--json").json()["runtimes"]}
        self.assertTrue(rows["Windows ML, Windows 11"]["refuses"])
        self.assertNotIn("operator Layer", rows["ONNX Runtime 1.10"]["reason"])
        self.convert(model, "--opset", "26")
        self.same(model)
        ends = "(float[1,3,2,2] x) => (float[1,3,2,2] y)"
        model = self.text("image", 7, ends, "y = ImageScaler <scale = 2.0, bias = [1.0, 2.0, 3.0]> (x)")
        self.convert(model, "--opset", "9")
        self.same(model)
        self.assertIn("was experimental", self.convert(model, "--opset", "26", code=4).err)

    def test_up_and_down(self):
        for args in (("--lowest",), ("--opset", "9"), ("--opset", "26"), ("--opset", "28")):
            r = self.convert(DIGITS, *args, "--json").json()
            self.assertNotEqual(r["opset_after"], 16)
            self.same(DIGITS)
        self.convert(self.path("made.onnx"), "--opset", "16", "--quiet")
        self.same(DIGITS)

    def test_inputs_become_attributes(self):
        axes = f.ints("a", [1], [-1])
        for op, y, opset, to in (("Squeeze", [2], 13, 9), ("Unsqueeze", [2, 1, 1], 21, 7),
                                 ("ReduceMean", [2, 1], 18, 7), ("ReduceSum", [2, 1], 13, 1)):
            model = self.one("x.onnx", op, [2, 1], y, initializers=[axes], extra_inputs=["a"],
                             opset=opset)
            self.convert(model, "--opset", str(to))
            self.same(model)

    def test_other_forms(self):
        floats = lambda name, v: f.floats(name, [], [v])
        bounds = [floats("lo", -0.5), floats("hi", 0.5)]
        pads = [f.ints("p", [2], [1, 2]), f.floats("v", [], [7]), f.ints("ax", [1], [1])]
        slices = [f.ints("s", [1], [1]), f.ints("e", [1], [3]), f.ints("ax", [1], [-1])]
        for op, y, consts, names, attrs, opset, to in (
                ("Clip", [2, 4], bounds, ["lo", "hi"], {}, 13, 6),
                ("Clip", [2, 4], bounds[1:], ["", "hi"], {}, 13, 6),
                ("Pad", [2, 7], pads, ["p", "v", "ax"], {}, 18, 2),
                ("Slice", [2, 2], slices, ["s", "e", "ax"], {}, 13, 1),
                ("Softmax", [2, 4], [], [], {"axis": 0}, 13, 11),
                ("Softmax", [2, 4], [], [], {}, 13, 1),
                ("Reshape", [4, 2], [f.ints("n", [2], [4, 2])], ["n"], {}, 14, 1)):
            model = self.one("x.onnx", op, [2, 4], y, initializers=consts, extra_inputs=names,
                             opset=opset, **attrs)
            self.convert(model, "--opset", str(to))
            self.same(model)

    def test_an_axis_counted_in_the_output(self):
        graph = f.Graph([f.node("OneHot", ["x", "depth", "values"], ["y"], axis=-1)],
                        [f.value("x", f.tensor_type(f.INT64, [2, 3]))],
                        [f.value("y", f.tensor_type(f.FLOAT, [2, 3, 4]))],
                        [f.ints("depth", [1], [4]), f.floats("values", [2], [0, 1])])
        model = self.file("o.onnx", f.model(graph, opset=13))
        self.convert(model, "--opset", "9")
        self.same(model)

    def test_a_sequence_is_a_type_too(self):
        kind = f.sequence_type(f.tensor_type(f.FLOAT, [2]))
        graph = f.Graph([f.node("Identity", ["x"], ["y"], name="n")], [f.value("x", kind)],
                        [f.value("y", kind)])
        model = self.file("i.onnx", f.model(graph, opset=16))
        self.assertIn("a sequence", self.convert(model, "--opset", "13", code=4).err)
        self.assertEqual(self.convert(model, "--lowest", "--json").json()["opset_after"], 14)

    def test_an_old_softmax_over_many_axes_goes_up(self):
        for op in "Softmax", "LogSoftmax", "Hardmax":
            for axis, dims in ((1, "2,3,4"), (0, "2,3"), (2, "2,1,3,2"), (1, "2,3,1,1")):
                for shape in dims, "b" + dims[1:], "":
                    end = "float[%s]" % shape
                    body = "s = Abs(x) t = %s <axis: int = %d> (s) y = Neg(t)" % (op, axis)
                    model = self.text("m", 11, "(%s x) => (%s y)" % (end, end), body)
                    self.convert(model, "--opset", "26")
                    self.nori("check", self.path("made.onnx"))
                    self.nori("validate", model, "--against", self.path("made.onnx"), "--shape",
                              "x=" + dims)

    def test_an_old_softmax_goes_up(self):
        model = self.one("s.onnx", "Softmax", [2, 4], [2, 4], opset=9)
        self.convert(model, "--opset", "26")
        self.same(model)
        wide = self.one("w.onnx", "Softmax", [2, 3, 4], [2, 3, 4], opset=9)
        self.convert(wide, "--opset", "26")
        self.same(wide)

    def test_attributes_an_old_version_requires(self):
        model = self.one("r.onnx", "Relu", [2], [2], opset=6)
        self.convert(model, "--opset", "1")
        self.nori("check", self.path("made.onnx"))
        scale = [f.floats(n, [3], [1, 1, 1]) for n in "abcd"]
        model = self.one("b.onnx", "BatchNormalization", [1, 3, 2], [1, 3, 2], initializers=scale,
                         extra_inputs=list("abcd"), opset=6, is_test=1)
        self.assertIn("consumed_inputs", self.convert(model, "--opset", "1", code=4).err)

    def test_split_lists_unequal_parts(self):
        graph = f.Graph([f.node("Split", ["x"], ["y", "z"], num_outputs=2)],
                        [f.value("x", f.tensor_type(f.FLOAT, [5]))],
                        [f.value("y", f.tensor_type(f.FLOAT, [3])),
                         f.value("z", f.tensor_type(f.FLOAT, [2]))])
        model = self.file("s.onnx", f.model(graph, opset=18))
        self.convert(model, "--opset", "2")
        self.same(model)

    def test_parts_that_nobody_takes(self):
        model = self.text("p", 18, "(float[4] x) => (float[a] y)", "y = Split <num_outputs = 2> (x)")
        self.assertIn("1 outputs of 2 parts", self.convert(model, "--opset", "13", code=4).err)

    def test_outputs_that_an_old_version_must_have(self):
        model = self.text("g", 14, "(float[1,1,2] x) => (float[a,b,c,d] y) "
                          "<float[1,6,2] w = {1,2,3,4,5,6,7,8,9,10,11,12}, "
                          "float[1,6,2] r = {1,2,3,4,5,6,7,8,9,10,11,12}>",
                          "y = GRU <hidden_size = 2> (x, w, r)")
        self.assertIn("at least 2", self.convert(model, "--opset", "1", code=4).err)
        self.convert(model, "--lowest")
        self.same(model)

    def test_a_scale_of_another_type(self):
        model = self.text("q", 23, "(float[4] x) => (uint8[4] y) <bfloat16 s = {0.5}, uint8 z = {0}>",
                          "y = QuantizeLinear (x, s, z)")
        self.assertIn("of one type", self.convert(model, "--opset", "21", code=4).err)

    def test_all_that_stands_in_the_way_at_once(self):
        graph = f.Graph([f.node("Trilu", ["x"], ["a"], name="first"),
                         f.node("Squeeze", ["a", "axes"], ["b"], name="second"),
                         f.node("Bernoulli", ["b"], ["y"], name="third")],
                        [f.value("x", f.tensor_type(f.FLOAT, [2, 1])),
                         f.value("axes", f.tensor_type(f.INT64, [1]))],
                        [f.value("y", f.tensor_type(f.FLOAT, None))])
        model = self.file("g.onnx", f.model(graph, opset=20))
        r = self.convert(model, "--opset", "11", code=4)
        for name, why in (("first", "set 14"), ("second", "computed in each run"), ("third", "set 15")):
            self.assertRegex(r.err, "%s.*%s" % (name, why))
        self.assertIn("3 nodes", r.err)
        self.assertFalse(os.path.exists(self.path("made.onnx")))
        j = self.convert(model, "--opset", "11", "--json", code=4).json()
        self.assertEqual([b["op"] for b in j["blockers"]], ["Trilu", "Squeeze", "Bernoulli"])

    def test_nearest_of_operator_set_10_rounds_by_its_scales(self):
        for scales, word in (("1, 1, 2, 3", "floor"), ("1, 1, 0.5, 0.5", "ceil")):
            model = self.text("r", 10, "(float[1,1,4,6] x) => (float[a,b,c,d] y) <float[4] s = {%s}>" % scales,
                              'y = Resize <mode = "nearest"> (x, s)')
            self.convert(model, "--opset", "21")
            self.same(model)
            self.assertIn('"%s"' % word, self.nori("inspect", self.path("made.onnx"), "--text").out)
            self.convert(self.path("made.onnx"), "--opset", "10")
            self.same(model)
        mixed = self.text("m", 10, "(float[1,1,4,6] x) => (float[a,b,c,d] y) <float[4] s = {1, 1, 2, 0.5}>",
                          'y = Resize <mode = "nearest"> (x, s)')
        self.assertIn("no word for that", self.convert(mixed, "--opset", "21", code=4).err)
        smooth = self.text("l", 10, "(float[1,1,4,6] x) => (float[a,b,c,d] y) <float[4] s = {1, 1, 2, 0.5}>",
                           'y = Resize <mode = "linear"> (x, s)')
        self.convert(smooth, "--opset", "21")
        self.same(smooth)

    def test_what_is_not_changed_is_kept(self):
        graph = f.Graph([f.node("Relu", ["x"], ["y"], name="n")],
                        [f.value("x", f.tensor_type(f.FLOAT, ["batch", 3]))],
                        [f.value("y", f.tensor_type(f.FLOAT, ["batch", 3]))],
                        [f.floats("unread", [1], [5])])
        graph.data += f.put(10, "words about the graph") + f.put(13, f.value(
            "y", f.tensor_type(f.FLOAT, ["batch", 3])))
        data = f.model(graph, opset=13, ir=8, metadata=[("key", "word")]) + f.put(1000, "unknown")
        model = self.file("k.onnx", data)
        self.convert(model, "--opset", "6", "--ir", "8")
        with open(self.path("made.onnx"), "rb") as made:
            written = made.read()
        for text in (b"words about the graph", b"unread", b"key", b"word", b"unknown", b"batch"):
            self.assertEqual(written.count(text), data.count(text), text)
        self.convert(self.path("made.onnx"), "--opset", "13", "--ir", "8")
        with open(self.path("made.onnx"), "rb") as made:
            self.assertEqual(sorted(made.read()), sorted(data))

    def test_refusals(self):
        for args, word in ((("--opset", "9", "--lowest"), "not both"), ((), "nothing to change"),
                           (("--opset", "0"), "--opset"), (("--opset", "99"), "99"),
                           (("--ir", "2"), "IR version 2"), (("--ir", "99"), "IR version 99")):
            self.assertIn(word, self.convert(DIGITS, *args, code=2).err)
        self.nori("convert", DIGITS, "--opset", "9", code=2)
        self.nori("opset", code=2)


if __name__ == "__main__":
    case.main()
