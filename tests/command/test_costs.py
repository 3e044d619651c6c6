#!/usr/bin/env python3
"""What hostile files cost: whatever is refused takes less than 64 MB and a second of processor time for each
megabyte of the file, and whatever is not ends, too. The files are small for what they ask for: deep nesting,
huge sizes, lists of nothing, counts, long texts, constants without end, loops without end, archives."""
import functools
import gzip
import io
import os
import struct
import subprocess
import sys
import unittest
import zipfile
import zlib

import case
import model_file as m

MEMORY = 64 << 20
SECONDS = 1.0  # for each megabyte, and for what is smaller
OPSET = m.put(8, m.num(2, 17))
STARTER = """
import os, sys
for line in sys.stdin:
    said, *command = line.rstrip("\\n").split("\\t")
    child = os.fork()
    if child == 0:
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.execv(command[0], command)
    _, status, used = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), used.ru_maxrss, used.ru_utime + used.ru_stime, flush=True)
"""


def whole(graph):
    return m.num(1, 8) + m.put(7, graph) + OPSET


def out(shape=None, elem=m.FLOAT):
    return m.value("y", m.tensor_type(elem, shape))


def x_in(shape=(1,)):
    return m.value("x", m.tensor_type(m.FLOAT, list(shape)))


def scalar(name, v):
    return m.ints(name, [], [v])


def made(nodes, initializers=(), inputs=None, outputs=None, opset=17):
    return m.model(m.Graph(nodes, [x_in()] if inputs is None else inputs, outputs or [out()], list(initializers)),
                   opset=opset)


def shaped(name, dims, elem=m.FLOAT, field=9, data=b""):
    """A tensor whose sizes say more than its bytes."""
    return b"".join(m.num(1, d) for d in dims) + m.num(2, elem) + m.put(8, name) + m.put(field, data)


def relu_of(tensor):
    return made([m.node("Relu", ["w"], ["y"])], [tensor], inputs=[])


def nested(levels):
    graph = b""
    for _ in range(levels):
        attr = m.put(1, "b") + m.num(20, 5) + m.put(6, graph)
        graph = m.put(1, m.put(4, "If") + m.put(5, attr))
    return whole(graph)


def calls(depth, width):
    """Functions that call one another: width to the power of depth nodes."""
    functions = b""
    for i in range(depth):
        body = b"".join(m.put(7, m.node("f%d" % (i + 1) if i + 1 < depth else "Neg", ["a"], ["b%d" % k],
                                        domain="own" if i + 1 < depth else "")) for k in range(width))
        functions += m.put(25, m.put(1, "f%d" % i) + m.put(4, "a") + m.put(5, "b0") + body + m.put(9, m.num(2, 17))
                           + m.put(9, m.put(1, "own") + m.num(2, 1)) + m.put(10, "own"))
    graph = m.Graph([m.node("f0", ["x"], ["y"], domain="own")], [x_in()], [out()])
    return m.num(1, 8) + m.put(7, graph.data) + OPSET + m.put(8, m.put(1, "own") + m.num(2, 1)) + functions


def loop(trips, inner=None, carried="x"):
    body = m.Graph([m.node("Identity", ["c"], ["c2"])] + (inner or [m.node("Neg", ["a"], ["a2"])]),
                   [m.value("i", m.tensor_type(m.INT64, [])), m.value("c", m.tensor_type(m.BOOL, [])),
                    m.value("a", m.tensor_type(m.FLOAT, None))],
                   [m.value("c2", m.tensor_type(m.BOOL, [])), m.value("a2", m.tensor_type(m.FLOAT, None))])
    one = m.floats("one", [1], [1])
    return made([m.node("Loop", ["trips", "", carried], ["y"], body=body)], [scalar("trips", trips), one])


def doubled(op, times, first):
    """v0, then each the double of the one before."""
    nodes = [first] + [m.node(op, ["v%d" % i] * 2, ["v%d" % (i + 1)], **({"axis": 0} if op == "Concat" else {}))
                       for i in range(times)]
    return nodes + [m.node("ReduceSum", ["v%d" % times], ["z"], keepdims=0), m.node("Add", ["x", "z"], ["y"])]


