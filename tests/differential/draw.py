"""draw.py: what a table entry draws one case with: shapes, types, values, attributes.

An entry is a function of one Draw. It adds inputs, attributes and the number of outputs; what it
does not say has a sensible default. Everything comes from the seed, so a case is (operator, seed,
size); a smaller size gives smaller shapes of the same kind, which is how a disagreement shrinks."""
import math
import random
import struct

import wire
from wire import (BFLOAT16, BOOL, DOUBLE, FLOAT, FLOAT16, INT8, INT16, INT32, INT64, STRING, UINT8,
                  UINT16, UINT32, UINT64, Tensor)

FLOATS = (FLOAT, FLOAT, FLOAT, DOUBLE, FLOAT16)
FLOATS_BF = FLOATS + (BFLOAT16,)
SIGNED = (INT8, INT16, INT32, INT64)
UNSIGNED = (UINT8, UINT16, UINT32, UINT64)
INTS = SIGNED + UNSIGNED
NUMERIC = FLOATS + INTS
MOVABLE = NUMERIC + (BOOL, STRING)
RANGES = {INT8: (-128, 127), INT16: (-2**15, 2**15 - 1), INT32: (-2**31, 2**31 - 1),
          INT64: (-2**63, 2**63 - 1), UINT8: (0, 255), UINT16: (0, 2**16 - 1),
          UINT32: (0, 2**32 - 1), UINT64: (0, 2**64 - 1), wire.INT4: (-8, 7), wire.UINT4: (0, 15)}
IS_FLOAT = (FLOAT, DOUBLE, FLOAT16, BFLOAT16)
WORDS = ("", "a", "b", "ab", "A", "1", "-1", "2.5", "zebra", "Straße", "a b", "NaN")
TOLERANCE = {FLOAT: (1e-5, 1e-4), DOUBLE: (1e-9, 1e-7), FLOAT16: (2e-3, 4e-3),
             BFLOAT16: (2e-2, 2e-2)}


def product(shape):
    n = 1
    for d in shape:
        n *= d
    return n


class Skip(Exception):
    """This draw makes no legal case; the next seed is taken."""


