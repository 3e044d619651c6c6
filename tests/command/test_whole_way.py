#!/usr/bin/env python3
"""The whole way: nori profile of both sides against nori serve, nori place, the nori split it asks for, both
parts in their places, and nori route over them."""
import json
import os
import shlex
import subprocess
import unittest

import case
import model_file as mf


class WholeWay(case.Case):
    def setUp(self):
        super().setUp()
        verbs = self.nori("help").out.split()
        for verb in ("serve", "split", "route"):
            if verb not in verbs:
                self.skipTest("there is no nori %s here" % verb)
        probe = self.nori("profile", os.path.join(case.DIGITS, "digits.onnx"), "--cloud", "http://127.0.0.1:9",
                          code=None)
        if "built without" in probe.err or "cannot be loaded" in probe.err:
            self.skipTest(probe.err.strip())
        self.models = self.path("models")
        os.mkdir(self.models)

    def serve(self):
        server = subprocess.Popen([case.NORI, "serve", self.models, "--port", "0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait, 20)
        self.addCleanup(server.terminate)
        url, said = None, ""
        for line in server.stdout:
            said += line
            if line.startswith("listening: "):
                url = line.split()[1]
            if line.startswith("ready: "):
                return url
        if "built" in said or "cannot be loaded" in said:
            self.skipTest(said.strip())
        self.fail(said)

    def put(self, name, path):
        folder = os.path.join(self.models, name, "1")
        os.makedirs(folder)
        with open(path, "rb") as f, open(os.path.join(folder, "model.onnx"), "wb") as out:
            out.write(f.read())

    def test_profile_and_route(self):
        model = os.path.join(case.DIGITS, "digits.onnx")
        self.put("digits", model)
        url = self.serve()
        p = self.nori("profile", model, "--cloud", url, "--runs", "10", "--json").json()
        self.assertTrue(p["reported_by_server"])
        self.assertGreater(p["service"]["mean_ms"], 0)
        self.assertGreater(p["up_bytes"], 28 * 28 * 4)
        j = self.nori("route", model, "--cloud", url, "--only", "cloud", "--calls", "20", "--json").json()
        self.assertEqual((j["answered"], j["agree"]), (20, 20))

    def test_split(self):
        """x -> ReduceMean -> s -> Sigmoid -> y: the profile says that the rest is what takes long."""
        graph = mf.Graph([mf.node("ReduceMean", ["x"], ["s"], axes=[2], keepdims=0),
                          mf.node("Sigmoid", ["s"], ["y"])],
                         [mf.value("x", mf.tensor_type(mf.FLOAT, [1, 64, 64]))],
                         [mf.value("y", mf.tensor_type(mf.FLOAT, [1, 64]))])
        model = self.file("m.onnx", mf.model(graph))
        edge = self.file("e.json", json.dumps({
            "nori_profile": 1, "side": "device", "steady": 100,
            "nodes": [{"value": "s", "ms": 5}, {"value": "y", "ms": 95}]}))
        cloud = self.file("c.json", json.dumps({"nori_profile": 1, "side": "cloud", "service": 5, "rtt": 1, "up": 16,
                                                "up_bytes": 16384, "up_bytes_per_s": 1024000}))
        j = self.nori("place", model, "--edge-profile", edge, "--cloud-profile", cloud, "--json").json()
        self.assertEqual(j["place"], "split")
        first, second = self.path("first.onnx"), self.path("second.onnx")
        self.follow(j["split"]["next"], first, second)
        self.put("second", second)
        j = self.nori("place", model, "--edge-profile", edge, "--cloud-profile", cloud, "--byte-features",
                      "--json").json()
        self.assertEqual(j["place"], "split")
        bytes_first, bytes_second = self.path("bytes_first.onnx"), self.path("bytes_second.onnx")
        self.follow(j["split"]["next"], bytes_first, bytes_second)
        self.put("bytes_second", bytes_second)
        args = ("route", model, "--cloud", self.serve(), "--only", "split", "--calls", "10", "--json")
        j = self.nori(*args, "--first", first, "--second", "second").json()
        self.assertEqual((j["answered"], j["agree"], j["split"]["answers"]), (10, 10, 10))
        sent = j["sent_bytes"] / 10
        self.assertLess(sent, 16384 / 4)  # the features, not the input
        args += ("--first", bytes_first, "--second", "bytes_second")
        j = self.nori(*args, "--atol", "0.01").json()
        self.assertEqual((j["answered"], j["agree"], j["split"]["answers"]), (10, 10, 10))
        self.assertLess(j["sent_bytes"] / 10, sent + 200)  # 8 bits, but three values are named in the request
        j = self.nori(*args, "--atol", "1e-9", "--rtol", "0", code=1).json()
        self.assertEqual((j["answered"], j["agree"]), (10, 0))

    def follow(self, advice, first, second):
        """Does what the report says, with files of the test's own."""
        words = shlex.split(advice)
        self.assertEqual(words[0], "nori")
        self.nori(*[{"first.onnx": first, "second.onnx": second}.get(w, w) for w in words[1:]])


if __name__ == "__main__":
    case.main()
