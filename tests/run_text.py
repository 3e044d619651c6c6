#!/usr/bin/env python3
"""Every model of some packs to text and back: run_text.py DRIVER PATTERN|PACK.tar.zst...

DRIVER is the program test_model_text. Patterns are of model files; packs are unpacked for the time. What is
not there is left out; when nothing is, the test is skipped (exit code 77)."""
import glob
import os
import subprocess
import sys
import tempfile

driver, wanted = sys.argv[1], sys.argv[2:]
with tempfile.TemporaryDirectory() as folder:
    patterns = []
    for i, name in enumerate(wanted):
        if name.endswith(".tar.zst") and os.path.exists(name):
            place = os.path.join(folder, str(i))
            os.mkdir(place)
            subprocess.run(["tar", "--zstd", "-xf", name, "-C", place], check=True)
            patterns += [os.path.join(place, "*/" * depth, "*.onnx") for depth in range(1, 6)]
        elif not name.endswith(".tar.zst"):
            patterns.append(name)
    patterns = [p for p in patterns if glob.glob(p)]
    if not patterns:
        print("skipped: none of " + ", ".join(wanted) + " is here")
        sys.exit(77)
    sys.exit(1 if subprocess.run([driver] + patterns).returncode else 0)
