#!/usr/bin/env python3
"""make_arguments.py OUT.c HEADER...: C that calls every public function with arguments that are wrong.

Functions that give a status, or free, are called with all arguments zero; all functions with one pointer NULL
among valid ones, one enumeration that is none, one index or rank that is out of range. What was made is data of
test_arguments.c, which runs each call in a process of its own.
"""
import os
import re
import sys

# What only its own maker's text may be given to.
ONLY_NULL = {"nori_text_free"}
# What nori hands to callbacks, which give it back while they run: nobody else has one.
OF_CALLBACKS = ("call", "infer", "part", "tracer")
# Returns the status it is given.
RETURNS_GIVEN = {"nori_error_set"}
OBJECTS = ("env", "model", "session", "tensor", "weights", "cuts", "costs", "archive", "findings", "cancel",
           "opset_report", "graph", "node", "value", "policy", "calibration", "split_report", "rebatch_report",
           "quantize_report", "prune_report", "convert_report", "divide", "layers", "versus", "trace_report",
           "route", "tracer", "traced", "call", "infer", "part")
ENUMS = ("nori_type", "nori_kind", "nori_status", "nori_severity", "nori_quantity", "nori_place",
         "nori_replay_who")
INTS = ("int", "int64_t", "size_t", "uint64_t", "unsigned", "double", "float")


def prototypes(path):
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    text = re.sub(r"^\s*#.*(?:\\\n.*)*", "", text, flags=re.M)
    for m in re.finditer(r"NORI_API\s+([^;{]+?)\b(nori_\w+)\s*\(([^;]*)\)\s*;", text):
        yield " ".join(m[1].split()), m[2], " ".join(m[3].split())


def parameters(text):
    """Splits at the commas that stand in no parentheses."""
    found, depth, one = [], 0, ""
    for c in text + ",":
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            found.append(one.strip())
            one = ""
        else:
            one += c
    return [] if found == ["void"] else found


def sort_of(parameter):
    """(what it is, a valid value, wrong values)"""
    if "(*" in parameter or re.match(r"\w+_function\b", parameter):
        return "function", "0", []
    m = re.match(r"(?:const )?(?:unsigned )?(\w+)\b(.*)", parameter)
    base, rest = m[1], m[2]
    stars = rest.count("*") + rest.count("[")
    if stars == 0:
        if base in ENUMS:
            return "number", f"({base})1", [f"({base})-1", f"({base})9999"]
        if base in ("size_t",) and re.search(r"\b(index|input|output)$", parameter):
            return "number", "0", ["SIZE_MAX", "1000"]
        if base == "int" and re.search(r"\b(rank|axis|side|index|servers|infer)$", parameter):
            return "number", "1", ["-1", "9999", "INT_MIN"]
        return "number", "1", ["0"]
    if "nori_error" in parameter:
        return "error", "&given->err", ["0"]
    if stars >= 2:
        if base == "char":
            return "pointer", "(void *)given->texts", ["0"]
        if "const *" in parameter or "*const" in parameter:
            return "pointer", "(void *)given->tensors" if base == "nori_tensor" else "(void *)given->nothing", ["0"]
        return "pointer", "(void *)&given->out", ["0"]
    if base == "char" and "const" in parameter and "unsigned" not in parameter:
        return "pointer", '"x"', ["0"]
    short = base[len("nori_"):] if base.startswith("nori_") else ""
    if short in OBJECTS:
        return "object", f"(void *)given->{short}", ["0"]
    return "pointer", "(void *)given->room", ["0"]


def calls_of(result, name, sorts):
    """The lists of arguments a function is tried with."""
    promised = result == "nori_status" or name.endswith("_free")
    if promised or not sorts:
        yield "zero", ["0"] * len(sorts)
    valid = [s[1] for s in sorts]
    for i, (_, _, wrong) in enumerate(sorts):
        for w in wrong:
            yield f"argument {i + 1}: {w}", valid[:i] + [w] + valid[i + 1:]


def of_nothing(result, sorts, what):
    """Whether an accessor is asked of a NULL object, and so has neither pointer nor count to return. An
    environment that is NULL is the default one."""
    sort, valid, _ = sorts[int(what.split(":")[0].split()[1]) - 1] if what != "zero" else ("", "", [])
    return (sort == "object" and valid != "(void *)given->env" and what.endswith(": 0")
            and (result.endswith("*") or result == "size_t") and '"x"' not in [s[1] for s in sorts[2:]])


def main():
    out, rows, bodies = sys.argv[1], [], []
    for header in sys.argv[2:]:
        for result, name, text in prototypes(header):
            sorts = [sort_of(p) for p in parameters(text) if p != "..."]
            if name in RETURNS_GIVEN or any(s[1] == f"(void *)given->{o}" for s in sorts for o in OF_CALLBACKS):
                continue
            for what, arguments in calls_of(result, name, sorts):
                if "..." in text:
                    arguments = arguments[:-1] + ['"x"']  # a format that is none is the compiler's to refuse
                if name in ONLY_NULL and what != "zero":
                    continue
                k = len(rows)
                call = f"{name}({', '.join(arguments)})"
                returned = f"((void){call}, -1)"
                if result == "nori_status":
                    returned = "(long long)" + call
                elif of_nothing(result, sorts, what):
                    returned = f"({call} ? -2 : -1)"
                bodies.append(f"static long long call_{k}(objects *given)\n{{\n"
                              f"    (void)given;\n    return {returned};\n}}\n")
                rows.append(f'    {{"{name}", "{what}", call_{k}, {int(what == "zero")}}},\n')
    with open(out + ".new", "w", encoding="utf-8") as file:
        file.write("/* Made by tests/make_arguments.py from the public headers. */\n")
        file.writelines(f'#include "nori/{os.path.basename(h)}"\n' for h in sys.argv[2:])
        file.write('#include "arguments.h"\n\n')
        file.writelines(bodies)
        file.write("\nconst wrong_call wrong_calls[] = {\n")
        file.writelines(rows)
        file.write("};\nconst size_t wrong_call_count = sizeof(wrong_calls) / sizeof(wrong_calls[0]);\n")
    os.replace(out + ".new", out)


if __name__ == "__main__":
    main()
