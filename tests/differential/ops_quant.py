"""ops_quant.py: quantization and integer products."""
from draw import FLOAT, FLOAT16, INT8, INT16, INT32, UINT8, UINT16, RANGES, Skip, entry, product
from ops_nn import spatial_shape, window
from wire import INT4, UINT4

EIGHT = (INT8, UINT8)


def scales(d, shape):
    return d.input(FLOAT, shape, [d.pick(0.5, 0.25, 0.02, 0.013, 1.0, 0.37) for _ in range(product(shape))])


def zero_points(d, kind, shape):
    low, high = RANGES[kind]
    some = [0 if kind == INT32 else d.int(max(low, -20), min(high, 20)) for _ in range(product(shape))]
    return d.input(kind, shape, some)


def layout(d, s):
    """Shape of the scale: per tensor, per axis or blocked; sets axis and block_size."""
    form = d.pick("tensor", "axis", "block") if d.opset >= 21 else d.pick(
        "tensor", "axis") if d.opset >= 13 else "tensor"
    if form == "tensor" or not s:
        return d.pick([], [], [1])
    axis = d.int(0, len(s) - 1)
    d.maybe("axis", axis - len(s) if d.chance(0.4) else axis, 0.5 if axis == 1 else 1)
    if form == "axis":
        return [s[axis]]
    block = d.int(1, s[axis])
    d.attr("block_size", block)
    out = list(s)
    out[axis] = -(-s[axis] // block)
    return out


@entry("QuantizeLinear", opset=(10, 13, 19, 21, 23), weight=3)
def quantize(d):
    s = [d.dim(1) for _ in range(d.int(1, 3))]
    kind = d.pick(EIGHT + ((INT16, UINT16, INT4, UINT4) if d.opset >= 21 else ()))
    d.input(d.pick(FLOAT, FLOAT, INT32 if d.opset < 19 else FLOAT), s, low=-60, high=60, special=False)
    form = layout(d, s)
    scales(d, form)
    if kind != UINT8 or d.chance(0.6):
        zero_points(d, kind, form)


@entry("DequantizeLinear", opset=(10, 13, 19, 21, 23), weight=3)
def dequantize(d):
    s = [d.dim(1) for _ in range(d.int(1, 3))]
    kind = d.pick(EIGHT + (INT32,) + ((INT16, UINT16, INT4, UINT4) if d.opset >= 21 else ()))
    if kind == INT32:
        d.input(kind, s, low=-10**6, high=10**6)
    else:
        d.input(kind, s)
    form = layout(d, s)
    scales(d, form)
    if kind != INT32 and d.chance(0.6):
        zero_points(d, kind, form)
    d.tolerance(1e-6, 1e-6)


@entry("DynamicQuantizeLinear", opset=11)
def dynamic_quantize(d):
    d.input(FLOAT, d.shape(1, least=1), special=False)
    d.outputs = 3


@entry("MatMulInteger", opset=10)
def matmul_integer(d):
    m, k, n = d.dim(), d.dim(1), d.dim()
    a, b = d.pick(EIGHT), d.pick(EIGHT)
    outer = d.shape(0, 2)
    d.input(a, outer + [m, k])
    shared = d.chance(0.5)
    d.input(b, ([] if shared else outer) + [k, n])
    if d.chance(0.6):
        zero_points(d, a, d.pick([], [1]))
        if d.chance(0.6):
            zero_points(d, b, d.pick([], [1], [n]) if shared else [])


@entry("QLinearMatMul", opset=(10, 21))
def qlinear_matmul(d):
    m, k, n = d.dim(1), d.dim(1), d.dim(1)
    a, b, y = d.pick((UINT8, UINT8, UINT8), (UINT8, INT8, UINT8), (INT8, INT8, INT8))
    per = d.pick([], [n])
    d.input(a, [m, k])
    scales(d, [])
    zero_points(d, a, [])
    d.input(b, [k, n])
    scales(d, per)
    zero_points(d, b, per)
    scales(d, [])
    zero_points(d, y, [])
    d.tolerance(1, 0)  # a tie may be rounded from either side: float or double in between


@entry("ConvInteger", opset=10, weight=2)
def conv_integer(d):
    spatial = spatial_shape(d)
    kernel, *_ = window(d, spatial)
    group = d.pick(1, 1, 2)
    c, m = group * d.int(1, 3), group * d.int(1, 3)
    if group > 1:
        d.attr("group", group)
    w = d.pick(EIGHT)
    d.input(UINT8, [d.dim(1), c] + spatial)
    d.input(w, [m, c // group] + kernel)
    if d.chance(0.6):
        zero_points(d, UINT8, [])
        if d.chance(0.6):
            zero_points(d, w, [])


@entry("QLinearConv", opset=10, weight=3)
def qlinear_conv(d):
    spatial = spatial_shape(d)
    kernel, *_ = window(d, spatial)
    group = d.pick(1, 1, 2)
    c, m = group * d.int(1, 3), group * d.int(1, 3)
    if group > 1:
        d.attr("group", group)
    x, w = d.pick((UINT8, UINT8), (UINT8, INT8), (INT8, INT8))
    per = d.pick([], [m])
    d.input(x, [d.dim(1), c] + spatial)
    scales(d, [])
    zero_points(d, x, [])
    d.input(w, [m, c // group] + kernel, const=True)
    d.input(FLOAT, per, [d.pick(0.5, 0.25, 0.02) for _ in range(product(per))], True)
    zp = [0] * product(per) if w == INT8 else [d.int(0, 20)] * product(per)
    d.input(w, per, zp, True)
    d.input(FLOAT, [], [d.pick(1.0, 3.7, 0.5)])
    zero_points(d, x, [])
    if d.chance(0.5):
        d.input(INT32, [m], [d.int(-300, 300) for _ in range(m)], True)
    d.tolerance(1, 0)  # a tie may be rounded from either side
