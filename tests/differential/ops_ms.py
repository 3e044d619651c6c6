"""ops_ms.py: com.microsoft: fused forms, quantized operators, weights of few bits; attention has
ops_ms_attention.py."""
from draw import (BOOL, DOUBLE, FLOAT, INT8, INT16, INT32, INT64, UINT8, UINT16, FLOAT16, Skip, entry, product)
from ops_nn import spatial_shape, window
from ops_quant import EIGHT, scales, zero_points
from wire import INT4, UINT4

MS = "com.microsoft"


def ms(names, weight=1):
    return entry(names, opset=1, domain=MS, weight=weight)


# ---- fused forms

@ms("Gelu QuickGelu")
def gelu(d):
    d.input(FLOAT, d.shape(1), special=False)
    if d.op == "QuickGelu":
        d.maybe("alpha", d.pick(1.702, 1.0, -0.5))
    d.tolerance(1e-4, 1e-3)


@ms("BiasGelu FastGelu")
def bias_gelu(d):
    s = d.shape(1, 4, 1)
    d.input(FLOAT, s, special=False)
    if d.op == "BiasGelu" or d.chance(0.6):
        d.input(FLOAT, s[-1:], special=False)
    d.tolerance(1e-4, 1e-3)


@ms("FusedMatMul TransposeMatMul", 2)
def fused_matmul(d):
    m, k, n = d.dim(1), d.dim(1), d.dim(1)
    rank = d.int(2, 4)
    batch = [d.dim(1) for _ in range(rank - 2)]
    def side(rows, columns, letter):
        trans, trans_batch = d.chance(0.5), d.op == "FusedMatMul" and d.chance(0.4)
        shape = list(batch) + ([columns, rows] if trans else [rows, columns])
        if trans_batch and rank > 2:
            shape = [shape[rank - 2]] + shape[:rank - 2] + [shape[-1]]
        d.attr("trans" + letter, int(trans))
        if d.op == "FusedMatMul":
            d.attr("transBatch" + letter, int(trans_batch and rank > 2))
        return shape
    a, b = side(m, k, "A"), side(k, n, "B")
    if d.attributes.get("transBatchA") != d.attributes.get("transBatchB"):
        raise Skip
    kind = d.pick(FLOAT, FLOAT, DOUBLE)
    d.input(kind, a, special=False)
    d.input(kind, b, special=False)
    d.maybe("alpha", round(d.uniform(-2, 2), 3))


@ms("FusedGemm")
def fused_gemm(d):
    m, k, n = (d.dim(1) for _ in range(3))
    ta, tb = d.int(0, 1), d.int(0, 1)
    d.attr("transA", ta)
    d.attr("transB", tb)
    d.maybe("alpha", round(d.uniform(-2, 2), 2), 0.4)
    d.maybe("beta", round(d.uniform(-2, 2), 2), 0.4)
    name = d.attr("activation", d.pick("Relu", "Sigmoid", "Tanh", "LeakyRelu"))
    if name == "LeakyRelu":
        d.attr("activation_alpha", 0.1)
    d.input(FLOAT, [k, m] if ta else [m, k], special=False)
    d.input(FLOAT, [n, k] if tb else [k, n], special=False)
    if d.chance(0.7):
        d.input(FLOAT, d.pick([m, n], [n], [1, n]), special=False)


