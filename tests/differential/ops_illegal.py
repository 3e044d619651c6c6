"""ops_illegal.py: what is not legal, each in one respect: nori must say so, whatever the provider, and
whether the fault is in the file or in what is fed."""
from draw import BOOL, FLOAT, INT8, INT32, INT64, STRING, Skip, entry, product
from wire import UINT8, Tensor


def illegal(names, opset=21, domain="", weight=1):
    return entry(" ".join(n + "!" for n in names.split()), opset, domain, weight)


def outside(d, n):
    """An index just outside an axis of n, or far away."""
    return d.pick(n, -n - 1, n + 7, 2**31 - 1, -2**31)


def spoil(d, values, n):
    """values with one outside."""
    values[d.int(0, len(values) - 1)] = outside(d, n)
    return values


@illegal("Gather")
def gather(d):
    s = d.shape(1, 4, 1)
    axis = d.int(0, len(s) - 1)
    d.input(d.pick(FLOAT, STRING), s)
    i = d.shape(0, 2, 1)
    d.input(d.pick(INT32, INT64), i, spoil(d, [0] * product(i), s[axis]))
    d.attr("axis", axis)


@illegal("GatherElements ScatterElements")
def elements(d):
    s = d.shape(1, 4, 1)
    axis = d.int(0, len(s) - 1)
    d.input(FLOAT, s)
    d.input(INT64, s, spoil(d, [0] * product(s), s[axis]))
    if d.op == "ScatterElements":
        d.input(FLOAT, s)
        d.attr("reduction", d.pick("add", "max", "none"))
    d.attr("axis", axis)


@illegal("GatherND ScatterND")
def nd(d):
    s = d.shape(1, 4, 1)
    k, n = d.int(1, len(s)), d.int(1, 3)
    d.input(FLOAT, s)
    values = [0] * (n * k)
    at = d.int(0, n * k - 1)
    values[at] = outside(d, s[at % k])
    d.input(INT64, [n, k], values)
    if d.op == "ScatterND":
        d.input(FLOAT, [n] + s[k:])
        d.attr("reduction", d.pick("add", "max", "none"))


@illegal("Slice")
def slices(d):
    s = d.shape(1, 3, 1)
    d.input(FLOAT, s)
    form = d.pick("step", "axis", "twice", "length")
    d.ints([0, 0] if form in ("twice", "length") else [0])
    d.ints([1, 1] if form == "twice" else [1])
    d.ints({"axis": [outside(d, len(s))], "twice": [0, -len(s)], "length": [0]}.get(form, [0]))
    d.ints([0] if form == "step" else [1, 1] if form == "twice" else [1])


@illegal("Add Mul Where Less Max")
def broadcast(d):
    a, b = d.int(2, 5), d.int(2, 5)
    if a == b:
        b += 1
    more = d.shape(0, 2, 1)
    if d.op == "Where":
        d.input(BOOL, [1])
    d.input(FLOAT, more + [a])
    d.input(FLOAT, d.pick(more, []) + [b])


@illegal("Expand")
def expand(d):
    n = d.int(2, 5)
    d.input(FLOAT, [n])
    d.ints([3, n + 1])


@illegal("MatMul Gemm")
def matmul(d):
    m, k, n = (d.dim(1) for _ in range(3))
    d.input(FLOAT, [m, k])
    d.input(FLOAT, [k + d.int(1, 2), n])


@illegal("Concat")
def concat(d):
    a, b = d.int(1, 5), d.int(1, 5)
    d.attr("axis", 1)
    d.input(FLOAT, [a, 2])
    d.input(FLOAT, [a + b, 2])


@illegal("Reshape")
def reshape(d):
    s = d.shape(1, 3, 1)
    d.input(FLOAT, s)
    d.ints(d.pick([product(s) + 1], [-1, product(s) + 1], [-1, -1], [-2], [2**40, 2**40]))


@illegal("Transpose")
def transpose(d):
    s = d.shape(2, 4, 1)
    d.input(FLOAT, s)
    d.attr("perm", d.pick([0] * len(s), list(range(len(s) - 1)), list(range(1, len(s) + 1)),
                          [-1] + list(range(1, len(s)))))


