/* feed.c: what callers feed against what the graph declares. */
#include <stdio.h>

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

/* A node whose constant shape also fixes the batch, for the hint when axis 0 does not fit. */
static const nori__node *baked_reshape(const nori_session *s, int64_t batch)
{
    for (const nori__node *n = s->ir->main->first; n; n = n->next) {
        bool reshape = nori__node_is(n, NORI__OP_ONNX_Reshape) ||
                       nori__node_is(n, NORI__OP_ONNX_Expand);
        if (!reshape || n->input_count < 2) {
            continue;
        }
        const nori_tensor *t = nori__value_const(n->inputs[1]);
        if (t && t->type == NORI_INT64 && t->count > 1 && ((const int64_t *)t->data)[0] == batch) {
            return n;
        }
    }
    return NULL;
}

static void hint_axis(const nori_session *s, int axis, int64_t expected, nori_error *err)
{
    const nori__node *baked = axis == 0 ? baked_reshape(s, expected) : NULL;
    if (baked) {
        char path[256];
        nori__node_path(baked, path, sizeof(path));
        nori__hint(err,
                   "the model was exported with this size, and node %s also has it built in: "
                   "feed %lld at a time, or export with dynamic axes",
                   path, (long long)expected);
    } else {
        nori__hint(err,
                   "the size of axis %d is fixed, by the model's export or by a dimension given "
                   "with it: feed %lld, or export with dynamic axes",
                   axis, (long long)expected);
    }
}

static nori_status check_input(const nori_session *s, size_t index, const nori_tensor *t,
                               nori_error *err)
{
    const nori_value_info *want = &s->inputs[index];
    if (want->kind != NORI_KIND_UNKNOWN && (nori_kind)t->kind != want->kind) {
        return nori__fail(err, NORI_ERROR_DATA,
                          "input \"%s\": a %s was expected, another kind of value was fed",
                          want->name, want->kind == NORI_KIND_TENSOR ? "tensor" : "group");
    }
    if (t->kind != NORI_KIND_TENSOR) {
        return NORI_OK;
    }
    if (want->type != NORI_UNDEFINED && want->type != (nori_type)t->type) {
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
            NORI__TRY(check_input(s, i, t, err));
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
