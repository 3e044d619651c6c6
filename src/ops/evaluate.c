/* evaluate.c: running one node on constants, for folding. */
#include "ops/resolve.h"

/* Inputs and outputs of a node that need no memory of their own: passes evaluate many small nodes. */
#define FEW 8

/* What a node reads, with data for as long as it runs: what folding makes lives on, its inputs need no
 * copy beside the file then. */
static nori_status take_input(const nori_allocator *a, const nori__value *v, const nori_tensor **in,
                              nori_tensor **own, nori_error *err)
{
    const nori_tensor *t = nori__value_as_is(v);
    *in = t;
    if (!t || t->kind != NORI_KIND_TENSOR) {
        return NORI_ERROR_UNSUPPORTED;
    }
    if (!t->loose) {
        return NORI_OK;
    }
    NORI__TRY(nori__tensor_copy(a, t, own, err));
    *in = *own;
    return NORI_OK;
}

nori_status nori__node_evaluate(const nori__node *node, const nori_allocator *a,
                                nori_tensor **out, nori_error *err)
{
    const nori__op *op = node->op;
    if (!op || !op->reference || (op->flags & (NORI__OP_SELF_ALLOC | NORI__OP_RANDOM))) {
        return NORI_ERROR_UNSUPPORTED;
    }
    nori__arena arena;
    nori__arena_init(&arena, a);
    size_t n_in = node->input_count, n_out = node->output_count;
    nori__shape few[FEW], *shapes = few;
    const nori_tensor *few_in[FEW] = {NULL}, **in = few_in;
    nori_tensor *few_own[FEW] = {NULL}, **own = few_own;
    if (n_in + n_out > FEW) {
        shapes = nori__arena_array(&arena, n_in + n_out, sizeof(*shapes));
        in = nori__arena_array(&arena, n_in + 1, sizeof(*in));
        own = nori__arena_array(&arena, n_in + 1, sizeof(*own));
    }
    nori_status s = shapes && in && own ? NORI_OK : nori__no_memory(err);
    for (size_t i = 0; i < n_out; i++) {
        out[i] = NULL;
    }
    for (size_t i = 0; s == NORI_OK && i < n_in + n_out; i++) {
        memset(&shapes[i], 0, offsetof(nori__shape, dims));
        shapes[i].rank = -1;
        shapes[i].of = NULL;
        shapes[i].tensor = NULL;
        shapes[i].data_count = -1;
        if (i >= n_in || !node->inputs[i]) {
            continue;
        }
        s = take_input(a, node->inputs[i], &in[i], &own[i], err);
        if (s != NORI_OK) {
            break;
        }
        shapes[i].kind = NORI_KIND_TENSOR;
        shapes[i].elem = in[i]->type;
        shapes[i].rank = (int8_t)in[i]->rank;
        shapes[i].tensor = in[i];
        for (int d = 0; d < in[i]->rank; d++) {
            shapes[i].dims[d] = nori__dim_of(in[i]->dims[d]);
        }
    }
    if (s == NORI_OK) {
        nori__infer c = {.node = node, .in = shapes, .out = shapes + n_in, .arena = &arena,
                         .err = err};
        s = op->infer(&c);
    }
    for (size_t i = 0; s == NORI_OK && i < n_out; i++) {
        const nori__shape *o = &shapes[n_in + i];
        int64_t dims[NORI_MAX_RANK];
        if (!node->outputs[i]) {
            continue;
        }
        bool known = o->kind == NORI_KIND_TENSOR && o->rank >= 0 && o->elem;
        for (int d = 0; known && d < o->rank; d++) {
            dims[d] = o->dims[d].value;
            known = dims[d] >= 0;
        }
        s = known ? nori__tensor_new(a, o->elem, o->rank, dims, &out[i], err)
                  : NORI_ERROR_UNSUPPORTED;
    }
    if (s == NORI_OK) {
        nori_call call = {.node = node, .n_in = (uint32_t)n_in, .n_out = (uint32_t)n_out, .in = in,
                          .out = out, .allocator = a, .threads = 1, .err = err};
        s = op->reference(&call);
    }
    for (size_t i = 0; s != NORI_OK && i < n_out; i++) {
        nori_tensor_free(out[i]);
        out[i] = NULL;
    }
    for (size_t i = 0; own && i < n_in; i++) {
        nori_tensor_free(own[i]);
    }
    nori__arena_free(&arena);
    return s;
}