@ms("FusedConv", 2)
def fused_conv(d):
    spatial = spatial_shape(d)
    kernel, dilations, *_ = window(d, spatial)
    if max(dilations) > 1 and d.attributes.get("auto_pad", "").startswith("SAME"):
        raise Skip
    group = d.pick(1, 1, 2)
    c, m = group * d.int(1, 3), group * d.int(1, 3)
    d.attr("group", group)
    name = d.attr("activation", d.pick("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid"))
    if name in ("LeakyRelu", "Clip", "HardSigmoid"):
        d.attr("activation_params", {"LeakyRelu": [0.1], "Clip": [-1.0, 1.5],
                                     "HardSigmoid": [0.3, 0.4]}[name])
    d.input(FLOAT, [d.dim(1), c] + spatial, special=False)
    d.input(FLOAT, [m, c // group] + kernel, special=False)
    if d.chance(0.6):
        d.input(FLOAT, [m], special=False)
    d.tolerance(1e-4, 1e-3)


@ms("SkipLayerNormalization SkipSimplifiedLayerNormalization", 2)
def skip_norm(d):
    b, s, h = d.int(1, 2), d.int(1, 3), d.int(1, 6)
    d.input(FLOAT, [b, s, h], special=False)
    d.input(FLOAT, [b, s, h], special=False)
    d.input(FLOAT, [h], special=False)
    if d.op == "SkipLayerNormalization":
        if d.chance(0.6):
            d.input(FLOAT, [h], special=False)
        else:
            d.absent()
    if d.chance(0.5):
        d.input(FLOAT, [h], special=False)
    d.attr("epsilon", d.pick(1e-3, 0.1))
    d.outputs = d.pick([1], [1, 0, 0, 1])
    d.tolerance(1e-4, 1e-3)


@ms("Inverse")
def inverse(d):
    n = d.int(1, 3)
    outer = d.shape(0, 2, 1)
    values = []
    for _ in range(product(outer)):  # a heavy diagonal: never near singular
        values += [float(d.int(-2, 2)) + (8.0 if i == j else 0) for i in range(n) for j in range(n)]
    d.input(d.pick(FLOAT, DOUBLE), outer + [n, n], values)
    d.tolerance(1e-5, 1e-4)


@ms("CropAndResize")
def crop_and_resize(d):
    n, c, h, w, rois = d.int(1, 2), d.int(1, 2), d.int(2, 6), d.int(2, 6), d.int(1, 3)
    d.input(FLOAT, [n, c, h, w], special=False)
    d.input(FLOAT, [rois, 4], [d.uniform(-0.1, 1.1) for _ in range(rois * 4)])
    d.input(INT32, [rois], [d.int(0, n - 1) for _ in range(rois)])
    d.ints([d.int(1, 4), d.int(1, 4)], INT32)
    d.maybe("mode", d.pick("bilinear", "nearest"))
    d.maybe("extrapolation_value", 2.0)
    d.tolerance(1e-4, 1e-3)


# ---- recurrence with weights of 8 bits

@ms("DynamicQuantizeLSTM", 2)
def dynamic_lstm(d):
    """One entry a batch: ONNX Runtime finds one range for the states of several."""
    length, size, hidden = d.int(1, 4), d.int(1, 6), d.int(1, 6)
    direction = d.pick("forward", "reverse", "bidirectional")
    n, kind = 2 if direction == "bidirectional" else 1, d.pick(INT8, UINT8)
    per_column = d.chance(0.5)
    d.attr("direction", direction)
    d.attr("hidden_size", hidden)
    d.input(FLOAT, [length, 1, size], low=-2, high=2, special=False)
    for depth in (size, hidden):
        shape = [n, depth, 4 * hidden]
        d.input(kind, shape, [d.int(0, 127) - (64 if kind == INT8 else 0) for _ in range(product(shape))], True)
    if d.chance(0.6):
        d.input(FLOAT, [n, 8 * hidden], low=-1, high=1, special=False, const=True)
    else:
        d.absent()
    d.absent()
    for _ in range(2):
        if d.chance(0.5):
            d.input(FLOAT, [n, 1, hidden], low=-1, high=1, special=False)
        else:
            d.absent()
    if d.chance(0.3):
        d.input(FLOAT, [n, 3 * hidden], low=-1, high=1, special=False, const=True)
    else:
        d.absent()
    shape = [n, 4 * hidden] if per_column else [n]
    zero = 0 if kind == INT8 and per_column else d.int(0, 90)
    for _ in range(2):
        d.input(FLOAT, shape, low=0.001, high=0.02, special=False, const=True)
        d.input(kind, shape, [zero] * product(shape), True)
    d.outputs = 3
    d.tolerance(0.02, 0)  # a tie may be rounded from either side, and a step goes on


# ---- weights of few bits

@ms("MatMulNBits", 6)
def nbits(d):
    k, n, bits = d.int(1, 100), d.int(1, 6), d.pick(2, 4, 4, 8)
    block = d.pick(16, 32, 64, 128, 256)
    blocks = (k + block - 1) // block
    kind = d.pick(FLOAT, FLOAT, FLOAT16)
    grouped = bits == 4 and d.chance(0.3)  # ONNX Runtime reads g_idx right for these alone
    k = blocks * block if grouped else k
    d.attributes.update(K=k, N=n, block_size=block)
    if bits != 4 or d.chance(0.5):
        d.attributes["bits"] = bits
    d.input(kind, d.shape(1, 2, 1) + [k], low=-1, high=1, special=False)
    blob = block * bits // 8
    d.input(UINT8, [n, blocks, blob], [d.int(0, 255) for _ in range(n * blocks * blob)], True)
    d.input(kind, [n, blocks], low=0.01, high=0.2, special=False, const=True)
    how = "none" if grouped else d.pick("none", "packed", "float" if bits == 4 else "packed")
    if how == "packed":
        row = (blocks * bits + 7) // 8
        d.input(UINT8, [n, row], [d.int(0, 255) for _ in range(n * row)], True)
    elif how == "float":
        d.input(kind, [n, blocks], low=0, high=2 ** bits - 1, special=False, const=True)
    else:
        d.absent()
    if grouped:
        d.input(INT32, [k], [d.int(0, blocks - 1) for _ in range(k)], True)
    else:
        d.absent()
    if d.chance(0.4):
        d.input(kind, [n], special=False)
    d.tolerance(*((2e-3, 2e-3) if kind == FLOAT else (0.5, 2e-2)))


@ms("GatherBlockQuantized", 2)
def gather_block(d):
    block = d.pick(16, 32)
    rows, blocks = d.int(1, 5), d.int(1, 2)
    kind = d.pick(INT4, UINT4)
    d.attr("block_size", block)
    d.attr("gather_axis", 0)
    d.attr("quantize_axis", 1)
    d.input(kind, [rows, blocks * block], d.values(kind, rows * blocks * block), True)
    i = d.shape(1, 2, 1)
    d.input(d.pick(INT32, INT64), i, [d.int(0, rows - 1) for _ in range(product(i))], False)
    d.input(FLOAT, [rows, blocks], low=0.01, high=0.5, special=False, const=True)
    if d.chance(0.5):
        d.input(kind, [rows, blocks], d.values(kind, rows * blocks), True)


# ---- quantized operators

def one_step(d):
    """A tie may be rounded from either side: float or double in between."""
    d.tolerance(1, 0)


def quantized(d, kind, shape):
    d.input(kind, shape)
    d.input(FLOAT, [], [d.pick(0.5, 0.02, 0.13)])
    zero_points(d, kind, [])


def target(d, kind):
    d.input(FLOAT, [], [d.pick(0.5, 0.05, 1.7)])
    zero_points(d, kind, [])


@ms("QLinearAdd QLinearMul", 2)
def qlinear_binary(d):
    kind = d.pick(EIGHT)
    for s in d.broadcast(2):
        quantized(d, kind, s)
    target(d, kind)
    one_step(d)


@ms("QLinearLeakyRelu QLinearSigmoid")
def qlinear_unary(d):
    kind = d.pick(EIGHT)
    quantized(d, kind, d.shape(1))
    d.input(FLOAT, [], [d.pick(0.05, 1 / 256)])
    zero_points(d, kind, [])
    if d.op == "QLinearLeakyRelu":
        d.attr("alpha", d.pick(0.1, 0.5))
    one_step(d)


@ms("QLinearAveragePool")
def qlinear_pool(d):
    spatial = spatial_shape(d)
    kernel, dilations, *_ = window(d, spatial)
    if max(dilations) > 1 or d.attributes.get("auto_pad", "").startswith("SAME"):
        raise Skip
    d.attr("kernel_shape", kernel)
    d.maybe("count_include_pad", d.int(0, 1))
    kind = d.pick(EIGHT)
    quantized(d, kind, [d.dim(1), d.dim(1)] + spatial)
    target(d, kind)
    one_step(d)


@ms("QLinearGlobalAveragePool")
def qlinear_global_pool(d):
    kind = d.pick(EIGHT)
    quantized(d, kind, [d.dim(1), d.dim(1), d.dim(1), d.dim(1)])
    target(d, kind)
    d.attr("channels_last", 0)
    one_step(d)


@ms("QLinearConcat")
def qlinear_concat(d):
    kind = d.pick(EIGHT)
    s = d.shape(1, 3, 1)
    axis = d.int(0, len(s) - 1)
    target(d, kind)
    for _ in range(d.int(1, 3)):
        t = list(s)
        t[axis] = d.dim(1)
        quantized(d, kind, t)
    d.attr("axis", axis)
    one_step(d)


@ms("QLinearSoftmax")
def qlinear_softmax(d):
    kind = d.pick(EIGHT)
    s = d.shape(1, 3, 1)
    d.input(kind, s)
    d.input(FLOAT, [], [d.pick(0.5, 0.02, 0.13)], True)
    zero_points(d, kind, [])
    d.input(FLOAT, [], [1 / 256], True)
    d.input(kind, [], [0 if kind == UINT8 else -128], True)
    d.attr("opset", 13)
    d.attr("axis", d.axis(len(s)))
    one_step(d)


@ms("QLinearWhere")
def qlinear_where(d):
    kind = d.pick(EIGHT)
    c, a, b = d.broadcast(3)
    d.input(BOOL, c)
    quantized(d, kind, a)
    quantized(d, kind, b)
    target(d, kind)
    one_step(d)


@ms("QGemm", 2)
def qgemm(d):
    m, k, n = d.dim(1), d.dim(1), d.dim(1)
    a, b = d.pick((UINT8, UINT8), (UINT8, INT8), (INT8, INT8))
    ta, tb = d.int(0, 1), d.int(0, 1)
    per = d.pick([], [n])
    d.attr("transA", ta)
    d.attr("transB", tb)
    d.maybe("alpha", 0.5, 0.3)
    d.input(a, [k, m] if ta else [m, k])
    d.input(FLOAT, [], [0.1])
    zero_points(d, a, [])
    d.input(b, [n, k] if tb else [k, n])
    scales(d, per)
    zero_points(d, b, per)
    if d.chance(0.5):
        d.input(INT32, d.pick([n], [1, n], [m, n]), low=-200, high=200)
    else:
        d.absent()
    if d.chance(0.6):
        target(d, a)
        one_step(d)
    else:
        d.tolerance(1e-4, 1e-4)


@ms("MatMulIntegerToFloat")
def matmul_integer_to_float(d):
    m, k, n = d.dim(1), d.dim(1), d.dim(1)
    a, b = d.pick(EIGHT), d.pick(EIGHT)
    per = d.pick([], [n])
    d.input(a, [m, k])
    d.input(b, [k, n])
    d.input(FLOAT, [], [0.1])
    scales(d, per)
    if d.chance(0.7):
        zero_points(d, a, [])
    else:
        d.absent()
    if d.chance(0.7):
        zero_points(d, b, per)
    else:
        d.absent()
    if d.chance(0.5):
        d.input(FLOAT, [n], special=False)
    d.tolerance(1e-4, 1e-4)


@ms("DynamicQuantizeMatMul")
def dynamic_matmul(d):
    m, k, n = d.dim(1), d.dim(1), d.dim(1)
    b = d.pick(EIGHT)
    per = d.pick([], [n])
    d.input(FLOAT, [m, k], special=False)
    d.input(b, [k, n])
    scales(d, per)
    if d.chance(0.7):
        zero_points(d, b, per)
    else:
        d.absent()
    if d.chance(0.5):
        d.input(FLOAT, [n], special=False)
    d.tolerance(1e-3, 1e-3)


@ms("QuantizeLinear DequantizeLinear", 2)
def quantize_ms(d):
    s = [d.dim(1) for _ in range(d.int(1, 3))]
    kind = d.pick(INT8, UINT8, INT16, UINT16)
    form = []
    if d.chance(0.5):
        axis = d.int(0, len(s) - 1)
        form = [s[axis]]
        d.attr("axis", axis)
    if d.op == "QuantizeLinear":
        d.input(FLOAT, s, low=-60, high=60, special=False)
    else:
        d.input(kind, s)
    scales(d, form)
    zero_points(d, kind, form)
    d.tolerance(1e-5, 1e-5)


@ms("NhwcMaxPool")
def nhwc_max_pool(d):
    spatial = [d.int(2, 6), d.int(2, 6)]
    kernel, dilations, *_ = window(d, spatial)
    if max(dilations) > 1:
        raise Skip
    d.attr("kernel_shape", kernel)
    d.input(d.pick(EIGHT), [d.dim(1)] + spatial + [d.dim(1)])
