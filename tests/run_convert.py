#!/usr/bin/env python3
"""Converts every model of some folders to other operator sets, and runs what comes out.

    run_convert.py --nori build/release/nori FOLDER... [--opsets lowest,26,28] [--provider cpu]
                   [--filter TEXT] [--keep FILE] [--list]

A case is a folder with model.onnx and test_data_set_0. What the original passes, every model converted
from it must pass, and `nori check` must find no error that the original does not have. A refusal has to
name what stands in the way; going to the lowest operator set is never refused, as the model's own is
one that can be. Originals that do not pass by themselves are counted, and left out."""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

import pack

p = argparse.ArgumentParser()
p.add_argument("folders", nargs="+")
p.add_argument("--nori", required=True)
p.add_argument("--opsets", default="lowest,26,28")
p.add_argument("--filter", default="")
p.add_argument("--atol", default="1e-3")
p.add_argument("--rtol", default="1e-3")
p.add_argument("--most", type=int, default=200, help="megabytes: larger models are left out")
p.add_argument("--provider", default="cpu", help="that runs what was made, as ort:cpu")
p.add_argument("--every", type=int, default=1, help="take each N-th case only")
p.add_argument("--jobs", type=int, default=2)
p.add_argument("--keep", default="", help="a file for what is done: a run that was stopped goes on from it")
p.add_argument("--list", action="store_true", help="what was refused, and why")
args = p.parse_args()


def nori(*words):
    r = subprocess.run([args.nori, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    return r.returncode, r.stdout.decode("utf-8", "replace"), r.stderr.decode("utf-8", "replace")


def passes(model, case):
    code, _, err = nori("run", model, "--test-data", os.path.join(case, "test_data_set_0"), "--threads",
                        "1", "--atol", args.atol, "--rtol", args.rtol, "--provider", args.provider)
    return code == 0, err


def errors(model):
    code, out, _ = nori("check", model, "--json")
    return json.loads(out)["errors"] if code < 2 else -1


def one(case):
    """(what happened, under which operator set, words about it) for each."""
    model = os.path.join(case, "model.onnx")
    if os.path.getsize(model) > args.most << 20 or not passes(model, case)[0]:
        return [("left out", "all", case)]
    had, results = errors(model), []
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "made.onnx")
        for opset in args.opsets.split(","):
            how = ["--lowest"] if opset == "lowest" else ["--opset", opset]
            code, out, err = nori("convert", model, "--output", made, "--json", *how)
            name = "%s to %s" % (case, opset)
            if code == 4 and "imports no operator set" in err:
                results.append(("refused", opset, "%s: %s" % (name, err)))
                continue
            if code == 4 and opset != "lowest":
                found = json.loads(out).get("blockers")
                results.append(("refused" if found else "BAD", opset, "%s: %s" % (name, found or err)))
                continue
            if code != 0:
                results.append(("BAD", opset, "%s: %s" % (name, err)))
                continue
            ok, err = passes(made, case)
            if ok and errors(made) > had:
                ok, err = False, nori("check", made)[1]
            results.append(("agrees" if ok else "BAD", opset, "%s: %s" % (name, err)))
    return results


cases = sorted(f for top in args.folders for f, _, files in os.walk(top)
               if "model.onnx" in files and args.filter in f and
               os.path.isdir(os.path.join(f, "test_data_set_0")))[::args.every]
if not cases:
    print("no cases in %s: skipped" % " ".join(args.folders))
    sys.exit(77)
counts = collections.Counter()
for results in pack.in_turn_kept(cases, args.jobs, one, args.keep):
    for what, opset, words in results:
        counts[(opset, what)] += 1
        if what == "BAD" or args.list:
            print(what, words.strip(), flush=True)
print("%d cases on %s: %s" % (len(cases), args.provider,
                              ", ".join("to %s %d %s" % (o, n, w) for (o, w), n in sorted(counts.items()))))
bad = sum(n for (_, w), n in counts.items() if w == "BAD")
sys.exit(1 if bad or not any(w == "agrees" for _, w in counts) else 0)
