"""ops_math.py: elementwise operators, comparisons, logic, bits, activations, matrix products."""
from draw import (BFLOAT16, BOOL, DOUBLE, FLOAT, FLOATS, FLOAT16, INT32, INT64, INTS, MOVABLE, NUMERIC,
                  SIGNED, STRING, UINT64, UNSIGNED, Skip, entry, product)
from wire import (F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, INT4, INT8, UINT4, UINT8, Tensor)


def unary(names, kinds, low=None, high=None, opset=21, **attributes):
    """x -> y of one shape; attributes: name to (low, high) of a float."""
    @entry(names, opset=opset)
    def _(d):
        d.input(d.pick(kinds), d.shape(), low=low, high=high)
        for name, (least, most) in attributes.items():
            d.maybe(name, float(round(d.uniform(least, most), 3)))


unary("Abs Sign", NUMERIC, opset=(13, 21))
unary("Neg", FLOATS + SIGNED)
unary("Ceil Floor Exp Tanh Sigmoid Erf Cos Sin Tan Atan Asinh Softplus Softsign Reciprocal", FLOATS,
      opset=(13, 21, 22))
unary("Log Sqrt", FLOATS, opset=(13, 21))
unary("Acos Asin Atanh", FLOATS, low=-1, high=1, opset=(21, 22))
unary("Acosh", FLOATS, low=1, high=20, opset=(21, 22))
unary("Cosh Sinh", FLOATS, opset=(21, 22))
unary("Relu", FLOATS + SIGNED)
unary("Round", FLOATS, opset=(21, 22))
unary("HardSwish Mish", FLOATS, opset=(21, 22))
unary("Elu", FLOATS, opset=(21, 22), alpha=(0.1, 3))
unary("Celu", (FLOAT,), alpha=(0.1, 3))
unary("Selu", FLOATS, opset=(21, 22), alpha=(0.1, 3), gamma=(0.5, 2))
unary("HardSigmoid", FLOATS, opset=(21, 22), alpha=(0.1, 1), beta=(-1, 1))
unary("LeakyRelu", FLOATS, opset=(15, 16, 21), alpha=(-1, 1))
unary("ThresholdedRelu", FLOATS, opset=(21, 22), alpha=(-1, 2))
unary("Shrink", (FLOAT, FLOAT16) + INTS, low=-99, high=99, bias=(0, 2), lambd=(0, 2))
unary("Swish", FLOATS, opset=24, alpha=(0.1, 3))


@entry("Gelu", opset=20)
def gelu(d):
    d.input(d.pick(FLOATS), d.shape())
    d.maybe("approximate", d.pick("none", "tanh"))


@entry("IsNaN", opset=(13, 20))
def is_nan(d):
    d.special = True
    d.input(d.pick(FLOATS), d.shape())


@entry("IsInf", opset=(10, 20))
def is_inf(d):
    d.special = True
    d.input(d.pick((FLOAT, DOUBLE) if d.opset == 10 else FLOATS), d.shape())
    d.maybe("detect_positive", d.int(0, 1))
    d.maybe("detect_negative", d.int(0, 1))


@entry("Not")
def logical_not(d):
    d.input(BOOL, d.shape())


@entry("BitwiseNot", opset=18)
def bitwise_not(d):
    d.input(d.pick(INTS), d.shape())


def binary(names, kinds, opset=21):
    @entry(names, opset=opset)
    def _(d):
        kind = d.pick(kinds)
        for s in d.broadcast(2):
            d.input(kind, s)


binary("Add Sub Mul", NUMERIC, opset=(13, 14, 21))
binary("And Or Xor", (BOOL,))
binary("BitwiseAnd BitwiseOr BitwiseXor", INTS, opset=18)
binary("Less Greater LessOrEqual GreaterOrEqual", NUMERIC, opset=(12, 16, 21))
binary("Equal", NUMERIC + (BOOL, STRING), opset=19)

