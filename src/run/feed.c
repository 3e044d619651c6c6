/* feed.c: what callers feed against what the graph declares. */
#include <stdio.h>

#include "base/byte_order.h"
#include "base/given.h"
#include "run/run.h"

static void shape_text(char *out, size_t size, int rank, const int64_t *dims,
                       const char *const *names)
{
    size_t used = (size_t)snprintf(out, size, "[");
    for (int d = 0; d < rank && used + 1 < size; d++) {
        int n = dims[d] >= 0          ? snprintf(out + used, size - used, "%s%lld", d ? ", " : "",
                                                 (long long)dims[d])
                : names && names[d]   ? snprintf(out + used, size - used, "%s%s", d ? ", " : "",
                                                 names[d])
                                      : snprintf(out + used, size - used, "%s?", d ? ", " : "");
        used += n > 0 ? (size_t)n : 0;
    }
    if (used + 1 < size) {
        snprintf(out + used, size - used, "]");
    }
}

/* The first number of an initializer or a Constant of the file; -1: it is neither. */
static int64_t first_number(const nori__pb_graph *g, nori__str name)
{
    const nori__pb_tensor *t = NULL;
    for (size_t i = 0; i < g->initializers.count && !t; i++) {
        nori__str own = g->initializers.items[i].name;
        t = own.n == name.n && memcmp(own.p, name.p, name.n) == 0 ? &g->initializers.items[i] : NULL;
    }
    for (size_t i = 0; i < g->nodes.count && !t; i++) {
        const nori__pb_node *n = &g->nodes.items[i];
        bool makes = n->outputs.count == 1 && n->outputs.items[0].n == name.n && name.n > 0 &&
                     memcmp(n->outputs.items[0].p, name.p, name.n) == 0;
        for (size_t k = 0; makes && nori__str_is(n->op_type, "Constant") && k < n->attrs.count; k++) {
            t = n->attrs.items[k].t ? n->attrs.items[k].t : t;
        }
    }
    int64_t first = -1;
    bool list = t && t->data_type == NORI_INT64 && t->dims.count == 1 && t->dims.items[0] > 1;
    if (list && t->raw.n >= sizeof(first)) {
        memcpy(&first, t->raw.p, sizeof(first));
        nori__order(NORI_INT64, &first, sizeof(first));
    } else if (list && t->ints.count > 0) {
        nori__pb_cursor entries = nori__pb_numbers_of(&t->ints);
        first = (int64_t)nori__pb_number(&entries);
    }
    return first;
}

/* A node of the file whose constant shape also fixes the batch, for the hint when axis 0 does not fit:
 * compiling may have put another in its place. */
static const nori__pb_node *baked_node(const nori_session *s, int64_t batch)
{
    const nori__pb_graph *g = s->source->pb->graph;
    for (size_t i = 0; i < g->nodes.count; i++) {
        const nori__pb_node *n = &g->nodes.items[i];
        bool shapes = nori__str_is(n->op_type, "Reshape") || nori__str_is(n->op_type, "Expand");
        if (shapes && n->inputs.count > 1 && first_number(g, n->inputs.items[1]) == batch) {
            return n;
        }
    }
    return NULL;
}

static void hint_axis(const nori_session *s, int axis, int64_t expected, nori_error *err)
{
    const nori__pb_node *baked = axis == 0 ? baked_node(s, expected) : NULL;
    if (baked) {
        nori__str name = baked->name.n || baked->outputs.count == 0 ? baked->name : baked->outputs.items[0];
        nori__hint(err,
                   "the model was exported with this size, and node %.*s (%.*s) also has it built in: "
                   "feed %lld at a time, or let `nori rebatch` make one that takes any",
                   (int)(name.n < 200 ? name.n : 200), name.n ? name.p : "", (int)baked->op_type.n,
                   baked->op_type.p, (long long)expected);
    } else if (axis == 0) {
        nori__hint(err,
                   "the size of axis 0 is fixed, by the model's export or by a dimension given with it: "
                   "feed %lld, export with dynamic axes, or let `nori rebatch` make a model that takes any",
                   (long long)expected);
    } else {
        nori__hint(err,
                   "the size of axis %d is fixed, by the model's export or by a dimension given "
                   "with it: feed %lld, or export with dynamic axes",
                   axis, (long long)expected);
    }
}

