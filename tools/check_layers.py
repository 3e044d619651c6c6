#!/usr/bin/env python3
"""A folder of src/ includes only itself and folders to its left; cli/ and src/tools/serve/ only the
public headers and their own."""
import os
import re
import sys

ORDER = "base platform kernels onnx graph ops passes plan providers run tools".split()
RANK = {name: i for i, name in enumerate(ORDER)}
# The tensor layer reads the default environment's allocator; it lives in platform/.
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
bad = []
for top in ("src", "cli"):
    for folder, _, files in os.walk(os.path.join(root, top)):
        for name in files:
            if not name.endswith((".c", ".h", ".inc")):
                continue
            path = os.path.join(folder, name)
            shown = os.path.relpath(path, root)
            mine = shown.split(os.sep)[1] if top == "src" else None
            for number, line in enumerate(open(path, encoding="utf-8"), 1):
                m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                if not m:
                    continue
                other = m.group(1).split("/")[0]
                serve = shown.startswith(os.path.join("src", "tools", "serve") + os.sep)
                if serve and other != "nori" and "/" in m.group(1):
                    bad.append(f"{shown}:{number}: tools/serve/ may include public headers only")
                elif serve and other != "nori" and not os.path.exists(os.path.join(folder, other)):
                    if other != "serve_page_files.h":  # made by the build
                        bad.append(f"{shown}:{number}: {other} is not of tools/serve/")
                elif top == "cli":
                    if other in RANK:
                        bad.append(f"{shown}:{number}: cli/ may include public headers only")
                elif other in RANK and mine in RANK and RANK[other] > RANK[mine]:
                    bad.append(f"{shown}:{number}: {mine}/ may not include {other}/")
print("\n".join(bad) if bad else "layers hold")
sys.exit(bool(bad))
