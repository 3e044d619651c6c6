"""known.py: where ONNX Runtime does not do what ONNX says, or where ONNX does not say. Each row excuses
exactly one difference; its name is a heading of docs/differences.md, which has the reasons."""
from draw import BOOL, FLOAT, INT64, STRING, UINT64, Tensor, product
from wire import F8E4M3FN, INT4, UINT4

EXCUSES = []


def excuse_for(ops, heading):
    """Registers a predicate over (case, fault, result) for some operators ("*": all)."""
    def add(function):
        EXCUSES.append((set(ops.split()), heading, function))
        return function
    return add


def excuse(case, fault, result):
    """The heading of the first row that fits, or None."""
    for ops, heading, fits in EXCUSES:
        if ("*" in ops or case.op in ops) and fits(case, fault, result):
            return heading
    return None


def ort_says(*texts):
    """ONNX Runtime ran into an error that holds one of the texts, where nori has a result."""
    return lambda case, fault, result: fault[0] == "ort fails" and any(t in fault[2] for t in texts)


def tensors(case):
    return [t for t, _ in case.inputs if isinstance(t, Tensor)]


def differs(fits):
    """A predicate over the case alone, for a difference of values or shapes."""
    return lambda case, fault, result: fault[0] == "differs" and fits(case)


def window_size(case):
    """The span of the kernel along each axis."""
    spatial = len(case.inputs[0][0].shape) - 2
    weights = next((t.shape[2:] for t in tensors(case)[1:] if len(t.shape) == spatial + 2), None)
    kernel = case.attributes.get("kernel_shape") or weights
    dilations = case.attributes.get("dilations", [1] * spatial)
    return [d * (k - 1) + 1 for k, d in zip(kernel, dilations)]


def same(case):
    return case.attributes.get("auto_pad", "").startswith("SAME")


def dilated(case):
    return max(case.attributes.get("dilations", [1])) > 1


def wide_strides(case):
    strides = case.attributes.get("strides", [1] * 9)
    return any(s > k for s, k in zip(strides, window_size(case)))


# ---- windows

POOLS = "AveragePool MaxPool LpPool"
excuse_for("Conv ConvInteger QLinearConv", "auto_pad SAME with dilations")(
    ort_says("Dilation not supported for AutoPadType"))
excuse_for(POOLS, "auto_pad SAME with dilations")(differs(lambda c: same(c) and dilated(c)))
excuse_for(POOLS, "auto_pad SAME with dilations")(
    lambda c, f, r: same(c) and dilated(c) and ort_says("output dimension is negative", "out_size >= 0",
                                                        "must be non-negative")(c, f, r))
excuse_for(POOLS, "auto_pad SAME with strides beyond the window")(
    lambda c, f, r: same(c) and wide_strides(c) and ort_says("must be non-negative")(c, f, r))
excuse_for(POOLS, "auto_pad SAME with strides beyond the window")(
    differs(lambda c: same(c) and wide_strides(c)))
excuse_for("ConvTranspose", "ConvTranspose with strides beyond the window")(
    differs(lambda c: same(c) and wide_strides(c)))
excuse_for("ConvTranspose", "ConvTranspose with a large output_padding")(
    ort_says("output_padding", "adj < stride"))

excuse_for(POOLS, "auto_pad VALID with ceil_mode")(
    differs(lambda c: c.attributes.get("auto_pad") == "VALID" and c.attributes.get("ceil_mode")))


def new_keys_are_not_queries(case):
    """is_causal, a cache, and other counts of new keys and of queries."""
    lengths = [t.shape[-2] for t in tensors(case)[:2]]
    return case.attributes.get("is_causal") and len(case.inputs) > 4 and lengths[0] != lengths[1]


excuse_for("Attention", "Attention, causal, with a cache and other keys than queries")(
    differs(new_keys_are_not_queries))

# ---- empty tensors

excuse_for("ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceSumSquare ReduceProd ReduceLogSum "
           "ReduceLogSumExp ReduceMax ReduceMin ArgMax ArgMin", "Reductions of an empty tensor")(
    lambda c, f, r: 0 in c.inputs[0][0].shape and f[0] in ("differs", "ort fails"))
excuse_for("LayerNormalization RMSNormalization", "Normalization over nothing")(
    ort_says("must be at least 1, got 0"))
excuse_for("MatMul", "MatMul of empty tensors")(
    lambda c, f, r: any(0 in t.shape for t in tensors(c)) and f[0] in ("differs", "ort fails"))

excuse_for("Gemm", "Gemm of empty matrices")(differs(lambda c: 0 in c.inputs[0][0].shape))

# ---- not a number, infinity


def wants_nan(fault):
    """NaN is what ONNX Runtime has where the difference is largest."""
    return "nan" in fault[2].split("\n")[0].split(", not ")[-1]



