/* shapes.c: nori_shapes: sizes of inputs fixed or freed, and what follows from them said again. */
#include "tools/edit/editing.h"

typedef struct shaping {
    const nori_model *model;
    nori__arena *arena;
    nori_error *err;
} shaping;

/* The dimensions of a declared tensor, as a copy that may be changed; NULL: it has none, or no memory. */
static nori__pb_dim *own_dims(shaping *s, nori__pb_value *v, size_t *count, bool *failed)
{
    *count = 0;
    if (!v->type || !v->type->shape) {
        return NULL;
    }
    nori__pb_type *type = nori__arena_alloc(s->arena, sizeof(*type));
    nori__pb_shape *shape = nori__arena_alloc(s->arena, sizeof(*shape));
    size_t n = v->type->shape->dims.count;
    nori__pb_dim *dims = nori__arena_array(s->arena, n + 1, sizeof(*dims));
    if (!type || !shape || !dims) {
        *failed = true;
        return NULL;
    }
    *type = *v->type;
    *shape = *type->shape;
    if (n > 0) {
        memcpy(dims, shape->dims.items, n * sizeof(*dims));
    }
    shape->dims.items = dims;
    type->shape = shape;
    v->type = type;
    *count = n;
    return dims;
}

static void set(nori__pb_dim *d, int64_t value, const char *name)
{
    *d = (nori__pb_dim){.denotation = d->denotation, .head.unknown = d->head.unknown};
    d->has_value = value >= 0;
    d->value = value >= 0 ? value : 0;
    d->has_param = value < 0 && name;
    d->param = d->has_param ? nori__str_of(name) : (nori__str){NULL, 0};
}

/* ---- what was asked for ---- */

static nori_status change_axis(shaping *s, nori__pb_graph *g, const nori_axis_change *c)
{
    bool failed = false;
    for (size_t i = 0; i < g->inputs.count; i++) {
        if (!nori__str_is(g->inputs.items[i].name, c->input)) {
            continue;
        }
        size_t n;
        nori__pb_dim *dims = own_dims(s, &g->inputs.items[i], &n, &failed);
        if (failed) {
            return nori__no_memory(s->err);
        }
        if (!dims || c->axis < 0 || (size_t)c->axis >= n) {
            return nori__fail(s->err, NORI_ERROR_ARGUMENT, "input \"%.200s\" has no axis %d: it has %zu",
                              c->input, c->axis, n);
        }
        set(&dims[c->axis], c->value, c->name);
        return NORI_OK;
    }
    nori_status status = nori__fail(s->err, NORI_ERROR_ARGUMENT, "the model has no input \"%.200s\"",
                                    c->input);
    nori__hint(s->err, "`nori inspect` lists them");
    return status;
}

static nori_status change_name(shaping *s, nori__pb_graph *g, const nori_axis_change *c)
{
    nori__pb_value *lists[] = {g->inputs.items, g->outputs.items, g->value_info.items};
    size_t counts[] = {g->inputs.count, g->outputs.count, g->value_info.count};
    bool found = false, failed = false;
    for (size_t k = 0; k < NORI__COUNT(lists); k++) {
        for (size_t i = 0; i < counts[k]; i++) {
            size_t n;
            nori__pb_dim *dims = own_dims(s, &lists[k][i], &n, &failed);
            for (size_t d = 0; dims && d < n; d++) {
                if (dims[d].has_param && nori__str_is(dims[d].param, c->old)) {
                    set(&dims[d], c->value, c->name);
                    found = found || k == 0;
                }
            }
        }
    }
    if (failed) {
        return nori__no_memory(s->err);
    }
    if (!found) {
        nori_status status = nori__fail(s->err, NORI_ERROR_ARGUMENT,
                                        "no input has a dimension named \"%.200s\"", c->old);
        nori__hint(s->err, "`nori inspect` shows the names of the model's dimensions");
        return status;
    }
    return NORI_OK;
}

