/* divide_int8.c: what it costs to send a cut in 8 bits: the model once more, with DynamicQuantizeLinear and
 * DequantizeLinear between what is sent and its readers on the server. */
#include <stdio.h>

#include "base/given.h"
#include "run/run.h"
#include "tools/divide/divides.h"

/* Readers of a value inside the subgraphs of a node; their depth is limited when a graph is built. */
static bool replace_inside(nori__graph *g, const nori__value *from, nori__value *to)
{
    for (nori__node *n = g->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            if (n->inputs[i] == from && !nori__node_set_input(n, i, to)) {
                return false;
            }
        }
        uint32_t state = 0;
        for (nori__graph *sub; (sub = nori__node_subgraph(n, &state)) != NULL;) {
            if (!replace_inside(sub, from, to)) {
                return false;
            }
        }
    }
    return true;
}

static bool replace_in(nori__node *n, const nori__value *from, nori__value *to)
{
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i] == from && !nori__node_set_input(n, i, to)) {
            return false;
        }
    }
    uint32_t state = 0;
    for (nori__graph *sub; (sub = nori__node_subgraph(n, &state)) != NULL;) {
        if (!replace_inside(sub, from, to)) {
            return false;
        }
    }
    return true;
}

/* The sent value and what its readers get instead. */
static nori__value *through_int8(nori__ir *ir, nori__value *v)
{
    static const char *const names[] = {"sent", "sent_scale", "sent_zero_point"};
    nori__value *q[3];
    nori__graph *g = ir->main;
    nori__node *before = v->producer ? v->producer->next : g->first;
    for (int i = 0; i < 3; i++) {
        q[i] = nori__value_new(g, names[i]);
        if (!q[i]) {
            return NULL;
        }
    }
    nori__value *back = nori__value_new(g, "received");
    return back && nori__node_new(g, before, "", "DynamicQuantizeLinear", &v, 1, q, 3) &&
                   nori__node_new(g, before, "", "DequantizeLinear", q, 3, &back, 1)
               ? back : NULL;
}

/* The edited copy's node and value of the same place: copies keep names and order. */
static nori__node **nodes_of(nori__arena *arena, const nori_divide *c, nori__ir *ir)
{
    nori__node **list = nori__arena_array(arena, c->n_nodes + 1, sizeof(*list));
    const nori__node *from = nori__model_ir(c->model)->main->first;
    size_t k = 0;
    for (nori__node *n = ir->main->first; list && n && from && k < c->n_nodes; n = n->next) {
        if (from == c->nodes[k]) {
            list[k++] = n;
        }
        from = from->next;
    }
    return k == c->n_nodes ? list : NULL;
}

static nori_status edit(const nori_divide *c, nori__ir *ir, nori__node **nodes, nori_error *err)
{
    for (size_t i = 0; i < c->n_values; i++) {
        const nori__divide_value *own = &c->values[i];
        nori__value *v = nori__value_find(ir->main, own->v->name), *got = NULL;
        bool here = own->producer == NORI_DIVIDE_INPUT || !c->cloud[own->producer];
        if (!here || own->int8_bytes == own->bytes || !own->seen || !v) {
            continue;
        }
        for (size_t k = 0; k < own->n_readers; k++) {
            if (!c->cloud[own->readers[k]]) {
                continue;
            }
            got = got ? got : through_int8(ir, v);
            if (!got || !replace_in(nodes[own->readers[k]], v, got)) {
                return nori__no_memory(err);
            }
        }
    }
    return NORI_OK;
}

static nori_status compare(const nori_divide *c, const nori_model *edited, nori_agreement *agreement,
                           nori_error *err)
{
    nori_session_options o = c->options;
    nori_session *s = NULL;
    nori__arena scratch;
    o.level = 0;
    NORI__TRY(nori_session_create(edited, &o, &s, err));
    nori__arena_init(&scratch, &nori__malloc);
    nori_tensor **out = nori__arena_array(&scratch, c->n_out + 1, sizeof(*out));
    nori_status status = out ? NORI_OK : nori__no_memory(err);
    if (status == NORI_OK) {
        status = nori_session_run(s, (const nori_tensor *const *)c->inputs, c->n_in, out, c->n_out, err);
    }
    for (size_t i = 0; out && i < c->n_out; i++) {
        if (status == NORI_OK) {
            nori_agreement_add(agreement, out[i], c->outputs[i], NULL);
        }
        nori_tensor_free(out[i]);
    }
    nori__arena_free(&scratch);
    nori_session_free(s);
    return status;
}

nori_status nori_divide_int8(nori_divide *c, nori_agreement *agreement, nori_error *err)
{
    NORI__GIVEN(err, c);
    NORI__GIVEN(err, agreement);
    nori__ir *ir = NULL;
    nori_model *edited = NULL;
    nori__arena scratch;
    int64_t opset = nori__ir_opset(nori__model_ir(c->model), "");
    if (opset < 11) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "the model is of operator set %lld, the error of 8 "
                          "bits can be measured from 11 on: nori convert --opset 11", (long long)opset);
    }
    NORI__TRY(nori__ir_copy(nori__model_ir(c->model), &ir, err));
    nori__arena_init(&scratch, &nori__malloc);
    nori__node **nodes = nodes_of(&scratch, c, ir);
    nori_status s = nodes ? edit(c, ir, nodes, err) : nori__no_memory(err);
    s = s == NORI_OK ? nori__model_from_ir(c->model, ir, &edited, err) : s;
    s = s == NORI_OK ? compare(c, edited, agreement, err) : s;
    nori_model_free(edited);
    nori__arena_free(&scratch);
    nori__ir_free(ir);
    return s;
}
