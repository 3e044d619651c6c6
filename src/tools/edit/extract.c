/* extract.c: the part of a model between some values and others. */
#include "tools/edit/editing.h"

typedef struct extracting {
    nori__order order;
    bool *in;           /* by node */
    bool *given;        /* by value: an input of the part */
    bool *used;         /* by value: a given one that is read */
    nori__value **inputs;
    size_t n_inputs;
    nori__vec waiting;
} extracting;

static bool need(void *user, nori__value *v)
{
    extracting *x = user;
    uint32_t maker = x->order.maker[v->id];
    if (x->given[v->id]) {
        x->used[v->id] = true;
        return true;
    }
    if (maker == 0) {
        if ((v->flags & NORI__VALUE_INPUT) && !v->constant) { /* an input of the model that stays one */
            x->given[v->id] = x->used[v->id] = true;
            x->inputs[x->n_inputs++] = v;
        }
        return true;
    }
    if (x->in[maker - 1]) {
        return true;
    }
    x->in[maker - 1] = true;
    return nori__vec_push(&x->waiting, x->order.nodes[maker - 1]);
}

static nori_status find(const nori__ir *ir, const char *name, nori__value **v, nori_error *err)
{
    *v = name ? nori__map_get(nori__graph_names(ir->main), name) : NULL;
    return *v ? NORI_OK : nori__edit_no_value(ir, name ? name : "", err);
}

static nori_status extract(extracting *x, const nori_model *model, const char *const *inputs,
                           size_t n_in, const char *const *outputs, size_t n_out, nori__arena *arena,
                           const nori__ir *typed, nori_model **part, nori_error *err)
{
    const nori__ir *ir = nori__model_ir(model);
    const nori__graph *g = ir->main;
    size_t values = (size_t)ir->value_count + 1;
    NORI__TRY(nori__order_find(ir, arena, &x->order, err));
    x->in = nori__arena_array(arena, x->order.count + 1, sizeof(*x->in));
    x->given = nori__arena_array(arena, values, sizeof(*x->given));
    x->used = nori__arena_array(arena, values, sizeof(*x->used));
    x->inputs = nori__arena_array(arena, n_in + g->input_count + 1, sizeof(*x->inputs));
    nori__value **out = nori__arena_array(arena, n_out + g->output_count + 1, sizeof(*out));
    if (!x->in || !x->given || !x->used || !x->inputs || !out) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < n_in; i++) {
        nori__value *v;
        NORI__TRY(find(ir, inputs[i], &v, err));
        if (x->order.made[v->id]) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "\"%.200s\" is a constant of the model, it "
                              "cannot become an input", inputs[i]);
        }
        if (x->given[v->id]) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "\"%.200s\" is given twice", inputs[i]);
        }
        x->given[v->id] = true;
        x->inputs[x->n_inputs++] = v;
    }
    bool ok = true;
    for (size_t i = 0; i < (n_out ? n_out : g->output_count); i++) {
        out[i] = g->outputs[n_out ? 0 : i];
        if (n_out) {
            NORI__TRY(find(ir, outputs[i], &out[i], err));
        }
        for (size_t k = 0; k < i; k++) {
            if (out[k] == out[i]) {
                return nori__fail(err, NORI_ERROR_ARGUMENT, "\"%.200s\" is asked for twice",
                                  out[i]->name);
            }
        }
        ok = ok && need(x, out[i]);
    }
    while (ok && x->waiting.count > 0) {
        ok = nori__node_reads(x->waiting.items[--x->waiting.count], need, x);
    }
    if (!ok) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < n_in; i++) {
        if (!x->used[x->inputs[i]->id]) {
            nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT,
                                       "none of the outputs needs input \"%.200s\"", inputs[i]);
            nori__hint(err, "leave it out, or name an output behind it");
            return s;
        }
    }
    bool any = false;
    for (size_t i = 0; i < x->order.count; i++) {
        any = any || x->in[i];
    }
    if (!any) {
        nori_status s = nori__fail(err, NORI_ERROR_ARGUMENT, "no node lies between these values");
        nori__hint(err, "name as outputs what nodes make, and inputs before them");
        return s;
    }
    NORI__TRY(nori__order_whole(&x->order, x->in, err));
    nori__part_plan p = {.model = model, .order = &x->order, .typed = typed, .in = x->in,
                         .inputs = x->inputs, .n_inputs = x->n_inputs, .outputs = out,
                         .n_outputs = n_out ? n_out : g->output_count};
    return nori__part_make(&p, part, err);
}

nori_status nori_extract(const nori_model *model, const char *const *inputs, size_t input_count,
                         const char *const *outputs, size_t output_count, nori_model **part,
                         nori_error *err)
{
    nori_error own = {0};
    nori__arena arena;
    nori__ir *typed = NULL;
    err = err ? err : &own;
    if (!model || !part || (input_count > 0 && !inputs) || (output_count > 0 && !outputs)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "model, part and lists must not be NULL");
    }
    *part = NULL;
    NORI__TRY(nori__edit_typed(model, NULL, NULL, 0, &typed, err));
    nori__arena_init(&arena, model->source->allocator);
    extracting x = {0};
    nori__vec_init(&x.waiting, arena.allocator);
    nori_status s = extract(&x, model, inputs, input_count, outputs, output_count, &arena, typed, part,
                            err);
    nori__vec_free(&x.waiting);
    nori__arena_free(&arena);
    nori__ir_free(typed);
    return s;
}
