#!/usr/bin/env python3
"""compile: a plan gives what its model gives, on the CPU level it was made for and on others, which say so."""
import json
import os
import struct

import case
import model_file as m


def product(n=64, k=48):
    """x [4, k] times a matrix [k, n]."""
    data = struct.pack("<%df" % (n * k), *((i * 7919 % 1000) / 1000 - 0.5 for i in range(n * k)))
    weight = (m.num(1, k) + m.num(1, n) + m.num(2, m.FLOAT) + m.put(8, "w") + m.put(9, data))
    return m.model(m.Graph([m.node("MatMul", ["x", "w"], ["y"])],
                           [m.value("x", m.tensor_type(m.FLOAT, [4, k]))],
                           [m.value("y", m.tensor_type(m.FLOAT, [4, n]))], [weight]))


def convolution():
    """x [N, 32, H, W] through two convolutions of 3 x 3."""
    nodes, constants, value = [], [], "x"
    for i in range(2):
        data = struct.pack("<9216f", *((k * 7919 % 1000) / 1000 - 0.5 for k in range(9216)))
        constants.append(m.tensor("w%d" % i, m.FLOAT, [32, 32, 3, 3], data))
        nodes.append(m.node("Conv", [value, "w%d" % i], ["y%d" % i], pads=[1] * 4))
        value = "y%d" % i
    return m.model(m.Graph(nodes, [m.value("x", m.tensor_type(m.FLOAT, ["n", 32, "h", "w"]))],
                           [m.value(value, m.tensor_type(m.FLOAT, None))], constants))