class Draw:
    def __init__(self, op, domain, seed, size):
        self.rng = random.Random("%s/%s/%d/%d" % (domain, op, seed, size))
        self.key, self.domain, self.seed, self.size = op, domain, seed, size
        self.op, self.illegal = op.rstrip("!"), op.endswith("!")
        self.inputs, self.attributes, self.outputs = [], {}, 1
        self.opset, self.atol, self.rtol = None, None, None
        self.imports = {}
        self.output_types = {}
        self.special = self.chance(0.25)
        self.unsized = self.pick(0, 0, 1, 2)  # of each declared size: none, every other, all unknown
        self.notes = {}

    # -- plain choices
    def chance(self, p):
        return self.rng.random() < p

    def pick(self, *choices):
        if len(choices) == 1 and isinstance(choices[0], (list, tuple)):
            choices = choices[0]
        return self.rng.choice(choices)

    def int(self, low, high):
        return self.rng.randint(low, high)

    def uniform(self, low, high):
        return self.rng.uniform(low, high)

    def axis(self, rank):
        """An axis, from the front or from the back."""
        a = self.int(0, rank - 1)
        return a - rank if self.chance(0.4) else a

    # -- shapes
    def dim(self, low=0):
        """Mostly small, often 1, sometimes 0 where allowed."""
        if low == 0 and self.chance(0.04):
            return 0
        if self.chance(0.2):
            return max(1, low)
        return self.int(max(1, low), max(self.size, low, 1))

    def shape(self, low=0, high=4, least=0):
        high = min(high, max(low, self.size))
        return [self.dim(least) for _ in range(self.int(low, high))]

    def broadcast(self, count, high=4):
        """Shapes that broadcast to one."""
        full = self.shape(0, high)
        shapes = []
        for _ in range(count):
            s = full[self.int(0, len(full)):] if self.chance(0.4) else list(full)
            shapes.append([1 if self.chance(0.2) else d for d in s])
        return shapes

    # -- values
    def values(self, kind, n, low=None, high=None, special=None, integral=False):
        special = self.special if special is None else special
        if kind == STRING:
            return [self.pick(WORDS) for _ in range(n)]
        if kind == BOOL:
            return [self.chance(0.5) for _ in range(n)]
        if kind in IS_FLOAT:
            return [self._real(kind, low, high, special, integral) for _ in range(n)]
        if kind in (wire.F8E4M3FN, wire.F8E4M3FNUZ, wire.F8E5M2, wire.F8E5M2FNUZ):
            return [self.int(0, 255) for _ in range(n)]
        least, most = RANGES[kind]
        low = least if low is None else max(low, least)
        high = most if high is None else min(high, most)
        narrow = self.chance(0.7)
        low, high = (max(low, -9), min(high, 9)) if narrow and low <= 0 <= high else (low, high)
        return [self.int(low, high) for _ in range(n)]

    def _real(self, kind, low, high, special, integral):
        if special and self.chance(0.2):
            v = self.pick(0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 1e30, -1e-30)
            v = math.copysign(65504.0, v) if kind == FLOAT16 and abs(v) == 1e30 else v
            if (low is None or v >= low) and (high is None or v <= high):
                return v
        low, high = -4 if low is None else low, 4 if high is None else high
        v = self.uniform(low, high)
        if integral or self.chance(0.2):
            v = float(min(max(round(v * 2) / 2 if not integral else round(v), math.ceil(low)),
                          math.floor(high)))
        return self.rounded(kind, v)

    @staticmethod
    def rounded(kind, v):
        """v as the nearest value of the type."""
        if kind == FLOAT:
            return wire.to_float(v)
        if kind == FLOAT16:
            return struct.unpack("<e", struct.pack("<e", v))[0]
        if kind == BFLOAT16:
            return wire.from_bfloat16(wire.to_bfloat16(v))
        return v

    # -- what the case is made of
    def input(self, kind, shape, values=None, const=None, **limits):
        """Adds an input and returns it; values may be a list. const: an initializer (None: by
        chance)."""
        n = product(shape)
        if values is None:
            values = self.values(kind, n, **limits)
        t = Tensor(kind, shape, values)
        self.inputs.append((t, self.chance(0.3) if const is None else const))
        return t

    def ints(self, values, kind=INT64, const=None):
        return self.input(kind, [len(values)], values, const)

    def scalar(self, kind, value, const=None):
        return self.input(kind, self.pick([], [1]) if False else [], [value], const)

    def group(self, is_map, items):
        self.inputs.append((wire.Group(is_map, items), False))

    def absent(self):
        self.inputs.append((None, False))

    def attr(self, name, value):
        self.attributes[name] = value
        return value

    def maybe(self, name, value, p=0.6):
        """Sets the attribute by chance; returns whether it did."""
        if self.chance(p):
            self.attributes[name] = value
            return True
        return False

    def tolerance(self, atol, rtol):
        self.atol, self.rtol = atol, rtol

    def exact(self):
        """The same bits are wanted, NaN and the sign of zero included."""
        self.atol = self.rtol = -1

    # -- the result
    def weight(self):
        """How large a case is, for finding the smallest."""
        return (sum(len(t.values) for t, _ in self.inputs if t is not None)
                + len(self.attributes) + len(self.inputs))

    def model(self):
        while self.inputs and self.inputs[-1][0] is None:
            self.inputs.pop()
        names, initializers, inputs = [], {}, {}
        for i, (t, const) in enumerate(self.inputs):
            name = "" if t is None else "x%d" % i
            names.append(name)
            if t is not None:
                (initializers if const else inputs)[name] = t
        outputs = ["y%d" % i for i in range(self.outputs)] if isinstance(self.outputs, int) else [
            "y%d" % i if wanted else "" for i, wanted in enumerate(self.outputs)]
        opsets = {"": self.opset or 21}
        if self.domain:
            opsets[self.domain] = self.opset or 3
            opsets[""] = 21
        opsets.update(self.imports)
        node = wire.node(self.op, self.domain, names, outputs, self.attributes)
        out = [(o, self.output_types.get(o)) for o in outputs if o]
        declared = {name: self.declare(name, t) for name, t in inputs.items()}
        graph = wire.graph([node], initializers, declared, out)
        return wire.model(graph, opsets, 11 if opsets[""] > 23 else 10), list(inputs.values())

    def declare(self, name, t):
        """Sizes as they are, or by names that say nothing, so that shapes come with the run."""
        if not self.unsized or not isinstance(t, Tensor):
            return t
        return wire.Unsized(t, ["%s_%d" % (name, i) if i % 2 == 0 or self.unsized == 2 else None
                                for i in range(len(t.shape))])

    def default_tolerance(self):
        """From the least precise type that flows in."""
        kinds = [t.kind for t, _ in self.inputs if isinstance(t, Tensor)]
        best = (0.0, 0.0)
        for k in kinds:
            if k in TOLERANCE and TOLERANCE[k] > best:
                best = TOLERANCE[k]
        return best

    def tolerances(self):
        a, r = self.default_tolerance()
        return (a if self.atol is None else self.atol), (r if self.rtol is None else self.rtol)

    def text(self):
        lines = ["  %s = %r" % (k, v if not isinstance(v, Tensor) else v.text())
                 for k, v in self.attributes.items() if not isinstance(v, wire.Graph)]
        for i, (t, const) in enumerate(self.inputs):
            lines.append("  input %d%s: %s" % (i, " (initializer)" if const else "",
                                               t.text() if t else "absent"))
        return "\n".join(lines)


TABLE = {}


def entry(names, opset=21, domain="", weight=1):
    """Registers a function as the entry of each operator named. opset: one, or a tuple to draw
    from (the newest form and older ones whose meaning differs). A name that ends in "!" makes what is
    not legal."""
    def add(function):
        for name in names.split():
            assert (domain, name) not in TABLE, name
            TABLE[domain, name] = (function, opset, weight)
        return function
    return add


def make(domain, op, seed, size):
    """The drawn case; None when the entry makes no legal one for this seed."""
    function, opset, _ = TABLE[domain, op]
    d = Draw(op, domain, seed, size)
    d.opset = d.pick(opset) if isinstance(opset, tuple) else opset
    try:
        function(d)
    except Skip:
        return None
    return d
