#!/usr/bin/env python3
"""Three replicas of nori serve behind HAProxy, one killed under load: no request fails. A thousand
connections at once to one: nothing but answers and announced refusals, and memory that stays. And what
joining requests gains."""
import json
import math
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import time

import case
import model_file as mf
import server

DIGITS = os.path.join(case.DIGITS, "digits.onnx")
LOAD = os.environ.get("NORI_SERVE_LOAD")
SECONDS = float(os.environ.get("NORI_SERVE_SECONDS", "10"))

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def small_cnn(hidden=2048):
    """Two convolutions and two dense layers, as taught with MNIST; 6.5 MB of weights."""
    r = random.Random(1)

    def weights(name, dims):
        return mf.floats(name, dims, [r.gauss(0, 0.05) for _ in range(math.prod(dims))])

    return mf.model(mf.Graph(
        [mf.node("Conv", ["x", "w1", "b1"], ["a"], pads=[1, 1, 1, 1]), mf.node("Relu", ["a"], ["ar"]),
         mf.node("MaxPool", ["ar"], ["ap"], kernel_shape=[2, 2], strides=[2, 2]),
         mf.node("Conv", ["ap", "w2", "b2"], ["b"], pads=[1, 1, 1, 1]), mf.node("Relu", ["b"], ["br"]),
         mf.node("MaxPool", ["br"], ["bp"], kernel_shape=[2, 2], strides=[2, 2]),
         mf.node("Flatten", ["bp"], ["f"]), mf.node("Gemm", ["f", "w3", "b3"], ["g"]),
         mf.node("Relu", ["g"], ["gr"]), mf.node("Gemm", ["gr", "w4", "b4"], ["y"])],
        [mf.value("x", mf.tensor_type(mf.FLOAT, ["n", 1, 28, 28]))],
        [mf.value("y", mf.tensor_type(mf.FLOAT, ["n", 10]))],
        [weights("w1", [8, 1, 3, 3]), weights("b1", [8]), weights("w2", [16, 8, 3, 3]), weights("b2", [16]),
         weights("w3", [784, hidden]), weights("b3", [hidden]), weights("w4", [hidden, 10]),
         weights("b4", [10])]))


class Many(server.ServeCase):
    def request(self, model="digits", name="image"):
        """A request as it goes over the wire, in a file."""
        picture = struct.pack("<784f", *[(37 * i % 256) / 255 for i in range(784)])
        b = server.binary(name, "FP32", [1, 1, 28, 28], picture)
        head = "POST /v2/models/%s/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % (
            model, len(b["body"]))
        head += "".join("%s: %s\r\n" % h for h in b["headers"].items())
        return self.file("request", head.encode() + b"\r\n" + b["body"])

    def load(self, port, connections, seconds, *more, request=None):
        return subprocess.Popen([LOAD, "127.0.0.1", str(port), str(connections), str(seconds), "1",
                                 request or self.request(), *more], stdout=subprocess.PIPE, text=True)

    def result(self, process):
        out = json.loads(process.communicate(timeout=120)[0])
        print("\n%s" % out, file=sys.stderr)
        return out

    def test_one_killed_under_load(self):
        if not shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin"):
            self.skipTest("haproxy is not installed")
        replicas = [self.serve(DIGITS) for _ in range(3)]
        port = free_port()
        with open(os.path.join(case.SOURCE, "deploy", "haproxy.cfg"), encoding="utf-8") as f:
            text = f.read().replace("127.0.0.1:9000", "127.0.0.1:%d" % port)
        for i, r in enumerate(replicas):
            self.assertIn("server r%d 127.0.0.1:800%d" % (i, i), text)
            text = text.replace("127.0.0.1:800%d" % i, "127.0.0.1:%d" % r.port)
        config = self.file("haproxy.cfg", text)
        proxy = subprocess.Popen([shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin"), "-db", "-q",
                                  "-f", config], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.terminate)
        end = time.monotonic() + 20
        while True:
            try:
                if b" 200 " in self.through(port)[:20]:
                    break
            except OSError:
                pass
            self.assertLess(time.monotonic(), end, "HAProxy does not answer")
            time.sleep(0.1)
        process = self.load(port, 32, SECONDS)
        time.sleep(SECONDS / 3)
        replicas[1].process.kill()  # not asked to end: gone in the middle of what it did
        time.sleep(SECONDS / 3)
        replicas[2].signal()  # this one may say goodbye
        out = self.result(process)
        self.assertEqual((out["errors"], out["other"], out["refused"]), (0, 0, 0), out)
        self.assertGreater(out["ok"], 100)
        self.assertEqual(replicas[2].process.wait(20), 0)
        self.assertGreater(replicas[0].stats("digits")["inference_count"], 0)

    def through(self, port):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
            s.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return s.recv(1000)

    def figure(self, s, name):
        text = s.get("/metrics").body.decode()
        return float([line for line in text.splitlines() if line.startswith(name + " ")][0].split()[1])

    def resident(self, s):
        return self.figure(s, "process_resident_memory_bytes")

    def test_joining_pays(self):
        """A small network with a dense layer, asked by 32 callers: joined requests read its weights once.
        Judged by the server's own CPU time a request, which neighbours disturb less than rates."""
        cnn = self.file("cnn.onnx", small_cnn())
        servers = [self.serve(cnn), self.serve(cnn, "--batch", "32")]
        request = self.request("cnn", "x")
        took = [[], []]
        for _ in range(3):
            for i, s in enumerate(servers):
                before = self.figure(s, "process_cpu_seconds_total")
                out = self.result(self.load(s.port, 32, 2, "any", request=request))
                self.assertEqual((out["errors"], out["other"], out["refused"]), (0, 0, 0), out)
                took[i].append((self.figure(s, "process_cpu_seconds_total") - before) / out["ok"] * 1e6)
        alone, joined = (sorted(t)[1] for t in took)
        t = servers[1].stats("cnn")
        print("CPU a request: alone %.0f us, joined %.0f us (%.1f rows a run)" % (
            alone, joined, t["inference_count"] / t["execution_count"]), file=sys.stderr)
        if not case.SANITIZED:
            self.assertGreater(alone, 1.5 * joined)

    def test_a_thousand_connections(self):
        s = self.serve(DIGITS, "--batch", "16", "--queue", "500")
        seconds = float(os.environ.get("NORI_SERVE_SECONDS", "60"))
        process = self.load(s.port, 1000, seconds, "any")
        time.sleep(seconds / 6)
        before = self.resident(s)
        time.sleep(seconds * 4 / 6)
        after = self.resident(s)
        out = self.result(process)
        print("resident %.1f MB after a sixth of the time, %.1f MB near its end" % (before / 1e6, after / 1e6),
              file=sys.stderr)
        self.assertEqual((out["errors"], out["other"], out["reconnects"]), (0, 0, 0), out)
        self.assertGreater(out["ok"], 1000)
        self.assertLess(after, 1.02 * before + 1e6)
        t = s.stats("digits")
        self.assertEqual(t["inference_count"], out["ok"])
        self.assertEqual(t["inference_stats"]["fail"]["count"], out["refused"])
        self.assertEqual(s.stop(), 0)


if __name__ == "__main__":
    if not LOAD:
        print("NORI_SERVE_LOAD is not set: no program to make load with")
        sys.exit(77)
    case.main()
