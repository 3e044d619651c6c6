#!/usr/bin/env python3
"""sign, verify, seal: what changed is told apart, keys are kept, sealed models run where their key is."""
import os
import stat
import unittest

import case
import model_file as m


def with_data(location):
    """A weight of four floats in another file."""
    entry = m.put(13, m.put(1, "location") + m.put(2, location))
    weight = m.num(1, 4) + m.num(2, m.FLOAT) + m.put(8, "w") + entry + m.num(14, 1)
    return m.model(m.Graph([m.node("Add", ["x", "w"], ["y"])], [m.value("x", m.tensor_type(m.FLOAT, [4]))],
                           [m.value("y", m.tensor_type(m.FLOAT, [4]))], [weight]))


class Sign(case.Case):
    def keys(self, name="mine"):
        self.nori("sign", "--make-keys", self.path(name), "--quiet")
        return self.path(name + ".key"), self.path(name + ".pub")

    def test_signed_and_verified(self):
        secret, public = self.keys()
        self.assertEqual(stat.S_IMODE(os.stat(secret).st_mode), 0o600)
        model = self.file("m.onnx", with_data("w.bin"))
        data = self.file("w.bin", bytes(16))
        self.nori("sign", model, "--key", secret)
        r = self.nori("verify", model, "--key", public)
        self.assertIn("is what was signed", r.out)
        self.file("w.bin", bytes(15) + b"\1")
        r = self.nori("verify", model, "--key", public, code=1)
        self.assertIn("w.bin changed since it was signed", r.err)
        self.file("w.bin", bytes(16))
        self.file("m.onnx", with_data("./w.bin"))
        r = self.nori("verify", model, "--key", public, code=1)
        self.assertIn("the model changed since it was signed", r.err)
        self.file("m.onnx", with_data("w.bin"))
        self.nori("verify", model, "--key", public)
        _, other = self.keys("other")
        r = self.nori("verify", model, "--key", other, code=1)
        self.assertIn("another key signed", r.err)
        os.remove(data)
        self.nori("verify", model, "--key", public, code=3)

    def test_any_bit_of_a_signature(self):
        secret, public = self.keys()
        model = self.file("m.onnx", m.one_node("Neg", [2], [2]))
        self.nori("sign", model, "--key", secret, "--output", self.path("s"))
        with open(self.path("s"), "rb") as f:
            good = f.read()
        self.nori("verify", model, "--key", public, "--signature", self.path("s"))
        for at in range(len(good) - 140, len(good), 7):
            bad = good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]
            r = self.nori("verify", model, "--key", public, "--signature", self.file("b", bad), code=None)
            self.assertIn(r.code, (1, 3), at)
        for n in (0, 10, len(good) - 1):
            self.nori("verify", model, "--key", public, "--signature", self.file("b", good[:n]), code=3)

    def test_keys_are_not_written_over(self):
        secret, public = self.keys()
        with open(secret, "rb") as f:
            before = f.read()
        r = self.nori("sign", "--make-keys", self.path("mine"), code=3)
        self.assertIn("not written over", r.err)
        with open(secret, "rb") as f:
            self.assertEqual(f.read(), before)
        model = self.file("m.onnx", m.one_node("Neg", [2], [2]))
        r = self.nori("sign", model, "--key", public, code=3)
        self.assertIn("is no secret key", r.err)
        self.nori("sign", model, code=2)
        self.nori("sign", "--make-keys", self.path("x"), "--key", secret, code=2)

    def test_sealed_models_run(self):
        key, sealed = self.path("device.seal"), self.path("m.sealed")
        model = self.file("m.onnx", m.one_node("Neg", [2], [2]))
        self.nori("seal", "--make-key", key)
        self.nori("seal", model, "--key", key, "--output", sealed)
        plain = self.nori("run", model, "--json").json()
        opened = self.nori("run", sealed, "--seal-key", key, "--json").json()
        self.assertEqual(plain["outputs"], opened["outputs"])
        for verb in ("check", "inspect", "bench"):
            self.nori(verb, sealed, "--seal-key", key, "--quiet")
        r = self.nori("run", sealed, code=3)
        self.assertIn("--seal-key", r.err)
        self.nori("seal", "--make-key", self.path("other.seal"))
        r = self.nori("run", sealed, "--seal-key", self.path("other.seal"), code=3)
        self.assertIn("this is not its key, or the file was changed", r.err)
        r = self.nori("run", model, "--seal-key", key, code=3)
        self.assertIn("is not a sealed model", r.err)
        r = self.nori("seal", self.file("d.onnx", with_data("w.bin")), "--key", key, "--output",
                      self.path("d"), code=None)
        self.assertIn(r.code, (3, 4))
        self.assertFalse(os.path.exists(self.path("d")))


if __name__ == "__main__":
    case.main()
