#!/usr/bin/env python3
"""test_symbols.py NM LIBNORI.SO: the functions of include/nori/*.h, src/symbols.txt and what the shared
library exports are the same names. `test_symbols.py --write` makes src/symbols.txt from the headers."""
import glob
import os
import re
import subprocess
import sys

HEAD = "# What libnori.so exports, sorted: the functions of include/nori/*.h, a name a line.\n"
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
declared = set()
for path in glob.glob(f"{root}/include/nori/*.h"):
    text = re.sub(r"/\*.*?\*/", "", open(path, encoding="utf-8").read(), flags=re.S)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    declared.update(re.findall(r"NORI_API\b[^;{]*?\b(nori_\w+)\s*\(", text))
if sys.argv[1:] == ["--write"]:
    with open(f"{root}/src/symbols.txt", "w", encoding="utf-8") as file:
        file.write(HEAD + "".join(f"{name}\n" for name in sorted(declared)))
    sys.exit(0)
nm, library = sys.argv[1:]
lines = [line.strip() for line in open(f"{root}/src/symbols.txt", encoding="utf-8")]
listed = [line for line in lines if line and not line.startswith("#")]
output = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True)
exported = set()
for line in output.stdout.splitlines():
    _, kind, name = line.split()
    if kind != "A":  # the name of the version itself
        exported.add(name.split("@")[0])
bad = []


def compare(have, want, text):
    bad.extend(f"{name}: {text}" for name in sorted(set(have) - set(want)))


compare(declared, listed, "declared with NORI_API, not in src/symbols.txt: tests/test_symbols.py --write adds it")
compare(listed, declared, "in src/symbols.txt, not declared with NORI_API in include/nori/: take it out")
compare(declared, exported, "declared with NORI_API, but the library does not export it: is it written?")
compare(exported, declared, "exported, but no header declares it")
if listed != sorted(set(listed)):
    bad.append("src/symbols.txt is not sorted, or names something twice")
print("\n".join(bad) if bad else f"{len(exported)} functions are declared, listed and exported")
sys.exit(bool(bad or not exported))
