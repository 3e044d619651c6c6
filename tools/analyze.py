#!/usr/bin/env python3
"""analyze.py [--tools gcc,tidy,cppcheck] [FILE...]: static analysis of src/ and cli/.

Runs gcc -fanalyzer, clang-tidy (checks: .clang-tidy) and cppcheck on each source, and prints what they
find. A file is looked at again only when it, a header of this tree that it includes, or a setting has
changed: what was found is kept in build/analyze. Findings that were judged and are none stand in
tools/analyze_known.txt, each with its reason; a row there that matches nothing is a finding, too.
Exit status: 0 nothing found, 1 something, 2 a tool or the build folder is missing.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "build", "analyze")
DATABASE = os.path.join(FOLDER, "commands")
MODELS = [os.path.join(ROOT, "tools", name) for name in ("analyze_model.h", "analyze_model_cli.h")]
DEFINE_MODEL = ("src/base/status.c", "cli/common/common.c")  # what the models wrap
KNOWN = os.path.join(ROOT, "tools", "analyze_known.txt")
FOUND = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:warning|error|style|performance|portability)"
                   r": (?P<text>.*) \[(?P<check>[^\]]+)\]$", re.M)
CPPCHECK = ["cppcheck", "--enable=warning,portability", "--std=c11", "--quiet", "--inline-suppr",
            "--template={file}:{line}: {severity}: {message} [{id}]", "--suppress=missingIncludeSystem",
            "--suppress=internalAstError", "--suppress=normalCheckLevelMaxBranches"]
SECONDS = 900  # for one file
PROGRAMS = {"gcc": "gcc", "tidy": "clang-tidy", "cppcheck": "cppcheck"}


def commands():
    """The command of each source of src/ and cli/, as CMake says it, without NDEBUG: what is asserted is
    known to the tools."""
    os.makedirs(FOLDER, exist_ok=True)
    done = subprocess.run(["cmake", "-S", ROOT, "-B", FOLDER, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None",
                           "-DCMAKE_C_FLAGS=-O1 -g0", "-DNORI_TESTS=OFF", "-DCMAKE_C_COMPILER=gcc",
                           "-DCMAKE_C_COMPILER_LAUNCHER=", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    found = {}
    with open(os.path.join(FOLDER, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            name = os.path.relpath(entry["file"], ROOT)
            if name.startswith(("src/", "cli/")) and name not in found:
                words = shlex.split(entry["command"])
                out = words.index("-o")
                words = words[:out] + words[out + 2:]
                model = MODELS[name.startswith("cli/")]
                inside = {f"-I{ROOT}/src", f"-I{ROOT}/include"} <= set(words)
                if name not in DEFINE_MODEL and (model is MODELS[1] or inside):
                    words[1:1] = ["-include", model]
                found[name] = words
    os.makedirs(DATABASE, exist_ok=True)
    with open(os.path.join(DATABASE, "compile_commands.json"), "w", encoding="utf-8") as file:
        json.dump([{"directory": FOLDER, "file": os.path.join(ROOT, name), "arguments": words}
                   for name, words in found.items()], file)
    return found


def key_of(tool, name, command, settings):
    """What a finding depends on: tool, settings, command, the file, and the headers of this tree."""
    made = subprocess.run(command[:1] + ["-MM"] + [w for w in command[1:] if w != "-c"],
                          capture_output=True, text=True, cwd=FOLDER)
    digest = hashlib.sha256((tool + settings + " ".join(command)).encode())
    for path in sorted(set(made.stdout.replace("\\\n", " ").split()[1:])):
        with open(path, "rb") as file:
            digest.update(path.encode() + file.read())
    return digest.hexdigest()[:32]


def look(tool, name, command):
    """Runs one tool on one file: a list of (file, line, check, text)."""
    path = os.path.join(ROOT, name)
    if tool == "gcc":
        words = command + ["-fanalyzer", "-fdiagnostics-plain-output", "-fdiagnostics-path-format=none",
                           "-Wno-error", "-o", os.devnull]
    elif tool == "tidy":
        words = ["clang-tidy", "-p", DATABASE, "--quiet", path]
    else:
        flags = [w for w in command if w.startswith(("-D", "-I"))]
        flags += [f"--include={m}" for m in MODELS if m in command]
        words = CPPCHECK + flags + [path]
    # By the processor's clock: a busy machine is no reason to give up.
    done = subprocess.run(words, capture_output=True, text=True, cwd=FOLDER,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)))
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return [(name, 0, "timeout", f"{tool} did not end within {SECONDS} seconds of processor time")]
    out = done.stdout + done.stderr
    found = [(os.path.relpath(os.path.join(FOLDER, m["file"]), ROOT), int(m["line"]), m["check"], m["text"])
             for m in FOUND.finditer(out)]
    if done.returncode and not found:
        found.append((name, 0, "failed", f"{tool} ended with {done.returncode}: {out[-400:]}"))
    return sorted(set(found))


def kept_or_new(tool, name, command, settings):
    kept = os.path.join(FOLDER, "kept", f"{name.replace('/', '_')}.{tool}.json")
    key = key_of(tool, name, command, settings)
    try:
        with open(kept, encoding="utf-8") as file:
            stored = json.load(file)
        if stored["key"] == key:
            return [tuple(f) for f in stored["found"]], False
    except (OSError, ValueError, KeyError):
        pass
    found = look(tool, name, command)
    with open(kept, "w", encoding="utf-8") as file:
        json.dump({"key": key, "found": found}, file)
    return found, True


def known_rows():
    """Rows `file | check | text of the line | reason`; lines that begin with # are comments."""
    rows = []
    try:
        with open(KNOWN, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not line.startswith("#"):
                    row = [part.strip() for part in line.split(" | ")]
                    if len(row) != 4 or not all(row):
                        sys.exit(f"{KNOWN}:{number}: expected file | check | text of the line | reason")
                    rows.append(row)
    except FileNotFoundError:
        pass
    return rows


def tool_of(check):
    return "gcc" if check.startswith("-W") else "tidy" if "-" in check else "cppcheck"


def source_line(name, line):
    try:
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            return file.read().split("\n")[line - 1]
    except (OSError, IndexError):
        return ""


def main():
    ask = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ask.add_argument("files", nargs="*", help="sources; default: all of src/ and cli/")
    ask.add_argument("--tools", default="gcc,cppcheck", help="of gcc, tidy, cppcheck")
    ask.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = ask.parse_args()
    tools = asked.tools.split(",")
    for tool in tools:
        if tool not in PROGRAMS:
            sys.exit(f"there is no tool {tool}: expected {', '.join(PROGRAMS)}")
        if not shutil.which(PROGRAMS[tool]):
            print(f"{PROGRAMS[tool]} is missing: apt-get install {PROGRAMS[tool]}", file=sys.stderr)
            return 2
    every = commands()
    os.makedirs(os.path.join(FOLDER, "kept"), exist_ok=True)
    names = sorted(os.path.relpath(os.path.abspath(f), ROOT) for f in asked.files) or sorted(every)
    for name in names:
        if name not in every:
            sys.exit(f"{name} is no source of src/ or cli/ that this machine builds")
    with open(os.path.join(ROOT, ".clang-tidy"), encoding="utf-8") as file:
        settings = {"tidy": file.read(), "cppcheck": " ".join(CPPCHECK), "gcc": ""}
    rows, used, seen, left = known_rows(), set(), set(), 0
    for tool in tools:
        start, looked, judged = time.monotonic(), 0, 0
        count = 0
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            for found, new in pool.map(lambda n: kept_or_new(tool, n, every[n], settings[tool]), names):
                looked += new
                for file, line, check, text in found:
                    if (file, line, check, text) in seen:
                        continue
                    seen.add((file, line, check, text))
                    here = source_line(file, line)
                    match = [i for i, r in enumerate(rows) if r[0] == file and r[1] == check and r[2] in here]
                    used.update(match)
                    judged += bool(match)
                    if not match:
                        count += 1
                        print(f"{file}:{line}: {text} [{check}]\n    {here.strip()}", flush=True)
        left += count
        print(f"{PROGRAMS[tool] + (' -fanalyzer' if tool == 'gcc' else '')}: {count} found in {len(names)} "
              f"files ({looked} looked at now, {time.monotonic() - start:.0f} s), {judged} known to be none",
              flush=True)
    if not asked.files:
        for i, row in enumerate(rows):
            if i not in used and tool_of(row[1]) in tools:
                left += 1
                print(f"tools/analyze_known.txt: nothing is found any more for {' | '.join(row[:3])}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
