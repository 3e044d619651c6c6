/* blocked_rewrite.c: moves runs of a network onto channel blocks (blocked.h). Types must have been
 * inferred, and convolutions joined with what follows them (fuse.c).
 *
 * One walk in order of execution. A convolution becomes blocked whatever its input is; what follows
 * becomes blocked where all that it reads has a twin already. A value that plain nodes read, too,
 * is made from its twin by one Unblock right behind it. */
#include "ops/resolve.h"
#include "providers/cpu/blocked_rules.h"
#include "providers/cpu/lastc.h"

/* ---- making nodes ---- */

/* A node of the domain "nori" in front of before. */
static nori__node *make(nori__blocker *b, nori__node *before, nori__blocked_id id, const char *name,
                        nori__value *const *in, size_t n_in, nori__value *out)
{
    const nori__op *op = nori__blocked_op(id);
    nori__node *n = nori__node_new(b->g, before, "nori", op->name, in, n_in, &out, 1);
    if (!n) {
        nori__no_memory(b->err);
        return NULL;
    }
    n->op = op;
    n->version = 1;
    n->name = name;
    return n;
}

/* A new twin of v, not made by anything yet. */
static nori__value *new_twin(nori__blocker *b, const nori__value *v)
{
    nori__value *t = nori__value_new(b->g, v->name);
    const nori__dim *d = v->type.dims;
    int64_t c = (int64_t)b->block;
    nori__dim dims[5] = {d[0], nori__dim_of((d[1].value + c - 1) / c), d[2], d[3], nori__dim_of(c)};
    if (!t || !nori__type_set(&b->ir->arena, &t->type, NORI_FLOAT, 5, dims)) {
        nori__no_memory(b->err);
        return NULL;
    }
    b->twin[v->id] = t;
    return t;
}

nori__value *nori__twin_made(nori__blocker *b, nori__value *v, nori__node *n)
{
    nori__value *t = nori__twin_of(b, v);
    if (!t && nori__is_image(v) && v->id < b->values) {
        t = new_twin(b, v);
        if (t && !make(b, n, NORI__BLOCKED_FROM, "", &v, 1, t)) {
            return NULL;
        }
    }
    return t;
}

nori__node *nori__put_blocked(nori__blocker *b, nori__node *n, nori__blocked_id id,
                              nori__value *const *in, size_t n_in)
{
    nori__value *out = new_twin(b, n->outputs[0]);
    nori__node *made = out ? make(b, n, id, n->name, in, n_in, out) : NULL;
    if (made) {
        made->attrs = n->attrs;
        made->attr_count = n->attr_count;
        nori__node_remove(n);
    }
    return made;
}

nori__node *nori__put_same(nori__blocker *b, nori__node *n, nori__value *const *in, size_t n_in)
{
    nori__value *out = new_twin(b, n->outputs[0]);
    nori__node *made =
        out ? nori__node_new(b->g, n, n->domain, n->op_type, in, n_in, &out, 1) : NULL;
    if (!made) {
        nori__no_memory(b->err);
        return NULL;
    }
    made->op = n->op;
    made->version = n->version;
    made->name = n->name;
    made->attrs = n->attrs;
    made->attr_count = n->attr_count;
    nori__node_remove(n);
    return made;
}

/* The blocked node in the place of n, or NULL. */
static nori__node *convert(nori__blocker *b, nori__node *n)
{
    if (n->output_count != 1 || !nori__is_image(n->outputs[0]) || n->outputs[0]->id >= b->values ||
        n->input_count < 1 || !n->inputs[0]) {
        return NULL;
    }
    nori__node *made = nori__block_conv(b, n);
    return made || b->err->status != NORI_OK ? made : nori__block_follow(b, n);
}

/* Values that lost their producer and have plain readers left get an Unblock. */
static nori_status unblock(nori__blocker *b)
{
    for (nori__value *v = b->g->values; v; v = v->next) {
        nori__value *t = v->id < b->values ? b->twin[v->id] : NULL;
        if (!t || v->producer || v->uses == 0 || (v->flags & NORI__VALUE_INPUT) ||
            nori__value_const(v)) {
            continue;
        }
        nori__node *made = make(b, t->producer->next, NORI__BLOCKED_TO, "", &t, 1, v);
        if (!made || !nori__node_set_int(made, "channels", v->type.dims[1].value)) {
            return nori__no_memory(b->err);
        }
    }
    return NORI_OK;
}

static nori_status walk(nori__blocker *b)
{
    memset(b->twin, 0, b->values * sizeof(*b->twin));
    for (nori__node *n = b->g->first, *next; n; n = next) {
        next = n->next;
        convert(b, n);
        if (b->err->status != NORI_OK) {
            return b->err->status;
        }
    }
    return unblock(b);
}

nori_status nori__cpu_block(nori__ir *ir, nori_error *err)
{
    if (!NORI__IR_HAS(ir, NORI__OP_ONNX_Conv, NORI__OP_MS_FusedConv, NORI__OP_ONNX_ConvTranspose)) {
        return NORI_OK; /* twins begin there */
    }
    nori_error own = {0};
    nori__blocker b = {.ir = ir, .values = ir->value_count, .block = nori__kernels_get()->block,
                 .err = err ? err : &own};
    b.twin = nori__alloc(ir->allocator, (b.values + 1) * sizeof(*b.twin));
    if (!b.twin) {
        return nori__no_memory(err);
    }
    nori_status status = NORI_OK;
    for (b.g = ir->graphs; b.g && status == NORI_OK; b.g = b.g->next_graph) {
        status = walk(&b);
    }
    nori__release(ir->allocator, b.twin, (b.values + 1) * sizeof(*b.twin));
    return status;
}
