/* integers_table.c: what lies between an 8-bit value and a QuantizeLinear, and works element by
 * element on that value alone, is a table of 256 entries (integers.h). The entries are what the
 * reference kernels make of all 256 bytes, so the result is that of the nodes one by one. */
#include "providers/cpu/integers.h"

#include <math.h>

#define MOST 16 /* nodes of a function */

typedef struct region {
    nori__joiner *j;
    nori__value *root; /* 8 bits */
    nori__node *node[MOST];
    nori_tensor *made[MOST]; /* output of each, for all bytes */
    size_t count;
    nori_tensor *bytes;      /* what root stands for */
} region;

/* Works element by element, on one output. */
static bool by_element(const nori__node *n)
{
    static const nori__op_id ops[] = {
        NORI__OP_ONNX_Relu, NORI__OP_ONNX_LeakyRelu, NORI__OP_ONNX_Clip, NORI__OP_ONNX_HardSigmoid,
        NORI__OP_ONNX_HardSwish, NORI__OP_ONNX_Sigmoid, NORI__OP_ONNX_Tanh, NORI__OP_ONNX_Exp,
        NORI__OP_ONNX_Log, NORI__OP_ONNX_Erf, NORI__OP_ONNX_Gelu, NORI__OP_ONNX_Swish,
        NORI__OP_ONNX_Mish, NORI__OP_ONNX_Elu, NORI__OP_ONNX_Celu, NORI__OP_ONNX_Selu,
        NORI__OP_ONNX_Softplus, NORI__OP_ONNX_Softsign, NORI__OP_ONNX_ThresholdedRelu,
        NORI__OP_ONNX_PRelu, NORI__OP_ONNX_Sqrt, NORI__OP_ONNX_Reciprocal, NORI__OP_ONNX_Neg,
        NORI__OP_ONNX_Abs, NORI__OP_ONNX_Floor, NORI__OP_ONNX_Ceil, NORI__OP_ONNX_Round,
        NORI__OP_ONNX_Add, NORI__OP_ONNX_Sub, NORI__OP_ONNX_Mul, NORI__OP_ONNX_Div,
        NORI__OP_ONNX_Pow, NORI__OP_ONNX_Max, NORI__OP_ONNX_Min, NORI__OP_ONNX_Identity,
        NORI__OP_MS_FastGelu, NORI__OP_MS_QuickGelu};
    for (size_t i = 0; i < NORI__COUNT(ops) && n->output_count == 1; i++) {
        if (nori__node_is(n, ops[i])) {
            return true;
        }
    }
    return false;
}

/* ---- finding it ---- */

static bool listed(const region *r, const nori__node *n)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->node[i] == n) {
            return true;
        }
    }
    return false;
}

static bool list(region *r, nori__node *n)
{
    if (listed(r, n)) {
        return true;
    }
    if (r->count == MOST) {
        return false;
    }
    r->node[r->count++] = n;
    return true;
}

/* q is what the function is of; where a Table makes it, what that reads. */
static bool set_root(region *r, nori__value *q)
{
    nori__node *p = q->producer;
    if (nori__integer_is(p, NORI__INTEGER_TABLE) && p->graph == r->j->g) {
        if (!list(r, p)) {
            return false;
        }
        q = p->inputs[0];
    }
    bool same = !r->root || r->root == q;
    r->root = q;
    return same;
}

/* A constant of one element, that does not widen what it meets. */
static bool one_number(const nori__value *v)
{
    const nori_tensor *t = nori__value_const(v);
    return t && t->kind == NORI_KIND_TENSOR && t->count == 1 && t->type != NORI_STRING;
}

static bool no_wider(const region *r)
{
    for (size_t i = 0; i < r->count; i++) {
        for (uint32_t k = 0; k < r->node[i]->input_count; k++) {
            const nori_tensor *t = nori__value_const(r->node[i]->inputs[k]);
            if (by_element(r->node[i]) && t && t->rank > 0 && t->rank > r->root->type.rank) {
                return false;
            }
        }
    }
    return true;
}

/* All nodes between root and v; the list grows while it is walked. */
static bool find(region *r, nori__value *v)
{
    nori__quantized by;
    size_t first = r->count;
    if (nori__dequantized_8bit(r->j, v, &by)) {
        return list(r, v->producer) && set_root(r, by.q);
    }
    if (!v->producer || v->producer->graph != r->j->g || !by_element(v->producer) ||
        !list(r, v->producer)) {
        return false;
    }
    for (size_t i = first; i < r->count; i++) {
        nori__node *n = r->node[i];
        for (uint32_t k = 0; k < n->input_count && by_element(n); k++) {
            nori__value *in = n->inputs[k];
            if (!in || one_number(in)) {
                continue;
            }
            bool leaf = nori__dequantized_8bit(r->j, in, &by);
            if (!in->producer || in->producer->graph != r->j->g ||
                (!leaf && !by_element(in->producer)) || !list(r, in->producer) ||
                (leaf && !set_root(r, by.q))) {
                return false;
            }
        }
    }
    return r->root && no_wider(r);
}

/* ---- computing it ---- */

static const nori_tensor *content(const region *r, const nori__value *v)
{
    if (v == r->root) {
        return r->bytes;
    }
    for (size_t i = 0; i < r->count; i++) {
        if (r->node[i]->outputs[0] == v) {
            return r->made[i];
        }
    }
    return nori__value_const(v);
}

