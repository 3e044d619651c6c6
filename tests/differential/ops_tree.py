"""ops_tree.py: random tree ensembles, in the old form (two operators) and the new one."""
from draw import DOUBLE, FLOAT, INT32, INT64, Skip, entry
from wire import Tensor

ML = "ai.onnx.ml"
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")
AGGREGATES = ("SUM", "AVERAGE", "MIN", "MAX")
WORDS = ("cat", "dog", "emu", "fox", "gnu")


class Forest:
    """Nodes of some random trees, ids counted in each tree; a threshold is often a value that the
    inputs take, so that equality is met."""

    def __init__(self, d, features, targets, trees, thresholds, modes):
        self.nodes, self.leaves = [], []
        self.full = d.notes["full"] = d.chance(0.5)  # each leaf has a weight for each target
        for t in range(trees):
            self.tree, self.count = t, 0
            self.grow(d, features, targets, d.int(0, 3), thresholds, modes)

    def grow(self, d, features, targets, depth, thresholds, modes):
        me = dict(tree=self.tree, id=self.count, feature=0, mode="LEAF", value=0.0, yes=0, no=0,
                  missing=0)
        self.count += 1
        self.nodes.append(me)
        if depth == 0:
            some = targets if self.full else d.int(1, min(2, targets))
            for target in sorted(d.rng.sample(range(targets), some)):
                self.leaves.append((self.tree, me["id"], target, round(d.uniform(-1, 1), 3)))
            return me["id"]
        me.update(feature=d.int(0, features - 1), mode=d.pick(modes), value=d.pick(thresholds),
                  missing=d.int(0, 1))
        me["yes"] = self.grow(d, features, targets, d.int(0, depth - 1), thresholds, modes)
        me["no"] = self.grow(d, features, targets, d.int(0, depth - 1), thresholds, modes)
        return me["id"]


def thresholds_and_input(d, double):
    """Values thresholds are drawn from, and the rows: those values, those just beside them, NaN."""
    some = [0.0, 0.5, -1.0, 0.1, 2.0]
    if not double:
        some = [d.rounded(FLOAT, v) for v in some]
    near = some + [d.rounded(DOUBLE if double else FLOAT, v * (1 + 1e-12 if double else 1 + 1e-6))
                   for v in some] + [-3.0, 3.0]
    return some, near


def rows(d, kind, features, near):
    n = d.int(1, 5)
    values = [d.pick(near) for _ in range(n * features)]
    if kind in (INT32, INT64):
        values = [int(v) for v in values]
    elif d.chance(0.4):
        values = [float("nan") if d.chance(0.2) else v for v in values]
    d.input(kind, [n, features], values, False)


def node_attributes(d, forest, double):
    pick = lambda key: [n[key] for n in forest.nodes]
    d.attr("nodes_treeids", pick("tree"))
    d.attr("nodes_nodeids", pick("id"))
    d.attr("nodes_featureids", pick("feature"))
    d.attr("nodes_modes", pick("mode"))
    d.attr("nodes_truenodeids", pick("yes"))
    d.attr("nodes_falsenodeids", pick("no"))
    values = pick("value")
    if double:
        d.attr("nodes_values_as_tensor", Tensor(DOUBLE, [len(values)], values))
    else:
        d.attr("nodes_values", values)
    d.maybe("nodes_missing_value_tracks_true", pick("missing"), 0.6)


def modes(d):
    return MODES if d.chance(0.5) else (d.pick(MODES),)


def leaf_attributes(d, forest, prefix, id_name, double):
    d.attr(prefix + "_treeids", [v[0] for v in forest.leaves])
    d.attr(prefix + "_nodeids", [v[1] for v in forest.leaves])
    d.attr(id_name, [v[2] for v in forest.leaves])
    weights = [v[3] for v in forest.leaves]
    if double:
        d.attr(prefix + "_weights_as_tensor", Tensor(DOUBLE, [len(weights)], weights))
    else:
        d.attr(prefix + "_weights", weights)


def base_values(d, n, double):
    values = [round(d.uniform(-1, 1), 3) for _ in range(n)]
    if d.chance(0.5):
        if double:
            d.attr("base_values_as_tensor", Tensor(DOUBLE, [n], values))
        else:
            d.attr("base_values", values)


