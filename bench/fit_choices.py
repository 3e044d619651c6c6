#!/usr/bin/env python3
"""Where the rules of src/providers/cpu/ways.c are wrong: the ways of single layers, measured on this machine.

    fit_choices.py --nori build/release/nori [--levels avx512,avx2] [--threads 1] [--filter TEXT] [--all]

Makes small models of one kind of layer each, over a grid of shapes, and has `nori compile --tune` measure
their ways, at each CPU level (NORI_CPU) the machine has. A way that beats the rule's by more than --least
(10 %) is measured once more; what holds is printed, with how much faster it is, and makes the exit code 1.
--all prints every way. An idle machine is a must; on one that is not, real-time priority helps (chrt -f)."""
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
p.add_argument("--levels", default="avx512,avx2")
p.add_argument("--threads", default="1")
p.add_argument("--filter", default="")
p.add_argument("--seconds", default="2")
p.add_argument("--least", type=float, default=0.10)
p.add_argument("--all", action="store_true")
args = p.parse_args()
random.seed(1)


def floats(name, dims):
    count = 1
    for d in dims:
        count *= d
    size = (count / dims[0]) ** 0.5
    few = array.array("f", (random.uniform(-1, 1) / size for _ in range(min(count, 4099)))).tobytes()
    return m.tensor(name, m.FLOAT, dims, (few * (count * 4 // len(few) + 1))[:count * 4])


def signed(name, dims):
    count = 1
    for d in dims:
        count *= d
    few = bytes(min(255, max(0, int(random.gauss(0, 20)))) if random.random() < 0.5 else 256 - int(
        min(127, abs(random.gauss(0, 20)) + 1)) for _ in range(4099))
    return m.tensor(name, m.INT8, dims, (few * (count // len(few) + 1))[:count])


def model(nodes, constants, dims, out, kind=m.FLOAT):
    return m.model(m.Graph(nodes, [m.value("x", m.tensor_type(kind, dims))],
                           [m.value(out, m.tensor_type(kind, None))], constants))


def convolutions(read, made, size, kernel, stride=1, group=1, layers=3, batch=1):
    """Layers of one shape beside each other, and what follows them joined."""
    nodes, constants, outs = [], [], []
    for i in range(layers):
        constants += [floats("w%d" % i, [made, read // group, kernel, kernel]), floats("b%d" % i, [made])]
        nodes += [m.node("Conv", ["x", "w%d" % i, "b%d" % i], ["c%d" % i], pads=[kernel // 2] * 4,
                         strides=[stride] * 2, group=group),
                  m.node("Relu", ["c%d" % i], ["r%d" % i])]
        outs.append("r%d" % i)
    nodes.append(m.node("Sum", outs, ["y"]))
    return model(nodes, constants, [batch, read, size, size], "y")


def expansions(read, made, size, kernel, stride):
    nodes, constants, outs = [], [], []
    for i in range(2):
        constants += [floats("w%d" % i, [made, read, 1, 1]), floats("d%d" % i, [made, 1, kernel, kernel]),
                      floats("p%d" % i, [read, made, 1, 1])]
        nodes += [m.node("Conv", ["x", "w%d" % i], ["a%d" % i]),
                  m.node("Clip", ["a%d" % i, "low", "high"], ["e%d" % i]),
                  m.node("Conv", ["e%d" % i, "d%d" % i], ["f%d" % i], pads=[kernel // 2] * 4,
                         strides=[stride] * 2, group=made),
                  m.node("Clip", ["f%d" % i, "low", "high"], ["g%d" % i]),
                  m.node("Conv", ["g%d" % i, "p%d" % i], ["h%d" % i])]
        outs.append("h%d" % i)
    constants += [m.tensor(name, m.FLOAT, [], array.array("f", [value]).tobytes())
                  for name, value in (("low", 0), ("high", 6))]
    nodes.append(m.node("Add", outs, ["y"]))
    return model(nodes, constants, [1, read, size, size], "y")


def stem(made, size, kernel):
    return model([m.node("Conv", ["x", "w"], ["c"], pads=[kernel // 2] * 4, strides=[2, 2]),
                  m.node("Relu", ["c"], ["r"]),
                  m.node("MaxPool", ["r"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)],
                 [floats("w", [made, 3, kernel, kernel])], [1, 3, size, size], "y")


def products(rows, depth, columns):
    nodes, constants, outs = [], [], []
    for i in range(3):
        constants.append(floats("w%d" % i, [depth, columns]))
        nodes.append(m.node("MatMul", ["x", "w%d" % i], ["c%d" % i]))
        outs.append("c%d" % i)
    nodes.append(m.node("Sum", outs, ["y"]))
    return model(nodes, constants, [rows, depth], "y")


def on_integers(read, made, size, kernel, stride=1):
    nodes, value, depth = [], "x", read
    constants = [m.tensor("s", m.FLOAT, [], array.array("f", [0.05]).tobytes()),
                 m.tensor("t", m.FLOAT, [], array.array("f", [0.01]).tobytes()),
                 m.tensor("z", m.UINT8, [], bytes([120])), m.tensor("q", m.INT8, [], bytes([0]))]
    for i in range(3):
        constants.append(signed("w%d" % i, [made, depth, kernel, kernel]))
        nodes.append(m.node("QLinearConv", [value, "s", "z", "w%d" % i, "t", "q", "s", "z"], ["c%d" % i],
                            pads=[kernel // 2] * 4, strides=[stride] * 2))
        value, depth = "c%d" % i, made
    return model(nodes, constants, [1, read, size, size], value, m.UINT8)


def cases():
    for c, size in ((16, 112), (32, 56), (64, 112), (64, 56), (128, 56), (128, 28), (256, 28), (256, 14),
                    (512, 14), (192, 12), (128, 10), (256, 10), (64, 8), (128, 7), (256, 7), (512, 7), (96, 5), (512, 4)):
        yield "3x3 %d at %d" % (c, size), convolutions(c, c, size, 3)
    for read, made, size in ((16, 64, 56), (64, 16, 56), (8, 32, 56), (32, 8, 56), (512, 32, 14), (32, 512, 14)):
        yield "3x3 %d -> %d at %d" % (read, made, size), convolutions(read, made, size, 3)
    for c, size in ((64, 56), (128, 28), (256, 14), (512, 7)):
        yield "3x3 %d at %d, batch 4" % (c, size), convolutions(c, c, size, 3, batch=4, layers=1)
    for read, made, size in ((32, 64, 112), (64, 128, 56), (128, 256, 28), (256, 512, 14)):
        yield "3x3 %d -> %d at %d, stride 2" % (read, made, size), convolutions(read, made, size, 3, 2)
    for c, size in ((32, 28), (64, 14), (96, 7)):
        yield "5x5 %d at %d" % (c, size), convolutions(c, c, size, 5)
    for read, made, size in ((16, 96, 112), (64, 256, 56), (256, 64, 56), (512, 128, 28), (1024, 256, 14),
                             (256, 1024, 14), (576, 96, 14), (960, 160, 7), (320, 1280, 7), (2048, 512, 7)):
        yield "1x1 %d -> %d at %d" % (read, made, size), convolutions(read, made, size, 1)
    for read, made, size in ((256, 512, 56), (512, 1024, 28)):
        yield "1x1 %d -> %d at %d, stride 2" % (read, made, size), convolutions(read, made, size, 1, 2)
    for c, size, g in ((128, 28, 4), (256, 14, 8)):
        yield "3x3 %d at %d, group %d" % (c, size, g), convolutions(c, c, size, 3, group=g)
    for c, size, k, s in ((32, 112, 3, 1), (96, 56, 3, 1), (144, 28, 5, 1), (384, 14, 3, 1), (960, 7, 3, 1),
                          (96, 112, 3, 2), (240, 28, 3, 2)):
        yield "depthwise %d at %d, kernel %d, stride %d" % (c, size, k, s), convolutions(c, c, size, k, s, c)
    for read, made, size, k, s in ((16, 96, 112, 3, 2), (24, 144, 56, 3, 1), (40, 240, 28, 5, 1),
                                   (32, 192, 28, 3, 1), (64, 384, 14, 3, 1), (112, 672, 14, 5, 1),
                                   (160, 960, 7, 3, 1)):
        yield "expand %d -> %d at %d, kernel %d, stride %d" % (read, made, size, k, s), expansions(read, made, size, k, s)
    for made, size, k in ((64, 224, 7), (24, 224, 3), (64, 512, 7)):
        yield "stem %d at %d, kernel %d" % (made, size, k), stem(made, size, k)
    for rows, depth, columns in ((1, 512, 1000), (1, 2048, 1000), (2, 1024, 1024), (4, 256, 256), (6, 256, 1024),
                                 (8, 768, 768), (12, 512, 2048), (16, 256, 256), (128, 256, 256), (128, 256, 1024),
                                 (128, 1024, 256), (197, 768, 768), (197, 768, 3072), (197, 3072, 768),
                                 (512, 512, 512)):
        yield "product %d x %d x %d" % (rows, depth, columns), products(rows, depth, columns)
    for read, made, size, k, s in ((16, 16, 56, 3, 1), (64, 64, 56, 3, 1), (128, 128, 28, 3, 1), (256, 256, 14, 3, 1),
                                   (512, 512, 7, 3, 1), (20, 20, 28, 3, 1), (64, 64, 28, 1, 1), (256, 256, 14, 1, 1)):
        yield "int8 %d -> %d at %d, kernel %d" % (read, made, size, k), on_integers(read, made, size, k, s)


def measure(path, level, place):
    r = subprocess.run([args.nori, "compile", path, "--output", os.path.join(place, "x.plan"), "--tune", "--json",
                        "--seconds", args.seconds, "--threads", args.threads],
                       capture_output=True, text=True, check=True, env={**os.environ, "NORI_CPU": level})
    r = json.loads(r.stdout)
    return r["level"], r["tuning"]["layers"]


wrong = 0
with tempfile.TemporaryDirectory() as place:
    path = os.path.join(place, "layer.onnx")
    for name, data in cases():
        if args.filter not in name:
            continue
        with open(path, "wb") as f:
            f.write(data)
        for level in args.levels.split(","):
            found, layers = measure(path, level, place)
            if found != level:
                print("%s: this machine or build has no level %s" % (name, level))
                continue
            again = None
            for i, layer in enumerate(layers):
                gains = {w["way"]: w["usual_us"] / w["us"] for w in layer["ways"]}
                if args.all:
                    print("%-7s %-44s %-10s %8.1f us  %s" % (
                        level, layer["layer"], layer["usual"], layer["ways"][0]["usual_us"] if layer["ways"] else 0,
                        "  ".join("%s %.2f" % g for g in gains.items())), flush=True)
                if not gains or max(gains.values()) <= 1 + args.least:
                    continue
                again = again or measure(path, level, place)[1]
                second = {w["way"]: w["usual_us"] / w["us"] for w in again[i]["ways"]}
                best = max(gains, key=lambda way: min(gains[way], second.get(way, 0)))
                gain = min(gains[best], second.get(best, 0))
                if gain > 1 + args.least:
                    wrong += 1
                    print("%-7s %-44s the rule says %s; %s is %.0f %% faster" % (
                        level, layer["layer"], layer["usual"], best, 100 * gain - 100), flush=True)
print("%d layers for which a rule is wrong by more than %.0f %%" % (wrong, 100 * args.least))
sys.exit(wrong > 0)
