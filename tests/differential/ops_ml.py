"""ops_ml.py: ai.onnx.ml but for trees: linear and support vector models, encoders, scalers."""
from draw import BOOL, DOUBLE, FLOAT, INT32, INT64, STRING, Skip, entry, product
from wire import Tensor

ML = "ai.onnx.ml"
NUMBERS = (FLOAT, FLOAT, DOUBLE, INT32, INT64)
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
WORDS = ("cat", "dog", "emu", "", "fox", "gnu")


def reals(d, n, low=-2, high=2):
    return [d.rounded(FLOAT, round(d.uniform(low, high), 3)) for _ in range(n)]


def rows(d, kind, features, special=False):
    return d.input(kind, [d.int(1, 4), features], low=-4, high=4, special=special, const=False)


@entry("ArrayFeatureExtractor", opset=1, domain=ML)
def array_features(d):
    s = d.shape(1, 3, 1)
    d.input(d.pick(NUMBERS + (STRING,)), s)
    n = d.int(1, 4)
    d.input(INT64, d.pick([n], [1, n]), [d.int(0, s[-1] - 1) for _ in range(n)])


@entry("Binarizer", opset=1, domain=ML)
def binarizer(d):
    d.input(d.pick(NUMBERS), d.shape(1), const=False)
    d.maybe("threshold", float(d.int(-2, 2)))


@entry("CategoryMapper", opset=1, domain=ML)
def category_mapper(d):
    n = d.int(1, 4)
    d.attr("cats_int64s", d.rng.sample(range(-2, 8), n))
    d.attr("cats_strings", d.rng.sample(WORDS, n))
    d.maybe("default_int64", 77)
    d.maybe("default_string", "other")
    s = d.shape(1)
    if d.chance(0.5):
        d.input(INT64, s, [d.int(-2, 8) for _ in range(product(s))], False)
    else:
        d.input(STRING, s, [d.pick(WORDS) for _ in range(product(s))], False)


@entry("DictVectorizer", opset=1, domain=ML)
def dict_vectorizer(d):
    text = d.chance(0.5)
    keys = list(WORDS) if text else list(range(6))
    if text:
        d.attr("string_vocabulary", d.rng.sample(keys, d.int(1, 5)))
    else:
        d.attr("int64_vocabulary", d.rng.sample(keys, d.int(1, 5)))
    known = d.attributes.get("string_vocabulary") or d.attributes["int64_vocabulary"]
    some = d.rng.sample(known, d.int(1, len(known)))
    kind = d.pick(FLOAT, DOUBLE, INT64, STRING) if text else d.pick(FLOAT, DOUBLE, STRING)
    if text and kind == STRING:
        kind = FLOAT
    d.group(True, [Tensor(STRING if text else INT64, [len(some)], some),
                   Tensor(kind, [len(some)], d.values(kind, len(some), special=False))])


@entry("CastMap", opset=1, domain=ML)
def cast_map(d):
    to = d.pick("TO_FLOAT", "TO_INT64", "TO_STRING")
    kind = d.pick(FLOAT, STRING)
    d.attr("cast_to", to)
    keys = sorted(d.rng.sample(range(7), d.int(1, 4)))
    if d.chance(0.5):
        d.attr("map_form", "SPARSE")
        d.attr("max_map", d.int(7, 9))
    words = ["1", "-2", "3"] if to != "TO_STRING" else ["a", "b"]
    values = [float(d.int(-5, 5)) + (0.5 if to != "TO_INT64" else 0) if kind == FLOAT
              else d.pick(words) for _ in keys]
    d.group(True, [Tensor(INT64, [len(keys)], keys), Tensor(kind, [len(keys)], values)])


@entry("FeatureVectorizer", opset=1, domain=ML)
def feature_vectorizer(d):
    kind = d.pick(NUMBERS)
    n = d.int(1, 3)
    sizes = []
    batch = d.int(1, 3)
    for _ in range(n):
        w = d.int(1, 4)
        d.input(kind, [batch, w], low=-99, high=99, const=False)
        sizes.append(w)
    d.attr("inputdimensions", sizes)


