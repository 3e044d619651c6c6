#!/usr/bin/env python3
"""Writes the manual page nori(1) from what the command says of itself: gen_man.py NORI OUT.

The text of `nori help` and `nori VERB --help` is the only source, so page and command cannot differ.
A verb of the shell completion that the help does not list, or a help that reads otherwise than
expected, ends the build instead of dropping something."""
import re
import subprocess
import sys


def said(nori, *arguments):
    return subprocess.run([nori, *arguments], check=True, capture_output=True, text=True).stdout


def roff(text):
    """Escapes text; a period or quote at the start of a line would be a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return "\\&" + text if text.startswith(".") else text


def options(lines):
    """'  --name VALUE   help' becomes a tagged paragraph; deeper lines go on with the help."""
    for line in lines:
        entry = re.match(r"  (-\S+)(?: (\S+))?(?:  +(.*))?$", line) or \
            re.match(r"  (-\S+)(?: (\S+))? (.*)$", line)
        if entry:
            name, value, text = entry.groups()
            yield f".TP\n.B {roff(name)}" + (f" \\fI{roff(value)}\\fR" if value else "")
            yield roff(text or "")
        elif line.startswith("   "):
            yield roff(line.strip())
        else:
            sys.exit(f"gen_man.py: an option reads \"{line}\", expected \"  --name VALUE  help\"")


def sections(text):
    """The help of a verb as {title: lines}; what comes before the first title is under ''."""
    found, title = {"": []}, ""
    for line in text.split("\n"):
        if line and not line.startswith(" ") and line.islower() and ":" not in line and title is not None \
                and line in ("options", "common options", "examples"):
            title = line
            found[title] = []
        elif line:
            found[title].append(line)
    return found


def main():
    nori, out = sys.argv[1:]
    version = said(nori, "--version").split()[1]
    overview = said(nori, "help")
    verbs = dict(re.findall(r"^  (\S+) {2,}(\S.*)$", overview, re.M))
    completed = re.search(r'COMP_CWORD" = 1.*?compgen -W "([^"]*)"', said(nori, "completion", "bash"), re.S)
    listed = completed.group(1).split() if completed else []
    if not listed or set(listed) - set(verbs):
        sys.exit(f"gen_man.py: the help lists {sorted(verbs)}, the completion {sorted(listed)}")
    summary = re.match(r"nori \S+: (.*)", overview).group(1)
    page = [f'.TH NORI 1 "" "nori {version}" "User Commands"', ".SH NAME", f"nori \\- {roff(summary)}",
            ".SH SYNOPSIS", ".B nori", "\\fIVERB\\fR [\\fIARGUMENT\\fR ...] [\\fI\\-\\-option\\fR ...]",
            ".SH VERBS"]
    common = []
    for verb in listed:
        text = sections(said(nori, verb, "--help"))
        usage, about = text[""][0], text[""][1:]
        page += [f".SS {verb}", f".B {roff(usage.removeprefix('usage: '))}", ".PP"]
        page += [roff(line.strip()) for line in about]
        page += list(options(text.get("options", [])))
        if "examples" in text:
            page += [".PP", "Examples:", ".PP", ".nf", ".RS 4", *map(roff, map(str.strip, text["examples"])),
                     ".RE", ".fi"]
        for line in text.get("common options", []):
            if line not in common:
                common.append(line)
    page += [".SH COMMON OPTIONS", *options(common)]
    tail = overview[overview.rindex("\n\n"):].strip().split("\n")
    codes = next((line for line in tail if line.startswith("exit codes: ")), None)
    if not codes:
        sys.exit("gen_man.py: `nori help` does not end in a line \"exit codes: ...\"")
    page.append(".SH EXIT STATUS")
    for code, meaning in re.findall(r"(\d+) ([^,]+)", codes):
        page += [".TP", f".B {code}", roff(meaning)]
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(line for line in page if line) + "\n")


main()
