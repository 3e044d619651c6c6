#!/usr/bin/env python3
"""nori serve against callers that are wrong, slow, many or not allowed: a clear no, and it stays."""
import json
import os
import socket
import ssl
import struct
import subprocess
import time

import case
import model_file as mf
import server
from server import ServeCase

DIGITS = os.path.join(case.DIGITS, "digits.onnx")
GOOD = (b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\n"
        b"Inference-Header-Content-Length: 0\r\nContent-Length: 3136\r\n\r\n" + b"\0" * 3136)


class Hostile(ServeCase):
    def lives(self, s):
        c = s.connect()
        a = s.call("POST", "/v2/models/digits/infer", b"\0" * 3136,
                   {"Inference-Header-Content-Length": "0"}, connection=c)
        c.close()
        self.assertEqual(a.status, 200)

    def status(self, answer):
        self.assertRegex(answer[:12], rb"^HTTP/1\.[01] \d\d\d$", answer[:200])
        return int(answer[9:12])

    def test_malformed_http(self):
        s = self.serve(DIGITS, "--receive-timeout", "500ms")
        for data, codes in [
                (b"GARBAGE\r\n\r\n", (400,)),
                (b"\0\1\2\3\r\n\r\n", (400, 408)),
                (b"GET /v2 HTTP/1.1\r\n\r\n", (400,)),  # no Host
                (b"GET /v2 HTTP/9.9\r\nHost: x\r\n\r\n", (400, 505)),
                (b"GET /v2 HTTP/1.1\r\nHost: x\r\nbroken header\r\n\r\n", (400,)),
                (b"BREW /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", (405,)),
                (b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", (400,)),
                (b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n", (400,)),
                (b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\n"
                 b"Content-Length: 99999999999999999999999\r\n\r\n", (400, 413)),
                (b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                 b"zz\r\nxx\r\n", (400,)),
                (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", (414, 431)),
                (b"GET /v2 HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 100000 + b"\r\n\r\n", (431,)),
                (b"GET /v2 HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 20000 + b"\r\n", (431,)),
                (b"GET /%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", (400,)),
                (b"GET /%ff/../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", (404,))]:
            self.assertIn(self.status(s.raw(data)), codes, data[:80])
            self.lives(s)

    def test_sizes(self):
        s = self.serve(DIGITS, "--max-body", "10000", "--max-json", "5000", "--max-held", "20000")
        post = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\n"
        for head, body, code in [
                (b"Content-Length: 10001\r\n\r\n", b"", 413),
                (b"Content-Length: 5001\r\n\r\n", b"", 413),
                (b"Content-Length: 9000\r\nInference-Header-Content-Length: 5001\r\n\r\n", b"", 413),
                (b"Transfer-Encoding: chunked\r\n\r\n", b"2000\r\n" + b" " * 8192 + b"\r\n" + b"2000\r\n"
                 + b" " * 8192 + b"\r\n0\r\n\r\n", 413),
                (b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
                 b"1770\r\n" + b" " * 6000 + b"\r\n0\r\n\r\n", 413)]:
            answer = s.raw(post + head + body)
            self.assertEqual(self.status(answer), code, head)
            self.assertIn(b"error", answer)
            self.lives(s)
        # Three bodies that are promised and do not come: the third finds no room, and then they end.
        held = [socket.create_connection((s.host, s.port)) for _ in range(2)]
        for h in held:
            h.sendall(post + b"Content-Length: 9000\r\nInference-Header-Content-Length: 0\r\n\r\n")
        time.sleep(0.2)
        a = s.call("POST", "/v2/models/digits/infer", b"\0" * 3136, {"Inference-Header-Content-Length": "0"})
        self.refused(a, 503, "bytes")
        for h in held:
            h.close()
        time.sleep(0.2)
        self.lives(s)
        self.assertIn("nori_body_bytes 0\n", s.get("/metrics").body.decode())
        # A chunked body of the right size is as good as any.
        chunks = b"".join(b"%x\r\n%s\r\n" % (98, b"\0" * 98) for _ in range(32)) + b"0\r\n\r\n"
        answer = s.raw(post + b"Inference-Header-Content-Length: 0\r\nConnection: close\r\n"
                       b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
        self.assertEqual(self.status(answer), 200)

    def test_slow_clients(self):
        s = self.serve(DIGITS, "--receive-timeout", "400ms", "--idle-timeout", "900ms")
        idle = socket.create_connection((s.host, s.port))
        line = socket.create_connection((s.host, s.port))
        slow = socket.create_connection((s.host, s.port))
        line.sendall(b"GET /v2 HTT")
        slow.sendall(GOOD[:200])
        began, got = time.monotonic(), b""
        slow.settimeout(0.05)
        while time.monotonic() - began < 5:  # a byte now and then does not help
            try:
                slow.sendall(b"\0")
                got += slow.recv(4096)
                if b"}" in got:
                    break
            except socket.timeout:
                pass
            except OSError:
                break
        self.assertEqual(self.status(got), 408)
        self.assertLess(time.monotonic() - began, 3)
        for c in idle, line:
            c.settimeout(5)
            self.assertIn(c.recv(4096)[:12], (b"", b"HTTP/1.1 408"))
            c.close()
        slow.close()
        self.lives(s)

    def test_callers_that_leave(self):
        """In the middle of the head, of the body, and while the answer is made."""
        s = self.serve(DIGITS)
        for cut in 10, 60, 120, 1000, len(GOOD) - 1, len(GOOD), len(GOOD):
            for _ in range(5):
                with socket.create_connection((s.host, s.port)) as c:
                    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    c.sendall(GOOD[:cut])
        self.lives(s)
        end = time.monotonic() + 5
        while "nori_body_bytes 0\n" not in s.get("/metrics").body.decode() and time.monotonic() < end:
            time.sleep(0.05)
        text = s.get("/metrics").body.decode()
        self.assertIn("nori_body_bytes 0\n", text)
        self.assertEqual(s.stop(), 0)

    def test_several_requests_at_once(self):
        """Pipelined: answered one after another on the connection."""
        s = self.serve(DIGITS)
        answer = s.raw(GOOD * 3 + b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertEqual(answer.count(b"HTTP/1.1 200"), 4)

    def test_one_answer_ends_a_connection(self):
        """Callers that stay until the server hangs up get their answer and nothing behind it."""
        s = self.serve(DIGITS)
        for data in (b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"GET /v2 HTTP/1.0\r\n\r\n",
                     b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\nGET /v2 HTTP/1.1\r\nHost: x\r\n"
                     b"Connection: Close\r\n\r\n"):
            answer = s.raw(data)
            self.assertEqual(answer.count(b"HTTP/1."), data.count(b"HTTP/1."), answer)
            self.assertTrue(answer.endswith(b"}\n"), answer)
        self.assertIn('nori_http_responses_total{code="4xx"} 0\n', s.get("/metrics").body.decode())

    def test_token(self):
        token = self.file("token", "s3cret-token\nsecond line\n")
        s = self.serve(DIGITS, "--token-file", token)
        for path in "/v2", "/v2/models/digits", "/metrics", "/v2/models/stats":
            a = s.get(path)
            self.refused(a, 401, "token")
            self.assertEqual(a.headers["www-authenticate"], "Bearer")
            for wrong in ("Bearer s3cret-tokeN", "Bearer s3cret", "Bearer s3cret-token2", "Bearer ", "Basic x",
                          "s3cret-token"):
                self.assertEqual(s.get(path, headers={"Authorization": wrong}).status, 401, wrong)
            self.assertEqual(s.get(path, headers={"Authorization": "Bearer s3cret-token"}).status, 200)
        self.assertEqual(s.get("/v2/health/ready").status, 200)
        self.assertEqual(s.get("/").status, 200)
        self.refused(s.infer("digits", body=b"\0" * 3136), 401)
        for text in "short\n", "", "has space in it\n":
            self.nori("serve", DIGITS, "--port", "0", "--token-file", self.file("t", text), code=3)

    def test_other_origins(self):
        """What a page of somebody else's, open in a browser here, could try."""
        s = self.serve(DIGITS)
        own = "%s:%d" % (s.host, s.port)
        raw = {"Inference-Header-Content-Length": "0"}
        for origin, host, code in [("http://evil.example", own, 403), ("null", own, 403),
                                   ("http://evil.example", "evil.example", 403), ("http://" + own, own, 200),
                                   ("http://localhost:%d" % s.port, "localhost:%d" % s.port, 200)]:
            a = s.infer("digits", body=b"\0" * 3136, headers={**raw, "Origin": origin, "Host": host})
            self.assertEqual(a.status, code, (origin, host))
        page = s.get("/")
        policy = page.headers["content-security-policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        for path in "/", "/page.js", "/page.css":
            body = s.get(path).body.decode()
            self.assertNotRegex(body, r"https?://|//[a-z]+\.[a-z]|@import|<script>|style=\"|onclick", path)

    def test_addresses(self):
        for address in "::1", "127.0.0.2", "localhost":
            s = self.serve(DIGITS, "--address", address)
            self.assertEqual(s.get("/v2/health/ready").status, 200)
        s = self.serve(DIGITS, "--address", "0.0.0.0", "--insecure")
        self.assertEqual(s.get("/v2/health/ready").status, 200)
        self.nori("serve", DIGITS, "--address", "example.org", "--port", "0", code=2)
        self.nori("serve", DIGITS, "--address", "192.0.2.1", "--insecure", "--port", "0", code=3)

    def test_tls(self):
        if subprocess.run(["openssl", "version"], capture_output=True).returncode:
            self.skipTest("openssl is not there to make a certificate")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                        self.path("key"), "-out", self.path("cert")], check=True, capture_output=True)
        s = self.serve(DIGITS, "--cert", self.path("cert"), "--key", self.path("key"))
        self.assertTrue(s.url.startswith("https://"))
        context = ssl.create_default_context(cafile=self.path("cert"))
        with socket.create_connection((s.host, s.port)) as plain, \
                context.wrap_socket(plain, server_hostname="127.0.0.1") as c:
            self.assertIn(c.version(), ("TLSv1.2", "TLSv1.3"))
            c.sendall(GOOD.replace(b"Host: localhost", b"Host: localhost\r\nConnection: close"))
            got = b""
            while piece := c.recv(4096):
                got += piece
        self.assertEqual(self.status(got), 200)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises((ssl.SSLError, OSError)):
            with socket.create_connection((s.host, s.port)) as plain:
                old.wrap_socket(plain)
        s.raw(GOOD)  # not TLS: no answer that could be read, and it stays
        with socket.create_connection((s.host, s.port)) as plain, \
                context.wrap_socket(plain, server_hostname="127.0.0.1"):
            pass
        self.assertEqual(s.stop(), 0)
        self.nori("serve", DIGITS, "--cert", self.path("cert"), code=2)
        r = self.nori("serve", DIGITS, "--port", "0", "--cert", self.path("key"), "--key", self.path("cert"),
                      code=2)
        self.assertIn("certificate", r.err)

    def test_many_connections(self):
        """More than are taken: the rest waits, and is served when others leave."""
        s = self.serve(DIGITS, "--connections", "8", "--http-threads", "1")
        held = [socket.create_connection((s.host, s.port)) for _ in range(8)]
        time.sleep(0.2)
        late = s.connect(timeout=20)
        late.request("GET", "/v2/health/live")
        for h in held:
            h.close()
        self.assertEqual(late.getresponse().status, 200)
        late.close()

    def test_odd_names(self):
        """Names of models and tensors may hold anything that their places allow."""
        odd = 'a"<b>\\\u00e9'
        path = self.file("m.onnx", mf.model(mf.Graph(
            [mf.node("Identity", [odd], ["y"])], [mf.value(odd, mf.tensor_type(mf.FLOAT, ["n"]))],
            [mf.value("y", mf.tensor_type(mf.FLOAT, ["n"]))])))
        s = self.serve("Model-1.x_y+z=" + path)
        self.assertEqual(s.get("/v2/models/Model-1.x_y%2Bz").json()["inputs"][0]["name"], odd)
        body = {"inputs": [{"name": odd, "datatype": "FP32", "shape": [1], "data": [1]}]}
        self.assertEqual(s.infer("Model-1.x_y+z", json.dumps(body)).json()["outputs"][0]["data"], [1])
        for name in "a b", "../x", ".hidden", "":
            self.nori("serve", name + "=" + path, "--port", "0", code=None if "/" in name else 2)


if __name__ == "__main__":
    case.main()
