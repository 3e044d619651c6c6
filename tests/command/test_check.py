#!/usr/bin/env python3
"""nori check and nori caps: what a target cannot run, all at once; nothing is claimed that is not
there."""
import os

import case
import model_file as m

SHARED = os.path.join(os.path.dirname(case.SOURCE), "shared", "models", "negative")


class Check(case.Case):
    def nested(self, ops):
        body = m.Graph([m.node("Identity", ["c"], ["d"])]
                       + [m.node(op, ["s"], ["t%d" % i], name="inner_" + op)
                          for i, op in enumerate(ops)]
                       + [m.node("Sum", ["t%d" % i for i in range(len(ops))], ["t"])],
                       [m.value("i", m.tensor_type(m.INT64, [])),
                        m.value("c", m.tensor_type(m.BOOL, [])),
                        m.value("s", m.tensor_type(m.FLOAT, [2, 4]))],
                       [m.value("d", m.tensor_type(m.BOOL, [])),
                        m.value("t", m.tensor_type(m.FLOAT, [2, 4]))])
        return self.file("nested.onnx", m.model(m.Graph(
            [m.node("Loop", ["n", "", "x"], ["y"], name="outer", body=body)],
            [m.value("x", m.tensor_type(m.FLOAT, [2, 4])),
             m.value("n", m.tensor_type(m.INT64, []))],
            [m.value("y", m.tensor_type(m.FLOAT, [2, 4]))])))

    def test_three_operators_nested_in_a_loop(self):
        path = self.nested(["FirstOdd", "SecondOdd", "ThirdOdd"])
        for target in ("cpu", "reference", "reference,cpu"):
            got = self.nori("check", path, "--target", target, "--json", code=1).json()
            found = [f for f in got["findings"] if f["rule"] == "target"]
            each = len(target.split(","))
            self.assertEqual(len(found), 3 * each)
            for f, op in zip(found, ["FirstOdd", "SecondOdd", "ThirdOdd"]):
                self.assertIn(op, f["message"])
                self.assertEqual(f["path"], "outer > inner_%s (%s)" % (op, op))
        text = self.nori("check", path, "--target", "cpu", code=1).out
        self.assertEqual(text.count("outer > inner_"), 6)  # as no operators at all, and for cpu
        self.nori("check", path, "--target", "toaster", code=2)
        said = self.nori("run", path, code=4).err
        for op in ("FirstOdd", "SecondOdd", "ThirdOdd"):
            self.assertIn("outer > inner_" + op, said)

    def test_what_falls_back_is_said(self):
        slow = [r["op"] for r in self.nori("caps", "--json").json()
                if r["op"] in ("Cosh", "Atan", "Celu", "Selu") and not r["providers"]["cpu"]][0]
        path = self.nested(["Abs", slow])
        got = self.nori("check", path, "--target", "cpu", "--json").json()
        found = [f["message"] for f in got["findings"] if f["rule"] == "target"]
        self.assertEqual(found, [f for f in found if "Abs" not in f])
        self.assertTrue(any(slow + " runs on the reference kernel" in f for f in found), found)
        got = self.nori("check", path, "--json").json()
        self.assertEqual([f for f in got["findings"] if f["rule"] == "target"], [])

    def test_exit_codes(self):
        self.nori("check", os.path.join(case.DIGITS, "digits.onnx"), "--target", "cpu")
        self.nori("check", self.path("absent.onnx"), code=3)
        self.nori("check", self.file("junk.onnx", b"\x0a\xff"), code=3)
        self.nori("check", code=2)
        warned = self.file("w.onnx", m.one_node("Relu", [2, 4], ["batch", 4]))
        self.nori("check", warned)
        self.nori("check", warned, "--strict", code=1)


    def test_what_loading_warns_of(self):
        graph = m.Graph([m.node("Relu", ["x"], ["y"])], [m.value("x", m.tensor_type(m.FLOAT, [1]))],
                        [m.value("y", m.tensor_type(m.FLOAT, [1]))])
        path = self.file("new.onnx", m.model(graph, ir=99))
        self.assertEqual(self.nori("run", path).err.count("IR version 99"), 1)
        found = self.nori("check", path, "--json").json()
        self.assertEqual(found["warnings"], 1)
        self.assertIn("IR version 99", found["findings"][0]["message"])


