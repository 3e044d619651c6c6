#!/usr/bin/env python3
"""Makes src/ops/schema.inc from tools/facts/operators.tsv.

Without arguments writes the file; with --check exits 1 if it is not what the facts give.
The result depends on the facts alone: same bytes on every machine.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FACTS = os.path.join(ROOT, "tools", "facts", "operators.tsv")
RESULT = os.path.join(ROOT, "src", "ops", "schema.inc")

# Bits of nori__schema_arg.types: element types as in nori_type, then the enum in schema.h.
ELEMENT = {
    "f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "str": 8, "bool": 9,
    "f16": 10, "f64": 11, "u32": 12, "u64": 13, "c64": 14, "c128": 15, "bf16": 16,
    "f8e4m3fn": 17, "f8e4m3fnuz": 18, "f8e5m2": 19, "f8e5m2fnuz": 20, "u4": 21, "i4": 22,
    "f4e2m1": 23, "f8e8m0": 24, "u2": 25, "i2": 26,
}
GROUP = {
    "i*": ["i8", "i16", "i32", "i64"], "u*": ["u8", "u16", "u32", "u64"],
    "f*": ["f16", "f32", "f64"], "c*": ["c64", "c128"],
    "f8*": ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"],
    "q4": ["i4", "u4"], "q2": ["i2", "u2"],
}
SEQ_TENSOR, SEQ_MAP, OPT_TENSOR, OPT_SEQ, MAP = 32, 33, 34, 35, 36
KIND = {
    "f": "FLOAT", "i": "INT", "s": "STRING", "t": "TENSOR", "g": "GRAPH", "fs": "FLOATS",
    "is": "INTS", "ss": "STRINGS", "ts": "TENSORS", "gs": "GRAPHS", "sp": "SPARSE",
    "sps": "SPARSES", "tp": "TYPE", "tps": "TYPES",
}
OPTION = {"": "SINGLE", "?": "OPTIONAL", "*": "VARIADIC", "**": "VARIADIC"}
ANY = 65535


class FactError(Exception):
    pass


def split_top(text, mark):
    """Splits at marks outside parentheses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == mark and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return parts


def type_bits(text):
    bits = 0
    for word in split_top(text, "|"):
        inner = re.fullmatch(r"(seq|opt|map)\((.+)\)", word)
        if word in ELEMENT:
            bits |= 1 << ELEMENT[word]
        elif word in GROUP:
            for name in GROUP[word]:
                bits |= 1 << ELEMENT[name]
        elif inner is None:
            raise FactError("unknown type " + word)
        elif inner[1] == "map":
            key, value = split_top(inner[2], ",")
            type_bits(key), type_bits(value)
            bits |= 1 << MAP
        else:
            below = type_bits(inner[2])
            if inner[1] == "seq":
                bits |= 1 << (SEQ_MAP if below >> MAP & 1 else SEQ_TENSOR)
            else:
                bits |= 1 << (OPT_SEQ if below >> SEQ_TENSOR & 1 else OPT_TENSOR)
    return bits


def listed(text):
    return [] if text == "-" else text.split(" ")


def quoted(text):
    if not re.fullmatch(r"[\w.,\[\]+-]*", text):
        raise FactError("unexpected characters in " + text)
    return '"' + text + '"'


def arguments(text, constraints):
    result = []
    for item in listed(text):
        m = re.fullmatch(r"([\w.]+)(\*\*|\*|\?|):(=?)(.+)", item)
        if not m:
            raise FactError("cannot read argument " + item)
        name, option, fixed, what = m.groups()
        if not fixed and what not in constraints:
            raise FactError("no type constraint " + what)
        bits = type_bits(what) if fixed else constraints[what]
        result.append("{%s, %s, 0x%xu, NORI__ARG_%s, %d}" % (
            quoted(name), "NULL" if fixed else quoted(what), bits, OPTION[option],
            0 if option == "**" else 1))
    return tuple(result)


