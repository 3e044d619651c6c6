#!/usr/bin/env python3
"""Runs folders of test cases through the nori command and counts who agrees.

    run_pack.py --nori build/release/nori --cases DIR    [--filter TEXT] [--at-least N] [--list]

--cases takes a folder of ONNX backend cases: NAME/model.onnx, NAME/test_data_set_0. Their rule is
rtol 1e-3, atol 1e-7, and exact type and shape. Exits 0 when at least N agree (default: all).
A case is "refused" when nori says it does not support it (exit code 4), which is never silent."""
import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

p = argparse.ArgumentParser()
p.add_argument("--nori", required=True)
p.add_argument("--cases", required=True)
p.add_argument("--filter", default="")
p.add_argument("--provider", default="")
p.add_argument("--at-least", type=int, default=None)
p.add_argument("--list", action="store_true")
p.add_argument("--timeout", type=int, default=120)
args = p.parse_args()

# Cases for which ONNX itself makes an exception, or whose result is random (checked elsewhere).
LOOSE = {"test_dft": 1e-6, "test_dft_axis": 1e-6, "test_dft_inverse": 1e-6,
         "test_dft_opset19": 1e-6, "test_dft_axis_opset19": 1e-6, "test_dft_inverse_opset19": 1e-6}
RANDOM = ("test_bernoulli", "test_training_dropout")


def run(job):
    name, command = job
    try:
        r = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout)
        code, text = r.returncode, (r.stderr + r.stdout).strip()
    except subprocess.TimeoutExpired:
        code, text = -1, "timed out"
    return name, code, text


def jobs():
    extra = ["--provider", args.provider] if args.provider else []
    for name in sorted(os.listdir(args.cases)):
        folder = os.path.join(args.cases, name)
        if args.filter not in name or name.startswith(RANDOM):
            continue
        if not os.path.exists(folder + "/model.onnx"):
            continue
        atol = "1e-2" if "celu_bfloat16" in name else repr(LOOSE.get(name, 1e-7))
        rtol = "1e-2" if "celu_bfloat16" in name else "1e-3"
        yield name, [args.nori, "run", folder + "/model.onnx", "--test-data",
                     folder + "/test_data_set_0", "--atol", atol, "--rtol", rtol,
                     "--quiet"] + extra


agree, differ, refused, broken = [], [], [], []
with ThreadPoolExecutor(2) as pool:
    for name, code, text in pool.map(run, jobs()):
        kind = {0: agree, 1: differ, 4: refused}.get(code, broken)
        kind.append(name)
        if args.list and code != 0:
            first = text.split("\n")[0][:300]
            print({1: "differs", 4: "refused"}.get(code, "failed %d" % code), name, "|", first)
total = len(agree) + len(differ) + len(refused) + len(broken)
print("%d of %d agree, %d differ, %d refused, %d failed" %
      (len(agree), total, len(differ), len(refused), len(broken)))
need = total if args.at_least is None else args.at_least
sys.exit(0 if len(agree) >= need and total > 0 else 1)
