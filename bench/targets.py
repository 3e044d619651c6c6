#!/usr/bin/env python3
"""What nori is measured by, target beside figure, against ONNX Runtime in the same process run.

    bench/targets.py [--models DIR] [--more DIR] [--threads 1,2] [--rounds 7] [--filter TEXT] [--int8]
                     [--markdown]

DIR holds networks exported by torch (NAME_opN.onnx); without them the bundled network alone is measured.
--more DIR adds folders of published models (DIR/NAME/*.onnx): those that take the peer over 1 ms. --int8
also quantizes each of the first and measures the result.

The tables of docs/performance.md are what this prints, in one go, on a machine that does nothing else:

    bench/targets.py --models DIR --more DIR --threads 1,2 --rounds 9 --int8 --markdown

NORI_ORT_LIBRARY names ONNX Runtime's library (tools/get_ort.sh fetches one); without it only nori's own
figures are printed. Every ratio is of medians of interleaved rounds (`nori bench --versus`), how often
nori is faster; with one thread of CPU time, with several of time on the wall. Only figures of a machine
that does nothing else count: the load average is printed first."""
import argparse
import glob
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
p.add_argument("--models", default="")
p.add_argument("--more", default="", help="folders of published models")
p.add_argument("--threads", default="1,2")
p.add_argument("--rounds", type=int, default=7)
p.add_argument("--filter", default="")
p.add_argument("--int8", action="store_true", help="also quantize each, and measure the result")
p.add_argument("--markdown", action="store_true", help="tables for a document")
args = p.parse_args()
NORI = os.path.join(args.build, "nori")

# Networks and the sizes of their free dimensions.
ELEVEN = [("resnet18", {"batch": 1}), ("resnet50", {"batch": 1}), ("vgg_block", {"batch": 1}),
          ("squeezenet1_1", {"batch": 1}), ("mobilenet_v2", {"batch": 1}),
          ("mobilenet_v3_small", {"batch": 1}), ("efficientnet_b0", {"batch": 1}),
          ("shufflenet_v2_x1_0", {"batch": 1}), ("vit_b_16", {"batch": 1}),
          ("bert_mini", {"batch": 1, "seq": 128}), ("lstm_uni", {"batch": 1, "time": 100}),
          ("lstm_classifier", {"batch": 1, "time": 100})]
LAYERS = [("conv 3x3 64-64 @56", 2.3), ("conv 3x3 128-128 @28", 2.4), ("conv 3x3 256-256 @14", 1.7),
          ("conv 3x3 512-512 @7", 0.88), ("gemm 1024x1024x1024", 0.9), ("gemm 197x3072x768", 0.9)]


def find(name):
    found = sorted(glob.glob(os.path.join(args.models, name + "_op*.onnx"))) if args.models else []
    return found[-1] if found else None


def int64_file(folder, name, shape, value):
    """An .npy of one number: token files for networks whose random inputs would leave a table."""
    path = os.path.join(folder, name + ".npy")
    head = str({"descr": "<i8", "fortran_order": False, "shape": tuple(shape)}).encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    count = math.prod(shape)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
        f.write(struct.pack("<q", value) * count)
    return path


def inputs(folder, name, dims):
    """Options that give a network its inputs."""
    if name == "bert_mini":
        shape = [dims["batch"], dims["seq"]]
        return [word for n, v in (("input_ids", 7), ("attention_mask", 1), ("token_type_ids", 0))
                for word in ("--input", "%s=%s" % (n, int64_file(folder, n, shape, v)))]
    return [word for n, v in dims.items() for word in ("--dim", "%s=%d" % (n, v))]