def attributes(text):
    result = []
    for item in listed(text):
        m = re.fullmatch(r"(\w+):([a-z]+)(?:(!)|=(.*))?", item)
        if not m or m[2] not in KIND:
            raise FactError("cannot read attribute " + item)
        result.append("{%s, NORI__ATTR_%s, %d, %s}" % (
            quoted(m[1]), KIND[m[2]], 1 if m[3] else 0,
            "NULL" if m[4] is None else quoted(m[4])))
    return tuple(sorted(result))


def arity(text):
    low, high = text.split("..")
    return int(low), ANY if high == "n" else int(high)


def read():
    rows, last = [], None
    with open(FACTS, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            try:
                fields = line.split("\t")
                if len(fields) != 10:
                    raise FactError("expected 10 columns, found %d" % len(fields))
                domain, name, since, flags, n_in, ins, n_out, outs, attrs, types = fields
                domain = "" if domain == "ai.onnx" else domain
                key = (domain, name, int(since))
                if last is not None and key <= last:
                    raise FactError("not in order, or twice")
                last = key
                flags = [] if flags == "-" else flags.split(",")
                if set(flags) - {"deprecated", "function", "runtime"}:
                    raise FactError("unknown flag")
                constraints = {}
                for item in listed(types):
                    label, what = item.split("=", 1)
                    constraints[label] = type_bits(what)
                rows.append((key, flags, arity(n_in), arity(n_out), arguments(ins, constraints),
                             arguments(outs, constraints), attributes(attrs)))
            except (FactError, ValueError) as error:
                sys.exit("%s:%d: %s" % (FACTS, number, error))
    return rows


class Pool:
    """Entries of many short lists in one array; a list found inside what is there is shared."""

    def __init__(self, lists):
        self.entries, self.places, heads = [], {(): 0}, {}
        for item in sorted(set(lists), key=lambda x: (-len(x), x)):
            if not item:
                continue
            for at in heads.get(item[0], []):
                if tuple(self.entries[at:at + len(item)]) == item:
                    self.places[item] = at
                    break
            else:
                at = len(self.entries)
                self.places[item] = at
                for i, entry in enumerate(item):
                    heads.setdefault(entry, []).append(at + i)
                self.entries.extend(item)


def make(kept=None):
    """The text of schema.inc; kept: (domain, name) of those that are in it, else all."""
    rows = [r for r in read() if kept is None or r[0][:2] in kept]
    args = Pool([r[4] for r in rows] + [r[5] for r in rows])
    attrs = Pool([r[6] for r in rows])
    attrs.entries = attrs.entries or ['{"", NORI__ATTR_INT, 0, NULL}'] # C has no empty arrays
    out = ["/* Made by tools/gen_schema.py from tools/facts/operators.tsv; do not edit. */", "",
           "static const nori__schema_arg args[] = {"]
    out += ["    %s," % e for e in args.entries]
    out += ["};", "", "static const nori__schema_attr attrs[] = {"]
    out += ["    %s," % e for e in attrs.entries]
    out += ["};", "", "static const nori__schema schemas[] = {"]
    for (domain, name, since), flags, n_in, n_out, ins, outs, ats in rows:
        out.append(("    {%s, %s, %d, %d, %d, %d, %d, %d, %d, %d, args + %d, args + %d, %d, %d, %d, "
                    "attrs + %d},") % (
            quoted(domain), quoted(name), since, *(flag in flags for flag in ("deprecated", "function", "runtime")),
            n_in[0], n_in[1], n_out[0], n_out[1], args.places[ins], args.places[outs],
            len(ins), len(outs), len(ats), attrs.places[ats]))
    out += ["};", ""]
    return "\n".join(out)


def main():
    text = make()
    if sys.argv[1:] == ["--check"]:
        try:
            with open(RESULT, encoding="utf-8", newline="") as file:
                same = file.read() == text
        except OSError:
            same = False
        if not same:
            sys.exit("src/ops/schema.inc is stale: run tools/gen_schema.py")
    elif sys.argv[1:]:
        sys.exit("usage: gen_schema.py [--check]")
    else:
        with open(RESULT, "w", encoding="utf-8", newline="") as file:
            file.write(text)


if __name__ == "__main__":
    main()
