#!/usr/bin/env python3
"""nori serve with many callers, long preparations and its end: batching, queue, deadlines, readiness."""
import json
import os
import struct
import threading
import time

import case
import model_file as mf
import server
from server import ServeCase

FAKE = os.environ.get("NORI_FAKE_PROVIDER")
SCALE = 10 if case.SANITIZED else 1


def loop_model(times):
    """x plus one, in a Loop: times of about half a microsecond each, ten times that under a sanitizer."""
    body = mf.Graph([mf.node("Add", ["v", "one"], ["w"]), mf.node("Identity", ["go"], ["on"])],
                    [mf.value("i", mf.tensor_type(mf.INT64, [])), mf.value("go", mf.tensor_type(mf.BOOL, [])),
                     mf.value("v", mf.tensor_type(mf.FLOAT, ["n"]))],
                    [mf.value("on", mf.tensor_type(mf.BOOL, [])), mf.value("w", mf.tensor_type(mf.FLOAT, ["n"]))],
                    [mf.floats("one", [1], [1.0])], name="body")
    return mf.model(mf.Graph([mf.node("Loop", ["times", "", "x"], ["y"], body=body)],
                             [mf.value("x", mf.tensor_type(mf.FLOAT, ["n"]))],
                             [mf.value("y", mf.tensor_type(mf.FLOAT, ["n"]))],
                             [mf.ints("times", [], [times])]))


def floats(name, shape, values, **more):
    return server.binary(name, "FP32", shape, struct.pack("<%df" % len(values), *values), **more)


