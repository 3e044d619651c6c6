/* rebatch.c: nori_rebatch: a model that takes any number of items where it took a fixed one.
 *
 * The graph's newest form is typed twice: at the batch the model has, and at a larger one. Walking it
 * in order, each node with the old size written into it is mended, in that copy and in the file's own
 * form, and the types behind it are found again. What then still does not fit is refused. */
#include <stdio.h>

#include "passes/passes.h"
#include "base/given.h"
#include "tools/edit/rebatch.h"

#define FACTOR 7 /* the larger batch: a size that is unlikely to be another's */

void nori_rebatch_options_default(nori_rebatch_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_rebatch_options){.size = sizeof(*options), .name = "batch"};
    nori_proof_options_default(&options->proof);
}

nori_status nori__batch_note(nori__rebatching *r, const nori__node *n, const char *fmt, ...)
{
    char path[256], text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    nori__node_path(n, path, sizeof(path));
    nori_rebatch_change *row = nori__arena_alloc(r->arena, sizeof(*row));
    if (!row) {
        return nori__no_memory(r->err);
    }
    row->size = sizeof(*row);
    row->path = nori__arena_text(r->arena, path);
    row->what = nori__arena_text(r->arena, text);
    return row->path && row->what && nori__vec_push(&r->report->rows, row) ? NORI_OK
                                                                           : nori__no_memory(r->err);
}

/* ---- which inputs ---- */

static bool free_tensor(const nori__value *v)
{
    return !v->constant && v->type.kind == NORI_KIND_TENSOR && v->type.rank >= 0;
}

static nori_status named_inputs(nori__rebatching *r, const nori__graph *g)
{
    const nori_rebatch_options *o = r->options;
    for (size_t k = 0; k < o->input_count; k++) {
        const nori_batch_input *in = &o->inputs[k];
        uint32_t i = 0;
        while (i < g->input_count && !nori__same(g->inputs[i]->name, in->name)) {
            i++;
        }
        if (i == g->input_count) {
            nori_status s = nori__fail(r->err, NORI_ERROR_ARGUMENT, "the model has no input \"%.200s\"",
                                       in->name);
            nori__hint(r->err, "`nori inspect` lists them");
            return s;
        }
        const nori__value *v = g->inputs[i];
        if (!free_tensor(v) || in->axis < 0 || in->axis >= v->type.rank) {
            return nori__fail(r->err, NORI_ERROR_ARGUMENT, "input \"%.200s\" has no axis %d", in->name,
                              in->axis);
        }
        r->axis[i] = in->axis;
        int64_t size = v->type.dims[in->axis].value;
        r->was = k == 0 ? (size > 0 ? size : 1) : r->was;
        if (size > 0 && size != r->was) {
            return nori__fail(r->err, NORI_ERROR_ARGUMENT,
                              "axis %d of input \"%.200s\" is %lld, that of the first is %lld: they "
                              "cannot both be the batch", in->axis, in->name, (long long)size,
                              (long long)r->was);
        }
    }
    return NORI_OK;
}

/* Axis 0 of inputs of rank 2 and more, where it is what the first has there. */
static nori_status find_inputs(nori__rebatching *r, const nori__graph *g)
{
    r->was = 0;
    for (uint32_t i = 0; i < g->input_count; i++) {
        r->axis[i] = -1;
    }
    if (r->options->input_count > 0) {
        return named_inputs(r, g);
    }
    nori__dim first = NORI__DIM_ANY;
    for (uint32_t i = 0; i < g->input_count; i++) {
        const nori__value *v = g->inputs[i];
        if (!free_tensor(v) || v->type.rank < 2) {
            continue;
        }
        nori__dim d = v->type.dims[0];
        if (r->was == 0) {
            first = d;
            r->was = d.value > 0 ? d.value : 1;
        }
        bool same = first.value > 0 ? d.value == first.value : d.value < 0;
        r->axis[i] = same ? 0 : -1;
    }
    if (r->was == 0) {
        nori_status s = nori__fail(r->err, NORI_ERROR_ARGUMENT,
                                   "no input has an axis that could be a batch: rank 2 or more");
        nori__hint(r->err, "say which axis it is: --input NAME:AXIS");
        return s;
    }
    return NORI_OK;
}

