/* ref_tree.c: TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier.
 *
 * Values and thresholds are compared exactly: both become double, which holds every float and
 * float16, so a double threshold is honoured for a float input too. NaN goes where
 * nodes_missing_value_tracks_true says, whatever the mode; false when that list is missing. */
#include "providers/reference/ref_tree.h"

static bool holds(const nori__forest *f, const nori__tree_node *t, double x)
{
    if (x != x) {
        return t->missing_true;
    }
    switch (t->mode) {
    case NORI__TREE_LEQ:
        return x <= t->value;
    case NORI__TREE_LT:
        return x < t->value;
    case NORI__TREE_GTE:
        return x >= t->value;
    case NORI__TREE_GT:
        return x > t->value;
    case NORI__TREE_EQ:
        return x == t->value;
    case NORI__TREE_NEQ:
        return x != t->value;
    default:
        for (int64_t i = t->first; i < t->last; i++) {
            if (nori__tensor_get_f64(f->members, i) == x) {
                return true;
            }
        }
        return false;
    }
}

nori_status nori__forest_walk(const nori_call *call, const nori__forest *f, const nori__rows *x,
                              int64_t row, int64_t root, const nori__tree_node **leaf)
{
    const nori__tree_node *t = &f->nodes[root];
    for (int64_t steps = 0; t->mode != NORI__TREE_LEAF; steps++) {
        if (steps > f->n_nodes) {
            return nori__fail(call->err, NORI_ERROR_MODEL, "tree ensemble: a tree has a cycle");
        }
        if (t->feature >= x->width) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "a tree looks at feature %lld, the input has %lld",
                              (long long)t->feature, (long long)x->width);
        }
        t = &f->nodes[holds(f, t, nori__rows_get(x, row, t->feature)) ? t->yes : t->no];
    }
    *leaf = t;
    return NORI_OK;
}

enum { AVERAGE, SUM, MIN, MAX };

static nori_status score_row(const nori_call *call, const nori__forest *f, const nori__rows *x,
                             int64_t row, int how, double *scores, double *seen)
{
    for (int64_t i = 0; i < f->n_targets; i++) {
        scores[i] = seen[i] = 0;
    }
    for (int64_t r = 0; r < f->n_roots; r++) {
        const nori__tree_node *leaf = NULL;
        NORI__TRY(nori__forest_walk(call, f, x, row, f->roots[r], &leaf));
        for (int64_t v = leaf->yes; v < leaf->no; v++) {
            double w = f->votes[v].weight, *s = &scores[f->votes[v].target];
            double *first = &seen[f->votes[v].target];
            if (how == MIN || how == MAX) {
                bool take = *first == 0 || (how == MIN ? w < *s : w > *s);
                *s = take ? w : *s;
            } else {
                *s += w;
            }
            *first = 1;
        }
    }
    for (int64_t i = 0; how == AVERAGE && f->n_roots > 0 && i < f->n_targets; i++) {
        scores[i] /= (double)f->n_roots;
    }
    return NORI_OK;
}

/* base_values (floats or tensor): none, or one a target. */
static nori_status add_base(const nori_call *call, int64_t n, double *base)
{
    size_t count = 0;
    const nori_tensor *t = nori__attr_tensor(call->node, "base_values_as_tensor");
    const float *f = t ? NULL : nori__attr_floats(call->node, "base_values", &count);
    int64_t have = t ? t->count : (int64_t)count;
    if (have != 0 && have != n && have != 1) {
        return nori__fail(call->err, NORI_ERROR_MODEL, "%lld base values for %lld targets",
                          (long long)have, (long long)n);
    }
    for (int64_t i = 0; i < have; i++) {
        base[i] = t ? nori__tensor_get_f64(t, i) : (double)f[i];
    }
    return NORI_OK;
}

static nori_status aggregate(const nori_call *call, bool newer, int *how)
{
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    const char *text = newer ? NULL : nori__attr_s(call->node, "aggregate_function", "SUM");
    int64_t number = nori__attr_i(call->node, "aggregate_function", SUM);
    for (int i = 0; i < 4; i++) {
        if (text ? nori__same(text, names[i]) : number == i) {
            *how = i;
            return NORI_OK;
        }
    }
    return nori__fail(call->err, NORI_ERROR_MODEL, "aggregate_function is not one of 4");
}