class Compile(case.Case):
    def plan(self, **how):
        model = self.file("m.onnx", product())
        plan = self.path("m.plan")
        r = self.nori("compile", model, "--output", plan, **how)
        self.assertIn("1 blocks of packed weights", r.out)
        return model, plan

    def result(self, model, **how):
        return json.loads(self.nori("run", model, "--seed", "1", "--json", **how).out)

    def test_the_same_result(self):
        model, plan = self.plan()
        self.assertEqual(self.result(model), self.result(plan))
        self.assertEqual(self.nori("run", plan, "--seed", "1").err, self.nori("run", model, "--seed", "1").err)
        self.nori("validate", plan, "--against", model)
        self.nori("check", plan)
        r = json.loads(self.nori("inspect", plan, "--json").out)
        self.assertEqual(r["plan"]["blocks"], 1)
        self.assertIn("providers cpu", r["plan"]["made_for"])
        self.assertNotIn("plan", json.loads(self.nori("inspect", model, "--json").out))

    def test_other_levels(self):
        for made, used in (("base", "avx2"), ("avx2", "base"), ("base", "base")):
            model, plan = self.plan(env={"NORI_CPU": made})
            r = self.nori("run", plan, "--seed", "1", env={"NORI_CPU": used})
            same = json.loads(self.nori("bench", plan, "--runs", "1", "--json",
                                        env={"NORI_CPU": made}).out)["level"] == json.loads(
                self.nori("bench", plan, "--runs", "1", "--json", env={"NORI_CPU": used}).out)["level"]
            if same:  # a level that this machine does not have is another
                self.assertNotIn("plan", r.err)
            else:
                self.assertIn('it was made for "cpu %s' % made, r.err)
                self.assertIn("packed anew", r.err)
            self.assertEqual(self.nori("run", model, "--seed", "1", env={"NORI_CPU": used}).out, r.out)

    def test_other_options(self):
        _, plan = self.plan()
        r = self.nori("run", plan, "--seed", "1", "--level", "1")
        self.assertIn('"level 2", now it is "level 1"', r.err)
        self.assertEqual(self.nori("run", plan, "--seed", "1", "--provider", "reference", "--quiet").err, "")

    def test_damaged(self):
        _, plan = self.plan()
        with open(plan, "rb") as f:
            data = f.read()
        for cut in (8, 100, len(data) // 2, len(data) - 1):
            r = self.nori("run", self.file("cut.plan", data[:cut]), code=3)
            self.assertIn("the plan is damaged", r.err)
            self.assertIn("nori compile", r.err)
        changed = bytearray(data)
        changed[8] = 3
        self.assertIn("form 3", self.nori("run", self.file("new.plan", bytes(changed)), code=3).err)

    def test_tuned(self):
        model = self.file("c.onnx", convolution())
        plan = self.path("c.plan")
        r = json.loads(self.nori("compile", model, "--output", plan, "--tune", "--seconds", "1",
                                 "--threads", "2", "--shape", "x=1,32,24,24", "--json").out)
        tuning = r["tuning"]
        self.assertEqual(tuning["threads"], 2)
        self.assertEqual(len(tuning["layers"]), 1)
        layer = tuning["layers"][0]
        self.assertIn("conv 3x3, 32 -> 32", layer["layer"])
        self.assertGreater(len(layer["ways"]), 0)
        self.assertTrue(all(w["us"] > 0 and w["way"] != layer["usual"] for w in layer["ways"]))
        self.assertEqual(layer["taken"] != layer["usual"], tuning["faster"])
        self.assertEqual(tuning["faster"], tuning["gain"] > 1 + tuning["noise"] and tuning["changed"] > 0)
        p = json.loads(self.nori("inspect", plan, "--json").out)["plan"]
        self.assertEqual(p["tuned_threads"], 2)
        self.assertEqual(p["tuned_layers"], 2 * tuning["changed"])
        self.assertIn("tuned for 2 threads", self.nori("inspect", plan).out)
        self.nori("validate", plan, "--against", model, "--shape", "x=1,32,24,24")
        shape = ("--shape", "x=1,32,24,24", "--seed", "1", "--json")
        self.assertEqual(*(self.nori("run", plan, *shape, "--threads", n).out for n in ("1", "2")))

    def test_tuned_in_words(self):
        model = self.file("c.onnx", convolution())
        r = self.nori("compile", model, "--output", self.path("c.plan"), "--tune", "--seconds", "1",
                      "--shape", "x=1,32,16,16")
        self.assertIn("1 layer with a choice measured in", r.out)
        self.assertRegex(r.out, "all go their usual one|faster, give or take")
        r = self.nori("compile", self.file("m.onnx", product()), "--output",
                      self.path("m.plan"), "--tune", "--seconds", "1", "--quiet")
        self.assertEqual(r.out, "")

    def test_options_of_tuning(self):
        model = self.file("c.onnx", convolution())
        for more in (("--seconds", "3"), ("--threads", "1"), ("--shape", "x=1,32,8,8"), ("--seed", "2"), ("x.npy",)):
            self.nori("compile", model, "--output", self.path("c.plan"), *more, code=2)
        self.nori("compile", model, "--output", self.path("c.plan"), "--tune", "--seconds", "0", code=2)
        self.nori("compile", model, "--output", self.path("c.plan"), "--tune", "--shape", "x=1,31,8,8", code=3)
        self.assertFalse(os.path.exists(self.path("c.plan")))

    def test_the_file_is_whole_or_not_there(self):
        model, plan = self.plan()
        before = os.path.getsize(plan)
        self.nori("compile", self.file("bad.onnx", b"\x08\x08"), "--output", plan, code=3)
        self.assertEqual(os.path.getsize(plan), before)
        self.nori("compile", model, code=2)
        self.nori("compile", model, "--output", self.path("no/such/folder.plan"), code=3)

    def test_cache(self):
        """Packed weights of a model that is no plan, kept in a folder."""
        model = self.file("m.onnx", product(1024, 512))
        folder = self.path("kept")
        os.mkdir(folder)
        r = self.nori("run", model, "--seed", "1", "--cache", folder)
        self.assertIn("cache: cpu: miss: nothing is kept", r.err)
        self.assertIn("cache: cpu: kept", r.err)
        name, = os.listdir(folder)
        again = self.nori("run", model, "--seed", "1", "--cache", folder)
        self.assertIn("cache: cpu: hit", again.err)
        self.assertEqual(again.out, r.out)
        r = self.nori("run", model, "--seed", "1", "--cache", folder, env={"NORI_CPU": "base"})
        self.assertIn("cache: cpu: miss: it was made for", r.err)
        self.assertEqual(os.listdir(folder), [name])
        r = self.nori("run", model, "--cache", folder, "--level", "1")
        self.assertIn("miss: nothing is kept", r.err)
        self.file("m.onnx", product(1024, 513))
        self.assertIn("miss: nothing is kept", self.nori("run", model, "--cache", folder).err)
        with open(os.path.join(folder, name), "r+b") as f:
            f.truncate(1000)
        self.file("m.onnx", product(1024, 512))
        r = self.nori("run", model, "--seed", "1", "--cache", folder)
        self.assertIn("damaged", r.err)
        self.assertIn("cache: cpu: kept", r.err)
        self.assertEqual(again.out, r.out)
        small = self.file("small.onnx", product(8, 8))
        self.nori("run", small, "--cache", folder)
        self.assertEqual(len(os.listdir(folder)), 3)

    def test_a_plan_of_a_plan_and_back(self):
        model, plan = self.plan()
        again = self.path("again.plan")
        self.nori("compile", plan, "--output", again)
        self.assertEqual(self.result(again), self.result(model))
        back = self.path("back.onnx")
        self.nori("optimize", plan, "--output", back)
        self.assertEqual(self.result(back), self.result(model))


if __name__ == "__main__":
    case.main()
