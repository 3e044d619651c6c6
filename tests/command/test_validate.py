#!/usr/bin/env python3
"""nori validate: two ways of running a model, by outputs, levels and layers."""
import os
import shutil

import case
import model_file as m
import npy_file as n

DIGITS = os.path.join(case.DIGITS, "digits.onnx")
DATA = os.path.join(case.DIGITS, "test_data_set_0")


def chain(weights):
    """x -> MatMul -> Relu -> MatMul -> y, with weights of the first and of the second."""
    f = m.tensor_type(m.FLOAT, [2, 4])
    return m.model(m.Graph(
        [m.node("MatMul", ["x", "a"], ["h"], name="first"),
         m.node("Relu", ["h"], ["r"], name="second"),
         m.node("MatMul", ["r", "b"], ["y"], name="third")],
        [m.value("x", f)], [m.value("y", f)],
        [m.floats("a", [4, 4], weights[0]), m.floats("b", [4, 4], weights[1])]))


class Validate(case.Case):
    def models(self):
        good = [[(i * 5 % 7) / 7 for i in range(16)], [(i * 3 % 5) / 5 for i in range(16)]]
        bad = [list(w) for w in good]
        bad[1][6] *= 1.1  # one weight, by 10 %
        return self.file("good.onnx", chain(good)), self.file("bad.onnx", chain(bad))

    def test_reference_is_the_default(self):
        j = self.nori("validate", DIGITS, "--tries", "3", "--json").json()
        self.assertTrue(j["agree"])
        self.assertEqual((j["got"], j["want"]), ("cpu", "reference"))
        out = j["outputs"][0]
        self.assertEqual(out["elements"], 30)
        self.assertEqual(out["top1"], 1)
        self.assertGreater(out["sqnr_db"] or 1e9, 100)
        self.assertIn("agree", self.nori("validate", DIGITS).out)

    def test_too_strict_is_a_no(self):
        r = self.nori("validate", DIGITS, "--atol", "0", "--rtol", "0", "--level", "2", code=1)
        self.assertIn("DISAGREE", r.out)
        self.nori("validate", DIGITS, "--atol", "0", "--rtol", "0", "--max-beyond", "1",
                  "--min-sqnr", "90")
        self.nori("validate", DIGITS, "--max-beyond", "1", "--min-sqnr", "900", code=1)

    def test_models(self):
        good, bad = self.models()
        self.nori("validate", good, "--against", good)
        r = self.nori("validate", bad, "--against", good, "--json", code=1).json()
        self.assertFalse(r["agree"])
        self.assertGreater(r["outputs"][0]["beyond"], 0)

    def test_both_models_are_loaded_alike(self):
        good, _ = self.models()
        with open(good, "rb") as f:
            odd = self.file("odd.onnx", f.read() + m.put(900, "x"))  # a field nobody knows
        self.nori("validate", good, "--against", odd)
        self.nori("validate", good, "--against", odd, "--strict", code=3)

    def test_layers_name_the_one(self):
        good, bad = self.models()
        j = self.nori("validate", bad, "--against", good, "--layers", "--json", code=1).json()
        self.assertEqual(j["first"], "y")
        rows = {r["value"]: r for r in j["layers"]}
        self.assertTrue(rows["h"]["own"]["agrees"] and rows["r"]["total"]["agrees"])
        self.assertFalse(rows["y"]["own"]["agrees"])
        self.assertIn("third", rows["y"]["node"])
        r = self.nori("validate", bad, "--against", good, code=1)
        self.assertIn("cpu against reference on " + good, r.out)
        lines = self.nori("validate", DIGITS, "--layers").out.splitlines()
        self.assertEqual(len({len(line) for line in lines if line[0] in "v/"}), 1)  # one table
        r = self.nori("validate", bad, "--against", good, "--layers", code=1)
        self.assertIn("first value beyond tolerance: y", r.out)
        self.nori("validate", good, "--layers")

    def test_values_of_elsewhere(self):
        """What another program stored of the values in between, as an .npz and as a folder."""
        good, bad = self.models()
        a, b = [[(i * 5 % 7) / 7 for i in range(16)], [(i * 3 % 5) / 5 for i in range(16)]]
        x = [i / 4 - 1 for i in range(8)]

        def product(rows, w):
            return [sum(rows[4 * r + k] * w[4 * k + c] for k in range(4)) for r in range(2) for c in range(4)]
        h = product(x, a)
        relu = [max(0, v) for v in h]
        arrays = {k: n.npy("<f4", [2, 4], v) for k, v in
                  {"x": x, "h": h, "r": relu, "y": product(relu, b), "other": x}.items()}
        stored = self.file("values.npz", n.npz(arrays))
        self.nori("validate", good, "--against", stored)
        folder = self.path("values")
        os.mkdir(folder)
        for name, data in arrays.items():
            with open(os.path.join(folder, name + ".npy"), "wb") as f:
                f.write(data)
        for side in (stored, folder):
            j = self.nori("validate", bad, "--against", side, "--json", code=1).json()
            self.assertEqual((j["first"], j["worst_own"]), ("y", "y"))
            self.assertEqual([r["value"] for r in j["layers"]], ["h", "r", "y"])
        # What `nori run` wrote of a run is such a side: at once the same, and another model is found out.
        dump = self.path("dump.npz")
        self.nori("run", good, os.path.join(folder, "x.npy"), "--values", dump)
        self.nori("validate", good, "--against", dump)
        j = self.nori("validate", bad, "--against", dump, "--json", code=1).json()
        self.assertEqual((j["first"], [r["value"] for r in j["layers"]]), ("y", ["h", "r", "y"]))
        self.nori("run", good, "--values", dump, "--level", "2", code=2)
        self.nori("run", good, "--values", self.path("no/folder/x.npz"), code=3)
        # A value that went wrong elsewhere is named, and those behind it are right by themselves.
        arrays["h"] = n.npy("<f4", [2, 4], [v * 1.01 for v in h])
        wrong = self.file("wrong.npz", n.npz(arrays))
        r = self.nori("validate", good, "--against", wrong, code=1)
        self.assertIn("first value beyond tolerance: h, made by", r.out)
        # Without the input's values it is to be given; without any, there is nothing to compare.
        del arrays["x"]
        some = self.file("some.npz", n.npz(arrays))
        r = self.nori("validate", good, "--against", some, code=3)
        self.assertIn('"x"', r.err)
        self.nori("validate", good, os.path.join(folder, "x.npy"), "--against", some, code=1)
        os.mkdir(self.path("empty"))
        self.nori("validate", good, "--against", self.path("empty"), code=3)
        self.nori("validate", good, "--against", folder, "--levels", code=2)
        self.nori("validate", good, "--against", folder, "--against-level", "1", code=2)

    def test_layers_through_integers(self):
        """The layer with the damaged weight has the largest error of its own; those behind it inherit."""
        seed = 7

        def even():
            nonlocal seed
            seed = (seed * 1664525 + 1013904223) % 2**32
            return (seed >> 8) / 2**23 - 1

        f = m.tensor_type(m.FLOAT, [1, 4, 8, 8])
        names = ["one", "two", "three", "four"]
        weights = [[even() for _ in range(16)] for _ in names]

        def write(name, w):
            nodes, x = [], "x"
            for i, n in enumerate(names):
                last = i + 1 == len(names)
                nodes.append(m.node("Conv", [x, "w" + n], ["y" if last else "c" + n], name=n))
                if not last:
                    nodes.append(m.node("Relu", ["c" + n], ["r" + n], name="relu" + n))
                x = "r" + n
            return self.file(name, m.model(m.Graph(
                nodes, [m.value("x", f)], [m.value("y", f)],
                [m.floats("w" + n, [4, 4, 1, 1], w[i])
                 for i, n in enumerate(names)])))

        good = write("float.onnx", weights)
        options = ["--random", "8", "--no-search", "--without", "equalize"]  # layers stay comparable
        int8 = self.path("int8.onnx")
        self.nori("quantize", good, "--output", int8, *options)
        compare = ["validate", int8, "--against", good, "--layers"]
        j = self.nori(*compare, "--json", code=1).json()
        self.assertEqual(len([r for r in j["layers"] if "own" in r]), 7)
        self.assertGreater(min(r["own"]["sqnr_db"] for r in j["layers"]), 30)
        for at in (1, 2):
            damaged = [list(w) for w in weights]
            k = max(range(16), key=lambda i: abs(damaged[at][i]))
            damaged[at][k] *= 0.9  # one weight, by 10 %
            self.nori("quantize", write("bad.onnx", damaged), "--output", int8, *options)
            r = self.nori(*compare, code=1)
            self.assertEqual(r.out.splitlines()[1].split()[0], "c" + names[at], r.out)
            self.assertIn("made by %s (Conv), " % names[at], r.out)
            j = self.nori(*compare, "--json", code=1).json()
            rows = {row["value"]: row for row in j["layers"]}
            self.assertEqual(j["worst_own"], "c" + names[at])
            own, total = rows["y"]["own"]["sqnr_db"], rows["y"]["total"]["sqnr_db"]
            self.assertGreater(own, total + 3)  # what came in from the layer before it

    def test_made_up_inputs_are_called_so(self):
        self.assertIn(", 1 random input\n", self.nori("validate", DIGITS).out)
        pictures = os.path.join(case.DIGITS, "pictures")
        r = self.nori("validate", DIGITS, "--data", pictures, "--samples", "2")
        self.assertIn(", 2 inputs\n", r.out)
        r = self.nori("validate", DIGITS, "--data", pictures, "--samples", "2", "--layers")
        self.assertIn("the first of the 2 of --data", r.err)

    def test_levels(self):
        j = self.nori("validate", DIGITS, "--levels", "--json").json()
        self.assertEqual([r["level"] for r in j["levels"]], [1, 2])
        self.assertEqual([r["culprit"] for r in j["levels"]], ["", ""])

    def test_stored(self):
        self.nori("validate", DIGITS, "--stored", DATA)
        other = self.path("stored")
        shutil.copytree(DATA, other)
        with open(os.path.join(other, "output_0.pb"), "rb") as f:
            data = bytearray(f.read())
        data[-1] ^= 0x40  # the exponent of the last number
        with open(os.path.join(other, "output_0.pb"), "wb") as f:
            f.write(data)
        self.nori("validate", DIGITS, "--stored", other, code=1)
        self.nori("validate", DIGITS, "--stored", self.path("nowhere"), code=3)

    def test_outputs_of_another_program(self):
        made = self.path("made.npz")
        picture = os.path.join(DATA, "input_0.pb")
        self.nori("run", DIGITS, picture, "--output", made, "--provider", "reference")
        self.nori("validate", DIGITS, picture, "--outputs", made)
        r = self.nori("validate", DIGITS, "--seed", "5", "--outputs", made, code=1)
        self.assertIn("cpu against " + made, r.out)
        good, _ = self.models()
        r = self.nori("validate", good, "--outputs", made, code=3)
        self.assertIn('no array named "y"', r.err)
        self.nori("validate", DIGITS, "--outputs", self.path("nothing.npz"), code=3)
        self.nori("validate", DIGITS, "--outputs", made, "--levels", code=2)

    def test_many_inputs(self):
        folder = os.path.join(case.DIGITS, "pictures")
        j = self.nori("validate", DIGITS, "--data", folder, "--samples", "7", "--json").json()
        self.assertTrue(j["agree"])
        self.assertEqual(j["outputs"][0]["elements"], 70)
        self.nori("validate", DIGITS, "--data", folder, "--tries", "2", code=2)
        self.nori("validate", DIGITS, "--samples", "2", code=2)
        self.nori("validate", DIGITS, "--data", self.path("nothing"), code=3)

    def test_pages(self):
        good, bad = self.models()
        for name, code, words, args in [
                ("outputs", 0, ["agree", "logits"], [DIGITS]),
                ("levels", 0, ["level", "logits"], [DIGITS, "--levels"]),
                ("layers", 1, ["First value beyond tolerance: y", "on its own", "third"],
                 [bad, "--against", good, "--layers"])]:
            path = self.path(name + ".html")
            self.nori("validate", *args, "--html", path, code=code)
            with open(path, encoding="utf-8") as f:
                page = f.read()
            for word in words + ["<svg", "</html>"]:
                self.assertIn(word, page)
            self.assertNotIn("http", page)  # readable without a network
        self.nori("validate", DIGITS, "--html", self.path("no/folder/x.html"), code=3)

    def test_usage(self):
        self.nori("validate", code=2)
        self.nori("validate", DIGITS, "--levels", "--layers", code=2)
        self.nori("validate", DIGITS, "--min-sqnr", "x", code=2)
        self.nori("validate", DIGITS, "--against-provider", "fakegpu", code=4)


if __name__ == "__main__":
    case.main()
