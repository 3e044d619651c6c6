#!/usr/bin/env python3
"""Random one-node models through nori (providers reference and cpu, levels 0 and 2) and through ONNX
Runtime; whatever is not the same to a tolerance of the type is shown, made small, and counted.

    differential.py --driver build/release/tests/differential/nori-differential [--ort PATH] [--seed N]
                    [--cases N] [--only OP,..] [--size N] [--keep DIR] [--verbose]

PATH is the library; without it, as ort_library.py finds it. Exits 0 when all agree or the difference is one docs/differences.md writes down,
1 when not, 77 when there is no ONNX Runtime. A case is its operator, seed and size: the same three
make the same bytes, so `--only Op --seed N --cases 1` brings one back."""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import draw  # noqa: E402
import known  # noqa: E402
import ops_control  # noqa: E402
import ops_illegal  # noqa: E402
import ops_image  # noqa: E402
import ops_math  # noqa: E402
import ops_ml  # noqa: E402
import ops_move  # noqa: E402
import ops_ms  # noqa: E402
import ops_ms_attention  # noqa: E402
import ops_nn  # noqa: E402
import ops_quant  # noqa: E402
import ops_recurrent  # noqa: E402
import ops_reduce  # noqa: E402
import ops_sequence  # noqa: E402
import ops_text  # noqa: E402
import ops_tree  # noqa: E402
import ort_library  # noqa: E402

TABLES = (ops_control, ops_illegal, ops_image, ops_math, ops_ml, ops_move, ops_ms, ops_ms_attention,
          ops_nn, ops_quant, ops_recurrent, ops_reduce, ops_sequence, ops_text,
          ops_tree)  # importing one fills draw.TABLE

NO_KERNEL = re.compile("no kernel for version|the module .* is not there")


class Result:
    """What the driver said about one case."""

    def __init__(self, case):
        self.case, self.ort, self.nori, self.differs, self.broken = case, ("", ""), {}, [], ""

    def faults(self):
        """Kinds of disagreement, as (kind, configuration, text)."""
        out = []
        if self.case.illegal:
            return [("accepts what is not legal", config, "") for config, (status, _) in self.nori.items()
                    if status in ("ran", "crashed")]
        if self.broken:
            out.append(("broken", "", self.broken))
        for config, output, text, got, want in self.differs:
            what = "differs" if self.ort[0] == "ran" else "providers differ"
            out.append((what, config, "output %s: %s\n    got  %s\n    want %s"
                        % (output, text, got, want)))
        for config, (status, text) in self.nori.items():
            if NO_KERNEL.search(text):
                continue  # refused by name; counted by main
            if status != "ran" and self.ort[0] == "ran":
                out.append(("nori fails", config, "%s: %s" % (status, text)))
            elif status == "ran" and self.ort[0] == "failed":
                out.append(("ort fails", config, self.ort[1]))
            elif status == "crashed":
                out.append(("crash", config, text))
        ran = [c for c, (s, _) in self.nori.items() if s == "ran"]
        if ran and len(ran) < len(self.nori) and self.ort[0] != "ran":
            missing = next(c for c in self.nori if c not in ran)
            out.append(("providers differ", missing, self.nori[missing][1]))
        return out


