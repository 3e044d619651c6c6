#!/usr/bin/env python3
"""check_reduced.py --nori NORI --library LIBNORI.SO --build FOLDER [--most BYTES] [--levels LIST] [MODEL...]

Builds a library that holds the operators of three models (made here: the bundled digits, convolutions as MobileNet
has them, an LSTM over frames; or MODELs) in FOLDER, as docs/size.md says, and checks that
  - it is at most BYTES when stripped; a table says what of,
  - each model runs on it at each optimization and CPU level with the bytes that LIBNORI.SO, of the same
    sources, gives,
    the highest it holds standing for those above,
  - an operator it lacks is an error that names it and what to do.
With --time, the time of a run on it is compared with the full library's, in turns.
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(HERE, "command"))
import model_file as f

p = argparse.ArgumentParser()
p.add_argument("models", nargs="*")
p.add_argument("--nori", required=True)
p.add_argument("--library", required=True)
p.add_argument("--build", required=True)
p.add_argument("--most", type=int)
p.add_argument("--levels", default="avx2;avx512;amx", help="CPU levels to hold: NORI_LEVELS")
p.add_argument("--option", action="append", default=[], help="for CMake; may be repeated: --option=-DX=Y")
p.add_argument("--time", type=int, default=0, metavar="RUNS")
args = p.parse_args()
bad = []


def run(*command, env=None):
    r = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})
    if r.returncode:
        sys.exit("%s\n%s%s" % (" ".join(command), r.stdout[-3000:], r.stderr[-3000:]))
    return r.stdout


def numbers(*dims):
    count = 1
    for d in dims:
        count *= d
    return [((i * 7919) % 31 - 15) / 64 for i in range(count)]


def value(name, *dims):
    return f.value(name, f.tensor_type(f.FLOAT, dims))


class Maker:
    """Nodes and weights, one after the other."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, *dims):
        name = "w%d" % len(self.weights)
        self.weights.append(f.floats(name, dims, numbers(*dims)))
        return name

    def ints(self, *v):
        name = "w%d" % len(self.weights)
        self.weights.append(f.ints(name, [len(v)], v))
        return name

    def put(self, op, inputs, **attrs):
        out = "v%d" % len(self.nodes)
        self.nodes.append(f.node(op, inputs, [out], name="n%d" % len(self.nodes), **attrs))
        return out

    def conv(self, x, channels, made, kernel=1, stride=1, group=1, act=True):
        pad = kernel // 2
        y = self.put("Conv", [x, self.weight(made, channels // group, kernel, kernel), self.weight(made)],
                     kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=group)
        return self.put("Clip", [y, "low", "high"]) if act else y

    def model(self, x, y, out):
        self.nodes.append(f.node("Identity", [y], ["y"]))
        return f.model(f.Graph(self.nodes, [x], [out], self.weights), 13)


def mobile():
    """Expansion, depthwise 3 x 3, projection with residuals; 8 to 16 channels, a head."""
    m = Maker()
    m.weights += [f.floats("low", [], [0.0]), f.floats("high", [], [6.0])]
    x = m.conv("x", 3, 16, 3, 2)
    for i in range(3):
        e = m.conv(x, 16, 48)
        d = m.conv(e, 48, 48, 3, 1, 48)
        x = m.put("Add", [x, m.conv(d, 48, 16, act=False)])
    x = m.conv(m.conv(x, 16, 32), 32, 32, 3, 2, 32)
    x = m.put("Flatten", [m.put("GlobalAveragePool", [x])])
    x = m.put("Gemm", [x, m.weight(10, 32), m.weight(10)], transB=1)
    return m.model(value("x", 1, 3, 32, 32), x, value("y", 1, 10))


def words():
    """Frames to an LSTM, its last state to scores: what listens for a word."""
    m = Maker()
    x = m.put("Transpose", ["x"], perm=[1, 0, 2])
    m.nodes.append(f.node("LSTM", [x, m.weight(1, 128, 20), m.weight(1, 128, 32), m.weight(1, 256)],
                          ["", "h"], name="lstm", hidden_size=32))
    h = m.put("Squeeze", ["h", m.ints(0)])
    h = m.put("Relu", [m.put("Gemm", [h, m.weight(32, 24), m.weight(24)])])
    h = m.put("Softmax", [m.put("Add", [m.put("MatMul", [h, m.weight(24, 6)]), m.weight(6)])], axis=-1)
    return m.model(value("x", 1, 25, 20), h, value("y", 1, 6))


def lacking():
    return f.one_node("Mish", [2, 3], [2, 3], opset=18)


def make_models(folder):
    made = [os.path.join(ROOT, "examples", "digits", "digits.onnx")]
    for name, data in (("mobile", mobile()), ("words", words())):
        made.append(os.path.join(folder, name + ".onnx"))
        with open(made[-1], "wb") as file:
            file.write(data)
    return made


def build(models):
    os.makedirs(args.build, exist_ok=True)
    listed = os.path.abspath(os.path.join(args.build, "operators.txt"))
    run(args.nori, "needs", *models, "--output", listed)
    run("cmake", "-S", ROOT, "-B", args.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DNORI_TOOLS=OFF",
        "-DNORI_MAP=ON", "-DNORI_OPERATORS=" + listed, "-DNORI_LEVELS=" + args.levels, *args.option)
    run("ninja", "-C", args.build, "nori_shared")
    return os.path.join(args.build, "src", "libnori.so")


def runner(library, folder, name):
    """run_library on one of the libraries."""
    out = os.path.join(folder, name)
    where = os.path.dirname(os.path.abspath(library))
    run("cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-I" + os.path.join(ROOT, "include"),
        os.path.join(HERE, "run_library.c"), "-o", out, "-L" + where, "-lnori", "-Wl,-rpath," + where)
    return out


def result(program, model, level, cpu, folder, repeats=1):
    out = os.path.join(folder, "result")
    r = subprocess.run([program, model, str(level), str(repeats), out], capture_output=True, text=True,
                       env={**os.environ, "NORI_CPU": cpu})
    if r.returncode:
        return None, r.stderr
    with open(out, "rb") as file:
        return file.read(), float(r.stdout)


def compare(models, full, small, folder):
    ran, all_levels = 0, ["base", "avx2", "avx512", "amx"]
    held = [level for level in all_levels if level in args.levels.split(";") + ["base"]]
    for model in models:
        for cpu in all_levels:
            same = cpu if cpu in held else held[-1]
            for level in (0, 1, 2):
                want, why = result(full, model, level, same, folder)
                got, text = result(small, model, level, cpu, folder)
                what = "%s, level %d, NORI_CPU=%s" % (os.path.basename(model), level, cpu)
                if want is None or got is None:
                    bad.append("%s: %s" % (what, why if want is None else text))
                elif got != want:
                    bad.append(what + ": other bytes than the full library gives")
                else:
                    ran += 1
    print("%d runs of %d models give the full library's bytes" % (ran, len(models)))


def compare_times(models, full, small, folder):
    for model in models:
        times = ([], [])
        for _ in range(7):
            for program, list_ in zip((full, small), times):
                list_.append(result(program, model, 2, args.levels.split(";")[-1], folder, args.time)[1])
        a, b = sorted(times[0]), sorted(times[1])
        print("%-28s full %9.4f ms, reduced %9.4f ms: %.3f (best of 7 x %d: %.3f)" % (
            os.path.basename(model), a[3], b[3], b[3] / a[3], args.time, b[0] / a[0]))


def check_lacking(small, folder):
    path = os.path.join(folder, "lacking.onnx")
    with open(path, "wb") as file:
        file.write(lacking())
    got, text = result(small, path, 2, "base", folder)
    for word in ("Mish", "not in this reduced build", "operators.txt", "build again"):
        if got is not None or word not in text:
            bad.append("an operator that is not there: expected \"%s\", got: %s" % (word, text))


with tempfile.TemporaryDirectory() as scratch:
    chosen = [os.path.abspath(m) for m in args.models] or make_models(scratch)
    reduced = build(chosen)
    table = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "size_report.py"), reduced]
                           + (["--most", str(args.most)] if args.most else []), text=True, capture_output=True)
    print(table.stdout, end="")
    if table.returncode:
        bad.append(table.stderr.strip())
    programs = runner(args.library, scratch, "full"), runner(reduced, scratch, "small")
    compare(chosen, *programs, scratch)
    check_lacking(programs[1], scratch)
    if args.time:
        compare_times(chosen, *programs, scratch)
print("\n".join(bad) or "the reduced library is as it should be")
sys.exit(bool(bad))
