/* model_limits.c: a model's messages against the limits of their environment.
 *
 * Stands between the reader and the graph: what is refused here has cost no more than its messages.
 * Graphs hang below attributes to any depth the reader takes, so the walk keeps its own stack. */
#include "onnx/model_limits.h"

#include <stdio.h>

#include "base/size_text.h"

typedef struct level { /* a graph the walk is in, and how far it is */
    const nori__pb_graph *graph;
    size_t node, attr, sub;
} level;

typedef struct walk {
    const nori_limits *limits;
    nori_error *err;
    void (*see)(void *user, const nori__pb_tensor *tensor); /* NULL: nobody asks */
    void *user;
    uint64_t nodes;
    size_t depth, most; /* levels in use; and how many may be */
    level stack[NORI__PB_MAX_NESTING + 2];
} walk;

nori_status nori__past_limit(nori_error *err, const char *what, uint64_t found, uint64_t limit,
                             const char *field, const char *option)
{
    char have[NORI__SIZE_TEXT], most[NORI__SIZE_TEXT];
    const char *kind = strstr(field, "_bytes");
    /* Plain numbers where they are small, or where rounding would make them one. */
    bool sizes = kind && !kind[6] && limit >= 10000 && found / 100 > limit / 100 + limit / 10000;
    snprintf(have, sizeof(have), "%llu", (unsigned long long)found);
    snprintf(most, sizeof(most), "%llu", (unsigned long long)limit);
    nori_status s = nori__fail(err, NORI_ERROR_LIMIT, "%s: %s found, the limit is %s (%s)", what,
                               sizes ? nori__size_text(found, have) : have,
                               sizes ? nori__size_text(limit, most) : most, field);
    nori__hint(err, "if you trust where it comes from, raise it: nori_limits.%s, or --limit %s=N", field,
               option);
    return s;
}

static bool past(uint64_t found, uint64_t limit)
{
    return limit > 0 && found > limit;
}

static nori_status check_string(walk *w, nori__str s, const char *what)
{
    return past(s.n, w->limits->string_bytes)
               ? nori__past_limit(w->err, what, s.n, w->limits->string_bytes, "string_bytes", "string")
               : NORI_OK;
}

static nori_status check_rank(walk *w, size_t rank)
{
    uint64_t most = w->limits->rank > 0 && w->limits->rank < NORI_MAX_RANK ? w->limits->rank
                                                                             : NORI_MAX_RANK;
    return past(rank, most) ? nori__past_limit(w->err, "dimensions of a tensor", rank, most, "rank",
                                               "rank")
                            : NORI_OK;
}

static nori_status check_tensor(walk *w, const nori__pb_tensor *t)
{
    if (w->see) {
        w->see(w->user, t);
    }
    NORI__TRY(check_string(w, t->name, "bytes of an initializer's name"));
    for (size_t i = 0; i < t->strings.count; i++) {
        NORI__TRY(check_string(w, t->strings.items[i], "bytes of a string element"));
    }
    return check_rank(w, t->dims.count);
}

/* Sparse tensors become dense ones: a few bytes of a file may say any size. */
static nori_status check_sparse(walk *w, const nori__pb_sparse *s)
{
    NORI__TRY(check_rank(w, s->dims.count));
    uint64_t bytes = 16; /* of the widest element */
    if (s->values) {
        NORI__TRY(check_tensor(w, s->values));
        unsigned bits = nori_type_bits((nori_type)s->values->data_type);
        bytes = s->values->data_type == NORI_STRING ? sizeof(nori_string) : (bits + 7) / 8;
    }
    NORI__TRY(s->indices ? check_tensor(w, s->indices) : NORI_OK);
    for (size_t d = 0; d < s->dims.count; d++) {
        uint64_t dim = s->dims.items[d] < 0 ? 0 : (uint64_t)s->dims.items[d];
        bytes = dim > 0 && bytes > UINT64_MAX / dim ? UINT64_MAX : bytes * dim;
    }
    return past(bytes, w->limits->unfolded_bytes)
               ? nori__past_limit(w->err, "bytes a sparse tensor unfolds to", bytes,
                                  w->limits->unfolded_bytes, "unfolded_bytes", "unfolded")
               : NORI_OK;
}

static nori_status check_type(walk *w, const nori__pb_type *t)
{
    for (; t; t = t->of) {
        if (t->shape) {
            NORI__TRY(check_rank(w, t->shape->dims.count));
        }
    }
    return NORI_OK;
}

static nori_status check_values(walk *w, const nori__pb_value *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        NORI__TRY(check_string(w, items[i].name, "bytes of a value's name"));
        nori_status s = check_type(w, items[i].type);
        if (s != NORI_OK) {
            nori__where(w->err, "value '%.*s'", (int)(items[i].name.n < 200 ? items[i].name.n : 200),
                        items[i].name.n ? items[i].name.p : "");
            return s;
        }
    }
    return NORI_OK;
}

static nori_status count_nodes(walk *w, size_t count)
{
    w->nodes += count;
    return past(w->nodes, w->limits->nodes)
               ? nori__past_limit(w->err, "nodes of the model", w->nodes, w->limits->nodes, "nodes",
                                  "nodes")
               : NORI_OK;
}

static nori_status enter(walk *w, const nori__pb_graph *g)
{
    if (w->depth > w->most) {
        return nori__past_limit(w->err, "graphs within graphs", w->depth, w->most, "nesting",
                                "nesting");
    }
    w->stack[w->depth++] = (level){.graph = g};
    NORI__TRY(count_nodes(w, g->nodes.count));
    NORI__TRY(check_string(w, g->name, "bytes of a graph's name"));
    NORI__TRY(check_values(w, g->inputs.items, g->inputs.count));
    NORI__TRY(check_values(w, g->outputs.items, g->outputs.count));
    NORI__TRY(check_values(w, g->value_info.items, g->value_info.count));
    for (size_t i = 0; i < g->initializers.count; i++) {
        NORI__TRY(check_tensor(w, &g->initializers.items[i]));
    }
    for (size_t i = 0; i < g->sparse_initializers.count; i++) {
        NORI__TRY(check_sparse(w, &g->sparse_initializers.items[i]));
    }
    return NORI_OK;
}