/* ---- the graph at two sizes ---- */

static void set_batch(nori__rebatching *r, nori__ir *ir, nori__dim dim)
{
    for (uint32_t i = 0; i < ir->main->input_count; i++) {
        nori__value *v = ir->main->inputs[i];
        if (r->axis[i] >= 0) {
            v->type.dims[r->axis[i]] = dim;
            v->declared = v->type;
        }
    }
}

static nori_status two_sizes(nori__rebatching *r)
{
    nori__ir *open = NULL;
    bool changed = true;
    NORI__TRY(nori__ir_copy(r->own, &open, r->err));
    set_batch(r, open, (nori__dim){-1, "nori batch"});
    nori__batch_forget(open);
    nori_status s = nori__inline_functions(open, r->err);
    s = s == NORI_OK ? nori__upgrade(open, r->err) : s;
    for (int i = 0; s == NORI_OK && changed && i < 4; i++) { /* true constants, whatever the batch */
        changed = false;
        s = nori__pass_fold(open, &changed, r->err);
        s = s == NORI_OK && changed ? nori__infer_graph(open, r->err) : s;
    }
    s = s == NORI_OK ? nori__ir_copy(open, &r->one, r->err) : s;
    s = s == NORI_OK ? nori__ir_copy(open, &r->more, r->err) : s;
    nori__ir_free(open);
    NORI__TRY(s);
    set_batch(r, r->one, nori__dim_of(r->was));
    set_batch(r, r->more, nori__dim_of(r->now));
    NORI__TRY(nori__infer_graph(r->one, r->err));
    return NORI_OK;
}

/* ---- the walk ---- */

static bool failed_at(const nori_error *why, const nori__node *n)
{
    char path[256], text[272];
    nori__node_path(n, path, sizeof(path));
    snprintf(text, sizeof(text), "%s", path);
    return strstr(why->where, text) != NULL;
}

/* Types up to the first node that does not fit; why: which, and what. */
static nori_status type_again(nori__rebatching *r, nori_error *why)
{
    memset(why, 0, sizeof(*why));
    nori_status s = nori__infer_graph(r->more, why);
    if (s == NORI_ERROR_MEMORY) {
        return nori__no_memory(r->err);
    }
    return NORI_OK;
}

static nori_status unmendable(nori__rebatching *r, const nori_error *why)
{
    nori_status s = nori__fail(r->err, NORI_ERROR_UNSUPPORTED, "%.300s cannot take another batch: %s",
                               why->where, why->message);
    nori__hint(r->err, "it was exported for a batch of %lld: export it with a dynamic one, or feed it one "
                       "at a time", (long long)r->was);
    return s;
}

/* In order, bodies before the node they are of. */
static nori_status walk_graph(nori__rebatching *r, nori__graph *g, nori_error *why)
{
    for (nori__node *n = g->first; n; n = n->next) {
        bool changed = false;
        uint32_t state = 0;
        for (nori__graph *inner; (inner = nori__node_subgraph(n, &state)) != NULL;) {
            NORI__TRY(walk_graph(r, inner, why));
        }
        NORI__TRY(nori__batch_mend(r, n, &changed));
        if (changed) {
            NORI__TRY(type_again(r, why));
        }
        if (why->status != NORI_OK && failed_at(why, n)) {
            return unmendable(r, why);
        }
    }
    return NORI_OK;
}

static nori_status walk(nori__rebatching *r)
{
    nori_error why;
    NORI__TRY(type_again(r, &why));
    NORI__TRY(walk_graph(r, r->more->main, &why));
    return why.status == NORI_OK ? NORI_OK : unmendable(r, &why);
}

