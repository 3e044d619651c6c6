#!/usr/bin/env python3
"""size_report.py LIBRARY [--most BYTES] [--files N] [--json]: what a library's bytes are, by folder and file.

LIBRARY is libnori.so as the linker made it (not stripped) with its map beside it, LIBRARY.map (CMake:
-DNORI_MAP=ON). Printed are bytes of code, constants and relocated constants by source folder, the N largest files,
and the size of the library once it is stripped, which is compared with --most: 1 when it is larger.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

KEPT = (".text", ".rodata", ".data", ".data.rel.ro", ".eh_frame")


def sections(path):
    """(source file, section, bytes) of what the linker kept."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    start = text.find("Linker script and memory map")
    if start < 0:
        sys.exit("size_report.py: %s is not a map of GNU ld" % path)
    text = re.sub(r"\n (\.[\w.$-]+)\n\s+0x", r"\n \1 0x", text[start:])  # long names stand on a line of their own
    for name, size, source in re.findall(r"^ (\.[\w.$-]+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+(\S.*)$", text, re.M):
        kind = ".data.rel.ro" if name.startswith(".data.rel") else "." + name.split(".")[1]
        if kind in KEPT and int(size, 16):
            yield source_of(source), kind, int(size, 16)


def source_of(path):
    ours = re.search(r"nori_objects\.dir/(.*)\.o$", path)
    return ours[1] if ours else "(%s)" % re.sub(r"\(.*", "", os.path.basename(path))


def stripped_size(path, strip):
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "stripped")
        shutil.copyfile(path, copy)
        subprocess.run([strip, copy], check=True)
        return os.path.getsize(copy)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("library")
    parser.add_argument("--most", type=int, help="bytes that the stripped library may have")
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--strip", default="strip", help="the program, for libraries of another machine")
    args = parser.parse_args()
    library = os.path.realpath(args.library)
    if not os.path.exists(library + ".map"):
        sys.exit("size_report.py: no %s.map: configure with -DNORI_MAP=ON" % library)
    files, folders = collections.Counter(), collections.Counter()
    for source, _, size in sections(library + ".map"):
        files[source] += size
        folders[os.path.dirname(source) or source] += size
    total = stripped_size(library, args.strip)
    rest = total - sum(files.values())
    folders["(symbols, relocations, alignment)"] = rest
    if args.json:
        json.dump({"stripped": total, "most": args.most, "folders": dict(folders.most_common()),
                   "files": dict(files.most_common())}, sys.stdout, indent=1)
        print()
    else:
        for name, size in folders.most_common():
            print("%9d  %4.1f%%  %s" % (size, 100 * size / total, name))
        print("%9d  stripped%s\n" % (total, ", at most %d" % args.most if args.most else ""))
        for name, size in files.most_common(args.files):
            print("%9d  %s" % (size, name))
    if args.most and total > args.most:
        sys.exit("size_report.py: %d bytes, %d more than may be" % (total, total - args.most))


if __name__ == "__main__":
    main()
