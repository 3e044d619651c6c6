#!/usr/bin/env python3
"""nori inspect: what a run would take (MACs worked out by hand), nodes, drawings, warnings."""
import os

import case
import model_file as m


class Inspect(case.Case):
    def run_of(self, data, *args):
        return self.nori("inspect", self.file("m.onnx", data), "--json", *args).json()

    def macs(self, data, *args):
        got = self.run_of(data, *args)
        self.assertEqual(got["run"]["unknown_nodes"], 0)
        return got["run"]["macs"]

    def test_macs_of_convolutions(self):
        w = m.floats("w", [8, 3, 3, 5], [0.0] * 360)
        conv = m.one_node("Conv", ["n", 3, 10, 12], ["n", 8, 8, 8], initializers=[w],
                          extra_inputs=["w"])
        self.assertEqual(self.macs(conv), 8 * 8 * 8 * 3 * 3 * 5)
        self.assertEqual(self.macs(conv, "--dim", "n=4"), 4 * 8 * 8 * 8 * 3 * 3 * 5)
        w = m.floats("w", [6, 1, 3, 3], [0.0] * 54)
        depthwise = m.one_node("Conv", [1, 6, 5, 5], [1, 6, 3, 3], initializers=[w],
                               extra_inputs=["w"], group=6)
        self.assertEqual(self.macs(depthwise), 6 * 3 * 3 * 9)
        w = m.floats("w", [4, 2, 3, 3], [0.0] * 72)
        spread = m.one_node("ConvTranspose", [1, 4, 5, 5], [1, 2, 7, 7], initializers=[w],
                            extra_inputs=["w"])
        self.assertEqual(self.macs(spread), 5 * 5 * 4 * 2 * 9)

    def test_macs_of_products(self):
        w = m.floats("w", [7, 5], [0.0] * 35)
        self.assertEqual(self.macs(m.one_node("MatMul", [2, 3, 7], [2, 3, 5], initializers=[w],
                                              extra_inputs=["w"])), 2 * 3 * 7 * 5)
        self.assertEqual(self.macs(m.one_node("Gemm", [7, 3], [3, 5], initializers=[w],
                                              extra_inputs=["w"], transA=1)), 3 * 7 * 5)
        self.assertEqual(self.macs(m.one_node("Einsum", [3, 7], [5, 3], initializers=[w],
                                              extra_inputs=["w"], equation="ij,jk->ki")), 3 * 7 * 5)
        self.assertEqual(self.macs(m.one_node("Relu", [3, 7], [3, 7])), 0)

    def test_macs_of_recurrent_layers(self):
        # 2 directions, 4 gates of 6, inputs of 5; 9 steps of 3 items.
        w = m.floats("w", [2, 24, 5], [0.0] * 240)
        r = m.floats("r", [2, 24, 6], [0.0] * 288)
        data = m.one_node("LSTM", [9, 3, 5], [9, 2, 3, 6], initializers=[w, r],
                          extra_inputs=["w", "r"], hidden_size=6, direction="bidirectional")
        self.assertEqual(self.macs(data), 9 * 3 * (240 + 288))

    def test_macs_of_attention(self):
        def value(name, dims):
            return m.value(name, m.tensor_type(m.FLOAT, dims))
        # 2 items, 3 heads of 4 for queries and 5 for values, 6 queries, 7 keys.
        standard = m.model(m.Graph(
            [m.node("Attention", ["q", "k", "v"], ["y"])],
            [value("q", [2, 3, 6, 4]), value("k", [2, 3, 7, 4]), value("v", [2, 3, 7, 5])],
            [value("y", None)]), opset=23)
        self.assertEqual(self.macs(standard), 2 * 3 * 6 * 7 * (4 + 5))
        # com.microsoft: 8 wide, projected to 3 x 8 first; 5 positions.
        w = m.floats("w", [8, 24], [0.0] * 192)
        b = m.floats("b", [24], [0.0] * 24)
        older = m.model(m.Graph(
            [m.node("Attention", ["x", "w", "b"], ["y"], domain="com.microsoft", num_heads=2)],
            [value("x", [2, 5, 8])], [value("y", None)], [w, b]), opsets=[("com.microsoft", 1)])
        self.assertEqual(self.macs(older), 2 * 5 * 192 + 2 * 5 * 5 * (8 + 8))

    def test_subgraphs_are_counted_for_one_pass(self):
        w = m.floats("w", [4, 4], [0.0] * 16)
        body = m.Graph([m.node("MatMul", ["s", "w"], ["t"], name="product"),
                        m.node("Identity", ["c"], ["d"])],
                       [m.value("i", m.tensor_type(m.INT64, [])),
                        m.value("c", m.tensor_type(m.BOOL, [])),
                        m.value("s", m.tensor_type(m.FLOAT, [2, 4]))],
                       [m.value("d", m.tensor_type(m.BOOL, [])),
                        m.value("t", m.tensor_type(m.FLOAT, [2, 4]))])
        data = m.model(m.Graph([m.node("Loop", ["n", "", "x"], ["y"], name="loop", body=body)],
                               [m.value("x", m.tensor_type(m.FLOAT, [2, 4])),
                                m.value("n", m.tensor_type(m.INT64, []))],
                               [m.value("y", m.tensor_type(m.FLOAT, [2, 4]))], [w]))
        got = self.run_of(data)
        self.assertEqual(got["run"]["macs"], 0)
        self.assertEqual(got["run"]["subgraph_macs"], 2 * 4 * 4)
        self.assertEqual(got["subgraphs"], 1)
        text = self.nori("inspect", self.path("m.onnx"), "--node", "loop > product").out
        self.assertIn("32 MACs", text)

    def test_memory_is_that_of_the_plan(self):
        # Two results live at once, in place after that: 2 x 4000 bytes, and none for the output.
        data = m.model(m.Graph([m.node("Exp", ["x"], ["a"]), m.node("Cos", ["x"], ["b"]),
                                m.node("Mul", ["a", "b"], ["c"]), m.node("Sin", ["c"], ["y"])],
                               [m.value("x", m.tensor_type(m.FLOAT, ["n"]))],
                               [m.value("y", m.tensor_type(m.FLOAT, ["n"]))]))
        got = self.run_of(data, "--dim", "n=1000", "--provider", "reference")["run"]
        self.assertEqual((got["input_bytes"], got["output_bytes"]), (4000, 4000))
        self.assertEqual(got["activation_bytes"], 2 * 4032)
        bench = self.nori("bench", self.path("m.onnx"), "--dim", "n=1000", "--runs", "1",
                          "--provider", "reference", "--json").json()
        self.assertEqual(bench["activation_bytes"], got["activation_bytes"])

    def test_resize_modes_are_said(self):
        def resize(op, opset, **attrs):
            scales = m.floats("s", [4], [1, 1, 2, 2])
            return m.one_node(op, [1, 1, 4, 4], [1, 1, 8, 8], initializers=[scales],
                              extra_inputs=(["", "s"] if opset > 10 else ["s"]), opset=opset,
                              **attrs)
        for data, text in (
                (resize("Resize", 17, mode="linear"), "mode linear, coordinates half_pixel"),
                (resize("Resize", 17), "mode nearest, coordinates half_pixel, "
                                       "nearest round_prefer_floor"),
                (resize("Resize", 17, mode="cubic", cubic_coeff_a=-0.5,
                        coordinate_transformation_mode="align_corners"),
                 "mode cubic, coordinates align_corners, cubic coefficient -0.5"),
                (resize("Resize", 10), "coordinates asymmetric, nearest floor"),
                (resize("Upsample", 9), "Upsample: mode nearest, coordinates asymmetric")):
            got = self.run_of(data)
            self.assertEqual(len(got["resizes"]), 1)
            self.assertIn(text, got["resizes"][0]["how"])
            self.assertIn(text, self.nori("inspect", self.path("m.onnx")).out)

    def test_axis_that_only_an_output_has(self):
        path = self.file("m.onnx", m.one_node("Relu", [2, 4], ["batch", 4]))
        r = self.nori("inspect", path)
        self.assertIn('output y is declared float32[batch,4], but computes float32[2,4]: '
                      'no input has an axis "batch"', r.err)
        self.assertEqual(len(self.nori("inspect", path, "--json").json()["warnings"]), 1)
        good = self.file("good.onnx", m.one_node("Relu", ["batch", 4], ["batch", 4]))
        self.assertEqual(self.nori("inspect", good, "--dim", "batch=3").err, "")

    def test_trees_without_flags_for_missing_values(self):
        for flags, said in (([0, 0, 0], 1), ([1, 0, 0], 0)):
            node = m.node("TreeEnsembleRegressor", ["x"], ["y"], name="trees", domain="ai.onnx.ml",
                          nodes_missing_value_tracks_true=flags)
            path = self.file("t.onnx", m.model(m.Graph(
                [node], [m.value("x", m.tensor_type(m.FLOAT, [1, 2]))],
                [m.value("y", m.tensor_type(m.FLOAT, [1, 1]))]), opsets=[("ai.onnx.ml", 3)]))
            self.assertEqual(self.nori("inspect", path).err.count("takes the false branch"), said)

    def test_weights_by_type_and_what_is_in_the_file(self):
        graph = m.Graph([m.node("Add", ["x", "a"], ["y"])],
                        [m.value("x", m.tensor_type(m.FLOAT, [3]))],
                        [m.value("y", m.tensor_type(m.FLOAT, [3]))],
                        [m.floats("a", [3], [1, 2, 3]), m.ints("i", [2], [1, 2])])
        got = self.run_of(m.model(graph, opsets=[("ai.onnx.ml", 3)], metadata=[("k", "v")]))
        self.assertEqual(got["initializers"], {
            "count": 2, "elements": 5, "bytes": 28, "bytes_float16": 22, "bytes_int8": 19,
            "elements_by_type": {"float32": 3, "int64": 2}})
        self.assertEqual(got["opsets"], {"ai.onnx": 17, "ai.onnx.ml": 3})
        self.assertEqual(got["metadata"], {"k": "v"})
        self.assertEqual((got["ir_version"], got["producer"]), (8, "hand"))

    def test_nodes_by_name_output_and_path(self):
        model = os.path.join(case.DIGITS, "digits.onnx")
        by_name = self.nori("inspect", model, "--node", "/head/Gemm").out
        self.assertEqual(by_name, self.nori("inspect", model, "--node", "logits").out)
        self.assertEqual(by_name, self.nori("inspect", model, "--node", "/head/Gemm (Gemm)").out)
        for text in ("attribute transB = 1", "float32[1,576]", "5760 MACs", "initializer"):
            self.assertIn(text, by_name)
        got = self.nori("inspect", model, "--node", "logits", "--json", "--dim", "batch=2").json()
        self.assertEqual((got[0]["op"], got[0]["macs"]), ("Gemm", 2 * 576 * 10))
        r = self.nori("inspect", model, "--node", "nowhere", code=1)
        self.assertIn("nowhere", r.err)
        self.assertEqual(len(self.nori("inspect", model, "--nodes").out.splitlines()), 19)
        dot = self.nori("inspect", model, "--graph", "dot").out
        self.assertTrue(dot.startswith("digraph"))
        self.assertEqual(dot.count("->"), 18 + 1 + 1)
        self.assertEqual(dot, self.nori("inspect", model, "--graph", "dot").out)  # each time
        self.assertNotIn(" \n", self.nori("inspect", model, "--nodes").out)
        self.nori("inspect", model, "--graph", "svg", code=2)
        self.nori("inspect", model, "--graph", "dot", "--json", code=2)

    def test_a_model_that_cannot_be_planned_is_still_shown(self):
        path = self.file("m.onnx", m.one_node("Nonesuch", [1], [1]))
        self.assertIn("cannot be planned", self.nori("inspect", path).out)
        self.nori("inspect", path, "--json")
        self.assertIn("no dimension is named",
                      self.nori("inspect", os.path.join(case.DIGITS, "digits.onnx"), "--dim",
                                "btch=1", code=2).err)
        self.assertIn("there is no provider", self.nori(
            "inspect", os.path.join(case.DIGITS, "digits.onnx"), "--provider", "gpu", code=4).err)


if __name__ == "__main__":
    case.main()