class Load(ServeCase):
    def together(self, count, call):
        """Calls at once; what each gave, in their order."""
        out, start = [None] * count, threading.Barrier(count)

        def one(i):
            start.wait()
            out[i] = call(i)

        threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return out

    def test_rows_go_back_to_their_callers(self):
        """Callers with 1 to 3 rows of two widths: joined by width only, and each gets its own rows."""
        path = self.file("double.onnx", mf.model(mf.Graph(
            [mf.node("Add", ["x", "x"], ["y"]), mf.node("ReduceSum", ["x", "axes"], ["s"], keepdims=0)],
            [mf.value("x", mf.tensor_type(mf.FLOAT, ["n", "k"]))],
            [mf.value("y", mf.tensor_type(mf.FLOAT, ["n", "k"])), mf.value("s", mf.tensor_type(mf.FLOAT, ["n"]))],
            [mf.ints("axes", [1], [1])])))
        s = self.serve(path, "--batch", "16", "--batch-delay", "100ms")

        def call(i):
            rows, width = 1 + i % 3, 2 + i % 2
            values = [float(100 * i + k) for k in range(rows * width)]
            a = s.infer("double", **floats("x", [rows, width], values))
            self.assertEqual(a.status, 200, a.body)
            b = a.binary()
            self.assertEqual(b["y"], struct.pack("<%df" % len(values), *[2 * v for v in values]))
            sums = [sum(values[r * width:(r + 1) * width]) for r in range(rows)]
            self.assertEqual(b["s"], struct.pack("<%df" % rows, *sums))
            return True

        self.assertEqual(self.together(24, call), [True] * 24)
        t = s.stats("double")
        self.assertEqual(t["inference_count"], sum(1 + i % 3 for i in range(24)))
        self.assertLess(t["execution_count"], 24)
        self.assertGreater(max(b["batch_size"] for b in t["batch_stats"]), 3)
        self.assertLessEqual(max(b["batch_size"] for b in t["batch_stats"]), 16)

    def test_texts_are_joined(self):
        """Not tried out before (which texts would do?), so not joined, and said so."""
        path = self.file("t.onnx", mf.one_node("Identity", ["n"], ["n"], mf.STRING))
        s = self.serve(path, "--batch", "4")
        self.assertIn("texts", s.get("/v2/models/t/config").json()["parameters"]["not_joined_because"]
                      ["string_value"])

    def test_rows_that_meet_are_not_joined(self):
        """A sum along axis 0 (time, say) has a free first axis as well."""
        path = self.file("time.onnx", mf.one_node("CumSum", ["n"], ["n"], extra_inputs=["axis"],
                                                  initializers=[mf.ints("axis", [], [0])]))
        fixed = self.file("fixed.onnx", mf.one_node("Relu", [2, 3], [2, 3]))
        s = self.serve(path, fixed, "--batch", "8", "--batch-delay", "50ms")
        why = s.get("/v2/models/time/config").json()["parameters"]
        self.assertEqual(why["joined_rows"]["string_value"], "1")
        self.assertIn("not the same", why["not_joined_because"]["string_value"])
        why = s.get("/v2/models/fixed/config").json()["parameters"]["not_joined_because"]["string_value"]
        self.assertIn("first axis", why)
        got = self.together(8, lambda i: s.infer("time", **floats("x", [2], [1.0, float(i)])).binary()["y"])
        self.assertEqual(got, [struct.pack("<2f", 1, 1 + i) for i in range(8)])

    def test_one_that_fails_does_not_fail_others(self):
        """An index out of range is found by running: alone the others are right."""
        path = self.file("g.onnx", mf.model(mf.Graph(
            [mf.node("Gather", ["table", "x"], ["y"])], [mf.value("x", mf.tensor_type(mf.INT64, ["n"]))],
            [mf.value("y", mf.tensor_type(mf.FLOAT, ["n"]))], [mf.floats("table", [4], [10, 20, 30, 40])])))
        s = self.serve(path, "--batch", "32", "--batch-delay", "100ms")

        def call(i):
            return s.infer("g", **server.binary("x", "INT64", [1], struct.pack("<q", 99 if i == 5 else i % 4)))

        got = self.together(12, call)
        for i, a in enumerate(got):
            if i == 5:
                self.refused(a, 400, "99")
            else:
                self.assertEqual(a.binary()["y"], struct.pack("<f", 10 * (1 + i % 4)))
        self.assertEqual(s.stats("g")["inference_stats"]["fail"]["count"], 1)

    def test_queue_is_bounded(self):
        path = self.file("slow.onnx", loop_model(300000 // SCALE))
        s = self.serve(path, "--queue", "3")
        got = self.together(16, lambda i: s.infer("slow", **floats("x", [1], [float(i)])))
        full = [a for a in got if a.status == 503]
        done = [a for a in got if a.status == 200]
        self.assertEqual(len(full) + len(done), 16)
        self.assertGreaterEqual(len(done), 3)
        self.assertGreaterEqual(len(full), 5)
        for a in full:
            self.assertIn("queue", a.json()["error"])
            self.assertGreaterEqual(int(a.headers["retry-after"]), 1)
        text = s.get("/metrics").body.decode()
        self.assertIn('nori_requests_rejected_total{model="slow",version="1"} %d\n' % len(full), text)

    def test_deadlines(self):
        path = self.file("slow.onnx", loop_model(3000000 // SCALE))
        s = self.serve(path)
        first = threading.Thread(target=lambda: s.infer("slow", **floats("x", [1], [1.0])))
        first.start()
        while s.stats("slow")["queue_now"]["running"] == 0:
            time.sleep(0.005)
        body = floats("x", [1], [1.0])
        body["headers"]["Request-Timeout-Ms"] = "30"
        self.refused(s.infer("slow", **body), 504, "time")
        self.assertTrue(first.is_alive())  # answered when its time was over, not when its turn came
        self.refused(s.infer("slow", **floats("x", [1], [1.0], parameters={
            "timeout": 20000, "binary_data_output": True})), 504)
        self.assertEqual(s.stats("slow")["queue_now"]["waiting"], 0)
        first.join()
        # One whose turn comes in time, and whose result is late.
        body["headers"]["Request-Timeout-Ms"] = "300"
        self.refused(s.infer("slow", **body), 504, "after")
        self.refused(s.infer("slow", body="{}", headers={"Request-Timeout-Ms": "soon"}), 400,
                     "Request-Timeout-Ms")
        self.assertEqual(s.infer("slow", **floats("x", [1], [1.0])).status, 200)

    def test_ready_when_prepared(self):
        """A provider that compiles for three seconds: not ready until then, and the second time at once."""
        if not FAKE:
            self.skipTest("NORI_FAKE_PROVIDER is not set")
        path = self.file("m.onnx", mf.one_node("Relu", ["n"], ["n"]))
        os.mkdir(self.path("cache"))
        args = (path, "--provider", FAKE + ":cost=1,slow=3000", "--cache", self.path("cache"), "--json")
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [-1, 2]}]}
        began = time.monotonic()
        s = self.serve(*args, started=True)
        seen = 0
        while True:
            ready = s.get("/v2/health/ready")
            if ready.status == 200:
                break
            self.assertEqual(ready.status, 503)
            self.assertEqual(s.get("/v2/health/live").status, 200)
            early = s.infer("m", body)
            self.assertIn(early.status, (200, 503))
            if early.status == 503:
                self.assertIn("prepared", early.json()["error"])
                self.assertEqual(early.headers["retry-after"], "1")
            seen += any("compile" in p["phase"] for p in ready.json()["preparing"])
            time.sleep(0.05)
        self.assertGreater(time.monotonic() - began, 2.9)
        self.assertGreater(seen, 5)
        self.assertEqual(s.infer("m", body).json()["outputs"][0]["data"], [0, 2])
        events = [json.loads(line) for line in s.out if line]
        steps = [e for e in events if e["event"] == "preparing" and "kernels" in e.get("text", "")]
        self.assertGreaterEqual(len(steps), 10)
        self.assertEqual(sorted(e["done"] for e in steps), [e["done"] for e in steps])
        self.assertTrue(any(e["event"] == "cache" and e["text"].startswith("miss") for e in events))
        self.assertEqual(s.stop(), 0)
        began = time.monotonic()
        s = self.serve(*args, started=True)
        while s.get("/v2/health/ready").status != 200:
            time.sleep(0.02)
        self.assertLess(time.monotonic() - began, 2.5)
        hit = False
        while not hit and time.monotonic() - began < 10:  # the line may come behind the answer
            hit = any('"cache"' in line and "hit" in line for line in list(s.out) if line)
            time.sleep(0.02)
        self.assertTrue(hit)

    def test_a_size_outside_what_was_compiled(self):
        """A provider that declares N from 2 to 3: other sizes are refused with both, and nothing is built anew."""
        if not FAKE:
            self.skipTest("NORI_FAKE_PROVIDER is not set")
        s = self.serve(self.file("m.onnx", mf.one_node("Relu", ["N"], ["N"])), "--provider",
                       FAKE + ":cost=1,low=2,high=3", "--json")
        prepared = sum('"preparing"' in line for line in s.out if line)
        for size, code in (2, 200), (3, 200), (5, 400), (1, 400), (2, 200):
            a = s.infer("m", **floats("x", [size], [-1.0] * size))
            self.assertEqual(a.status, code, a.body)
            if code == 400:
                self.assertRegex(a.json()["error"], "N.*2.*3.*%d" % size)
        self.assertEqual(sum('"preparing"' in line for line in s.out if line), prepared)

    def test_end_loses_nothing(self):
        """Callers with connections that stay, until the server says it ends: each answer is whole."""
        path = self.file("slow.onnx", loop_model(20000 // SCALE))
        s = self.serve(path, "--queue", "1000", "--notice", "200ms")
        stop, bad, done = threading.Event(), [], []

        def caller(i):
            c = s.connect()
            while not stop.is_set():
                try:
                    a = s.infer("slow", connection=c, **floats("x", [1], [float(i)]))
                except ConnectionRefusedError:
                    return  # it takes no more: this was never accepted
                except Exception as e:
                    bad.append(repr(e))
                    return
                if a.status != 200 or struct.unpack("<f", a.binary()["y"])[0] != i + 20000 // SCALE:
                    bad.append((a.status, a.body))
                    return
                done.append(i)
                if a.headers.get("connection", "").lower() == "close":
                    c.close()
                    c = s.connect()

        threads = [threading.Thread(target=caller, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        time.sleep(0.4)
        s.signal()
        time.sleep(0.05)
        ready = s.get("/v2/health/ready")
        self.assertEqual((ready.status, ready.json()["reason"]), (503, "the server is ending"))
        self.assertEqual(s.process.wait(20), 0)
        stop.set()
        for t in threads:
            t.join()
        self.assertEqual(bad, [])
        self.assertGreater(len(done), 0)

    def test_end_answers_what_was_accepted(self):
        """A queue full of requests when the signal comes: all are answered."""
        path = self.file("slow.onnx", loop_model(400000 // SCALE))
        s = self.serve(path, "--queue", "100", "--drain", "200s")
        out = []
        threads = [threading.Thread(target=lambda i=i: out.append(
            s.infer("slow", timeout=200, **floats("x", [1], [float(i)])).status)) for i in range(12)]
        for t in threads:
            t.start()
        while sum(s.stats("slow")["queue_now"][k] for k in ("waiting", "running")) < 12:
            time.sleep(0.002)
        s.signal()
        self.assertEqual(s.process.wait(200), 0)
        for t in threads:
            t.join()
        self.assertEqual(out, [200] * 12)

    def test_end_has_a_limit(self):
        """What cannot be answered in time gets 503, and the exit code says so."""
        path = self.file("slow.onnx", loop_model(2000000 // SCALE))
        s = self.serve(path, "--queue", "100", "--drain", "100ms")
        out = []
        threads = [threading.Thread(target=lambda: out.append(
            s.infer("slow", **floats("x", [1], [1.0])).status)) for i in range(6)]
        for t in threads:
            t.start()
        while sum(s.stats("slow")["queue_now"][k] for k in ("waiting", "running")) < 6:
            time.sleep(0.002)
        s.signal()
        self.assertEqual(s.process.wait(30), 1)
        for t in threads:
            t.join()
        self.assertEqual(len(out), 6)
        self.assertGreaterEqual(out.count(503), 4)

    def test_reload_loses_nothing(self):
        """A model exchanged again and again while it is called."""
        path = self.file("m.onnx", mf.one_node("Identity", ["n"], ["n"]))
        s = self.serve(self.folder.name)
        stop, bad = threading.Event(), []

        def caller():
            c = s.connect()
            while not stop.is_set():
                a = s.infer("m", connection=c, **floats("x", [1], [3.0]))
                if a.status != 200:
                    bad.append((a.status, a.body))

        threads = [threading.Thread(target=caller) for _ in range(4)]
        for t in threads:
            t.start()
        for i in range(15):
            os.utime(path, (i + 1, i + 1))
            self.assertEqual(s.call("POST", "/v2/repository/models/m/load").status, 200)
        stop.set()
        for t in threads:
            t.join()
        self.assertEqual(bad, [])


if __name__ == "__main__":
    case.main()
