/* infer.c: helpers of shape inference. */
#include "ops/op.h"

bool nori__has_in(const nori__infer *c, uint32_t i)
{
    return i < c->node->input_count && c->node->inputs[i] != NULL;
}

nori_type nori__in_elem(const nori__infer *c, uint32_t i)
{
    return nori__has_in(c, i) ? (nori_type)c->in[i].elem : NORI_UNDEFINED;
}

int nori__in_rank(const nori__infer *c, uint32_t i)
{
    return nori__has_in(c, i) && c->in[i].kind == NORI_KIND_TENSOR ? c->in[i].rank : -1;
}

int nori__in_data(const nori__infer *c, uint32_t i, nori__dim *out, int max)
{
    if (!nori__has_in(c, i)) {
        return -1;
    }
    const nori__shape *s = &c->in[i];
    if (s->tensor) {
        if (s->tensor->rank > 1 || s->tensor->count > max) {
            return -1;
        }
        for (int64_t k = 0; k < s->tensor->count; k++) {
            out[k] = (nori__dim){nori__tensor_get_i64(s->tensor, k), NULL};
        }
        return (int)s->tensor->count;
    }
    if (s->data_count < 0 || s->data_count > max) {
        return -1;
    }
    for (int k = 0; k < s->data_count; k++) {
        out[k] = s->data[k];
    }
    return s->data_count;
}

void nori__out_set(nori__infer *c, uint32_t i, nori_type elem, int rank, const nori__dim *dims)
{
    if (i >= c->node->output_count) {
        return;
    }
    nori__shape *o = &c->out[i];
    o->kind = NORI_KIND_TENSOR;
    o->elem = (uint8_t)elem;
    o->rank = (int8_t)rank;
    for (int d = 0; d < rank; d++) {
        o->dims[d] = dims[d];
    }
}

void nori__out_like(nori__infer *c, uint32_t i, uint32_t in)
{
    if (!nori__has_in(c, in) || i >= c->node->output_count) {
        return;
    }
    if (c->in[in].kind == NORI_KIND_TENSOR) {
        nori__out_set(c, i, c->in[in].elem, c->in[in].rank, c->in[in].dims);
    } else {
        c->out[i].kind = c->in[in].kind;
        c->out[i].elem = c->in[in].elem;
        c->out[i].of = c->in[in].of;
        c->out[i].rank = -1;
    }
}

void nori__out_elem(nori__infer *c, uint32_t i, nori_type elem)
{
    if (i < c->node->output_count) {
        c->out[i].kind = NORI_KIND_TENSOR;
        c->out[i].elem = (uint8_t)elem;
    }
}

nori_status nori__broadcast(nori__infer *c, const nori__shape *a, const nori__shape *b,
                            nori__shape *out)
{
    if (a->kind != NORI_KIND_TENSOR || b->kind != NORI_KIND_TENSOR || a->rank < 0 || b->rank < 0) {
        out->rank = -1;
        return NORI_OK;
    }
    int rank = a->rank > b->rank ? a->rank : b->rank;
    nori__dim dims[NORI_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        int ad = d - (rank - a->rank), bd = d - (rank - b->rank);
        nori__dim x = ad < 0 ? nori__dim_of(1) : a->dims[ad];
        nori__dim y = bd < 0 ? nori__dim_of(1) : b->dims[bd];
        if (x.value == 1) {
            dims[d] = y;
        } else if (y.value == 1 || nori__dim_same(x, y)) {
            dims[d] = x;
        } else if (x.value >= 0 && y.value >= 0) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "shapes do not broadcast: axis %d from the right has %lld and %lld",
                              rank - d, (long long)x.value, (long long)y.value);
        } else {
            dims[d] = x.value > 1 ? x : y.value > 1 ? y : NORI__DIM_ANY;
        }
    }
    for (int d = 0; d < rank; d++) {
        out->dims[d] = dims[d];
    }
    out->rank = (int8_t)rank;
    return NORI_OK;
}

nori_status nori__fix_axis(nori_error *err, int64_t axis, int rank, int *out)
{
    if (axis < -(int64_t)rank || axis >= rank) {
        return nori__fail(err, NORI_ERROR_MODEL, "axis %lld, but the rank is %d", (long long)axis,
                          rank);
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return NORI_OK;
}

nori_status nori__infer_same(nori__infer *c)
{
    for (uint32_t i = 0; i < c->node->output_count; i++) {
        nori__out_like(c, i, 0);
    }
    return NORI_OK;
}

static nori_status broadcast_all(nori__infer *c, nori_type elem)
{
    if (c->node->input_count == 0 || c->node->output_count == 0) {
        return NORI_OK;
    }
    nori__shape *out = &c->out[0];
    const nori__shape *first = &c->in[0];
    out->kind = first->kind;
    out->rank = first->rank;
    out->of = first->of;
    for (int d = 0; d < first->rank; d++) {
        out->dims[d] = first->dims[d];
    }
    out->tensor = NULL;
    out->data_count = -1;
    /* With this attribute (opset 1 to 6) B fits into A, at an axis that upgrade.c deals with. */
    uint32_t count = nori__attr_i(c->node, "broadcast", 0) ? 1 : c->node->input_count;
    for (uint32_t i = 1; i < count; i++) {
        if (nori__has_in(c, i)) {
            NORI__TRY(nori__broadcast(c, out, &c->in[i], out));
        }
    }
    out->kind = NORI_KIND_TENSOR;
    out->elem = (uint8_t)elem;
    return NORI_OK;
}

nori_status nori__infer_broadcast(nori__infer *c)
{
    return broadcast_all(c, nori__in_elem(c, 0));
}

nori_status nori__infer_compare(nori__infer *c)
{
    return broadcast_all(c, NORI_BOOL);
}

nori_status nori__infer_none(nori__infer *c)
{
    (void)c;
    return NORI_OK;
}
