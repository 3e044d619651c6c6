#!/usr/bin/env python3
"""Runs packs of ONNX backend cases through the run_cases program and counts by opset.

    run_cases.py --driver build/release/tests/run_cases PACK...
                 [--providers reference,cpu,cpu@base] [--threads 1,2,5] [--filter TEXT] [--list]

PACK is a folder that holds cases (NAME/model.onnx, NAME/test_data_set_0) at any depth, or an archive
NAME.tar.zst, which is unpacked beside the driver. provider@level runs with NORI_CPU=level. Exits 0
when every case passes on every provider. Passed are: ok; random: results of chance, whose type,
shape, range and statistics are checked. Excused cases are wrong themselves; they are named and
counted apart. Folders without a model (lists of downloads) are counted as such."""
import argparse
import collections
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

p = argparse.ArgumentParser()
p.add_argument("packs", nargs="+")
p.add_argument("--driver", required=True)
p.add_argument("--providers", default="reference,cpu")
p.add_argument("--threads", default="1,2,5")
p.add_argument("--filter", default="")
p.add_argument("--without", default="", help="operators this build lacks: refusing them passes")
p.add_argument("--empty", action="store_true", help="--driver is run_empty or run_versions, without options")
p.add_argument("--list", action="store_true", help="print every case that does not pass")
p.add_argument("--operators", help="write the operators of all cases into this file")
p.add_argument("--timeout", type=int, default=600, help="seconds for a slice of cases")
args = p.parse_args()
SLICE = 40  # cases a process: small enough to spread well, large enough to save starts


def unpack(path):
    """The folder an archive is unpacked into; again only when the archive changed."""
    name = os.path.basename(path)[: -len(".tar.zst")]
    folder = os.path.join(os.path.dirname(os.path.abspath(args.driver)), "packs", name)
    stamp = folder + ".stamp"
    mark = "%d %d" % (os.path.getsize(path), os.stat(path).st_mtime_ns)
    if not os.path.exists(stamp) or open(stamp).read() != mark:
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["tar", "--zstd", "-xf", path, "-C", folder], check=True)
        with open(stamp, "w") as f:
            f.write(mark)
    return folder


def find(pack):
    """Folders of cases, and how many only name a download."""
    root = unpack(pack) if pack.endswith(".tar.zst") else pack
    cases, named = [], 0
    for folder, _, files in os.walk(root):
        if args.filter not in folder:
            continue
        if "model.onnx" in files:
            cases.append(folder)
        elif "data.json" in files:
            named += 1
    return sorted(cases), named


def run_slice(job):
    """Lines of the driver; a case on which it dies is 'crashed' and the rest goes on without it."""
    provider, folders = job
    name, _, level = provider.partition("@")
    env = dict(os.environ, NORI_CPU=level) if level else None
    command = [args.driver]
    if not args.empty:
        command += ["--provider", name, "--threads", args.threads]
    if args.operators and not args.empty:
        command.append("--operators")
    rows, operators = [], set()
    while folders:
        try:
            r = subprocess.run(command, input="\n".join(folders), capture_output=True, text=True,
                               timeout=args.timeout, env=env)
            out, code, err = r.stdout, r.returncode, r.stderr
        except subprocess.TimeoutExpired as late:
            out = late.stdout or ""
            out = out.decode() if isinstance(out, bytes) else out
            code, err = "timed out", ""
        done = 0
        for line in out.split("\n"):
            parts = line.split("\t")
            if parts[0] == "op":
                operators.add(tuple(parts[1:4]))
            elif len(parts) == 4:
                rows.append(tuple(parts))
                done += 1
        folders = folders[done:]
        if folders:
            rows.append(("crashed", folders[0], "?", "%s %s" % (code, err[-300:].replace("\n", " "))))
            folders = folders[1:]
    return provider, rows, operators


WORDS = ["ok", "random", "excused", "differs", "unstable", "refused", "failed", "crashed"]
failed, operators, excuses = 0, set(), {}
for pack in args.packs:
    if not os.path.exists(pack):
        print("%s is not here: left out" % pack)
        continue
    cases, named = find(pack)
    ran = []
    providers = args.providers.split(",")
    slices = max(1, min(len(cases), max(10, len(cases) // SLICE)))
    jobs = [(q, cases[i::slices]) for q in providers for i in range(slices)]
    by_opset = {q: collections.defaultdict(collections.Counter) for q in providers}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for provider, rows, seen in pool.map(run_slice, jobs):
            operators |= seen
            for word, folder, opset, text in rows:
                by_opset[provider][opset][word] += 1
                if args.empty and text.endswith(" ran"):
                    ran += [int(n) for n in text.split() if n.isdigit()]
                if word == "excused":
                    excuses[folder] = text
                lacking = word == "refused" and any(
                    o in text for o in args.without.split(",") if o)
                if word not in ("ok", "random", "excused") and not lacking:
                    failed += 1
                    if args.list:
                        print(word, provider, folder, "|", text[:300])
    print("%s: %d cases%s%s" % (
        pack, len(cases), "" if args.empty else ", threads " + args.threads,
        "; %d more are no more than the names of models to download" % named if named else ""))
    for provider in providers:
        table = by_opset[provider]
        print("  %-9s" % provider, "opset", "".join("%9s" % w for w in WORDS))
        for opset in sorted(table, key=lambda o: (not o.isdigit(), int(o) if o.isdigit() else 0, o)):
            print("  %15s" % opset[-15:], "".join("%9s" % (table[opset][w] or ".") for w in WORDS))
        total = sum(table.values(), collections.Counter())
        print("  %15s" % "all", "".join("%9d" % total[w] for w in WORDS))
    if args.empty and ran:
        print("  %d of %d variants are legal and ran" % (sum(ran[::2]), sum(ran[1::2])))
    if not cases:
        failed += 1
for folder in sorted(excuses):
    print("excused: %s: %s" % (folder, excuses[folder]))
if args.operators:
    with open(args.operators, "w") as f:
        f.writelines("\t".join(o) + "\n" for o in sorted(operators))
sys.exit(1 if failed else 0)
