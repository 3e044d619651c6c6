#!/usr/bin/env python3
"""nori calibrate: parts, merging, mpirun, and every kind of sample."""
import os
import random
import shutil
import subprocess
import unittest

import case
import model_file as m
import npy_file as n

MODEL = os.path.join(case.DIGITS, "digits.onnx")
PICTURES = os.path.join(case.DIGITS, "pictures")


def numbers(count, seed=1):
    r = random.Random(seed)
    return [r.uniform(-2, 3) for _ in range(count)]


class Calibrate(case.Case):
    def calibrate(self, name, *args, model=MODEL, **more):
        out = self.path(name)
        done = self.nori("calibrate", model, "--output", out, *args, **more)
        if done.code != 0:
            return done
        with open(out, "rb") as f:
            return f.read()

    def two(self, dims=(None, 4)):
        """y = (a @ w) + (b @ w)"""
        graph = m.Graph([m.node("MatMul", ["a", "w"], ["p"]), m.node("MatMul", ["b", "w"], ["q"]),
                         m.node("Add", ["p", "q"], ["y"])],
                        [m.value("a", m.tensor_type(m.FLOAT, list(dims))),
                         m.value("b", m.tensor_type(m.FLOAT, list(dims)))],
                        [m.value("y", m.tensor_type(m.FLOAT, [None, 3]))],
                        [m.floats("w", [4, 3], numbers(12))])
        return self.file("two.onnx", m.model(graph))

    def one(self, dims=(None, 4)):
        graph = m.Graph([m.node("MatMul", ["a", "w"], ["y"], name="mm")],
                        [m.value("a", m.tensor_type(m.FLOAT, list(dims)))],
                        [m.value("y", m.tensor_type(m.FLOAT, [None, 3]))],
                        [m.floats("w", [4, 3], numbers(12))])
        return self.file("one.onnx", m.model(graph))

    def test_parts_merge_to_the_whole(self):
        whole = self.calibrate("all.ncal", "--data", PICTURES)
        files = []
        for k in (3, 1, 4, 2):
            self.calibrate("p%d.ncal" % k, "--data", PICTURES, "--part", "%d/4" % k)
            files.append(self.path("p%d.ncal" % k))
        self.nori("calibrate", "--merge", *files, "--output", self.path("m.ncal"))
        with open(self.path("m.ncal"), "rb") as f:
            self.assertEqual(f.read(), whole)
        # Steps that look at samples, or change what values are, would part the two.
        plain = ["--no-search", "--method", "minmax", "--without", "equalize", "--without", "smooth",
                 "--without", "bias", "--without", "adaround"]
        self.nori("quantize", MODEL, "--calibration", self.path("m.ncal"), "--output", self.path("a"),
                  *plain)
        self.nori("quantize", MODEL, "--data", PICTURES, "--output", self.path("b"), *plain)
        with open(self.path("a"), "rb") as a, open(self.path("b"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    @unittest.skipUnless(os.environ.get("NORI_MPI") == "1" and shutil.which("mpirun"),
                         "built without MPI, or there is no mpirun")
    def test_mpirun(self):
        whole = self.calibrate("all.ncal", "--data", PICTURES)
        command = ["mpirun", "-n", "4", "--oversubscribe", "--allow-run-as-root", case.NORI]
        args = ["calibrate", MODEL, "--output", self.path("mpi.ncal"), "--data"]
        r = subprocess.run(command + args + [PICTURES], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual(r.returncode, 0, r.stdout)
        self.assertEqual(r.stdout.count(b"was written"), 1)  # once, not by every rank
        with open(self.path("mpi.ncal"), "rb") as f:
            self.assertEqual(f.read(), whole)
        os.remove(self.path("mpi.ncal"))
        wrong = self.file("wrong.txt", "\n".join(sorted(
            os.path.join(PICTURES, p) for p in os.listdir(PICTURES))[:3] + [self.file("b.png", "x")]))
        r = subprocess.run(command + args + [wrong], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=60)
        self.assertNotEqual(r.returncode, 0)  # one rank fails: nobody writes, nobody waits
        self.assertIn(b"neither a PNG nor a JPEG", r.stdout)
        self.assertFalse(os.path.exists(self.path("mpi.ncal")))

    def test_without_the_module(self):
        r = self.calibrate("x.ncal", "--data", PICTURES, code=4,
                           env={"OMPI_COMM_WORLD_SIZE": "4", "NORI_MODULES": self.folder.name})
        self.assertIn("nori-mpi.so is not there", r.err)

    def test_any_split_of_arrays(self):
        model, v = self.one(), numbers(11 * 4)
        whole = self.calibrate("a", "--data", self.file("all.npy", n.npy("<f4", [11, 4], v)),
                               model=model)
        singles = []
        for i in range(11):
            singles += ["--data", self.file("s%02d.npy" % i, n.npy("<f4", [1, 4], v[i * 4:i * 4 + 4]))]
        self.assertEqual(self.calibrate("b", *singles, model=model), whole)
        ragged = ["--data", self.file("r0.npy", n.npy("<f4", [8, 4], v[:32])),
                  "--data", self.file("r1.npy", n.npy("<f4", [3, 4], v[32:]))]
        self.assertEqual(self.calibrate("c", *ragged, model=model), whole)
        turned = [v[r * 4 + c] for c in range(4) for r in range(11)]
        self.assertEqual(self.calibrate("d", "--data", self.file(
            "f.npy", n.npy("<f4", [11, 4], turned, fortran=True)), model=model), whole)
        names = self.file("list.txt", "# those of one folder\n" + "".join(
            "s%02d.npy\n" % i for i in range(11)))
        self.assertEqual(self.calibrate("e", "--data", names, model=model), whole)
        archive = self.file("all.npz", n.npz({"a": n.npy("<f4", [11, 4], v)}))
        self.assertEqual(self.calibrate("f", "--data", archive, model=model), whole)

    def test_a_batch_that_is_not_full(self):
        model, v = self.one((8, 4)), numbers(11 * 4)
        path = self.file("all.npy", n.npy("<f4", [11, 4], v))
        r = self.nori("calibrate", model, "--output", self.path("c"), "--data", path, "--json")
        self.assertIn("takes 8 rows at once, and the last 3 of 11", r.err)
        self.assertEqual(r.json()["samples"], 2)
        seen = {x["name"]: x for x in r.json()["values"]}["a"]
        self.assertEqual(seen["count"], 64)
        self.assertAlmostEqual(seen["min"], min(v), 5)
        self.assertAlmostEqual(seen["max"], max(v), 5)

    def test_several_inputs(self):
        model, v, w = self.two(), numbers(20), numbers(20, 2)
        both = n.npz({"a": n.npy("<f4", [5, 4], v), "b": n.npy("<f4", [5, 4], w)}, compress=True)
        whole = self.calibrate("a", "--data", self.file("both.npz", both), model=model)
        os.mkdir(self.path("many"))
        os.mkdir(self.path("sets"))
        for i in range(5):
            a, b = v[i * 4:i * 4 + 4], w[i * 4:i * 4 + 4]
            self.file("many/%d.npz" % i, n.npz({"arr_0": n.npy("<f4", [1, 4], a),
                                                "arr_1": n.npy("<f4", [1, 4], b)}))
            os.mkdir(self.path("sets/test_data_set_%d" % i))
            self.file("sets/test_data_set_%d/input_0.pb" % i, m.floats("a", [1, 4], a))
            self.file("sets/test_data_set_%d/input_1.pb" % i, m.floats("b", [1, 4], b))
        self.assertEqual(self.calibrate("b", "--data", self.path("many"), model=model), whole)
        self.assertEqual(self.calibrate("c", "--data", self.path("sets"), model=model), whole)
        r = self.calibrate("d", "--data", self.file("a.npy", n.npy("<f4", [5, 4], v)), model=model,
                           code=2)
        self.assertIn("the model has 2", r.err)
        uneven = n.npz({"a": n.npy("<f4", [5, 4], v), "b": n.npy("<f4", [4, 4], w[:16])})
        r = self.calibrate("e", "--data", self.file("u.npz", uneven), model=model, code=3)
        self.assertIn('"a" and "b" hold 5 and 4 samples', r.err)
        lacking = n.npz({"a": n.npy("<f4", [5, 4], v)})
        r = self.calibrate("f", "--data", self.file("l.npz", lacking), model=model, code=3)
        self.assertIn('no array for input "b"', r.err)

    def test_a_batch_that_is_not_the_first_axis(self):
        """States of recurrent networks are [layers, batch, size]: each sample has its own."""
        graph = m.Graph([m.node("Add", ["x", "h"], ["y"])],
                        [m.value("x", m.tensor_type(m.FLOAT, ["batch", 4])),
                         m.value("h", m.tensor_type(m.FLOAT, [2, "batch", 4]))],
                        [m.value("y", m.tensor_type(m.FLOAT, [2, "batch", 4]))])
        model = self.file("state.onnx", m.model(graph))
        x, h, files = numbers(12), numbers(24, 5), []
        for i in range(3):
            own = [h[layer * 12 + i * 4 + k] for layer in range(2) for k in range(4)]
            path = self.path("one%d.npz" % i)
            self.file(os.path.basename(path), n.npz({"x": n.npy("<f4", [1, 4], x[4 * i:4 * i + 4]),
                                                              "h": n.npy("<f4", [2, 1, 4], own)}))
            files.append(os.path.basename(path))
        together = self.file("all.npz", n.npz({"x": n.npy("<f4", [3, 4], x),
                                               "h": n.npy("<f4", [2, 3, 4], h)}))
        one = self.calibrate("one.ncal", "--data", self.file("files.txt", "\n".join(files)), model=model)
        whole = self.calibrate("whole.ncal", "--data", together, model=model)
        self.assertEqual(one, whole)

    def test_options_of_pictures(self):
        plain = self.calibrate("a", "--data", PICTURES)
        self.assertNotEqual(self.calibrate("b", "--data", PICTURES, "--mean", "0.5", "--std", "2"),
                            plain)
        array = self.file("a.npy", n.npy("<f4", [2, 1, 28, 28], [0.5] * 1568))
        for option in (["--mean", "0.5"], ["--std", "2"], ["--bgr"], ["--range", "255"]):
            r = self.calibrate("c", "--data", array, *option, code=2)
            self.assertIn("%s is for pictures" % option[0], r.err)
        r = self.calibrate("d", "--data", PICTURES, "--bgr", code=2)
        self.assertIn("one channel", r.err)
        raw = self.file("u.npy", n.npy("|u1", [2, 28, 28], [200] * 1568))
        r = self.nori("calibrate", MODEL, "--output", self.path("e"), "--data", raw, "--json",
                      "--range", "255")
        seen = {x["name"]: x for x in r.json()["values"]}["image"]
        self.assertEqual((seen["min"], seen["max"], seen["count"]), (200, 200, 1568))

    def test_what_is_refused(self):
        for part in ("0/4", "5/4", "1", "a/b", "1/"):
            self.assertIn("K/N", self.calibrate("a", "--data", PICTURES, "--part", part, code=2).err)
        self.calibrate("a", "--random", "2", "--part", "3/3", code=2)
        self.calibrate("one.ncal", "--random", "2")
        r = self.nori("calibrate", "--merge", self.path("one.ncal"), "--random", "2", "--output",
                      self.path("m"), code=2)
        self.assertIn("--random has nothing to do with --merge", r.err)
        other = self.one()
        self.calibrate("two.ncal", "--random", "2", model=other)
        r = self.nori("calibrate", "--merge", self.path("one.ncal"), self.path("two.ncal"), "--output",
                      self.path("m"), code=3)
        self.assertIn("two models", r.err)
        r = self.nori("quantize", other, "--calibration", self.path("one.ncal"), "--output",
                      self.path("q"), code=3)
        self.assertIn("another model", r.err)
        r = self.nori("quantize", MODEL, "--calibration", MODEL, "--output", self.path("q"), code=3)
        self.assertIn("no calibration", r.err)
        r = self.nori("quantize", MODEL, "--calibration", self.path("one.ncal"), "--kind", "dynamic",
                      "--output", self.path("q"), code=2)
        self.assertIn("--calibration is for", r.err)
        r = self.nori("quantize", MODEL, "--random", "1", "--exclude", "nowhere", "--output",
                      self.path("q"), code=2)
        self.assertIn("matched 0 of 19 nodes", r.err)
        nested = self.file("n.txt", "other.txt\n")
        self.file("other.txt", "")
        self.assertIn("another list", self.calibrate("a", "--data", nested, code=3).err)
        self.assertFalse(os.path.exists(self.path("q")) or os.path.exists(self.path("m")))

    def test_every_method(self):
        self.calibrate("all.ncal", "--data", PICTURES)
        found = {}
        for method in ("minmax", "average", "percentile", "entropy", "mse"):
            r = self.nori("quantize", MODEL, "--calibration", self.path("all.ncal"), "--method",
                          method, "--output", self.path("q"), "--json")
            found[method] = r.json()["values"][-1]["high"]
        self.assertEqual(max(found.values()), found["minmax"])
        self.assertLess(found["average"], found["minmax"])


if __name__ == "__main__":
    case.main()
