#!/usr/bin/env python3
"""Execution providers as users meet them: named ones that cannot be had, --fallback, side by side."""
import json
import os
import sys
import unittest

import case

sys.path.insert(0, os.path.join(case.SOURCE, "tests"))
import ort_library  # noqa: E402

DIGITS = os.path.join(case.DIGITS, "digits.onnx")
DATA = os.path.join(case.DIGITS, "test_data_set_0")
ORT = ort_library.find()
FAKE = os.environ.get("NORI_FAKE_PROVIDER")
NO_ORT = {"NORI_ORT_LIBRARY": ""}


class Missing(case.Case):
    """A provider asked for by name that cannot be had is an error that says what is missing."""

    def refused(self, provider, *words, env=None):
        r = self.nori("run", DIGITS, "--provider", provider, code=4, env=env)
        for word in words:
            self.assertIn(word, r.err)

    def test_unknown(self):
        self.refused("fakegpu", "fakegpu", "cpu", "reference", "--fallback")

    def test_library(self):
        self.refused("ort:cpu:lib=/nowhere/libonnxruntime.so", "/nowhere/libonnxruntime.so",
                     "No such file")
        self.refused("ort:cpu", "libonnxruntime.so",
                     env={**NO_ORT, "NORI_ORT_LIBRARY": "/nowhere/libonnxruntime.so"})

    def test_symbol(self):
        with open("/proc/self/maps", encoding="utf-8") as f:
            libc = next(line.split()[-1] for line in f if "libc.so" in line)
        self.refused("ort:cpu:lib=" + libc, libc, "OrtGetApiBase")
        self.refused(libc, libc, "nori_provider_entry")

    def test_engine(self):
        self.refused("ort:banana", "banana", "tensorrt")

    def test_options_are_not_engines(self):
        r = self.nori("run", DIGITS, "--provider", "cpu:x=1", code=2)
        self.assertIn("takes no options", r.err)

    def test_fallback_is_one_warning(self):
        r = self.nori("run", DIGITS, "--test-data", DATA, "--fallback", "--provider",
                      "ort:cpu:lib=/nowhere/x.so,spin=0,cpu")
        self.assertEqual(r.err.count("warning"), 1)
        self.assertIn("/nowhere/x.so", r.err)

    def test_json(self):
        r = self.nori("run", DIGITS, "--provider", "fakegpu", "--json", code=4)
        self.assertIn("fakegpu", r.json()["error"]["message"])


@unittest.skipUnless(FAKE, "NORI_FAKE_PROVIDER names no provider")
class Prepared(case.Case):
    """What a provider compiled is kept in a folder; hits and misses are told."""

    def prepare(self, *args):
        return self.nori("run", DIGITS, "--test-data", DATA, "--cache", self.folder.name,
                         "--provider", FAKE + ":cost=1,slow=1,cpu", *args)

    def test_hit_and_miss(self):
        first, again = self.prepare(), self.prepare()
        self.assertIn("cache: fake: miss: nothing is kept", first.err)
        self.assertIn("cache: fake: kept: " + self.folder.name, first.err)
        self.assertIn("cache: fake: hit: " + self.folder.name, again.err)
        self.assertNotIn("miss", again.err)
        self.assertEqual(self.prepare("--quiet").err, "")

    def test_the_first_run_is_told_apart(self):
        """Warming up is no part of what a run takes: load, creation, first run and steady runs each."""
        r = self.nori("bench", DIGITS, "--runs", "5", "--json", "--provider", FAKE + ":cost=1,first=1500,cpu")
        got = r.json()
        self.assertGreater(got["first_ms"], 1500)
        self.assertLess(got["median_ms"], 750)
        self.assertLess(got["create_ms"], 750)
        r = self.nori("bench", DIGITS, "--runs", "2", "--provider", FAKE + ":cost=1,first=1500,cpu")
        first = next(line for line in r.out.splitlines() if line.startswith("first run"))
        self.assertRegex(first, r"1[.0-9]* s|1[56][0-9][0-9]")

    def test_no_folder(self):
        r = self.nori("run", DIGITS, "--cache", self.path("nothing"), code=2)
        self.assertIn(self.path("nothing"), r.err)


@unittest.skipUnless(FAKE, "NORI_FAKE_PROVIDER names no provider")
class Targets(case.Case):
    """What a provider of parts would not take is told before anything runs."""

    def test_told_with_reasons(self):
        r = self.nori("check", DIGITS, "--target", "cpu, " + FAKE + ":cost=1", "--json", code=1)
        found = [f for f in r.json()["findings"] if f["rule"] == "target"]
        refused = [f["message"] for f in found if f["severity"] == "error"]
        self.assertTrue(any("fake: Conv is not taken: " in m and "6 nodes" in m for m in refused))
        self.assertFalse(any("Relu" in m for m in refused))
        self.assertTrue(any("6 of 19 nodes are taken" in f["message"] for f in found))

    def test_cannot_be_had(self):
        r = self.nori("check", DIGITS, "--target", "ort:cpu:lib=/nowhere/x.so", code=4)
        self.assertIn("/nowhere/x.so", r.err)
        self.nori("check", DIGITS, "--target", "toaster", code=2)


