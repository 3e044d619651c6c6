#!/usr/bin/env python3
"""make_seeds.py --nori NORI [--shared DIR] FOLDER: what fuzzing begins with, a folder a target, and the
dictionary fuzz.dict from the list of operators. From the example, what the tests' own writers make, and
packs of cases where they are. The same bytes each time."""
import argparse
import glob
import gzip
import json
import os
import random
import struct
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "command"))
import model_file as m  # noqa: E402

LARGEST = 40000  # bytes of a seed: changes of large files find little
PACK = "/usr/share/libonnx-testdata/data"


class Seeds:
    def __init__(self, folder):
        self.folder, self.counts = folder, {}

    def add(self, target, data):
        if 0 < len(data) <= LARGEST:
            n = self.counts[target] = self.counts.get(target, 0) + 1
            where = os.path.join(self.folder, target)
            os.makedirs(where, exist_ok=True)
            with open(os.path.join(where, "%04d" % n), "wb") as f:
                f.write(data)


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return f.read()


def own_models():
    x, y = m.value("x", m.tensor_type(m.FLOAT, ["n", 4])), m.value("y", m.tensor_type(m.FLOAT, ["n", 4]))
    yield m.model(m.Graph([m.node("Mul", ["x", "w"], ["t"], name="scale"), m.node("Relu", ["t"], ["y"])],
                          [x], [y], [m.floats("w", [4], [1, 2, 3, 4])]))
    body = m.Graph([m.node("Identity", ["c"], ["c2"]), m.node("Neg", ["a"], ["a2"])],
                   [m.value("i", m.tensor_type(m.INT64, [])), m.value("c", m.tensor_type(m.BOOL, [])),
                    m.value("a", m.tensor_type(m.FLOAT, [2]))],
                   [m.value("c2", m.tensor_type(m.BOOL, [])), m.value("a2", m.tensor_type(m.FLOAT, [2]))])
    yield m.model(m.Graph([m.node("Loop", ["trips", "", "x"], ["y"], body=body)],
                          [m.value("x", m.tensor_type(m.FLOAT, [2]))],
                          [m.value("y", m.tensor_type(m.FLOAT, [2]))], [m.ints("trips", [], [3])]))
    yield m.one_node("Conv", [1, 1, 5, 5], [1, 1, 3, 3], initializers=[m.floats("w", [1, 1, 3, 3], [1] * 9)],
                     extra_inputs=["w"], pads=[0, 0, 0, 0])
    yield m.one_node("Einsum", [2, 2], [2], equation="ii->i")
    yield m.one_node("Reshape", [2, 3], [3, 2], initializers=[m.ints("s", [2], [3, -1])], extra_inputs=["s"])
    yield m.one_node("Upsample", [1, 1, 2, 2], [1, 1, 4, 4], opset=9, extra_inputs=["s"],
                     initializers=[m.floats("s", [4], [1, 1, 2, 2])])


def npy(version, header, data):
    head = header.encode() + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(head))
    return b"\x93NUMPY" + bytes([version, 0]) + size + head + data


def npys():
    for version in (1, 2, 3):
        for kind, size in (("<f4", 4), ("|u1", 1), ("<i8", 8), ("|b1", 1), ("<U2", 8), ("<f2", 2), (">f4", 4)):
            for order in ("False", "True"):
                yield npy(version, "{'descr': '%s', 'fortran_order': %s, 'shape': (2, 3), }" % (kind, order),
                          bytes(6 * size))
    yield npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", bytes(8))
    yield npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5), }", b"")


def npzs(folder):
    path = os.path.join(folder, "made.npz")
    arrays = list(npys())
    for way in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(path, "w", way) as z:
            for i, a in enumerate(arrays[:3]):
                z.writestr(zipfile.ZipInfo("a%d.npy" % i), a, way)
        yield read(path)
    os.remove(path)


