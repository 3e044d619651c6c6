"""ops_ms_attention.py: attention layers of domain com.microsoft."""
import math

import wire
from draw import FLOAT, INT32, INT64, Skip, entry, product
from wire import INT8, UINT8

MS = "com.microsoft"


def real(d, shape, low=-1, high=1, **more):
    return d.input(FLOAT, shape, low=low, high=high, special=False, **more)


def mask(d, b, s, t, kinds, causal=False):
    """A mask of one of the documented ranks: every query keeps a key (a causal one the first)."""
    kind = d.pick(kinds)
    if kind is None:
        d.absent()
    elif kind == "length":
        d.input(INT32, [b], [d.int(1, t) for _ in range(b)])
    elif kind == "ends":
        starts = [d.int(0, t - 1) for _ in range(b)]
        d.input(INT32, [2 * b], [d.int(x + 1, t) for x in starts] + starts)
    else:
        shape = {"keys": [b, t], "full": [b, s, t]}[kind]
        rows = [[1 if d.chance(0.6) else 0 for _ in range(t)] for _ in range(product(shape) // t)]
        for row in rows:
            row[0 if causal else d.int(0, t - 1)] = 1
        d.input(INT32, shape, [v for row in rows for v in row])


def bias4(d, b, n, s, t, p=0.3):
    if d.chance(p):
        real(d, [d.pick(1, b), d.pick(1, n), s, t])
    else:
        d.absent()


@entry("Attention", domain=MS, opset=1, weight=2)
def attention(d):
    b, s, n, h = d.int(1, 2), d.int(1, 4), d.int(1, 3), d.pick(2, 4)
    width = d.int(2, 6)
    past = d.int(1, 3) if d.chance(0.4) else 0
    vh = h if past or d.chance(0.7) else d.pick(2, 6)
    d.attr("num_heads", n)
    if vh != h:
        d.attr("qkv_hidden_sizes", [n * h, n * h, n * vh])
    d.maybe("scale", 0.7, 0.3)
    d.maybe("mask_filter_value", -50.0, 0.3)
    causal = d.attr("unidirectional", d.int(0, 1))
    real(d, [b, s, width])
    real(d, [width, n * (2 * h + vh)], const=True)
    real(d, [n * (2 * h + vh)]) if d.chance(0.7) else d.absent()
    t = past + s
    mask(d, b, s, t, (None, "length", "keys", "full") + (("ends",) if not causal else ()), causal)
    if past:
        real(d, [2, b, n, past, h])
        d.outputs = 2
    else:
        d.absent()
    if past:  # ONNX Runtime takes one of them alone
        d.absent()
    else:
        bias4(d, b, n, s, t)


@entry("QAttention", domain=MS, opset=1)
def q_attention(d):
    b, s, n, h = d.int(1, 2), d.int(1, 4), d.int(1, 3), d.pick(2, 4)
    width = d.int(2, 6)
    past = d.int(1, 3) if d.chance(0.4) else 0
    d.attr("num_heads", n)
    d.attr("unidirectional", d.int(0, 1))
    kw = d.pick(INT8, UINT8)
    d.input(UINT8, [b, s, width], [d.int(0, 255) for _ in range(b * s * width)])
    low, high = (-128, 127) if kw == INT8 else (0, 255)
    d.input(kw, [width, 3 * n * h], [d.int(low, high) for _ in range(width * 3 * n * h)], True)
    real(d, [3 * n * h])
    d.input(FLOAT, [], [d.rounded(FLOAT, 0.01)])
    columns = d.pick([], [3 * n * h])
    d.input(FLOAT, columns, [d.rounded(FLOAT, d.uniform(0.005, 0.02)) for _ in range(product(columns))],
            True)
    mask(d, b, s, past + s, (None, "length", "keys"), True)
    d.input(UINT8, [], [d.int(100, 150)])
    d.input(kw, columns, [d.int(0, 20) for _ in range(product(columns))], True)
    if past:
        real(d, [2, b, n, past, h])
        d.outputs = 2
    d.tolerance(1e-3, 1e-3)


@entry("MultiHeadAttention", domain=MS, opset=1, weight=3)
def multi_head(d):
    b, s, n, h = d.int(1, 2), d.int(1, 4), d.int(1, 3), d.pick(2, 4)
    how = d.pick("apart", "apart", "cross", "cache")
    l = s if how == "apart" else d.int(1, 4)
    past = d.int(1, 3) if how == "apart" and d.chance(0.5) else 0
    vh = h if past or how == "cache" or d.chance(0.6) else d.pick(2, 6)
    t = past + l
    d.attr("num_heads", n)
    d.maybe("scale", 0.7, 0.3)
    d.maybe("mask_filter_value", -50.0, 0.3)
    causal = how == "apart" and d.chance(0.4)
    if causal:
        d.attr("unidirectional", 1)
    real(d, [b, s, n * h])
    if how == "cache":
        real(d, [b, n, l, h])
        real(d, [b, n, l, vh])
    else:
        real(d, [b, l, n * h])
        real(d, [b, l, n * vh])
    real(d, [n * (2 * h + vh)]) if d.chance(0.5) else d.absent()
    mask(d, b, s, t, (None, "keys", "full") + (("length",) if not past else ()), causal)
    bias4(d, b, n, s, t)
    if past:
        real(d, [b, n, past, h])
        real(d, [b, n, past, vh])
        d.outputs = 3 if causal else d.pick(3, 4)
        d.output_types["y3"] = wire.data(1, wire.number(1, FLOAT))
    elif how == "apart" and vh == h:
        d.outputs = d.pick(1, 3)


@entry("DecoderMaskedMultiHeadAttention", domain=MS, opset=1, weight=2)
def decoder_masked(d):
    b, n, h = d.int(1, 2), d.int(1, 3), d.pick(4, 8)
    how = d.pick("self", "cross", "beams")
    beams = 1
    if how == "beams":
        beams = 2
        b = 2 * d.int(1, 2)
    l = d.int(1, 4) if how == "cross" else 1
    past = d.int(1, 4) if how != "cross" else 0
    t = past + l
    d.attr("num_heads", n)
    d.maybe("scale", 0.7, 0.3)
    if how == "cross":
        real(d, [b, 1, n * h])
        real(d, [b, n, l, h])
        real(d, [b, n, l, h])
    else:
        for _ in range(3):
            real(d, [b, 1, n * h])
    mask(d, b, 1, t, (None, "keys"))
    if how == "cross":
        d.absent()
    else:
        bias4(d, b, n, 1, t, 0 if how == "beams" else 0.3)
    share = past > 0  # ONNX Runtime has no other form
    room = past + d.int(1, 3) if share else past
    if past:
        real(d, [b, n, room, h])
        real(d, [b, n, room, h])
        d.outputs = 3
    else:
        d.absent()
        d.absent()
    if share:
        d.attr("past_present_share_buffer", 1)
        d.input(INT32, [1], [past])
    else:
        d.absent()
    if how == "beams":
        d.input(INT32, [1], [beams])
        d.input(INT32, [b // beams, beams, room], [d.int(0, beams - 1) for _ in range(b * room)])
    else:
        d.absent()
        d.absent()
    if d.chance(0.4):
        real(d, [3 * n * h])


@entry("GroupQueryAttention", domain=MS, opset=1, weight=4)
def group_query(d):
    kv = d.int(1, 2)
    n, h = kv * d.int(1, 3), d.pick(16, 32)
    how = d.pick("prompt", "token", "chunk")
    b = 1 if how == "chunk" else d.int(1, 3)
    s = 1 if how == "token" else d.int(2, 5)
    packed = d.chance(0.4)
    d.attributes.update(num_heads=n, kv_num_heads=kv)
    d.maybe("scale", 0.4, 0.3)
    d.maybe("softcap", 1.5, 0.3)
    d.maybe("local_window_size", d.int(1, 4), 0.4)
    if packed:
        real(d, [b, s, (n + 2 * kv) * h])
        d.absent()
        d.absent()
    else:
        real(d, [b, s, n * h])
        real(d, [b, s, kv * h])
        real(d, [b, s, kv * h])
    if how == "prompt":
        pasts = [0] * b
        lengths = [s] * b  # what padding gives is nobody's business
    else:
        pasts = [d.int(1, 4) for _ in range(b)]
        lengths = [p + s for p in pasts]
    total = max(lengths)
    room = max(pasts) + (d.int(s, s + 3) if d.chance(0.5) else 0)
    if how == "prompt" and d.chance(0.5):
        room = s + d.int(0, 3)
    if room or how != "prompt":
        real(d, [b, kv, room, h])
        real(d, [b, kv, room, h])
    else:
        d.absent()
        d.absent()
    d.input(INT32, [b], [x - 1 for x in lengths])
    d.input(INT32, d.pick([], [1]), [total])
    if d.attr("do_rotary", d.int(0, 1)):
        d.maybe("rotary_interleaved", d.int(0, 1))
        half = h // 2 if d.chance(0.7) else 8
        rows = total + d.int(0, 4) + 8
        cos = [math.cos(p / 10 ** (i / half)) for p in range(rows) for i in range(half)]
        sin = [math.sin(p / 10 ** (i / half)) for p in range(rows) for i in range(half)]
        d.input(FLOAT, [rows, half], [d.rounded(FLOAT, v) for v in cos], True)
        d.input(FLOAT, [rows, half], [d.rounded(FLOAT, v) for v in sin], True)
        if d.chance(0.3):
            d.input(INT64, [b, s], [p + k + d.int(0, 1) for p in pasts for k in range(s)])
        else:
            d.absent()
    else:
        d.absent()
        d.absent()
        d.absent()
    bias4(d, b, n, s, total, 0.2)
    if d.chance(0.25):
        real(d, [n])
    elif d.chance(0.2):
        d.attr("smooth_softmax", 1)
    d.outputs = 3
    if how != "prompt" and len(set(lengths)) == 1 and d.chance(0.2):
        d.outputs = 4
        d.attr("qk_output", d.int(1, 2))
    d.tolerance(1e-4, 1e-3)


@entry("RotaryEmbedding", domain=MS, opset=1)
def rotary(d):
    b, s, n, h = d.int(1, 2), d.int(1, 4), d.int(1, 3), d.pick(4, 8)
    half = h // 2 if d.chance(0.6) else h // 4
    flat = d.chance(0.5)
    if half != h // 2:
        d.attributes.update(num_heads=n, rotary_embedding_dim=2 * half)
    real(d, [b, s, n * h] if flat else [b, n, s, h])
    rows = s + d.int(0, 4)
    if d.chance(0.5):
        d.input(INT64, [1], [d.int(0, rows - s)])
    else:
        d.input(INT64, [b, s], [d.int(0, rows - 1) for _ in range(b * s)])
    real(d, [rows, half])
    real(d, [rows, half])
    d.maybe("interleaved", d.int(0, 1))


@entry("EmbedLayerNormalization", domain=MS, opset=1)
def embed(d):
    b, s, n = d.int(1, 2), d.int(1, 4), d.int(2, 6)
    segments = d.chance(0.6)
    d.input(INT32, [b, s], [d.int(0, 6) for _ in range(b * s)])
    d.input(INT32, [b, s], [d.int(0, 1) for _ in range(b * s)]) if segments else d.absent()
    real(d, [7, n])
    real(d, [s + 2, n])
    real(d, [2, n]) if segments else d.absent()
    real(d, [n])
    real(d, [n])
    with_mask = d.chance(0.5)
    d.input(INT32, [b, s], [1 if d.chance(0.7) else 0 for _ in range(b * s)]) if with_mask else d.absent()
    if d.chance(0.4):
        rows = d.pick(1, b)
        d.input(INT32, [rows, s], [d.int(0, s + 1) for _ in range(rows * s)])
    d.attr("epsilon", 1e-5)
    d.outputs = d.pick(2, 3)
    d.tolerance(1e-4, 1e-4)
