#!/usr/bin/env python3
"""Measures what the table of costs in src/tools/quantize/costs.c rests on: times of layers and of single
operators in float and on integers, and of what changes form between them.

    int8_costs.py --nori build/release/nori [--filter TEXT] [--runs 30]

Makes small models of chains of one layer, quantizes all of each, and prints for both forms the least
time of a run on one thread and what each operator took (microseconds / how many), microseconds all.
An idle machine is a must; read differences of a tenth as none."""
import argparse
import array
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "tests", "command"))
import model_file as m

p = argparse.ArgumentParser()
p.add_argument("--nori", required=True)
p.add_argument("--filter", default="")
p.add_argument("--runs", default="30")
args = p.parse_args()
random.seed(1)


def weights(name, dims):
    count = 1
    for d in dims:
        count *= d
    size = (count / dims[0]) ** 0.5
    return m.tensor(name, m.FLOAT, dims,
                    array.array("f", (random.uniform(-1, 1) / size for _ in range(count))).tobytes())


def model(nodes, constants, dims, out):
    return m.model(m.Graph(nodes, [m.value("x", m.tensor_type(m.FLOAT, dims))],
                           [m.value(out, m.tensor_type(m.FLOAT, None))], constants))


def convolutions(channels, size, kernel, groups=False, read=None, layers=3):
    nodes, constants, value, depth = [], [], "x", read or channels
    for i in range(layers):
        constants += [weights("w%d" % i, [channels, 1 if groups else depth, kernel, kernel]),
                      weights("b%d" % i, [channels])]
        nodes.append(m.node("Conv", [value, "w%d" % i, "b%d" % i], ["c%d" % i],
                            pads=[kernel // 2] * 4, group=channels if groups else 1))
        value, depth = "r%d" % i, channels
        nodes.append(m.node("Relu", ["c%d" % i], [value]))
    return model(nodes, constants, [1, read or channels, size, size], value)


def products(rows, depth, columns):
    nodes, constants, value = [], [], "x"
    for i in range(3):
        constants += [weights("w%d" % i, [depth, columns]), weights("b%d" % i, [columns])]
        nodes.append(m.node("Gemm", [value, "w%d" % i, "b%d" % i], ["c%d" % i]))
        value, read = "r%d" % i, depth if i == 0 else read
        depth = columns
        nodes.append(m.node("Relu", ["c%d" % i], [value]))
    return model(nodes, constants, [rows, read], value)


def between(op, channels=64, two=False, joined=False, **attributes):
    """One operator between convolutions of 1 x 1."""
    nodes = [m.node("Conv", ["x", "w0"], ["a"]), m.node("Conv", ["x", "w0"], ["b"]),
             m.node(op, ["a", "b"] if two else ["a"], ["c"], **attributes),
             m.node("Conv", ["c", "w1"], ["y"])]
    constants = [weights("w0", [channels, channels, 1, 1]),
                 weights("w1", [16, 2 * channels if joined else channels, 1, 1])]
    return model(nodes if two else nodes[:1] + nodes[2:], constants, [1, channels, 28, 28], "y")


def attention(heads, length, size):
    width, constants = heads * size, [m.ints("s", [4], [1, length, heads, size]),
                                      m.ints("t", [3], [1, length, heads * size])]
    nodes = []
    for name in "qkv":
        constants.append(weights("w" + name, [width, width]))
        nodes += [m.node("MatMul", ["x", "w" + name], [name]),
                  m.node("Reshape", [name, "s"], [name + "r"]),
                  m.node("Transpose", [name + "r"], [name + "t"],
                         perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])]
    nodes += [m.node("MatMul", ["qt", "kt"], ["scores"]),
              m.node("Softmax", ["scores"], ["shares"], axis=-1),
              m.node("MatMul", ["shares", "vt"], ["o"]),
              m.node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
              m.node("Reshape", ["ot", "t"], ["y"])]
    return model(nodes, constants, [1, length, width], "y")


def cases():
    for c, size, k in ((4, 8, 3), (8, 8, 3), (16, 8, 3), (8, 16, 3), (16, 16, 3), (32, 16, 3), (16, 32, 3),
                       (32, 32, 3), (64, 28, 3), (128, 14, 3), (16, 8, 1), (32, 16, 1), (24, 56, 1),
                       (64, 28, 1), (96, 28, 1), (256, 14, 1), (8, 28, 5)):
        yield "conv %d, %d x %d, kernel %d" % (c, size, size, k), convolutions(c, size, k)
    for c, size in ((16, 8), (16, 32), (32, 28), (64, 28), (128, 14), (256, 14), (96, 56)):
        yield "depthwise %d, %d x %d" % (c, size, size), convolutions(c, size, 3, groups=True)
    for c, size, k, read in ((8, 28, 5, 1), (16, 32, 3, 3), (32, 112, 3, 3)):
        yield ("first conv %d of %d, %d x %d, kernel %d" % (c, read, size, size, k),
               convolutions(c, size, k, read=read, layers=1))
    for rows, depth, columns in ((1, 16, 16), (1, 64, 64), (1, 128, 128), (1, 256, 256), (1, 512, 512),
                                 (1, 1024, 1024), (16, 64, 64), (16, 256, 256), (64, 128, 128),
                                 (128, 256, 256), (197, 768, 768)):
        yield "product %d x %d x %d" % (rows, depth, columns), products(rows, depth, columns)
    for op, more in (("Add", {"two": True}), ("Mul", {"two": True}), ("Sigmoid", {}), ("LeakyRelu", {}),
                     ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
                     ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
                     ("GlobalAveragePool", {}), ("Concat", {"two": True, "joined": True, "axis": 1})):
        yield op, between(op, **more)
    yield "MaxPool of 8", between("MaxPool", 8, kernel_shape=[2, 2], strides=[2, 2])
    for heads, length, size in ((4, 16, 8), (4, 64, 32), (4, 197, 64)):
        yield "attention %d x %d x %d" % (heads, length, size), attention(heads, length, size)


def bench(path):
    r = subprocess.run([args.nori, "bench", path, "--threads", "1", "--runs", args.runs, "--json",
                        "--profile"], capture_output=True, text=True, check=True)
    r = json.loads(r.stdout)
    return r["min_ms"] * 1000, " ".join("%s %.2f/%d" % (o["op"], o["us"], o["calls"])
                                        for o in r["operators"])


with tempfile.TemporaryDirectory() as place:
    made, quantized = os.path.join(place, "float.onnx"), os.path.join(place, "int8.onnx")
    for name, data in cases():
        if args.filter not in name:
            continue
        with open(made, "wb") as f:
            f.write(data)
        subprocess.run([args.nori, "quantize", made, "--output", quantized, "--random", "2",
                        "--no-search", "--without", "adaround", "--quiet"], check=True)
        least, words = [1e9, 1e9], ["", ""]
        for _ in range(3):
            for i, path in enumerate((made, quantized)):
                took, words[i] = bench(path)
                least[i] = min(least[i], took)
        print("%-34s float %8.2f  integers %8.2f  ratio %.2f\n    float     %s\n    integers  %s" % (
            name, *least, least[1] / least[0], *words), flush=True)
