/* infer_sequence.c: types of sequences and optionals. Of a sequence's elements the kind and element
 * type are carried on; shapes may differ from one to the next. */
#include "ops/content.h"

static void set_kind(nori__infer *c, uint32_t o, nori_kind kind, const nori__type *of)
{
    if (o < c->node->output_count) {
        c->out[o].kind = (uint8_t)kind;
        c->out[o].rank = -1;
        c->out[o].of = of;
    }
}

/* The type as a group's element, in the arena; NULL when there is none or no memory for it: then
 * it is simply not known. */
static const nori__type *element(nori__infer *c, nori_kind kind, nori_type elem,
                                 const nori__type *of)
{
    nori__type *t = c->arena && kind ? nori__arena_alloc(c->arena, sizeof(*t)) : NULL;
    if (t) {
        *t = (nori__type){.kind = (uint8_t)kind, .elem = (uint8_t)elem, .rank = -1, .of = of};
    }
    return t;
}

static const nori__type *of_input(nori__infer *c, uint32_t i)
{
    return nori__has_in(c, i)
               ? element(c, (nori_kind)c->in[i].kind, (nori_type)c->in[i].elem, c->in[i].of)
               : NULL;
}

static nori_status want_kind(nori__infer *c, uint32_t i, nori_kind kind)
{
    if (nori__has_in(c, i) && c->in[i].kind != NORI_KIND_UNKNOWN && c->in[i].kind != kind) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input %u is not a sequence", i);
    }
    return NORI_OK;
}

/* Output 0 has type t, as far as it is known. */
static void out_type(nori__infer *c, const nori__type *t)
{
    if (!t || c->node->output_count == 0) {
        return;
    }
    nori__shape *o = &c->out[0];
    o->kind = t->kind;
    o->elem = t->elem;
    o->of = t->of;
    o->rank = (int8_t)(t->kind == NORI_KIND_TENSOR ? t->rank : -1);
    for (int d = 0; d < o->rank; d++) {
        o->dims[d] = t->dims[d];
    }
}

nori_status nori__infer_sequence_construct(nori__infer *c)
{
    set_kind(c, 0, NORI_KIND_SEQUENCE, of_input(c, 0));
    return NORI_OK;
}

nori_status nori__infer_sequence_empty(nori__infer *c)
{
    int64_t type = nori__attr_i(c->node, "dtype", NORI_FLOAT);
    if (type <= 0 || type >= NORI_TYPE_COUNT) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "element type %lld does not exist",
                          (long long)type);
    }
    set_kind(c, 0, NORI_KIND_SEQUENCE, element(c, NORI_KIND_TENSOR, (nori_type)type, NULL));
    return NORI_OK;
}

/* SequenceInsert and SequenceErase. */
nori_status nori__infer_sequence_edit(nori__infer *c)
{
    NORI__TRY(want_kind(c, 0, NORI_KIND_SEQUENCE));
    const nori__type *of = nori__has_in(c, 0) ? c->in[0].of : NULL;
    bool insert = nori__node_is(c->node, NORI__OP_ONNX_SequenceInsert);
    set_kind(c, 0, NORI_KIND_SEQUENCE, of ? of : insert ? of_input(c, 1) : NULL);
    return NORI_OK;
}

nori_status nori__infer_sequence_at(nori__infer *c)
{
    NORI__TRY(want_kind(c, 0, NORI_KIND_SEQUENCE));
    out_type(c, nori__has_in(c, 0) ? c->in[0].of : NULL);
    return NORI_OK;
}

nori_status nori__infer_sequence_length(nori__infer *c)
{
    NORI__TRY(want_kind(c, 0, NORI_KIND_SEQUENCE));
    nori__out_set(c, 0, NORI_INT64, 0, NULL);
    return NORI_OK;
}

nori_status nori__infer_split_to_sequence(nori__infer *c)
{
    int axis, rank = nori__in_rank(c, 0);
    if (rank >= 0) {
        NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", 0), rank, &axis));
    }
    set_kind(c, 0, NORI_KIND_SEQUENCE, element(c, NORI_KIND_TENSOR, nori__in_elem(c, 0), NULL));
    return NORI_OK;
}

nori_status nori__infer_concat_from_sequence(nori__infer *c)
{
    NORI__TRY(want_kind(c, 0, NORI_KIND_SEQUENCE));
    const nori__type *of = nori__has_in(c, 0) ? c->in[0].of : NULL;
    nori__out_elem(c, 0, of && of->kind == NORI_KIND_TENSOR ? (nori_type)of->elem : NORI_UNDEFINED);
    return NORI_OK;
}

nori_status nori__infer_sequence_map(nori__infer *c)
{
    const nori__graph *g = nori__attr_graph(c->node, "body");
    NORI__TRY(want_kind(c, 0, NORI_KIND_SEQUENCE));
    if (!g || g->input_count != c->node->input_count || g->output_count < c->node->output_count) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the body's inputs or outputs do not fit the node's");
    }
    for (uint32_t i = 0; i < c->node->output_count; i++) {
        const nori__type *t = g->outputs[i] ? &g->outputs[i]->type : NULL;
        set_kind(c, i, NORI_KIND_SEQUENCE,
                 t ? element(c, (nori_kind)t->kind, (nori_type)t->elem, t->of) : NULL);
    }
    return NORI_OK;
}

nori_status nori__infer_optional(nori__infer *c)
{
    const nori__attr *a = nori__attr_find(c->node, "type");
    const nori__type *given = a && a->kind == NORI__ATTR_TYPE ? a->v.type : NULL;
    set_kind(c, 0, NORI_KIND_OPTIONAL, nori__has_in(c, 0) ? of_input(c, 0) : given);
    return NORI_OK;
}

nori_status nori__infer_optional_get(nori__infer *c)
{
    if (nori__has_in(c, 0) && c->in[0].kind == NORI_KIND_OPTIONAL) {
        out_type(c, c->in[0].of);
    } else {
        nori__out_like(c, 0, 0);
    }
    return NORI_OK;
}

nori_status nori__infer_optional_has(nori__infer *c)
{
    nori__out_set(c, 0, NORI_BOOL, 0, NULL);
    return NORI_OK;
}