@entry("Imputer", opset=1, domain=ML)
def imputer(d):
    f = d.int(1, 4)
    batch = d.int(1, 4)
    per = d.pick(1, f)
    if d.chance(0.6):
        missing = d.pick(float("nan"), -1.0)
        d.attr("imputed_value_floats", reals(d, per))
        d.attr("replaced_value_float", missing)
        values = [d.pick(missing, 0.5, -1.0, 2.0) for _ in range(batch * f)]
        d.input(d.pick(FLOAT, FLOAT), [batch, f], values, False)
    else:
        d.attr("imputed_value_int64s", [d.int(-9, 9) for _ in range(per)])
        d.attr("replaced_value_int64", -1)
        d.input(INT64, [batch, f], [d.pick(-1, 0, 5) for _ in range(batch * f)], False)


@entry("LabelEncoder", opset=(1, 2, 4), domain=ML, weight=4)
def label_encoder(d):
    names = {INT64: "int64", STRING: "string", FLOAT: "float"}
    s = d.shape(1, 3, 1)
    n = d.int(1, 4)
    if d.opset == 1:
        d.attr("classes_strings", d.rng.sample(WORDS, n))
        d.maybe("default_int64", -7)
        d.maybe("default_string", "none")
        if d.chance(0.5):
            d.input(INT64, s, [d.int(-1, n) for _ in range(product(s))], False)
        else:
            d.input(STRING, s, [d.pick(WORDS) for _ in range(product(s))], False)
        return
    pool = {INT64: list(range(-2, 5)), STRING: list(WORDS), FLOAT: [-1.5, 0.0, 0.5, 2.0, 3.25],
            DOUBLE: [-1.5, 0.1, 0.5, 2.0, 3.25]}
    kinds = (INT64, STRING, FLOAT)
    key, value = d.pick(kinds), d.pick(kinds)
    if d.opset == 4 and d.chance(0.4):
        key = d.pick(INT64, STRING, FLOAT, DOUBLE)
        value = d.pick(INT64, STRING, FLOAT, DOUBLE)
        pairs = Tensor(key, [n], d.rng.sample(pool[key], n)), Tensor(
            value, [n], [d.pick(pool[value]) for _ in range(n)])
        d.attr("keys_tensor", pairs[0])
        d.attr("values_tensor", pairs[1])
        d.maybe("default_tensor", Tensor(value, [1], [d.pick(pool[value])]), 1)
    else:
        keys = d.rng.sample(pool[key], n)
        if d.opset == 4 and key == FLOAT and d.chance(0.3):
            keys[0] = float("nan")
            pool[FLOAT] = pool[FLOAT] + [float("nan")]
        d.attr("keys_%ss" % names[key], keys)
        d.attr("values_%ss" % names[value], [d.pick(pool[value]) for _ in range(n)])
        d.maybe("default_" + names[value], d.pick(pool[value]))
    d.input(key, s, [d.pick(pool[key]) for _ in range(product(s))], False)


@entry("LinearRegressor", opset=1, domain=ML, weight=2)
def linear_regressor(d):
    f, targets = d.int(1, 4), d.int(1, 3)
    d.attr("targets", targets)
    d.attr("coefficients", reals(d, f * targets))
    d.maybe("intercepts", reals(d, targets))
    d.maybe("post_transform", d.pick(TRANSFORMS[:4]), 0.5)
    rows(d, FLOAT, f)
    d.tolerance(1e-5, 1e-4)


@entry("LinearClassifier", opset=1, domain=ML, weight=3)
def linear_classifier(d):
    f, classes = d.int(1, 4), d.int(2, 4)
    single = d.chance(0.3)  # one row of coefficients for two classes
    n = 1 if single else classes
    labels = 2 if single else classes
    d.attr("coefficients", reals(d, f * n))
    d.attr("intercepts", reals(d, n))
    transform = d.pick(TRANSFORMS[:4])
    d.maybe("post_transform", transform, 0.4 if transform == "NONE" else 1)
    if d.chance(0.5):
        d.attr("classlabels_ints", d.rng.sample(range(9), labels))
    else:
        d.attr("classlabels_strings", d.rng.sample(WORDS, labels))
    d.maybe("multi_class", d.int(0, 1), 0.3)
    rows(d, d.pick(NUMBERS), f)
    d.outputs = 2
    d.tolerance(1e-5, 1e-4)


