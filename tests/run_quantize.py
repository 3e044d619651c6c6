#!/usr/bin/env python3
"""Quantizes float models with the defaults of the command and says what became of them.

    run_quantize.py --nori build/release/nori --models DIR [--torch DIR] [--filter TEXT]
                    [--samples 32] [--least 20] [--no-times] [--options "--kind dynamic ..."]
                    [--rows FILE] [--keep DIR] [--again TEXT] [--retime TEXT] [--timer "CMD"]
                    [--markdown]

DIR/index.tsv lists models as for run_models.py; those that hold floats and convolutions or products are
taken. DIR of --torch: NAME.onnx and NAME.npz with in_0, in_1 .... Samples are the model's own inputs
and changed copies of them. A row a model:
  sqnr   signal over error of the worst output, over all samples, in dB
  ort    signal over difference of ONNX Runtime and nori on the quantized file, first sample. Where
         the processor has no VNNI its 8-bit weights are written as uint8, as the sums of uint8 by int8
         saturate there
  time   CPU time of a run on one thread, quantized / float, in turns
--rows FILE keeps a JSON line a model as it is done; what FILE has is not done again (but for names that
hold --again), so a run that was stopped goes on. Smallest files first. --keep DIR keeps NAME.onnx, what
was made, and NAME.json, its report; --retime takes times anew of what lies there. --timer stands before
each command that is timed (chrt -f 10, say, on a machine that does other work).
Fails when a model is not quantized, not accepted by `nori check` or ONNX Runtime, or reaches less than
--least dB without the report naming an option that gets there, which is then tried. 77: nothing to do."""
import argparse
import csv
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import zipfile

import ort_library
import pack

p = argparse.ArgumentParser()
p.add_argument("--nori", required=True)
p.add_argument("--models", default="")
p.add_argument("--torch", default="")
p.add_argument("--filter", default="")
p.add_argument("--samples", type=int, default=32)
p.add_argument("--least", type=float, default=20)
p.add_argument("--no-times", action="store_true")
p.add_argument("--jobs", type=int, default=1)
p.add_argument("--timeout", type=int, default=900)
p.add_argument("--options", default="", help="further ones of nori quantize")
p.add_argument("--rows", default="", help="JSON lines of what is done already, and to be")
p.add_argument("--again", default="", help="do those of --rows whose name holds this again")
p.add_argument("--keep", default="", help="folder for the models made and their reports")
p.add_argument("--retime", help="times of those of --keep whose name holds this, anew")
p.add_argument("--timer", default="", help="a command and its options, before each that is timed")
p.add_argument("--markdown", action="store_true", help="the table as docs/quantize.md has it")
args = p.parse_args()
LIBRARY = ort_library.find()
if LIBRARY:
    os.environ["NORI_ORT_LIBRARY"] = LIBRARY
TURNS = 4  # of float and quantized, when times are taken
with open("/proc/cpuinfo", encoding="utf-8") as f:
    VNNI = "vnni" in f.read()


def models():
    """(name, file, folder or archive of inputs)"""
    if args.models and os.path.exists(os.path.join(args.models, "index.tsv")):
        with open(os.path.join(args.models, "index.tsv"), encoding="utf-8") as f:
            for row in csv.DictReader(f, delimiter="\t"):
                ops = set(row["op_types"].split(","))
                here = os.path.join(args.models, row["name"])
                if row["quantized"] == "none" and ops & {"Conv", "MatMul", "Gemm", "ConvTranspose"}:
                    yield row["name"], os.path.join(here, "model.onnx"), here
    if args.torch and os.path.isdir(args.torch):
        for name in sorted(os.listdir(args.torch)):
            if name.endswith(".onnx") and os.path.exists(os.path.join(args.torch, name[:-5] + ".npz")):
                yield name[:-5], os.path.join(args.torch, name), os.path.join(args.torch,
                                                                             name[:-5] + ".npz")


