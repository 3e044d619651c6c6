"""What tests of the command share: where it is, a scratch folder, running it."""
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

NORI = os.path.abspath(os.environ.get("NORI", "build/release/nori"))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIGITS = os.path.join(SOURCE, "examples", "digits")
SANITIZED = os.environ.get("NORI_SANITIZED") == "1"


class Done:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        return json.loads(self.out)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def file(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return self.path(name)

    def nori(self, *args, code=0, env=None, raw=False, **more):
        r = subprocess.run([NORI, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=60, env={**os.environ, **(env or {})},
                           **more)
        out = r.stdout if raw else r.stdout.decode("utf-8", "replace")
        done = Done(r.returncode, out, r.stderr.decode("utf-8", "replace"))
        if code is not None:
            self.assertEqual(done.code, code, "nori %s\n%s\n%s" % (
                " ".join(args), done.out, done.err))
        return done


def peak_bytes():
    """Largest resident size of any child so far."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