/* All of an attribute but its graphs. */
static nori_status check_attr(walk *w, const nori__pb_attr *a)
{
    NORI__TRY(check_string(w, a->name, "bytes of an attribute's name"));
    NORI__TRY(check_string(w, a->s, "bytes of a string attribute"));
    NORI__TRY(a->t ? check_tensor(w, a->t) : NORI_OK);
    NORI__TRY(a->sparse ? check_sparse(w, a->sparse) : NORI_OK);
    NORI__TRY(check_type(w, a->tp));
    for (size_t i = 0; i < a->strings.count; i++) {
        NORI__TRY(check_string(w, a->strings.items[i], "bytes of a string attribute"));
    }
    for (size_t i = 0; i < a->tensors.count; i++) {
        NORI__TRY(check_tensor(w, &a->tensors.items[i]));
    }
    for (size_t i = 0; i < a->sparses.count; i++) {
        NORI__TRY(check_sparse(w, &a->sparses.items[i]));
    }
    for (size_t i = 0; i < a->types.count; i++) {
        NORI__TRY(check_type(w, &a->types.items[i]));
    }
    return NORI_OK;
}

static nori_status check_node(walk *w, const nori__pb_node *n)
{
    NORI__TRY(check_string(w, n->name, "bytes of a node's name"));
    NORI__TRY(check_string(w, n->op_type, "bytes of an operator's name"));
    for (size_t i = 0; i < n->outputs.count; i++) {
        NORI__TRY(check_string(w, n->outputs.items[i], "bytes of a value's name"));
    }
    return NORI_OK;
}

/* The next graph below the attributes from where the level is, or NULL when they are done. */
static const nori__pb_graph *next_graph(level *at, const nori__pb_attr *attrs, size_t count)
{
    for (; at->attr < count; at->attr++, at->sub = 0) {
        const nori__pb_attr *a = &attrs[at->attr];
        size_t i = at->sub++;
        if (i == 0 && a->g) {
            return a->g;
        }
        i = i - (a->g != NULL);
        if (i < a->graphs.count) {
            return a->graphs.items[i];
        }
    }
    return NULL;
}

static nori_status check_nodes(walk *w, const nori__pb_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        nori_status s = check_node(w, &nodes[i]);
        for (size_t k = 0; s == NORI_OK && k < nodes[i].attrs.count; k++) {
            s = check_attr(w, &nodes[i].attrs.items[k]);
        }
        if (s != NORI_OK) {
            nori__str name = nodes[i].name.n ? nodes[i].name : nodes[i].op_type;
            nori__where(w->err, "node %zu, '%.*s'", i, (int)(name.n < 200 ? name.n : 200),
                        name.n ? name.p : "");
            return s;
        }
    }
    return NORI_OK;
}

/* A graph and all below it, none of them by recursion. */
static nori_status check_graph(walk *w, const nori__pb_graph *root)
{
    NORI__TRY(enter(w, root));
    NORI__TRY(check_nodes(w, root->nodes.items, root->nodes.count));
    while (w->depth > 0) {
        level *at = &w->stack[w->depth - 1];
        if (at->node == at->graph->nodes.count) {
            w->depth--;
            continue;
        }
        const nori__pb_node *n = &at->graph->nodes.items[at->node];
        const nori__pb_graph *below = next_graph(at, n->attrs.items, n->attrs.count);
        if (below) {
            NORI__TRY(enter(w, below));
            NORI__TRY(check_nodes(w, below->nodes.items, below->nodes.count));
        } else {
            at->node++;
            at->attr = at->sub = 0;
        }
    }
    return NORI_OK;
}

static nori_status check_model(walk *w, const nori__pb_model *model)
{
    NORI__TRY(model->graph ? check_graph(w, model->graph) : NORI_OK);
    for (size_t i = 0; i < model->functions.count; i++) {
        const nori__pb_function *f = &model->functions.items[i];
        const nori__pb_graph body = {.nodes = {f->nodes.items, f->nodes.count},
                                     .value_info = {f->value_info.items, f->value_info.count},
                                     .name = f->name};
        nori_status s = check_graph(w, &body);
        for (size_t k = 0; s == NORI_OK && k < f->attrs.count; k++) {
            s = check_attr(w, &f->attrs.items[k]);
        }
        if (s != NORI_OK) {
            nori__where(w->err, "function '%.*s'", (int)(f->name.n < 200 ? f->name.n : 200),
                        f->name.n ? f->name.p : "");
            return s;
        }
    }
    return NORI_OK;
}

nori_status nori__pb_check_limits(const nori__pb_model *model, const nori_limits *limits,
                                  nori_error *err)
{
    walk w = {.limits = limits, .err = err, .most = NORI__PB_MAX_NESTING};
    if (limits->nesting > 0 && limits->nesting < w.most) {
        w.most = (size_t)limits->nesting;
    }
    return check_model(&w, model);
}

void nori__pb_see_tensors(const nori__pb_model *model,
                          void (*see)(void *user, const nori__pb_tensor *tensor), void *user)
{
    const nori_limits none = {.size = sizeof(none)};
    walk w = {.limits = &none, .see = see, .user = user, .most = NORI__PB_MAX_NESTING};
    check_model(&w, model);
}
