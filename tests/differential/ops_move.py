"""ops_move.py: operators that move elements: shapes, slices, gathers, scatters, pads, layouts."""
from draw import (BOOL, DOUBLE, FLOAT, FLOAT16, INT8, INT32, INT64, MOVABLE, STRING, UINT8, Skip, entry,
                  product)

SOME = (FLOAT, FLOAT, DOUBLE, FLOAT16, INT8, UINT8, INT32, INT64, BOOL, STRING)
FEW = (FLOAT, INT64)  # for what ONNX Runtime has in few types only


def any_input(d, shape, **more):
    return d.input(d.pick(SOME), shape, **more)


@entry("Identity Shape Size", opset=(13, 21, 23))
def plain(d):
    s = d.shape()
    any_input(d, s)
    if d.op == "Shape" and d.opset > 13:
        d.maybe("start", d.int(-len(s) - 1, len(s) + 1))
        d.maybe("end", d.int(-len(s) - 1, len(s) + 1))


@entry("Reshape", opset=(5, 13, 14, 21, 23))
def reshape(d):
    s = d.shape(0, 4)
    any_input(d, s)
    n = product(s)
    new = d.rng.sample(s, len(s)) if d.chance(0.7) else [n]
    if d.chance(0.3):
        new.insert(d.int(0, len(new)), 1)
    if d.opset >= 14 and 0 in new and d.chance(0.5):
        d.attr("allowzero", 1)
    elif 0 in new:
        for i, v in enumerate(new):  # without allowzero a 0 copies the input's dimension
            if v == 0 and not (i < len(s) and s[i] == 0):
                raise Skip
    else:
        for i in range(min(len(new), len(s))):
            if new[i] == s[i] and d.chance(0.3):
                new[i] = 0
        if new and 0 not in s and d.chance(0.5):
            new[d.int(0, len(new) - 1)] = -1
    d.ints(new)


@entry("Flatten", opset=(9, 11, 13, 21))
def flatten(d):
    s = d.shape()
    any_input(d, s)
    low = -len(s) if d.opset >= 11 else 0
    a = d.int(low, len(s))
    if len(s) or a == 0:
        d.maybe("axis", a, 1 if not s else 0.7)
    if not s:
        d.attr("axis", 0)


@entry("Transpose", opset=(13, 21))
def transpose(d):
    s = d.shape(0, 5)
    any_input(d, s)
    d.maybe("perm", d.rng.sample(range(len(s)), len(s)), 0.8 if s else 0)
    d.exact()


@entry("Squeeze Unsqueeze", opset=(11, 13, 21))
def squeeze(d):
    s = d.shape(0, 3)
    axes = sorted(d.rng.sample(range(len(s) + 2), d.int(1, 2)))
    new = list(s)
    for a in axes:
        if a > len(new):
            raise Skip
        new.insert(a, 1)
    rank = len(new)
    signed = [a - rank if d.chance(0.4) else a for a in axes]
    d.rng.shuffle(signed)
    any_input(d, new if d.op == "Squeeze" else s)
    if d.op == "Squeeze" and d.chance(0.2):
        return
    if d.opset < 13:
        d.attr("axes", signed)
    else:
        d.ints(signed)


@entry("Concat", opset=(4, 11, 13))
def concat(d):
    s = d.shape(1)
    axis = d.int(0, len(s) - 1)
    kind = d.pick(SOME)
    d.attr("axis", axis - len(s) if d.opset > 4 and d.chance(0.4) else axis)
    for _ in range(d.int(1, 4)):
        t = list(s)
        t[axis] = d.dim()
        d.input(kind, t)