static nori_status own_lists(shaping *s, nori__pb_graph *g)
{
    nori__pb_value **lists[] = {&g->inputs.items, &g->outputs.items, &g->value_info.items};
    size_t counts[] = {g->inputs.count, g->outputs.count, g->value_info.count};
    for (size_t k = 0; k < NORI__COUNT(lists); k++) {
        nori__pb_value *copy = nori__arena_array(s->arena, counts[k] + 1, sizeof(*copy));
        if (!copy) {
            return nori__no_memory(s->err);
        }
        if (counts[k] > 0) {
            memcpy(copy, *lists[k], counts[k] * sizeof(*copy));
        }
        *lists[k] = copy;
    }
    return NORI_OK;
}

/* ---- what follows ---- */

static bool said_dim(const nori__ir *ir, const char *name)
{
    for (uint32_t i = 0; name && i < ir->main->input_count; i++) {
        const nori__type *t = &ir->main->inputs[i]->declared;
        for (int d = 0; t->kind == NORI_KIND_TENSOR && d < t->rank; d++) {
            if (t->dims[d].name && nori__same(t->dims[d].name, name)) {
                return true;
            }
        }
    }
    return false;
}

/* A known type as a declaration; names that inference made up are left out. False: nothing is known. */
static bool declaration(shaping *s, const nori__ir *typed, const nori__value *v, nori__pb_value *out,
                        bool *failed)
{
    nori__type t = v->type;
    if (t.kind != NORI_KIND_TENSOR || !t.elem || t.rank < 0 || (v->flags & NORI__VALUE_HINTED)) {
        return false;
    }
    nori__dim *dims = nori__arena_array(s->arena, (size_t)t.rank + 1, sizeof(*dims));
    const char *name = nori__arena_text(s->arena, v->name);
    for (int d = 0; dims && d < t.rank; d++) {
        dims[d].value = t.dims[d].value;
        dims[d].name = said_dim(typed, t.dims[d].name) ? nori__arena_text(s->arena, t.dims[d].name) : NULL;
    }
    t.dims = dims;
    *failed = *failed || !dims || !name || !nori__declare(s->arena, name, &t, out);
    return !*failed;
}

/* Whether a declaration says something else than is known now. */
static bool stale(const nori__pb_value *said, const nori__pb_value *now)
{
    const nori__pb_shape *a = said->type ? said->type->shape : NULL, *b = now->type->shape;
    if (!a || a->dims.count != b->dims.count) {
        return true;
    }
    for (size_t d = 0; d < a->dims.count; d++) {
        const nori__pb_dim *x = &a->dims.items[d], *y = &b->dims.items[d];
        bool name = x->has_param == y->has_param && x->param.n == y->param.n &&
                    (x->param.n == 0 || memcmp(x->param.p, y->param.p, x->param.n) == 0);
        bool same = x->has_value == y->has_value && (x->has_value ? x->value == y->value : name);
        if (!same && (y->has_value || y->has_param || x->has_value)) {
            return true;
        }
    }
    return false;
}

static nori_status refresh(shaping *s, const nori__ir *typed, nori__pb_value *list, size_t count)
{
    bool failed = false;
    for (size_t i = 0; i < count; i++) {
        char *name = nori__arena_copy(s->arena, list[i].name.p, list[i].name.n);
        const nori__value *v = name ? nori__edit_value(typed, name) : NULL;
        nori__pb_value now;
        if (v && v->producer && declaration(s, typed, v, &now, &failed) && stale(&list[i], &now)) {
            list[i].type = now.type;
        }
        failed = failed || !name;
    }
    return failed ? nori__no_memory(s->err) : NORI_OK;
}

static bool listed(const nori__map *names, const char *name)
{
    return nori__map_get(names, name) != NULL;
}