@entry("TreeEnsembleRegressor", opset=(1, 3), domain=ML, weight=6)
def regressor(d):
    double = d.opset == 3 and d.chance(0.3)
    features, targets = d.int(1, 3), d.int(1, 3)
    some, near = thresholds_and_input(d, double)
    forest = Forest(d, features, targets, d.int(1, 3), some, modes(d))
    node_attributes(d, forest, double)
    leaf_attributes(d, forest, "target", "target_ids", double)
    d.attr("n_targets", targets)
    base_values(d, targets, double)
    d.maybe("aggregate_function", d.pick(AGGREGATES))
    d.maybe("post_transform", d.pick(TRANSFORMS), 0.4)
    rows(d, DOUBLE if double else d.pick(FLOAT, FLOAT, INT32, INT64), features, near)
    d.tolerance(1e-5, 1e-4)


@entry("TreeEnsembleClassifier", opset=(1, 3), domain=ML, weight=6)
def classifier(d):
    double = d.opset == 3 and d.chance(0.3)
    features, classes = d.int(1, 3), d.int(2, 4)
    binary = d.chance(0.3)  # weights of one class for two labels
    some, near = thresholds_and_input(d, double)
    forest = Forest(d, features, 1 if binary else classes, d.int(1, 3), some, modes(d))
    node_attributes(d, forest, double)
    leaf_attributes(d, forest, "class", "class_ids", double)
    labels = 2 if binary else classes
    if d.chance(0.5):
        d.attr("classlabels_int64s", d.rng.sample(range(9), labels))
    else:
        d.attr("classlabels_strings", d.rng.sample(WORDS, labels))
    base_values(d, 1 if binary else labels, double)
    d.maybe("post_transform", d.pick(TRANSFORMS), 0.5)
    rows(d, DOUBLE if double else d.pick(FLOAT, FLOAT, INT32, INT64), features, near)
    d.outputs = 2
    d.tolerance(1e-5, 1e-4)


@entry("TreeEnsemble", opset=5, domain=ML, weight=6)
def ensemble(d):
    kind = d.pick(FLOAT, FLOAT, DOUBLE)
    double = kind == DOUBLE
    features, targets = d.int(1, 3), d.int(1, 3)
    some, near = thresholds_and_input(d, double)
    codes = modes(d)
    forest = Forest(d, features, targets, d.int(1, 3), some, codes)
    inner, leaves, roots = [], [], []
    at_inner, at_leaf = {}, {}
    for n in forest.nodes:
        key = (n["tree"], n["id"])
        if n["mode"] == "LEAF":
            # one target a leaf in this form
            _, _, target, weight = next(v for v in forest.leaves if v[:2] == key)
            at_leaf[key] = len(leaves)
            leaves.append((target, weight))
        else:
            at_inner[key] = len(inner)
            inner.append(n)
    if any(n["id"] == 0 and n["mode"] == "LEAF" for n in forest.nodes):
        raise Skip  # a tree that is one leaf has no root to name
    place = lambda n, way: (at_leaf if (n["tree"], n[way]) in at_leaf else at_inner)[n["tree"], n[way]]
    is_leaf = lambda n, way: int((n["tree"], n[way]) in at_leaf)
    number = {m: i for i, m in enumerate(MODES)}
    d.attr("n_targets", targets)
    d.attr("tree_roots", [at_inner[t, 0] for t in range(max(n["tree"] for n in inner) + 1)])
    d.attr("nodes_featureids", [n["feature"] for n in inner])
    d.attr("nodes_modes", Tensor(2, [len(inner)], [number[n["mode"]] for n in inner]))
    d.attr("nodes_splits", Tensor(kind, [len(inner)], [n["value"] for n in inner]))
    d.attr("nodes_truenodeids", [place(n, "yes") for n in inner])
    d.attr("nodes_falsenodeids", [place(n, "no") for n in inner])
    d.attr("nodes_trueleafs", [is_leaf(n, "yes") for n in inner])
    d.attr("nodes_falseleafs", [is_leaf(n, "no") for n in inner])
    d.attr("leaf_targetids", [v[0] for v in leaves])
    d.attr("leaf_weights", Tensor(kind, [len(leaves)], [v[1] for v in leaves]))
    d.maybe("nodes_missing_value_tracks_true", [n["missing"] for n in inner], 0.6)
    d.maybe("aggregate_function", d.int(0, 3))
    d.maybe("post_transform", d.int(0, 3), 0.4)
    rows(d, kind, features, near)
    d.tolerance(1e-5, 1e-4)