def run(*command):
    r = subprocess.run([NORI, *command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        return json.loads(r.stdout), r.stderr.decode()
    except ValueError:
        return {"error": {"message": r.stderr.decode().strip()}}, ""


def versus(path, options, threads):
    j, _ = run("bench", path, *options, "--versus", "ort:cpu", "--threads", str(threads), "--rounds",
               str(args.rounds))
    if "error" in j:
        return None, j["error"]["message"]
    return j, ""


def plan_start(folder, path, options):
    """What a session of the compiled plan takes to be ready, and how much longer its first run takes."""
    plan = os.path.join(folder, "network.plan")
    dims = [w for pair in zip(options[::2], options[1::2]) if pair[0] == "--dim" for w in pair]
    j, _ = run("compile", path, *dims, "--output", plan)
    if "error" not in j:
        j, _ = run("bench", plan, *options, "--threads", "1", "--runs", "10")
    if os.path.exists(plan):
        os.remove(plan)
    return None if "error" in j else (j["load_ms"] + j["create_ms"],
                                      max(j["first_ms"] - j["median_ms"], 0))


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def table(heads, rows):
    widths = [max(len(str(r[i])) for r in [heads, *rows]) for i in range(len(heads))]
    if args.markdown:
        lines = ["| " + " | ".join(map(str, r)) + " |" for r in [heads, ["---"] * len(heads), *rows]]
    else:
        lines = ["  ".join(str(c).ljust(w) if i == 0 else str(c).rjust(w)
                           for i, (c, w) in enumerate(zip(r, widths))) for r in [heads, *rows]]
    print("\n".join(lines) + "\n", flush=True)


def measure(networks, threads, target, folder):
    """One row a network: how often nori is faster, with quartiles; and what loading and memory take."""
    rows, ratios, ready, memory, plans = [], [], [], [], []
    for name, path, options in networks:
        j, why = versus(path, options, threads)
        if not j:
            rows.append([name, why[:60]] + [""] * 6)
            continue
        r = j["cpu_ratio"] if threads == 1 else j["ratio"]
        ours, theirs = j["sides"]
        start = [s["load_cpu_ms"] + max(s["first_ms"] - s["median_ms"], 0) for s in (ours, theirs)]
        ratios.append(1 / r["median"])
        ready.append(theirs and start[1] / start[0])
        planned = plan_start(folder, path, options) if threads == 1 else None
        if planned:
            plans.append([name, "%.1f" % planned[0], "%.1f" % planned[1], "%.1f" % start[1],
                          start[1] / max(sum(planned), 1e-3)])
        memory.append(ours["peak_bytes"] / theirs["peak_bytes"])
        rows.append([name, "%.2f" % ratios[-1], "%.2f-%.2f" % (1 / r["q3"], 1 / r["q1"]),
                     "%.2f" % ours["median_ms"], "%.2f" % theirs["median_ms"],
                     "%.1f" % ready[-1], "%.2f" % memory[-1], "yes" if j["agree"] else "NO"])
    if ratios:
        rows.append(["geometric mean", "%.2f" % mean(ratios), "", "", "", "%.1f" % mean(ready),
                     "%.2f" % mean(memory), ""])
        rows.append(["target", "%.2f" % target, "0.95 at least", "", "", "5", "0.6", ""])
    table(["%d thread%s" % (threads, "s" if threads > 1 else ""), "times faster", "quartiles", "nori ms",
           "peer ms", "ready sooner", "memory", "agree"], rows)
    if plans:
        plans = [[*r[:4], "%.0f" % r[4]] for r in plans] + [
            ["geometric mean", "", "", "", "%.0f" % mean([r[4] for r in plans])],
            ["target", "resnet50: 5", "", "", "20"]]
        table(["from a compiled plan", "ready ms", "first run more ms", "peer ms", "sooner"], plans)


def layers():
    r = subprocess.run([os.path.join(args.build, "bench", "nori-bench-kernels"), "conv 3x3", "gemm"],
                       stdout=subprocess.PIPE, check=True).stdout.decode()
    rows = []
    for name, target in LAYERS:
        line = next((x for x in r.splitlines() if x.startswith(name + " ")), "")
        share = line.split("ms")[-1].split("%")[0].strip() if line else "-"
        rows.append([name, "%.2f" % (float(share) / 100) if line else "-", "%.2f" % target])
    table(["3 x 3 layers and products, rate over the FMA peak", "reached", "target"], rows)


def size():
    path = os.path.join(args.build, "src", "libnori.so")
    if not os.path.exists(path):
        return
    with tempfile.NamedTemporaryFile() as f:
        subprocess.run(["strip", "-o", f.name, path], check=True)
        n = os.path.getsize(f.name)
    table(["size", "reached", "target"], [["libnori.so, stripped", "%.2f MB" % (n / 1e6), "2.5 MB"]])


def idle():
    """What 8 threads cost between runs, as the test of it measures."""
    path = os.path.join(args.build, "tests", "test_memory")
    if not os.path.exists(path):
        return
    r = subprocess.run([path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()
    m = re.search(r"8 threads: ([0-9.]+) ms of CPU in runs, ([0-9.]+) in all", r)
    table(["CPU of 8 threads at one run in 100 ms, over that of the runs", "reached", "target"],
          [["15 runs", "%.2f" % (float(m[2]) / float(m[1])) if m else "-", "1.3"]])


def published(folder):
    """Networks of folders, with the inputs their dimensions ask for; what nothing feeds is left out."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "*", "*.onnx"))):
        name = os.path.basename(os.path.dirname(path))
        j = None
        if args.filter in name:
            j, _ = versus(path, [], 1)
        if j and j["sides"][1]["median_ms"] >= 1:
            found.append((name, path, []))
    return found


with open("/proc/loadavg", encoding="ascii") as f:
    print("load average %s" % f.read().split()[0])
DOCTOR = run("doctor")[0]
print("%s, level %s\n" % (DOCTOR.get("cpu", "?"), DOCTOR.get("level", "?")))
layers()
size()
idle()
with tempfile.TemporaryDirectory() as folder:
    chosen = [(n, find(n), inputs(folder, n, d)) for n, d in ELEVEN if args.filter in n and find(n)]
    if not chosen:
        chosen = [("digits", os.path.join(ROOT, "examples", "digits", "digits.onnx"), [])]
    for t in map(int, args.threads.split(",")):
        measure(chosen, t, 1.3 if t == 1 else 1.4, folder)
    more = published(args.more) if args.more else []
    for t in map(int, args.threads.split(",")):
        if more:
            measure(more, t, 1.3, folder)
    if args.int8:
        quantized = []
        for name, path, options in chosen:
            out = os.path.join(folder, name + ".int8.onnx")
            j, _ = run("quantize", path, "--random", "4", "--no-search", "--output", out)
            if "error" not in j:
                quantized.append((name + " int8", out, options))
        for t in map(int, args.threads.split(",")):
            measure(quantized, t, 1.15, folder)
sys.exit(0)