static nori_status regress(const nori_call *call, const nori__forest *f, bool newer, double *work)
{
    nori__rows x;
    nori__post post;
    int how = SUM;
    int64_t n = f->n_targets;
    double *scores = work, *seen = work + n, *base = work + 2 * n;
    NORI__TRY(nori__rows_of(call, &x));
    NORI__TRY(nori__post_read(call, &post));
    NORI__TRY(aggregate(call, newer, &how));
    NORI__TRY(add_base(call, n, base));
    for (int64_t r = 0; r < x.n; r++) {
        NORI__TRY(score_row(call, f, &x, r, how, scores, seen));
        for (int64_t i = 0; i < n; i++) {
            scores[i] += base[i];
        }
        nori__post_apply(post, scores, n);
        nori__scores_put(nori__ref_out(call, 0), r, scores, n);
    }
    return NORI_OK;
}

/* Two classes of which only one has votes: its score p stands for the second class. It is a
 * probability when no vote is negative and nothing is to be done to it, else a margin. */
static int64_t two_classes(const nori__forest *f, nori__post post, double p, double *scores)
{
    bool probability = f->all_positive && post != NORI__POST_LOGISTIC;
    scores[1] = p;
    scores[0] = probability ? 1 - p : -p;
    nori__post_apply(post, scores, 2);
    return scores[1] > scores[0] ? 1 : 0;
}

static nori_status classify(const nori_call *call, const nori__forest *f,
                            const nori__labels *labels, double *work)
{
    nori__rows x;
    nori__post post;
    int64_t n = f->n_targets;
    double *scores = work, *seen = work + n + 1, *base = work + 2 * n + 2;
    nori_tensor *label = nori__ref_out(call, 0), *out = nori__ref_out(call, 1);
    NORI__TRY(nori__rows_of(call, &x));
    NORI__TRY(nori__post_read(call, &post));
    NORI__TRY(add_base(call, n, base));
    bool two = n <= 2 && f->only >= 0;
    for (int64_t r = 0; r < x.n; r++) {
        NORI__TRY(score_row(call, f, &x, r, SUM, scores, seen));
        int64_t best;
        if (two) {
            double p = scores[f->only] + (base[f->only] != 0 ? base[f->only] : base[0]);
            best = two_classes(f, post, p, scores);
            nori__scores_put(out, r, n == 1 ? scores + 1 : scores, n);
        } else {
            for (int64_t i = 0; i < n; i++) {
                scores[i] += base[i];
            }
            nori__post_apply(post, scores, n);
            best = nori__largest(scores, n);
            nori__scores_put(out, r, scores, n);
        }
        if (label) {
            NORI__TRY(nori__labels_put(labels, label, r, n == 1 ? 0 : best, call->err));
        }
    }
    return NORI_OK;
}

/* ---- the operators ---- */

static bool is_classifier(const nori__node *node)
{
    return nori__node_is(node, NORI__OP_ML_TreeEnsembleClassifier);
}

nori_status nori__tree_read(const nori_call *call, nori__forest *f)
{
    bool classes = is_classifier(call->node);
    int64_t n = classes ? (int64_t)nori__labels_read(call->node).count
                        : nori__attr_i(call->node, "n_targets", 1);
    *f = (nori__forest){.n_targets = n};
    nori__arena_init(&f->arena, call->allocator);
    if (n < 1 || n > INT32_MAX) {
        return classes ? nori__fail(call->err, NORI_ERROR_MODEL, "there are no class labels")
                       : nori__fail(call->err, NORI_ERROR_MODEL, "n_targets is %lld", (long long)n);
    }
    return nori__node_is(call->node, NORI__OP_ML_TreeEnsemble)
               ? nori__forest_load_new(call, n, f)
               : nori__forest_load(call, classes ? "class" : "target", n, f);
}

nori_status nori__tree_run(nori_call *call, const nori__forest *f)
{
    int64_t room = 3 * f->n_targets + 4;
    double *work = NULL;
    NORI__TRY(nori__doubles(call, room, &work));
    nori_status status;
    if (is_classifier(call->node)) {
        nori__labels labels = nori__labels_read(call->node);
        status = classify(call, f, &labels, work);
    } else {
        status = regress(call, f, nori__node_is(call->node, NORI__OP_ML_TreeEnsemble), work);
    }
    nori__doubles_free(call, work, room);
    return status;
}

static nori_status read_and_run(nori_call *call)
{
    nori__forest f;
    nori_status status = nori__tree_read(call, &f);
    if (status == NORI_OK) {
        status = nori__tree_run(call, &f);
    }
    nori__arena_free(&f.arena);
    return status;
}

nori_status nori__ref_ml_TreeEnsemble(nori_call *call)
{
    return read_and_run(call);
}

nori_status nori__ref_ml_TreeEnsembleRegressor(nori_call *call)
{
    return read_and_run(call);
}

nori_status nori__ref_ml_TreeEnsembleClassifier(nori_call *call)
{
    return read_and_run(call);
}