class Runner:
    def __init__(self, driver, library, folder):
        self.driver, self.library, self.folder = driver, library, folder
        self.batch = 0

    def write(self, case, folder):
        os.makedirs(folder)
        model, inputs = case.model()
        with open(folder + "/model.onnx", "wb") as f:
            f.write(model)
        for i, t in enumerate(inputs):
            items = {"": t} if isinstance(t, draw.Tensor) else {
                ".%d" % k: item for k, item in enumerate(t.items)}
            for suffix, item in items.items():
                with open("%s/input_%d%s.pb" % (folder, i, suffix), "wb") as f:
                    f.write(item.proto())

    def run(self, cases):
        """Writes and runs cases; a list of Result in their order."""
        self.batch += 1
        base = os.path.join(self.folder, "batch_%d" % self.batch)
        results = [Result(c) for c in cases]
        lines = []
        for i, c in enumerate(cases):
            c.folder = "%s/%05d_%s" % (base, i, c.op)
            self.write(c, c.folder)
            lines.append("%s\t%r\t%r\n" % ((c.folder,) + c.tolerances()))
        with open(base + "/list", "w") as f:
            f.writelines(lines)
        first = 0
        while first < len(cases):
            done = subprocess.run([self.driver, self.library, base + "/list", str(first)],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            current = self.parse(done.stdout.decode("utf-8", "replace"), results)
            if done.returncode == 0:
                break
            if current is None:
                sys.exit("%s cannot run: exit code %d" % (self.driver, done.returncode))
            r = results[current]  # the process ended inside this case
            if r.ort[0]:
                r.nori["?"] = ("crashed", "the driver ended by signal %d" % -done.returncode)
            else:
                r.ort = ("crashed", "ended by signal %d" % -done.returncode)
            first = current + 1
        return results

    @staticmethod
    def parse(text, results):
        """Fills results; the case that was begun and not ended, or None."""
        current = None
        for line in text.split("\n"):
            f = line.split("\t")
            if f[0] == "case":
                current = int(f[1])
            elif f[0] == "end":
                current = None
            elif f[0] == "broken":
                results[current].broken = f[1]
            elif f[0] == "ort":
                results[current].ort = (f[1], f[2] if len(f) > 2 else "")
            elif f[0] == "nori":
                results[current].nori[f[1]] = (f[2], f[3] if len(f) > 3 else "")
            elif f[0] == "differs" and len(f) == 6:
                results[current].differs.append(tuple(f[1:]))
        return current


def unexcused(result):
    return [f for f in result.faults() if not known.excuse(result.case, f, result)]


def smallest(runner, case, kind, tries=60):
    """The smallest case of the same operator with a disagreement of the same kind."""
    best, best_weight = None, case.weight()
    for size in range(1, case.size + 1):
        cases = [draw.make(case.domain, case.key, 1000003 + k, size) for k in range(tries)]
        for r in runner.run([c for c in cases if c]):
            if r.case.weight() < best_weight and any(f[0] == kind for f in unexcused(r)):
                best, best_weight = r, r.case.weight()
        if best:
            return best
    return None


def show(result, faults, title):
    c = result.case
    print("%s %s%s, opset %d, seed %d, size %d: %s" % (
        title, c.domain + "." if c.domain else "", c.key, c.opset, c.seed, c.size, c.folder))
    print(c.text())
    same = collections.defaultdict(list)  # what several configurations say alike is said once
    for kind, config, text in faults:
        same[kind, text].append(config)
    for (kind, text), configs in list(same.items())[:4]:
        print("  %s (%s) %s" % (kind, ", ".join(configs), text))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--driver", required=True)
    p.add_argument("--ort", help="the library")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--cases", type=int, default=20, help="cases of each operator")
    p.add_argument("--size", type=int, default=5, help="largest usual dimension")
    p.add_argument("--only", default="", help="operators or domains, comma-separated")
    p.add_argument("--keep", help="write the cases here and keep them")
    p.add_argument("--verbose", action="store_true", help="a line for each operator; what ORT refuses")
    p.add_argument("--no-shrink", action="store_true")
    args = p.parse_args()
    library = args.ort or ort_library.find()
    if not library:
        print("skipped:", ort_library.ABSENT)
        return 77
    only = [o for o in args.only.split(",") if o]
    folder = args.keep or tempfile.mkdtemp(prefix="nori-differential-")
    runner = Runner(args.driver, library, folder)
    cases, void = [], collections.Counter()
    for (domain, op), (_, _, weight) in sorted(draw.TABLE.items()):
        if only and op.rstrip("!") not in only and domain not in only:
            continue
        for k in range(args.cases * weight if args.cases > 1 else 1):
            c = draw.make(domain, op, args.seed + k, args.size)
            void[op] += c is None
            cases += [c] if c else []
    bad, excused, agreed, refused = 0, collections.Counter(), 0, collections.Counter()
    kernelless, illegal = set(), 0
    shown, per_op = set(), collections.defaultdict(collections.Counter)
    for start in range(0, len(cases), 2000):
        for r in runner.run(cases[start:start + 2000]):
            c, faults = r.case, r.faults()
            left = unexcused(r)
            per_op[c.domain, c.key][r.ort[0]] += 1
            if any(NO_KERNEL.search(text) for _, text in r.nori.values()):
                kernelless.add(c.op)
            if c.illegal:
                illegal += 1
            elif r.ort[0] in ("refused", "crashed"):
                refused[c.op, r.ort[1].split('model.onnx')[-1][:150]] += 1
            if left:
                bad += 1
                per_op[c.domain, c.key]["bad"] += 1
                if (c.key, left[0][0]) not in shown:
                    shown.add((c.key, left[0][0]))
                    small = None if args.no_shrink else smallest(runner, c, left[0][0])
                    print("first seen with seed %d, size %d" % (c.seed, c.size) if small else "")
                    show(small or r, unexcused(small) if small else left, "DISAGREE")
                    sys.stdout.flush()
            elif faults:
                excused[known.excuse(c, faults[0], r)] += 1
            elif r.ort[0] == "ran" and not c.illegal:
                agreed += 1
    if args.verbose:
        for (domain, op), n in sorted(per_op.items()):
            print("%-28s %s void %d" % (op, " ".join("%s %d" % kv for kv in sorted(n.items())), void[op]))
        for (op, text), n in sorted(refused.items()):
            print("ORT refuses %s (%d): %s" % (op, n, text))
    never = sorted(op for (_, op), n in per_op.items() if not n["ran"] and not op.endswith("!"))
    print("%d cases of %d operators: %d agree, %d differ as written down, %d refused by ONNX Runtime, "
          "%d not legal, %d DISAGREE" % (len(cases), len({(dom, o.rstrip("!")) for dom, o in per_op}), agreed,
                                         sum(excused.values()), sum(refused.values()), illegal, bad))
    for name, n in sorted(excused.items()):
        print("  as written down: %s (%d)" % (name, n))
    if never:
        print("  no case ran in ONNX Runtime: %s" % " ".join(never))
    if kernelless:
        print("  nori has no kernel: %s" % " ".join(sorted(kernelless)))
    if not args.keep and not bad:
        shutil.rmtree(folder)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