@entry("PRelu", opset=(9, 16))
def prelu(d):
    kind = d.pick(FLOATS + (INT32, INT64))
    s = d.shape()
    slope = [1 if d.chance(0.3) else n for n in s[d.int(0, len(s)):]]
    d.input(kind, s)
    d.input(kind, slope)


@entry("Div", opset=(13, 14, 21))
def div(d):
    kind = d.pick(NUMERIC)
    a, b = d.broadcast(2)
    d.input(kind, a, special=False)
    values = d.values(kind, product(b))
    d.input(kind, b, values if kind in FLOATS else [v or 3 for v in values])


@entry("Mod", opset=(10, 13))
def mod(d):
    kind = d.pick(NUMERIC)
    a, b = d.broadcast(2)
    if kind in FLOATS:
        d.attr("fmod", 1)
    else:
        d.maybe("fmod", d.int(0, 1))
    d.input(kind, a)
    values = d.values(kind, product(b))
    d.input(kind, b, values if kind in FLOATS else [v or 3 for v in values])


@entry("Pow", opset=(12, 13, 15))
def power(d):
    base = d.pick(FLOAT, DOUBLE, FLOAT16, INT32, INT64)
    exponent = d.pick(FLOAT, DOUBLE, INT32, INT64) if base != FLOAT16 else FLOAT16
    a, b = d.broadcast(2)
    d.input(base, a, low=-4, high=4)
    whole = base in (INT32, INT64)  # NaN or a fraction as an integer is not defined
    d.input(exponent, b, low=0 if whole else -3, high=3, integral=whole or d.chance(0.6), special=False)


@entry("BitShift", opset=11)
def bit_shift(d):
    kind = d.pick(UNSIGNED)
    a, b = d.broadcast(2)
    d.attr("direction", d.pick("LEFT", "RIGHT"))
    d.input(kind, a)
    d.input(kind, b, low=0, high=7)


@entry("Max Min", opset=(8, 12, 13))
def extremes(d):
    kind = d.pick(NUMERIC if d.opset > 8 else (FLOAT, DOUBLE))
    for s in d.broadcast(d.int(1, 4)):
        d.input(kind, s)


@entry("Sum Mean", opset=(8, 13))
def sums(d):
    kind = d.pick(FLOAT, DOUBLE)
    for s in d.broadcast(d.int(1, 4)):
        d.input(kind, s)


@entry("Clip", opset=(6, 11, 12, 13))
def clip(d):
    kind = d.pick(NUMERIC if d.opset > 11 else (FLOAT,))
    d.input(kind, d.shape())
    low, high = sorted(d.values(kind, 2, special=False))
    if d.opset == 6:
        d.maybe("min", float(low))
        d.maybe("max", float(high))
        return
    if d.chance(0.7):
        d.scalar(kind, low)
    else:
        d.absent()
    if d.chance(0.7):
        d.scalar(kind, high)


@entry("Where", opset=(9, 16))
def where(d):
    kind = d.pick(MOVABLE if d.opset == 16 else (FLOAT, INT32, INT64, UINT8, STRING))
    c, a, b = d.broadcast(3)
    d.input(BOOL, c)
    d.input(kind, a)
    d.input(kind, b)


@entry("MatMul", opset=(9, 13), weight=2)
def matmul(d):
    kind = d.pick(FLOAT, FLOAT, DOUBLE, INT32, INT64, FLOAT16)
    m, k, n = (d.dim() for _ in range(3))
    a, b = d.broadcast(2, 2)
    form = d.int(0, 5)
    a, b = a + [m, k], b + [k, n]
    if form == 0:
        a = [k]
    if form == 1:
        b = [k]
    d.input(kind, a, low=-4, high=4, special=False)
    d.input(kind, b, low=-4, high=4, special=False)


