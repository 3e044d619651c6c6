#!/usr/bin/env python3
"""campaign.py: runs fuzz targets one after another and says what came of it. Hours add up: corpora stay in
build/fuzz-corpus/TARGET, and TARGET.json beside them counts executions and processor
seconds since the last finding.

    campaign.py [--seconds N] [--rounds N] [--engine libfuzzer|afl] [TARGET ...]
    campaign.py --table                     the table of what was run so far, nothing else

A finding is put into build/fuzz-corpus/found/TARGET, with the report in TARGET.log; exit code 1."""
import argparse
import base64
import json
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENGINES = ("libfuzzer", "afl")
PRESET = {"libfuzzer": "fuzz", "afl": "afl"}
LARGEST = 65536
SLOW = 10  # processor seconds
SHOWN = 3000  # bytes of a finding that are printed


class Record:
    """What was run of one target, kept in a file. A finding sets what is counted `clean` back to nothing."""

    def __init__(self, corpus, target):
        self.path = os.path.join(corpus, target + ".json")
        self.of = {"target": target, "executions": 0, "seconds": 0, "findings": 0, "clean_executions": 0,
                   "clean_seconds": 0, "clean_since": "", "commit": "", "coverage": 0, "corpus": 0}
        if os.path.exists(self.path):
            with open(self.path) as f:
                self.of.update(json.load(f))

    def add(self, executions, seconds, findings, coverage, corpus, commit):
        r = self.of
        r["executions"] += executions
        r["seconds"] += seconds
        r["findings"] += findings
        if findings or not r["clean_since"]:
            r["clean_executions"], r["clean_seconds"], r["clean_since"] = 0, 0, commit
        if not findings:
            r["clean_executions"] += executions
            r["clean_seconds"] += seconds
        r["commit"], r["corpus"] = commit, corpus
        r["coverage"] = max(coverage, r["coverage"])
        with open(self.path + ".new", "w") as f:
            json.dump(r, f, indent=1)
        os.replace(self.path + ".new", self.path)


def commit():
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    return done.stdout.decode().strip() or "unknown"


def files(folder):
    return len(os.listdir(folder)) if os.path.isdir(folder) else 0


def number(pattern, text, which=-1):
    found = re.findall(pattern, text)
    return int(found[which]) if found else 0


def environment():
    e = dict(os.environ)
    e["ASAN_OPTIONS"] = e.get("ASAN_OPTIONS", "allocator_may_return_null=1")
    e["UBSAN_OPTIONS"] = e.get("UBSAN_OPTIONS", "print_stacktrace=1")
    return e