excuse_for("Gelu HardSwish Mish Softsign Swish", "Activations at infinity")(
    lambda c, f, r: f[0] == "differs" and any(abs(v) == float("inf") for v in c.inputs[0][0].values)
    and wants_nan(f))
excuse_for("MeanVarianceNormalization", "MeanVarianceNormalization of equal values")(
    lambda c, f, r: f[0] == "differs" and wants_nan(f))
excuse_for("Clip", "Clip without a bound at infinity")(
    lambda c, f, r: c.opset > 6 and f[0] == "differs" and len([t for t in tensors(c)]) < 3
    and any(abs(v) == float("inf") for v in c.inputs[0][0].values))

excuse_for("ReduceMax ReduceMin", "Extremes with a NaN")(
    differs(lambda c: any(v != v for v in c.inputs[0][0].values)))

excuse_for("RNN GRU LSTM", "Softplus of large numbers in recurrent operators")(
    lambda c, f, r: f[0] == "differs" and "Softplus" in c.attributes.get("activations", [])
    and "inf" in f[2].split("\n")[0])
excuse_for("Mod", "Mod of large integers with fmod")(
    differs(lambda c: c.attributes.get("fmod") and c.inputs[0][0].kind in (INT64, UINT64)
            and any(abs(v) > 2**53 for t in tensors(c) for v in t.values)))

# ---- moving elements


def backward_to_the_end(case):
    if case.opset < 10 or len(case.inputs) < 5:
        return False
    ends, steps = case.inputs[2][0].values, case.inputs[4][0].values
    return any(e in (2**31 - 1, 2**63 - 1) and s < 0 for e, s in zip(ends, steps))


excuse_for("Slice", "Slice backward with an end of INT_MAX")(differs(backward_to_the_end))
excuse_for("Pad", "Pad wrapping more than once")(differs(lambda c: c.notes.get("long wrap")))


def same_size_other_scale(case):
    scales = case.attributes.get("scales") or next(
        (t.values for t in tensors(case)[1:] if t.values and isinstance(t.values[0], float)), [])
    shape = case.inputs[0][0].shape[-len(scales):] if scales else []
    return any(v != 1 for v in scales) and all(int(n * v) == n for n, v in zip(shape, scales))


excuse_for("Resize Upsample", "Resize that keeps the size")(differs(same_size_other_scale))

def one_axis_kept(case):
    scales = next((t.values for t in tensors(case)[1:] if t.values and t.kind == FLOAT), [])
    shape = case.inputs[0][0].shape[-len(scales):] if scales else []
    return any(v != 1 and int(n * v) == n for n, v in zip(shape, scales))


excuse_for("Resize", "Resize that keeps the size")(
    differs(lambda c: c.attributes.get("antialias") and one_axis_kept(c)))


def fractional_size(case):
    scales = next((t.values for t in tensors(case)[1:] if t.values and t.kind == FLOAT), [])
    shape = case.inputs[0][0].shape[-len(scales):] if scales else []
    return any(int(n * v) != n * v for n, v in zip(shape, scales))


excuse_for("Resize", "Resize, align_corners, to a fraction of a pixel")(
    differs(lambda c: c.attributes.get("coordinate_transformation_mode") == "align_corners"
            and fractional_size(c)))