@entry("Gemm", opset=(9, 11, 13), weight=2)
def gemm(d):
    kind = d.pick(FLOAT, FLOAT, DOUBLE, FLOAT16)
    m, k, n = (d.dim() for _ in range(3))
    ta, tb = d.int(0, 1), d.int(0, 1)
    d.maybe("transA", ta, 1 if ta else 0.3)
    d.maybe("transB", tb, 1 if tb else 0.3)
    d.maybe("alpha", round(d.uniform(-2, 2), 2), 0.4)
    d.maybe("beta", round(d.uniform(-2, 2), 2), 0.4)
    d.input(kind, [k, m] if ta else [m, k], special=False)
    d.input(kind, [n, k] if tb else [k, n], special=False)
    if d.opset < 11 or d.chance(0.7):
        d.input(kind, d.pick([m, n], [n], [1, n], [m, 1], [1], [1, 1], []), special=False)


@entry("Einsum", opset=12)
def einsum(d):
    letters = "abcde"
    sizes = {x: d.dim(1) for x in letters}
    terms = ["".join(d.rng.sample(letters, d.int(1, 3))) for _ in range(d.int(1, 3))]
    used = sorted(set("".join(terms)))
    out = "".join(d.rng.sample(used, d.int(0, len(used))))
    implicit = d.chance(0.2)
    d.attr("equation", ",".join(terms) + ("" if implicit else "->" + out))
    kind = d.pick(FLOAT, DOUBLE, INT32, INT64)
    for t in terms:
        d.input(kind, [sizes[x] for x in t], low=-4, high=4, special=False)


@entry("CumSum", opset=(11, 14))
def cumsum(d):
    s = d.shape(1)
    d.input(d.pick(FLOAT, DOUBLE, INT32, INT64), s, low=-9, high=9, special=False)
    d.scalar(d.pick(INT32, INT64), d.axis(len(s)))
    d.maybe("exclusive", d.int(0, 1))
    d.maybe("reverse", d.int(0, 1))


@entry("CumProd", opset=26)
def cumprod(d):
    s = d.shape(1)
    d.input(d.pick(FLOAT, DOUBLE, INT32, INT64), s, low=-2, high=2, special=False)
    d.scalar(d.pick(INT32, INT64), d.axis(len(s)))
    d.maybe("exclusive", d.int(0, 1))
    d.maybe("reverse", d.int(0, 1))


@entry("Constant", opset=(13, 21))
def constant(d):
    form = d.pick("value", "value_float", "value_int", "value_floats", "value_ints", "value_string",
                  "value_strings")
    s = d.shape()
    kind = d.pick(MOVABLE)
    d.attr(form, {"value": lambda: Tensor(kind, s, d.values(kind, product(s))),
                  "value_float": lambda: 1.5, "value_int": lambda: -7,
                  "value_floats": lambda: [0.5, -2.0], "value_ints": lambda: [3, -4, 5],
                  "value_string": lambda: "word", "value_strings": lambda: ["a", "", "b c"]}[form]())


@entry("Det", opset=(11, 22))
def det(d):
    n = d.dim(1)
    d.input(d.pick(FLOAT, DOUBLE), d.shape(0, 2) + [n, n], special=False)
    d.tolerance(1e-3, 1e-3)


@entry("Trilu", opset=14)
def trilu(d):
    d.input(d.pick(FLOAT, DOUBLE, INT64), d.shape(0, 2) + [d.dim(), d.dim()])
    d.maybe("upper", d.int(0, 1))
    if d.chance(0.7):
        d.scalar(INT64, d.int(-4, 4))


@entry("Range", opset=11)
def arange(d):
    kind = d.pick(FLOAT, DOUBLE, INT32, INT64)
    start, step = d.int(-5, 5), d.pick(-3, -2, -1, 1, 2, 3)
    scale = 0.5 if kind in (FLOAT, DOUBLE) else 1
    for v in (start, start + step * d.int(-2, 5), step):
        d.scalar(kind, v * scale)


EIGHT_BITS = (F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ)