/* Every output must hold the batch, if its sizes are known. */
static nori_status check_outputs(nori__rebatching *r)
{
    const nori__graph *g = r->more->main;
    for (uint32_t i = 0; i < g->output_count; i++) {
        const nori__value *v = g->outputs[i], *one;
        int axis = nori__batch_axis(r, v, &one);
        bool known = one && one->type.kind == NORI_KIND_TENSOR && v->type.rank >= 0;
        for (int d = 0; known && d < v->type.rank; d++) {
            known = v->type.dims[d].value >= 0 && d < one->type.rank && one->type.dims[d].value >= 0;
        }
        if (axis < 0 && known) {
            char path[256] = "nothing";
            if (v->producer) {
                nori__node_path(v->producer, path, sizeof(path));
            }
            nori_status s = nori__fail(r->err, NORI_ERROR_UNSUPPORTED,
                                       "output \"%.200s\" has the same size whatever the batch is (node "
                                       "%s makes it): somewhere before it the items are mixed or taken "
                                       "apart", v->name, path);
            nori__hint(r->err, "say which axes are the batch (--input NAME:AXIS), or export the model with "
                               "a dynamic one");
            return s;
        }
    }
    return NORI_OK;
}

/* ---- declarations ---- */

static nori_status set_dim(nori__rebatching *r, nori__pb_value *v, int axis, bool whole,
                           nori__arena *arena)
{
    nori__pb_type *type = nori__arena_alloc(arena, sizeof(*type));
    nori__pb_shape *shape = nori__arena_alloc(arena, sizeof(*shape));
    if (!v->type || !v->type->shape || (size_t)axis >= v->type->shape->dims.count) {
        return NORI_OK;
    }
    size_t count = v->type->shape->dims.count;
    nori__pb_dim *dims = nori__arena_array(arena, count, sizeof(*dims));
    if (!type || !shape || !dims) {
        return nori__no_memory(r->err);
    }
    *type = *v->type;
    *shape = *type->shape;
    memcpy(dims, shape->dims.items, count * sizeof(*dims));
    nori__pb_dim *d = &dims[axis];
    int64_t was = d->has_value ? d->value : r->was;
    *d = (nori__pb_dim){.denotation = d->denotation, .head.unknown = d->head.unknown};
    if (r->options->batch > 0) {
        d->has_value = nori__mul_dim(was / r->was, r->options->batch, &d->value);
    } else if (whole) {
        d->has_param = true;
        d->param = nori__str_of(r->options->name);
    }
    shape->dims.items = dims;
    type->shape = shape;
    v->type = type;
    return NORI_OK;
}

static nori_status redeclare(nori__rebatching *r, nori__pb_value *list, size_t count, nori__arena *arena)
{
    for (size_t i = 0; i < count; i++) {
        char *name = nori__arena_copy(arena, list[i].name.p, list[i].name.n);
        const nori__value *v = name ? nori__edit_value(r->more, name) : NULL, *one;
        int axis = v ? nori__batch_axis(r, v, &one) : -1;
        if (!name) {
            return nori__no_memory(r->err);
        }
        if (axis >= 0) {
            NORI__TRY(set_dim(r, &list[i], axis, one->type.dims[axis].value == r->was, arena));
        } else if (v && v->producer && list[i].type && list[i].type->shape &&
                   list[i].type->shape->dims.count > 0) {
            nori__pb_dim *d = &list[i].type->shape->dims.items[0];
            if (d->has_value && d->value == r->was && v->type.rank < 0) { /* not known: it may be */
                NORI__TRY(set_dim(r, &list[i], 0, false, arena));
            }
        }
    }
    return NORI_OK;
}

static nori_status declare_inputs(nori__rebatching *r, nori__pb_graph *g, nori__arena *arena)
{
    const nori__graph *main = r->own->main;
    for (size_t i = 0; i < g->inputs.count; i++) {
        for (uint32_t k = 0; k < main->input_count; k++) {
            if (r->axis[k] >= 0 && nori__str_is(g->inputs.items[i].name, main->inputs[k]->name)) {
                NORI__TRY(set_dim(r, &g->inputs.items[i], r->axis[k], true, arena));
            }
        }
    }
    return NORI_OK;
}

