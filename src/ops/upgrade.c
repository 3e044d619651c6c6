/* upgrade.c: old forms of operators become new ones, on the compiled copy only. A table of rewrites
 * by operator; what has none keeps its version and its kernel looks at it. */
#include "ops/resolve.h"

typedef struct rewrite {
    nori__op_id op;
    int before; /* applies to versions below this */
    nori_status (*run)(nori__node *node, nori_error *err);
} rewrite;

static nori_status int_const(nori__node *n, const int64_t *v, int64_t count, nori__value **out,
                             nori_error *err)
{
    nori_tensor *t = NULL;
    NORI__TRY(nori__tensor_new(n->graph->ir->allocator, NORI_INT64, 1, &count, &t, err));
    if (count > 0) {
        memcpy(t->data, v, (size_t)count * sizeof(*v));
    }
    *out = nori__const_new(n->graph, NULL, t);
    return *out ? NORI_OK : nori__no_memory(err);
}

static nori_status float_const(nori__node *n, const float *v, int64_t count, nori__value **out,
                               nori_error *err)
{
    nori_tensor *t = NULL;
    NORI__TRY(nori__tensor_new(n->graph->ir->allocator, NORI_FLOAT, 1, &count, &t, err));
    if (count > 0) {
        memcpy(t->data, v, (size_t)count * sizeof(*v));
    }
    *out = nori__const_new(n->graph, NULL, t);
    return *out ? NORI_OK : nori__no_memory(err);
}

/* Opset 1 to 6 arithmetic: with broadcast=1, B's axes line up with A's from `axis` on (or at the
 * end): B gets trailing axes of 1. */
static nori_status broadcast(nori__node *n, nori_error *err)
{
    if (n->input_count < 2 || !n->inputs[0] || !n->inputs[1] ||
        !nori__attr_i(n, "broadcast", 0) || !nori__attr_find(n, "axis")) {
        return NORI_OK;
    }
    const nori__type *a = &n->inputs[0]->type, *b = &n->inputs[1]->type;
    if (a->rank < 0 || b->rank < 0) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "%s with an axis attribute needs inputs of known rank", n->op_type);
    }
    int64_t axis = nori__attr_i(n, "axis", 0), axes[NORI_MAX_RANK];
    axis += axis < 0 ? a->rank : 0;
    int64_t missing = a->rank - axis - b->rank;
    if (axis < 0 || missing < 0) {
        return nori__fail(err, NORI_ERROR_MODEL, "%s: axis %lld does not fit ranks %d and %d",
                          n->op_type, (long long)axis, a->rank, b->rank);
    }
    if (missing == 0) {
        return NORI_OK;
    }
    for (int64_t i = 0; i < missing; i++) {
        axes[i] = b->rank + i;
    }
    nori__value *list = NULL, *wide = nori__value_new(n->graph, NULL);
    NORI__TRY(int_const(n, axes, missing, &list, err));
    nori__value *in[2] = {n->inputs[1], list};
    nori__node *u = wide ? nori__node_new(n->graph, n, "", "Unsqueeze", in, 2, &wide, 1) : NULL;
    if (!u) {
        return nori__no_memory(err);
    }
    nori__node_resolve(u);
    u->op = nori__op_find("", "Unsqueeze");
    u->version = 13;
    return nori__node_set_input(n, 1, wide) ? NORI_OK : nori__no_memory(err);
}

/* Upsample: scales as attribute (7) or input (9) becomes Resize, asymmetric, floor. */
static nori_status upsample(nori__node *n, nori_error *err)
{
    nori__value *scales = n->input_count > 1 ? n->inputs[1] : NULL;
    if (!scales) {
        size_t count;
        const float *v = nori__attr_floats(n, "scales", &count);
        float old[4] = {1, 1, nori__attr_f(n, "height_scale", 1), nori__attr_f(n, "width_scale", 1)};
        NORI__TRY(v ? float_const(n, v, (int64_t)count, &scales, err)
                    : float_const(n, old, 4, &scales, err));
    }
    bool ok = nori__node_set_input(n, 1, NULL) && nori__node_set_input(n, 2, scales);
    n->op_type = "Resize";
    n->op = nori__op_find("", "Resize");
    n->version = 19;
    const char *mode = nori__attr_s(n, "mode", "nearest");
    mode = nori__same(mode, "bilinear") ? "linear" : mode;
    ok = ok && nori__node_set_text(n, "mode", mode) &&
         nori__node_set_text(n, "coordinate_transformation_mode", "asymmetric") &&
         nori__node_set_text(n, "nearest_mode", "floor");
    return ok ? NORI_OK : nori__no_memory(err);
}

/* Resize 10: X, scales. */
static nori_status resize(nori__node *n, nori_error *err)
{
    if (n->version != 10 || n->input_count < 2) {
        return NORI_OK;
    }
    nori__value *scales = n->inputs[1];
    scales->uses++; /* kept while it moves */
    bool ok = nori__node_set_input(n, 1, NULL) && nori__node_set_input(n, 2, scales);
    scales->uses--;
    n->version = 19;
    ok = ok && nori__node_set_text(n, "coordinate_transformation_mode", "asymmetric") &&
         nori__node_set_text(n, "nearest_mode", "floor");
    return ok ? NORI_OK : nori__no_memory(err);
}

#define BROADCAST(name) {NORI__OP_ONNX_##name, 7, broadcast}
static const rewrite rewrites[] = {
    BROADCAST(Add), BROADCAST(Sub),  BROADCAST(Mul),     BROADCAST(Div),
    BROADCAST(Pow), BROADCAST(And),  BROADCAST(Or),      BROADCAST(Xor),
    BROADCAST(Less), BROADCAST(Equal), BROADCAST(Greater), BROADCAST(PRelu),
    {NORI__OP_ONNX_Upsample, 10, upsample},
    {NORI__OP_ONNX_Resize, 11, resize},
};

nori_status nori__upgrade(nori__ir *ir, nori_error *err)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            for (size_t i = 0; n->op && i < NORI__COUNT(rewrites); i++) {
                if (rewrites[i].op != n->op->id || n->version >= rewrites[i].before) {
                    continue;
                }
                nori_status s = rewrites[i].run(n, err);
                if (s != NORI_OK) {
                    char path[256];
                    nori__node_path(n, path, sizeof(path));
                    nori__where(err, "%s", path);
                    return s;
                }
                break;
            }
        }
    }
    return NORI_OK;
}
