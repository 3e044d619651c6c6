#!/usr/bin/env python3
"""--limit: what a model may cost, on the command line; every verb that loads a model takes it."""
import re
import unittest

import case
import model_file as m


def endless():
    body = m.Graph([m.node("Identity", ["c"], ["c2"]), m.node("Neg", ["a"], ["a2"])],
                   [m.value("i", m.tensor_type(m.INT64, [])), m.value("c", m.tensor_type(m.BOOL, [])),
                    m.value("a", m.tensor_type(m.FLOAT, [2]))],
                   [m.value("c2", m.tensor_type(m.BOOL, [])), m.value("a2", m.tensor_type(m.FLOAT, [2]))],
                   name="body")
    return m.model(m.Graph([m.node("Loop", ["", "", "x"], ["y"], name="forever", body=body)],
                           [m.value("x", m.tensor_type(m.FLOAT, [2]))],
                           [m.value("y", m.tensor_type(m.FLOAT, [2]))]))


class Limits(case.Case):
    def test_a_loop_without_end_is_stopped(self):
        path = self.file("m.onnx", endless())
        r = self.nori("run", path, "--limit", "iterations=1000", code=4)
        self.assertIn("1001 found, the limit is 1000 (iterations)", r.err)
        self.assertIn("forever", r.err)
        r = self.nori("run", path, "--limit", "time=50ms", "--limit=iterations=none", code=4)
        self.assertIn("the limit is 50 (run_ms)", r.err)
        self.assertIn("--limit time=N", r.err)
        for given, ms in (("0.001ms", 1), ("0.02s", 20), ("20.5ms", 21), ("30000us", 30)):
            r = self.nori("run", path, "--limit", "time=" + given, "--limit=iterations=none", code=4)
            self.assertIn("the limit is %d (run_ms)" % ms, r.err)

    def test_files_past_a_limit(self):
        path = self.file("m.onnx", endless())
        for verb in ("run", "check", "inspect"):
            r = self.nori(verb, path, "--limit", "nodes=2", code=None)
            self.assertIn(r.code, (1, 3), r.err)
            self.assertIn("3 found, the limit is 2 (nodes)", r.out + r.err)
        r = self.nori("check", path, "--limit", "model=10", code=None)
        self.assertIn("the limit is 10", r.out + r.err)

    def test_words(self):
        path = self.file("m.onnx", endless())
        for given, said in (("node=3", "did you mean nodes"), ("nodes", "nodes="), ("nodes=x", "whole number"),
                            ("nodes=-1", "whole number"), ("time=0", "a time"), ("time=1d", "a time"), ("time=-1s", "a time"), ("model=1X", "bytes"),
                            ("nodes=", "whole number"), ("colour=3", "there is no such limit")):
            r = self.nori("run", path, "--limit", given, code=2)
            self.assertIn(said, r.err)

    def test_every_verb_that_loads_takes_it(self):
        overview = self.nori("help").out
        for verb in re.findall(r"^  (\w+) ", overview, re.M):
            text = self.nori(verb, "--help").out
            if "--allow-outside" in text or verb == "serve":
                self.assertIn("--limit NAME=N", text, verb)


if __name__ == "__main__":
    case.main()
