"""ops_reduce.py: reductions, arguments of extremes, sorting, softmax and norms along an axis."""
from draw import BOOL, DOUBLE, FLOAT, FLOATS, INT8, INT32, INT64, UINT8, Skip, entry, product

KINDS = (FLOAT, FLOAT, DOUBLE, INT32, INT64)


def set_axes(d, rank, last_as_attribute):
    """axes as the operator's version takes them."""
    if d.chance(0.8) and rank:
        axes = [a - rank if d.opset >= 11 and d.chance(0.3) else a
                for a in d.rng.sample(range(rank), d.int(1, rank))]
    else:
        axes = None
    if d.opset <= last_as_attribute:
        if axes is not None:
            d.attr("axes", axes)
        return
    if axes is None and d.chance(0.4):
        d.ints([])
        d.maybe("noop_with_empty_axes", d.int(0, 1))
    elif axes is not None:
        d.ints(axes)
    elif d.chance(0.5):
        d.maybe("noop_with_empty_axes", d.int(0, 1))


def reduction(names, kinds, opset, last_as_attribute=13, low=None, high=None):
    @entry(names, opset=opset)
    def _(d):
        s = d.shape(0)
        special = False if d.op not in ("ReduceMax", "ReduceMin", "ReduceSum") else None
        d.input(d.pick(kinds), s, low=low, high=high, special=special)
        d.maybe("keepdims", d.int(0, 1))
        set_axes(d, len(s), last_as_attribute)


reduction("ReduceSum", KINDS, (1, 11, 13), 11, -9, 9)
reduction("ReduceMean ReduceL1 ReduceL2 ReduceSumSquare", KINDS, (1, 11, 13, 18), 17, -9, 9)
reduction("ReduceProd", KINDS, (1, 11, 13, 18), 17, -2, 2)
reduction("ReduceLogSum", (FLOAT, DOUBLE), (1, 11, 13, 18), 17, 0.5, 9)
reduction("ReduceLogSumExp", (FLOAT, DOUBLE), (1, 11, 13, 18), 17, -9, 9)
reduction("ReduceMax ReduceMin", KINDS + (INT8, UINT8), (12, 13, 18, 20), 17)


@entry("ArgMax ArgMin", opset=(1, 11, 12, 13))
def arguments(d):
    s = d.shape(1)
    d.special = False
    axis = d.int(0, len(s) - 1)
    if s[axis] == 0:
        raise Skip
    d.input(d.pick(FLOAT, DOUBLE, INT32, INT8, UINT8), s,
            [d.int(0, 3) for _ in range(product(s))] if d.chance(0.5) else None)
    d.maybe("axis", axis - len(s) if d.opset >= 11 and d.chance(0.4) else axis, 1 if axis else 0.5)
    d.maybe("keepdims", d.int(0, 1))
    if d.opset >= 12:
        d.maybe("select_last_index", d.int(0, 1))


@entry("TopK", opset=(1, 10, 11, 24), weight=2)
def top_k(d):
    s = d.shape(1)
    axis = d.int(0, len(s) - 1)
    k = d.int(1 if d.opset == 1 else 0, max(s[axis], 1))
    if k > s[axis]:
        raise Skip
    kind = d.pick((FLOAT, DOUBLE) if d.opset < 11 else (FLOAT, DOUBLE, INT32, INT64))
    d.input(kind, s, [d.int(-2, 2) for _ in range(product(s))] if d.chance(0.5) else None,
            special=False)
    if axis != len(s) - 1 or d.chance(0.5):
        d.attr("axis", axis - len(s) if d.opset >= 11 and d.chance(0.4) else axis)
    d.outputs = 2
    if d.opset == 1:
        d.attr("k", k)
        return
    d.ints([k])
    if d.opset >= 11:
        d.maybe("largest", d.int(0, 1))
        d.maybe("sorted", 1)