def cast_small(d):
    """Types of eight bits and fewer, from and to what ONNX Runtime has for them."""
    wide = (FLOAT, FLOAT16, BFLOAT16)
    if d.opset > 19 and d.chance(0.4):
        small, wide = d.pick(INT4, UINT4), (FLOAT, FLOAT16, INT8, UINT8, INT32, INT64)
    else:
        small = d.pick(EIGHT_BITS)
        d.maybe("saturate", d.int(0, 1), 0.4)
    other = d.pick(wide)
    s = d.shape()
    if d.chance(0.5):
        d.input(small, s, const=False)
        d.attr("to", other)
    else:
        low, high = (0, 15) if small == UINT4 else (-8, 7) if small == INT4 else (-700, 700)
        d.input(other, s, low=max(low, 0) if other == UINT8 else low, high=high,
                special=False if small in (INT4, UINT4) else None)
        d.attr("to", small)


@entry("Cast CastLike", opset=(13, 19, 21, 23), weight=4)
def cast(d):
    if d.op == "Cast" and d.opset >= 19 and d.chance(0.5):
        return cast_small(d)
    kinds = NUMERIC + (BOOL, BFLOAT16, FLOAT16)
    source, to = d.pick(kinds + (STRING,)), d.pick(kinds + (STRING,))
    if d.op == "CastLike" and d.opset < 15:
        d.opset = 15
    n = d.shape()
    if source == STRING:
        to = d.pick(kinds[:-1] + (STRING,))
        words = ["1", "-2", "3.5", "1e3", "NaN", "INF", "-INF", "+7", "0"]
        if to not in FLOATS:
            words = ["1", "+7", "0"] + (["-2"] if to in SIGNED else [])
        if to in (BOOL, BFLOAT16):
            raise Skip
        d.input(STRING, n, [d.pick(words) for _ in range(product(n))])
    else:
        # what is out of the target's range, or not a number, is not defined for integers
        low = 0 if to in UNSIGNED else None
        special = None if to in FLOATS + (BFLOAT16, STRING) else False
        limit = 100 if source in FLOATS + (BFLOAT16,) or to in (INT8, UINT8, FLOAT16) else None
        if to == STRING and source in FLOATS + (BFLOAT16,):
            # how a number is written is not defined: one that all write alike
            d.input(source, n, [d.int(-40, 40) + 0.5 for _ in range(product(n))])
            d.attributes.update({"to": to} if d.op == "Cast" else {})
            return d.op == "Cast" or d.input(to, [1])
        d.input(source, n, low=low if low == 0 else (-limit if limit else None), high=limit,
                special=special)
    if d.op == "Cast":
        d.attr("to", to)
    else:
        d.input(to, [1], d.values(to, 1))


@entry("BitCast", opset=26)
def bitcast(d):
    groups = ((FLOAT, INT32), (DOUBLE, INT64), (FLOAT16, BFLOAT16), (INT8, UINT8))
    a, b = d.rng.sample(d.pick(groups), 2)
    d.input(a, d.shape())
    d.attr("to", b)
    d.exact()


@entry("Expand", opset=(8, 13))
def expand(d):
    a, b = d.broadcast(2)
    d.input(d.pick(FLOAT, INT64, BOOL, STRING, INT8, FLOAT16), a)
    d.ints(b)


@entry("ConstantOfShape", opset=(9, 20, 21))
def constant_of_shape(d):
    if d.chance(0.8):
        kind = d.pick(NUMERIC + (BOOL,))
        d.attr("value", Tensor(kind, [1], d.values(kind, 1)))
    d.ints(d.shape())


@entry("EyeLike", opset=(9, 22))
def eye_like(d):
    d.input(d.pick(FLOAT, DOUBLE, INT32, INT64), [d.dim(1), d.dim(1)], const=False)
    d.maybe("k", d.int(-4, 4))
    d.maybe("dtype", d.pick(FLOAT, DOUBLE, INT32, INT64, UINT64))
