#!/usr/bin/env python3
"""coverage.py BUILD [--least PERCENT]: lines of src/ that tests reached, a row a folder.

BUILD is a build folder of the preset `coverage` whose tests have run; gcovr reads what they left there.
Exit status: 0, or 1 where fewer lines than PERCENT were reached over all.
"""
import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def folder_of(name):
    """src/tools/quantize and src/providers/cpu are folders of their own, as are src/base and the like."""
    parts = os.path.dirname(name).split("/")
    return "/".join(parts[:3] if parts[1] in ("tools", "providers") else parts[:2])


def main():
    ask = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ask.add_argument("build")
    ask.add_argument("--least", type=float, default=0)
    ask.add_argument("--files", type=int, default=0, help="the N files with most lines not reached, too")
    asked = ask.parse_args()
    done = subprocess.run(["gcovr", "-r", ROOT, "--filter", "src/", "--json-summary", "-j", str(os.cpu_count()),
                           "--gcov-ignore-parse-errors", "--exclude-unreachable-branches", asked.build],
                          capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    files = json.loads(done.stdout)["files"]
    rows = {}
    for f in files:
        row = rows.setdefault(folder_of(f["filename"]), [0, 0])
        row[0] += f["line_covered"]
        row[1] += f["line_total"]
    for folder, (reached, lines) in sorted(rows.items()):
        print(f"{folder:28} {reached:6} of {lines:6}  {100 * reached / max(lines, 1):5.1f} %")
    reached, lines = (sum(r[i] for r in rows.values()) for i in (0, 1))
    percent = 100 * reached / max(lines, 1)
    print(f"{'src':28} {reached:6} of {lines:6}  {percent:5.1f} %")
    for f in sorted(files, key=lambda f: f["line_covered"] - f["line_total"])[:asked.files]:
        print(f"    {f['line_total'] - f['line_covered']:5} not reached  {f['filename']}")
    if percent < asked.least:
        print(f"fewer than {asked.least:g} % were reached")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