@entry("Softmax LogSoftmax Hardmax", opset=(1, 11, 13), weight=2)
def softmax(d):
    s = d.shape(1)
    d.input(d.pick(FLOATS if d.op != "Hardmax" else (FLOAT,)), s, special=False)
    axis = d.axis(len(s)) if d.opset >= 11 else d.int(0, len(s) - 1)
    d.maybe("axis", axis, 0.7 if len(s) > 1 else 1)


@entry("LpNormalization", opset=(1, 22))
def lp_normalization(d):
    s = d.shape(1)
    d.input(d.pick(FLOAT, DOUBLE), s, special=False)
    d.maybe("axis", d.axis(len(s)))
    d.maybe("p", d.pick(1, 2))


@entry("MeanVarianceNormalization", opset=(9, 13))
def mvn(d):
    d.input(FLOAT, [d.dim(1) for _ in range(4)], special=False)
    d.maybe("axes", sorted(d.rng.sample(range(4), d.int(1, 4))))
    d.tolerance(1e-3, 1e-3)


@entry("LayerNormalization", opset=17)
def layer_norm(d):
    s = d.shape(1)
    axis = d.int(0, len(s) - 1)
    kind = d.pick(FLOAT, DOUBLE)
    d.input(kind, s, special=False)
    d.input(kind, s[axis:], special=False)
    if d.chance(0.6):
        d.input(kind, s[axis:], special=False)
    d.maybe("axis", axis - len(s) if d.chance(0.4) else axis, 1 if axis != len(s) - 1 else 0.5)
    d.maybe("epsilon", d.pick(1e-3, 0.1))
    d.outputs = d.pick([1], [1, 1], [1, 1, 1])
    d.tolerance(1e-3, 1e-3)


@entry("RMSNormalization", opset=23)
def rms_norm(d):
    s = d.shape(1)
    axis = d.int(0, len(s) - 1)
    kind = d.pick(FLOAT, DOUBLE)
    d.input(kind, s, special=False)
    d.input(kind, s[axis:], special=False)
    d.maybe("axis", axis - len(s) if d.chance(0.4) else axis, 1 if axis != len(s) - 1 else 0.5)
    d.maybe("epsilon", d.pick(1e-3, 0.1))
    d.tolerance(1e-3, 1e-3)


@entry("InstanceNormalization", opset=(6, 22))
def instance_norm(d):
    n, c = d.dim(1), d.dim(1)
    s = [n, c] + [d.dim(1) for _ in range(d.int(1, 3))]
    d.input(FLOAT, s, special=False)
    d.input(FLOAT, [c], special=False)
    d.input(FLOAT, [c], special=False)
    d.maybe("epsilon", d.pick(1e-3, 0.1))
    d.tolerance(1e-3, 1e-3)


@entry("GroupNormalization", opset=(18, 21))
def group_norm(d):
    groups, per = d.int(1, 3), d.int(1, 3)
    c = groups * per
    d.attr("num_groups", groups)
    d.input(FLOAT, [d.dim(1), c] + [d.dim(1) for _ in range(d.int(1, 2))], special=False)
    for _ in range(2):
        d.input(FLOAT, [c if d.opset == 21 else groups], special=False)
    d.maybe("epsilon", d.pick(1e-3, 0.1))
    d.tolerance(1e-3, 1e-3)


@entry("BatchNormalization", opset=(9, 14, 15))
def batch_norm(d):
    c = d.dim(1)
    kind = d.pick(FLOAT, DOUBLE)
    d.input(kind, [d.dim(1), c] + [d.dim(1) for _ in range(d.int(0, 3))], special=False)
    for low in (-2, -2, -2, 0.1):
        d.input(kind, [c], low=low, high=2, special=False)
    d.maybe("epsilon", d.pick(1e-3, 0.1))
    d.maybe("momentum", 0.7)


@entry("LRN", opset=(1, 13))
def lrn(d):
    d.input(FLOAT, [d.dim(1), d.dim(1), d.dim(1), d.dim(1)], special=False)
    d.attr("size", d.pick(1, 3, 5))
    d.maybe("alpha", 0.02)
    d.maybe("beta", 0.6)
    d.maybe("bias", 2.0)
