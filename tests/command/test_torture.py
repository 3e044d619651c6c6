#!/usr/bin/env python3
"""A full disk, a closed pipe, a killed process: what was written before stays whole, nothing half-written is
left where it could be taken for the whole, and the exit code says so."""
import os
import resource
import signal
import subprocess
import time
import unittest

import case
import model_file as m

MODEL = os.path.join(case.DIGITS, "digits.onnx")
OLD = b"what was here before"


def no_room(size):
    """A disk that is full after so many bytes of a file; the signal about it is ignored, as most do."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return {"preexec_fn": limit, "restore_signals": False}


class Torture(case.Case):
    def writers(self):
        """Commands that write one file, as (name of the file, arguments)."""
        many = os.path.join(case.DIGITS, "test_images.npy")
        big = self.file("big.onnx", m.one_node("Relu", [100, 100], [100, 100]))
        yield "q.onnx", ["quantize", MODEL, "--data", many, "--samples", "8"]
        yield "h.onnx", ["quantize", MODEL, "--kind", "fp16"]
        yield "c.onnx", ["convert", MODEL, "--opset", "18"]
        yield "r.ncal", ["calibrate", MODEL, "--random", "2"]
        yield "y.npy", ["run", big]
        yield "y.pb", ["run", big]

    def test_full_disk(self):
        for name, args in self.writers():
            with self.subTest(name):
                target = self.file(name, OLD)
                r = self.nori(*args, "--output", target, code=3, **no_room(2000))
                self.assertIn(name, r.err)
                self.assertIn("File too large", r.err)
                with open(target, "rb") as f:
                    self.assertEqual(f.read(), OLD)
                left = [n for n in os.listdir(self.folder.name) if "nori" in n]
                self.assertEqual(left, [])

    def test_killed(self):
        for name, args in list(self.writers())[:3]:
            target = self.file(name, OLD)
            start = time.monotonic()
            self.nori(*args, "--output", target)
            whole = time.monotonic() - start
            with open(target, "rb") as f:
                new = f.read()
            self.assertNotEqual(new, OLD)
            ends = {OLD: 0, new: 0}
            for k in range(12):
                self.file(name, OLD)
                p = subprocess.Popen([case.NORI, *args, "--output", target], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(whole * k / 10)
                p.send_signal(signal.SIGKILL if k % 2 else signal.SIGTERM)
                p.wait()
                with open(target, "rb") as f:
                    found = f.read()
                self.assertIn(found, ends, "neither the old file nor the new one")
                ends[found] += 1
            self.assertGreater(ends[OLD], 0)

    def test_closed_pipe(self):
        for args in (["inspect", MODEL], ["caps"], ["check", MODEL, "--json"], ["run", MODEL]):
            reads, writes = os.pipe()
            os.close(reads)  # before it begins: a reader that leaves later may have taken all of it
            p = subprocess.Popen([case.NORI, *args], stdin=subprocess.DEVNULL, stdout=writes,
                                 stderr=subprocess.PIPE)
            os.close(writes)
            err = p.stderr.read().decode()
            p.stderr.close()
            code = p.wait(timeout=60)
            self.assertIn(code, (3, -signal.SIGPIPE), err)

    def test_output_that_is_full(self):
        for args in (["inspect", MODEL], ["caps", "--json"], ["run", MODEL, "--json"]):
            with open("/dev/full", "w") as full:
                p = subprocess.run([case.NORI, *args], stdin=subprocess.DEVNULL, stdout=full,
                                   stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(p.returncode, 3, args)
            self.assertIn(b"could not be written", p.stderr)


if __name__ == "__main__":
    case.main()
