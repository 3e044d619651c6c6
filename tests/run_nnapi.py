#!/usr/bin/env python3
"""Runs a folder of real networks through the provider nnapi on a double of Android's library:

    run_nnapi.py --nori NORI --models DIR --double LIBRARY [...], further arguments as run_models.py

What nnapi does not take runs on cpu. Some networks are made to compute on bytes, too (`nori quantize`,
in both forms), and must agree with the reference provider to 40 dB. Exits 0 when the index's
tolerances hold, the double saw no rule broken, and nnapi has most nodes of at least ten networks;
77 (skipped) where there are no networks."""
import argparse
import os
import subprocess
import sys
import tempfile

import networks

p = argparse.ArgumentParser()
p.add_argument("--nori", required=True)
p.add_argument("--models", required=True)
p.add_argument("--double", required=True)
args, more = p.parse_known_args()
if not os.path.exists(os.path.join(args.models, "index.tsv")):
    print("skipped: no networks in", args.models)
    sys.exit(77)
provider = "nnapi:lib=%s,costs=none,cpu" % args.double
# networks that are quantized, and the size to fix
QUANTIZED = (("st_mobilenetv2_035_128", "unk__608=1"), ("tribuo_cnn_mnist", "batch=2"),
             ("winml_pt_imageclassifier", "batch_size=2"), ("ultraface_slim320_simplified", ""))
FORMS = (["--activations", "uint8"], ["--activations", "int8"],
         ["--form", "qoperator", "--microsoft", "--per-tensor"])


def call(*words):
    return subprocess.run([args.nori, *words], capture_output=True, text=True, check=False)


def share(path, *sizes):
    """Nodes on nnapi, and all of them; None where the network cannot be inspected."""
    try:
        split = networks.Partition(args.nori, path, provider, sizes)
    except ValueError:
        return None
    return split.in_parts, split.all


def quantized(place):
    """What is wrong with networks that were made to compute on bytes."""
    wrong = 0
    for name, size in QUANTIZED:
        folder = os.path.join(args.models, name)
        sizes = ["--dim", size] if size else []
        for form in FORMS if os.path.exists(folder) else ():
            path = os.path.join(place, "quantized.onnx")
            made = call("quantize", folder + "/model.onnx", "--output", path, "--data",
                        folder + "/test_data_set_0", "--no-search", "--quiet", *form)
            judged = call("validate", path, "--provider", provider, "--against-provider", "reference",
                          "--min-sqnr", "40", "--atol", "1e9", *sizes)
            there = share(path, *sizes) or (0, 1)
            good = made.returncode == 0 and judged.returncode == 0 and there[0] * 2 > there[1]
            print("%-34s %d of %d nodes as bytes (%s)%s" % (
                name, *there, " ".join(form), "" if good else ": " + made.stderr + judged.stdout), flush=True)
            wrong += not good
    return wrong


mostly = []
for name in sorted(os.listdir(args.models)):
    path = os.path.join(args.models, name, "model.onnx")
    there = share(path) if os.path.exists(path) else None
    if not there:
        continue  # such a network fails below
    print("%-34s %d of %d nodes" % (name, *there))
    if there[0] * 2 > there[1]:
        mostly.append(name)
print("nnapi has most nodes of %d networks" % len(mostly), flush=True)
here = os.path.dirname(os.path.abspath(__file__))
with tempfile.TemporaryDirectory() as place:
    log = os.environ["NNAPI_DOUBLE_LOG"] = os.path.join(place, "faults")
    bad = quantized(place)
    code = subprocess.run([sys.executable, os.path.join(here, "run_models.py"), "--nori", args.nori,
                           "--models", args.models, "--provider", provider, *more],
                          check=False).returncode
    if os.path.exists(log):
        with open(log, encoding="utf-8") as f:
            print("rules of NNAPI were broken:", *sorted(set(f)), sep="\n")
        code = 1
sys.exit(code if len(mostly) >= 10 and not bad else 1)
