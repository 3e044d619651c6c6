#!/usr/bin/env python3
"""nori route over the loopback: where calls go, hedges, what the log says, what must not leave."""
import json
import os
import unittest

import case
import model_file as mf
import v2_double


class Route(case.Case):
    def setUp(self):
        super().setUp()
        self.model = self.file("m.onnx", mf.one_node("Neg", [1, 1000], [1, 1000]))
        done = self.nori("route", self.model, "--cloud", "http://127.0.0.1:9", "--calls", "1", code=None)
        if "built without" in done.err:
            self.skipTest("this nori was built without libcurl or jansson")

    def route(self, server, *args, code=0):
        return self.nori("route", self.model, "--cloud", server.url, *args, "--json", code=code).json()

    def slow_edge(self):
        """A profile that says the device is slow, so that the server is asked."""
        return self.file("e.json", '{"nori_profile": 1, "side": "device", "steady": 500}')

    def cloud(self, ms=5):
        return self.file("c.json", '{"nori_profile": 1, "side": "cloud", "service": %g}' % ms)

    def test_the_device_alone(self):
        j = self.nori("route", self.model, "--calls", "7", "--json").json()
        self.assertEqual((j["calls"], j["answered"], j["agree"], j["requests"]), (7, 7, 7, 0))
        self.assertEqual({c["place"] for c in j["each"]}, {"edge"})

    def test_the_server_alone(self):
        with v2_double.Double(0.01) as server:
            j = self.route(server, "--only", "cloud", "--calls", "9", "--callers", "3")
            self.assertEqual((j["answered"], j["agree"], j["cloud"]["answers"]), (9, 9, 9))
            self.assertGreaterEqual(j["cloud"]["p50_ms"], 10)
            posts = [r for r in server.requests if r[0] == "POST"]
            self.assertEqual(len(posts), 9)
            self.assertGreater(j["sent_bytes"], sum(r[2] for r in posts))  # headers, too
            self.assertLess(j["sent_bytes"], sum(r[2] for r in posts) + 9 * 1000)

    def test_profiles_say_where_to_begin(self):
        with v2_double.Double(0.0) as server:
            j = self.route(server, "--edge-profile", self.slow_edge(), "--cloud-profile", self.cloud(),
                           "--calls", "3", "--hedge", "5s")
        self.assertEqual([c["place"] for c in j["each"]], ["cloud"] * 3)

    def test_moves_to_the_faster_side(self):
        with v2_double.Double(0.03) as server:
            j = self.route(server, "--calls", "120", "--rate", "400/s", "--edge-profile", self.slow_edge(),
                           "--cloud-profile", self.cloud(1))
        self.assertEqual(j["agree"], 120)
        self.assertEqual(j["each"][-1]["place"], "edge")
        self.assertGreaterEqual(j["switches"], 1)

    def test_a_late_answer_is_hedged(self):
        with v2_double.Double(0.5) as server:
            j = self.route(server, "--calls", "2", "--hedge", "20ms", "--edge-profile", self.slow_edge(),
                           "--cloud-profile", self.cloud())
        self.assertEqual((j["answered"], j["agree"]), (2, 2))
        self.assertTrue(j["each"][0]["hedged"])
        self.assertLess(j["each"][0]["ms"], 400)

    def test_nobody_there(self):
        done = self.nori("route", self.model, "--cloud", "http://127.0.0.1:9", "--only", "cloud", "--calls", "3",
                         code=1)
        self.assertIn("127.0.0.1:9", done.err)
        args = ("--cloud", "http://127.0.0.1:9", "--calls", "200", "--edge-profile", self.slow_edge(),
                "--cloud-profile", self.cloud(), "--json")
        j = self.nori("route", self.model, *args).json()
        self.assertEqual((j["answered"], j["agree"]), (200, 200))
        self.assertTrue(j["server_not_called"])
        self.assertLessEqual(j["requests"], 3)  # two that failed, a look whether it is back

    def test_a_server_that_says_no(self):
        with v2_double.Double() as server:
            server.refuse = True
            j = self.route(server, "--calls", "50", "--edge-profile", self.slow_edge(), "--cloud-profile",
                           self.cloud())
        self.assertEqual((j["answered"], j["agree"]), (50, 50))

    def test_log(self):
        log = self.path("log.jsonl")
        with v2_double.Double() as server:
            j = self.route(server, "--only", "cloud", "--calls", "4", "--log", log)
        with open(log, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        self.assertEqual([(x["what"], x["model"], x["place"], x["answered"]) for x in lines],
                         [("infer", "m", "cloud", True)] * 4)
        self.assertEqual(sum(x["sent_bytes"] for x in lines), j["sent_bytes"])
        self.assertGreater(lines[0]["sent_bytes"], 4000)
        self.assertEqual(set(lines[0]), {"time", "what", "model", "place", "sent_bytes", "received_bytes", "ms",
                                         "answered"})  # and nothing of what was in it

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_log_that_cannot_be_written(self):
        with v2_double.Double() as server:
            done = self.nori("route", self.model, "--cloud", server.url, "--only", "cloud", "--calls", "20", "--log",
                             "/dev/full", code=3)
            self.assertEqual(len(server.requests), 1)  # what is not logged does not leave
        self.assertIn("nothing was sent", done.err)

    def test_a_token(self):
        with v2_double.Double() as server:
            server.token = "word"
            done = self.nori("route", self.model, "--cloud", server.url, "--only", "cloud", "--calls", "1", code=1)
            self.assertIn("401", done.err)
            self.assertIn("a token is asked for", done.err)
            j = self.route(server, "--only", "cloud", "--calls", "3", "--token-file", self.file("t", "word\n"))
            self.assertEqual(j["agree"], 3)

    def test_privacy(self):
        with v2_double.Double() as server:
            j = self.route(server, "--raw-stays", "--features-stay", "--calls", "100", "--edge-profile",
                           self.slow_edge(), "--cloud-profile", self.cloud())
            self.assertEqual((server.connections, server.requests), (0, []))
        self.assertEqual((j["edge"]["answers"], j["requests"], j["sent_bytes"]), (100, 0, 0))

    def test_split(self):
        x = mf.value("x", mf.tensor_type(mf.FLOAT, [1, 1000]))
        y = mf.value("y", mf.tensor_type(mf.FLOAT, [1, 1000]))
        h = mf.value("h", mf.tensor_type(mf.FLOAT, [1, 1000]))
        whole = self.file("w.onnx", mf.model(mf.Graph(
            [mf.node("Neg", ["x"], ["h"]), mf.node("Neg", ["h"], ["y"])], [x], [y])))
        first = self.file("first.onnx", mf.model(mf.Graph([mf.node("Neg", ["x"], ["h"])], [x], [h])))
        with v2_double.Double(model="rest") as server:
            j = self.nori("route", whole, "--cloud", server.url, "--first", first, "--second", "rest", "--only",
                          "split", "--calls", "5", "--json").json()
            self.assertEqual({r[1] for r in server.requests}, {"/v2/models/rest/infer"})
        self.assertEqual((j["split"]["answers"], j["agree"]), (5, 5))

    def test_refusals(self):
        cloud = ("--cloud", "http://127.0.0.1:9")
        for args, word in [(("--only", "moon"), "edge, cloud or split"), (("--first", "x"), "--second"),
                           (("--seconds", "0"), "above 0"), (("--seconds", "1", "--calls", "1"), "one of them"),
                           (("--rate", "5"), "unit is missing"), (("--hedge", "x"), "time"),
                           (("--percentile", "100"), "between 0 and 100"), (("--log", "/x"), None)]:
            done = self.nori("route", self.model, *args, *(() if word is None else cloud), code=2)
            self.assertIn(word or "nothing leaves", done.err)
        self.assertIn("--cloud URL", self.nori("route", self.model, "--timeout", "1s", code=2).err)
        self.assertIn("no place", self.nori("route", self.model, "--only", "cloud", code=2).err)


if __name__ == "__main__":
    unittest.main()