/* Runs n on what is known; NULL with an OK status: not all is known yet, or it cannot be run. */
static nori_tensor *evaluate(const region *r, const nori__node *n)
{
    nori__value fake[8], *in[8];
    nori__node copy = *n;
    nori_tensor *out = NULL;
    if (n->input_count > NORI__COUNT(in)) {
        return NULL;
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        in[i] = NULL;
        if (n->inputs[i]) {
            fake[i] = *n->inputs[i];
            fake[i].flags = NORI__VALUE_INITIALIZER;
            fake[i].constant = (nori_tensor *)(uintptr_t)content(r, n->inputs[i]);
            in[i] = &fake[i];
            if (!fake[i].constant) {
                return NULL;
            }
        }
    }
    copy.inputs = in;
    nori_status s = nori__node_evaluate(&copy, r->j->ir->allocator, &out, NULL);
    if (s == NORI_ERROR_MEMORY) {
        nori__no_memory(r->j->err);
    }
    return s == NORI_OK ? out : NULL;
}

static bool make_bytes(region *r)
{
    const int64_t n = 256;
    if (nori__tensor_new(r->j->ir->allocator, (nori_type)r->root->type.elem, 1, &n, &r->bytes,
                         r->j->err) != NORI_OK) {
        return false;
    }
    for (int i = 0; i < 256; i++) {
        ((uint8_t *)r->bytes->data)[i] = (uint8_t)i;
    }
    return true;
}

/* What last makes of each byte of root. */
static nori_tensor *tabulate(region *r, const nori__node *last)
{
    nori_tensor *table = NULL;
    bool grown = make_bytes(r);
    while (grown) {
        grown = false;
        for (size_t i = 0; i < r->count; i++) {
            if (!r->made[i]) {
                r->made[i] = evaluate(r, r->node[i]);
                grown = grown || r->made[i];
            }
        }
    }
    table = r->bytes && r->j->err->status == NORI_OK ? evaluate(r, last) : NULL;
    for (size_t i = 0; i < r->count; i++) {
        nori_tensor_free(r->made[i]);
    }
    nori_tensor_free(r->bytes);
    if (table && (table->count != 256 || !nori__cpu_is_8bit((nori_type)table->type))) {
        nori_tensor_free(table);
        return NULL;
    }
    return table;
}

static bool is_identity(const region *r, const nori_tensor *table)
{
    bool same = table->type == r->root->type.elem;
    for (int i = 0; i < 256 && same; i++) {
        same = ((const uint8_t *)table->data)[i] == i;
    }
    return same;
}

static nori__node *add_table(nori__joiner *j, nori__node *before, nori__value *x, nori_tensor *table,
                             nori__value *out)
{
    int64_t n = 256;
    (void)nori__tensor_reshape(table, (nori_type)table->type, 1, &n);
    nori__value *in[2] = {x, nori__joiner_const(j, table)};
    return in[1] ? nori__joiner_node(j, before, "nori", "Table",
                                     nori__integer_op(NORI__INTEGER_TABLE), in, 2, out, NULL)
                 : NULL;
}

/* last and what is listed become a Table, or nothing at all. */
static nori__node *replace(region *r, nori__node *last)
{
    nori__joiner *j = r->j;
    nori__value *out = last->outputs[0];
    nori_tensor *table = tabulate(r, last);
    nori__node *made = NULL;
    if (!table) {
        return NULL;
    }
    if (is_identity(r, table)) {
        nori_tensor_free(table);
        if (out->flags & NORI__VALUE_OUTPUT || out->graph != r->root->graph) {
            made = nori__joiner_node(j, last, "", "Identity", NULL, &r->root, 1, out, NULL);
        } else {
            nori__value_replace(out, r->root);
            made = last;
        }
    } else {
        made = add_table(j, last, r->root, table, out);
    }
    if (made && made != last) {
        made->name = last->name;
    }
    if (made) {
        nori__drop(j, last);
    }
    return made;
}

nori__node *nori__join_table(nori__joiner *j, nori__node *q)
{
    nori__quantized by;
    region r = {.j = j};
    return nori__quantizes(q, &by) && q->inputs[0] && find(&r, q->inputs[0]) ? replace(&r, q) : NULL;
}

nori__node *nori__table_of_node(nori__joiner *j, nori__node *n)
{
    region r = {.j = j};
    if ((!nori__node_is(n, NORI__OP_MS_QLinearSigmoid) &&
         !nori__node_is(n, NORI__OP_MS_QLinearLeakyRelu)) ||
        n->output_count != 1 || n->input_count < 4 || !n->inputs[0] ||
        !nori__cpu_is_8bit((nori_type)n->inputs[0]->type.elem) || !set_root(&r, n->inputs[0])) {
        return NULL;
    }
    return replace(&r, n);
}

nori__node *nori__clamp_table(nori__joiner *j, nori__node *before, nori__value *v,
                              const nori__quantized *y, float low, float high, nori__value *out)
{
    const int64_t n = 256;
    bool is_signed = y->type == NORI_INT8;
    float zero = (float)nori__zero_of(y), least = is_signed ? -128 : 0;
    float bound[2] = {low, high};
    nori_tensor *table = NULL;
    for (int i = 0; i < 2; i++) { /* quantizing keeps order: limits are quantized as values are */
        float q = rintf(bound[i] / nori__scale_of(y)) + zero;
        bound[i] = q >= least ? (q < least + 255 ? q : least + 255) : least;
    }
    if (nori__tensor_new(j->ir->allocator, y->type, 1, &n, &table, j->err) != NORI_OK) {
        return NULL;
    }
    for (int i = 0; i < 256; i++) {
        float q = is_signed ? (float)(int8_t)(uint8_t)i : (float)i;
        q = q < bound[0] ? bound[0] : q > bound[1] ? bound[1] : q;
        ((uint8_t *)table->data)[i] = (uint8_t)(int32_t)q;
    }
    return add_table(j, before, v, table, out);
}