def models():
    big = 1 << 40
    text = "ab" * 500000
    yield "graphs in graphs", nested(2000)
    yield "sizes that overflow", relu_of(shaped("w", [1 << 62, 1 << 62]))
    yield "sizes without bytes", relu_of(shaped("w", [big]))
    yield "many sizes", relu_of(shaped("w", [1] * 300000))
    yield "negative sizes", relu_of(shaped("w", [-1, -(1 << 63)]))
    yield "a huge tensor of strings", relu_of(shaped("w", [1 << 30], m.STRING, 6))
    yield "strings of nothing", relu_of(b"".join([m.num(1, 500000), m.num(2, m.STRING), m.put(8, "w")]
                                                 + [m.put(6, b"")] * 500000))
    yield "a packed list of zeros", relu_of(shaped("w", [1], m.INT64, 7, b"\0" * 1000000))
    yield "floats, more than sizes say", relu_of(shaped("w", [1], m.FLOAT, 4, b"\0" * 1000000))
    yield "a list of integers in an attribute", made([m.put(1, "x") + m.put(2, "y") + m.put(4, "Transpose") + m.put(
        5, m.put(1, "perm") + m.put(8, b"\1" * 1000000) + m.num(20, 7))])
    yield "nodes of nothing", whole(m.put(1, b"") * 500000)
    yield "a name of a megabyte", made([m.node("Relu", ["x"], ["y"], name=text)])
    yield "an operator of a megabyte", made([m.node(text, ["x"], ["y"])])
    yield "a domain of a megabyte", made([m.node("Relu", ["x"], ["y"], domain=text)])
    yield "an equation of a megabyte", made([m.node("Einsum", ["x"], ["y"], equation="a" * 1000000 + "->a")])
    yield "an equation of commas", made([m.node("Einsum", ["x"], ["y"], equation="," * 500000)])
    yield "a node of many inputs", made([m.node("Sum", ["x"] * 300000, ["y"])])
    yield "a node of many missing inputs", made([m.node("Sum", ["n%d" % i for i in range(100000)], ["y"])])
    yield "a node of many outputs", made([m.node("Split", ["x"], ["y"] + ["o%d" % i for i in range(100000)])])
    yield "one name, many nodes", made([m.node("Relu", ["x"], ["y"])] * 50000)
    yield "a circle", made([m.node("Add", ["x", "b%d" % ((i + 1) % 50000)], ["b%d" % i]) for i in range(50000)]
                           + [m.node("Relu", ["b0"], ["y"])])
    yield "a chain from behind", made([m.node("Relu", ["v%d" % i], ["v%d" % (i + 1)]) for i in range(30000)][::-1]
                                      + [m.node("Relu", ["v30000"], ["y"])])
    for op, attrs in (("ConstantOfShape", {}), ("RandomNormal", {})):
        inputs = ["s"] if op == "ConstantOfShape" else []
        more = {} if inputs else {"shape": [1 << 20, 1 << 20]}
        yield op + " without end", made([m.node(op, inputs, ["z"], **attrs, **more), m.node("Relu", ["z"], ["y"])],
                                        [m.ints("s", [2], [1 << 20, 1 << 20])])
    yield "Range without end", made([m.node("Range", ["a", "b", "c"], ["y"])],
                                    [scalar("a", 0), scalar("b", big), scalar("c", 1)], outputs=[out(None, m.INT64)])
    yield "Expand without end", made([m.node("Expand", ["x", "s"], ["y"])], [m.ints("s", [1], [big])])
    yield "Tile without end", made([m.node("Tile", ["x", "s"], ["y"])], [m.ints("s", [1], [big])])
    yield "Pad without end", made([m.node("Pad", ["x", "s"], ["y"])], [m.ints("s", [2], [big, big])])
    yield "OneHot without end", made([m.node("OneHot", ["i", "d", "v"], ["y"])],
                                     [m.ints("i", [1], [1]), scalar("d", big), m.floats("v", [2], [0, 1])])
    yield "Resize without end", made([m.node("Resize", ["x", "", "s"], ["y"])], [m.floats("s", [1], [1e12])])
    yield "EyeLike of much", made([m.node("ConstantOfShape", ["s"], ["z"]), m.node("EyeLike", ["z"], ["y"])],
                                  [m.ints("s", [2], [1 << 30, 1 << 30])])
    size = m.ints("s", [1], [1 << 16])
    yield "a Concat, doubled", made(doubled("Concat", 40, m.node("ConstantOfShape", ["s"], ["v0"])), [size])
    yield "a window", made([m.node("HannWindow", ["n"], ["y"])], [scalar("n", big)])
    yield "a pool of huge windows", m.one_node("MaxPool", [1, 1, 8, 8], None, kernel_shape=[1 << 31, 1 << 31],
                                               pads=[1 << 31] * 4)
    yield "a convolution of huge pads", m.one_node("Conv", [1, 1, 5, 5], None, extra_inputs=["w"],
                                                   initializers=[m.floats("w", [1, 1, 3, 3], [1] * 9)],
                                                   pads=[1 << 40] * 4)
    yield "functions that call", calls(30, 2)
    yield "functions that call much", calls(3, 1000)
    yield "a function that calls itself", calls(1, 1).replace(b"Neg", b"f0\0")
    yield "a loop without end", loop((1 << 63) - 1)
    yield "a loop that grows", loop(100, [m.node("Concat", ["a", "a"], ["a2"], axis=0)])
    yield "a loop of constants", loop((1 << 63) - 1, carried="one")
    dense = b"".join([m.put(1, m.ints("values", [1], [1])), m.put(2, m.ints("at", [1], [0])),
                      m.num(3, 1 << 30), m.num(3, 1 << 30)])
    yield "a sparse tensor of much", whole(m.Graph([m.node("Relu", ["values"], ["y"])], [], [out()]).data
                                           + m.put(15, dense))
    yield "external data that is not there", relu_of(
        m.num(1, 1 << 34) + m.num(2, m.FLOAT) + m.put(8, "w") + m.put(13, m.put(1, "location") + m.put(2, "w.bin"))
        + m.num(14, 1))
    yield "a regular expression", made([m.node("RegexFullMatch", ["t"], ["y"], pattern="(a*)*" * 20000 + "$")],
                                       [m.strings("t", [1], ["a" * 30])], outputs=[out(None, m.BOOL)], opset=20)
    yield "a pattern that goes back and forth", made(
        [m.node("RegexFullMatch", ["t"], ["y"], pattern="(a|a)*(b|b)*c")],
        [m.strings("t", [1], ["a" * 5000])], outputs=[out(None, m.BOOL)], opset=20)
    yield "nothing but ones", b"\xff" * 1000000
    yield "nothing at all", b"\0" * 1000000


