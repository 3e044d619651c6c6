#!/usr/bin/env python3
"""Verbs, options, help, completion, colour: what the command says about itself."""
import os
import pty
import re
import subprocess

import case
import model_file as m

VERBS = re.findall(r"^  (\w+)  ", subprocess.run([case.NORI, "help"], stdout=subprocess.PIPE,
                                                  check=True).stdout.decode(), re.M)
DIGITS_MODEL = os.path.join(case.DIGITS, "digits.onnx")


class Words(case.Case):
    def options(self, verb):
        text = self.nori(verb, "--help").out
        part = text.split("\noptions\n")[1].split("\nexamples\n")[0]
        return re.findall(r"^  (--[a-z-]+)", part, re.M)

    def test_overview_and_help_name_every_verb(self):
        out = self.nori("help").out
        for verb in ("inspect", "check", "caps", "doctor", "run", "bench", "help", "completion"):
            self.assertIn(verb, VERBS)
        self.assertEqual(out, self.nori("--help").out)
        for verb in VERBS:
            own = self.nori(verb, "--help").out
            self.assertEqual(own, self.nori("help", verb).out)
            self.assertEqual(own, self.nori(verb, "-h").out)
            self.assertTrue(own.startswith("usage: nori " + verb))
            self.assertIn("--help", self.options(verb))
            self.assertLessEqual(max(map(len, own.split("\n"))), 110)

    def test_no_verb_is_usage(self):
        r = self.nori(code=2)
        self.assertEqual(r.out, "")
        self.assertIn("usage: nori", r.err)

    def test_near_words(self):
        self.assertIn("did you mean inspect?", self.nori("inspekt", code=2).err)
        self.assertNotIn("did you mean", self.nori("xyzzy", code=2).err)
        self.assertIn("did you mean --threads?", self.nori("run", "--thread", "2", code=2).err)
        self.assertIn("did you mean --profile?", self.nori("bench", "--pofile", code=2).err)
        self.assertIn("did you mean bench?", self.nori("help", "banch", code=2).err)

    def test_words_that_are_not_near(self):
        self.assertNotIn("did you mean", self.nori("run", "--frob", code=2).err)
        self.assertIn("one of `nori check`", self.nori("run", "--target", "cpu", code=2).err)
        self.assertIn("where a verb was expected", self.nori("--json", code=2).err)
        long = self.nori("run", "--" + "x" * 9000, code=2).err
        self.assertLess(len(long), 400)

    def test_empty_words_are_refused(self):
        for args in (("run", ""), ("run", DIGITS_MODEL, ""), ("run", DIGITS_MODEL, "--labels", ""),
                     ("run", DIGITS_MODEL, "--labels="), ("check", DIGITS_MODEL, "--target", ""),
                     ("quant", "")):
            self.assertIn("empty", self.nori(*args, code=2).err)

    def test_a_header_has_rows(self):
        self.assertEqual(self.nori("caps", "--op", "Nonesuch", code=1).out, "")
        self.assertIn("did you mean Conv?", self.nori("caps", "--op", "Cnv", code=1).err)
        self.assertEqual(self.nori("caps", "--op", "Conv").out.count("provider"), 1)

    def test_options_that_mean_nothing_are_refused(self):
        for verb in ("caps", "doctor", "check", "inspect"):
            r = self.nori(verb, "--threads", "2", code=2)
            self.assertIn("unknown option --threads", r.err)
        for args in (("--atol", "1"), ("--rtol", "1"), ("--rms", "1")):
            self.assertIn("--test-data", self.nori("run", DIGITS_MODEL, *args, code=2).err)
        data = os.path.join(case.DIGITS, "test_data_set_0")
        for args in (("--top", "1"), ("--seed", "1"), ("--shape", "1"), ("--input", "x.npy"),
                     ("--labels", "x.txt"), ("--bgr",)):
            r = self.nori("run", DIGITS_MODEL, "--test-data", data, *args, code=2)
            self.assertIn(args[0], r.err)
        self.nori("run", DIGITS_MODEL, "--test-data", data, "--atol", "1,1", code=2)
        self.nori("run", DIGITS_MODEL, "--shape", "other=1,1,28,28", code=2)
        twice = self.nori("run", DIGITS_MODEL, "--dim", "batch=2", "--dim", "batch=3", code=2)
        self.assertIn("given before", twice.err)
        self.nori("inspect", DIGITS_MODEL, "--providers", "cpu", "--provider", "cpu", code=2)
        self.nori("run", DIGITS_MODEL, "--shape", "1,1,28,28,", code=2)
        self.nori("doctor", "--dim", "n=1", code=2)
        self.nori("run", "--quiet=1", code=2)
        self.nori("run", "x.onnx", "--threads", code=2)
        self.nori("run", DIGITS_MODEL, "--threads", "0", code=2)
        self.nori("run", DIGITS_MODEL, "--memory", "much", code=2)
        self.nori("caps", "Conv", code=2)
        self.nori("doctor", "here", code=2)

    def test_completion_in_bash(self):
        script = self.nori("completion", "bash").out
        self.file("complete.sh", script)
        want = {"inspect": self.options("inspect")}
        for verb in VERBS:
            want[verb] = self.options(verb)
        ask = 'COMP_WORDS=(nori %s "%s"); COMP_CWORD=%d; _nori; echo "${COMPREPLY[@]}"\n'
        lines = "set -eu; . %s\n" % self.path("complete.sh") + ask % ("", "", 1)
        lines = lines.replace('nori  ""', 'nori ""')
        lines += 'COMP_WORDS=(nori in); COMP_CWORD=1; _nori; echo "${COMPREPLY[@]}"\n'
        with_options = [v for v in VERBS if v not in ("help", "completion")]
        for verb in with_options:
            lines += ask % (verb, "--", 2)
        r = subprocess.run(["bash", "-c", lines], stdout=subprocess.PIPE, check=True)
        got = r.stdout.decode().split("\n")
        self.assertEqual(got[0].split(), VERBS + ["--help", "--version"])
        self.assertEqual(got[1], "inspect")
        for verb, line in zip(with_options, got[2:]):
            self.assertEqual(line.split(), want[verb], verb)
        self.nori("completion", "fish", code=2)

    def test_completion_of_files(self):
        self.file("two words.npy", "")
        self.file("complete.sh", self.nori("completion", "bash").out)
        line = ('set -eu; . ./complete.sh; COMP_WORDS=(nori run "two"); COMP_CWORD=2; _nori; '
                'printf "%s|" "${COMPREPLY[@]}"')
        r = subprocess.run(["bash", "-c", line], stdout=subprocess.PIPE, check=True,
                           cwd=self.folder.name)
        self.assertEqual(r.stdout.decode(), "two words.npy|")

    def terminal(self, *args, **env):
        """What the command prints on a terminal."""
        pid, fd = pty.fork()
        if pid == 0:
            os.environ.update(env)
            os.execv(case.NORI, [case.NORI, *args])
        out = b""
        while True:
            try:
                piece = os.read(fd, 4096)
            except OSError:
                break
            if not piece:
                break
            out += piece
        os.close(fd)
        os.waitpid(pid, 0)
        return out

    def test_colour_on_terminals_only(self):
        os.environ.pop("NO_COLOR", None)
        path = self.file("bad.onnx", m.model(m.Graph(
            [m.node("Nonesuch", ["x"], ["y"])], [m.value("x", m.tensor_type(m.FLOAT, [1]))],
            [m.value("y", m.tensor_type(m.FLOAT, [1]))])))
        self.assertNotIn("\033", self.nori("check", path, code=1).out)
        self.assertIn(b"\033[31m", self.terminal("check", path))
        self.assertNotIn(b"\033", self.terminal("check", path, NO_COLOR="1"))
        self.assertIn(b"\033[1m", self.terminal("help"))

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            r = subprocess.run([case.NORI, "caps"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(r.returncode, 3)
        self.assertIn(b"could not be written", r.stderr)

    def test_option_of_this_verb_before_one_of_another(self):
        self.assertIn("did you mean --provider?", self.nori("run", "--providers", "cpu", code=2).err)

    def test_what_is_read_is_not_written_over(self):
        with open(DIGITS_MODEL, "rb") as f:
            bytes_before = f.read()
        model = self.file("m.onnx", bytes_before)
        os.symlink(model, self.path("link.onnx"))
        calls = [("quantize", model, "--random", "1", "--output", model),
                 ("quantize", model, "--random", "1", "--output", self.path("link.onnx")),
                 ("prune", model, "--output", model), ("validate", model, "--html", model),
                 ("validate", model, "--against", model, "--html", self.path("link.onnx")),
                 ("bench", model, "--trace", model), ("place", model, "--edge", "5ms", "--cloud",
                                                      "1ms", "--header", model)]
        for args in calls:
            self.assertIn("would write over", self.nori(*args, code=2).err)
            with open(model, "rb") as f:
                self.assertEqual(f.read(), bytes_before)
        data = self.path("x.npy")
        self.nori("run", model, "--output", data)
        r = self.nori("run", model, "--input", data, "--output", "logits=" + data, code=2)
        self.assertIn("would write over what --input reads", r.err)

    def test_targets_are_looked_at_before_the_work(self):
        out = self.path("q.onnx")
        for html, code in ((self.path("absent/q.html"), 3), (self.folder.name, 3), (out, 2)):
            self.nori("quantize", DIGITS_MODEL, "--random", "2", "--output", out, "--html", html,
                      code=code)
            self.assertFalse(os.path.exists(out))

    def test_ranges_merge_into_one_of_theirs(self):
        ranges = self.path("a.ncal")
        self.nori("calibrate", DIGITS_MODEL, "--random", "1", "--output", ranges)
        self.nori("calibrate", "--merge", ranges, "--output", ranges)

    def test_json_of_odd_names(self):
        odd = 'a"b\\c\n\x01\u00e9\u4e16\U0001f600'
        bad = odd.encode() + b"\xff\xc0\x80\xed\xa0\x80"
        graph = m.Graph([m.node("Relu", [odd], ["y"], name=odd)],
                        [m.value(odd, m.tensor_type(m.FLOAT, [odd, 2]))],
                        [m.value("y", m.tensor_type(m.FLOAT, [odd, 2]))])
        path = self.file("odd.onnx", m.model(graph, metadata=[(bad, bad)]))
        got = self.nori("inspect", path, "--json").json()
        self.assertEqual(got["inputs"][0]["name"], odd)
        self.assertEqual(got["inputs"][0]["shape"], [odd, 2])
        self.assertEqual(self.nori("run", path, "--json").json()["outputs"][0]["name"], "y")
        self.nori("check", path, "--json").json()
        self.nori("doctor", "--json").json()
        self.nori("caps", "--json").json()
        r = self.nori("check", self.path("absent.onnx"), "--json", code=3)
        self.assertIn("message", r.json()["error"])


if __name__ == "__main__":
    case.main()