class Versus(case.Case):
    def check(self, other, *more):
        r = self.nori("bench", DIGITS, "--versus", other, "--rounds", "7", "--runs", "2",
                      "--threads", "1", "--json", *more,
                      env={"NORI_ORT_LIBRARY": ORT} if ORT else None)
        j = r.json()
        self.assertEqual([s["provider"] for s in j["sides"]], ["cpu", other])
        self.assertEqual((j["threads"], j["rounds"], j["runs"]), (1, 7, 2))
        for s in j["sides"]:
            self.assertLessEqual(s["min_ms"], s["median_ms"])
            self.assertGreater(s["min_ms"], 0)
            self.assertGreater(s["load_cpu_ms"], 0)
            self.assertGreater(s["peak_bytes"], 1 << 20)
        for key in ("ratio", "cpu_ratio"):
            self.assertTrue(0 < j[key]["q1"] <= j[key]["median"] <= j[key]["q3"])
        self.assertTrue(j["agree"])
        self.assertGreater(j["outputs"][0]["elements"], 0)
        return j

    def test_reference(self):
        j = self.check("reference")
        self.assertLess(j["ratio"]["median"], 1)  # kernels that are no faster than plain C

    def test_disagreement_is_exit_1(self):
        r = self.nori("bench", DIGITS, "--versus", "reference", "--rounds", "7", "--runs", "1",
                      "--atol", "0", "--rtol", "0", "--json", code=None)
        self.assertEqual(r.code, 0 if json.loads(r.out)["agree"] else 1)
        self.assertFalse(json.loads(r.out)["agree"])

    def test_few_rounds_are_refused(self):
        self.nori("bench", DIGITS, "--versus", "reference", "--rounds", "3", code=2)
        self.nori("bench", DIGITS, "--versus", "reference", "--profile", code=2)

    @unittest.skipUnless(ORT, ort_library.ABSENT)
    def test_ort(self):
        j = self.check("ort:cpu")
        self.assertIn("ONNX Runtime", j["sides"][1]["engine"])


@unittest.skipUnless(ORT, ort_library.ABSENT)
class Ort(case.Case):
    def test_digits(self):
        for threads in ("1", "2"):
            self.nori("run", DIGITS, "--test-data", DATA, "--provider", "ort:cpu:spin=0",
                      "--threads", threads, env={"NORI_ORT_LIBRARY": ORT})

    def test_nothing_is_kept_is_told(self):
        for provider in ("ort:cpu", "ort:cpu:whole=0,cpu"):
            r = self.nori("run", DIGITS, "--test-data", DATA, "--provider", provider, "--cache",
                          self.folder.name, env={"NORI_ORT_LIBRARY": ORT})
            self.assertIn("cache: ort:cpu: not kept: ONNX Runtime has CPUExecutionProvider keep nothing", r.err)

    def test_parts(self):
        ort = {"NORI_ORT_LIBRARY": ORT}
        self.nori("run", DIGITS, "--test-data", DATA, "--provider", "ort:cpu:whole=0,cpu", env=ort)
        j = self.nori("inspect", DIGITS, "--providers", "ort:cpu:whole=0,cpu", "--json",
                      env=ort).json()
        self.assertEqual([p["given"] for p in j["parts"]], [False, True])
        self.assertEqual({n["provider"] for n in j["nodes"]}, {"ort:cpu"})
        self.assertEqual([p["name"] for p in j["providers"]], ["ort:cpu", "cpu"])

    def test_a_model_without_a_node(self):
        text = self.file("m.txt", b"""<ir_version: 8, opset_import: ["": 13]>
g () => (float[2] y) <float[2] y = {1, 2}> {}""")
        self.nori("build", text, "--output", self.path("m.onnx"))
        r = self.nori("run", self.path("m.onnx"), "--provider", "ort:cpu", env={"NORI_ORT_LIBRARY": ORT})
        self.assertIn("1, 2", r.out)

    def test_profile_names_it(self):
        r = self.nori("bench", DIGITS, "--runs", "1", "--profile", "--provider", "ort:cpu",
                      env={"NORI_ORT_LIBRARY": ORT})
        self.assertIn("ort:cpu", r.out)

    def test_engines_not_built_in(self):
        r = self.nori("run", DIGITS, "--provider", "ort:nnapi", code=4,
                      env={"NORI_ORT_LIBRARY": ORT})
        self.assertIn("NnapiExecutionProvider", r.err)
        self.assertIn("CPUExecutionProvider", r.err)

    def test_unknown_option(self):
        self.nori("run", DIGITS, "--provider", "ort:cpu:banana=1", code=2,
                  env={"NORI_ORT_LIBRARY": ORT})


if __name__ == "__main__":
    case.main()