static nori_status check_input(const nori_session *s, size_t index, const nori_value_info *t,
                               nori_error *err)
{
    const nori_value_info *want = &s->inputs[index];
    if (want->kind != NORI_KIND_UNKNOWN && t->kind != want->kind) {
        return nori__fail(err, NORI_ERROR_DATA,
                          "input \"%s\": a %s was expected, another kind of value was fed",
                          want->name, want->kind == NORI_KIND_TENSOR ? "tensor" : "group");
    }
    if (t->kind != NORI_KIND_TENSOR) {
        return NORI_OK;
    }
    if (want->type != NORI_UNDEFINED && want->type != t->type) {
        return nori__fail(err, NORI_ERROR_DATA, "input \"%s\": type %s was expected, got %s",
                          want->name, nori_type_name(want->type), nori_type_name(t->type));
    }
    if (want->rank < 0) {
        return NORI_OK;
    }
    char expected[256], got[256];
    shape_text(expected, sizeof(expected), want->rank, want->dims, want->dim_names);
    shape_text(got, sizeof(got), t->rank, t->dims, NULL);
    if (want->rank != t->rank) {
        return nori__fail(err, NORI_ERROR_DATA,
                          "input \"%s\": rank %d was expected (shape %s), got rank %d (shape %s)",
                          want->name, want->rank, expected, t->rank, got);
    }
    for (int d = 0; d < want->rank; d++) {
        if (want->dims[d] >= 0 && want->dims[d] != t->dims[d]) {
            nori_status status = nori__fail(
                err, NORI_ERROR_DATA,
                "input \"%s\" axis %d: expected %lld, got %lld (shape %s was expected, got %s)",
                want->name, d, (long long)want->dims[d], (long long)t->dims[d], expected, got);
            hint_axis(s, d, want->dims[d], err);
            return status;
        }
    }
    return NORI_OK;
}

static nori_status check_tensor(const nori_session *s, size_t index, const nori_tensor *t,
                                nori_error *err)
{
    const nori_value_info info = {.kind = (nori_kind)t->kind, .type = (nori_type)t->type, .rank = t->rank,
                                  .dims = t->dims};
    return check_input(s, index, &info, err);
}

nori_status nori_session_input_fits(const nori_session *session, size_t index,
                                    const nori_value_info *value, nori_error *err)
{
    NORI__GIVEN(err, session);
    NORI__GIVEN(err, value);
    if (index >= session->n_inputs) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "input %zu was asked for, the model has %zu", index,
                          session->n_inputs);
    }
    return check_input(session, index, value, err);
}

nori_status nori__check_inputs(const nori_session *s, const nori_tensor *const *inputs,
                               size_t count, nori_error *err)
{
    if (count > s->n_inputs) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "%zu inputs were fed, the model has %zu", count,
                          s->n_inputs);
    }
    for (size_t i = 0; i < s->n_inputs; i++) {
        const nori_tensor *t = i < count ? inputs[i] : NULL;
        if (t) {
            NORI__TRY(check_tensor(s, i, t, err));
        } else if (!s->inputs[i].optional) {
            return nori__fail(err, NORI_ERROR_DATA, "input \"%s\" was not fed", s->inputs[i].name);
        }
    }
    /* Dimensions of one name are one size. */
    for (size_t i = 0; i < count; i++) {
        for (int d = 0; inputs[i] && d < s->inputs[i].rank; d++) {
            const char *name = s->inputs[i].dim_names[d];
            for (size_t k = 0; name && k < i; k++) {
                for (int e = 0; inputs[k] && e < s->inputs[k].rank; e++) {
                    const char *other = s->inputs[k].dim_names[e];
                    if (other && nori__same(name, other) &&
                        inputs[k]->dims[e] != inputs[i]->dims[d]) {
                        return nori__fail(err, NORI_ERROR_DATA,
                                          "dimension %s is %lld in input \"%s\" axis %d, but %lld "
                                          "in input \"%s\" axis %d",
                                          name, (long long)inputs[k]->dims[e], s->inputs[k].name, e,
                                          (long long)inputs[i]->dims[d], s->inputs[i].name, d);
                    }
                }
            }
        }
    }
    return NORI_OK;
}
