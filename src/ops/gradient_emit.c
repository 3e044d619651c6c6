/* gradient_emit.c: the nodes derivatives are made of, in front of the Gradient node. */
#include "ops/gradient.h"

static void out_of_memory(nori__grad *d)
{
    if (d->status == NORI_OK) {
        d->status = nori__no_memory(d->err);
    }
}

nori__value *nori__emit(nori__grad *d, const char *op, nori__value *a, nori__value *b, nori__value *c)
{
    nori__value *in[3] = {a, b, c};
    size_t n = c ? 3 : b ? 2 : 1;
    if (d->status != NORI_OK) {
        return NULL;
    }
    nori__value *out = nori__value_new(d->graph, NULL);
    d->last = out ? nori__node_new(d->graph, d->at, "", op, in, n, &out, 1) : NULL;
    if (!d->last) {
        out_of_memory(d);
        return NULL;
    }
    nori__node_resolve(d->last);
    return out;
}

static nori__value *constant(nori__grad *d, nori_type type, int rank, int64_t count, nori_tensor **t)
{
    if (d->status == NORI_OK) {
        d->status = nori__tensor_new(d->graph->ir->allocator, type, rank, &count, t, d->err);
    }
    nori__value *v = d->status == NORI_OK ? nori__const_new(d->graph, NULL, *t) : NULL;
    if (!v) {
        out_of_memory(d);
    }
    return v;
}

nori__value *nori__emit_ints(nori__grad *d, const int64_t *v, int64_t count)
{
    nori_tensor *t = NULL;
    nori__value *out = constant(d, NORI_INT64, 1, count, &t);
    for (int64_t i = 0; out && i < count; i++) {
        nori__tensor_set_i64(t, i, v[i]);
    }
    return out;
}

nori__value *nori__emit_number(nori__grad *d, double v, const nori__value *like)
{
    nori_tensor *t = NULL;
    if (d->status == NORI_OK && like->type.elem == NORI_UNDEFINED) {
        d->status = nori__fail(d->err, NORI_ERROR_UNSUPPORTED,
                               "the element type of '%.100s' is not known", like->name);
    }
    nori__value *out = constant(d, (nori_type)like->type.elem, 0, 1, &t);
    if (out) {
        nori__tensor_set_f64(t, 0, v);
    }
    return out;
}

void nori__emit_attr(nori__grad *d, const char *name, int64_t v)
{
    if (d->status == NORI_OK && !nori__node_set_int(d->last, name, v)) {
        out_of_memory(d);
    }
}

void nori__emit_attrs(nori__grad *d, const char *name, const int64_t *v, size_t n)
{
    if (d->status == NORI_OK && !nori__node_set_ints(d->last, name, v, n)) {
        out_of_memory(d);
    }
}

void nori__emit_attr_float(nori__grad *d, const char *name, float v)
{
    if (d->status == NORI_OK && !nori__node_set_float(d->last, name, v)) {
        out_of_memory(d);
    }
}

nori__value *nori__emit_shape(nori__grad *d, nori__value *v)
{
    return nori__emit(d, "Shape", v, NULL, NULL);
}

nori__value *nori__emit_expand(nori__grad *d, nori__value *v, nori__value *like)
{
    return nori__emit(d, "Expand", v, nori__emit_shape(d, like), NULL);
}

nori__value *nori__emit_reshape(nori__grad *d, nori__value *v, nori__value *like)
{
    nori__value *out = nori__emit(d, "Reshape", v, nori__emit_shape(d, like), NULL);
    nori__emit_attr(d, "allowzero", 1); /* a size of 0 is one, not "as before" */
    return out;
}

static bool same_shape(const nori__value *a, const nori__value *b)
{
    if (a->type.rank < 0 || a->type.rank != b->type.rank) {
        return false;
    }
    for (int i = 0; i < a->type.rank; i++) {
        if (!nori__dim_same(a->type.dims[i], b->type.dims[i])) {
            return false;
        }
    }
    return true;
}

/* Where sizes are not known yet, the axes to sum over are found by the run: those where x, with ones
 * in front, has another size. Folding drops all that where they are known. */
nori__value *nori__emit_sum_to(nori__grad *d, nori__value *v, const nori__value *whole,
                               nori__value *x)
{
    if (d->status != NORI_OK || same_shape(whole, x)) {
        return v;
    }
    int missing = whole->type.rank - x->type.rank;
    if (whole->type.rank < 0 || x->type.rank < 0 || missing < 0) {
        d->status = nori__fail(d->err, NORI_ERROR_UNSUPPORTED,
                               "the derivative by '%.100s' needs its rank, which is not known",
                               x->name);
        return NULL;
    }
    nori__value *shape = nori__emit_shape(d, x), *padded = shape;
    if (missing > 0) {
        int64_t ones[NORI_MAX_RANK];
        for (int i = 0; i < missing; i++) {
            ones[i] = 1;
        }
        padded = nori__emit(d, "Concat", nori__emit_ints(d, ones, missing), shape, NULL);
        nori__emit_attr(d, "axis", 0);
    }
    nori__value *same = nori__emit(d, "Equal", padded, nori__emit_shape(d, v), NULL);
    nori__value *where = nori__emit(d, "NonZero", nori__emit(d, "Not", same, NULL, NULL), NULL, NULL);
    nori__value *axes =
        nori__emit(d, "Squeeze", where, nori__emit_ints(d, (int64_t[]){0}, 1), NULL);
    nori__value *sum = nori__emit(d, "ReduceSum", v, axes, NULL);
    nori__emit_attr(d, "noop_with_empty_axes", 1);
    return nori__emit_reshape(d, sum, x);
}
