#!/usr/bin/env python3
"""Writes model.onnx (Y = MovingMean(Relu(X)), window 3, X float32 [rows, 6]) and a case of it,
test_data_set_0, into a folder. ONNX files are protocol buffers: fields by number, so a few lines
write them.

    make_model.py DIR"""
import os
import struct
import sys

FLOAT = 1


def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def block(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def node(op, domain, x, y, attributes=b""):
    return block(1, x) + block(2, y) + block(3, y) + block(4, op) + attributes + block(7, domain)


def value(name, dims):
    shape = b"".join(block(1, number(1, d) if isinstance(d, int) else block(2, d)) for d in dims)
    return block(1, name) + block(2, block(1, number(1, FLOAT) + block(2, shape)))


def tensor(name, dims, values):
    raw = struct.pack("<%df" % len(values), *values)
    return b"".join(number(1, d) for d in dims) + number(2, FLOAT) + block(8, name) + block(9, raw)


def model():
    window = block(5, block(1, "window") + number(20, 2) + number(3, 3))
    graph = (block(1, node("Relu", "", "X", "positive"))
             + block(1, node("MovingMean", "example.nori", "positive", "Y", window))
             + block(2, "moving_mean") + block(11, value("X", ["rows", 6]))
             + block(12, value("Y", ["rows", 4])))
    imports = block(8, number(2, 17)) + block(8, block(1, "example.nori") + number(2, 1))
    return number(1, 8) + block(7, graph) + imports


def main():
    folder = os.path.join(sys.argv[1], "test_data_set_0")
    os.makedirs(folder, exist_ok=True)
    x = [-1, 2, 3, 4, -5, 6, 10, 20, 30, 40, 50, 60]
    positive = [max(v, 0) for v in x]
    y = [sum(positive[r + i:r + i + 3]) / 3 for r in (0, 6) for i in range(4)]
    for path, content in ((os.path.join(sys.argv[1], "model.onnx"), model()),
                          (os.path.join(folder, "input_0.pb"), tensor("X", [2, 6], x)),
                          (os.path.join(folder, "output_0.pb"), tensor("Y", [2, 4], y))):
        with open(path, "wb") as f:
            f.write(content)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_model.py DIR")
    main()