def inputs_of(source, place):
    """The folder of samples, and the files of the first."""
    if source.endswith(".npz"):
        folder = os.path.join(place, "in")
        os.mkdir(folder)
        with zipfile.ZipFile(source) as z:
            names = sorted(n for n in z.namelist() if n.startswith("in_"))
            data = os.path.join(place, "in.npz")  # arrays found by place, as samples of all inputs
            with zipfile.ZipFile(data, "w") as to:
                for n in names:
                    z.extract(n, folder)
                    to.writestr("arr_" + n[3:], z.read(n))
        return data, [os.path.join(folder, n) for n in names]
    first = os.path.join(source, "test_data_set_0")
    files = sorted((n for n in os.listdir(first) if n.startswith("input_")),
                   key=lambda n: int(n.split("_")[1].split(".")[0]))
    return source, [os.path.join(first, n) for n in files]


def nori(*command, before=()):
    code, out, said, seconds = pack.run([*before, args.nori, *command], args.timeout)
    try:
        return code, json.loads(out), said, seconds
    except ValueError:
        return code, {}, said, seconds


def sqnr_of(report):
    """The least of the outputs; None where nothing was compared; inf: exact."""
    found = []
    for o in report.get("outputs", []):
        value = o.get("sqnr_db")
        if o.get("elements", 0) > 0:
            found.append(float("inf") if value is None and o.get("max_abs") == 0 else value)
    return min((f for f in found if f is not None), default=None)


def times(one, two, files):
    """Milliseconds of a run on one thread, the least of several turns."""
    best = [float("inf"), float("inf")]
    for turn in range(TURNS):
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            runs = 20 if turn == 0 else 3 if min(best) > 100 else 10 if min(best) > 1 else 300
            _, r, _, _ = nori("bench", (one, two)[i], *files, "--json", "--threads", "1", "--runs", str(runs),
                              before=shlex.split(args.timer))
            best[i] = min(best[i], r.get("min_ms", float("inf")))
    return best


def remedy(model, made, folder, advice):
    """The first option that the advice names and that reaches --least, with what it reaches."""
    tried = {}
    for text in advice:
        for option in re.findall(r"--(?:activations|method|budget|exclude) [^\s;,:]+|--per-channel", text):
            if option in tried or "NAME" in option or "..." in option:
                continue
            code, r, _, _ = nori("quantize", model, "--output", made, "--data", folder, "--perturb",
                                 str(args.samples), "--json", *shlex.split(args.options),
                                 *option.split())
            tried[option] = r.get("output_sqnr") if code == 0 else None
            if code == 0 and (tried[option] is None or tried[option] >= args.least):
                return option, tried[option]
    return None, tried


def work(name, model, source):
    row = {"name": name, "bad": ""}
    with tempfile.TemporaryDirectory() as place:
        made = os.path.join(place, "int8.onnx")
        folder, files = inputs_of(source, place)
        code, r, said, row["seconds"] = nori("quantize", model, "--output", made, "--data", folder,
                                             "--perturb", str(args.samples), "--json",
                                             *shlex.split(args.options))
        if args.keep:
            with open(os.path.join(args.keep, name + ".json"), "w", encoding="utf-8") as f:
                json.dump(r, f)
        if code != 0 or not r:
            return {**row, "bad": "not quantized: " + (r.get("error", {}).get("message") or said)}
        if args.keep:
            shutil.copy(made, os.path.join(args.keep, name + ".onnx"))
        row["nodes"] = sum(n["quantized"] for n in r["nodes"])
        row["all"] = len(r["nodes"])
        row["sqnr"] = r["output_sqnr"]
        row["bytes"] = r["weight_bytes_after"] / max(1, r["weight_bytes_before"])
        code, _, said, _ = nori("check", made, "--json")
        if code != 0:
            row["bad"] = "nori check: " + said
        if row["sqnr"] is not None and row["sqnr"] < args.least:
            other = os.path.join(place, "remedy.onnx")
            row["remedy"], row["reached"] = remedy(model, other, folder, r.get("advice", []))
            if not row["remedy"]:
                row["bad"] = row["bad"] or "%.1f dB, and no advice that helps: %s" % (
                    row["sqnr"], row["reached"])
        if LIBRARY:
            asked = made
            if not VNNI:
                asked = os.path.join(place, "u8.onnx")
                nori("quantize", model, "--output", asked, "--data", folder, "--perturb",
                     str(args.samples), "--weights", "uint8", "--json", *shlex.split(args.options))
            code, v, said, _ = nori("validate", asked, *files, "--provider", "ort:cpu",
                                    "--against-provider", "cpu", "--against-level", "2", "--json")
            row["ort"] = sqnr_of(v)
            if code not in (0, 1):
                row["bad"] = row["bad"] or "ONNX Runtime: " + (v.get("error", {}).get("message")
                                                               or said)
        if not args.no_times:
            row["float_ms"], row["int8_ms"] = times(model, made, files)
    return row


