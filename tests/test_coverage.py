#!/usr/bin/env python3
"""Lists what `nori caps` claims and no test exercises: (domain, operator, version) by (domain, ...).

    test_coverage.py --nori NORI --tests FOLDER PACK...

Exercised is what ran and agreed in run_cases and run_versions over the packs, and what the test
programs of FOLDER (test_*) report through NORI_OPERATORS. Exits 1 when something is left; 77, which
ctest takes for skipped, when a pack is not here."""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

p = argparse.ArgumentParser()
p.add_argument("packs", nargs="+")
p.add_argument("--nori", required=True)
p.add_argument("--tests", required=True)
args = p.parse_args()
absent = [pack for pack in args.packs if not os.path.exists(pack)]
if absent:
    print("not here, so what is exercised is not known: %s" % ", ".join(absent))
    sys.exit(77)

caps = json.loads(subprocess.run([args.nori, "caps", "--json"], capture_output=True, text=True,
                                 check=True).stdout)
claimed, since = set(), {}
for row in caps:
    if "reference" in row["providers"] or "cpu" in row["providers"]:
        claimed.add((row["domain"], row["op"], row["since"]))
        since.setdefault((row["domain"], row["op"]), []).append(row["since"])
exercised = set()


def add(domain, op, version):
    """A test may name a version between those there are: the newest not above it is meant."""
    known = [s for s in since.get((domain, op), []) if s <= int(version)]
    if known:
        exercised.add((domain, op, max(known)))


def run_packs(driver, name):
    command = [sys.executable, os.path.join(os.path.dirname(__file__), "run_cases.py"), "--driver",
               driver, "--operators", name] + args.packs
    if driver.endswith("run_versions"):
        command += ["--empty", "--providers", "both"]
    else:
        command += ["--providers", "reference", "--threads", "1"]
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode != 0:
        sys.exit("%s fails:\n%s" % (driver, r.stdout[-2000:]))
    for line in open(name):
        add(*line.rstrip("\n").split("\t"))


with tempfile.TemporaryDirectory() as folder:
    for driver in ("run_cases", "run_versions"):
        run_packs(os.path.join(args.tests, driver), os.path.join(folder, driver))
    path = os.path.join(folder, "tests")
    programs = [f for f in glob.glob(os.path.join(args.tests, "test_*"))
                if os.path.isfile(f) and os.access(f, os.X_OK)]

    def report(program):
        subprocess.run([program], capture_output=True, timeout=600,
                       env=dict(os.environ, NORI_OPERATORS=path))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(report, programs))
    for line in open(path):
        add(*line.rstrip("\n").split("\t")[1:])

missing = sorted(claimed - exercised)
for domain, op, version in missing:
    print("no test exercises %s %s of version %d" % (domain or "ai.onnx", op, version))
print("%d of the %d operator versions nori claims are exercised" %
      (len(claimed) - len(missing), len(claimed)))
sys.exit(1 if missing or not claimed else 0)
