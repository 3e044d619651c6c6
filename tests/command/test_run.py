#!/usr/bin/env python3
"""nori run: inputs of every kind, outputs on paper and in files, test data, exit codes."""
import gzip
import io
import os
import resource
import shutil
import stat
import struct
import subprocess
import zipfile

import case
import model_file as m
import npy_file as n


class Run(case.Case):
    def setUp(self):
        super().setUp()
        # y = a - b, z = a + b
        self.two = self.file("two.onnx", m.model(m.Graph(
            [m.node("Sub", ["a", "b"], ["y"]), m.node("Add", ["a", "b"], ["z"])],
            [m.value("a", m.tensor_type(m.FLOAT, ["n"])),
             m.value("b", m.tensor_type(m.FLOAT, ["n"]))],
            [m.value("y", m.tensor_type(m.FLOAT, ["n"])),
             m.value("z", m.tensor_type(m.FLOAT, ["n"]))])))
        self.a = n.npy("<f4", [3], [1, 2, 3])
        self.b = n.npy("<f4", [3], [10, 20, 30])

    def results(self, *args, **more):
        got = self.nori("run", *args, "--json", **more).json()
        return {o["name"]: o["first"] if "first" in o else o["value"] for o in got["outputs"]}

    def bytes_of(self, path):
        with open(path, "rb") as f:
            return f.read()

    # ---- inputs ----

    def test_npy_by_place_and_by_name(self):
        a, b = self.file("a.npy", self.a), self.file("b.npy", self.b)
        want = {"y": [-9, -18, -27], "z": [11, 22, 33]}
        self.assertEqual(self.results(self.two, a, b), want)
        self.assertEqual(self.results(self.two, "--input", "b=" + b, "--input", "a=" + a), want)
        self.assertEqual(self.results(self.two, "--input", a, "--input", b), want)
        odd = self.file("x=y.npy", self.a)
        self.assertEqual(self.results(self.two, "--input", odd, "--input", "b=" + b), want)
        self.assertIn('no input "c"', self.nori("run", self.two, "--input", "c=" + a, code=2).err)
        self.nori("run", self.two, a, b, a, code=2)
        column = self.file("f.npy", n.npy("<f4", [2, 2], [1, 2, 3, 4], fortran=True))
        row = self.file("m.onnx", m.one_node("Identity", [2, 2], [2, 2]))
        self.assertEqual(self.results(row, column), {"y": [1, 3, 2, 4]})

    def test_npy_of_the_other_byte_order(self):
        big = self.file("big.npy", n.npy(">f4", [3], [1, 2, 3]))
        self.assertEqual(self.results(self.two, big, self.file("b.npy", self.b)),
                         {"y": [-9, -18, -27], "z": [11, 22, 33]})
        column = self.file("f.npy", n.npy(">f4", [2, 2], [1, 2, 3, 4], fortran=True))
        row = self.file("m.onnx", m.one_node("Identity", [2, 2], [2, 2]))
        self.assertEqual(self.results(row, column), {"y": [1, 3, 2, 4]})

    def test_npy_strings(self):
        path = self.file("s.onnx", m.one_node("Identity", [2], [2], elem=m.STRING))
        def stored(words, width):
            head = n.npy("<f4", [2], []).replace(b"<f4", b"<U%d" % width)
            return head + b"".join(w.encode("utf-32-le").ljust(4 * width, b"\0") for w in words)
        words = ["h\u00e9", "\U0001f600!"]
        self.assertEqual(self.results(path, self.file("s.npy", stored(words, 2))), {"y": words})
        self.nori("run", path, self.file("cut.npy", stored(words, 2)[:-1]), code=3)
        self.nori("run", path, self.file("wide.npy", stored(words, 2).replace(b"U2", b"U9")), code=3)

    def test_npy_whose_header_lies(self):
        def lying(shape, descr="<f4", body=b"\0" * 12):
            head = ("{'descr': '%s', 'fortran_order': False, 'shape': %s}" % (descr, shape)).encode()
            return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + body
        self.nori("run", self.two, self.file("a.npy", lying("(3,)")), self.file("b.npy", self.b))
        for shape in ("(100000000000,)", "(4294967296, 4294967296)", "(0, 3)", "(4611686018427387904,)",
                      "(9223372036854775807, 9223372036854775807, 0)"):
            self.nori("run", self.two, self.file("lie.npy", lying(shape)), code=3)
        self.nori("run", self.two, self.file("u.npy", lying("(1000000000000,)", "<U0", b"")), code=3)
        end = b"'descr': '>"  # a header of the largest size taken, that ends there
        head = b" " * (4095 - len(end)) + end
        self.nori("run", self.two, self.file("e.npy", b"\x93NUMPY\x01\x00" + b"\xff\x0f" + head),
                  code=4)

    def test_npz(self):
        want = {"y": [-9, -18, -27], "z": [11, 22, 33]}
        for compress in (False, True):
            path = self.file("in.npz", n.npz({"b": self.b, "a": self.a}, compress))
            self.assertEqual(self.results(self.two, path), want)
            self.assertEqual(self.results(self.two, "--input", path), want)
            self.assertEqual(self.results(self.two, "--input", "a=" + path, "--input",
                                          "b=" + path), want)
        path = self.file("in.npz", n.npz({"arr_0": self.a, "arr_1": self.b}))
        self.assertEqual(self.results(self.two, path), want)
        path = self.file("in.npz", n.npz({"a": self.a, "other": self.b}))
        self.assertIn('array "other"', self.nori("run", self.two, path, code=3).err)

    def test_damaged_archives(self):
        good = n.npz({"b": self.b, "a": self.a}, compress=True)
        for i in range(0, len(good), 16):
            self.nori("run", self.two, self.file("cut.npz", good[:i]), code=3)
        for i in range(0, len(good), 8):
            flipped = bytearray(good)
            flipped[i] ^= 0x55
            r = self.nori("run", self.two, self.file("bad.npz", bytes(flipped)), code=None)
            self.assertIn(r.code, (0, 3, 4), r.err)  # 0: a date, or another unused field
        bomb = io.BytesIO()
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr("a.npy", b"\0" * 10)
        data = bytearray(bomb.getvalue())
        at = data.index(b"PK\x01\x02")
        data[at + 24:at + 28] = struct.pack("<I", 0x7fffffff)
        self.assertIn("more than its bytes can hold",
                      self.nori("run", self.two, self.file("bomb.npz", bytes(data)), code=3).err)
        bomb = io.BytesIO()
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_LZMA) as z:
            z.writestr("a.npy", self.a)
        self.assertIn("method 14",
                      self.nori("run", self.two, self.file("lzma.npz", bomb.getvalue()), code=4).err)

    def test_pb_raw_and_zipped(self):
        a = self.file("a.pb", m.floats("whatever", [3], [1, 2, 3]))
        b = self.file("b.pb.gz", gzip.compress(m.floats("b", [3], [10, 20, 30])))
        raw = self.file("a.raw", struct.pack("<3f", 1, 2, 3))
        want = {"y": [-9, -18, -27], "z": [11, 22, 33]}
        self.assertEqual(self.results(self.two, a, b), want)
        self.assertEqual(self.results(self.two, raw, b, "--dim", "n=3"), want)
        self.assertIn("has 12 bytes", self.nori("run", self.two, raw, b, code=3).err)
        self.nori("run", self.two, self.path("absent.pb"), code=3)
        self.nori("run", self.two, self.file("junk.pb", b"\xff\xff\xff"), code=3)

    def test_random_inputs(self):
        one = self.results(self.two, "--dim", "n=5")
        self.assertEqual(one, self.results(self.two, "--dim", "n=5", "--seed", "1"))
        self.assertNotEqual(one, self.results(self.two, "--dim", "n=5", "--seed", "2"))
        self.assertEqual(len(one["y"]), 5)
        self.assertEqual(len(self.results(self.two, "--shape", "4")["y"]), 4)
        r = self.nori("run", self.two, "--shape", "a=4", "--shape", "b=3", code=3)
        self.nori("run", self.two, "--shape", "4x", code=2)
        kernel = m.floats("w", [1, 1, 3, 3], [0.0] * 9)
        conv = self.file("c.onnx", m.one_node("Conv", [1, 1, "h", "w"], [1, 1, None, None],
                                              initializers=[kernel], extra_inputs=["w"]))
        r = self.nori("run", conv, code=3)
        self.assertIn("were taken as 1", r.err)
        self.nori("run", conv, "--dim", "h=8", "--dim", "w=8")

    def test_scalars(self):
        path = self.file("s.onnx", m.one_node("Neg", [], []))
        one = self.file("one.npy", n.npy("<f4", [1], [5]))
        r = self.nori("run", path, one, "--json")
        self.assertEqual(r.json()["outputs"][0], {
            "name": "y", "type": "float32", "shape": [], "elements": 1, "first": [-5]})
        self.assertEqual(r.err.count("warning"), 1)
        self.assertIn('input "x" is a scalar', r.err)
        self.assertEqual(self.nori("run", path, self.file("z.npy", n.npy("<f4", [], [5]))).err, "")
        self.nori("run", path, self.file("two.npy", n.npy("<f4", [2], [5, 6])), code=3)
        os.mkdir(self.path("set"))
        self.file("set/input_0.pb", m.floats("x", [1], [5]))
        self.file("set/output_0.pb", m.floats("y", [], [-5]))
        r = self.nori("run", path, "--test-data", self.path("set"))
        self.assertEqual(r.err.count("warning"), 1)

    # ---- outputs ----

    def test_outputs_in_files(self):
        a, b = self.file("a.npy", self.a), self.file("b.npy", self.b)
        y, z, both = self.path("y.npy"), self.path("z.pb"), self.path("both.npz")
        self.nori("run", self.two, a, b, "--output", "y=" + y, "--output", "z=" + z, "--output",
                  both)
        self.assertEqual(n.read_npy(self.bytes_of(y)), ("<f4", (3,), [-9, -18, -27]))
        with zipfile.ZipFile(both) as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual(archive.namelist(), ["y.npy", "z.npy"])
            self.assertEqual(n.read_npy(archive.read("z.npy"))[2], [11, 22, 33])
        back = self.file("copy.onnx", m.model(m.Graph(
            [m.node("Identity", ["z"], ["o"])], [m.value("z", m.tensor_type(m.FLOAT, [3]))],
            [m.value("o", m.tensor_type(m.FLOAT, [3]))])))
        self.assertEqual(self.results(back, z), {"o": [11, 22, 33]})
        self.assertEqual(self.results(back, "--input", "z=" + both), {"o": [11, 22, 33]})

    def test_output_that_cannot_be(self):
        self.nori("run", self.two, "--output", "q=" + self.path("q.npy"), code=2)
        self.nori("run", self.two, "--output", "y=" + self.path("q.txt"), code=2)
        self.assertIn("2 outputs", self.nori("run", self.two, "--output", self.path("q.npy"),
                                             code=2).err)
        self.nori("run", self.two, "--output", "y=" + self.path("no/such/q.npy"), code=3)
        self.assertEqual(os.listdir(self.folder.name), ["two.onnx"])

    def test_files_appear_whole_or_not_at_all(self):
        old = self.file("y.npy", b"as it was")
        # No room: the file system takes less than the output.
        big = self.file("big.onnx", m.one_node("Relu", [1 << 20], [1 << 20]))
        limit = ["bash", "-c", 'ulimit -f 64; trap "" XFSZ; exec "$@"', "-", case.NORI, "run", big,
                 "--output", old]
        r = subprocess.run(limit, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertEqual(r.returncode, 3, r.stderr)
        self.assertIn(b"y.npy", r.stderr)
        self.assertEqual(self.bytes_of(old), b"as it was")
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["big.onnx", "two.onnx", "y.npy"])
        # A device is no place for a file that appears at once.
        self.assertIn(self.nori("run", big, "--output", "y=/dev/full", code=None).code, (2, 3))

    def test_a_folder_that_may_not_be_written_to(self):
        shut = self.path("shut")
        os.mkdir(shut)
        os.chmod(shut, stat.S_IRUSR | stat.S_IXUSR | stat.S_IROTH | stat.S_IXOTH)
        command, more = case.NORI, {}
        if os.geteuid() == 0:  # root may write anywhere: be someone else
            os.chmod(self.folder.name, 0o755)
            command, more = shutil.copy(case.NORI, self.path("nori")), {"user": 65534}
        for args in (["run", self.two, "--output", "y=" + shut + "/y.npy"],
                     ["run", self.two, "--output", shut + "/all.npz"],
                     ["bench", self.two, "--runs", "1", "--trace", shut + "/t.json"]):
            r = subprocess.run([command, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               **more)
            self.assertEqual(r.returncode, 3, r.stderr)
            self.assertIn(b"Permission denied", r.stderr)
        self.assertEqual(os.listdir(shut), [])

    def test_a_full_disk(self):
        os.mkdir(self.path("disk"))
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs",
                                self.path("disk")], stderr=subprocess.PIPE)
        if mount.returncode != 0:
            self.skipTest("mounting a small tmpfs is not allowed here")
        self.addCleanup(subprocess.run, ["umount", self.path("disk")], check=True)
        big = self.file("big.onnx", m.one_node("Relu", [1 << 20], [1 << 20]))
        for name in ("y.npy", "y.pb", "y.npz"):
            r = self.nori("run", big, "--output", self.path("disk/" + name), code=3)
            self.assertIn("No space left", r.err)
        self.assertEqual(os.listdir(self.path("disk")), [])

    def test_words_for_values(self):
        path = self.file("i.onnx", m.one_node("Identity", [3], [3], elem=m.INT64))
        big = self.file("i.npy", n.npy("<i8", [3], [(1 << 62) + 1, -5, 1234567]))
        self.assertIn("4611686018427387905, -5, 1234567", self.nori("run", path, big).out)
        self.assertEqual(self.results(path, big), {"y": [(1 << 62) + 1, -5, 1234567]})
        half = self.file("h.onnx", m.one_node("Cast", [2], [2], to=10))
        x = self.file("x.npy", n.npy("<f4", [2], [0.5, 2]))
        self.assertIn("  0.5, 2\n", self.nori("run", half, x).out)
        root = self.file("r.onnx", m.one_node("Sqrt", [2], [2]))
        odd = self.file("o.npy", n.npy("<f4", [2], [-1, float("inf")]))
        self.assertEqual(self.results(root, odd), {"y": [None, None]})  # JSON has no such numbers
        self.assertRegex(self.nori("run", root, odd).out, "-?nan, inf")
        yes = self.file("b.onnx", m.one_node("Cast", [2], [2], to=9))
        self.assertIn("  true, true\n", self.nori("run", yes, x).out)

    def test_labels(self):
        model = os.path.join(case.DIGITS, "digits.onnx")
        picture = os.path.join(case.DIGITS, "pictures", "7_00.png")
        r = self.nori("run", model, picture, "--labels", os.path.join(case.DIGITS, "labels.txt"),
                      "--top", "2")
        self.assertEqual(r.out.split("\n")[1].split()[0], "7")
        self.assertEqual(len(r.out.strip().split("\n")), 3)
        r = self.nori("run", model, picture, "--labels", os.path.join(case.DIGITS, "labels.txt"),
                      "--top", "2", "--json").json()
        classes = r["outputs"][0]["classes"]
        self.assertEqual([len(c) for c in classes], [2])
        self.assertEqual((classes[0][0]["label"], classes[0][0]["index"]), ("7", 7))
        self.assertGreater(classes[0][0]["percent"], 99)
        self.nori("run", model, picture, "--labels", self.path("none.txt"), code=3)
        self.nori("run", model, picture, "--labels", self.folder.name, code=3)
        self.nori("run", model, picture, "--labels", "/dev/null", code=3)
        self.nori("run", model, picture, "--labels", self.file("empty.txt", "\n\n"), code=3)
        r = self.nori("run", model, picture, "--top", "2")  # no names: numbers
        self.assertEqual([line.split()[0] for line in r.out.splitlines()[1:]], ["7", "9"])
        names = ["a" * 2000, "b"] + ["n%d" % i for i in range(2, 10)]
        r = self.nori("run", model, picture, "--labels", self.file("long.txt", "\n".join(names)))
        self.assertEqual((r.out.splitlines()[1].split()[0], r.err), ("n7", ""))
        r = self.nori("run", model, picture, "--labels", self.file("few.txt", "zero\none\n"))
        self.assertIn('2 names for classes, but output "logits" has 10', r.err)
        nan = self.file("nan.npy", n.npy("<f4", [1, 1, 28, 28], [float("nan")] * 784))
        self.assertIn("NaN", self.nori("run", model, nan, "--top", "1").out)
        self.nori("run", model, picture, "--top", "0", code=2)

    # ---- test data ----

    def stored(self, name, model_data, inputs, outputs):
        os.makedirs(self.path(name))
        for i, data in enumerate(inputs):
            self.file("%s/input_%d.pb" % (name, i), data)
        for i, data in enumerate(outputs):
            self.file("%s/output_%d.pb" % (name, i), data)
        return self.file(name.split("/")[0] + ".onnx", model_data)

    def test_stored_tensors(self):
        data = m.one_node("Neg", ["n"], ["n"])
        path = self.stored("t/test_data_set_0", data, [m.floats("x", [2], [1, 2])],
                           [m.floats("y", [2], [-1, -2])])
        self.stored("t/test_data_set_1", data, [m.floats("x", [1], [1])],
                    [m.floats("y", [1], [-1.5])])
        first, second = self.path("t/test_data_set_0"), self.path("t/test_data_set_1")
        self.nori("run", path, "--test-data", first)
        r = self.nori("run", path, "--test-data", second, code=1)
        self.assertIn("DIFFERS", r.out)
        self.assertIn("got -1, expected -1.5", r.out)
        self.nori("run", path, "--test-data", second, "--atol", "0.5", "--rtol", "0")
        both = self.nori("run", path, "--test-data", self.path("t"), "--json", code=1).json()
        self.assertEqual([o["passes"] for o in both["outputs"]], [True, False])
        self.assertFalse(both["passes"])
        r = self.nori("run", path, "--test-data", first, "--atol", "x", code=2)
        self.assertIn('--atol "x": a number', r.err)
        r = self.nori("run", path, "--test-data", first, "--rtol", "-1", code=2)
        self.assertIn('--rtol "-1": a number', r.err)
        r = self.nori("run", path, "--test-data", first, "--atol", "1,2", code=2)
        self.assertIn("--atol has 2 numbers", r.err)
        r = self.nori("run", path, "--test-data", self.path("nowhere"), code=3)
        self.assertIn("is no folder", r.err)
        self.assertEqual(r.out, "")
        self.nori("run", path, "--test-data", path, code=3)
        half = self.stored("half/test_data_set_0", m.model(m.Graph(
            [m.node("Neg", ["x"], ["y"]), m.node("Abs", ["x"], ["z"])],
            [m.value("x", m.tensor_type(m.FLOAT, [1]))],
            [m.value("y", m.tensor_type(m.FLOAT, [1])), m.value("z", m.tensor_type(m.FLOAT, [1]))])),
            [m.floats("x", [1], [1])], [m.floats("y", [1], [-1])])
        self.assertRegex(self.nori("run", half, "--test-data", self.path("half")).out,
                         "z +not compared: there is no output_1")
        self.nori("run", path, "--test-data", first, self.file("a.npy", self.a), code=2)
        quiet = self.nori("run", path, "--test-data", first, "--quiet")
        self.assertEqual(quiet.out + quiet.err, "")

    def sequence(self, *tensors):
        return m.num(2, 1) + b"".join(m.put(3, t) for t in tensors)

    def test_stored_sequences_and_optionals(self):
        t = m.tensor_type(m.FLOAT, None)
        seq = m.model(m.Graph([m.node("SequenceInsert", ["x", "a"], ["y"])],
                              [m.value("x", m.sequence_type(t)), m.value("a", t)],
                              [m.value("y", m.sequence_type(t))]))
        one, two = m.floats("", [1], [1]), m.floats("", [2], [2, 3])
        path = self.stored("seq", seq, [self.sequence(one), two], [self.sequence(one, two)])
        self.nori("run", path, "--test-data", self.path("seq"))
        self.file("seq/output_0.pb", self.sequence(one, m.floats("", [2], [2, 4])))
        self.nori("run", path, "--test-data", self.path("seq"), code=1)
        self.file("seq/output_0.pb", self.sequence(one))
        self.assertIn("expected 1 items, got 2",
                      self.nori("run", path, "--test-data", self.path("seq"), code=1).out)
        # What is written is read again.
        out = self.path("out.pb")
        self.nori("run", path, "--test-data", self.path("seq"), "--output", out, code=1)
        os.replace(out, self.path("seq/output_0.pb"))
        self.nori("run", path, "--test-data", self.path("seq"))
        text = self.nori("run", path, "--input", "x=" + self.path("seq/input_0.pb"), "--input",
                         "a=" + self.path("seq/input_1.pb")).out
        self.assertIn("sequence of 2", text)
        self.assertIn("    2, 3", text)

        opt = m.model(m.Graph([m.node("OptionalHasElement", ["x"], ["y"])],
                              [m.value("x", m.optional_type(t))],
                              [m.value("y", m.tensor_type(m.BOOL, []))]), opset=18)
        path = self.stored("opt", opt, [m.num(2, 1) + m.put(3, one)],
                           [m.tensor("", m.BOOL, [], b"\1")])
        self.nori("run", path, "--test-data", self.path("opt"))
        self.file("opt/input_0.pb", m.num(2, 0))
        self.nori("run", path, "--test-data", self.path("opt"), code=1)

    def test_maps_are_written_and_read(self):
        data = m.model(m.Graph(
            [m.node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[7, 9])],
            [m.value("x", m.tensor_type(m.FLOAT, ["n", 2]))],
            [m.value("y", m.sequence_type(m.put(5, m.num(1, 7) + m.put(2, m.tensor_type(
                m.FLOAT, [])))))]), opsets=[("ai.onnx.ml", 1)])
        path = self.stored("map", data, [m.floats("x", [2, 2], [1, 2, 3, 4])], [])
        out = self.path("map/output_0.pb")
        r = self.nori("run", path, self.path("map/input_0.pb"), "--output", out, "--json")
        self.assertEqual(r.json()["outputs"][0]["value"], [{"7": 1, "9": 2}, {"7": 3, "9": 4}])
        self.nori("run", path, "--test-data", self.path("map"))
        self.nori("run", path, self.path("map/input_0.pb"), "--output", self.path("y.npy"), code=4)

    # ---- exit codes ----

    def test_exit_codes(self):
        self.nori("run", self.path("absent.onnx"), code=3)
        self.nori("run", self.file("text.onnx", b"hello, this is text"), code=3)
        unknown = self.file("u.onnx", m.one_node("Nonesuch", [1], [1]))
        self.assertIn("Nonesuch", self.nori("run", unknown, code=4).err)
        self.nori("run", self.two, "--provider", "gpu", code=4)
        r = self.nori("run", self.two, "--provider", "gpu,cpu", "--fallback")
        self.assertEqual(r.err.count("gpu"), 1 + r.err.count('"gpu"'))
        self.nori("run", self.two, "--dim", "m=3", code=2)
        self.nori("run", self.two, "--dim", "n", code=2)
        wrong = self.file("w.npy", n.npy("<f8", [3], [1, 2, 3]))
        self.assertIn("float64", self.nori("run", self.two, wrong, code=3).err)
        long = self.file("l.npy", n.npy("<f4", [4], [1, 2, 3, 4]))
        self.nori("run", self.two, self.file("a.npy", self.a), long, code=3)

    def test_memory_cap(self):
        path = self.file("m.onnx", m.model(m.Graph(
            [m.node("Exp", ["x"], ["t"]), m.node("Softmax", ["t"], ["y"])],
            [m.value("x", m.tensor_type(m.FLOAT, ["n"]))],
            [m.value("y", m.tensor_type(m.FLOAT, ["n"]))])))
        self.nori("run", path, "--dim", "n=100000", "--memory", "1M")
        r = self.nori("run", path, "--dim", "n=1000000", "--memory", "1M", code=4)
        self.assertIn("activations need 4.00 MB, the limit is 1.00 MB", r.err)
        self.assertIn("--memory", r.err)
        for size, said in (("1Mi", "1.05 MB"), ("1MiB", "1.05 MB"), ("1.5MB", "1.50 MB"), ("900kB", "900 kB"),
                           ("900KiB", "922 kB"), ("0.001G", "1.00 MB")):
            r = self.nori("run", path, "--dim", "n=1000000", "--memory", size, code=4)
            self.assertIn("the limit is " + said, r.err)
        r = self.nori("run", path, "--dim", "n=250100", "--memory", "1M", code=4)
        self.assertIn("activations need 1000448 bytes, the limit is 1000000 bytes", r.err)
        for size in ("1X", "1MBB", "1iB", "1 M", "0", "M", "1Mib"):
            self.nori("run", path, "--memory", size, code=2)
        r = self.nori("run", path, "--dim", "n=1000000", "--limit", "activations=1M", code=4)
        self.assertIn("--limit activations=N", r.err)
        self.assertNotIn("--memory", r.err)

    # ---- around a run ----

    def test_timing(self):
        files = [self.file("a.npy", self.a), self.file("b.npy", self.b)]
        plain = self.nori("run", self.two, *files)
        timed = self.nori("run", self.two, *files, "--timing")
        self.assertEqual((plain.out, plain.err), (timed.out, ""))
        for word in ("load", "read", "build", "create", "infer", "optimize", "plan", "first run"):
            self.assertIn(word, timed.err)

    def test_a_level_that_is_none(self):
        r = self.nori("run", self.two, "--dim", "n=2", env={"NORI_CPU": "AVX3"})
        self.assertIn("NORI_CPU=AVX3 is none of base|avx2", r.err)
        files = [self.file("a.npy", self.a), self.file("b.npy", self.b)]
        self.assertEqual(self.nori("run", self.two, *files, env={"NORI_CPU": "base"}).err, "")

    def test_a_file_that_may_not_grow(self):
        out = self.path("y.npz")
        r = self.nori("run", self.two, "--dim", "n=20000", "--output", out, code=None,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        self.assertEqual(r.code, 3)
        self.assertIn("y.npz", r.err)
        self.assertEqual([f for f in os.listdir(os.path.dirname(out)) if ".nori" in f or "y.npz" in f], [])

    def test_random_inputs_are_told(self):
        r = self.nori("run", self.two)
        self.assertIn("random values for input a, b (seed 1)", r.err)
        one = self.nori("run", self.two, "--dim", "n=3", "--seed", "7", self.file("a.npy", self.a))
        self.assertIn("random values for input b (seed 7)", one.err)
        self.assertEqual(self.nori("run", self.two, "--quiet").err, "")
        files = [self.file("a.npy", self.a), self.file("b.npy", self.b)]
        self.assertEqual(self.nori("run", self.two, *files).err, "")

    def test_packed_test_data_is_hinted_at(self):
        self.file("in_0.pb.gz", b"anything")
        self.assertIn("in_0.pb.gz: give that", self.nori("run", self.two, self.path("in_0.pb"), code=3).err)
        self.assertNotIn("give that", self.nori("run", self.two, self.path("in_1.pb"), code=3).err)

    def test_random_integers_are_told(self):
        path = self.file("g.onnx", m.model(m.Graph(
            [m.node("Gather", ["t", "x"], ["y"])],
            [m.value("t", m.tensor_type(m.FLOAT, [1, 2])), m.value("x", m.tensor_type(m.INT64, [50]))],
            [m.value("y", m.tensor_type(m.FLOAT, [50, 2]))])))
        self.assertIn("integer inputs were random", self.nori("run", path, code=3).err)


if __name__ == "__main__":
    case.main()
