"""A small server of the Open Inference Protocol v2, for tests: it negates the first input, after a
service time that the test chooses, one call at a time. Run alone it prints its port and serves until
its standard input ends; every line "service 0.015" or "refuse 1" changes it."""
import json
import random
import socket
import sys
import threading
import time
from array import array
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Double:
    def __init__(self, service=0.0, model="m", address="127.0.0.1", servers=1, statistics=True):
        """service: seconds, or a function that gives them."""
        self.service, self.model, self.statistics = service, model, statistics
        self.refuse = False
        self.token = None  # asked of callers
        self.lock = threading.Lock()
        self.free = threading.Semaphore(servers)
        self.count = self.queue_ns = self.compute_ns = 0
        self.requests = []  # of every request: method, path, bytes of its body
        self.connections = 0
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                with double.lock:
                    double.connections += 1
                super().setup()

            def log_message(self, *_):
                pass

            def answer(self, body, head=None, status=200):
                self.send_response(status)
                if head is not None:
                    self.send_header("Inference-Header-Content-Length", str(head))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def stranger(self):
                asked = double.token and "Bearer " + double.token
                if asked and self.headers.get("Authorization") != asked:
                    self.answer(b'{"error": "a token is asked for"}', status=401)
                    return True
                return False

            def do_GET(self):
                double.requests.append(("GET", self.path, 0))
                if self.stranger():
                    return
                if double.refuse:
                    self.answer(b'{"error": "not now"}', status=503)
                elif self.path.endswith("/stats") and double.statistics:
                    self.answer(json.dumps(double.stats()).encode())
                elif "/health/" in self.path:
                    self.answer(b"")
                else:
                    self.answer(b'{"error": "no such thing"}', status=404)

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                double.requests.append(("POST", self.path, len(body)))
                if self.stranger():
                    return
                if double.refuse:
                    self.answer(b'{"error": "not now"}', status=503)
                    return
                if not self.path.startswith("/v2/models/%s" % double.model):
                    self.answer(b'{"error": "no such model"}', status=404)
                    return
                self.answer(*double.infer(body, int(self.headers.get("Inference-Header-Content-Length",
                                                                     len(body)))))

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass  # callers that hang up are part of the tests

        self.server = Server((address, 0), Handler)
        self.port = self.server.server_address[1]
        self.url = "http://%s:%d" % (address, self.port)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def stats(self):
        def row(ns):
            return {"count": self.count, "ns": ns}
        return {"model_stats": [{"name": self.model, "version": "1", "inference_stats": {
            "success": row(self.queue_ns + self.compute_ns), "fail": {"count": 0, "ns": 0},
            "queue": row(self.queue_ns), "compute_input": row(0), "compute_infer": row(self.compute_ns),
            "compute_output": row(0)}}]}

    def infer(self, body, head):
        start = time.monotonic_ns()
        with self.free:
            begin = time.monotonic_ns()
            request = json.loads(body[:head])
            first = request["inputs"][0]
            assert first["datatype"] == "FP32"
            size = first["parameters"]["binary_data_size"]
            values = array("f", body[head:head + size])
            for i, v in enumerate(values):
                values[i] = -v
            data = values.tobytes()
            seconds = self.service() if callable(self.service) else self.service
            left = seconds - (time.monotonic_ns() - begin) / 1e9
            if left > 0:
                time.sleep(left)
            end = time.monotonic_ns()
        with self.lock:
            self.count += 1
            self.queue_ns += begin - start
            self.compute_ns += end - begin
        out = {"model_name": self.model, "outputs": [{
            "name": request["outputs"][0]["name"] if "outputs" in request else "y", "datatype": "FP32",
            "shape": first["shape"], "parameters": {"binary_data_size": len(data)}}]}
        if "id" in request:
            out["id"] = request["id"]
        text = json.dumps(out).encode()
        return text + data, len(text)


def others(double, rate):
    """Callers at random times, without a network."""
    draw = random.Random(1)

    def one():
        with double.free:
            time.sleep(double.service if not callable(double.service) else 0)
    while True:
        time.sleep(draw.expovariate(rate[0]) if rate[0] > 0 else 0.05)
        if rate[0] > 0:
            threading.Thread(target=one, daemon=True).start()


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1"
    rate = [0.0]
    with Double(address=address) as double:
        print(double.port, flush=True)
        threading.Thread(target=others, args=(double, rate), daemon=True).start()
        for line in sys.stdin:
            word, value = line.split()
            if word == "service":
                double.service = float(value)
            elif word == "refuse":
                double.refuse = value == "1"
            elif word == "load":  # others call, so many a second, each taking as long as a call does
                rate[0] = float(value)
            elif word == "tail":  # one call in fifty takes 400 ms: mean 15
                state = [0]

                def tailed():
                    state[0] += 1
                    return 0.4 if state[0] % 50 == 25 else 0.0072
                double.service = tailed
            print("ok", flush=True)


if __name__ == "__main__":
    socket.setdefaulttimeout(None)
    main()
