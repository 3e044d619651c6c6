#!/usr/bin/env python3
"""Runs a folder of real networks through the provider nnapi on a double of Android's library:

    run_nnapi.py --nori NORI --models DIR --double LIBRARY [...], further arguments as run_models.py

What nnapi does not take runs on cpu. Exits 0 when the index's tolerances hold, the double saw no rule
broken, and nnapi has most nodes of at least ten networks; 77 (skipped) where there are no networks."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

p = argparse.ArgumentParser()
p.add_argument("--nori", required=True)
p.add_argument("--models", required=True)
p.add_argument("--double", required=True)
args, more = p.parse_known_args()
if not os.path.exists(os.path.join(args.models, "index.tsv")):
    print("skipped: no networks in", args.models)
    sys.exit(77)
provider = "nnapi:lib=%s,costs=none,cpu" % args.double
mostly = []
for name in sorted(os.listdir(args.models)):
    path = os.path.join(args.models, name, "model.onnx")
    if not os.path.exists(path):
        continue
    said = subprocess.run([args.nori, "inspect", path, "--providers", provider, "--json"],
                          capture_output=True, text=True, check=False)
    if said.returncode != 0:
        continue  # such a network fails below
    answer = json.loads(said.stdout)
    ours = sum(part["nodes"] for part in answer["parts"] if part["given"])
    total = len(answer["nodes"])
    print("%-34s %d of %d nodes" % (name, ours, total))
    if ours * 2 > total:
        mostly.append(name)
print("nnapi has most nodes of %d networks" % len(mostly), flush=True)
here = os.path.dirname(os.path.abspath(__file__))
with tempfile.TemporaryDirectory() as place:
    log = os.path.join(place, "faults")
    code = subprocess.run([sys.executable, os.path.join(here, "run_models.py"), "--nori", args.nori,
                           "--models", args.models, "--provider", provider, *more],
                          env={**os.environ, "NNAPI_DOUBLE_LOG": log}, check=False).returncode
    if os.path.exists(log):
        with open(log, encoding="utf-8") as f:
            print("rules of NNAPI were broken:", *sorted(set(f)), sep="\n")
        code = 1
sys.exit(code if len(mostly) >= 10 else 1)