/* Adds a declaration for every value of the main graph that has none. */
static nori_status add_infos(shaping *s, const nori__ir *typed, nori__pb_graph *g)
{
    const nori__graph *main = nori__model_ir(s->model)->main;
    size_t n = g->value_info.count;
    bool failed = false;
    nori__pb_value *all = nori__arena_array(s->arena, n + main->value_count + 1, sizeof(*all));
    nori__map names;
    if (!all) {
        return nori__no_memory(s->err);
    }
    nori__map_init(&names, s->arena->allocator);
    for (size_t i = 0; i < n + g->outputs.count && !failed; i++) {
        nori__str name = i < n ? g->value_info.items[i].name : g->outputs.items[i - n].name;
        char *text = nori__arena_copy(s->arena, name.p, name.n);
        failed = !text || !nori__map_put(&names, text, text);
    }
    if (n > 0) {
        memcpy(all, g->value_info.items, n * sizeof(*all));
    }
    for (const nori__node *node = main->first; node && !failed; node = node->next) {
        for (uint32_t i = 0; i < node->output_count; i++) {
            const nori__value *v = node->outputs[i];
            const nori__value *t = v ? nori__edit_value(typed, v->name) : NULL;
            if (t && !listed(&names, v->name) && declaration(s, typed, t, &all[n], &failed)) {
                n++;
            }
        }
    }
    nori__map_free(&names);
    g->value_info.items = all;
    g->value_info.count = n;
    return failed ? nori__no_memory(s->err) : NORI_OK;
}

/* Types of the changed model, without what its file says of values that nodes make. */
static nori_status infer_anew(const nori_model *model, nori__ir **typed, nori_error *err)
{
    nori__ir *open = NULL;
    NORI__TRY(nori__ir_copy(nori__model_ir(model), &open, err));
    for (nori__value *v = open->main->values; v; v = v->next) {
        if (v->producer) {
            v->type = v->declared = (nori__type){.rank = -1};
        }
    }
    nori_status s = nori__edit_typed_ir(open, NULL, NULL, 0, typed, err);
    nori__ir_free(open);
    return s;
}

static nori_status change(shaping *s, const nori_axis_change *changes, size_t count, bool infer,
                          nori_model **changed)
{
    nori__pb_model pb = *s->model->source->pb;
    nori__pb_graph graph = *pb.graph;
    nori_model *first = NULL;
    nori__ir *typed = NULL;
    pb.graph = &graph;
    NORI__TRY(own_lists(s, &graph));
    for (size_t i = 0; i < count; i++) {
        NORI__TRY(changes[i].input ? change_axis(s, &graph, &changes[i])
                                   : change_name(s, &graph, &changes[i]));
    }
    NORI__TRY(nori__model_from_pb(&s->model, 1, &pb, &first, s->err));
    nori_status status = infer_anew(first, &typed, s->err);
    if (status == NORI_OK) {
        status = refresh(s, typed, graph.outputs.items, graph.outputs.count);
    }
    if (status == NORI_OK) {
        status = refresh(s, typed, graph.value_info.items, graph.value_info.count);
    }
    if (status == NORI_OK && infer) {
        status = add_infos(s, typed, &graph);
    }
    if (status == NORI_OK) {
        status = nori__model_from_pb(&s->model, 1, &pb, changed, s->err);
    }
    nori__ir_free(typed);
    nori_model_free(first);
    return status;
}

nori_status nori_shapes(const nori_model *model, const nori_axis_change *changes, size_t count,
                        int infer, nori_model **changed, nori_error *err)
{
    nori_error own = {0};
    err = err ? err : &own;
    if (!model || !changed || (count > 0 && !changes)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "model, changes and changed must not be NULL");
    }
    *changed = NULL;
    for (size_t i = 0; i < count; i++) {
        if (changes[i].value < -1 || (!changes[i].input && !changes[i].old) ||
            (changes[i].name && !changes[i].name[0])) {
            return nori__fail(err, NORI_ERROR_ARGUMENT,
                              "change %zu: an input with an axis or the name of a dimension, and a size "
                              "or a name that is not empty were expected", i);
        }
    }
    nori__arena arena;
    nori__arena_init(&arena, model->source->allocator);
    shaping s = {.model = model, .arena = &arena, .err = err};
    nori_status status = change(&s, changes, count, infer != 0, changed);
    nori__arena_free(&arena);
    return status;
}
