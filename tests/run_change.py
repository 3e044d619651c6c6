#!/usr/bin/env python3
"""Changes every model of some folders by the tools that make models of models, and runs what comes out.

    run_change.py --nori build/release/nori FOLDER... [--tools optimize,external,fp16,split,merge]
                  [--provider cpu] [--filter TEXT] [--most MEGABYTES] [--seed N] [--keep FILE] [--list]

A case is a folder with model.onnx and test_data_set_0. What the original passes, every model made of it
must pass, and `nori check` must find no error that the original does not have. optimize: as the tool is
by default, and no operator that was not there or is not ONNX's; external: data beside the model and back
in one file; split and merge: at cuts drawn from the seed, the parts proved by the tool, merged again;
fp16: as precision allows, looser tolerance. Originals that do not pass are counted, and left out."""
import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import pack

p = argparse.ArgumentParser()
p.add_argument("folders", nargs="+")
p.add_argument("--nori", required=True)
p.add_argument("--tools", default="optimize,external,fp16,split")
p.add_argument("--provider", default="cpu")
p.add_argument("--filter", default="")
p.add_argument("--atol", default="1e-3")
p.add_argument("--rtol", default="1e-3")
p.add_argument("--most", type=int, default=200, help="megabytes: larger models are left out")
p.add_argument("--cuts", type=int, default=3, help="a model, drawn among all")
p.add_argument("--seed", type=int, default=1)
p.add_argument("--jobs", type=int, default=2)
p.add_argument("--every", type=int, default=1, help="take each N-th case only")
p.add_argument("--keep", default="", help="a file for what is done: a run that was stopped goes on from it")
p.add_argument("--list", action="store_true", help="what was refused, and why")
args = p.parse_args()