def build(engine, targets, nori_too):
    """Builds what is asked for and returns all targets there are, in the list's order."""
    where = os.path.join(ROOT, "build", PRESET[engine])
    subprocess.run(["cmake", "--preset", PRESET[engine]], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", where, "--quiet", "nori-fuzz"] + (["nori"] if nori_too else []), check=True)
    listed = subprocess.run([where + "/fuzz/nori-fuzz", "--list"], check=True, stdout=subprocess.PIPE,
                            env=environment())
    known = [line.split("\t")[0] for line in listed.stdout.decode().splitlines()]
    for t in targets:
        if t not in known:
            sys.exit("no target %s; there are: %s" % (t, " ".join(known)))
    if engine == "libfuzzer":
        subprocess.run(["ninja", "-C", where, "--quiet"] + ["fuzz_" + t for t in targets or known], check=True)
    return targets or known


def spent():
    """Processor seconds of what was started and waited for: on a machine that is shared, an hour by the clock
    says little."""
    t = os.times()
    return t.children_user + t.children_system


class LibFuzzer:
    def __init__(self, corpus, seed):
        self.corpus, self.where, self.seed = corpus, os.path.join(ROOT, "build/fuzz/fuzz/fuzz_"), seed

    def run(self, target, seconds, seeds):
        """One run: executions, edges known before and after, findings, size of the corpus."""
        kept, found = os.path.join(self.corpus, target), os.path.join(self.corpus, "found", target)
        os.makedirs(kept, exist_ok=True)
        os.makedirs(found, exist_ok=True)
        os.makedirs(os.path.join(seeds, target), exist_ok=True)  # a target may have none
        before = set(os.listdir(found))
        log = found + ".log"
        with open(log, "w") as f:
            p = subprocess.Popen(
                [self.where + target, "-max_total_time=%d" % seconds, "-timeout=25", "-rss_limit_mb=2560",
                 "-max_len=%d" % LARGEST, "-print_final_stats=1", "-seed=%d" % self.seed,
                 "-dict=%s/fuzz.dict" % seeds,
                 "-artifact_prefix=%s/" % found, kept, os.path.join(seeds, target)],
                stdout=f, stderr=subprocess.STDOUT, env=environment())
            wait(p, seconds)
        with open(log, errors="replace") as f:
            text = f.read()
        runs = number(r"stat::number_of_executed_units:\s*(\d+)", text)
        first, last = number(r"\bINITED\s+cov: (\d+)", text), number(r"\bcov: (\d+)", text)
        busy = self.busy(target, found)
        new = sorted(set(os.listdir(found)) - before)
        if new or (p.returncode and not busy):
            self.show_finding(target, text, [os.path.join(found, n) for n in new])
        broke = len(new)
        return runs, first, last, max(broke, 1 if p.returncode and not busy else 0), files(kept)

    @staticmethod
    def show_finding(target, text, paths):
        """What is needed to see it again, where only this output is left."""
        said = [line for line in text.splitlines() if re.search(r"ERROR|runtime error|SUMMARY|^\s+#\d+ ", line)]
        print("%s: %s" % (target, "\n    ".join(said[:12])))
        for path in paths:
            size = os.path.getsize(path)
            print("%s (%d bytes)%s" % (path, size, " as base64:" if size <= SHOWN else ""))
            if size <= SHOWN:
                with open(path, "rb") as f:
                    print(base64.b64encode(f.read()).decode())
        sys.stdout.flush()

    def busy(self, target, found):
        """Inputs that were slow by the clock alone, on a machine with other work, are no findings. How many."""
        n = 0
        for name in os.listdir(found):
            path = os.path.join(found, name)
            if name.startswith(("slow-unit-", "timeout-")):
                before = spent()
                p = subprocess.Popen([self.where + target, "-timeout=600", path], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, env=environment())
                wait(p, 600)
                if p.returncode == 0 and spent() - before < SLOW:
                    os.remove(path)
                    n += 1
        return n


class Afl:
    """afl-fuzz over nori-fuzz in its persistent loop; found/TARGET.afl and the corpus beside libFuzzer's."""

    def __init__(self, corpus):
        self.corpus, self.program = corpus, os.path.join(ROOT, "build/afl/fuzz/nori-fuzz")

    def run(self, target, seconds, seeds):
        out = os.path.join(self.corpus, "afl", target)
        os.makedirs(out, exist_ok=True)
        was = self.stats(out)
        again = os.path.exists(os.path.join(out, "default", "fuzzer_stats"))
        e = dict(environment(), AFL_NO_UI="1", AFL_SKIP_CPUFREQ="1", AFL_NO_AFFINITY="1",
                 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES="1", AFL_TESTCACHE_SIZE="50")
        e["ASAN_OPTIONS"] = "abort_on_error=1:symbolize=0:detect_leaks=0:allocator_may_return_null=1"
        e["UBSAN_OPTIONS"] = "abort_on_error=1:symbolize=0:halt_on_error=1"
        os.makedirs(os.path.join(self.corpus, "found"), exist_ok=True)
        with open(os.path.join(self.corpus, "found", target + ".afl.log"), "w") as f:
            p = subprocess.Popen(["afl-fuzz", "-i", "-" if again else os.path.join(seeds, target), "-o", out, "-m",
                                  "none", "-t", "5000+", "-V", str(seconds), "-x", seeds + "/fuzz.dict", "--",
                                  self.program, target, "@@"], stdout=f, stderr=subprocess.STDOUT, env=e)
            wait(p, seconds)
        now = self.stats(out)
        if not now:
            sys.exit("afl-fuzz did not run: see %s" % f.name)
        broke = now.get("saved_crashes", 0) - was.get("saved_crashes", 0)
        # AFL counts executions of this run only, and edges over all.
        return (now.get("execs_done", 0), was.get("edges_found", 0), now.get("edges_found", 0), max(broke, 0),
                now.get("corpus_count", 0))

    @staticmethod
    def stats(out):
        path = os.path.join(out, "default", "fuzzer_stats")
        if not os.path.exists(path):
            return {}
        with open(path) as f:
            return {k.strip(): int(v) for k, v in (line.split(":", 1) for line in f if ":" in line)
                    if v.strip().isdigit()}


def wait(process, seconds):
    """Until it ends, or long after it should have."""
    try:
        process.wait(timeout=seconds + 300)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise


def table(corpus):
    rows = [("target", "executions", "seconds", "edges", "findings", "clean executions", "clean seconds", "since",
             "commit", "corpus")]
    for name in sorted(os.listdir(corpus)) if os.path.isdir(corpus) else []:
        if name.endswith(".json"):
            r = Record(corpus, name[:-5]).of
            rows.append(tuple(str(r[k]) for k in ("target", "executions", "seconds", "coverage", "findings",
                                                  "clean_executions", "clean_seconds", "clean_since", "commit",
                                                  "corpus")))
    show(rows)


def show(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--seconds", type=int, default=60, help="of each target in a round")
    p.add_argument("--rounds", type=int, default=1, help="0: until stopped")
    p.add_argument("--engine", choices=ENGINES, default="libfuzzer")
    p.add_argument("--seed", type=int, default=0, help="of libFuzzer's changes; 0: another one each time")
    p.add_argument("--corpus", default=os.path.join(ROOT, "build", "fuzz-corpus"))
    p.add_argument("--no-build", action="store_true", help="what is built already is run")
    p.add_argument("--table", action="store_true", help="only what was run so far")
    p.add_argument("targets", nargs="*", metavar="TARGET")
    args = p.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    if args.table:
        table(args.corpus)
        return 0
    os.makedirs(args.corpus, exist_ok=True)
    where = os.path.join(ROOT, "build", PRESET[args.engine])
    seeds = os.path.join(args.corpus, "seeds")
    if args.no_build:
        listed = subprocess.run([where + "/fuzz/nori-fuzz", "--list"], check=True, stdout=subprocess.PIPE)
        targets = args.targets or [line.split("\t")[0] for line in listed.stdout.decode().splitlines()]
    else:
        targets = build(args.engine, args.targets, True)
    if not args.no_build or not os.path.exists(os.path.join(seeds, "fuzz.dict")):  # what is made last
        subprocess.run([sys.executable, os.path.join(ROOT, "fuzz/make_seeds.py"), "--nori", where + "/nori",
                        "--shared", os.path.join(ROOT, "..", "shared"), seeds], check=True,
                       stdout=subprocess.DEVNULL, env=dict(environment(), ASAN_OPTIONS="detect_leaks=0"))
    engine = LibFuzzer(args.corpus, args.seed) if args.engine == "libfuzzer" else Afl(args.corpus)
    total, done = 0, 0
    try:
        while args.rounds == 0 or done < args.rounds:
            rows = [("target", "executions", "new edges", "findings", "corpus", "clean seconds")]
            for t in targets:
                start, start_spent = time.monotonic(), spent()
                runs, first, last, broke, kept = engine.run(t, args.seconds, seeds)
                record = Record(args.corpus, t if args.engine == "libfuzzer" else t + ".afl")
                seconds = min(time.monotonic() - start, spent() - start_spent)
                record.add(runs, round(seconds), broke, last, kept, commit())
                total += broke
                rows.append((t, str(runs), str(max(last - first, 0)), str(broke), str(kept),
                             str(record.of["clean_seconds"])))
                if sys.stdout.isatty() or broke:
                    print("%s: %d executions, %d findings" % (t, runs, broke), flush=True)
            show(rows)
            sys.stdout.flush()
            done += 1
    except KeyboardInterrupt:
        print("stopped")
    if total:
        print("findings: see %s" % os.path.join(args.corpus, "found"))
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
