#!/usr/bin/env python3
"""House rules that a script can see: banned functions, line length, tabs, unique file names."""
import os
import re
import subprocess
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
files = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True).stdout.split("\n")
BANNED = re.compile(r"\b(strcpy|strcat|sprintf|strtok|gets|atoi|rand|alloca|abort|exit)\s*\(")
SETJMP = re.compile(r"\b(setjmp|longjmp)\s*\(")
PRINTS = re.compile(r"\b(printf|puts|putchar|perror)\s*\(|\bstderr\b|\bstdout\b")
bad, names = [], {}
for path in filter(None, files):
    with open(os.path.join(root, path), "rb") as f:
        if re.search(rb"^(<<<<<<< |>>>>>>> )", f.read(), re.M):
            bad.append(f"{path}: what a merge left behind")
    if not path.endswith((".c", ".h")):
        continue
    base = os.path.basename(path)
    if path.startswith(("src/", "cli/", "include/")):
        if base in names and base != "internal.h":
            bad.append(f"{path}: {names[base]} has the same name")
        names[base] = path
    for number, line in enumerate(open(os.path.join(root, path), encoding="utf-8"), 1):
        code = re.sub(r'"(\\.|[^"\\])*"', '""', line.split("//")[0])
        where = f"{path}:{number}"
        if "\t" in line:
            bad.append(f"{where}: tab")
        if len(line.rstrip("\n")) > 110 and base != "op_list.h":  # a table, a row a line
            bad.append(f"{where}: line of {len(line)} characters")
        if line.lstrip().startswith(("*", "/*")):
            continue
        if BANNED.search(code) and not path.startswith(("tests/", "bench/", "examples/", "fuzz/")):
            bad.append(f"{where}: banned function")
        if SETJMP.search(code) and path != "cli/common/picture.c":  # libjpeg reports errors so
            bad.append(f"{where}: setjmp")
        if path.startswith("src/") and PRINTS.search(code):
            bad.append(f"{where}: the library never prints")
print("\n".join(bad) if bad else "style holds")
sys.exit(bool(bad))
