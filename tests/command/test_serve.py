#!/usr/bin/env python3
"""nori serve: the protocol as its clients see it: health, metadata, infer with JSON and with binary data,
the folder of models, statistics and metrics."""
import json
import os
import shutil
import signal
import struct
import unittest

import case
import model_file as mf
import server
from server import ServeCase

DIGITS = os.path.join(case.DIGITS, "digits.onnx")
ELEMENTS = {"FP32": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "BYTES": 8,
            "BOOL": 9, "FP16": 10, "FP64": 11, "UINT32": 12, "UINT64": 13, "BF16": 16}


def same(elem=mf.FLOAT, dims=("n", 2)):
    return mf.one_node("Identity", list(dims), list(dims), elem)


class Serve(ServeCase):
    def models(self, **files):
        for name, data in files.items():
            self.file(name + ".onnx", data)
        return self.folder.name

    def test_metadata_and_health(self):
        s = self.serve(DIGITS)
        self.assertEqual(s.get("/v2/health/live").status, 200)
        self.assertEqual(s.get("/v2/health/ready").json(), {"ready": True, "preparing": []})
        self.assertEqual(s.get("/v2").json()["name"], "nori")
        self.assertIn("binary_tensor_data", s.get("/v2").json()["extensions"])
        m = s.get("/v2/models/digits").json()
        self.assertEqual(m["inputs"], [{"name": "image", "datatype": "FP32", "shape": [-1, 1, 28, 28]}])
        self.assertEqual(m["outputs"], [{"name": "logits", "datatype": "FP32", "shape": [-1, 10]}])
        self.assertEqual(s.get("/v2/models/digits/versions/1").json(), m)
        self.assertEqual(s.get("/v2/models/digits/versions/1/ready").status, 200)
        self.assertEqual(s.get("/v2/models/digits/config").json()["instance_group"][0]["count"], 1)
        self.refused(s.get("/v2/models/digits/versions/2"), 404, "digits", "2")
        self.refused(s.get("/v2/models/other/ready"), 404, "other")
        self.refused(s.get("/v2/models/digits/infer"), 405)
        self.refused(s.get("/elsewhere"), 404, "/elsewhere")
        self.assertEqual(s.call("HEAD", "/v2/health/live").body, b"")
        self.assertEqual(s.stop(), 0)

    def test_same_as_run(self):
        """The server's numbers are those of `nori run`, by JSON and bit for bit by binary data."""
        s = self.serve(DIGITS)
        values = [((7 * i) % 256) / 255 for i in range(784)]
        data = struct.pack("<784f", *values)
        body = {"id": "a\u00e9", "inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 1, 28, 28],
                                             "data": values}]}
        a = s.infer("digits", body)
        self.assertEqual(a.status, 200, a.body)
        self.assertEqual(a.headers["content-type"], "application/json")
        self.assertEqual((a.json()["id"], a.json()["model_name"], a.json()["model_version"]),
                         ("a\u00e9", "digits", "1"))
        self.assertRegex(a.headers["server-timing"], r"^queue;dur=[\d.]+, compute;dur=[\d.]+$")
        out = a.json()["outputs"][0]
        self.assertEqual((out["name"], out["datatype"], out["shape"]), ("logits", "FP32", [1, 10]))
        b = s.infer("digits", **server.binary("image", "FP32", [1, 1, 28, 28], data))
        self.assertEqual(b.headers["content-type"], "application/octet-stream")
        logits = b.binary()["logits"]
        self.assertEqual(struct.pack("<10f", *out["data"]), logits)
        import npy_file
        x = self.file("x.npy", npy_file.npy("<f4", [1, 1, 28, 28], values))
        self.nori("run", DIGITS, x, "--output", self.path("y.npy"))
        with open(self.path("y.npy"), "rb") as f:
            self.assertEqual(f.read()[-40:], logits)
        c = s.infer("digits", body=data, headers={"Inference-Header-Content-Length": "0"})
        self.assertEqual(c.binary()["logits"], logits)

    def test_every_type(self):
        samples = {"FP32": [1.5, -0.1], "FP64": [0.1, -1e300], "FP16": [0.5, -2.0], "BF16": [1.0, -3.5],
                   "INT8": [-128, 127], "INT16": [-32768, 32767], "INT32": [-2**31, 2**31 - 1],
                   "INT64": [-2**63, 2**63 - 1], "UINT8": [0, 255], "UINT16": [0, 65535],
                   "UINT32": [0, 2**32 - 1], "UINT64": [0, 2**63 - 1], "BOOL": [True, False],
                   "BYTES": [b"", "\u00e9\0\"\n".encode()]}
        s = self.serve(self.models(**{"m_" + t: same(ELEMENTS[t], ["n"]) for t in samples}))
        for t, values in samples.items():
            name = "m_" + t
            told = [v.decode() if isinstance(v, bytes) else v for v in values]
            a = s.infer(name, {"inputs": [{"name": "x", "datatype": t, "shape": [2], "data": told}]})
            self.assertEqual(a.status, 200, (t, a.body))
            got = a.json()["outputs"][0]
            self.assertEqual(got["datatype"], t)
            if t == "FP32":
                self.assertEqual(server.pack(t, got["data"]), server.pack(t, values))
            else:
                self.assertEqual(got["data"], told, t)
            data = server.pack(t, values)
            b = s.infer(name, **server.binary("x", t, [2], data))
            self.assertEqual(b.binary()["y"], data, t)
            e = s.infer(name, **server.binary("x", t, [0], b""))
            self.assertEqual((e.status, e.binary()["y"]), (200, b""), t)
        big = server.pack("UINT64", [2**64 - 1])
        self.assertEqual(s.infer("m_UINT64", **server.binary("x", "UINT64", [1], big)).binary()["y"], big)
        body = server.binary("x", "UINT64", [1], big)
        text = body["body"][:-8].replace(b"true", b"false")
        a = s.infer("m_UINT64", body=text + big,
                    headers={"Inference-Header-Content-Length": str(len(text))})
        self.assertIn(b"18446744073709551615", a.body)

    def test_what_json_cannot_say(self):
        s = self.serve(self.models(t=same(mf.STRING, ["n"]), f=same(mf.FLOAT, ["n"])))
        data = server.pack("BYTES", [b"\xff\xfe"])
        body = server.binary("x", "BYTES", [1], data)
        self.assertEqual(s.infer("t", **body).binary()["y"], data)
        body = server.binary("x", "BYTES", [1], data, outputs=[{"name": "y", "parameters":
                                                                {"binary_data": False}}])
        a = s.infer("t", **body)
        self.refused(a, 400, "UTF-8")
        self.assertIn("binary_data", a.json()["hint"])
        body = server.binary("x", "FP32", [3], struct.pack("<3f", 1, float("nan"), float("inf")),
                             outputs=[{"name": "y", "parameters": {"binary_data": False}}])
        self.assertEqual(s.infer("f", **body).json()["outputs"][0]["data"], [1, None, None])

    def test_lists_in_lists_and_several_tensors(self):
        two = mf.model(mf.Graph(
            [mf.node("Add", ["a", "b"], ["sum"]), mf.node("Sub", ["a", "b"], ["less"])],
            [mf.value("a", mf.tensor_type(mf.FLOAT, [2, "n"])), mf.value("b", mf.tensor_type(mf.FLOAT, [2, "n"]))],
            [mf.value("sum", mf.tensor_type(mf.FLOAT, [2, "n"])),
             mf.value("less", mf.tensor_type(mf.FLOAT, [2, "n"]))]))
        s = self.serve(self.models(two=two))
        a = {"name": "a", "datatype": "FP32", "shape": [2, 3], "data": [[1, 2, 3], [4, 5, 6]]}
        b = {"name": "b", "datatype": "FP32", "shape": [2, 3], "data": [1, 1, 1, 2, 2, 2]}
        got = s.infer("two", {"inputs": [b, a]}).json()["outputs"]
        self.assertEqual([(o["name"], o["data"]) for o in got],
                         [("sum", [2, 3, 4, 6, 7, 8]), ("less", [0, 1, 2, 2, 3, 4])])
        got = s.infer("two", {"inputs": [a, b], "outputs": [{"name": "less"}]}).json()["outputs"]
        self.assertEqual([o["name"] for o in got], ["less"])
        # JSON and binary data side by side, the second behind an odd number of bytes
        raw = struct.pack("<6f", 1, 1, 1, 2, 2, 2)
        b = {"name": "b", "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": 24}}
        text = json.dumps({"inputs": [a, b], "outputs": [
            {"name": "sum"}, {"name": "less", "parameters": {"binary_data": True}}]}).encode()
        got = s.infer("two", body=text + raw, headers={"Inference-Header-Content-Length": str(len(text))})
        self.assertEqual(got.json()["outputs"][0]["data"], [2, 3, 4, 6, 7, 8])
        self.assertEqual(got.binary()["less"], struct.pack("<6f", 0, 1, 2, 2, 3, 4))
        c = {"name": "b", "datatype": "FP32", "shape": [2, 2], "data": [1, 1, 1, 1]}
        self.refused(s.infer("two", {"inputs": [a, c]}), 400)

    def test_requests_that_are_wrong(self):
        s = self.serve(DIGITS)
        fine = {"name": "image", "datatype": "FP32", "shape": [1, 1, 28, 28], "data": [0] * 784}
        cases = [
            ({"inputs": []}, "image", "missing"),
            ({}, "inputs"),
            ([], "object"),
            ({"inputs": {}}, "inputs"),
            ({"inputs": [3]}, "inputs"),
            ({"inputs": [dict(fine, name="picture")]}, "picture", "image"),
            ({"inputs": [fine, fine]}, "twice"),
            ({"inputs": [dict(fine, datatype="INT8")]}, "INT8", "FP32"),
            ({"inputs": [dict(fine, datatype=5)]}, "datatype"),
            ({"inputs": [dict(fine, shape=[1, 1, 28])]}, "[1,1,28]", "[batch,1,28,28]"),
            ({"inputs": [dict(fine, shape=[1, 3, 28, 28])]}, "[1,3,28,28]"),
            ({"inputs": [dict(fine, shape=[-1, 1, 28, 28])]}, "shape"),
            ({"inputs": [dict(fine, shape=[1.5, 1, 28, 28])]}, "shape"),
            ({"inputs": [dict(fine, shape=[2**60, 1, 28, 28])]}, "shape"),
            ({"inputs": [dict(fine, shape=[2, 1, 28, 28])]}, "784", "1568"),
            ({"inputs": [dict(fine, data=[0] * 783 + ["x"])]}, "element 783", "FP32"),
            ({"inputs": [dict(fine, data=[0] * 783 + [1e39])]}, "element 783", "range"),
            ({"inputs": [dict(fine, data="0")]}, "list"),
            ({"inputs": [dict(fine, parameters={"binary_data_size": 3136})]}, "one of"),
            ({"inputs": [dict(fine, data=None, parameters={"binary_data_size": 3136})]}, "one of"),
            ({"inputs": [fine], "outputs": [{"name": "label"}]}, "label", "logits"),
            ({"inputs": [fine], "outputs": [{"name": "logits"}, {"name": "logits"}]}, "twice"),
            ({"inputs": [fine], "outputs": [{"name": "logits", "parameters": {"classification": 3}}]},
             "classification"),
            ({"inputs": [fine], "parameters": {"sequence_id": 7}}, "sequence_id"),
            ({"inputs": [fine], "parameters": {"timeout": -1}}, "timeout"),
            ({"inputs": [fine], "parameters": []}, "parameters"),
            ({"inputs": [fine], "id": 3}, "id"),
            ("{\"inputs\": [", "JSON", "byte"),
            ("{\"id\": \"a\", \"id\": \"b\"}", "JSON"),
            ("", "JSON"),
        ]
        for body, *words in cases:
            self.refused(s.infer("digits", body), 400, *words)
        binary = server.binary("image", "FP32", [1, 1, 28, 28], b"\0" * 3136)
        for data, size, words in [
                (b"\0" * 3135, None, ["3136", "3135"]), (b"\0" * 3137, None, ["1 bytes"]),
                (b"", None, ["3136"]), (b"\0" * 3136, "1000000", ["1000000"])]:
            text = binary["body"][:-3136]
            self.refused(s.infer("digits", body=text + data, headers={
                "Inference-Header-Content-Length": size or str(len(text))}), 400, *words)
        self.refused(s.infer("digits", body=binary["body"]), 400)
        self.refused(s.infer("digits", body=b"\0" * 3135, headers={"Inference-Header-Content-Length": "0"}),
                     400, "3135")
        for value in "x", "-1", "1e3", "99999999999999999999":
            self.refused(s.infer("digits", body="{}", headers={"Inference-Header-Content-Length": value}),
                         400, "Inference-Header-Content-Length")
        self.refused(s.infer("digits", body="{}", headers={"Content-Encoding": "gzip"}), 415, "gzip")
        self.assertEqual(s.infer("digits", {"inputs": [fine]}).status, 200)  # it is still there

    def test_folder_with_versions(self):
        for version in 1, 2, 10:
            os.makedirs(self.path("m/add/%d" % version))
            self.file("m/add/%d/model.onnx" % version, mf.one_node(
                "Add", ["n"], ["n"], initializers=[mf.floats("c", [1], [version])], extra_inputs=["c"]))
        self.file("m/flat.onnx", same())
        self.file("m/notes.txt", "not a model")
        os.mkdir(self.path("m/empty"))
        s = self.serve(self.path("m"), "--versions", "2")
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [0]}]}

        def value(path):
            return s.call("POST", "/v2/models/%s/infer" % path, json.dumps(body)).json()["outputs"][0]["data"]

        self.assertEqual(value("add"), [10])  # the newest, by number
        self.assertEqual(value("add/versions/2"), [2])
        self.refused(s.call("POST", "/v2/models/add/versions/1/infer", json.dumps(body)), 404)
        self.assertEqual(s.get("/v2/models/add").json()["versions"], ["2", "10"])
        index = {(m["name"], m["version"]): m["state"] for m in
                 s.call("POST", "/v2/repository/index", "{}").json()}
        self.assertEqual(index, {("add", "1"): "UNAVAILABLE", ("add", "2"): "READY", ("add", "10"): "READY",
                                 ("flat", "1"): "READY"})
        ready = s.call("POST", "/v2/repository/index", '{"ready": true}').json()
        self.assertEqual(len(ready), 3)
        # A new version comes, the oldest goes; a file that changed is taken anew.
        os.makedirs(self.path("m/add/11"))
        self.file("m/add/11/any_name.onnx", mf.one_node(
            "Add", ["n"], ["n"], initializers=[mf.floats("c", [1], [11])], extra_inputs=["c"]))
        self.assertEqual(value("add"), [10])
        self.assertEqual(s.call("POST", "/v2/repository/models/add/load", "{}").status, 200)
        self.assertEqual(value("add"), [11])
        self.refused(s.call("POST", "/v2/models/add/versions/2/infer", json.dumps(body)), 404)
        self.assertEqual(s.call("POST", "/v2/repository/models/add/unload").status, 200)
        self.refused(s.call("POST", "/v2/models/add/infer", json.dumps(body)), 404, "add")
        self.refused(s.call("POST", "/v2/repository/models/add/unload"), 400, "add")
        self.refused(s.call("POST", "/v2/repository/models/nothing/load"), 400, "nothing")
        self.refused(s.call("POST", "/v2/repository/models/..%2f..%2fetc/load"), 404)
        self.refused(s.call("POST", "/v2/repository/models/add/load",
                            '{"parameters": {"config": "{}"}}'), 400, "parameters")
        # A file that is no model: why, in the answer and in the index; the others stay.
        self.file("m/add/11/any_name.onnx", "nonsense")
        self.refused(s.call("POST", "/v2/repository/models/add/load"), 400)
        broken = [m for m in s.call("POST", "/v2/repository/index").json() if m["version"] == "11"]
        self.assertEqual(broken[0]["state"], "UNAVAILABLE")
        self.assertTrue(broken[0]["reason"])
        self.assertEqual(s.get("/v2/models/flat/ready").status, 200)

    def test_explicit(self):
        self.file("a.onnx", same())
        s = self.serve(self.folder.name, "--explicit")
        self.refused(s.get("/v2/models/a"), 404)
        self.assertEqual(s.call("POST", "/v2/repository/models/a/load").status, 200)
        self.assertEqual(s.get("/v2/models/a/ready").status, 200)

    def test_statistics_and_metrics(self):
        s = self.serve(DIGITS)
        data = server.binary("image", "FP32", [2, 1, 28, 28], b"\0" * 6272)
        for _ in range(3):
            self.assertEqual(s.infer("digits", **data).status, 200)
        t = s.stats("digits")
        self.assertEqual((t["inference_count"], t["execution_count"]), (6, 3))
        for part in "success", "queue", "compute_input", "compute_infer", "compute_output":
            self.assertEqual(t["inference_stats"][part]["count"], 3, part)
        total = sum(t["inference_stats"][p]["ns"] for p in
                    ("queue", "compute_input", "compute_infer", "compute_output"))
        self.assertGreater(t["inference_stats"]["compute_infer"]["ns"], 0)
        self.assertGreaterEqual(t["inference_stats"]["success"]["ns"], total)
        self.assertEqual([(b["batch_size"], b["compute_infer"]["count"]) for b in t["batch_stats"]], [(2, 3)])
        self.assertEqual(s.get("/v2/models/stats").json()["model_stats"][0]["inference_count"], 6)
        text = s.get("/metrics").body.decode()
        self.assertIn('nori_requests_success_total{model="digits",version="1"} 3\n', text)
        self.assertIn('nori_rows_total{model="digits",version="1"} 6\n', text)
        self.assertIn('nori_queue_size{model="digits",version="1"} 0\n', text)
        self.assertIn('nori_compute_duration_seconds_bucket{model="digits",version="1",le="+Inf"} 3\n', text)
        for line in text.splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? [-+.\de]+)$")

    def test_what_the_protocol_cannot_say(self):
        odd = mf.model(mf.Graph([mf.node("SequenceConstruct", ["x"], ["s"]), mf.node("Identity", ["x"], ["y"])],
                                [mf.value("x", mf.tensor_type(mf.FLOAT, ["n"]))],
                                [mf.value("s", mf.sequence_type(mf.tensor_type(mf.FLOAT, ["n"]))),
                                 mf.value("y", mf.tensor_type(mf.FLOAT, ["n"]))]))
        s = self.serve(self.models(odd=odd))
        self.assertEqual([o["name"] for o in s.get("/v2/models/odd").json()["outputs"]], ["y"])
        self.assertTrue(any("left out" in line for line in s.err if line))
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [4]}]}
        self.assertEqual(s.infer("odd", body).json()["outputs"][0]["data"], [4])

    def test_ends(self):
        self.file("bad.onnx", "nonsense")
        self.nori("serve", self.path("bad.onnx"), "--port", "0", code=3)
        self.nori("serve", self.path("none.onnx"), "--port", "0", code=3)
        self.nori("serve", code=2)
        self.nori("serve", DIGITS, "--batch-delay", "2ms", code=2)
        self.nori("serve", DIGITS, "--explicit", code=2)
        os.mkdir(self.path("void"))
        self.nori("serve", self.path("void"), "--port", "0", code=3)
        r = self.nori("serve", DIGITS, "--address", "0.0.0.0", "--port", "0", code=2)
        self.assertIn("token", r.err)
        shutil.copy(DIGITS, self.path("good.onnx"))
        s = self.serve(self.folder.name, "--keep-going", started=True)
        s.wait_for(s.err, "nori: warning: not all could be loaded")
        self.assertEqual(s.get("/v2/models/good/ready").status, 200)
        ready = s.get("/v2/health/ready")
        self.assertEqual(ready.status, 503)
        self.assertTrue(ready.json()["reason"])
        taken = self.nori("serve", DIGITS, "--port", str(s.port), code=None)
        self.assertEqual(taken.code, 3)
        self.assertIn("another program", taken.err)
        s.signal(signal.SIGINT)
        self.assertEqual(s.process.wait(20), 0)


if __name__ == "__main__":
    case.main()
