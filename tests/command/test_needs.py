#!/usr/bin/env python3
"""nori needs: operators that a reduced build must hold, and tools/gen_built.py, which makes it hold them."""
import os
import re
import subprocess
import sys

import case
import model_file as f

DIGITS = os.path.join(case.DIGITS, "digits.onnx")
TOOL = os.path.join(case.SOURCE, "tools", "gen_built.py")


def value(name, dims):
    return f.value(name, f.tensor_type(f.FLOAT, dims))


def one(op, opset=13, count=1, dims=(2, 3), **attrs):
    names = ["x", "z"][:count]
    return f.model(f.Graph([f.node(op, names, ["y"], **attrs)], [value(n, dims) for n in names],
                           [value("y", dims)]), opset)


class Needs(case.Case):
    def needs(self, *models, **more):
        return self.nori("needs", *models, **more)

    def made(self, *models):
        return {(o["domain"], o["op"]): o.get("made_by") for o in self.needs(*models, "--json").json()["operators"]}

    def gen(self, text, *args, code=0):
        r = subprocess.run([sys.executable, TOOL, "--operators", self.file("operators.txt", text), "-o",
                            self.path("made"), *args], capture_output=True, text=True, timeout=60)
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        return r.stderr if code else self.read("made/nori_built.h")

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def built(self, text):
        return set(re.findall(r"#define NORI__BUILT_(\w+) 1", text))

    def test_operators_of_a_model_and_what_is_made_of_them(self):
        made = self.made(DIGITS)
        self.assertIsNone(made["ai.onnx", "Conv"])
        self.assertEqual(made["com.microsoft", "FusedConv"], "fuse")
        self.assertEqual(made["nori", "BlockedStem"], "block")
        self.assertNotIn(("ai.onnx", "LSTM"), made)

    def test_several_models_are_one_list(self):
        abs_, exp = self.file("abs.onnx", one("Abs")), self.file("exp.onnx", one("Exp"))
        text = self.needs(abs_, exp).out
        for line in ("# model abs.onnx", "# model exp.onnx", "ai.onnx Abs 13", "ai.onnx Exp 13"):
            self.assertIn(line, text.splitlines())
        self.needs(abs_, exp, "--output", self.path("list.txt"))
        self.assertEqual(self.read("list.txt"), text)

    def test_old_forms_bring_what_they_become(self):
        old = self.file("old.onnx", one("Add", 6, 2, broadcast=1, axis=0))
        new = self.file("new.onnx", one("Add", 13, 2))
        self.assertEqual(self.made(old).get(("ai.onnx", "Unsqueeze")), "upgrade")
        self.assertNotIn(("ai.onnx", "Unsqueeze"), self.made(new))

    def test_what_cannot_run_is_said(self):
        err = self.needs(self.file("odd.onnx", one("Odd")), code=4).err
        self.assertIn("Odd", err)
        self.assertIn("expected", self.needs(code=2).err)
        self.needs(self.path("absent.onnx"), code=3)

    def test_a_build_closes_the_list_as_the_command_does(self):
        models = [DIGITS, self.file("old.onnx", one("Add", 6, 2, broadcast=1, axis=0))]
        names = {"ai.onnx": "ONNX", "com.microsoft": "MS", "nori": "nori"}
        wanted = {"%s_%s" % (names[domain], op) for domain, op in self.made(*models)}
        built = self.built(self.gen(self.needs(*models).out))
        self.assertEqual({n for n in built if n.startswith(tuple(names.values()))}, wanted)
        self.assertIn("kernels_block", built)
        self.assertNotIn("kernels_int8", built)
        self.assertIn("rewrite_block", built)
        self.assertNotIn("rewrite_integers", built)
        self.assertIn("level_avx512", built)
        self.assertEqual({n for n in self.built(self.gen("ai.onnx Abs\n", "--levels", "avx2"))
                          if n.startswith("level_")}, {"level_avx2"})

    def test_facts_are_those_of_the_operators(self):
        self.gen("ai.onnx Abs 13\n")
        rows = re.findall(r'\{"([^"]*)", "(\w+)", \d+, [01], [01]', self.read("made/nori_schema.inc"))
        self.assertEqual(set(rows), {("", "Abs"), ("", "Identity")})

    def test_a_wrong_list_is_refused_by_line(self):
        for text, word in (("ai.onnx Abz\n", "Abz"), ("\nai.onx Abs\n", ":2:"), ("Abs\n", "domain"), ("#\n", "no operator"),
                           ("ai.onnx Abs x\n", ":1:")):
            self.assertIn(word, self.gen(text, code=1))
        self.assertIn("sse9", self.gen("ai.onnx Abs\n", "--levels", "sse9", code=1))


if __name__ == "__main__":
    case.main()
