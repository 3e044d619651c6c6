#!/usr/bin/env python3
"""nori place: edge or cloud by numbers, as text, JSON, page and C header."""
import json
import os
import shutil
import struct
import subprocess
import unittest
import zlib

import case
import model_file as mf

DIGITS = os.path.join(case.DIGITS, "digits.onnx")
TERMS = ["--cloud", "8ms", "--up", "30ms", "--down", "12ms", "--queue", "20ms"]


class Place(case.Case):
    def place(self, *args, code=0):
        return self.nori("place", *args, "--json", code=code).json()

    def test_inequality_both_ways(self):
        j = self.place("--edge", "55ms", *TERMS)
        self.assertEqual(j["place"], "edge")
        self.assertAlmostEqual(j["options"]["cloud"]["mean_ms"], 70)
        self.assertAlmostEqual(j["gain_ms"], 47)
        self.assertAlmostEqual(j["penalty_ms"], 62)
        self.assertAlmostEqual(j["saved_ms"], 15)
        j = self.place("--edge", "95ms", *TERMS)
        self.assertEqual(j["place"], "cloud")
        self.assertAlmostEqual(j["gain_ms"], 87)
        self.assertAlmostEqual(j["saved_ms"], 25)
        text = self.nori("place", "--edge", "55ms", *TERMS).out
        self.assertIn("55 - 8 = 47 ms  <  30 + 12 + 20 + 0 = 62 ms: the edge wins", text)

    def test_a_rule_against_the_faster_side(self):
        text = self.nori("place", "--edge", "50ms", "--cloud", "8ms", "--raw-stays").out
        self.assertIn("by time alone the cloud would win", text)
        self.assertNotIn("the cloud wins", text)
        self.assertRegex(self.nori("place", "--edge", "50ms", "--offline").out,
                         r"\ncloud +- +- +- +- +- +- +- +-  no: ")

    def test_a_queue_without_end_has_no_times(self):
        args = ("--edge", "10ms", "--cloud", "10ms", "--cloud-servers", "8", "--rtt", "15ms", "--rate")
        edge = self.place(*args, "101/s")["options"]["edge"]
        self.assertEqual((edge["mean_ms"], edge["queue_ms"]), (None, None))
        text = self.nori("place", *args, "101/s").out
        self.assertNotIn("the edge wins", text)
        self.assertRegex(text, r"\nedge +10 +0 +0 +- +0 +- +- +-  no: .*load 1.01")
        self.assertLess(len(self.nori("place", *args, "1e300/s", code=1).out), 1000)

    def test_payload(self):
        j = self.place("--edge", "50ms", "--cloud", "8ms", "--queue", "20ms", "--up-bytes", "1.5MB",
                       "--speed", "5MB/s")
        self.assertAlmostEqual(j["saved_ms"], 278)
        same = self.place("--edge", "50ms", "--cloud", "8ms", "--queue", "20ms", "--up-bytes",
                          "1.5MB", "--speed", "40Mbit/s")
        self.assertEqual(j["options"], same["options"])
        flips = {f["what"]: f["at"] for f in j["flips"]}
        self.assertAlmostEqual(flips["bandwidth"] / 1e6, 1.5 / 0.022, 3)

    def test_units_are_asked_for(self):
        for args, word in [(["--edge", "55"], "unit is missing"),
                           (["--edge", "55ms", "--speed", "5Mb/s"], "bits or bytes"),
                           (["--edge", "55ms", "--up-bytes", "5"], "unit is missing"),
                           (["--edge", "55ms", "--up-bytes", "5kB"], "speed"),
                           (["--edge", "55ms", "--rate", "5"], "unit is missing"),
                           (["--edge", "p50=5ms,p40=6ms"], "rising"),
                           (["--edge", "p50=,p40=6ms"], "time"),
                           (["--edge", "55ms", "--percentile", "100"], "between 0 and 100"),
                           (["--edge", "55ms", "--sweep", "moon=1..2"], "bandwidth"),
                           (["--edge", "55ms", "--sweep", "rtt=2ms..1ms"], "rising"),
                           (["--edge", "55ms", "--steps", "4"], "--sweep"),
                           ([], "--edge")]:
            self.assertIn(word, self.nori("place", *args, code=2).err)

    def test_rules_are_named(self):
        j = self.place("--edge", "20ms", "--cloud", "1ms", "--model-bytes", "40GB", "--edge-memory",
                       "8GB")
        self.assertEqual(j["place"], "cloud")
        self.assertIn("40 GB", j["options"]["edge"]["reason"])
        j = self.place("--edge", "20ms", "--cloud", "1ms", "--rtt", "40ms", "--deadline", "5ms")
        self.assertIn("round trip", j["options"]["cloud"]["reason"])
        j = self.place("--cloud", "1ms", "--offline", code=1)
        self.assertEqual(j["place"], "nowhere")

    def test_deadline_and_tail(self):
        late = ["--edge", "60ms", "--cloud", "p50=5ms,p97=10ms,p99=400ms"]
        self.assertEqual(self.place(*late)["place"], "cloud")
        j = self.place(*late, "--deadline", "100ms")
        self.assertEqual(j["place"], "edge")
        self.assertIn("faster on the mean", j["words"])

    def test_queue(self):
        shape = ["--edge", "exp:10ms", "--cloud", "exp:10ms", "--cloud-servers", "8", "--rtt", "15ms"]
        self.assertEqual(self.place(*shape, "--rate", "59/s")["place"], "edge")
        j = self.place(*shape, "--rate", "61/s")
        self.assertEqual(j["place"], "cloud")
        self.assertAlmostEqual(j["inversion_per_s"], 60, delta=0.3)

    def test_model_says_its_sizes(self):
        j = self.place(DIGITS, "--edge", "1ms", "--cloud", "1ms", "--speed", "1MB/s")
        self.assertAlmostEqual(j["options"]["cloud"]["up_ms"], 28 * 28 * 4 / 1e3, 3)
        self.assertAlmostEqual(j["options"]["cloud"]["down_ms"], 0.04, 3)

    def test_sweep_brings_its_speed(self):
        j = self.place("--edge", "50ms", "--cloud", "8ms", "--up-bytes", "1MB", "--sweep",
                       "bandwidth=1MB/s..100MB/s", "--steps", "2")
        self.assertEqual([r["place"] for r in j["bandwidth"]], ["edge", "cloud"])

    def test_sweep_and_page(self):
        page = self.path("p.html")
        j = self.place("--edge", "50ms", "--cloud", "8ms", "--up-bytes", "1.5MB", "--speed", "5MB/s",
                       "--sweep", "bandwidth=1MB/s..200MB/s", "--steps", "5", "--html", page)
        self.assertEqual([r["place"] for r in j["bandwidth"]], ["edge"] * 3 + ["cloud"] * 2)
        self.assertAlmostEqual(j["bandwidth"][-1]["value"], 200e6, delta=1)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        self.assertEqual(text.count("<svg"), 2)
        self.assertNotIn("http", text)

    @unittest.skipUnless(shutil.which("cc"), "no C compiler")
    def test_header_decides_alike(self):
        header = self.path("placement.h")
        self.place("--edge", "50ms", "--cloud", "8ms", "--up-bytes", "1.5MB", "--speed", "5MB/s",
                   "--queue", "20ms", "--header", header)
        source = self.file("main.c", '#include "placement.h"\n#include <stdio.h>\nint main(void) {'
                           'printf("%d%d%d", nori_place_on_edge(5e6, 5e6, 0, 1),'
                           'nori_place_on_edge(69e6, 69e6, 0, 1), nori_place_on_edge(69e6, 0, 0, 0));}')
        program = self.path("main")
        subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", "-o", program, source], check=True)
        self.assertEqual(subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout, b"101")