def picture(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(bytes(100000))) + chunk(b"IEND", b""))


def npy(shape, kind="<f4", data=b""):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n" % (kind, shape)
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + data


@functools.lru_cache
def archive(count, size, kind="|u1"):
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as z:
        for i in range(count):
            z.writestr("a%d.npy" % i, npy("(%d,)" % size, kind, bytes(size * int(kind[-1]))))
    return f.getvalue()


def inputs():
    yield "x.npy", npy("(%d,)" % (1 << 60))
    yield "x.npy", npy("(" + "1, " * 20000 + ")")
    yield "x.npy", npy("(4,)", "<U%d" % (1 << 30), bytes(100))
    yield "x.npy", b"\x93NUMPY\2\0" + struct.pack("<I", (1 << 32) - 1) + b"{"
    yield "x.npz", archive(1, 6 << 20)  # six megabytes of zeros in six kilobytes
    yield "x.npz", archive(1, 100 << 20)  # 100 megabytes in 100 kilobytes, of another type
    yield "x.npz", archive(1, 100 << 20, "|b1")
    yield "x.npz", archive(1, 25 << 20, "<f4")  # of the type, but not of the shape
    yield "x.npz", archive(2, 16 << 20, "<f4")
    yield "x.npz", archive(1, 1 << 20).replace(b"(1048576,)", b"(9999999,)")
    yield "x.png", picture(60000, 60000)
    yield "x.png", picture(1 << 31, 1)
    yield "x.pb", shaped("x", [1 << 40])
    yield "x.pb", shaped("x", [4], m.FLOAT, 4, b"\0" * 1000000)
    yield "x.npz", gzip.compress(bytes(1 << 20))


