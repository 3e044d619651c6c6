/* ref_tree_load.c: attributes of tree ensembles into one form. Files are untrusted: ids are looked
 * up, not used as indices, and every index is checked. */
#include "providers/reference/ref_tree.h"

/* A list of numbers given as floats or as a tensor. */
typedef struct numbers {
    const float *f;
    const nori_tensor *t;
    int64_t n;
} numbers;

static numbers read_numbers(const nori__node *node, const char *name, const char *as_tensor)
{
    size_t n = 0;
    numbers v = {NULL, as_tensor ? nori__attr_tensor(node, as_tensor) : NULL, 0};
    v.f = v.t || !name ? NULL : nori__attr_floats(node, name, &n);
    if (v.t && (v.t->kind != NORI_KIND_TENSOR || v.t->type == NORI_STRING)) {
        v.t = NULL;
    }
    v.n = v.t ? v.t->count : (int64_t)n;
    return v;
}

static double number(numbers v, int64_t i)
{
    return v.t ? nori__tensor_get_f64(v.t, i) : (double)v.f[i];
}

static nori_status bad(const nori_call *call, const char *what)
{
    return nori__fail(call->err, NORI_ERROR_MODEL, "tree ensemble: %s", what);
}

/* ---- ids to indices ---- */

typedef struct key {
    int64_t tree, node, index;
} key;

static int key_order(const key *a, int64_t tree, int64_t node)
{
    if (a->tree != tree) {
        return a->tree < tree ? -1 : 1;
    }
    return (a->node > node) - (a->node < node);
}

/* Bottom-up merge sort; files usually come in order, which costs one look. */
static key *sort_keys(key *a, key *b, int64_t n)
{
    bool sorted = true;
    for (int64_t i = 1; sorted && i < n; i++) {
        sorted = key_order(&a[i - 1], a[i].tree, a[i].node) < 0;
    }
    for (int64_t w = 1; !sorted && w < n; w *= 2) {
        for (int64_t low = 0; low < n; low += 2 * w) {
            int64_t mid = low + w < n ? low + w : n, high = low + 2 * w < n ? low + 2 * w : n;
            for (int64_t l = low, r = mid, k = low; k < high; k++) {
                bool left = l < mid && (r >= high || key_order(&a[l], a[r].tree, a[r].node) <= 0);
                b[k] = left ? a[l++] : a[r++];
            }
        }
        key *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

static int64_t find(const key *keys, int64_t n, int64_t tree, int64_t node)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        int order = key_order(&keys[mid], tree, node);
        if (order == 0) {
            return keys[mid].index;
        }
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return -1;
}

static int mode_of(nori__str s)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
    for (int i = 0; i < (int)NORI__COUNT(names); i++) {
        if (i != NORI__TREE_MEMBER && nori__str_is(s, names[i])) {
            return i;
        }
    }
    return -1;
}

static void note_vote(nori__forest *f, const nori__vote *v)
{
    f->all_positive = f->all_positive && v->weight >= 0;
    f->only = f->n_votes == 0 || f->only == v->target ? v->target : -1;
    f->n_votes++;
}

/* ---- the forms with node ids and votes at nodes ---- */

typedef struct old_lists {
    const int64_t *trees, *ids, *features, *yes, *no, *missing;
    const nori__str *modes;
    numbers values;
    size_t n;
} old_lists;

static nori_status read_lists(const nori_call *call, old_lists *l)
{
    const nori__node *node = call->node;
    size_t n[7];
    l->trees = nori__attr_ints(node, "nodes_treeids", &n[0]);
    l->ids = nori__attr_ints(node, "nodes_nodeids", &n[1]);
    l->features = nori__attr_ints(node, "nodes_featureids", &n[2]);
    l->yes = nori__attr_ints(node, "nodes_truenodeids", &n[3]);
    l->no = nori__attr_ints(node, "nodes_falsenodeids", &n[4]);
    l->modes = nori__attr_strings(node, "nodes_modes", &n[5]);
    l->missing = nori__attr_ints(node, "nodes_missing_value_tracks_true", &n[6]);
    l->values = read_numbers(node, "nodes_values", "nodes_values_as_tensor");
    l->n = n[0];
    for (int i = 1; i < 6; i++) {
        if (n[i] != l->n) {
            return bad(call, "the nodes_ lists differ in length");
        }
    }
    if (l->n == 0 || l->values.n != (int64_t)l->n || (l->missing && n[6] > 0 && n[6] != l->n)) {
        return bad(call, "there are no nodes, or nodes_values or nodes_missing_value_tracks_true "
                         "do not fit them");
    }
    if (n[6] == 0) {
        l->missing = NULL;
    }
    return NORI_OK;
}

