#!/usr/bin/env python3
"""test_man.py NORI PAGE COMPLETION: every verb and option that the shell completion offers is in the
manual page, the page shows nothing that the command does not know, and roff takes it silently."""
import re
import shutil
import subprocess
import sys

nori, page, completion = sys.argv[1:]


def completed(*words):
    """What bash offers after these words, asked the way bash itself asks."""
    script = f'source "{completion}"; COMP_WORDS=(nori {" ".join(words)}); ' \
        f"COMP_CWORD={len(words)}; _nori; echo \"${{COMPREPLY[@]}}\""
    return subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True).stdout.split()


raw = open(page, encoding="utf-8").read()
sections = dict(re.findall(r"^\.SS (\S+)\n(.*?)(?=^\.S[SH] )", raw, re.M | re.S))
bad = []
verbs = [word for word in completed("''") if not word.startswith("-")]
if len(verbs) < 6:
    bad.append(f"the completion offers too few verbs: {verbs}")
if set(verbs) != set(sections):
    bad.append(f"verbs of the completion {sorted(verbs)}, of the page {sorted(sections)}")
for verb in verbs:
    offered = {word for word in completed(verb, "--") if word.startswith("--")}
    shown = {name.replace("\\-", "-") for name in re.findall(r"\\fB(\\-\\-[^\\]+(?:\\-[^\\]+)*)\\fR",
                                                             sections.get(verb, ""))}
    if "--help" not in shown:
        bad.append(f"{verb}: the page has no --help")
    if offered | {"--help"} != shown:
        bad.append(f"{verb}: in one of completion and page only: {sorted(offered ^ shown)}")
common = raw[raw.index(".SH COMMON OPTIONS"):]
for name in set(re.findall(r"Common options: (.*)\.", raw)):
    for option in name.split(", "):
        if f".TP\n{option}" not in common:
            bad.append(f"{option} is explained nowhere")
if shutil.which("groff"):
    said = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True)
    bad += said.stderr.splitlines()
else:
    print("groff is not installed: not checked that it takes the page without warnings")
print("\n".join(bad) if bad else f"{len(verbs)} verbs are in the page, with all their options")
sys.exit(bool(bad))
