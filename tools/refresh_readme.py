#!/usr/bin/env python3
"""Runs the commands shown in README.md and writes what they print under them: refresh_readme.py NORI.

A block that begins with "$ " holds commands and their output; it is run in examples/digits with $nori
set. `--check` writes nothing and says which blocks read otherwise now; times and machines differ, so
that is for a person to look at, not a test."""
import os
import re
import subprocess
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
check = "--check" in sys.argv
words = [word for word in sys.argv[1:] if word != "--check"]
if len(words) != 1 or not os.access(words[0], os.X_OK) or os.path.isdir(words[0]):
    sys.exit("usage: refresh_readme.py [--check] NORI: the command, built, was expected")
nori = os.path.abspath(words[0])
path = f"{root}/README.md"
text = open(path, encoding="utf-8").read()
changed = []


def again(block):
    """The commands of a block (continued lines belong to them), each with what it prints now."""
    lines, out = block.group(1).splitlines(), []
    for i, line in enumerate(lines):
        if not line.startswith("$ "):
            continue
        command = [line]
        while command[-1].endswith("\\"):
            command.append(lines[i + len(command)])
        told = subprocess.run(["sh", "-c", "\n".join(command)[2:]], cwd=f"{root}/examples/digits",
                              env={**os.environ, "nori": nori, "NO_COLOR": "1"}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        out += command + told.stdout.rstrip("\n").splitlines()
    if out != lines:
        changed.append(lines[0])
    return "```\n" + "\n".join(out) + "\n```"


new = re.sub(r"^```\n(\$ .*?)\n```$", again, text, flags=re.M | re.S)
if not check:
    with open(path, "w", encoding="utf-8") as file:
        file.write(new)
print("\n".join(changed) if changed else "README.md shows what the commands print")
