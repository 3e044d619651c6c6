/* cuts.c: where a model may be cut in two along its order of nodes, and what would cross. */
#include "tools/edit/editing.h"
#include "base/given.h"

struct nori_cuts {
    nori__arena arena;
    nori__vec rows; /* nori_cut * */
};

typedef struct sweep {
    nori__order order;
    const nori_cuts_options *options;
    const nori__ir *typed;
    nori_cuts *cuts;
    uint32_t *last;         /* by value: position of its last reader + 1; 0: none in the main graph */
    uint32_t at;            /* position that is looked at */
    const nori__value **live;
    size_t n_live;
    bool changed;           /* since the last cut */
} sweep;

void nori_cuts_options_default(nori_cuts_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_cuts_options){.size = sizeof(*options)};
}

static bool note_reader(void *user, nori__value *v)
{
    sweep *s = user;
    s->last[v->id] = s->at + 1;
    return true;
}

static bool is_input(const sweep *s, const nori__value *v)
{
    return (v->flags & NORI__VALUE_INPUT) && !s->order.maker[v->id];
}

/* Sums up what is known of some values; false: one cannot be told apart from a file's point of view. */
static bool count_bytes(const sweep *s, const nori__value *const *values, size_t count, uint64_t *sum,
                        int *known)
{
    for (size_t i = 0; i < count; i++) {
        const nori__value *v = nori__edit_value(s->typed, values[i]->name);
        uint64_t bytes;
        if (!v || v->type.kind == NORI_KIND_UNKNOWN ||
            (v->type.kind == NORI_KIND_TENSOR && v->type.elem == NORI_UNDEFINED)) {
            return false;
        }
        *known = *known && nori__edit_bytes(v, &bytes);
        *sum += nori__edit_bytes(v, &bytes) ? bytes : 0;
    }
    return true;
}

static const char *const *names(nori_cuts *c, const nori__value *const *values, size_t count)
{
    const char **list = nori__arena_array(&c->arena, count + 1, sizeof(*list));
    for (size_t i = 0; list && i < count; i++) {
        list[i] = nori__arena_text(&c->arena, values[i]->name);
        if (!list[i]) {
            return NULL;
        }
    }
    return list;
}

/* The values at the position behind node i. */
static nori_status note(sweep *s, size_t nodes, nori_error *err)
{
    nori_cuts *c = s->cuts;
    const nori__ir *ir = s->order.ir;
    const nori__value **inputs =
        nori__arena_array(&c->arena, (size_t)ir->main->input_count + 1, sizeof(*inputs));
    nori_cut *row = nori__arena_alloc(&c->arena, sizeof(*row));
    if (!inputs || !row) {
        return nori__no_memory(err);
    }
    *row = (nori_cut){.size = sizeof(*row), .nodes = nodes, .value_count = s->n_live, .known = 1};
    for (uint32_t i = 0; i < ir->main->input_count; i++) {
        const nori__value *v = ir->main->inputs[i];
        if (is_input(s, v) && !v->constant && s->last[v->id] > s->at + 1) {
            inputs[row->input_count++] = v;
        }
    }
    if (!count_bytes(s, s->live, s->n_live, &row->bytes, &row->known)) {
        return NORI_OK;
    }
    (void)count_bytes(s, inputs, row->input_count, &row->input_bytes, &row->known);
    row->values = names(c, s->live, s->n_live);
    row->inputs = names(c, inputs, row->input_count);
    return row->values && row->inputs && nori__vec_push(&c->rows, row) ? NORI_OK
                                                                       : nori__no_memory(err);
}

static void pass_node(sweep *s, const nori__node *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n_live; i++) { /* those read for the last time here are done */
        if (s->last[s->live[i]->id] > s->at + 1) {
            s->live[kept++] = s->live[i];
        }
    }
    s->changed = s->changed || kept != s->n_live;
    s->n_live = kept;
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i] && s->last[n->outputs[i]->id] > s->at + 1) {
            s->live[s->n_live++] = n->outputs[i];
            s->changed = true;
        }
    }
}

static nori_status find(sweep *s, nori_error *err)
{
    nori__arena *arena = &s->cuts->arena;
    const nori__ir *ir = s->order.ir;
    size_t nodes = 0;
    s->last = nori__arena_array(arena, (size_t)ir->value_count + 1, sizeof(*s->last));
    s->live = nori__arena_array(arena, (size_t)ir->value_count + 1, sizeof(*s->live));
    if (!s->last || !s->live) {
        return nori__no_memory(err);
    }
    for (s->at = 0; s->at < s->order.count; s->at++) {
        if (!s->order.constant[s->at]) {
            nori__node_reads(s->order.nodes[s->at], note_reader, s);
        }
    }
    for (s->at = 0; s->at < s->order.count; s->at++) {
        if (s->order.constant[s->at]) {
            continue;
        }
        pass_node(s, s->order.nodes[s->at]);
        nodes++;
        bool few = !s->options->most_values || s->n_live <= s->options->most_values;
        if (s->n_live > 0 && s->changed && few) {
            NORI__TRY(note(s, nodes, err));
        }
        s->changed = s->changed && !(s->n_live > 0 && few);
    }
    return NORI_OK;
}

nori_status nori_cuts_find(const nori_model *model, const nori_cuts_options *options,
                           nori_cuts **cuts, nori_error *err)
{
    nori_error own = {0};
    nori_cuts_options o;
    nori__ir *typed = NULL;
    err = err ? err : &own;
    if (!model || !cuts) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "model and cuts must not be NULL");
    }
    *cuts = NULL;
    NORI__OPTIONS(nori_cuts_options, o, options);
    const nori_allocator *a = model->source->allocator;
    nori_cuts *c = nori__alloc_zero(a, sizeof(*c));
    if (!c) {
        return nori__no_memory(err);
    }
    nori__arena_init(&c->arena, a);
    nori__vec_init(&c->rows, a);
    sweep s = {.options = &o, .cuts = c};
    nori_status status = nori__order_find(nori__model_ir(model), &c->arena, &s.order, err);
    status = status == NORI_OK ? nori__order_whole(&s.order, NULL, err) : status;
    if (status == NORI_OK) {
        status = nori__edit_typed(model, o.dim_names, o.dim_values, o.dim_count, &typed, err);
    }
    s.typed = typed;
    status = status == NORI_OK ? find(&s, err) : status;
    nori__ir_free(typed);
    if (status != NORI_OK) {
        nori_cuts_free(c);
        return status;
    }
    *cuts = c;
    return NORI_OK;
}

size_t nori_cuts_count(const nori_cuts *cuts)
{
    NORI__ASKED(cuts, 0);
    return cuts->rows.count;
}

int nori_cuts_at(const nori_cuts *cuts, size_t index, nori_cut *cut)
{
    NORI__ASKED(cuts, 0);
    NORI__ASKED(cut, 0);
    if (index >= cuts->rows.count) {
        return 0;
    }
    size_t size = cut->size < sizeof(*cut) ? cut->size : sizeof(*cut);
    memcpy(cut, cuts->rows.items[index], size);
    cut->size = size;
    return 1;
}

void nori_cuts_free(nori_cuts *cuts)
{
    if (cuts) {
        const nori_allocator *a = cuts->arena.allocator;
        nori__vec_free(&cuts->rows);
        nori__arena_free(&cuts->arena);
        nori__release(a, cuts, sizeof(*cuts));
    }
}
