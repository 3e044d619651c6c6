#!/usr/bin/env python3
"""A full disk, short reads and writes, a closed pipe, a killed process: what was written before stays whole,
nothing half-written is left where it could be taken for the whole, and the exit code says so."""
import os
import resource
import shutil
import signal
import subprocess
import time
import unittest

import case
import model_file as m

MODEL = os.path.join(case.DIGITS, "digits.onnx")
OLD = b"what was here before"
SHORT_IO = os.environ.get("NORI_SHORT_IO_LIBRARY", "")
# In a mount namespace of its own: a disk of one page (the old file's), or of two.
SMALL_DISK = """
mount -t tmpfs -o size=$1 none "$2" && printf %s "$3" >"$2/$4" || exit 99
target=$2/$4
folder=$2
shift 4
"$@" --output "$target"
code=$?
ls -A "$folder" >&2
cat "$target"
exit $code
"""


def namespaces():
    """Whether this machine lets a process mount a disk of its own."""
    done = subprocess.run(["unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"], stderr=subprocess.DEVNULL)
    return done.returncode == 0


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
        yield "m.plan", ["compile", MODEL]
        yield "p.onnx", ["prune", MODEL, "--share", "0.5"]
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

    def test_disk_of_a_page(self):
        """The system's own word for a full disk, where a namespace may mount one."""
        if not shutil.which("unshare") or not namespaces():
            self.skipTest("no user namespaces with mounts here: a full disk is only tried by RLIMIT_FSIZE")
        for name, args in self.writers():
            for size in ("4k", "8k"):
                with self.subTest(name, size=size):
                    folder = self.path("disk" + name + size)
                    os.mkdir(folder)
                    r = subprocess.run(["unshare", "-rm", "sh", "-c", SMALL_DISK, "sh", size, folder, OLD.decode(),
                                        name, case.NORI, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, timeout=120)
                    err = r.stderr.decode()
                    if r.returncode == 0 and size == "8k":
                        self.assertNotEqual(r.stdout, OLD)  # small enough for the second page
                        continue
                    self.assertEqual(r.returncode, 3, err)
                    self.assertIn("No space left", err)
                    self.assertTrue(r.stdout.endswith(OLD), "the old file is not whole")
                    self.assertEqual(err.split("\n")[-2], name, "something half-written is left")

    def test_short_reads_and_writes(self):
        if case.SANITIZED or not SHORT_IO:
            self.skipTest("nothing can be preloaded here")
        said = self.path("said")
        for name, args in self.writers():
            with self.subTest(name):
                whole, short = self.path("whole-" + name), self.path("short-" + name)
                self.nori(*args, "--output", whole)
                r = self.nori(*args, "--output", short, env={"LD_PRELOAD": SHORT_IO, "NORI_SHORT_IO": said})
                self.assertEqual(r.err, self.nori(*args, "--output", whole).err.replace(whole, short))
                with open(whole, "rb") as a, open(short, "rb") as b:
                    self.assertEqual(a.read(), b.read())
                with open(said) as f:
                    self.assertGreater(int(f.read()), 0)

    def test_killed(self):
        for name, args in [w for w in self.writers() if w[0][0] in "qcm"]:
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