def cache(made_for, content):
    """A file as kept.c writes it, but for its hash, which is compared last."""
    return b"noripart" + struct.pack("<IIQ", 1, len(made_for), len(content)) + b"0" * 32 + made_for + content


def safetensors():
    for header, data in (({"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
                           "b": {"dtype": "I64", "shape": [1], "data_offsets": [16, 24]},
                           "__metadata__": {"format": "pt"}}, bytes(24)),
                         ({"h": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}, bytes(6)), ({}, b"")):
        text = json.dumps(header).encode()
        yield struct.pack("<Q", len(text)) + text + data


def requests():
    """Bodies of infer, list and load, behind two bytes that fuzz_request.c explains."""
    whole, index, load = b"\xff\xff", b"\xfe\xff", b"\xfd\xff"
    x = {"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [[1, 2], [3, 4.5]]}
    t = {"name": "t", "datatype": "BYTES", "shape": [2], "data": ["ab", "c\\u00e9"]}
    yield whole + json.dumps({"id": "7", "inputs": [x, t], "outputs": [{"name": "y"}],
                              "parameters": {"timeout": 5000, "binary_data_output": True}}).encode()
    far = {"name": "t", "datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": 11}}
    text = json.dumps({"inputs": [x, far]}).encode()
    yield struct.pack("<H", len(text)) + text + b"\2\0\0\0ab\1\0\0\0c"
    near = {"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}
    text = json.dumps({"inputs": [near], "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}).encode()
    yield struct.pack("<H", len(text)) + text + bytes(8)
    yield b"\0\0" + bytes(16)
    yield index + b'{"ready": true}'
    yield load + b'{"parameters": {}}'


def tuned(plan):
    """The plan with a way for the step of its first block; its hash, the target puts right (plan_file.h)."""
    at = [struct.unpack_from("<Q", plan, 24 + 16 * i)[0] for i in range(6)]
    step, _, op = struct.unpack_from("<III", plan, at[3] + 16)
    ways = struct.pack("<6I", 2, 0, step, op, 0, 0)
    made = bytearray(plan[:at[2]] + ways + bytes(4096 - len(ways)) + plan[at[2]:])
    struct.pack_into("<Q", made, 16, len(made))
    struct.pack_into("<Q", made, 24 + 16 * 2 + 8, len(ways))
    for i in range(3, 6):
        struct.pack_into("<Q", made, 24 + 16 * i, at[i] + 4096)
    return bytes(made)


def plans(nori, models, folder):
    path = os.path.join(folder, "made.plan")
    for model in models:
        subprocess.run([nori, "compile", model, "--output", path, "--quiet"], check=True)
        yield read(path)
        if json.loads(subprocess.run([nori, "inspect", path, "--json"], check=True,
                                     stdout=subprocess.PIPE).stdout)["plan"]["blocks"] > 0:
            yield tuned(read(path))
    os.remove(path)


def profiles(nori, model, folder):
    path = os.path.join(folder, "made.json")
    subprocess.run([nori, "profile", model, "--runs", "3", "--output", path, "--quiet"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if os.path.exists(path):
        yield read(path)
        os.remove(path)
    yield b'{"nori_profile": 1}'


def packs(shared):
    """Model files and the folders of their data."""
    found = sorted(glob.glob(PACK + "/*/*/model.onnx")) + sorted(glob.glob(PACK + "/*/model.onnx"))
    found += sorted(glob.glob(os.path.join(shared, "conformance", "**", "model.onnx"), recursive=True))
    rng = random.Random(1)
    rng.shuffle(found)
    return found


def dictionary(nori):
    words = set()
    caps = json.loads(subprocess.run([nori, "caps", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    for row in caps:
        words.add(row["op"])
    words |= {"ai.onnx.ml", "com.microsoft", "location", "offset", "length", "axis", "axes", "perm", "to", "pads",
              "strides", "dilations", "body", "then_branch", "else_branch", "descr", "fortran_order", "shape",
              "data_offsets", "dtype"}
    lines = ['"%s"' % w for w in sorted(words) if all(32 < ord(c) < 127 and c not in '"\\' for c in w)]
    for number in (b"\xff" * 9 + b"\x01", b"\xff\xff\xff\xff\x0f", b"\x80" * 9 + b"\x00", b"\x80" * 11):
        lines.append('"%s"' % "".join("\\x%02x" % b for b in number))
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--nori", required=True)
    p.add_argument("--shared", default="")
    p.add_argument("--models", type=int, default=150, help="of the packs at most")
    p.add_argument("folder")
    args = p.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    seeds = Seeds(args.folder)
    models = list(own_models())
    digits = os.path.join(ROOT, "examples", "digits")
    for path in [os.path.join(digits, "digits.onnx")] + packs(args.shared)[:args.models]:
        models.append(read(path))
        for data in sorted(glob.glob(os.path.dirname(path) + "/test_data_set_0/*.pb*"))[:1]:
            for kind in b"\0\1":
                seeds.add("pb", bytes([kind]) + read(data))
    scratch = os.path.join(args.folder, "scratch.onnx")
    for data in models:
        seeds.add("wire", data)
        seeds.add("load", data)
        if len(data) < 3000:
            with open(scratch, "wb") as f:
                f.write(data)
            done = subprocess.run([args.nori, "inspect", scratch, "--text"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                seeds.add("text", done.stdout)
    os.remove(scratch)
    rng = random.Random(2)
    for size in (8, 16, 32, 64, 128) * 12:
        seeds.add("run", bytes(rng.randrange(256) for _ in range(size)))
        seeds.add("agree", bytes(rng.randrange(256) for _ in range(4 * size)))
    for data in npys():
        seeds.add("npy", data)
    for data in npzs(args.folder):
        seeds.add("npz", data)
    for data in safetensors():
        seeds.add("weights", data)
    for path in sorted(glob.glob(os.path.join(digits, "pictures", "*")))[:6]:
        seeds.add("picture", read(path))
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "regress", "picture", "*"))):
        seeds.add("picture", read(path))
    ranges = os.path.join(args.folder, "made.ncal")
    small = os.path.join(args.folder, "small.onnx")
    with open(small, "wb") as f:
        f.write(models[0])
    subprocess.run([args.nori, "calibrate", small, "--random", "2", "--output", ranges, "--quiet"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if os.path.exists(ranges):
        seeds.add("calibration", read(ranges))
        os.remove(ranges)
    packed = os.path.join(args.folder, "packed.onnx")
    with open(packed, "wb") as f:
        f.write(models[2])
    for data in plans(args.nori, [small, packed], args.folder):
        seeds.add("plan", data)
    os.remove(small)
    os.remove(packed)
    for made_for, content in ((b"engine 1", b"content"), (b"x", b""), (b"engine\nand more", bytes(100))):
        seeds.add("cache", cache(made_for, content))
    for text in ("12.5ms", "5 MB/s", "3 /s", "1e3 mJ", "4KiB", "Mb/s", "0x10 s", "nan s", "1e999 h"):
        seeds.add("quantity", text.encode())
    for data in requests():
        seeds.add("request", data)
    for data in profiles(args.nori, os.path.join(digits, "digits.onnx"), args.folder):
        seeds.add("profile", data)
    with open(os.path.join(args.folder, "fuzz.dict"), "w") as f:
        f.write(dictionary(args.nori))
    print(", ".join("%s %d" % row for row in sorted(seeds.counts.items())))
    missing = {"wire", "load", "plan", "run", "agree", "text", "npy", "npz", "pb", "weights", "picture", "calibration", "cache",
               "quantity", "request"} - set(seeds.counts)
    if missing:
        sys.exit("no seeds for " + ", ".join(sorted(missing)))


if __name__ == "__main__":
    main()