class Replay(case.Case):
    """Calls of the past."""

    def trace(self, text):
        return self.file("t.csv", text)

    def replay(self, text, *args, code=0):
        return self.nori("place", "--replay", self.trace(text), *args, "--json", code=code).json()["replay"]

    def test_by_hand(self):
        r = self.replay("time_s,edge_ms,cloud_ms,online\n0,50,20,1\n1,50,200,1\n2,50,20,1\n3,50,20,0\n",
                        "--deadline", "100ms", "--cloud-price", "10")
        self.assertEqual((r["edge"]["hits"], r["cloud"]["hits"], r["oracle"]["hits"]), (4, 2, 4))
        self.assertAlmostEqual(r["edge"]["cost_s"], 0.2)
        self.assertAlmostEqual(r["oracle"]["cost_s"], 0.14)
        self.assertAlmostEqual(r["edge"]["regret_s"], 0.06)
        self.assertAlmostEqual(r["cloud"]["cost_s"], 0.02 + 0.2 + 0.02 + 1.05 + 2)
        self.assertAlmostEqual(r["cloud"]["price"], 0.03)
        self.assertEqual(r["oracle"]["switches"], 3)
        r = self.replay("edge_ms,cloud_ms\n50,20\n50,200\n50,20\n", "--switch-cost", "1s")
        self.assertEqual(r["oracle"]["switches"], 0)

    def test_terms_and_link(self):
        rows = "up_MB/s,rtt_ms\n" + "1,10\n" * 3 + "100,10\n" * 3
        r = self.replay(rows, "--edge", "50ms", "--cloud", "5ms", "--up-bytes", "100kB", "--speed", "5MB/s")
        self.assertAlmostEqual(r["cloud"]["mean_ms"], 5 + 10 + (100 + 1) / 2, 6)
        self.assertAlmostEqual(r["oracle"]["mean_ms"], (50 + 16) / 2, 6)

    def test_the_route_follows(self):
        rows = "time_s,edge_ms,cloud_ms\n" + "".join(
            "%.1f,50,%d\n" % (i / 10, 20 if i // 500 % 2 == 0 else 200) for i in range(2000))
        page = self.path("p.html")
        r = self.replay(rows, "--html", page)
        self.assertLess(r["route"]["regret_s"], 0.5 * min(r["edge"]["regret_s"], r["cloud"]["regret_s"]))
        self.assertLess(r["route"]["switches"], 20)
        with open(page, encoding="utf-8") as f:
            self.assertIn("Calls of the past", f.read())
        text = self.nori("place", "--replay", self.trace(rows), "--deadline", "100ms").out
        self.assertRegex(text, r"\noracle +100.00 %")

    def test_refusals(self):
        for text, word in [("", "no calls"), ("edge_ms\n", "no calls"), ("speed\n1\n", "are known"),
                           ("time_s\n1\n", "column names"), ("edge_ms,cloud_ms\n1,x\n", "line 2"),
                           ("edge_ms\n1,2\n", "more cells"), ("edge_ms\n-1\n", "at least 0"),
                           ("time_s,edge_ms\n2,1\n1,1\n", "before"), ("up_MB/s\n0\n", "above 0"),
                           ("edge_ms\n" + "1" * 5000, "longer")]:
            self.assertIn(word, self.nori("place", "--edge", "1ms", "--cloud", "1ms", "--replay", self.trace(text),
                                          code=3).err)
        self.assertIn("--replay", self.nori("place", "--edge", "1ms", "--lost", "1s", code=2).err)

    def test_policy_table(self):
        path, header = self.path("p.csv"), self.path("placement.h")
        args = ("place", "--edge", "50ms", "--cloud", "8ms", "--up-bytes", "200kB", "--speed", "5MB/s", "--rtt",
                "10ms", "--policy", path, "--header", header)
        self.nori(*args)
        with open(path, encoding="utf-8") as f:
            rows = [line.strip().split(",") for line in f]
        self.assertEqual(rows[0], ["up_MB/s", "rtt_ms", "place", "edge_ms", "cloud_ms", "split_ms"])
        self.assertEqual(len(rows), 1 + 13 * 9)
        for speed, rtt, place, edge, cloud, _ in rows[1:]:
            self.assertAlmostEqual(float(cloud), 8 + float(rtt) + 0.2 / float(speed) * 1e3, delta=0.01 * float(cloud))
            self.assertEqual(place, "edge" if float(edge) <= float(cloud) else "cloud")
        if not shutil.which("cc"):
            return
        calls = "".join('printf("%%d", nori_place_by_table(%s * 1e6, %s / 1e3, 1));' % (r[0], r[1])
                        for r in rows[1:])
        source = self.file("main.c", '#include "placement.h"\n#include <stdio.h>\nint main(void) {' + calls +
                           'printf("%d", nori_place_by_table(5e6, 0, 0));}')
        program = self.path("main")
        subprocess.run(["cc", "-std=c11", "-Wall", "-o", program, source], check=True)
        said = subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertEqual(said, "".join("1" if r[2] == "edge" else "2" for r in rows[1:]) + "1")


class Split(case.Case):
    """x[1,64,64] -> ReduceSum -> s[1,64] -> Exp -> y: little goes over the cut, most is computed behind it."""

    def setUp(self):
        super().setUp()
        probe = self.file("probe.json", '{"nori_profile": 1, "side": "device", "steady": 1}')
        if "built without" in self.nori("place", "--edge-profile", probe, code=None).err:
            self.skipTest("this nori was built without jansson")
        axes = mf.ints("axes", [1], [2])
        graph = mf.Graph([mf.node("ReduceSum", ["x", "axes"], ["s"], keepdims=0), mf.node("Exp", ["s"], ["y"])],
                         [mf.value("x", mf.tensor_type(mf.FLOAT, [1, 64, 64]))],
                         [mf.value("y", mf.tensor_type(mf.FLOAT, [1, 64]))], [axes])
        self.model = self.file("m.onnx", mf.model(graph))
        self.edge = self.file("e.json", json.dumps({
            "nori_profile": 1, "side": "device", "steady": 100,
            "nodes": [{"value": "s", "ms": 5}, {"value": "y", "ms": 95}]}))

    def cloud(self, speed):
        return self.file("c.json", json.dumps({
            "nori_profile": 1, "side": "cloud", "service": 5, "rtt": 1, "up": 16384 / speed * 1e3,
            "up_bytes": 16384, "up_bytes_per_s": speed}))

    def place(self, speed, *args, code=0):
        return self.nori("place", self.model, "--edge-profile", self.edge, "--cloud-profile", self.cloud(speed),
                         "--json", *args, code=code).json()

    def test_advised(self):
        page = self.path("p.html")
        j = self.place(1e6, "--html", page)  # 16.4 ms there for x, 0.26 for s
        self.assertEqual(j["place"], "split")
        self.assertEqual(j["split"]["next"], "nori split %s --at s --output first.onnx --output second.onnx" % self.model)
        self.assertFalse(j["split"]["end_is_better"])
        best = j["split"]["best"]
        self.assertEqual((best["values"], best["bytes"], best["edge_nodes"]), ("s", 256, 1))
        self.assertAlmostEqual(best["mean_ms"], 5 + 0.256 + 4.75 + 1, 4)
        self.assertEqual(j["split"]["best_int8"]["bytes"], 64 + 5)
        self.assertIn("int8_sqnr_db", j["split"])
        self.assertAlmostEqual(j["options"]["split"]["mean_ms"], best["mean_ms"], 4)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        self.assertIn("Divided in two", text)
        self.assertIn("--at s", text)
        text = self.nori("place", self.model, "--edge-profile", self.edge, "--cloud-profile",
                         self.cloud(1e6)).out
        self.assertIn("nori split", text)
        less = self.place(1e6, "--byte-features")
        self.assertAlmostEqual(less["options"]["split"]["up_ms"], 0.069, 4)
        self.assertIn("--at s --byte-features --output", less["split"]["next"])

    def test_not_by_less_than_the_margin(self):
        j = self.place(1e9)  # the cloud alone is 6.02, the split 10.75
        self.assertEqual(j["place"], "cloud")
        self.assertTrue(j["split"]["end_is_better"])
        self.assertNotIn("next", j["split"])

    def test_rules(self):
        j = self.place(1e9, "--raw-stays")  # features may leave
        self.assertEqual(j["place"], "split")
        j = self.place(1e9, "--raw-stays", "--features-stay")
        self.assertEqual(j["place"], "edge")
        self.assertIn("features", j["options"]["split"]["reason"])

    def test_payloads(self):
        graph = mf.one_node("Neg", [1, 3, 224, 224], [1, 3, 224, 224])
        model = self.file("p.onnx", graph)
        args = ("--edge", "50ms", "--cloud", "5ms", "--speed", "5MB/s", "--json")
        rows = self.nori("place", model, *args).json()["payloads"]
        self.assertEqual([r["bytes"] for r in rows], [602112, 301056, 150528])
        self.assertAlmostEqual(rows[2]["cloud_ms"] + (602112 - 150528) / 5e3, rows[0]["cloud_ms"], 2)
        lines = b"".join(b"\0" + bytes((x * y) % 256 for x in range(224 * 3)) for y in range(224))
        picture = self.file("p.png", png(224, 224, lines))
        rows = self.nori("place", model, *args, "--input", picture).json()["payloads"]
        self.assertEqual(rows[-1]["bytes"], os.path.getsize(picture))
        if len(rows) == 6:  # with libjpeg
            self.assertTrue(150528 > rows[3]["bytes"] > rows[4]["bytes"] > 1000)


def png(width, height, lines):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


if __name__ == "__main__":
    case.main()
