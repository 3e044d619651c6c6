"""Writes small ONNX files, byte by byte: tests of the command need no onnx package, and can make
files that no package would."""
import struct

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL = 1, 2, 3, 6, 7, 8, 9


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def num(field, n):
    return varint(field << 3) + varint(n)


def put(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, elem, dims, raw):
    return (b"".join(num(1, d) for d in dims) + num(2, elem) + (put(8, name) if name else b"")
            + put(9, raw))


def strings(name, dims, items):
    return (b"".join(num(1, d) for d in dims) + num(2, STRING)
            + b"".join(put(6, i) for i in items) + put(8, name))


def floats(name, dims, values):
    return tensor(name, FLOAT, dims, struct.pack("<%df" % len(values), *values))


def ints(name, dims, values):
    return tensor(name, INT64, dims, struct.pack("<%dq" % len(values), *values))


def tensor_type(elem, dims):
    """dims: numbers, names, None for any size; the whole None for any rank."""
    shape = b""
    if dims is not None:
        shape = put(2, b"".join(
            put(1, num(1, d) if isinstance(d, int) else put(2, d) if d else b"") for d in dims))
    return put(1, num(1, elem) + shape)


def sequence_type(of):
    return put(4, put(1, of))


def optional_type(of):
    return put(9, put(1, of))


def value(name, type_):
    return put(1, name) + put(2, type_)


def attr(name, v):
    if isinstance(v, float):
        return put(1, name) + varint(2 << 3 | 5) + struct.pack("<f", v) + num(20, 1)
    if isinstance(v, int):
        return put(1, name) + num(3, v) + num(20, 2)
    if isinstance(v, str):
        return put(1, name) + put(4, v) + num(20, 3)
    if isinstance(v, (list, tuple)):
        return put(1, name) + b"".join(num(8, i) for i in v) + num(20, 7)
    if isinstance(v, Graph):
        return put(1, name) + put(6, v.data) + num(20, 5)
    return put(1, name) + put(5, v) + num(20, 4)  # a tensor


def node(op, inputs, outputs, name="", domain="", **attrs):
    return (b"".join(put(1, i) for i in inputs) + b"".join(put(2, o) for o in outputs)
            + (put(3, name) if name else b"") + put(4, op) + (put(7, domain) if domain else b"")
            + b"".join(put(5, attr(k, v)) for k, v in attrs.items()))


class Graph:
    def __init__(self, nodes, inputs, outputs, initializers=(), name="g"):
        self.data = (b"".join(put(1, n) for n in nodes) + put(2, name)
                     + b"".join(put(5, t) for t in initializers)
                     + b"".join(put(11, v) for v in inputs)
                     + b"".join(put(12, v) for v in outputs))


def model(graph, opset=17, ir=8, opsets=(), metadata=()):
    imports = put(8, num(2, opset))
    for domain, version in opsets:
        imports += put(8, put(1, domain) + num(2, version))
    return (num(1, ir) + put(2, "hand") + put(7, graph.data) + imports
            + b"".join(put(14, put(1, k) + put(2, v)) for k, v in metadata))


def one_node(op, x_dims, y_dims, elem=FLOAT, initializers=(), extra_inputs=(), opset=17, **attrs):
    """x -> op -> y."""
    return model(Graph([node(op, ["x", *extra_inputs], ["y"], name="n", **attrs)],
                       [value("x", tensor_type(elem, x_dims))],
                       [value("y", tensor_type(elem, y_dims))], initializers), opset)
