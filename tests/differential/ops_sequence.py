"""ops_sequence.py: sequences and optionals."""
from draw import FLOAT, INT32, INT64, STRING, entry, product
from wire import Tensor


def some(d, kind, low=1, rank=None):
    items = []
    for _ in range(d.int(low, 4)):
        s = d.shape(0 if rank is None else rank, 3 if rank is None else rank)
        items.append(Tensor(kind, s, d.values(kind, product(s))))
    return items


@entry("SequenceConstruct", opset=11)
def construct(d):
    kind = d.pick(FLOAT, INT64, STRING)
    for t in some(d, kind):
        d.input(kind, t.shape, t.values)


@entry("SequenceAt SequenceErase SequenceInsert SequenceLength", opset=11)
def edit(d):
    kind = d.pick(FLOAT, INT64, STRING)
    items = some(d, kind)
    d.group(False, items)
    n = len(items)
    if d.op == "SequenceLength":
        return
    if d.op == "SequenceInsert":
        d.input(kind, d.shape(0, 2))
    if d.op == "SequenceAt" or d.chance(0.7):
        low, high = (-n, n) if d.op == "SequenceInsert" else (-n, n - 1)
        d.scalar(d.pick(INT32, INT64), d.int(low, high))


@entry("ConcatFromSequence", opset=11)
def concat(d):
    new = d.chance(0.3)
    rank = d.int(1, 3)
    s = [d.dim(1) for _ in range(rank)]
    kind = d.pick(FLOAT, INT64, STRING)
    axis = d.int(0, rank if new else rank - 1)
    items = []
    for _ in range(d.int(1, 4)):
        t = list(s)
        if not new:
            t[axis] = d.dim(1)
        items.append(Tensor(kind, t, d.values(kind, product(t))))
    d.group(False, items)
    total = rank + 1 if new else rank
    d.attr("axis", axis - total if d.chance(0.4) else axis)
    d.maybe("new_axis", int(new), 1 if new else 0.3)


@entry("SplitToSequence", opset=(11, 24))
def split_to(d):
    s = d.shape(1, 3, 1)
    axis = d.int(0, len(s) - 1)
    d.input(d.pick(FLOAT, INT64, STRING), s)
    d.maybe("axis", axis - len(s) if d.chance(0.4) else axis, 1 if axis else 0.5)
    form = d.pick("none", "scalar", "list")
    if form == "none":
        d.maybe("keepdims", d.int(0, 1))
    elif form == "scalar":
        d.scalar(d.pick(INT32, INT64), d.int(1, s[axis]))
    else:
        parts, left = [], s[axis]
        while left:
            parts.append(d.int(1, left))
            left -= parts[-1]
        d.ints(parts, d.pick(INT32, INT64))