@entry("Normalizer", opset=1, domain=ML)
def normalizer(d):
    d.maybe("norm", d.pick("MAX", "L1", "L2"))
    s = d.pick([d.int(1, 4)], [d.int(1, 4), d.int(1, 4)])
    d.input(d.pick(NUMBERS), s, low=-9, high=9, special=False, const=False)
    d.tolerance(1e-5, 1e-5)


@entry("OneHotEncoder", opset=1, domain=ML)
def one_hot_encoder(d):
    s = d.shape(1, 3, 1)
    if d.chance(0.5):
        d.attr("cats_int64s", d.rng.sample(range(6), d.int(1, 4)))
        kind = d.pick(INT64, INT32, FLOAT, DOUBLE)
        d.input(kind, s, [d.int(0, 6) for _ in range(product(s))], False)
    else:
        d.attr("cats_strings", d.rng.sample(WORDS, d.int(1, 4)))
        d.input(STRING, s, [d.pick(WORDS) for _ in range(product(s))], False)
    d.attr("zeros", 1)


@entry("Scaler", opset=1, domain=ML)
def scaler(d):
    f = d.int(1, 4)
    n = d.pick(1, f)
    d.attr("offset", reals(d, n))
    d.attr("scale", reals(d, n))
    rows(d, d.pick(NUMBERS), f)
    d.tolerance(1e-5, 1e-5)


@entry("ZipMap", opset=1, domain=ML)
def zip_map(d):
    n = d.int(1, 4)
    if d.chance(0.5):
        d.attr("classlabels_int64s", sorted(d.rng.sample(range(9), n)))
    else:
        d.attr("classlabels_strings", sorted(d.rng.sample(WORDS, n)))
    d.input(FLOAT, d.pick([n], [d.int(1, 3), n]), const=False)


def kernel(d):
    """Kernel of a support vector machine; gamma, coef0, degree."""
    d.attr("kernel_type", d.pick("LINEAR", "POLY", "RBF", "SIGMOID"))
    d.attr("kernel_params", [0.3, 0.5, float(d.int(1, 3))])


@entry("SVMRegressor", opset=1, domain=ML, weight=2)
def svm_regressor(d):
    f, n = d.int(1, 4), d.int(1, 4)
    kernel(d)
    if d.chance(0.3):  # no support vectors: a linear model
        d.attr("kernel_type", "LINEAR")
        d.attr("coefficients", reals(d, f))
    else:
        d.attr("n_supports", n)
        d.attr("support_vectors", reals(d, n * f))
        d.attr("coefficients", reals(d, n))
    d.attr("rho", reals(d, 1))
    d.maybe("one_class", d.int(0, 1), 0.3)
    d.maybe("post_transform", d.pick("NONE", "LOGISTIC"), 0.3)
    rows(d, FLOAT, f)
    d.tolerance(1e-4, 1e-4)


@entry("SVMClassifier", opset=1, domain=ML, weight=4)
def svm_classifier(d):
    f, classes = d.int(1, 4), d.int(2, 4)
    kernel(d)
    if d.chance(0.5):
        d.attr("classlabels_ints", d.rng.sample(range(9), classes))
    else:
        d.attr("classlabels_strings", d.rng.sample(WORDS, classes))
    if d.chance(0.3):  # linear: a row of coefficients each class
        d.attr("kernel_type", "LINEAR")
        d.attr("coefficients", reals(d, f * classes))
        d.attr("rho", reals(d, classes))  # the first is for all
    else:
        per = [d.int(1, 3) for _ in range(classes)]
        n = sum(per)
        pairs = classes * (classes - 1) // 2
        d.attr("vectors_per_class", per)
        d.attr("support_vectors", reals(d, n * f))
        d.attr("coefficients", reals(d, n * (classes - 1)))
        d.attr("rho", reals(d, pairs))
        if d.chance(0.4):
            d.attr("prob_a", reals(d, pairs, -2, -0.2))
            d.attr("prob_b", reals(d, pairs, -0.5, 0.5))
    d.maybe("post_transform", d.pick("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"), 0.3)
    rows(d, d.pick(NUMBERS), f)
    d.outputs = 2
    d.tolerance(1e-4, 1e-3)