class Caps(case.Case):
    def rows(self, *args):
        return self.nori("caps", "--json", *args).json()

    def test_rows(self):
        rows = self.rows("--op", "Conv")
        self.assertEqual([r["since"] for r in rows], [1, 11, 22])
        for r in rows:
            self.assertEqual(r["providers"]["cpu"], ["float32"])
            self.assertLessEqual(set(r["providers"]["reference"]), set(r["types"]))
        self.assertIn("bfloat16", rows[2]["types"])
        self.assertNotIn("bfloat16", rows[0]["types"])
        self.assertIn("did you mean Conv?", self.nori("caps", "--op", "Cnov", code=1).err)
        for r in self.rows("--provider", "cpu"):
            self.assertTrue(r["providers"]["cpu"])
        for r in self.rows("--missing"):
            self.assertFalse(any(r["providers"].values()))
        self.nori("caps", "--provider", "toaster", code=4)
        all_rows = self.rows()
        self.assertEqual(len(all_rows), len({(r["domain"], r["op"], r["since"]) for r in all_rows}))
        text = self.nori("caps", "--provider", "cpu", "--op", "Conv").out
        self.assertEqual(len(text.strip().split("\n")), 4)

    def test_the_cpu_provider_runs_what_it_claims(self):
        numbers = {"float32": m.FLOAT, "int32": m.INT32, "int8": m.INT8, "uint8": m.UINT8}
        asked = 0
        newest = {r["op"]: r for r in self.rows() if r["domain"] == ""}
        for op, r in newest.items():
            if op not in ("Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Neg", "Sqrt", "Erf",
                          "Softmax", "Transpose", "Ceil", "Sign", "Mish"):
                continue
            for name, number in numbers.items():
                if name not in r["types"]:
                    continue
                path = self.file("m.onnx", m.one_node(op, [2, 4], [2, 4] if op != "Transpose"
                                                      else [4, 2], elem=number, opset=22))
                got = self.nori("bench", path, "--runs", "1", "--profile", "--json").json()
                node = [n for n in got["nodes"] if n["op"] == op][0]
                want = "cpu" if name in r["providers"]["cpu"] else "reference"
                self.assertEqual(node["provider"], want, (op, name))
                asked += 1
        self.assertGreater(asked, 25)


class Negative(case.Case):
    """Foreign models: each is refused with words for what is foreign, or runs."""

    def setUp(self):
        super().setUp()
        if not os.path.isdir(SHARED):
            self.skipTest("no models in " + SHARED)

    def test_every_one(self):
        words = {"deeploy_icct_int": ["RequantShift", "iLayerNorm", "ITAMax", "iGELU"],
                 "ezkl_random_forest": ["MatMul", "int8"],
                 "hls4ml_tiny_unet": ["qonnx.custom_op.general", "Quant"],
                 "microllama_fp32_deeploy": ["RMSNorm", "RMSNormalization"],
                 "nieeeb_mlops_quant": ["mct_quantizers"],
                 "qonnx_tfc_1w1a": ["onnx.brevitas", "BipolarQuant"],
                 "superres_prepost_op18": ["DecodeImage", "EncodeImage"],
                 "waveformer_deeploy": ["PACTOps", "iGELU"]}
        for name in sorted(os.listdir(SHARED)):
            path = os.path.join(SHARED, name, "model.onnx")
            if not os.path.exists(path):
                continue
            with self.subTest(name):
                if name in ("subpixel_sr", "ezkl_nanogpt"):  # read by the rules of their time
                    self.nori("run", path)
                    continue
                r = self.nori("run", path, code=None)
                self.assertIn(r.code, (3, 4), r.out + r.err)
                for word in words.get(name, ["RequantShift"]):
                    self.assertIn(word, r.err)
                self.assertNotEqual(self.nori("check", path, code=None).code, 0)
                self.nori("inspect", path)


if __name__ == "__main__":
    case.main()