static nori_status link_nodes(const nori_call *call, const old_lists *l, const key *keys,
                              nori__forest *f)
{
    uint8_t *child = nori__arena_alloc(&f->arena, l->n);
    if (!child) {
        return nori__no_memory(call->err);
    }
    for (int64_t i = 0; i < f->n_nodes; i++) {
        nori__tree_node *t = &f->nodes[i];
        int mode = mode_of(l->modes[i]);
        if (mode < 0) {
            return bad(call, "a node has a mode that does not exist");
        }
        t->mode = (uint8_t)mode;
        t->feature = l->features[i];
        t->value = number(l->values, i);
        t->missing_true = l->missing && l->missing[i] != 0;
        if (mode == NORI__TREE_LEAF) {
            continue;
        }
        t->yes = find(keys, f->n_nodes, l->trees[i], l->yes[i]);
        t->no = find(keys, f->n_nodes, l->trees[i], l->no[i]);
        if (t->yes < 0 || t->no < 0 || t->feature < 0) {
            return bad(call, "a node names a child or feature that does not exist");
        }
        if (t->yes == i || t->no == i) {
            return bad(call, "a node is its own child");
        }
        child[t->yes] = child[t->no] = 1;
    }
    for (int64_t i = 0; i < f->n_nodes; i++) {
        if (!child[i]) {
            f->roots[f->n_roots++] = i;
        }
    }
    bool rooted = false;
    for (int64_t i = 0; i < f->n_nodes; i++) { /* keys are sorted by tree */
        rooted = rooted || !child[keys[i].index];
        if (i + 1 == f->n_nodes || keys[i].tree != keys[i + 1].tree) {
            if (!rooted) {
                return bad(call, "a tree has no root: its nodes go in a circle");
            }
            rooted = false;
        }
    }
    return NORI_OK;
}

/* Votes sorted by their node, so that a leaf has them side by side. Votes at inner nodes are never
 * reached and dropped. */
static nori_status link_votes(const nori_call *call, const char *prefix, const key *keys,
                              nori__forest *f)
{
    const bool classes = nori__same(prefix, "class");
    size_t n[3];
    const int64_t *trees =
        nori__attr_ints(call->node, classes ? "class_treeids" : "target_treeids", &n[0]);
    const int64_t *ids =
        nori__attr_ints(call->node, classes ? "class_nodeids" : "target_nodeids", &n[1]);
    const int64_t *targets =
        nori__attr_ints(call->node, classes ? "class_ids" : "target_ids", &n[2]);
    numbers w = classes ? read_numbers(call->node, "class_weights", "class_weights_as_tensor")
                        : read_numbers(call->node, "target_weights", "target_weights_as_tensor");
    if (n[0] != n[1] || n[0] != n[2] || w.n != (int64_t)n[0]) {
        return bad(call, "the lists of votes differ in length");
    }
    int64_t *at = nori__arena_array(&f->arena, n[0] + 1, sizeof(*at));
    f->votes = nori__arena_array(&f->arena, n[0] + 1, sizeof(*f->votes));
    if (!at || !f->votes) {
        return nori__no_memory(call->err);
    }
    for (size_t i = 0; i < n[0]; i++) {
        at[i] = find(keys, f->n_nodes, trees[i], ids[i]);
        if (at[i] < 0 || targets[i] < 0 || targets[i] >= f->n_targets) {
            return bad(call, "a vote names a node or target that does not exist");
        }
        f->nodes[at[i]].no += f->nodes[at[i]].mode == NORI__TREE_LEAF;
    }
    int64_t start = 0;
    for (int64_t i = 0; i < f->n_nodes; i++) { /* counts to first places */
        if (f->nodes[i].mode == NORI__TREE_LEAF) {
            int64_t count = f->nodes[i].no;
            f->nodes[i].yes = f->nodes[i].no = start;
            start += count;
        }
    }
    for (size_t i = 0; i < n[0]; i++) {
        nori__tree_node *t = &f->nodes[at[i]];
        if (t->mode == NORI__TREE_LEAF) {
            nori__vote *v = &f->votes[t->no++];
            *v = (nori__vote){targets[i], number(w, (int64_t)i)};
            note_vote(f, v);
        }
    }
    return NORI_OK;
}

nori_status nori__forest_load(const nori_call *call, const char *votes, int64_t n_targets,
                              nori__forest *f)
{
    old_lists l;
    NORI__TRY(read_lists(call, &l));
    f->n_nodes = (int64_t)l.n;
    f->n_targets = n_targets;
    f->all_positive = true;
    f->nodes = nori__arena_array(&f->arena, l.n, sizeof(*f->nodes));
    f->roots = nori__arena_array(&f->arena, l.n, sizeof(*f->roots));
    key *keys = nori__arena_array(&f->arena, l.n, sizeof(*keys));
    key *spare = nori__arena_array(&f->arena, l.n, sizeof(*keys));
    if (!f->nodes || !f->roots || !keys || !spare) {
        return nori__no_memory(call->err);
    }
    for (int64_t i = 0; i < f->n_nodes; i++) {
        keys[i] = (key){l.trees[i], l.ids[i], i};
    }
    keys = sort_keys(keys, spare, f->n_nodes);
    for (int64_t i = 1; i < f->n_nodes; i++) {
        if (key_order(&keys[i - 1], keys[i].tree, keys[i].node) == 0) {
            return bad(call, "two nodes of a tree have the same id");
        }
    }
    NORI__TRY(link_nodes(call, &l, keys, f));
    return link_votes(call, votes, keys, f);
}

