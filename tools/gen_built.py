#!/usr/bin/env python3
"""gen_built.py -o FOLDER [--operators FILE] [--levels avx2,avx512,amx] [--providers cpu,reference]: what a
reduced build holds (docs/size.md).

FILE is as `nori needs` writes it: lines "DOMAIN OPERATOR VERSION...", "half" and comments. The
set is closed under what upgrades, passes and rewrites make (src/ops/makes.h, src/providers/cpu/cpu_makes.h).
Written are nori_built.h (src/base/built.h says what that is) and nori_schema.inc, facts of those operators.
"""
import argparse
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gen_schema

ROOT = gen_schema.ROOT
MAKES = ["src/ops/makes.h", "src/providers/cpu/cpu_makes.h"]
DOMAINS = {"ai.onnx": "ONNX", "ai.onnx.ml": "ML", "ai.onnx.preview.training": "TRAINING",
           "ai.onnx.preview": "PREVIEW", "com.microsoft": "MS", "nori": "nori"}
LEVELS = ["avx2", "avx512", "amx"]
PROVIDERS = ["cpu", "reference", "ort", "xnnpack", "nnapi", "opencl", "cuda"]
ANY_VERSION = 1  # of an operator listed without one: old forms are upgraded, too


class ListError(Exception):
    pass


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def listed_operators():
    """Names of op_list.h, as its macros write them: ONNX_Conv."""
    return ["_".join(m) for m in re.findall(r"^NORI__OP\((\w+), (\w+),", text_of("src/ops/op_list.h"), re.M)]


def full_name(word):
    """The name a row of makes.h means: ai.onnx need not be said."""
    known = tuple(d + "_" for d in DOMAINS.values()) + ("kernels_",)
    return word if word.startswith(known) or word == "half" else "ONNX_" + word


def rows():
    """(step, made names, conditions): a condition is a list of (name, version it must be below or None)."""
    found = []
    for path in MAKES:
        text = re.sub(r"/\*.*?\*/", "", text_of(path), flags=re.S)
        for call in re.findall(r"NORI__MAKES\((.*?)\)(?=\s*(?:NORI__MAKES|$))", text, re.S):
            step, rest = call.split(",", 1)
            made, needed = ("".join(re.findall(r'"([^"]*)"', part))
                            for part in re.split(r'(?<="),', rest, maxsplit=1))
            conditions = []
            for word in needed.split():
                ways = [way.partition("<") for way in word.split("|")]
                conditions.append([(full_name(n), int(v) if v else None) for n, _, v in ways])
            found.append((step.strip(), [full_name(m) for m in made.split()], conditions))
    if not found:
        raise ListError("no rows in " + ", ".join(MAKES))
    return found


def applies(conditions, have):
    return all(any(name in have and (below is None or min(have[name]) < below) for name, below in ways)
               for ways in conditions)


def close(have):
    """Adds what is made of the names in have (name -> versions) until nothing more is; gives the steps that
    apply and, by name, the step that made it."""
    steps, made_by, table = set(), {}, rows()
    while True:
        before = len(have)
        for step, made, conditions in table:
            if applies(conditions, have):
                steps.add(step)
                for name in made:
                    if name not in have:
                        have[name] = [gen_schema.ANY]  # the newest form
                        made_by[name] = step
        if len(have) == before:
            return steps, made_by


def read_list(path):
    """name -> versions, and the models the list was made for."""
    have, models = {}, []
    known = set(listed_operators())
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        words = line.split()
        if line.startswith("# model "):
            models.append(line[len("# model "):].strip())
        if not words or words[0].startswith("#"):
            continue
        try:
            if words == ["half"]:
                have["half"] = [ANY_VERSION]
                continue
            if len(words) < 2 or words[0] not in DOMAINS:
                raise ListError("expected a domain of %s, then an operator" % ", ".join(sorted(DOMAINS)))
            name = DOMAINS[words[0]] + "_" + words[1]
            if words[0] != "nori" and name not in known:
                raise ListError("no operator %s in domain %s" % (words[1], words[0]))
            have.setdefault(name, []).extend([int(w) for w in words[2:]] or [ANY_VERSION])
        except (ListError, ValueError) as error:
            raise ListError("%s:%d: %s" % (path, number, error)) from None
    if not have:
        raise ListError(path + ": names no operator")
    return have, models


def everything():
    have = {name: [ANY_VERSION] for name in listed_operators() + ["half"]}
    return have, ["every operator"]


def quoted(text):
    return '"' + re.sub(r'[^ -~]', "?", text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def header(have, models, steps, levels, providers, path):
    made = sorted({name for _, names, _ in rows() for name in names if name.startswith(("nori_", "kernels_"))})
    flags = [(name, name in have) for name in listed_operators() + made]
    rewrites = re.findall(r'NORI__IF_BUILT\(rewrite_(\w+)', text_of("src/providers/cpu/cpu_rewrites.c"))
    flags += [("rewrite_" + step, step in steps) for step in rewrites]
    flags += [("level_" + level, level in levels) for level in LEVELS]
    flags += [("provider_" + p, p in providers) for p in PROVIDERS]
    flags += [("parts", bool(set(providers) - {"cpu", "reference"}))]
    out = ["/* Made by tools/gen_built.py from %s; do not edit. */" % (os.path.basename(path) or "nothing but options"),
           "#define NORI_BUILT_FROM " + quoted(os.path.basename(path)),
           "#define NORI_BUILT_FOR " + quoted(", ".join(models) or "the operators it lists")]
    out += ["#define NORI__BUILT_%s %d" % flag for flag in flags]
    return "\n".join(out) + "\n"


def write(folder, name, text):
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return  # nothing is built anew
    except OSError:
        pass
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def choice(text, known, what):
    chosen = [word for word in re.split("[,;]", text) if word]
    for word in chosen:
        if word not in known:
            raise ListError("no %s %s: there are %s" % (what, word, ", ".join(known)))
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("-o", dest="folder", required=True)
    parser.add_argument("--operators", default="")
    parser.add_argument("--levels", default=",".join(LEVELS))
    parser.add_argument("--providers", default=",".join(PROVIDERS))
    args = parser.parse_args()
    try:
        have, models = read_list(args.operators) if args.operators else everything()
        given = len(have)
        levels = choice(args.levels, LEVELS + ["base"], "CPU level")
        providers = choice(args.providers, PROVIDERS, "provider")
        highest = max([LEVELS.index(level) + 1 for level in levels if level != "base"], default=0)
        steps, made_by = close(have)
        os.makedirs(args.folder, exist_ok=True)
        write(args.folder, "nori_built.h",
              header(have, models, steps, LEVELS[:highest], providers, args.operators))
        facts = {v: k for k, v in DOMAINS.items()}
        kept = {tuple(name.split("_", 1)) for name in have if not name.startswith(("nori_", "kernels_"))}
        kept = {("" if d == "ONNX" else facts[d], n) for d, n in kept - {("half",)} if d in facts}
        write(args.folder, "nori_schema.inc", gen_schema.make(kept))
    except (ListError, OSError) as error:
        sys.exit("gen_built.py: %s" % error)
    more = sorted(name for name in made_by if not name.startswith("kernels_"))
    print("%d operators listed, %d made of them: %s" % (given, len(more), " ".join(more) or "none"))


if __name__ == "__main__":
    main()
