#!/usr/bin/env python3
"""Runs a folder of real networks through the command and compares with what they should give.

    run_models.py --nori build/release/nori --models DIR [--threads 1,2,5] [--provider LIST] ...
                  [--filter TEXT] [--list] [--timeout SECONDS]
    run_models.py --nori build/release/nori --models DIR --list --provider cpu --provider xnnpack,cpu
                  --provider opencl,cpu --provider ort:cpu

DIR/index.tsv has a row a network: name, outputs, atol, rtol, rms_limit (one number an output);
DIR/NAME/model.onnx and DIR/NAME/test_data_set_0/{input,output}_N.pb are the network and its data.
An output marked "rank" is a list ordered by scores that may swap places: it is compared as a set.
An output kept as output_N.json is a sequence of maps. Every output is also written out: its bytes
must be the same for each number of threads.
With --list a row a network says who ran how many of its nodes, in how many parts. With
storage=fp16 outputs are held to a relative RMS difference instead (networks.py).
Exits 0 when every network that was run agrees, 77 (skipped) when no provider can be had here."""
import argparse
import csv
import hashlib
import json
import os
import sys
import tempfile

import networks
import ort_library
import pack

p = argparse.ArgumentParser()
p.add_argument("--nori", required=True)
p.add_argument("--models", required=True)
p.add_argument("--threads", default="1")
p.add_argument("--provider", action="append", help="a list as the command takes it; may be repeated")
p.add_argument("--filter", default="")
p.add_argument("--only", default="", help="the one of this name")
p.add_argument("--skip", default="", help="names, comma-separated")
p.add_argument("--large", choices=("skip", "only"), help="networks of many multiply-adds")
p.add_argument("--jobs", type=int, default=2, help="networks at a time")
p.add_argument("--timeout", type=int, default=300, help="seconds for one run of one network")
p.add_argument("--list", action="store_true", help="a row for every network, not only the bad ones")
args = p.parse_args()
THREADS = [t for t in args.threads.split(",") if t]


def taken(name):
    large = name in networks.LARGE
    return (args.filter in name and args.only in ("", name) and name not in args.skip.split(",") and
            args.large in (None, "only" if large else "skip"))


def per_output(text, n):
    parts = text.split(",")
    return parts * n if len(parts) == 1 else parts


def output_names(row):
    """"a:float32[1] b:seq(map(int64,float)) in output_1.json" -> [("a", None), ("b", file)]"""
    names, words = [], row["outputs"].split(" ")
    while words:
        name = words.pop(0).rsplit(":", 1)[0]
        kept = None
        if words and words[0] == "in":
            words.pop(0)
            kept = words.pop(0)
        names.append((name, kept))
    return names


# ---- outputs compared here ----

def share_found(boxes, labels, among, among_labels, count, limit):
    """How many of the first boxes have one of their label among the others, no edge further off
    than the limit."""
    def found(i):
        mine = boxes[4 * i:4 * i + 4]
        return any(among_labels[k] == labels[i] and
                   all(abs(mine[j] - among[4 * k + j]) <= limit for j in range(4))
                   for k in range(len(among_labels)))
    return sum(map(found, range(count))) / count


def compare_ranked(got, want):
    """Labels and boxes in the order of scores. Quantized scores move by a step and change places,
    and boxes with them; the surer third is what is judged: 95 % of it must be found on the other
    side, both ways, within a tenth of the picture. Of labels moved by one place, or of boxes moved
    at random by an eighth of the picture, no more than 60 % is."""
    (labels_shape, labels), (boxes_shape, boxes) = got
    (want_shape, want_labels), (want_boxes_shape, want_boxes) = want
    if labels_shape != want_shape or boxes_shape != want_boxes_shape:
        return "shapes differ"
    count, limit = len(labels) // 3, max(want_boxes) / 10
    there = share_found(boxes, labels, want_boxes, want_labels, count, limit)
    back = share_found(want_boxes, want_labels, boxes, labels, count, limit)
    if min(there, back) < 0.95:
        return "%.0f %% of the boxes are golden ones, %.0f %% of the golden ones are there" % (
            100 * there, 100 * back)
    return ""


def compare_maps(got, want, atol, rtol):
    if len(got) != len(want):
        return "%d maps, expected %d" % (len(got), len(want))
    for g, w in zip(got, want):
        if sorted(g) != sorted(w):
            return "keys %s, expected %s" % (sorted(g), sorted(w))
        for key in w:
            if not pack.near(g[key], w[key], atol, rtol):
                return "key %s: got %.9g, expected %.9g" % (key, g[key], w[key])
    return ""