excuse_for("Resize", "Resize that keeps the aspect ratio")(
    differs(lambda c: c.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch"))
excuse_for("Gather", "Gather of rows of strings")(
    differs(lambda c: c.inputs[0][0].kind == STRING
            and product(c.inputs[0][0].shape[c.attributes.get("axis", 0) % len(c.inputs[0][0].shape) + 1:]) > 1))

# ---- the rest

excuse_for("Loop", "Loop without iterations")(
    lambda c, f, r: f[0] == "differs" and f[2].startswith("output 1: expected float32[0,"))

excuse_for("QuantizeLinear DequantizeLinear", "Blocked quantization with one scale")(
    ort_says("block_size must be 0 for per-tensor"))
excuse_for("GridSample", "GridSample, cubic, outside the image")(
    differs(lambda c: "cubic" in c.attributes.get("mode", "")
            and c.attributes.get("padding_mode", "zeros") != "zeros"))
excuse_for("StringSplit", "StringSplit at white space with maxsplit")(
    differs(lambda c: not c.attributes.get("delimiter") and "maxsplit" in c.attributes))
excuse_for("StringSplit", "StringSplit of nothing")(
    differs(lambda c: c.attributes.get("delimiter") and b"" in c.inputs[0][0].values))
excuse_for("Cast CastLike", "Numbers and truth values as text")(
    differs(lambda c: c.inputs[0][0].kind == BOOL))
excuse_for("Cast", "Cast to float8 without saturation")(
    lambda c, f, r: f[0] == "differs" and c.attributes.get("saturate") == 0
    and any(t in f[2].split("\n")[0].replace("-", "")
            for t in ((" nan, not 448",) if c.attributes["to"] == F8E4M3FN else (" inf, not nan",))))
excuse_for("Cast", "Cast of fractions to int4")(
    differs(lambda c: c.attributes["to"] in (INT4, UINT4) and any(v != int(v) for v in c.inputs[0][0].values)))
excuse_for("CastMap", "Numbers and truth values as text")(
    differs(lambda c: c.attributes["cast_to"] == "TO_STRING" and c.inputs[0][0].items[1].kind == FLOAT))
excuse_for("CastMap", "CastMap of a sparse map to text")(
    differs(lambda c: c.attributes["cast_to"] == "TO_STRING" and c.attributes.get("map_form") == "SPARSE"))

excuse_for("QLinearSoftmax", "QLinearSoftmax of 1")(
    lambda c, f, r: f[0] == "differs" and ("255, not 0" in f[2] or "127, not -128" in f[2]))

# ---- ai.onnx.ml
excuse_for("LinearRegressor TreeEnsembleRegressor TreeEnsemble SVMRegressor",
           "post_transform with one target")(
    differs(lambda c: c.attributes.get("post_transform", "NONE") not in ("NONE", 0)
            and c.attributes.get("targets", c.attributes.get("n_targets", 1)) == 1))
excuse_for("TreeEnsembleClassifier", "TreeEnsembleClassifier, a class no leaf speaks of")(
    lambda c, f, r: f[0] == "differs" and f[2].startswith("output 0") and not c.notes["full"]
    and not any(d[1] == "1" for d in r.differs))
excuse_for("TreeEnsemble TreeEnsembleRegressor TreeEnsembleClassifier", "BRANCH_NEQ and a missing value")(
    differs(lambda c: any(v != v for v in c.inputs[0][0].values) and unequal(c)))


def unequal(case):
    modes = case.attributes["nodes_modes"]
    return 5 in modes.values if isinstance(modes, Tensor) else "BRANCH_NEQ" in modes


excuse_for("TreeEnsembleClassifier", "TreeEnsembleClassifier with two labels")(
    lambda c, f, r: f[0] == "differs" and len(labels(c)) == 2
    and len(set(c.attributes["class_ids"])) == 2
    and (f[2].startswith("output 0") or not c.notes["full"]))
excuse_for("Binarizer", "Binarizer of NaN")(ort_says("is NaN"))
excuse_for("SVMClassifier", "Two labels, one score, SOFTMAX")(
    differs(lambda c: len(c.attributes["rho"]) == 1 and not c.attributes.get("prob_a") and softmax(c)))
excuse_for("TreeEnsembleClassifier", "Two labels, one score, SOFTMAX")(
    differs(lambda c: one_score(c) and (softmax(c) or c.attributes["class_ids"][0] == 1)))


def one_score(case):
    return len(labels(case)) == 2 and len(set(case.attributes["class_ids"])) == 1


excuse_for("TreeEnsembleClassifier", "Two labels, one score, LOGISTIC: the label")(
    lambda c, f, r: f[0] == "differs" and f[2].startswith("output 0") and one_score(c)
    and c.attributes.get("post_transform") == "LOGISTIC" and min(weights(c)) >= 0)


def weights(case):
    given = case.attributes.get("class_weights_as_tensor")
    return given.values if given else case.attributes["class_weights"]


excuse_for("LinearRegressor SVMRegressor", "SOFTMAX_ZERO of zeros")(
    lambda c, f, r: f[0] == "differs" and c.attributes.get("post_transform") == "SOFTMAX_ZERO"
    and wants_nan(f))
excuse_for("SVMClassifier", "SOFTMAX_ZERO of zeros")(
    differs(lambda c: c.attributes.get("post_transform") == "SOFTMAX_ZERO" and "prob_a" in c.attributes))


def softmax(case):
    return case.attributes.get("post_transform", "NONE").startswith("SOFTMAX")


excuse_for("LinearClassifier", "Two labels, one score, SOFTMAX")(
    differs(lambda c: len(c.attributes["intercepts"]) == 1 and softmax(c)))
excuse_for("SVMClassifier", "SVMClassifier without support vectors, two labels")(
    differs(lambda c: "support_vectors" not in c.attributes and len(c.attributes["rho"]) == 2))
excuse_for("TreeEnsemble", "TreeEnsemble, SOFTMAX and LOGISTIC")(
    differs(lambda c: c.attributes.get("post_transform") in (1, 2)))
excuse_for("TreeEnsembleClassifier", "TreeEnsembleClassifier with two labels and base values")(
    differs(lambda c: len(labels(c)) == 2 and base_count(c)))


def labels(case):
    return case.attributes.get("classlabels_int64s") or case.attributes["classlabels_strings"]


def base_count(case):
    given = case.attributes.get("base_values_as_tensor")
    return len(given.values) if given else len(case.attributes.get("base_values", []))


excuse_for("TreeEnsembleRegressor", "TreeEnsembleRegressor, a target no leaf speaks of")(
    differs(lambda c: base_count(c) and not c.notes["full"]))