def nori(*words):
    r = subprocess.run([args.nori, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    return r.returncode, r.stdout.decode("utf-8", "replace"), r.stderr.decode("utf-8", "replace")


def passes(model, case, atol=None, rtol=None):
    code, out, err = nori("run", model, "--test-data", os.path.join(case, "test_data_set_0"), "--threads",
                        "1", "--atol", atol or args.atol, "--rtol", rtol or args.rtol, "--provider",
                        args.provider)
    return code == 0, err + out


def check(model):
    """Errors that check finds, and its text."""
    code, out, _ = nori("check", model, "--json")
    return (json.loads(out)["errors"] if code < 2 else 10 ** 6), out


def operators(model):
    code, out, _ = nori("inspect", model, "--json")
    return {(o["domain"], o["op"]) for o in json.loads(out)["operators"]} if code == 0 else set()


class Case:
    def __init__(self, case):
        self.case, self.model = case, os.path.join(case, "model.onnx")
        self.results = []

    def note(self, what, tool, words=""):
        self.results.append((what, tool, "%s: %s: %s" % (self.case, tool, words.strip()[:400])))

    def judge(self, tool, made, atol=None, rtol=None):
        ok, err = passes(made, self.case, atol, rtol)
        if ok:
            has, text = check(made)
            if has > self.had:
                ok, err = False, text
        self.note("agrees" if ok else "BAD", tool, err)

    def optimize(self, folder):
        made = os.path.join(folder, "o.onnx")
        code, out, err = nori("optimize", self.model, "--output", made, "--json")
        if code != 0 and "made up" in err:
            code, out, err = nori("optimize", self.model, "--output", made, "--json", "--no-proof")
        if code != 0:
            return self.note("BAD", "optimize", err)
        if json.loads(out)["left_out"]:
            self.note("left out", "optimize", json.loads(out)["left_out"])
        new = {o for o in operators(made) - operators(self.model) if o[0] not in ("", "ai.onnx")}
        if new:
            return self.note("BAD", "optimize", "new operators %s" % new)
        self.judge("optimize", made)

    def external(self, folder):
        beside, back = os.path.join(folder, "e.onnx"), os.path.join(folder, "b.onnx")
        code, _, err = nori("convert", self.model, "--output", beside, "--external", "e.bin", "--threshold",
                            "16")
        if code == 0:
            self.judge("external", beside)
            code, _, err = nori("convert", beside, "--output", back, "--embed")
        if code == 0:
            return self.judge("embed", back)
        self.note("BAD", "external", err)

    def fp16(self, folder):
        made = os.path.join(folder, "h.onnx")
        if any("Quantize" in o or "Integer" in o or o.startswith("QLinear") for _, o in operators(self.model)):
            return self.note("integers already", "fp16")
        words = ["quantize", self.model, "--kind", "fp16", "--output", made]
        # Samples tell which values leave float16's range, 65504, and stay float32.
        code, _, err = nori(*words, "--data", os.path.join(self.case, "test_data_set_0"))
        if code != 0:
            code, _, err = nori(*words)
        if code != 0:
            return self.note("refused", "fp16", err)
        ok, text = passes(made, self.case, "0.1", "5e-2")
        if "got nan" in text or "got -nan" in text or "inf " in text or "large_number" in self.case:
            return self.note("beyond float16", "fp16", text)
        rows = re.findall(r"^\S+ +float\d+\[.* (\d+)/(\d+) ", text, re.M)
        if not ok and rows and all(int(n) <= 1e-3 * int(of) for n, of in rows):  # e.g. near a threshold
            return self.note("agrees but for 1 in 1000", "fp16", text)
        self.judge("fp16", made, "0.1", "5e-2")

    def split(self, folder):
        code, out, err = nori("split", self.model, "--list", "--most", "8", "--json")
        if code != 0:
            return self.note("refused", "split", err)
        cuts = json.loads(out)["cuts"]
        cuts = [c for c in cuts if not any("," in v for v in c["values"])]
        draw = random.Random("%d %s" % (args.seed, self.case))
        one, two = os.path.join(folder, "1.onnx"), os.path.join(folder, "2.onnx")
        for cut in draw.sample(cuts, min(args.cuts, len(cuts))):
            words = ["split", self.model, "--at", ",".join(cut["values"]), "--output", one, "--output", two,
                     "--json"]
            code, out, err = nori(*words)
            if code != 0 and "made up" in err:
                code, out, err = nori(*words, "--no-proof")
            if code == 2 and "leaves nothing behind" in err:
                self.note("refused", "split", err)
                continue
            if code != 0:
                self.note("BAD", "split", "%s: %s" % (cut["values"], err))
                continue
            if check(one)[0] > self.had or check(two)[0] > self.had:
                self.note("BAD", "split", check(one)[1] + check(two)[1])
            proof, part = json.loads(out)["proof"], json.loads(out)["parts"][0]
            if proof["ran"] and cut["known"] and part["bytes"] != cut["bytes"]:
                self.note("BAD", "split", "%s bytes told, %s real" % (cut["bytes"], part["bytes"]))
            self.note("agrees" if proof["ran"] else "not proved", "split", proof["reason"])
            self.merge(folder, one, two)

    def merge(self, folder, one, two):
        """Parts as one again: outputs that were handed on stay, then inputs and outputs in their order."""
        made, whole = os.path.join(folder, "m.onnx"), os.path.join(folder, "w.onnx")
        words = ["merge", one, two, "--output", made, "--json", "--keep"]
        code, _, err = nori(*words)
        if code != 0 and "made up" in err:
            code, _, err = nori(*words, "--no-proof")
        if code != 0:
            return self.note("BAD", "merge", err)
        values = json.loads(nori("inspect", self.model, "--json")[1])
        ends = [",".join(v["name"] for v in values[k] if not v.get("optional")) for k in ("inputs", "outputs")]
        code, _, err = nori("extract", made, "--from", ends[0], "--to", ends[1], "--output", whole)
        if code != 0:
            return self.note("refused" if "needs input" in err or "no value" in err else "BAD",
                             "extract", err)  # an input that nothing reads is in no part
        self.judge("merge", whole)


def one(folder):
    case = Case(folder)
    if os.path.getsize(case.model) > args.most << 20 or not passes(case.model, folder)[0]:
        return [("left out", "all", folder)]
    case.had = check(case.model)[0]
    for tool in args.tools.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            getattr(case, tool)(scratch)
    return case.results


cases = sorted(f for top in args.folders for f, _, files in os.walk(top)
               if "model.onnx" in files and args.filter in f and
               os.path.isdir(os.path.join(f, "test_data_set_0")))[::args.every]
if not cases:
    print("no cases in %s: skipped" % " ".join(args.folders))
    sys.exit(77)
counts = collections.Counter()
for results in pack.in_turn_kept(cases, args.jobs, one, args.keep):
    for what, tool, words in results:
        counts[(tool, what)] += 1
        if what == "BAD" or args.list:
            print(what, words, flush=True)
print("%d cases on %s: %s" % (len(cases), args.provider,
                              ", ".join("%s %d %s" % (t, n, w) for (t, w), n in sorted(counts.items()))))
bad = sum(n for (_, w), n in counts.items() if w == "BAD")
sys.exit(1 if bad or not any(w == "agrees" for _, w in counts) else 0)