@entry("Split", opset=(2, 11, 13, 18))
def split(d):
    s = d.shape(1)
    axis = d.int(0, len(s) - 1)
    parts = [d.dim() for _ in range(d.int(1, 4))]
    even = d.chance(0.4)
    if even and d.opset < 18:
        parts = [d.dim(1)] * len(parts)
    s[axis] = sum(parts)
    if even and d.opset >= 18 and s[axis] == 0:
        raise Skip
    d.outputs = len(parts)
    d.maybe("axis", axis - len(s) if d.opset > 2 and d.chance(0.4) else axis, 1 if axis else 0.5)
    any_input(d, s)
    if even:
        if d.opset >= 18:
            chunk = -(-s[axis] // len(parts))
            if chunk * (len(parts) - 1) >= s[axis] and len(parts) > 1:
                raise Skip
            d.attr("num_outputs", len(parts))
    elif d.opset < 13:
        d.attr("split", parts)
    else:
        d.ints(parts)


@entry("Slice", opset=(1, 10, 11, 13), weight=2)
def slices(d):
    s = d.shape(1)
    n = d.int(1, len(s))
    axes = d.rng.sample(range(len(s)), n)
    far = [2**63 - 1, -2**63, 2**31 - 1, -2**31]
    starts = [d.pick(far) if d.chance(0.1) else d.int(-s[a] - 2, s[a] + 2) for a in axes]
    ends = [d.pick(far) if d.chance(0.2) else d.int(-s[a] - 2, s[a] + 2) for a in axes]
    kind = d.pick(INT32, INT64)
    if kind == INT32:
        starts, ends = ([max(-2**31, min(2**31 - 1, v)) for v in x] for x in (starts, ends))
    any_input(d, s)
    plain_axes = axes == list(range(n)) and d.chance(0.5)
    axes = [a - len(s) if d.opset >= 10 and d.chance(0.3) else a for a in axes]
    if d.opset < 10:
        d.attr("starts", starts)
        d.attr("ends", ends)
        if not plain_axes:
            d.attr("axes", axes)
        return
    d.ints(starts, kind)
    d.ints(ends, kind)
    if plain_axes:
        d.absent()
    else:
        d.ints(axes, kind)
    if d.chance(0.7):
        d.ints([d.pick(-3, -2, -1, 1, 1, 2, 3) for _ in axes], kind)


def indices(d, size, n):
    """n indices into an axis, from the front or the back."""
    if size == 0 and n:
        raise Skip
    return [d.int(-size, size - 1) for _ in range(n)]


@entry("Gather", opset=(1, 11, 13))
def gather(d):
    s = d.shape(1)
    axis = d.int(0, len(s) - 1)
    i = d.shape(0, 2)
    any_input(d, s)
    values = indices(d, s[axis], product(i))
    d.input(d.pick(INT32, INT64), i, values)
    d.maybe("axis", axis - len(s) if d.chance(0.4) else axis, 1 if axis else 0.5)
    d.exact()


@entry("GatherElements", opset=(11, 13))
def gather_elements(d):
    s = d.shape(1)
    axis = d.int(0, len(s) - 1)
    i = [d.int(0, n) if n else 0 for n in s]
    i[axis] = d.dim()
    any_input(d, s)
    d.input(d.pick(INT32, INT64), i, indices(d, s[axis], product(i)))
    d.maybe("axis", axis - len(s) if d.chance(0.4) else axis, 1 if axis else 0.5)


@entry("GatherND", opset=(11, 12, 13))
def gather_nd(d):
    s = d.shape(1, 5)
    batch = d.int(0, min(2, len(s) - 1)) if d.opset > 11 else 0
    depth = d.int(1, len(s) - batch)
    outer = s[:batch] + d.shape(0 if batch else 1, 2)
    any_input(d, s)
    values = []
    for _ in range(product(outer)):
        for k in range(depth):
            values += indices(d, s[batch + k], 1)
    d.input(INT64, outer + [depth], values)
    if batch:
        d.attr("batch_dims", batch)


@entry("ScatterElements", opset=(11, 13, 16, 18), weight=2)
def scatter_elements(d):
    s = d.shape(1)
    axis = d.int(0, len(s) - 1)
    i = [d.int(0, n) if n else 0 for n in s]
    reduction = d.pick("none", "add", "mul", "max", "min") if d.opset >= 18 else (
        d.pick("none", "add", "mul") if d.opset >= 16 else "none")
    kind = d.pick(FLOAT, DOUBLE, INT32, INT64) if reduction != "none" else d.pick(SOME)
    i[axis] = d.int(0, s[axis])
    d.input(kind, s, special=False)
    if reduction == "none":  # the order of duplicates is not defined
        order = [d.rng.sample(range(s[axis]), i[axis]) for _ in range(product(i) // max(1, i[axis]))]
        inner = product(i[axis + 1:])
        values = [order[(k // (inner * i[axis])) * inner + k % inner][k // inner % i[axis]]
                  for k in range(product(i))]
        values = [v - s[axis] if d.chance(0.3) else v for v in values]
    else:
        values = indices(d, s[axis], product(i))
        d.attr("reduction", reduction)
    d.input(d.pick(INT32, INT64), i, values)
    d.input(kind, i, special=False)
    d.maybe("axis", axis - len(s) if d.chance(0.4) else axis, 1 if axis else 0.5)


@entry("ScatterND", opset=(11, 13, 16, 18), weight=2)
def scatter_nd(d):
    s = d.shape(1)
    depth = d.int(1, len(s))
    outer = d.shape(0 if d.opset >= 13 else 1, 2)
    n = product(outer)
    reduction = d.pick("none", "add", "mul", "max", "min") if d.opset >= 18 else (
        d.pick("none", "add", "mul") if d.opset >= 16 else "none")
    kind = d.pick(FLOAT, DOUBLE, INT32, INT64) if reduction != "none" else d.pick(SOME)
    if 0 in s and n:
        raise Skip
    rows = [[d.int(0, s[k] - 1) for k in range(depth)] for _ in range(n)]
    if reduction == "none" and len(set(map(tuple, rows))) != n:
        raise Skip
    values = [v - s[k] if d.chance(0.3) else v for r in rows for k, v in enumerate(r)]
    d.input(kind, s, special=False)
    d.input(INT64, outer + [depth], values)
    d.input(kind, outer + s[depth:], special=False)
    if reduction != "none":
        d.attr("reduction", reduction)


@entry("Pad", opset=(2, 11, 13, 18, 19, 21), weight=3)
def pad(d):
    s = d.shape(1)
    mode = d.pick("constant", "reflect", "edge", "wrap") if d.opset >= 19 else d.pick(
        "constant", "reflect", "edge")
    if d.opset == 2:
        kind = d.pick(FLOAT, DOUBLE)
    else:
        kind = d.pick(FLOAT, DOUBLE, INT32, INT64, INT8, UINT8, BOOL)
    axes = sorted(d.rng.sample(range(len(s)), d.int(1, len(s)))) if d.opset >= 18 and d.chance(
        0.4) else list(range(len(s)))
    if mode != "constant" and 0 in s:
        raise Skip
    begin, end = [], []
    for a in axes:
        b, e = (-d.int(0, s[a]) if d.chance(0.25) else d.int(0, 3) for _ in range(2))
        left = s[a] + min(b, 0) + min(e, 0)
        if left < 0 or (mode != "constant" and left == 0):
            raise Skip
        if mode == "reflect":  # no further than what is there
            b, e = min(b, left - 1), min(e, left - 1)
        d.notes["long wrap"] = d.notes.get("long wrap") or (mode == "wrap" and max(b, e) > left)
        begin.append(b)
        end.append(e)
    d.maybe("mode", mode, 0.5 if mode == "constant" else 1)
    d.input(kind, s)
    if d.opset == 2:
        d.attr("pads", begin + end)
        d.maybe("value", float(d.int(-3, 3)))
        return
    d.ints(begin + end)
    if d.chance(0.6):
        d.scalar(kind, d.values(kind, 1, special=False)[0])
    else:
        d.absent()
    if len(axes) < len(s) or (d.opset >= 18 and d.chance(0.3)):
        d.ints([a - len(s) if d.chance(0.3) else a for a in axes])


@entry("Tile", opset=(6, 13))
def tile(d):
    s = d.shape(1)
    any_input(d, s)
    d.ints([d.int(0, 3) if d.chance(0.2) else d.int(1, 3) for _ in s])


@entry("DepthToSpace SpaceToDepth", opset=(1, 11, 13))
def depth_space(d):
    block, n, c, h, w = d.int(1, 3), d.dim(), d.dim(1), d.dim(), d.dim()
    kind = d.pick(FLOAT, DOUBLE)
    d.attr("blocksize", block)
    if d.op == "SpaceToDepth":
        d.input(kind, [n, c, h * block, w * block])
    else:
        d.input(kind, [n, c * block * block, h, w])
        if d.opset > 1:
            d.maybe("mode", d.pick("DCR", "CRD"))


@entry("Compress", opset=(9, 11))
def compress(d):
    s = d.shape(1)
    any_input(d, s)
    axis = d.axis(len(s)) if d.opset >= 11 else d.int(0, len(s) - 1)
    n = s[axis] if d.maybe("axis", axis) else product(s)
    k = d.int(0, n)
    d.input(BOOL, [k])


@entry("OneHot", opset=(9, 11))
def one_hot(d):
    s = d.shape(0, 3)
    depth = d.int(1, 5)
    axis = d.int(-len(s) - 1, len(s))
    d.input(d.pick(INT64, INT64, INT32, FLOAT), s,
            [d.int(-depth - 1, depth + 1) for _ in range(product(s))])
    d.scalar(d.pick(INT64, INT32), depth)
    kind = d.pick(FLOAT, INT32, INT64, STRING)
    d.input(kind, [2])
    d.maybe("axis", axis)


@entry("NonZero", opset=(9, 13))
def nonzero(d):
    kind = d.pick(FLOAT, INT32, INT64, BOOL, UINT8)
    s = d.shape(1)
    d.input(kind, s, [d.pick(0, 0, 1, 2) for _ in range(product(s))] if kind != BOOL else None)


@entry("ReverseSequence", opset=10)
def reverse_sequence(d):
    s = [d.dim(1), d.dim(1)] + d.shape(0, 2)
    time = d.int(0, 1)
    d.attr("time_axis", time)
    d.attr("batch_axis", 1 - time)
    any_input(d, s)
    d.input(INT64, [s[1 - time]], [d.int(1, s[time]) for _ in range(s[1 - time])])


@entry("CenterCropPad", opset=18)
def center_crop_pad(d):
    s = d.shape(1)
    d.input(d.pick(FLOAT, INT32, UINT8), s)
    axes = d.rng.sample(range(len(s)), d.int(1, len(s)))
    if d.chance(0.5):
        axes = list(range(len(s)))
    else:
        d.attr("axes", [a - len(s) if d.chance(0.3) else a for a in axes])
    d.ints([d.dim() for _ in axes], d.pick(INT32, INT64))


@entry("Unique", opset=11)
def unique(d):
    s = d.shape(1)
    kind = d.pick(FLOAT, INT64, INT8, STRING, DOUBLE)
    d.special = False
    d.input(kind, s, [d.int(0, 3) for _ in range(product(s))] if kind != STRING else None)
    d.maybe("axis", d.axis(len(s)))
    d.maybe("sorted", d.int(0, 1))
    d.outputs = d.pick([1], [1, 1], [1, 1, 1, 1], [1, 0, 1])


@entry("Col2Im", opset=18)
def col2im(d):
    image, block = [d.int(2, 6), d.int(2, 6)], [d.int(1, 2), d.int(1, 3)]
    dilation, stride = [d.int(1, 2), 1], [d.int(1, 2), d.int(1, 2)]
    pads = [d.int(0, 1) for _ in range(4)]
    count = 1
    for k in range(2):
        span = image[k] + pads[k] + pads[k + 2] - dilation[k] * (block[k] - 1) - 1
        if span < 0:
            raise Skip
        count *= span // stride[k] + 1
    d.input(FLOAT, [d.dim(1), d.dim(1) * product(block), count])
    d.ints(image)
    d.ints(block)
    d.maybe("dilations", dilation, 1 if dilation != [1, 1] else 0.3)
    d.maybe("strides", stride, 1 if stride != [1, 1] else 0.3)
    d.maybe("pads", pads, 1 if any(pads) else 0.3)


@entry("TensorScatter", opset=24)
def tensor_scatter(d):
    b, h, n, m, e = d.dim(1), d.dim(1), d.int(1, 6), 0, d.dim(1)
    m = d.int(1, n)
    circular = d.chance(0.5)
    d.maybe("mode", "circular" if circular else "linear", 1 if circular else 0.3)
    kind = d.pick(FLOAT, FLOAT16)
    d.input(kind, [b, h, n, e])
    d.input(kind, [b, h, m, e])
    if d.chance(0.7):
        d.ints([d.int(0, n - 1 if circular else n - m) for _ in range(b)])


@entry("Dropout", opset=(7, 10, 12, 13, 22))
def dropout(d):
    d.input(d.pick(FLOAT, DOUBLE), d.shape())
    if d.opset < 12:
        d.maybe("ratio", 0.3)
    elif d.chance(0.5):
        d.scalar(FLOAT, 0.4)
        if d.chance(0.5):
            d.scalar(BOOL, False)
    d.outputs = d.pick([1], [1, 1]) if d.opset >= 12 else 1  # before, mask is not defined
