#!/usr/bin/env python3
"""Makes docs/operators.md of what a build of nori says it runs (`nori caps --json`).

    gen_operators_doc.py NORI           writes it
    gen_operators_doc.py NORI --check   exits 1 if it is not what the build gives, 77 if the build was
                                        made without a library that some operators need"""
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULT = os.path.join(ROOT, "docs", "operators.md")
GROUPS = (("int8-64", ("int8", "int16", "int32", "int64")),
          ("uint8-64", ("uint8", "uint16", "uint32", "uint64")),
          ("float16-64", ("float16", "float32", "float64")),
          ("complex64-128", ("complex64", "complex128")),
          ("float8", ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")))
NEED_LIBRARIES = ("ImageDecoder", "RegexFullMatch")
HEAD = """# Operators

Made by `tools/gen_operators_doc.py` from `nori caps --json`; do not edit. A row is an operator of a
domain: the versions whose meaning is known (a model's operator set picks the newest that is not
newer), the types the newest lets its first input be, and for which of them the cpu provider has a
kernel of its own. Everything else runs on the reference provider, which has a kernel for every
operator and type here but where "no kernel" stands. `int8-64` is short for int8, int16, int32 and
int64, `float16-64` for float16, float32 and float64, and so on; `float8` is the four float8 types
with a mantissa.
"""


def short(types):
    left, out = list(types), []
    for name, members in GROUPS:
        if all(m in left for m in members):
            at = min(left.index(m) for m in members)
            left = [t for t in left if t not in members]
            left.insert(min(at, len(left)), name)
    for t in left:
        out.append(t)
    return " ".join(out)


def rows(caps, domain):
    found = {}
    for c in caps:
        if c["domain"] == domain:
            found.setdefault(c["op"], []).append(c)
    lines = ["| operator | versions | types | cpu |", "|---|---|---|---|"]
    for op, forms in sorted(found.items()):
        forms.sort(key=lambda c: c["since"])
        newest = forms[-1]
        runs = any(newest["providers"].values()) or not newest["types"]
        cpu = short(newest["providers"]["cpu"]) or ("-" if runs else "no kernel")
        lines.append("| %s | %s | %s | %s |" % (
            op, " ".join(str(c["since"]) for c in forms), short(newest["types"]) or "not a tensor", cpu))
    return lines


def make(caps):
    domains = sorted({c["domain"] for c in caps}, key=lambda d: (d != "", d))
    text = [HEAD]
    for d in domains:
        of = [c for c in caps if c["domain"] == d]
        text.append("## %s\n" % (d or "ai.onnx"))
        text.append("%d operators, %d versions.\n" % (len({c["op"] for c in of}), len(of)))
        text += rows(caps, d)
        text.append("")
    return "\n".join(text)


def main():
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--check"]):
        sys.exit("usage: gen_operators_doc.py NORI [--check]")
    out = subprocess.run([sys.argv[1], "caps", "--json"], capture_output=True, check=True).stdout
    caps = json.loads(out)
    lacking = sorted({c["op"] for c in caps if c["op"] in NEED_LIBRARIES
                      and not any(c["providers"].values())})
    if lacking:
        print("skipped: this build has no kernel for %s" % ", ".join(lacking))
        sys.exit(77)
    text = make(caps)
    if sys.argv[2:] == ["--check"]:
        try:
            with open(RESULT, encoding="utf-8") as file:
                same = file.read() == text
        except OSError:
            same = False
        if not same:
            sys.exit("docs/operators.md is stale: run tools/gen_operators_doc.py build/release/nori")
        return
    with open(RESULT, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
