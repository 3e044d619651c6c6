"""A `nori serve` of its own for each test: on loopback, on a free port, ended with the test."""
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time

import case

FORMATS = {"FP32": "f", "FP64": "d", "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q", "UINT8": "B",
           "UINT16": "H", "UINT32": "I", "UINT64": "Q", "BOOL": "?", "FP16": "e"}


class Server:
    """started: not waited for until it is ready."""

    def __init__(self, *args, started=False, env=None):
        self.out, self.err = [], []
        self.process = subprocess.Popen([case.NORI, "serve", *args, "--port", "0"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        self.lines = threading.Condition()
        for pipe, to in (self.process.stdout, self.out), (self.process.stderr, self.err):
            threading.Thread(target=self.read, args=(pipe, to), daemon=True).start()
        said = '{"event": "%s"' if "--json" in args else "%s: "
        line = self.wait_for(self.out, said % "listening")
        self.url = json.loads(line)["address"] if "--json" in args else line.split(": ", 1)[1]
        self.host, port = self.url.split("://")[1].rsplit(":", 1)
        self.port = int(port)
        if not started:
            self.wait_for(self.out, said % "ready")

    def read(self, pipe, to):
        for line in pipe:
            with self.lines:
                to.append(line.rstrip("\n"))
                self.lines.notify_all()
        with self.lines:
            to.append(None)
            self.lines.notify_all()

    def wait_for(self, lines, start, seconds=30):
        end = time.monotonic() + seconds
        with self.lines:
            while True:
                for line in lines:
                    if line is not None and line.startswith(start):
                        return line
                if None in lines or not self.lines.wait(end - time.monotonic()):
                    raise AssertionError("no \"%s\": %s %s" % (start, self.out, self.err))

    def connect(self, timeout=30):
        return http.client.HTTPConnection(self.host.strip("[]"), self.port, timeout=timeout)

    def raw(self, data, timeout=10):
        """Sends bytes as they are, gives all that comes back."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as s:
            s.sendall(data)
            got = b""
            try:
                while True:
                    piece = s.recv(65536)
                    if not piece:
                        return got
                    got += piece
            except (socket.timeout, ConnectionResetError):
                return got

    def call(self, method, path, body=None, headers=None, connection=None, timeout=30):
        c = connection or self.connect(timeout)
        c.request(method, path, body, headers or {})
        r = c.getresponse()
        answer = Answer(r.status, dict((k.lower(), v) for k, v in r.getheaders()), r.read())
        if not connection:
            c.close()
        return answer

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def infer(self, model, body, **more):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        return self.call("POST", "/v2/models/%s/infer" % model, body, **more)

    def stats(self, model):
        return self.get("/v2/models/%s/stats" % model).json()["model_stats"][0]

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def stop(self, seconds=30):
        """The exit code."""
        if self.process.poll() is None:
            self.signal()
        code = self.process.wait(seconds)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        size = self.headers.get("inference-header-content-length")
        return json.loads(self.body[:int(size)] if size else self.body)

    def binary(self):
        """The binary data of outputs by name, as bytes."""
        head, out = self.json(), {}
        at = int(self.headers["inference-header-content-length"])
        for o in head["outputs"]:
            size = o.get("parameters", {}).get("binary_data_size")
            if size is not None:
                out[o["name"]] = self.body[at:at + size]
                at += size
        assert at == len(self.body), (at, len(self.body))
        return out


def pack(datatype, values):
    """Binary data of the protocol."""
    if datatype == "BYTES":
        return b"".join(struct.pack("<I", len(v)) + v for v in values)
    if datatype == "BF16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack("<%d%s" % (len(values), FORMATS[datatype]), *values)


def binary(name, datatype, shape, data, **more):
    """Body and headers of a request with binary input and output."""
    head = {"inputs": [{"name": name, "datatype": datatype, "shape": shape,
                        "parameters": {"binary_data_size": len(data)}}],
            "parameters": {"binary_data_output": True}, **more}
    text = json.dumps(head).encode()
    return {"body": text + data, "headers": {"Inference-Header-Content-Length": str(len(text)),
                                             "Content-Type": "application/octet-stream"}}


class ServeCase(case.Case):
    def serve(self, *args, **more):
        server = Server(*args, **more)
        self.addCleanup(self.ended, server)
        return server

    def ended(self, server):
        """A test ends its server, and a server ends."""
        self.assertIsNotNone(server.stop())

    def refused(self, answer, status, *words):
        self.assertEqual(answer.status, status, answer.body)
        text = answer.json()["error"]
        for word in words:
            self.assertIn(word, text)
