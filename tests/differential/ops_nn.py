"""ops_nn.py: convolutions, pools, losses, attention."""
from draw import BOOL, DOUBLE, FLOAT, FLOAT16, INT32, INT64, Skip, entry, product


def window(d, spatial, deconv=False):
    """kernel, dilations, strides and pads of a window over spatial; sets what is not default."""
    n = len(spatial)
    kernel = [d.int(1, 3) for _ in range(n)]
    dilations = [d.int(1, 2) if d.chance(0.3) else 1 for _ in range(n)]
    strides = [d.int(1, 3) if d.chance(0.5) else 1 for _ in range(n)]
    auto = d.pick("NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    pads = [d.int(0, kernel[i % n] - 1) if d.chance(0.5) else 0 for i in range(2 * n)]
    if auto != "NOTSET":
        d.attr("auto_pad", auto)
        pads = [0] * (2 * n)
    elif any(pads) or d.chance(0.3):
        d.attr("pads", pads)
    if max(strides) > 1 or d.chance(0.3):
        d.attr("strides", strides)
    if max(dilations) > 1:
        d.attr("dilations", dilations)
    if not deconv and not auto.startswith("SAME"):
        for i in range(n):
            if spatial[i] + pads[i] + pads[i + n] < dilations[i] * (kernel[i] - 1) + 1:
                raise Skip
    return kernel, dilations, strides, pads, auto


def spatial_shape(d, low=1, high=3):
    n = d.pick(1, 2, 2, 2, 3)
    return [d.int(1, max(2, 2 * d.size if n < 3 else d.size)) for _ in range(min(max(n, low), high))]


@entry("Conv", opset=(1, 11, 22), weight=3)
def conv(d):
    spatial = spatial_shape(d)
    kernel, dilations, *_ = window(d, spatial)
    group = d.pick(1, 1, 2, 3)
    c, m = group * d.int(1, 3), group * d.int(1, 3)
    if group > 1 or d.chance(0.2):
        d.attr("group", group)
    d.maybe("kernel_shape", kernel)
    d.input(FLOAT, [d.dim(1), c] + spatial, special=False)
    d.input(FLOAT, [m, c // group] + kernel, special=False)
    if d.chance(0.6):
        d.input(FLOAT, [m], special=False)
    d.tolerance(1e-4, 1e-4)


@entry("ConvTranspose", opset=(1, 11, 22), weight=3)
def conv_transpose(d):
    spatial = spatial_shape(d, high=2)
    n = len(spatial)
    kernel, dilations, strides, pads, auto = window(d, spatial, True)
    extra = [0] * n
    if d.chance(0.3):
        extra = [d.int(0, max(strides[i], dilations[i]) - 1) for i in range(n)]
        d.attr("output_padding", extra)
    size = [strides[i] * (spatial[i] - 1) + extra[i] + dilations[i] * (kernel[i] - 1) + 1
            - pads[i] - pads[i + n] for i in range(n)]
    if auto == "NOTSET" and min(size) < 1:
        raise Skip
    if d.chance(0.2) and auto != "VALID":
        if "pads" in d.attributes:
            raise Skip
        d.attr("output_shape", [max(1, s - d.int(0, 2)) for s in size])
    group = d.pick(1, 1, 2, 3)
    c, m = group * d.int(1, 2), d.int(1, 3)
    if group > 1 or d.chance(0.2):
        d.attr("group", group)
    d.maybe("kernel_shape", kernel)
    d.input(FLOAT, [d.dim(1), c] + spatial, special=False)
    d.input(FLOAT, [c, m] + kernel, special=False)
    if d.chance(0.5):
        d.input(FLOAT, [m * group], special=False)
    d.tolerance(1e-4, 1e-4)


@entry("MaxPool", opset=(8, 10, 11, 12, 22), weight=2)
def max_pool(d):
    spatial = spatial_shape(d)
    kernel, dilations, strides, *_ = window(d, spatial)
    if d.opset < 10:
        if "dilations" in d.attributes:
            raise Skip
    else:
        d.maybe("ceil_mode", d.int(0, 1), 0.3)
    d.attr("kernel_shape", kernel)
    d.input(d.pick(FLOAT, DOUBLE), [d.dim(1), d.dim(1)] + spatial, special=False)
    if d.chance(0.4) and dilations == [1] * len(kernel):
        d.outputs = 2
        d.maybe("storage_order", d.int(0, 1), 0.3)


@entry("AveragePool", opset=(7, 10, 11, 19, 22), weight=2)
def average_pool(d):
    spatial = spatial_shape(d)
    kernel, *_ = window(d, spatial)
    if d.opset < 19 and "dilations" in d.attributes:
        raise Skip
    if d.opset >= 10:
        d.maybe("ceil_mode", d.int(0, 1), 0.3)
    d.maybe("count_include_pad", d.int(0, 1), 0.5)
    d.attr("kernel_shape", kernel)
    d.input(FLOAT, [d.dim(1), d.dim(1)] + spatial, special=False)


@entry("LpPool", opset=(2, 11, 18, 22))
def lp_pool(d):
    spatial = spatial_shape(d)
    kernel, *_ = window(d, spatial)
    if d.opset < 18 and "dilations" in d.attributes:
        raise Skip
    d.maybe("p", d.int(1, 3))
    d.attr("kernel_shape", kernel)
    d.input(FLOAT, [d.dim(1), d.dim(1)] + spatial, special=False)


@entry("GlobalAveragePool GlobalMaxPool", opset=(1, 22))
def global_pool(d):
    d.input(FLOAT, [d.dim(1), d.dim(1)] + spatial_shape(d), special=False)


@entry("GlobalLpPool", opset=(2, 22))
def global_lp_pool(d):
    d.input(FLOAT, [d.dim(1), d.dim(1)] + spatial_shape(d), special=False)
    d.maybe("p", d.int(1, 3))


@entry("MaxUnpool", opset=(9, 11, 22))
def max_unpool(d):
    n, c, h, w = d.dim(1), d.dim(1), d.dim(1), d.dim(1)
    kernel, strides = [2, 2], [2, 2]
    d.attr("kernel_shape", kernel)
    d.attr("strides", strides)
    d.input(FLOAT, [n, c, h, w], special=False)
    places = []
    for plane in range(n * c):
        for i in range(h):
            for j in range(w):
                places.append(plane * 4 * h * w + (2 * i + d.int(0, 1)) * 2 * w + 2 * j + d.int(0, 1))
    d.input(INT64, [n, c, h, w], places)


@entry("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", opset=(12, 13))
def losses(d):
    n, c = d.dim(1), d.dim(1)
    more = [d.dim(1) for _ in range(d.int(0, 2))]
    kind = d.pick(FLOAT, DOUBLE)
    ignore = d.int(-1, c - 1) if d.chance(0.4) else None
    labels = [d.int(0, c - 1) for _ in range(n * product(more))]
    reduction = d.pick("none", "mean", "sum")
    if ignore is not None:
        d.attr("ignore_index", ignore)
        if reduction == "mean" and all(v == ignore for v in labels):
            raise Skip  # 0 / 0
    d.maybe("reduction", reduction, 0.4 if reduction == "mean" else 1)
    d.input(kind, [n, c] + more, special=False)
    d.input(d.pick(INT32, INT64), [n] + more, labels)
    if d.chance(0.5):
        d.input(kind, [c], low=0.1, high=3, special=False)
    if d.op == "SoftmaxCrossEntropyLoss" and d.chance(0.4):
        d.outputs = 2


@entry("Attention", opset=(23, 24), weight=4)
def attention(d):
    b, q_heads, s, t, e, v = (d.int(1, 2), d.int(1, 4), d.int(1, 4), d.int(1, 4), d.int(1, 4),
                              d.int(1, 4))
    kv_heads = d.pick([h for h in range(1, q_heads + 1) if q_heads % h == 0])
    kind = FLOAT
    past = d.int(1, 3) if d.chance(0.3) else 0
    flat = d.chance(0.4)
    if flat:
        d.attr("q_num_heads", q_heads)
        d.attr("kv_num_heads", kv_heads)
        d.input(kind, [b, s, q_heads * e], special=False)
        d.input(kind, [b, t, kv_heads * e], special=False)
        d.input(kind, [b, t, kv_heads * v], special=False)
    else:
        d.input(kind, [b, q_heads, s, e], special=False)
        d.input(kind, [b, kv_heads, t, e], special=False)
        d.input(kind, [b, kv_heads, t, v], special=False)
    total = past + t
    if d.chance(0.5):
        m = d.pick([s, total], [1, 1, s, total], [b, q_heads, s, total], [b, 1, s, total])
        if d.chance(0.5):
            rows = [d.chance(0.7) for _ in range(product(m))]
            for r in range(0, len(rows), total):
                rows[r] = True  # a row all masked is 0 / 0
            d.input(BOOL, m, rows)
        else:
            d.input(kind, m, special=False)
    else:
        d.absent()
    if past:
        d.input(kind, [b, kv_heads, past, e], special=False)
        d.input(kind, [b, kv_heads, past, v], special=False)
    if not d.inputs[3][0] or d.inputs[3][0].kind != BOOL:  # causal and mask may leave a row empty
        d.maybe("is_causal", d.int(0, 1), 0.4)
    d.maybe("scale", 0.4, 0.3)
    d.maybe("softcap", 2.0, 0.3)
    if past:
        d.outputs = [1, 1, 1]
    d.tolerance(1e-4, 1e-3)


@entry("RotaryEmbedding", opset=23)
def rotary(d):
    b, h, s, half = d.int(1, 2), d.int(1, 3), d.int(1, 4), d.int(1, 4)
    e = 2 * half
    rotary_dim = 2 * d.int(1, half) if d.chance(0.3) else 0
    if d.chance(0.5):
        d.input(FLOAT, [b, h, s, e], special=False)
        d.maybe("num_heads", h, 0.2)
    else:
        d.attr("num_heads", h)
        d.input(FLOAT, [b, s, h * e], special=False)
    if rotary_dim:
        d.attr("rotary_embedding_dim", rotary_dim)
    cache = (rotary_dim or e) // 2
    d.maybe("interleaved", d.int(0, 1))
    if d.chance(0.5):
        n = d.int(s, 8)
        for _ in range(2):
            d.input(FLOAT, [n, cache], special=False)
        d.input(INT64, [b, s], [d.int(0, n - 1) for _ in range(b * s)])
    else:
        for _ in range(2):
            d.input(FLOAT, [b, s, cache], special=False)


@entry("DeformConv", opset=(19, 22))
def deform_conv(d):
    n, c, m, k, side = d.int(1, 2), 2 * d.int(1, 2), d.int(1, 3), d.int(1, 3), d.int(3, 5)
    groups = d.pick(1, 2)
    out = side - k + 1
    kernel = [k, k]
    d.input(FLOAT, [n, c, side, side], special=False)
    d.input(FLOAT, [m, c] + kernel, special=False)
    d.input(FLOAT, [n, groups * 2 * k * k, out, out], low=-1.3, high=1.3, special=False)
    if d.chance(0.5):
        d.input(FLOAT, [m], special=False)
    else:
        d.absent()
    if d.chance(0.5):
        d.input(FLOAT, [n, groups * k * k, out, out], special=False)
    d.attr("kernel_shape", kernel)
    d.maybe("offset_group", groups, 1 if groups > 1 else 0.3)
    d.tolerance(1e-4, 1e-3)