/* ---- TreeEnsemble of version 5: leaves in lists of their own ---- */

/* Members of set nodes lie one set after the other, each ended by NaN. */
static nori_status link_members(const nori_call *call, nori__forest *f)
{
    int64_t at = 0, n = f->members ? f->members->count : 0;
    for (int64_t i = 0; i < f->n_nodes; i++) {
        nori__tree_node *t = &f->nodes[i];
        if (t->mode != NORI__TREE_MEMBER) {
            continue;
        }
        if (at >= n) {
            return bad(call, "membership_values has fewer sets than there are nodes of that mode");
        }
        t->first = at;
        while (at < n &&
               nori__tensor_get_f64(f->members, at) == nori__tensor_get_f64(f->members, at)) {
            at++;
        }
        t->last = at++;
    }
    return NORI_OK;
}

/* A child: a leaf's index comes after all inner nodes. */
static int64_t child(const nori__forest *f, int64_t inner, int64_t id, int64_t is_leaf)
{
    int64_t n = is_leaf ? f->n_nodes - inner : inner;
    return id < 0 || id >= n ? -1 : is_leaf ? inner + id : id;
}

nori_status nori__forest_load_new(const nori_call *call, int64_t n_targets, nori__forest *f)
{
    const nori__node *node = call->node;
    size_t n[8], n_leaf;
    const int64_t *yes = nori__attr_ints(node, "nodes_truenodeids", &n[0]);
    const int64_t *no = nori__attr_ints(node, "nodes_falsenodeids", &n[1]);
    const int64_t *yes_leaf = nori__attr_ints(node, "nodes_trueleafs", &n[2]);
    const int64_t *no_leaf = nori__attr_ints(node, "nodes_falseleafs", &n[3]);
    const int64_t *features = nori__attr_ints(node, "nodes_featureids", &n[4]);
    const int64_t *missing = nori__attr_ints(node, "nodes_missing_value_tracks_true", &n[5]);
    const int64_t *targets = nori__attr_ints(node, "leaf_targetids", &n_leaf);
    const int64_t *roots = nori__attr_ints(node, "tree_roots", &n[6]);
    numbers modes = read_numbers(node, NULL, "nodes_modes");
    numbers splits = read_numbers(node, NULL, "nodes_splits");
    numbers weights = read_numbers(node, NULL, "leaf_weights");
    bool fits = n[0] > 0 && n[1] == n[0] && n[2] == n[0] && n[3] == n[0] && n[4] == n[0] &&
                (n[5] == 0 || n[5] == n[0]) && modes.n == (int64_t)n[0] &&
                splits.n == (int64_t)n[0] && weights.n == (int64_t)n_leaf && n_leaf > 0;
    if (!fits) {
        return bad(call, "the nodes_ or the leaf_ lists differ in length or are missing");
    }
    int64_t inner = (int64_t)n[0];
    f->n_nodes = inner + (int64_t)n_leaf;
    f->n_targets = n_targets;
    f->all_positive = true;
    f->members = nori__attr_tensor(node, "membership_values");
    f->nodes = nori__arena_array(&f->arena, (size_t)f->n_nodes, sizeof(*f->nodes));
    f->roots = nori__arena_array(&f->arena, n[6] + 1, sizeof(*f->roots));
    f->votes = nori__arena_array(&f->arena, n_leaf, sizeof(*f->votes));
    if (!f->nodes || !f->roots || !f->votes) {
        return nori__no_memory(call->err);
    }
    for (int64_t i = 0; i < inner; i++) {
        double mode = number(modes, i);
        nori__tree_node *t = &f->nodes[i];
        t->yes = child(f, inner, yes[i], yes_leaf[i]);
        t->no = child(f, inner, no[i], no_leaf[i]);
        t->feature = features[i];
        t->value = number(splits, i);
        t->missing_true = n[5] > 0 && missing[i] != 0;
        if (!(mode >= 0 && mode <= NORI__TREE_MEMBER) || t->yes < 0 || t->no < 0 ||
            t->feature < 0) {
            return bad(call, "a node has a mode, child or feature that does not exist");
        }
        t->mode = (uint8_t)mode;
    }
    for (int64_t i = 0; i < (int64_t)n_leaf; i++) {
        if (targets[i] < 0 || targets[i] >= n_targets) {
            return bad(call, "a leaf names a target that does not exist");
        }
        f->nodes[inner + i] = (nori__tree_node){.mode = NORI__TREE_LEAF, .yes = i, .no = i + 1};
        f->votes[i] = (nori__vote){targets[i], number(weights, i)};
        note_vote(f, &f->votes[i]);
    }
    for (size_t i = 0; i < n[6]; i++) {
        if (roots[i] < 0 || roots[i] >= inner) {
            return bad(call, "a root does not exist");
        }
        f->roots[f->n_roots++] = roots[i];
    }
    return link_members(call, f);
}
