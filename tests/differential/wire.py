"""wire.py: one-node ONNX models and tensors as bytes, with nothing but the standard library."""
import struct

FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE = range(1, 12)
UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16 = range(12, 17)
UINT4, INT4 = 21, 22
F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ = 17, 18, 19, 20
NAMES = {FLOAT: "float", UINT8: "uint8", INT8: "int8", UINT16: "uint16", INT16: "int16",
         INT32: "int32", INT64: "int64", STRING: "string", BOOL: "bool", FLOAT16: "float16",
         DOUBLE: "double", UINT32: "uint32", UINT64: "uint64", BFLOAT16: "bfloat16",
         UINT4: "uint4", INT4: "int4", F8E4M3FN: "f8e4m3fn", F8E4M3FNUZ: "f8e4m3fnuz",
         F8E5M2: "f8e5m2", F8E5M2FNUZ: "f8e5m2fnuz", COMPLEX64: "complex64"}
_CODE = {FLOAT: "f", UINT8: "B", INT8: "b", UINT16: "H", INT16: "h", INT32: "i", INT64: "q",
         BOOL: "?", FLOAT16: "e", DOUBLE: "d", UINT32: "I", UINT64: "Q"}


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def data(field, b):
    b = b.encode() if isinstance(b, str) else b
    return varint(field << 3 | 2) + varint(len(b)) + b


def real(field, f):
    return varint(field << 3 | 5) + struct.pack("<f", f)


def to_float(v):
    """A Python float as the nearest float32: infinite past the largest."""
    try:
        return struct.unpack("<f", struct.pack("<f", v))[0]
    except OverflowError:
        return float("inf") if v > 0 else float("-inf")


def to_bfloat16(v):
    bits = struct.unpack("<I", struct.pack("<f", to_float(v)))[0]
    if v != v:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def from_bfloat16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def pack(kind, values):
    """Values as the raw bytes of a tensor of this type; float8 values are given as bit patterns."""
    if kind == BFLOAT16:
        return struct.pack("<%dH" % len(values), *map(to_bfloat16, values))
    if kind in (UINT4, INT4):
        nibbles = [v & 15 for v in values] + [0] * (len(values) % 2)
        return bytes(nibbles[i] | nibbles[i + 1] << 4 for i in range(0, len(nibbles), 2))
    if kind in (F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ):
        return bytes(values)
    if kind == COMPLEX64:
        return struct.pack("<%df" % (2 * len(values)), *[p for v in values for p in (v.real, v.imag)])
    if kind == FLOAT:
        values = [to_float(v) for v in values]
    return struct.pack("<%d%s" % (len(values), _CODE[kind]), *values)


class Tensor:
    """Type, shape and values (numbers, bytes for strings, bit patterns for float8)."""

    def __init__(self, kind, shape, values):
        self.kind, self.shape, self.values = kind, list(shape), list(values)
        if kind == STRING:
            self.values = [v.encode() if isinstance(v, str) else v for v in self.values]

    def proto(self, name=""):
        out = b"".join(number(1, d) for d in self.shape) + number(2, self.kind)
        if self.kind == STRING:
            out += b"".join(data(6, v) for v in self.values)
        else:
            out += data(9, pack(self.kind, self.values))
        return out + data(8, name)

    def type_proto(self, names=None):
        """names: for each dimension None or what it is called instead of its size."""
        dims = b"".join(data(1, data(2, names[i]) if names and names[i] else number(1, d))
                        for i, d in enumerate(self.shape))
        return data(1, number(1, self.kind) + data(2, dims))

    def text(self):
        some = " ".join(str(v) for v in self.values[:40])
        return "%s%s %s%s" % (NAMES.get(self.kind, self.kind), self.shape, some,
                              " ..." if len(self.values) > 40 else "")


class Group:
    """A sequence or map of tensors: what cannot be an initializer."""

    def __init__(self, is_map, items):
        self.is_map, self.items = is_map, items
        self.values = [v for t in items for v in t.values]

    def type_proto(self):
        if self.is_map:
            scalar = data(1, number(1, self.items[1].kind))
            return data(5, number(1, self.items[0].kind) + data(2, scalar))
        return data(4, data(1, data(1, number(1, self.items[0].kind))))

    def text(self):
        return ("map" if self.is_map else "sequence") + " {%s}" % "; ".join(
            t.text() for t in self.items)


class Unsized:
    """A tensor declared with names for some of its dimensions."""

    def __init__(self, tensor, names):
        self.tensor, self.names = tensor, names

    def type_proto(self):
        return self.tensor.type_proto(self.names)


class Graph:
    """A subgraph attribute: already serialized."""

    def __init__(self, proto):
        self.proto = proto


def attribute(name, value):
    """Floats make FLOAT, ints INT, str STRING, lists the plural of what they hold."""
    if isinstance(value, Tensor):
        return data(1, name) + number(20, 4) + data(5, value.proto())
    if isinstance(value, Graph):
        return data(1, name) + number(20, 5) + data(6, value.proto)
    if isinstance(value, float):
        return data(1, name) + number(20, 1) + real(2, to_float(value))
    if isinstance(value, int):
        return data(1, name) + number(20, 2) + number(3, int(value))
    if isinstance(value, (str, bytes)):
        return data(1, name) + number(20, 3) + data(4, value)
    first = value[0] if value else 0
    if isinstance(first, float):
        return data(1, name) + number(20, 6) + b"".join(real(7, to_float(v)) for v in value)
    if isinstance(first, int):
        return data(1, name) + number(20, 7) + b"".join(number(8, v) for v in value)
    return data(1, name) + number(20, 8) + b"".join(data(9, v) for v in value)


def value_info(name, type_proto=None):
    return data(1, name) + (data(2, type_proto) if type_proto else b"")


def node(op, domain, inputs, outputs, attributes):
    return (b"".join(data(1, n) for n in inputs) + b"".join(data(2, n) for n in outputs)
            + data(3, "_".join([op] + outputs[:1])) + data(4, op)
            + b"".join(data(5, attribute(n, v)) for n, v in attributes.items()) + data(7, domain))


def graph(nodes, initializers, inputs, outputs):
    """initializers and inputs: name to Tensor or Group; outputs: names or (name, type proto)."""
    outputs = [o if isinstance(o, tuple) else (o, None) for o in outputs]
    return (b"".join(data(1, n) for n in nodes) + data(2, "case")
            + b"".join(data(5, t.proto(n)) for n, t in initializers.items())
            + b"".join(data(11, value_info(n, t.type_proto())) for n, t in inputs.items())
            + b"".join(data(12, value_info(n, t)) for n, t in outputs))


def model(graph_proto, opsets, ir=10):
    return (number(1, ir) + data(2, "differential") + data(7, graph_proto)
            + b"".join(data(8, data(1, d) + number(2, v)) for d, v in opsets.items()))