@illegal("Squeeze Unsqueeze")
def squeeze(d):
    d.input(FLOAT, [2, 3])
    d.ints([d.int(0, 1)] if d.op == "Squeeze" else d.pick([0, 0], [0, -4], [5], [-5]))


@illegal("Split")
def split(d):
    n = d.int(2, 6)
    d.input(FLOAT, [n, 2])
    d.ints(d.pick([n, 1], [n - 2, 1], [n + 1, -1]))
    d.outputs = 2


@illegal("Pad", weight=2)
def pad(d):
    n = d.int(1, 4)
    mode = d.pick("reflect", "constant", "edge", "wrap")
    d.attr("mode", mode)
    d.input(FLOAT, [n])
    d.ints({"reflect": d.pick([n, 0], [0, n], [1 - n, n], [-n - 1, 0]),
            "constant": [-n - 1, 0], "edge": d.pick([-n, 1], [-n - 1, 3]),
            "wrap": [-n, 2]}[mode])


@illegal("Tile")
def tile(d):
    d.input(FLOAT, [2, 3])
    d.ints(d.pick([2], [1, 1, 1], [-1, 1]))


@illegal("ConstantOfShape")
def constant_of_shape(d):
    d.ints(d.pick([-1], [2, -3], [2**40, 2**40]))


@illegal("TopK")
def top_k(d):
    n = d.int(1, 4)
    d.input(FLOAT, [n])
    d.ints([d.pick(n + 1, -1, 2**40)])
    d.outputs = 2


@illegal("ReduceSum ReduceMax ReduceMean", opset=18)
def reduction(d):
    s = d.shape(1, 3, 1)
    d.input(FLOAT, s)
    d.ints(d.pick([outside(d, len(s))], [0, outside(d, len(s))]))


@illegal("Softmax ArgMax CumSum Hardmax LogSoftmax")
def axis(d):
    s = d.shape(1, 3, 1)
    d.input(FLOAT, s)
    if d.op == "CumSum":
        d.scalar(INT32, outside(d, len(s)))
    else:
        d.attr("axis", outside(d, len(s)))


@illegal("Conv ConvTranspose", weight=2)
def conv(d):
    form = d.pick("channels", "group", "bias", "window", "strides")
    c = 4
    d.input(FLOAT, [1, c, 5, 5])
    d.input(FLOAT, [c + (form == "channels"), c + (form == "channels"), 3, 3])
    if form == "bias":
        d.input(FLOAT, [7])
    if form == "group":
        d.attr("group", d.pick(3, -1))
    if form == "window":
        if d.op == "ConvTranspose":
            raise Skip
        d.attr("dilations", [3, 3])
    if form == "strides":
        d.attr("strides", d.pick([0, 1], [-1, 1], [1]))


@illegal("MaxPool AveragePool")
def pool(d):
    d.input(FLOAT, [1, 1, 3, 3])
    d.attr("kernel_shape", d.pick([4, 1], [0, 1], [2], [-1, 2], [2, 2, 2]))


@illegal("DepthToSpace SpaceToDepth")
def depth_space(d):
    d.attr("blocksize", d.pick(2, 0, -1))
    d.input(FLOAT, [1, 3, 3, 3])


@illegal("BatchNormalization InstanceNormalization LayerNormalization")
def norm(d):
    d.input(FLOAT, [2, 3, 4], special=False)
    n = {"LayerNormalization": 4}.get(d.op, 3)
    for i in range({"BatchNormalization": 4, "InstanceNormalization": 2}.get(d.op, 1)):
        d.input(FLOAT, [n + 1 if i == 0 else n], low=0.1, high=1)


@illegal("QuantizeLinear DequantizeLinear")
def quantize(d):
    d.input(FLOAT if d.op == "QuantizeLinear" else INT8, [2, 3])
    form = d.pick("length", "axis")
    d.attr("axis", outside(d, 2) if form == "axis" else 1)
    n = 4 if form == "length" else 3
    d.input(FLOAT, [n], [0.5] * n)
    d.input(INT8, [n], [0] * n)


@illegal("OneHot")
def one_hot(d):
    d.input(INT64, [2], [0, 1])
    d.scalar(INT64, d.pick(-1, -2**40))
    d.input(FLOAT, [2])