def check_here(row, provider, folder, outputs, written):
    """What the command cannot judge: ranked outputs and maps. Empty text: fine."""
    n = len(outputs)
    atol, rtol = per_output(row["atol"], n), per_output(row["rtol"], n)
    ranked = [i for i in range(n) if atol[i] == "rank"]
    if ranked:
        data = [pack.read_npy(written[i]) for i in ranked]
        gold = [pack.read_pb("%s/test_data_set_0/output_%d.pb" % (folder, i)) for i in ranked]
        return compare_ranked(data, gold)
    for i, (name, kept) in enumerate(outputs):
        if kept:
            feed = ["--input", "%s=%s/test_data_set_0/input_0.pb" % (
                row["inputs"].rsplit(":", 1)[0], folder)]
            code, text, said, _ = pack.run([args.nori, "run", folder + "/model.onnx", "--json"] +
                                           feed + asked(provider), args.timeout)
            if code != pack.AGREES:
                return said
            want = pack.read_json("%s/test_data_set_0/%s" % (folder, kept))
            value = [o for o in json.loads(text)["outputs"] if o["name"] == name][0].get("value")
            if value is None:
                return "%s: no value in the command's answer" % name
            return compare_maps(value, want["value"], float(atol[i]), float(rtol[i]))
    return ""


# ---- one network ----

def digest(paths):
    h = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as f:
            h.update(f.read())
    return h.hexdigest()


def asked(provider):
    return ["--provider", provider] if provider else []


def limits(row, provider, n):
    """The index's tolerances as the command takes them, or what stands in their place."""
    plain = [per_output(row[c], n) for c in ("atol", "rtol", "rms_limit")]
    plain = [",".join({"rank": "-" if c == 2 else "1e300"}.get(t, t) for t in texts)
             for c, texts in enumerate(plain)]
    if networks.half(provider):
        return ["1e300", "1e300", networks.HALF_RMS]
    if row["name"] in networks.EXACT and networks.first(provider) in networks.COMPUTE_EXACTLY:
        plain[0], plain[2] = networks.EXACT[row["name"]]
    return plain


def run_one(row, provider):
    """(name, seconds at each number of threads, what is wrong or "", who ran what)."""
    folder = os.path.join(args.models, row["name"])
    outputs = output_names(row)
    atol, rtol, rms = limits(row, provider, len(outputs))
    seconds, digests, wrong, split = [], [], "", ""
    with tempfile.TemporaryDirectory() as place:
        written = ["%s/output_%d.npy" % (place, i) for i in range(len(outputs))]
        write = []
        for i, (name, kept) in enumerate(outputs):
            write += [] if kept else ["--output", "%s=%s" % (name, written[i])]
        for t in THREADS:
            code, _, said, took = pack.run(
                [args.nori, "run", folder + "/model.onnx", "--test-data",
                 folder + "/test_data_set_0", "--atol", atol, "--rtol", rtol, "--rms", rms,
                 "--quiet", "--threads", t] + write + asked(provider), args.timeout)
            seconds.append(took)
            if code != pack.AGREES:
                how = {pack.DIFFERS: "differs", pack.REFUSED: "refused",
                       pack.TIMED_OUT: "too slow"}.get(code, "failed (exit code %d)" % code)
                return row["name"], seconds, "%s at %s threads: %s" % (how, t, said), ""
            digests.append(digest(w for w, (_, kept) in zip(written, outputs) if not kept))
        wrong = check_here(row, provider, folder, outputs, written)
    if not wrong and len(set(digests)) > 1:
        wrong = "the bits depend on the number of threads (%s)" % args.threads
    if args.list:
        split = str(networks.Partition(args.nori, folder + "/model.onnx", provider or "cpu"))
    return row["name"], seconds, wrong, split


def run_all(rows, provider):
    """Whether all networks agree on a provider; None: it cannot be had here."""
    why = networks.absent(args.nori, provider or "cpu")
    if why:
        print("skipped: " + why)
        return None
    excused = networks.excused(provider)
    for name, reason in sorted(excused.items()):
        print("%-34s not asked of %s: %s" % (name, provider, reason))
    tasks = [lambda r=r: run_one(r, provider) for r in rows if r["name"] not in excused]
    done = []
    for name, seconds, wrong, split in pack.in_turn(tasks, args.jobs, "networks"):
        done.append((name, seconds, wrong))
        if wrong or args.list:
            print("%-34s %s  %s" % (name, " ".join("%7.2f s" % s for s in seconds),
                                    wrong or "ok  " + split), flush=True)
    good = sum(1 for d in done if not d[2])
    print("%d of %d networks agree%s; the same bits at %s threads; slowest: %s" % (
        good, len(done), " on " + provider if provider else "", args.threads,
        ", ".join("%s %.1f s" % (d[0], max(d[1])) for d in
                  sorted(done, key=lambda d: -max(d[1]))[:3])), flush=True)
    return bool(done) and good == len(done)


def main():
    library = ort_library.find()
    if library:
        os.environ["NORI_ORT_LIBRARY"] = library
    with open(os.path.join(args.models, "index.tsv")) as f:
        rows = [r for r in csv.DictReader(f, delimiter="\t") if taken(r["name"])]
    said = [run_all(rows, provider) for provider in args.provider or [""]]
    if all(answer is None for answer in said):
        return 77
    return 0 if all(answer in (True, None) for answer in said) else 1


sys.exit(main())
