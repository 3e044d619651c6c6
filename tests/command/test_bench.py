#!/usr/bin/env python3
"""nori bench: figures, tables by node and operator, traces that a viewer opens."""
import json
import os

import case
import model_file as m

DIGITS = os.path.join(case.DIGITS, "digits.onnx")


class Bench(case.Case):
    def test_figures(self):
        got = self.nori("bench", DIGITS, "--runs", "7", "--threads", "1", "--json").json()
        self.assertLessEqual(got["min_ms"], got["median_ms"])
        self.assertLessEqual(got["median_ms"], got["p95_ms"])
        self.assertGreater(got["first_ms"], 0)
        phases = got["phases_ms"]
        self.assertEqual(list(phases), ["read", "build", "infer", "optimize", "plan"])
        self.assertTrue(all(v > 0 for v in phases.values()))
        self.assertLessEqual(phases["read"] + phases["build"], got["load_ms"])
        self.assertLessEqual(phases["infer"] + phases["optimize"] + phases["plan"],
                             got["create_ms"])
        self.assertEqual((got["runs"], got["threads"]), (7, 1))
        self.assertEqual(got["macs"], 7344000)
        self.assertGreater(got["peak_bytes"], got["packed_bytes"])
        r = self.nori("bench", DIGITS, "--runs", "3")
        self.assertEqual(r.err, "")  # progress is for terminals
        text = r.out
        for word in ("load", "read", "infer", "optimize", "plan", "create", "first run", "steady", "memory", "CPU", "7.34 M MACs"):
            self.assertIn(word, text)
        self.nori("bench", DIGITS, "--runs", "0", code=2)
        self.nori("bench", DIGITS, "--rounds", "9", code=2)

    def test_profile(self):
        got = self.nori("bench", DIGITS, "--runs", "3", "--profile", "--json").json()
        convs = [n for n in got["nodes"] if "Conv" in n["op"]]
        self.assertEqual(len(convs), 6)
        self.assertEqual(sum(n["macs"] for n in got["nodes"]), 7344000)
        self.assertEqual(sum(n["macs"] for n in got["operators"]), 7344000)
        for n in convs:
            self.assertGreater(n["gflops"], 0)
            self.assertGreater(n["gbytes_per_s"], 0)
            self.assertEqual(n["calls"], 1)
        total = sum(n["us"] for n in got["nodes"])
        self.assertAlmostEqual(total, sum(n["us"] for n in got["operators"]), delta=total / 1000)
        text = self.nori("bench", DIGITS, "--runs", "3", "--profile").out
        self.assertIn("GFLOP/s", text)
        self.assertIn("operator", text)

    def test_rewritten_nodes_count_alike(self):
        # A net whose nodes the cpu provider takes in forms of its own.
        weights = [m.floats("a", [16, 3, 3, 3], [0.1] * 432),
                   m.floats("b", [16, 1, 3, 3], [0.1] * 144),
                   m.floats("c", [16, 8, 2, 2], [0.1] * 512),
                   m.floats("d", [5, 8, 1, 1], [0.1] * 40)]
        nodes = [m.node("Conv", ["x", "a"], ["p"], pads=[1, 1, 1, 1]), m.node("Relu", ["p"], ["q"]),
                 m.node("Conv", ["q", "b"], ["r"], group=16, strides=[2, 2]),
                 m.node("ConvTranspose", ["r", "c"], ["s"], strides=[2, 2]),
                 m.node("Conv", ["s", "d"], ["y"])]
        path = self.file("net.onnx", m.model(m.Graph(
            nodes, [m.value("x", m.tensor_type(m.FLOAT, [2, 3, 17, 19]))],
            [m.value("y", m.tensor_type(m.FLOAT, None))], weights)))
        r = 8 * 9
        want = 2 * (17 * 19 * 16 * 27 + r * 16 * 9 + r * 16 * 8 * 4 + 4 * r * 5 * 8)
        self.assertEqual(self.nori("inspect", path, "--json").json()["run"]["macs"], want)
        for level in "012":
            got = self.nori("bench", path, "--runs", "1", "--level", level, "--json").json()
            self.assertEqual(got["macs"], want)

    def test_subgraph_nodes_count_every_pass(self):
        w = m.floats("w", [4, 4], [0.0] * 16)
        body = m.Graph([m.node("MatMul", ["s", "w"], ["t"], name="product"),
                        m.node("Identity", ["c"], ["d"])],
                       [m.value("i", m.tensor_type(m.INT64, [])),
                        m.value("c", m.tensor_type(m.BOOL, [])),
                        m.value("s", m.tensor_type(m.FLOAT, [2, 4]))],
                       [m.value("d", m.tensor_type(m.BOOL, [])),
                        m.value("t", m.tensor_type(m.FLOAT, [2, 4]))])
        path = self.file("loop.onnx", m.model(m.Graph(
            [m.node("Loop", ["n", "", "x"], ["y"], name="loop", body=body)],
            [m.value("x", m.tensor_type(m.FLOAT, [2, 4]))],
            [m.value("y", m.tensor_type(m.FLOAT, [2, 4]))], [w, m.ints("n", [], [5])])))
        got = self.nori("bench", path, "--runs", "3", "--profile", "--json").json()
        product = [n for n in got["nodes"] if n["op"] == "MatMul"][0]
        self.assertEqual((product["calls"], product["macs"]), (5, 5 * 32))

    def test_trace(self):
        path = self.path("trace.json")
        self.nori("bench", DIGITS, "--runs", "3", "--trace", path)
        with open(path) as f:
            trace = json.load(f)
        events = trace["traceEvents"]
        self.assertGreater(len(events), 8)
        end = 0
        for e in events:  # whole events, one after another
            self.assertEqual(e["ph"], "X")
            self.assertGreaterEqual(e["ts"], end - 0.002)
            self.assertGreater(e["dur"], 0)
            self.assertEqual((e["pid"], e["tid"]), (1, 1))
            end = e["ts"] + e["dur"]
        self.assertEqual(sum(e["args"]["macs"] for e in events), 7344000)
        self.assertIn("no/such", self.nori("bench", DIGITS, "--runs", "1", "--trace",
                                           self.path("no/such/t.json"), code=3).err)
        self.assertEqual(os.listdir(self.folder.name), ["trace.json"])


if __name__ == "__main__":
    case.main()
