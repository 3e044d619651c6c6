#!/usr/bin/env python3
"""Compares models exported by torch with torch's own outputs, at other sizes of their dynamic axes than
they were exported with.

    run_torch.py --nori build/release/nori --exporter export_torch_models.py --cache DIR
                 [--filter TEXT] [--threads 1,2] [--python /usr/bin/python3]

The exporter is run once for what DIR lacks (`exporter DIR NAME`, names by `exporter --list`); it needs
torch, and writes NAME.onnx and NAME.npz with in_0 ..., out_0 .... Without torch, and with nothing in
DIR, the test is skipped (exit code 77). An output passes within 2e-5 of the largest + 1e-4 of each. Of models
called ..._wrong, whose dynamic axes were given for an input there is not, `nori inspect` must say so."""
import argparse
import os
import subprocess
import sys
import tempfile
import zipfile

import pack

p = argparse.ArgumentParser()
p.add_argument("--nori", required=True)
p.add_argument("--exporter", required=True)
p.add_argument("--cache", required=True)
p.add_argument("--python", default="/usr/bin/python3")
p.add_argument("--filter", default="")
p.add_argument("--threads", default="1,2")
p.add_argument("--provider", default="")
p.add_argument("--timeout", type=int, default=600)
args = p.parse_args()
SKIPPED = 77


def names():
    r = subprocess.run([args.python, args.exporter, "--list"], capture_output=True, text=True)
    if r.returncode != 0:
        return None
    return [n for n in r.stdout.split() if args.filter in n]


def export(name):
    here = os.path.join(args.cache, name)
    if os.path.exists(here + ".onnx") and os.path.exists(here + ".npz"):
        return ""
    r = subprocess.run([args.python, args.exporter, args.cache, name], capture_output=True,
                       text=True)
    return "" if r.returncode == 0 else "not exported: " + (r.stdout + r.stderr).strip()[-300:]


def inspect(name):
    """Whether the wrong name of a dynamic axis is seen."""
    r = subprocess.run([args.nori, "inspect", os.path.join(args.cache, name + ".onnx")],
                       capture_output=True, text=True)
    said = r.stdout + r.stderr
    return "" if "no input has an axis" in said else "inspect says nothing of the axis: " + said[-200:]


def compare(name):
    """What is wrong, or "": at each number of threads, all outputs within their tolerances."""
    model = os.path.join(args.cache, name)
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(model + ".npz") as z:
        largest = []
        for member in sorted(z.namelist(), key=lambda m: int(m[:-4].rsplit("_", 1)[1])):
            kind, number = member[:-4].rsplit("_", 1)
            path = "%s/%s_%s.npy" % (place, "input" if kind == "in" else "output", number)
            with open(path, "wb") as f:
                f.write(z.read(member))
            if kind == "out":
                largest.append(max(map(abs, pack.read_npy(path)[1])))
        atol = ",".join("%.9g" % (2e-5 * v) for v in largest)
        for t in args.threads.split(","):
            command = [args.nori, "run", model + ".onnx", "--test-data", place, "--atol", atol,
                       "--rtol", "1e-4", "--quiet", "--threads", t]
            command += ["--provider", args.provider] if args.provider else []
            code, _, said, _ = pack.run(command, args.timeout)
            if code != pack.AGREES:
                return "at %s threads: %s" % (t, said)
    return ""


def main():
    wanted = names()
    if wanted is None:
        wanted = [f[:-5] for f in sorted(os.listdir(args.cache)) if f.endswith(".onnx") and
                  args.filter in f] if os.path.isdir(args.cache) else []
        if not wanted:
            print("skipped: %s has no torch (Debian: python3-torch python3-torchvision)" %
                  args.python)
            return SKIPPED
    os.makedirs(args.cache, exist_ok=True)
    lacking = [n for n in wanted if not os.path.exists(os.path.join(args.cache, n + ".npz"))]
    if lacking: # in one process where the exporter takes many; what failed is told below, one by one
        subprocess.run([args.python, args.exporter, args.cache] + lacking, capture_output=True)
    bad = 0
    for name in wanted:
        wrong = export(name) or (inspect(name) if name.endswith("_wrong") else compare(name))
        bad += wrong != ""
        print("%-28s %s" % (name, wrong or "ok"), flush=True)
    print("%d of %d models agree with torch" % (len(wanted) - bad, len(wanted)))
    return 1 if bad or not wanted else 0


sys.exit(main())