def retimed(row, model, source):
    made = os.path.join(args.keep, row["name"] + ".onnx")
    if os.path.exists(made):
        with tempfile.TemporaryDirectory() as place:
            row["float_ms"], row["int8_ms"] = times(model, made, inputs_of(source, place)[1])
    return row


def number(value, form="%.1f"):
    return "-" if value is None else "exact" if value == float("inf") else form % value


def kept():
    """name -> row of an earlier run."""
    rows = {}
    if args.rows and os.path.exists(args.rows):
        with open(args.rows, encoding="utf-8") as f:
            for line in f:
                row = json.loads(line)
                rows[row["name"]] = row
    return {n: r for n, r in rows.items() if not (args.again and args.again in n)}


def print_row(r):
    ratio = r["int8_ms"] / r["float_ms"] if r.get("float_ms") else None
    form = "%.4g" if args.markdown else "%.3f"
    cells = (r["name"], ("%d of %d" if args.markdown else "%d/%d") % (r.get("nodes", 0), r.get("all", 0)),
             number(r.get("sqnr")), number(r.get("ort")), number(r.get("bytes"), "%.2f"),
             number(r.get("float_ms"), form), number(r.get("int8_ms"), form), number(ratio, "%.2f"))
    words = r["bad"]
    if r.get("remedy"):
        words = "%s: %s dB" % (r["remedy"], number(r["reached"]))
    if args.markdown:
        print("| " + " | ".join(cells) + " |" + (" " + words if words else ""), flush=True)
    else:
        print("%-26s %9s %7s %7s %6s %9s %9s %6s %6s  %s" % (cells + ("%.0f s" % r["seconds"], words)),
              flush=True)
    return ratio


done = kept()
wanted = sorted((m for m in models() if args.filter in m[0]), key=lambda m: os.path.getsize(m[1]))
if not wanted:
    print("skipped: no models in", args.models or "--models", args.torch)
    sys.exit(77)
names = ("model", "integers", "sqnr", "ort", "size", "float ms", "int8 ms", "ratio")
if args.markdown:
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
else:
    print("%-26s %9s %7s %7s %6s %9s %9s %6s %6s" % (names + ("took",)))
failed = slow = 0
if args.retime is not None:
    for m in wanted:
        if args.retime in m[0] and m[0] in done and done[m[0]].get("float_ms"):
            done[m[0]] = retimed(done[m[0]], *m[1:])
    with open(args.rows, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(r) + "\n" for r in done.values())
rows = [done[m[0]] for m in wanted if m[0] in done]
slow = sum((print_row(r) or 0) > 1.1 for r in rows)
for r in pack.in_turn([lambda m=m: work(*m) for m in wanted if m[0] not in done], args.jobs, "models"):
    rows.append(r)
    if args.rows:
        with open(args.rows, "a", encoding="utf-8") as f:
            f.write(json.dumps(r) + "\n")
    slow += (print_row(r) or 0) > 1.1
failed = sum(bool(r["bad"]) for r in rows)
known = [r["sqnr"] for r in rows if r.get("sqnr") is not None]
print("%d models: %d below %g dB, %d slower than float, %d failed" % (
    len(rows), sum(k < args.least for k in known), args.least, slow, failed))
sys.exit(bool(failed))