static nori_status build(nori__rebatching *r, nori_model **made)
{
    nori__arena scratch;
    nori__pb_model *pb = NULL;
    nori__arena_init(&scratch, r->arena->allocator);
    nori_status s = nori__ir_to_pb_outside(r->own, &scratch, &pb, r->err);
    if (s == NORI_OK) { /* lists of declarations are copies by now, what they point at is not */
        nori__pb_graph *g = pb->graph;
        s = declare_inputs(r, g, &scratch);
        s = s == NORI_OK ? redeclare(r, g->outputs.items, g->outputs.count, &scratch) : s;
        s = s == NORI_OK ? redeclare(r, g->value_info.items, g->value_info.count, &scratch) : s;
        s = s == NORI_OK ? nori__batch_bodies(r, g, r->more->main, &scratch) : s;
    }
    s = s == NORI_OK ? nori__model_from_pb(&r->model, 1, pb, made, r->err) : s;
    nori__arena_free(&scratch);
    return s;
}

/* ---- all of it ---- */

static nori_status rebatch(nori__rebatching *r, nori_model **made)
{
    NORI__TRY(nori__ir_copy(nori__model_ir(r->model), &r->own, r->err));
    const nori__graph *g = r->own->main;
    r->axis = nori__arena_array(r->arena, (size_t)g->input_count + 1, sizeof(*r->axis));
    if (!r->axis) {
        return nori__no_memory(r->err);
    }
    NORI__TRY(find_inputs(r, g));
    if (r->options->batch % r->was != 0) {
        return nori__fail(r->err, NORI_ERROR_ARGUMENT,
                          "the model takes %lld items at a time: a batch of %lld is no multiple of that",
                          (long long)r->was, (long long)r->options->batch);
    }
    r->report->before = r->was;
    if (!nori__mul_dim(r->was, FACTOR, &r->now)) {
        return nori__fail(r->err, NORI_ERROR_LIMIT, "the batch is too large");
    }
    NORI__TRY(two_sizes(r));
    NORI__TRY(walk(r));
    NORI__TRY(check_outputs(r));
    NORI__TRY(build(r, made));
    return nori__batch_prove(r, *made);
}

nori_status nori_rebatch(const nori_model *model, const nori_rebatch_options *options,
                         nori_model **rebatched, nori_rebatch_report **report, nori_error *err)
{
    nori_error own = {0};
    nori_rebatch_options o;
    err = err ? err : &own;
    if (!model || !rebatched) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "model and rebatched must not be NULL");
    }
    *rebatched = NULL;
    if (report) {
        *report = NULL;
    }
    NORI__OPTIONS(nori_rebatch_options, o, options);
    if (o.batch < 0 || !o.name || !o.name[0]) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "a batch above 0, or a name for it, was expected");
    }
    const nori_allocator *a = model->source->allocator;
    nori_rebatch_report *r = nori__alloc_zero(a, sizeof(*r));
    if (!r) {
        return nori__no_memory(err);
    }
    nori__arena_init(&r->arena, a);
    nori__vec_init(&r->rows, a);
    nori__rebatching job = {.model = model, .options = &o, .report = r, .arena = &r->arena, .err = err};
    nori_status s = rebatch(&job, rebatched);
    nori__ir_free(job.one);
    nori__ir_free(job.more);
    nori__ir_free(job.own);
    if (s != NORI_OK) {
        nori_model_free(*rebatched);
        *rebatched = NULL;
    }
    if (s == NORI_OK && report) {
        *report = r;
    } else {
        nori_rebatch_report_free(r);
    }
    return s;
}

int nori_rebatch_report_change(const nori_rebatch_report *r, size_t index, nori_rebatch_change *change)
{
    NORI__ASKED(r, 0);
    NORI__ASKED(change, 0);
    if (index >= r->rows.count) {
        return 0;
    }
    size_t size = change->size < sizeof(*change) ? change->size : sizeof(*change);
    memcpy(change, r->rows.items[index], size);
    change->size = size;
    return 1;
}

int64_t nori_rebatch_report_before(const nori_rebatch_report *r)
{
    NORI__ASKED(r, 0);
    return r->before;
}

void nori_rebatch_report_proof(const nori_rebatch_report *r, nori_proof *proof)
{
    NORI__ASKED(r, );
    NORI__ASKED(proof, );
    nori__proof_give(&r->proof, proof);
}

void nori_rebatch_report_free(nori_rebatch_report *r)
{
    if (r) {
        const nori_allocator *a = r->arena.allocator;
        nori__vec_free(&r->rows);
        nori__arena_free(&r->arena);
        nori__release(a, r, sizeof(*r));
    }
}
