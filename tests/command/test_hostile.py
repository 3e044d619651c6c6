#!/usr/bin/env python3
"""Files made to do harm: each is refused with exit code 3, in little memory, by check and by run."""
import os
import resource
import struct
import unittest

import case
import model_file as m

LIMIT = 64 << 20


class Hostile(case.Case):
    def refused(self, data, codes=(3,), verbs=("check", "run")):
        path = self.file("bad.onnx", data)
        errors = []
        for verb in verbs:
            r = self.nori(verb, path, *(["--level", "2"] if verb == "run" else []), code=None)
            self.assertIn(r.code, codes, "%s: %s%s" % (verb, r.out, r.err))
            errors.append(r.out + r.err)
        return errors

    def tearDown(self):
        if not case.SANITIZED:
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
            self.assertLess(peak, LIMIT, "the largest child took %d bytes" % peak)

    def small(self):
        return m.model(m.Graph(
            [m.node("Mul", ["x", "w"], ["t"], name="scale"), m.node("Relu", ["t"], ["y"])],
            [m.value("x", m.tensor_type(m.FLOAT, ["n", 4]))],
            [m.value("y", m.tensor_type(m.FLOAT, ["n", 4]))],
            [m.floats("w", [4], [1, 2, 3, 4])]))

    def test_cut_at_every_byte(self):
        data = self.small()
        self.nori("check", self.file("good.onnx", data))
        self.assertLess(len(data), 300)
        whole = 0
        for n in range(len(data)):
            path = self.file("cut.onnx", data[:n])
            for verb in ("check", "run") if n % 16 == 0 else ("check",):
                r = self.nori(verb, path, code=None)
                if r.code == 0:
                    whole += 1  # cut between two fields that may be left out
                else:
                    self.assertIn(r.code, (1, 3, 4), "%d bytes: %s%s" % (n, r.out, r.err))
                    self.assertTrue(r.out + r.err)
        self.assertLessEqual(whole, 4)

    def test_damaged_numbers(self):
        self.refused(b"\x08" + b"\xff" * 11 + b"\x01" + self.small())  # varint of 12 bytes
        self.refused(self.small() + b"\x3a" + m.varint(-5))
        self.refused(self.small() + b"\x3a" + b"\xff" * 9 + b"\x7f")
        for field in range(1, 32):  # a length past the end, in any field
            self.refused(m.varint(field << 3 | 2) + b"\xff\xff\xff\xff\x0f", verbs=("check",))

    def test_deep_nesting(self):
        depth = 10000
        graph = b""
        sizes = []
        # From the inside out, each level: node { attribute { g: ... } } in a graph.
        for _ in range(depth):
            attr = m.put(1, "b") + m.num(20, 5) + m.put(6, graph)
            graph = m.put(1, m.put(4, "If") + m.put(5, attr))
            sizes.append(len(graph))
        text = self.refused(m.num(1, 8) + m.put(7, graph) + m.put(8, m.num(2, 17)))
        self.assertIn("nested more than", text[0])

    def test_types_nested_deep(self):
        t = m.tensor_type(m.FLOAT, [1])
        for _ in range(10000):
            t = m.sequence_type(t)
        self.refused(m.model(m.Graph([m.node("Identity", ["x"], ["y"])], [m.value("x", t)],
                                     [m.value("y", m.tensor_type(m.FLOAT, [1]))])))

    def test_element_types_that_do_not_exist(self):
        self.refused(m.one_node("Relu", [2], [2], elem=999), codes=(1, 3))
        self.refused(m.model(m.Graph(
            [m.node("Relu", ["w"], ["y"])], [], [m.value("y", m.tensor_type(m.FLOAT, [2]))],
            [m.tensor("w", 999, [2], b"12345678")])))
        self.refused(m.one_node("Cast", [2], [2], to=999), codes=(1, 3))

    def test_nodes_without_inputs(self):
        for op in ("Relu", "Conv", "Concat", "Loop", "Einsum", "LSTM", "Resize", "Split"):
            data = m.model(m.Graph([m.node(op, [], ["y"])], [],
                                   [m.value("y", m.tensor_type(m.FLOAT, [2]))]))
            self.refused(data, codes=(1, 3))

    def test_attributes_that_do_not_fit(self):
        self.refused(m.one_node("Einsum", [2, 3], [3, 2], equation="ij,jk->ik"), codes=(1, 3))
        self.refused(m.one_node("Einsum", [2, 3], [3, 2], equation="ij->ijkkkk$"), codes=(1, 3))
        self.refused(m.one_node("Transpose", [2, 3], [3, 2], perm=[0, 1, 2]), codes=(1, 3))
        self.refused(m.one_node("Transpose", [2, 3], [3, 2], perm=[1]), codes=(1, 3))
        self.refused(m.one_node("Transpose", [2, 3], [3, 2], perm=[1, 1 << 40]), codes=(1, 3))
        self.refused(m.one_node("Concat", [2, 3], [2, 3], axis=-9), codes=(1, 3))

    def test_sizes_that_overflow(self):
        huge = m.num(1, 1 << 62) + m.num(1, 1 << 62) + m.num(2, 1) + m.put(8, "w") + m.put(9, b"")
        self.refused(m.model(m.Graph([m.node("Relu", ["w"], ["y"])], [],
                                     [m.value("y", m.tensor_type(m.FLOAT, [1]))], [huge])))
        shape = m.ints("s", [2], [1 << 40, 1 << 40])
        text = self.refused(m.model(m.Graph([m.node("ConstantOfShape", ["s"], ["y"])], [],
                                            [m.value("y", m.tensor_type(m.FLOAT, None))], [shape])),
                            codes=(0, 1, 3, 4))
        self.assertTrue(text[1])

    def test_constants_without_end_are_not_folded(self):
        # A thousand constants of 0.9 MB, and one that is doubled 13 times: 7.4 GB.
        size = m.ints("s", [1], [225000])
        thousand = [m.node("ConstantOfShape", ["s"], ["c%d" % i]) for i in range(1000)]
        thousand.append(m.node("Sum", ["x"] + ["c%d" % i for i in range(1000)], ["y"]))
        doubled = [m.node("ConstantOfShape", ["s"], ["c0"])]
        doubled += [m.node("Concat", ["c%d" % i] * 2, ["c%d" % (i + 1)], axis=0)
                    for i in range(13)]
        doubled.append(m.node("Sum", ["x", "c13"], ["y"]))
        for nodes in (thousand, doubled):
            path = self.file("fold.onnx", m.model(m.Graph(
                nodes, [m.value("x", m.tensor_type(m.FLOAT, [1]))],
                [m.value("y", m.tensor_type(m.FLOAT, None))], [size])))
            said = self.nori("inspect", path, "--providers", "cpu").out
            self.assertRegex(said, r"nodes? on (cpu|reference)")

    def test_empty_messages_do_not_multiply(self):
        # A megabyte of messages of no bytes, wherever the format allows a list of them.
        empty = {
            "node": m.put(7, m.put(1, b"") * 500000),
            "initializer": m.put(7, m.put(5, b"") * 500000),
            "input": m.put(7, m.put(11, b"") * 500000),
            "value_info": m.put(7, m.put(13, b"") * 500000),
            "function": m.put(7, b"") + m.put(25, b"") * 330000,
            "attribute": m.put(7, m.put(1, m.put(4, "Relu") + m.put(5, b"") * 500000)),
            "dims": m.put(7, m.put(11, m.put(1, "x") + m.put(2, m.put(1, num_shape(500000))))),
            "opset": m.put(7, b"") + m.put(8, b"") * 500000,
            "metadata": m.put(7, b"") + m.put(14, b"") * 500000,
            "tensors": m.put(7, m.put(1, m.put(4, "Relu") + m.put(5, m.put(10, b"") * 500000))),
            "mixed": m.put(7, (m.put(1, b"") + m.put(13, b"")) * 250000),
        }
        for name, body in empty.items():
            with self.subTest(name):
                self.assertLess(len(body), 1100000)
                codes = (0,) if name == "metadata" else (1, 3)  # nothing forbids those
                self.refused(m.num(1, 8) + body + m.put(8, m.num(2, 17)), codes=codes)

    def test_dense_files_are_read(self):
        # The densest structure exporters write is far from the bound.
        nodes = [m.node("Relu", ["v%d" % i], ["v%d" % (i + 1)]) for i in range(3000)]
        data = m.model(m.Graph(nodes, [m.value("v0", m.tensor_type(m.FLOAT, [1]))],
                               [m.value("v3000", m.tensor_type(m.FLOAT, [1]))]))
        self.nori("check", self.file("dense.onnx", data))


def num_shape(n):
    return m.num(1, 1) + m.put(2, m.put(1, b"") * n)


if __name__ == "__main__":
    case.main()
