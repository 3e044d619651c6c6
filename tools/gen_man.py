#!/usr/bin/env python3
"""Writes the manual page nori(1) from what the command says of itself: gen_man.py OUT NORI
(NORI may be several words: an emulator and the command).

The text of `nori help` and `nori VERB --help` is the only source, so page and command cannot differ.
A help that reads otherwise than expected ends the build instead of dropping something."""
import collections
import re
import subprocess
import sys

COMMON = 3  # an option that reads the same in this many verbs is explained once, for all of them


def said(nori, *arguments):
    return subprocess.run([*nori, *arguments], check=True, capture_output=True, text=True).stdout


def roff(text):
    """Escapes text; a period or quote at the start of a line would be a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return "\\&" + text if text.startswith(".") else text


def sections(text):
    """The help of a verb as {title: lines}. A title stands between a blank line and an indented one;
    what comes before the first is under ''."""
    found, title = {"": []}, ""
    lines = ["", *text.rstrip("\n").split("\n"), ""]
    for before, line, after in zip(lines, lines[1:], lines[2:]):
        if line and not line.startswith(" ") and not before and after.startswith("  "):
            title = line
            found[title] = []
        elif line:
            found[title].append(line)
    return found


def options(lines):
    """'  --name VALUE  help' as (name, value, help); lines indented further go on with the help."""
    found = []
    for line in lines:
        entry = re.match(r"  (-\S+)(?: (\S+))?(?: {2,}(.*))?$", line) or re.match(r"  (-\S+) (\S+) (.*)$", line)
        if entry:
            found.append(tuple(part or "" for part in entry.groups()))
        elif found and line.startswith("   "):
            name, value, text = found[-1]
            found[-1] = (name, value, f"{text} {line.strip()}")
        else:
            sys.exit(f"gen_man.py: an option reads \"{line}\", expected \"  --name VALUE  help\"")
    return found


def paragraphs(entries):
    for name, value, text in entries:
        yield f".TP\n\\fB{roff(name)}\\fR" + (f" \\fI{roff(value)}\\fR" if value else "")
        yield roff(text)


def verb_page(verb, text, common):
    usage, *about = text[""]
    yield f".SS {verb}"
    yield f".B {roff(usage.removeprefix('usage: '))}"
    yield ".PP"
    yield from (roff(line.strip()) for line in about)
    for title, lines in text.items():
        if title == "examples":
            yield from (".PP", "Examples:", ".PP", ".nf", ".RS 4")
            yield from (roff(line[2:]) for line in lines)
            yield from (".RE", ".fi")
        elif "options" in title:
            mine = options(lines)
            yield from paragraphs(entry for entry in mine if entry not in common)
            shared = [f"\\fB{roff(entry[0])}\\fR" for entry in mine if entry in common]
            if shared:
                yield from (".PP", "Common options: " + ", ".join(shared) + ".")
        elif title:
            yield from (".PP", roff(title.rstrip(":")) + ":", ".PP", ".nf", ".RS 4")
            yield from (roff(line.strip()) for line in lines)
            yield from (".RE", ".fi")


def main():
    out, *nori = sys.argv[1:]
    version = said(nori, "--version").split()[1]
    overview = said(nori, "help")
    verbs = re.findall(r"^  (\S+) {2,}\S.*$", overview, re.M)
    summary = re.match(r"nori \S+: (.*)", overview)
    codes = re.search(r"^exit codes: (.*)$", overview, re.M)
    if not verbs or not summary or not codes:
        sys.exit("gen_man.py: `nori help` reads otherwise than expected: \"nori VERSION: what it is\", "
                 "\"  verb  what it does\", \"exit codes: 0 yes, ...\"")
    helps = {verb: sections(said(nori, verb, "--help")) for verb in verbs}
    count = collections.Counter(entry for text in helps.values() for title, lines in text.items()
                                if "options" in title for entry in options(lines))
    common = [entry for entry, n in count.items() if n >= COMMON]
    page = [f'.TH NORI 1 "" "nori {version}" "User Commands"', ".SH NAME",
            f"nori \\- {roff(summary.group(1))}", ".SH SYNOPSIS",
            ".B nori", "\\fIVERB\\fR [\\fIARGUMENT\\fR ...] [\\fI\\-\\-option\\fR ...]", ".SH VERBS"]
    for verb, text in helps.items():
        page += verb_page(verb, text, common)
    page += [".SH COMMON OPTIONS", *paragraphs(common), ".SH EXIT STATUS"]
    for code, meaning in re.findall(r"(\d+) ([^,]+)", codes.group(1)):
        page += [".TP", f".B {code}", roff(meaning)]
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(line for line in page if line) + "\n")


main()
