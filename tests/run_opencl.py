#!/usr/bin/env python3
"""Runs a folder of real networks through the provider opencl: run_opencl.py --nori NORI --models DIR
[--half] [...], further arguments as run_models.py. Exits 77 (skipped) where there is no device.

Nodes that opencl does not take, and parts too small for their copies, run on cpu. With fp32 storage
the index's tolerances hold. --half: activations and weights are stored as float16 (11 bits), so
outputs are held to a relative RMS difference of 0.02 instead."""
import json
import os
import subprocess
import sys

HALF_RMS = "0.02"
# Networks with values on the device that float16 does not have. Sums of integer products, as floats
# before their scale, go beyond 65504; logarithms and quotients of guarded zeros, and scores of 1e-5,
# go below its smallest normal number, 6e-5.
TOO_LARGE = "chiikawa_cls_int8,deimv2_atto_int8,edgeopt_mbv2_int8,mobilenetv2_int8_arm"
TOO_SMALL = "basic_pitch_nmp,oww_melspectrogram,silero_vad_v2_piper,yunet_s_640"

arguments = [a for a in sys.argv[1:] if a != "--half"]
half = "--half" in sys.argv
nori = arguments[arguments.index("--nori") + 1]
models = arguments[arguments.index("--models") + 1]
doctor = json.loads(subprocess.run([nori, "doctor", "--json"], capture_output=True, text=True,
                                   check=True).stdout)
state = [p for p in doctor["providers"] if p["name"] == "opencl"]
if not state or not state[0]["ready"]:
    print("skipped: no OpenCL device:", state[0]["reason"] if state else "built without it")
    sys.exit(77)
print(state[0]["engine"])
provider = "opencl:storage=fp16,cpu" if half else "opencl,cpu"
for name in sorted(os.listdir(models)):
    path = os.path.join(models, name, "model.onnx")
    if not os.path.exists(path):
        continue
    said = subprocess.run([nori, "inspect", path, "--providers", provider], capture_output=True,
                          text=True).stdout.split("\n")
    print("%-34s %s" % (name, ", ".join(line for line in said if " nodes on " in line or
                                        " node on " in line)), flush=True)
command = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_models.py"),
           "--provider", provider, *arguments]
if half:
    print("not asked of float16, which has no such large numbers:", TOO_LARGE)
    print("not asked of float16, which has no such small numbers:", TOO_SMALL)
    command += ["--relative", HALF_RMS, "--skip", TOO_LARGE + "," + TOO_SMALL]
sys.exit(subprocess.run(command).returncode)
