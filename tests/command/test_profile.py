#!/usr/bin/env python3
"""nori profile: a device's times, a server's as its statistics tell them, and what nori place makes of
the two."""
import json
import os
import unittest

import case
import model_file as mf
import v2_double

DIGITS = os.path.join(case.DIGITS, "digits.onnx")
QUICK = ("--runs", "8", "--minutes", "0.01", "--callers", "1,3")


def lacking(test):
    """Builds without the libraries say so; there is nothing to test then."""
    path = test.file("probe.json", '{"nori_profile": 1, "side": "device", "steady": 1}')
    done = test.nori("place", "--edge-profile", path, code=None)
    if "built without" in done.err:
        test.skipTest("this nori was built without jansson")
    if "built without" in test.nori("profile", DIGITS, "--cloud", "http://127.0.0.1:9", code=None).err:
        test.skipTest("this nori was built without libcurl")


class Profile(case.Case):
    def setUp(self):
        super().setUp()
        lacking(self)

    def profile(self, *args):
        return self.nori("profile", *args, "--json").json()

    def test_device(self):
        path, page = self.path("e.json"), self.path("e.html")
        p = self.profile(DIGITS, *QUICK, "--output", path, "--html", page)
        with open(path, encoding="utf-8") as f:
            self.assertEqual(json.load(f), p)
        self.assertEqual(p["side"], "device")
        self.assertAlmostEqual(p["cold_ms"], p["load_ms"] + p["create_ms"] + p["first_ms"], 1)
        self.assertEqual((p["input_bytes"], p["output_bytes"]), (28 * 28 * 4, 40))
        for times in (p["steady"], p["under_load"], *(c["times"] for c in p["callers"])):
            self.assertEqual(times["ms"], sorted(times["ms"]))
            self.assertGreater(times["ms"][0], 0)
            self.assertTrue(times["ms"][0] <= times["mean_ms"] <= times["ms"][-1])
        self.assertEqual(p["steady"]["count"], 8)
        self.assertEqual([c["callers"] for c in p["callers"]], [1, 3])
        self.assertGreaterEqual(p["callers"][1]["times"]["count"], 15)  # at least five each
        nodes = sum(n["ms"] for n in p["nodes"])
        self.assertLess(abs(nodes / p["steady"]["mean_ms"] - 1), 0.01)
        self.assertGreater(len({n["value"] for n in p["nodes"]}), 3)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        self.assertIn("<svg", text)
        self.assertIn("Nodes that take longest", text)
        self.assertNotIn("http://", text.replace("http://www.w3.org", ""))

    def test_server(self):
        model = self.file("m.onnx", mf.one_node("Neg", [1, 3, 20, 20], [1, 3, 20, 20]))
        with v2_double.Double(0.020) as server:
            p = self.profile(model, "--cloud", server.url, "--runs", "12")
            asked = [r for r in server.requests if r[0] == "POST"]
        self.assertEqual((p["side"], p["url"], p["reported_by_server"]), ("cloud", server.url, True))
        # the double sleeps 20 ms: what it reports is that, and a call is that and the way
        self.assertGreaterEqual(p["service"]["ms"][0], 20 - 0.1)
        self.assertEqual(p["service"]["count"], 12)
        self.assertGreaterEqual(p["total"]["ms"][0], p["service"]["ms"][0])
        parts = sum(p[k]["mean_ms"] for k in ("service", "queue", "up", "down")) + p["rtt"]["mean_ms"]
        self.assertLess(abs(parts - p["total"]["mean_ms"]) / p["total"]["mean_ms"], 0.5)
        self.assertEqual(p["up_bytes"], asked[-1][2])
        self.assertTrue(4800 < p["up_bytes"] < 5200, p["up_bytes"])
        self.assertEqual(p["connect"]["count"], 5)
        self.assertGreater(p["rtt"]["ms"][8], 0.005)  # a call of another process takes longer anywhere

    def test_server_without_statistics(self):
        model = self.file("m.onnx", mf.one_node("Neg", [4], [4]))
        with v2_double.Double(0.005, statistics=False) as server:
            p = self.profile(model, "--cloud", server.url, "--runs", "3")
        self.assertFalse(p["reported_by_server"])
        self.assertGreaterEqual(p["service"]["ms"][0], 4)

    def test_place_reads_them(self):
        edge = self.file("e.json", '{"nori_profile": 1, "side": "device", "steady": 55}')
        cloud = self.file("c.json", json.dumps({"nori_profile": 1, "side": "cloud", "service": 8, "up": 30,
                                                "down": {"p": [0, 100], "ms": [10, 14]}, "queue": 20}))
        j = self.nori("place", "--edge-profile", edge, "--cloud-profile", cloud, "--json").json()
        self.assertEqual(j["place"], "edge")
        self.assertAlmostEqual(j["gain_ms"], 47, 3)
        self.assertAlmostEqual(j["penalty_ms"], 62, 3)
        self.assertGreater(j["options"]["cloud"]["p99_ms"], 71.5)  # the way back is spread
        # what is told goes before what was measured
        j = self.nori("place", "--edge-profile", edge, "--cloud-profile", cloud, "--edge", "95ms",
                      "--json").json()
        self.assertEqual(j["place"], "cloud")
        # bytes and speed of a way stay apart, so that the bandwidth's break-even is known
        cloud = self.file("d.json", json.dumps({"nori_profile": 1, "side": "cloud", "service": 8, "up": 32,
                                                "up_bytes": 3000000, "up_bytes_per_s": 1e8}))
        j = self.nori("place", "--edge-profile", edge, "--cloud-profile", cloud, "--json").json()
        self.assertAlmostEqual(j["options"]["cloud"]["up_ms"], 32, 3)
        flips = {f["what"]: f["at"] for f in j["flips"]}
        self.assertAlmostEqual(flips["bandwidth"] / 1e6, 3 / 0.045, 2)  # 55 - 8 - 2 ms are left for it

    def test_place_from_measured_ones(self):
        model = self.file("m.onnx", mf.one_node("Neg", [1, 64], [1, 64]))
        edge, cloud = self.path("e.json"), self.path("c.json")
        self.nori("profile", model, *QUICK, "--output", edge)
        with v2_double.Double(0.030) as server:
            self.nori("profile", model, "--cloud", server.url + "/v2/models/m", "--runs", "5", "--output", cloud)
        j = self.nori("place", model, "--edge-profile", edge, "--cloud-profile", cloud, "--json").json()
        self.assertEqual(j["place"], "edge")
        self.assertGreaterEqual(j["options"]["cloud"]["mean_ms"], 29.5)

    def test_refusals(self):
        model = self.file("m.onnx", mf.one_node("Neg", [4], [4]))
        good = self.file("g.json", '{"nori_profile": 1, "side": "device", "steady": 1}')
        for text, word in [("", "line"), ("{}", "nori_profile"), ("[]", "nori_profile"),
                           ('{"nori_profile": 1}', "side"),
                           ('{"nori_profile": 1, "side": "cloud", "service": 1}', "no times"),
                           ('{"nori_profile": 1, "side": "device", "steady": "x"}', "steady"),
                           ('{"nori_profile": 1, "side": "device", "steady": -1}', "at least 0"),
                           ('{"nori_profile": 1, "side": "device", "steady": {"p": [9, 5], "ms": [1, 2]}}',
                            "rising"),
                           ('{"nori_profile": 1, "side": "device", "steady": 1, "nodes": [1]}', "nodes")]:
            done = self.nori("place", "--edge-profile", self.file("b.json", text), code=3)
            self.assertIn(word, done.err)
        self.assertIn("of this side already", self.nori("place", "--cloud-profile", good,
                                                        "--cloud-profile", good, code=2).err)
        self.assertIn("no times", self.nori("place", "--cloud-profile", self.file(
            "b.json", '{"nori_profile": 1, "side": "cloud"}'), code=3).err)
        self.assertIn("http://host:port", self.nori("profile", model, "--cloud", "host:80", code=2).err)
        self.assertIn("--cloud URL", self.nori("profile", model, "--timeout", "1s", code=2).err)
        self.assertIn("1,2,4", self.nori("profile", model, "--callers", "1,x", code=2).err)
        done = self.nori("profile", model, "--cloud", "http://127.0.0.1:9", code=4)
        self.assertIn("http://127.0.0.1:9", done.err)
        with v2_double.Double(model="other") as server:
            self.assertIn("no such model", self.nori("profile", model, "--cloud", server.url, code=4).err)
        empty = self.file("token", "")
        self.assertIn("token", self.nori("profile", model, "--cloud", "http://127.0.0.1:9", "--token-file",
                                         empty, code=3).err)

    def test_answers_that_do_not_fit(self):
        model = self.file("m.onnx", mf.one_node("Neg", [4], [4]))
        for head, body, word in [(None, b"{", "protocol"), (999, b"{}", "longer"), (None, b"{}", "no output y"),
                                 (None, b'{"outputs": [{"name": "y", "datatype": "FP32", "shape": [1e9]}]}',
                                  "dimension"),
                                 (None, b'{"outputs": [{"name": "y", "datatype": "FP32", "shape": [1099511627776],'
                                  b'"parameters": {"binary_data_size": 4}}]}', "bytes"),
                                 (None, b'{"outputs": [{"name": "y", "datatype": "X", "shape": [4]}]}', "type X"),
                                 (None, b'{"outputs": [{"name": "y", "datatype": "FP32", "shape": [4], "data": [1]}]}',
                                  "numbers")]:
            with v2_double.Double() as server:
                server.infer = lambda *_, h=head, b=body: (b, h if h is not None else len(b))
                self.assertIn(word, self.nori("profile", model, "--cloud", server.url, code=3).err)
        with v2_double.Double() as server:  # numbers written out are taken
            text = b'{"outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 2], "data": [[1, 2], [3, 4]]}]}'
            server.infer = lambda *_: (text, len(text))
            self.nori("profile", model, "--cloud", server.url, "--runs", "1")


if __name__ == "__main__":
    case.main()
