/* integers_common.c: reading quantization from nodes, and making values and nodes (integers.h). */
#include "providers/cpu/integers.h"

#include <math.h>

/* ---- reading ---- */

static bool is_f32(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && v->type.elem == NORI_FLOAT;
}

/* Scales and zero points of n; all scales finite and positive. */
static bool read_params(const nori__node *n, nori__quantized *out)
{
    out->scale = nori__input_of(n, 1);
    out->zero = nori__input_of(n, 2);
    out->scales = nori__value_const(out->scale);
    out->zeros = nori__value_const(out->zero);
    out->axis = (int)nori__attr_i(n, "axis", 1);
    if (!out->scales || out->scales->type != NORI_FLOAT || out->scales->count < 1 ||
        out->scales->rank > 1 || nori__attr_i(n, "block_size", 0) != 0 ||
        (out->zero && (!out->zeros || out->zeros->type != out->type ||
                       out->zeros->count != out->scales->count))) {
        return false;
    }
    for (int64_t i = 0; i < out->scales->count; i++) {
        float s = ((const float *)out->scales->data)[i];
        if (!(s > 0) || !isfinite(s)) {
            return false;
        }
    }
    return true;
}

bool nori__dequantized(const nori__joiner *j, const nori__value *v, nori__quantized *out)
{
    const nori__node *n = v ? v->producer : NULL;
    memset(out, 0, sizeof(*out));
    if (!n || n->graph != j->g || !nori__node_is(n, NORI__OP_ONNX_DequantizeLinear) ||
        !is_f32(v) || !n->inputs[0] || n->inputs[0]->type.kind != NORI_KIND_TENSOR) {
        return false;
    }
    out->q = n->inputs[0];
    out->type = (nori_type)out->q->type.elem;
    return (nori__cpu_is_8bit(out->type) || out->type == NORI_INT32) && read_params(n, out);
}

bool nori__dequantized_8bit(const nori__joiner *j, const nori__value *v, nori__quantized *out)
{
    return nori__dequantized(j, v, out) && nori__cpu_is_8bit(out->type) && out->scales->count == 1;
}

bool nori__quantizes(const nori__node *n, nori__quantized *out)
{
    memset(out, 0, sizeof(*out));
    if (!nori__node_is(n, NORI__OP_ONNX_QuantizeLinear) || !is_f32(nori__cpu_value(n, 0)) ||
        !n->outputs[0]) {
        return false;
    }
    int64_t precision = nori__attr_i(n, "precision", NORI_UNDEFINED); /* 0: the scale's */
    if (precision != NORI_UNDEFINED && precision != NORI_FLOAT) {
        return false;
    }
    out->q = n->outputs[0];
    out->type = (nori_type)out->q->type.elem;
    return nori__cpu_is_8bit(out->type) && read_params(n, out) && out->scales->count == 1;
}

bool nori__same_quantization(const nori__quantized *a, const nori__quantized *b)
{
    return a->type == b->type && a->scales->count == 1 && b->scales->count == 1 &&
           nori__scale_of(a) == nori__scale_of(b) && nori__zero_of(a) == nori__zero_of(b);
}

nori__node *nori__sole_producer(const nori__joiner *j, const nori__value *v)
{
    return v && v->uses == 1 && !(v->flags & NORI__VALUE_OUTPUT) && v->producer &&
                   v->producer->graph == j->g
               ? v->producer
               : NULL;
}

/* ---- making ---- */

nori__value *nori__joiner_const(nori__joiner *j, nori_tensor *t)
{
    nori__value *v = nori__const_new(j->g, NULL, t);
    if (!v) {
        nori__no_memory(j->err);
    }
    return v;
}

nori__value *nori__float_const(nori__joiner *j, const float *v, int64_t count, bool scalar)
{
    nori_tensor *t = NULL;
    if (nori__tensor_new(j->ir->allocator, NORI_FLOAT, scalar ? 0 : 1, &count, &t, j->err) !=
        NORI_OK) {
        return NULL;
    }
    memcpy(t->data, v, (size_t)count * sizeof(float));
    return nori__joiner_const(j, t);
}

nori__value *nori__zero_value(nori__joiner *j, const nori__quantized *q)
{
    nori_tensor *t = NULL;
    if (q->zero) {
        return q->zero;
    }
    if (nori__tensor_new(j->ir->allocator, q->type, 0, NULL, &t, j->err) != NORI_OK) {
        return NULL;
    }
    nori__tensor_set_i64(t, 0, 0);
    return nori__joiner_const(j, t);
}

nori__value *nori__value_like(nori__joiner *j, const nori__value *v, nori_type type)
{
    nori__value *made = nori__value_new(j->g, v->name);
    if (!made ||
        !nori__type_set(&j->ir->arena, &made->type, type, v->type.rank, v->type.dims)) {
        nori__no_memory(j->err);
        return NULL;
    }
    made->flags |= v->flags & NORI__VALUE_HINTED;
    return made;
}

nori__node *nori__joiner_node(nori__joiner *j, nori__node *before, const char *domain,
                              const char *name, const nori__op *op, nori__value *const *in,
                              size_t n_in, nori__value *out, const nori__node *like)
{
    while (n_in > 0 && !in[n_in - 1]) {
        n_in--;
    }
    nori__node *made = nori__node_new(j->g, before, domain, name, in, n_in, &out, 1);
    if (!made) {
        nori__no_memory(j->err);
        return NULL;
    }
    if (op) {
        made->op = op;
        made->version = 1;
    } else {
        nori__node_resolve_at(made, domain[0] ? 1 : INT32_MAX);
    }
    if (like) {
        made->name = like->name;
        made->attrs = like->attrs;
        made->attr_count = like->attr_count;
    }
    return made;
}

static bool is_dead(const nori__node *n)
{
    for (uint32_t i = 0; i < n->output_count; i++) {
        const nori__value *v = n->outputs[i];
        if (v && v->producer == n && (v->uses > 0 || (v->flags & NORI__VALUE_OUTPUT))) {
            return false;
        }
    }
    return true;
}

void nori__drop(nori__joiner *j, nori__node *n)
{
    nori__node *open[32]; /* what does not fit stays for the pass that removes dead nodes */
    size_t count = 0;
    open[count++] = n;
    while (count > 0) {
        n = open[--count];
        if (!is_dead(n)) {
            continue;
        }
        nori__node_remove(n);
        for (uint32_t i = 0; i < n->input_count && count < NORI__COUNT(open); i++) {
            nori__node *p = n->inputs[i] ? n->inputs[i]->producer : NULL;
            bool listed = !p || p->graph != j->g;
            for (size_t k = 0; k < count && !listed; k++) {
                listed = open[k] == p;
            }
            if (!listed) {
                open[count++] = p;
            }
        }
    }
}