@illegal("Einsum")
def einsum(d):
    d.attr("equation", d.pick("ij,jk->ik", "ij,ij->ij", "ij->ij", "ij,jk,kl->il", "i,jk->ik", "ij,jk->iq"))
    d.input(FLOAT, [2, 3])
    d.input(FLOAT, [4, 5])


@illegal("ReverseSequence")
def reverse_sequence(d):
    d.input(FLOAT, [3, 2])
    d.ints(d.pick([4, 1], [1, -1], [1, 1, 1]))


@illegal("Resize", weight=2)
def resize(d):
    d.input(FLOAT, [1, 1, 3, 3])
    d.absent()
    if d.chance(0.5):
        d.input(FLOAT, [4], d.pick([1.0, 1.0, 0.0, 1.0], [1.0, 1.0, -2.0, 1.0], [1.0, 1.0, float("nan"), 1.0]))
    else:
        d.absent()
        d.ints(d.pick([1, 1, -3, 3], [1, 1, 3], [1, 1, 3, 3, 3]))


@illegal("MaxUnpool")
def max_unpool(d):
    d.attr("kernel_shape", [2])
    d.attr("strides", [2])
    d.input(FLOAT, [1, 1, 2])
    d.input(INT64, [1, 1, 2], [0, d.pick(4, -1, 2**40)])


@illegal("RoiAlign")
def roi_align(d):
    d.input(FLOAT, [2, 1, 4, 4])
    d.input(FLOAT, [1, 4], [0.0, 0.0, 2.0, 2.0])
    d.input(INT64, [1], [d.pick(2, -1, 2**40)])


@illegal("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss")
def losses(d):
    d.input(FLOAT, [2, 3], special=False)
    d.ints([0, d.pick(3, -1, 2**40)])


@illegal("SequenceAt")
def sequence_at(d):
    d.group(False, [Tensor(FLOAT, [1], [1.0])])
    d.scalar(INT64, outside(d, 1))


@illegal("LSTM GRU RNN")
def recurrent(d):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[d.op]
    d.attr("hidden_size", 2)
    form = d.pick("w", "r", "b", "lengths")
    d.input(FLOAT, [2, 1, 3])
    d.input(FLOAT, [1, gates * 2, 3 + (form == "w")])
    d.input(FLOAT, [1, gates * 2, 2 + (form == "r")])
    d.input(FLOAT, [1, gates * 4 + (form == "b")])
    if form == "lengths":
        d.input(INT32, [1], [d.pick(3, -1, 2**31 - 1)])


@illegal("ArrayFeatureExtractor", 1, "ai.onnx.ml")
def array_features(d):
    d.input(FLOAT, [2, 3])
    d.ints([0, outside(d, 3)])


@illegal("TreeEnsembleRegressor", 3, "ai.onnx.ml", 2)
def tree(d):
    form = d.pick("child", "cycle", "target", "length", "feature")
    d.attr("nodes_treeids", [0, 0, 0])
    d.attr("nodes_nodeids", [0, 1, 2])
    d.attr("nodes_featureids", [9 if form == "feature" else 0, 0, 0])
    d.attr("nodes_modes", ["BRANCH_LEQ", "LEAF", "LEAF"])
    d.attr("nodes_truenodeids", [{"child": 5, "cycle": 0}.get(form, 1), 0, 0])
    d.attr("nodes_falsenodeids", [2, 0, 0])
    d.attr("nodes_values", [0.0, 0.0] if form == "length" else [0.0, 0.0, 0.0])
    d.attr("target_treeids", [0, 0])
    d.attr("target_nodeids", [1, 2])
    d.attr("target_ids", [0, 3 if form == "target" else 0])
    d.attr("target_weights", [1.0, 2.0])
    d.attr("n_targets", 1)
    d.input(FLOAT, [1, 1], [-1.0], False)


@illegal("MatMulNBits", 1, "com.microsoft")
def nbits(d):
    form = d.pick("block", "bits", "bytes", "scales")
    d.attr("K", 32)
    d.attr("N", 2)
    d.attr("bits", 5 if form == "bits" else 4)
    d.attr("block_size", {"block": d.pick(8, 17, 0, -16)}.get(form, 32))
    d.input(FLOAT, [1, 32])
    d.input(UINT8, [2, 1, 16 - (form == "bytes")], None, True)
    d.input(FLOAT, [2 - (form == "scales")], None, True)