class Costs(case.Case):
    @classmethod
    def setUpClass(cls):
        # A process counts what its parent had when it was forked: a small one starts them all.
        cls.starter = subprocess.Popen([sys.executable, "-S", "-E", "-c", STARTER], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE)

    @classmethod
    def tearDownClass(cls):
        cls.starter.stdin.close()
        cls.starter.stdout.close()
        cls.starter.wait()

    def cost(self, *args):
        """Exit code, largest memory, processor time, of a process of its own; what it said."""
        said = self.path("said")
        self.starter.stdin.write(("\t".join([said, case.NORI, *args]) + "\n").encode())
        self.starter.stdin.flush()
        code, kilobytes, seconds = self.starter.stdout.readline().split()
        with open(said, errors="replace") as f:
            return int(code), int(kilobytes) * 1024, float(seconds), f.read(2000)

    def judge(self, name, size, args):
        code, memory, seconds, said = self.cost(*args)
        self.assertIn(code, (0, 1, 3, 4), "%s: %s: %s" % (name, args[0], said))
        if code != 0:
            self.assertTrue(said.strip(), name)
        if case.SANITIZED:
            return code
        allowed = SECONDS * max(1.0, size / 1e6)
        self.assertLess(seconds, allowed, "%s: %s took %.2f s, exit code %d: %s" % (name, args[0], seconds, code, said))
        if code != 0:
            self.assertLess(memory, MEMORY, "%s: %s took %d bytes, exit code %d: %s"
                            % (name, args[0], memory, code, said))
        return code

    def test_models(self):
        refused = {"check": 0, "run": 0, "inspect": 0}
        count = 0
        for name, data in models():
            path = self.file("hostile.onnx", data)
            count += 1
            for verb, more in (("check", []), ("inspect", []),
                               ("run", ["--limit", "activations=16MB", "--limit", "iterations=10000"])):
                with self.subTest(name, verb=verb):
                    refused[verb] += self.judge(name, len(data), [verb, path, *more]) != 0
        self.assertGreater(count, 45)
        self.assertGreater(refused["run"], 40, refused)

    def test_inputs(self):
        pixels = m.model(m.Graph([m.node("Relu", ["x"], ["y"])], [m.value("x", m.tensor_type(m.FLOAT, [1, 3, 4, 4]))],
                                 [out()]))
        line = m.model(m.Graph([m.node("Relu", ["x"], ["y"])], [m.value("x", m.tensor_type(m.FLOAT, [4]))], [out()]))
        limit = self.cost("run", self.file("m.onnx", line), "--input", "x=" + self.file("x.pb.gz", gzip.compress(bytes(40 << 20))),
                          "--limit", "unfolded=16MB")
        self.assertEqual(limit[0], 4, limit)
        if not case.SANITIZED:
            self.assertLess(limit[1], MEMORY)
        self.assertIn("unfolded", limit[3])
        for i, (name, data) in enumerate(inputs()):
            path = self.file(name, data)
            model = self.file("m.onnx", pixels if name.endswith("png") else line)
            with self.subTest(i, name=name):
                self.assertNotEqual(self.judge(name, len(data), ["run", model, "--input", "x=" + path]), 0)

    def test_archives_of_samples(self):
        """Verbs that take many samples, or other programs' outputs, from an archive."""
        line = made([m.node("Relu", ["x"], ["y"])], inputs=[x_in(("N", 4))])
        model, path = self.file("m.onnx", line), self.file("x.npz", archive(1, 100 << 20))
        outputs = self.file("y.npz", archive(1, 100 << 20).replace(b"a0.npy", b"y0.npy"))
        named = m.model(m.Graph([m.node("Relu", ["x"], ["y0"])], [x_in()], [m.value("y0", m.tensor_type(m.FLOAT, [1]))]))
        for args in (["calibrate", model, "--data", path, "--output", self.path("c")],
                     ["quantize", model, "--data", path, "--output", self.path("q.onnx")],
                     ["validate", model, "--data", path],
                     ["validate", self.file("n.onnx", named), "--outputs", outputs]):
            with self.subTest(args[0]):
                self.assertNotEqual(self.judge("samples", os.path.getsize(path), args), 0)


if __name__ == "__main__":
    case.main()
