#!/usr/bin/env python3
"""Runs the commands of a page in order, in an empty folder, and compares what they print.

    run_guide.py PAGE.md --path DIR[:DIR...] [--write]

Blocks that begin with ```console hold commands, lines that begin with "$ " (continued by "> "), each
followed by what it prints, on both streams. Blocks that begin with ```file NAME hold a file that is written.
What is printed has to be the same to the letter, but for lines of "..." that stand for any lines, and, in a
block behind the comment <!-- numbers vary -->, for numbers: times and sizes of the machine. `[exit code N]`
behind a command's output says how it ends where that is not 0. --write puts in what the commands print."""
import argparse
import os
import re
import subprocess
import sys
import tempfile

p = argparse.ArgumentParser()
p.add_argument("page")
p.add_argument("--path", required=True, help="folders of the programs the page calls")
p.add_argument("--write", action="store_true")
args = p.parse_args()
VARY = "<!-- numbers vary -->"
NUMBER = re.compile(r"[0-9][0-9.,]*(e[-+]?[0-9]+)?")


def run(command, folder):
    env = dict(os.environ, PATH=os.path.abspath(args.path.split(":")[0]) + ":" +
               ":".join(map(os.path.abspath, args.path.split(":")[1:])) + ":" + os.environ["PATH"],
               LC_ALL="C", NO_COLOR="1", COLUMNS="100")
    for name in ("NORI_CPU", "NORI_ORT_LIBRARY"):
        env.pop(name, None)
    r = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    lines = r.stdout.decode("utf-8", "replace").rstrip("\n").split("\n")
    lines = [] if lines == [""] else lines
    return lines + (["[exit code %d]" % r.returncode] if r.returncode else [])


def same_line(want, got, vary):
    if vary:
        want, got = (re.sub(r" +", " ", NUMBER.sub("N", t)) for t in (want, got))
    return want.rstrip() == got.rstrip()


def same(want, got, vary):
    """want may have lines of "..." for any number of lines."""
    if not want:
        return not got
    if want[0] == "...":
        return any(same(want[1:], got[i:], vary) for i in range(len(got) + 1))
    return bool(got) and same_line(want[0], got[0], vary) and same(want[1:], got[1:], vary)


def steps(block):
    """[command lines, output lines] of a console block."""
    out = []
    for line in block:
        if line.startswith("$ "):
            out.append([[line], []])
        elif line.startswith("> ") and out and not out[-1][1]:
            out[-1][0].append(line)
        elif out:
            out[-1][1].append(line)
    return out


def main():
    with open(args.page, encoding="utf-8") as f:
        lines = f.read().split("\n")
    out, i, failed, count, vary = [], 0, 0, 0, False
    with tempfile.TemporaryDirectory() as folder:
        while i < len(lines):
            line = lines[i]
            out.append(line)
            i += 1
            vary = line == VARY or (vary and (line == "" or line.startswith("```")))
            if not line.startswith("```") or line == "```":
                continue
            block = []
            while i < len(lines) and lines[i] != "```":
                block.append(lines[i])
                i += 1
            kind = line[3:].split()
            if kind[:1] == ["file"]:
                with open(os.path.join(folder, kind[1]), "w", encoding="utf-8") as f:
                    f.write("\n".join(block) + "\n")
            if kind[:1] != ["console"]:
                out += block
                continue
            for command, want in steps(block):
                text = "\n".join(c[2:] for c in command)
                got = run(text, folder)
                count += 1
                if args.write:
                    want = want if want and same(want, got, vary) else got
                elif not same(want, got, vary):
                    failed += 1
                    print("%s: what this printed is not what the page has\n$ %s\n--- the page\n%s\n--- now\n%s\n" %
                          (args.page, text, "\n".join(want), "\n".join(got)))
                out += command + want
            vary = False
    if args.write:
        with open(args.page, "w", encoding="utf-8") as f:
            f.write("\n".join(out))
    print("%d commands, %d not as the page has them" % (count, failed))
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
