#!/usr/bin/env python3
"""Runs a folder of real networks through ort:cpu: run_ort.py --nori NORI --models DIR [...], further
arguments as run_models.py. --parts: not as whole models, but as parts that nori writes. Exits 77
(skipped) where there is no ONNX Runtime.

On processors without VNNI, ONNX Runtime multiplies uint8 by int8 with 16-bit sums that saturate,
which is not what ONNX says: SATURATES names the networks whose weights are large enough to show."""
import os
import subprocess
import sys

import ort_library

SATURATES = "ece_v2_int8,ece_v5_int8,factorio_mnist_quant,tatva_nano_quant,tinycnn_esp_int8"

library = ort_library.find()
if not library:
    print("skipped:", ort_library.ABSENT)
    sys.exit(77)
arguments = [a for a in sys.argv[1:] if a != "--parts"]
provider = "ort:cpu:whole=0,cpu" if "--parts" in sys.argv else "ort:cpu"
command = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_models.py"),
           "--provider", provider, *arguments]
skip = ["hand_history_lstm"]  # its data has another rank than the input it is for
with open("/proc/cpuinfo", encoding="utf-8") as f:
    if "vnni" not in f.read():
        print("not asked of ONNX Runtime, which saturates on this processor:", SATURATES)
        skip.append(SATURATES)
command += ["--skip", ",".join(skip)]
sys.exit(subprocess.run(command, env={**os.environ, "NORI_ORT_LIBRARY": library}).returncode)
