/* xnnpack_part.c: a part, from its nodes to steps, from shapes to places, and its runs. */
#include <stdlib.h>

#include "providers/xnnpack/xnnpack.h"

/* ---- errors ---- */

const char *nori__xp_status_text(enum xnn_status s)
{
    static const char *const words[] = {"success", "uninitialized", "invalid parameter",
                                        "invalid state", "unsupported parameter",
                                        "unsupported hardware", "out of memory"};
    return (size_t)s < NORI__COUNT(words) ? words[s] : "an unknown status";
}

nori_status nori__xp_check(enum xnn_status s, const char *call, const nori__node *node,
                           nori_error *err)
{
    if (s == xnn_status_success) {
        return NORI_OK;
    }
    char path[256] = "moving a value";
    if (node) {
        nori__node_path(node, path, sizeof(path));
    }
    bool ours = strncmp(call, "XNN(", 4) == 0; /* "XNN(create_x)(arguments)" is xnn_create_x */
    call += ours ? 4 : 0;
    int size = (int)strcspn(call, ours ? ")" : "(");
    return nori__fail(err, s == xnn_status_out_of_memory ? NORI_ERROR_MEMORY : NORI_ERROR_UNSUPPORTED,
                      "XNNPACK: %s: %s%.*s says %s (%d)", path, ours ? "xnn_" : "", size, call,
                      nori__xp_status_text(s), (int)s);
}

void nori__xp_drop(xp_step *s)
{
    if (s->op) {
        XNN(delete_operator)(s->op);
        s->op = NULL;
    }
}

/* ---- making ---- */

void nori__xp_free(void *self, void *compiled)
{
    xp_part *p = compiled;
    (void)self;
    for (size_t i = 0; i < p->steps.count; i++) {
        nori__xp_drop(p->steps.items[i]);
    }
    for (size_t i = 0; i < p->buffers.count; i++) {
        xp_buffer *b = p->buffers.items[i];
        nori__release(&nori__malloc, b->fixed, b->fixed_bytes);
    }
    nori__release(&nori__malloc, p->block, p->block_bytes);
    nori__vec_free(&p->buffers);
    nori__vec_free(&p->steps);
    nori__arena_free(&p->arena);
    nori__release(&nori__malloc, p, sizeof(*p));
}

static bool make_tables(xp_part *p)
{
    const nori_part *part = p->part;
    size_t n = (size_t)part->n_values + 1;
    p->forms = nori__arena_array(&p->arena, n, sizeof(*p->forms));
    p->shapes = nori__arena_array(&p->arena, n, sizeof(*p->shapes));
    p->key = nori__arena_array(&p->arena, (size_t)part->n_in + 1, sizeof(*p->key));
    if (!p->forms || !p->shapes || !p->key || !nori__links_make(&p->arena, part, &p->links)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        for (int f = 0; f < XP_FORMS; f++) {
            p->forms[i][f] = XP_NONE;
        }
    }
    return true;
}

static nori_status emit_node(xp_part *p, uint32_t at, nori_error *err)
{
    const nori__node *node = p->part->nodes[at];
    const uint32_t *values = p->part->node_values[at];
    const xp_rule *rule = nori__xp_rule(node);
    xp_job job = {.node = node, .at = at, .in = values, .n_in = node->input_count,
                  .out = values[node->input_count]};
    bool taken = false;
    if (p->links.done[at] || nori__node_is(node, NORI__OP_ONNX_DequantizeLinear)) {
        return NORI_OK; /* the latter when its floats are wanted */
    }
    NORI__TRY(nori__xp_integers(p, &job, &taken, err));
    return taken ? NORI_OK : rule->emit(p, &job, err);
}

static nori_status emit_all(xp_part *p, nori_error *err)
{
    for (uint32_t at = 0; at < p->part->n_nodes; at++) {
        nori_status status = emit_node(p, at, err);
        if (status != NORI_OK) {
            char path[256];
            nori__node_path(p->part->nodes[at], path, sizeof(path));
            nori__where(err, "%s", path);
            return status;
        }
        if (p->failed) {
            return nori__no_memory(err);
        }
    }
    for (uint32_t i = 0; i < p->part->n_out; i++) {
        uint32_t v = p->part->out_values[i];
        nori__xp_want(p, v, nori__xp_layout(p, v));
    }
    return p->failed ? nori__no_memory(err) : NORI_OK;
}

/* ---- lives of buffers ---- */

static uint32_t root_of(const xp_part *p, uint32_t buffer)
{
    while (nori__xp_buffer(p, buffer)->alias != XP_NONE) {
        buffer = nori__xp_buffer(p, buffer)->alias;
    }
    return buffer;
}

static void touch(xp_part *p, uint32_t buffer, uint32_t step)
{
    xp_buffer *b = nori__xp_buffer(p, root_of(p, buffer));
    b->first = b->first == XP_NONE ? step : b->first;
    b->last = step;
}

/* Where an output is read: any form it has, best one that needs no turning. */
static uint32_t outlet(const xp_part *p, uint32_t value)
{
    static const unsigned order[] = {0, XP_FLIP, XP_LAST, XP_LAST | XP_FLIP};
    for (size_t i = 0; i < NORI__COUNT(order); i++) {
        if (p->forms[value][order[i]] != XP_NONE) {
            return p->forms[value][order[i]];
        }
    }
    return XP_NONE;
}

static void find_lives(xp_part *p)
{
    uint32_t n = (uint32_t)p->steps.count;
    for (uint32_t i = 0; i < n; i++) {
        const xp_step *s = p->steps.items[i];
        for (uint32_t k = 0; k < s->n_in; k++) {
            touch(p, s->in[k], i);
        }
        touch(p, s->out, i);
    }
    for (uint32_t i = 0; i < p->part->n_out; i++) {
        touch(p, outlet(p, p->part->out_values[i]), n);
    }
}

/* ---- shapes ---- */

static nori_status take_shape(const nori__shape *from, xp_shape *to, const char *name,
                              nori_error *err)
{
    bool known = from->kind == NORI_KIND_TENSOR && from->rank >= 0;
    int64_t count = 1;
    for (int d = 0; known && d < from->rank; d++) {
        known = from->dims[d].value >= 0 && nori__mul_dim(count, from->dims[d].value, &count);
    }
    if (!known) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "the shape of %s cannot be told beforehand",
                          name);
    }
    *to = (xp_shape){.rank = from->rank, .count = (size_t)count};
    for (int d = 0; d < from->rank && d < XP_RANK; d++) {
        to->d[d] = (size_t)from->dims[d].value;
    }
    return NORI_OK;
}

/* Values that only say shapes (of Reshape, Slice) are not looked at. */
static bool carries_data(const nori__value *v)
{
    return v->type.elem == NORI_FLOAT || nori__xp_is_8bit(v);
}

static nori_status infer_shapes(xp_part *p, const nori__shape *in, nori_error *err)
{
    nori__shape *shapes = NULL;
    nori__arena arena;
    size_t bytes;
    nori__arena_init(&arena, &nori__malloc);
    nori_status status = nori__part_shapes(p->part, in, &arena, &shapes, &bytes, err);
    for (uint32_t i = 0; i < p->part->n_values && status == NORI_OK; i++) {
        const nori__value *v = p->part->values[i];
        if (carries_data(v)) {
            status = take_shape(&shapes[i], &p->shapes[i], v->name, err);
        }
    }
    if (shapes) {
        nori__release(p->part->a, shapes, bytes);
    }
    nori__arena_free(&arena);
    return status;
}

/* ---- places ---- */

static int by_first(const void *a, const void *b)
{
    const xp_buffer *x = *(xp_buffer *const *)a, *y = *(xp_buffer *const *)b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static nori_status place_all(xp_part *p, xp_buffer **list, nori__life *lives, nori_error *err)
{
    size_t n = 0, bytes;
    for (uint32_t i = 0; i < p->buffers.count; i++) {
        xp_buffer *b = nori__xp_buffer(p, i);
        if (!b->fixed && b->alias == XP_NONE && b->first != XP_NONE) {
            list[n++] = b;
        }
    }
    qsort(list, n, sizeof(*list), by_first);
    for (size_t i = 0; i < n; i++) {
        lives[i] = (nori__life){.first = list[i]->first, .last = list[i]->last};
        if (!nori__mul_size(p->shapes[list[i]->value].count, list[i]->width, &lives[i].bytes) ||
            !nori__add_size(lives[i].bytes, XNN_EXTRA_BYTES, &lives[i].bytes)) {
            return nori__no_memory(err);
        }
    }
    NORI__TRY(nori__assign_offsets(&nori__malloc, lives, n, &bytes, err));
    if (bytes > p->block_bytes) {
        nori__release(&nori__malloc, p->block, p->block_bytes);
        p->block_bytes = 0;
        p->block = nori__alloc(&nori__malloc, bytes);
        if (!p->block) {
            return nori__no_memory(err);
        }
        memset(p->block, 0, bytes); /* what XNNPACK reads past the end is not used, but is read */
        p->block_bytes = bytes;
    }
    for (size_t i = 0; i < n; i++) {
        list[i]->data = p->block + lives[i].offset;
    }
    return NORI_OK;
}

static nori_status place(xp_part *p, nori_error *err)
{
    nori__arena arena;
    nori__arena_init(&arena, &nori__malloc);
    xp_buffer **list = nori__arena_array(&arena, p->buffers.count + 1, sizeof(*list));
    nori__life *lives = nori__arena_array(&arena, p->buffers.count + 1, sizeof(*lives));
    nori_status status = list && lives ? place_all(p, list, lives, err) : nori__no_memory(err);
    nori__arena_free(&arena);
    return status;
}

static nori_status set_up(xp_part *p, const nori__shape *in, nori_error *err)
{
    p->ready = false;
    NORI__TRY(infer_shapes(p, in, err));
    NORI__TRY(place(p, err));
    for (size_t i = 0; i < p->steps.count; i++) {
        xp_step *s = p->steps.items[i];
        s->idle = false;
        nori_status status = s->setup ? s->setup(p, s, err) : NORI_OK;
        if (status != NORI_OK) {
            char path[256] = "";
            if (s->node) {
                nori__node_path(s->node, path, sizeof(path));
                nori__where(err, "%s", path);
            }
            return status;
        }
    }
    p->ready = true;
    return NORI_OK;
}

/* ---- compiling ---- */

static bool all_known(const nori_part *part)
{
    for (uint32_t i = 0; i < part->n_in; i++) {
        const nori__type *t = &part->in[i]->type;
        for (int d = 0; d < t->rank; d++) {
            if (t->dims[d].value < 0) {
                return false;
            }
        }
    }
    return true;
}

/* Sizes that are known now are set up now: what XNNPACK refuses is then left to others. */
static nori_status set_up_early(xp_part *p, nori_error *err)
{
    const nori_part *part = p->part;
    nori__shape *in = nori__arena_array(&p->arena, (size_t)part->n_in + 1, sizeof(*in));
    if (!in) {
        return nori__no_memory(err);
    }
    for (uint32_t i = 0; i < part->n_in; i++) {
        const nori__type *t = &part->in[i]->type;
        in[i] = (nori__shape){.kind = t->kind, .elem = t->elem, .rank = t->rank, .data_count = -1};
        for (int d = 0; d < t->rank; d++) {
            in[i].dims[d] = t->dims[d];
        }
        NORI__TRY(take_shape(&in[i], &p->key[i], part->in[i]->name, err));
    }
    return set_up(p, in, err);
}

static nori_status compile(xp_part *p, nori_error *err)
{
    if (!make_tables(p)) {
        return nori__no_memory(err);
    }
    NORI__TRY(emit_all(p, err));
    find_lives(p);
    return all_known(p->part) ? set_up_early(p, err) : NORI_OK;
}

nori_status nori__xp_compile(void *self, nori_part *part, void **compiled, nori_error *err)
{
    xp_part *p = nori__alloc_zero(&nori__malloc, sizeof(*p));
    if (!p) {
        return nori__no_memory(err);
    }
    p->self = self;
    p->part = part;
    nori__arena_init(&p->arena, &nori__malloc);
    nori__vec_init(&p->buffers, &nori__malloc);
    nori__vec_init(&p->steps, &nori__malloc);
    nori_status status = compile(p, err);
    if (status != NORI_OK) {
        nori__xp_free(self, p);
        return status;
    }
    *compiled = p;
    return NORI_OK;
}

/* ---- running ---- */

static bool same_shapes(const xp_part *p, nori_call *call)
{
    bool same = p->ready;
    for (uint32_t i = 0; i < p->part->n_in && same; i++) {
        const nori_tensor *t = nori_call_input(call, i);
        same = t->rank == p->key[i].rank;
        for (int d = 0; d < t->rank && same; d++) {
            same = (size_t)t->dims[d] == p->key[i].d[d];
        }
    }
    return same;
}

static nori_status take_inputs(xp_part *p, nori_call *call, nori__shape *in)
{
    for (uint32_t i = 0; i < p->part->n_in; i++) {
        const nori_tensor *t = nori_call_input(call, i);
        const nori__type *type = &p->part->in[i]->type;
        nori__shape_of_tensor(&in[i], t, false);
        if (in[i].rank != type->rank || t->type != type->elem) {
            return nori__fail(nori_call_error(call), NORI_ERROR_DATA,
                              "%s has rank %d, the part was compiled for rank %d",
                              p->part->in[i]->name, t->rank, type->rank);
        }
        NORI__TRY(take_shape(&in[i], &p->key[i], p->part->in[i]->name, nori_call_error(call)));
    }
    return set_up(p, in, nori_call_error(call));
}

static nori_status set_up_for(xp_part *p, nori_call *call)
{
    size_t bytes = ((size_t)p->part->n_in + 1) * sizeof(nori__shape);
    nori__shape *in = nori__alloc(&nori__malloc, bytes);
    if (!in) {
        return nori__no_memory(nori_call_error(call));
    }
    p->ready = false;
    nori_status status = take_inputs(p, call, in);
    nori__release(&nori__malloc, in, bytes);
    return status;
}

static nori_status give_output(xp_part *p, uint32_t i, nori_call *call)
{
    uint32_t value = p->part->out_values[i], buffer = outlet(p, value);
    const xp_shape *shape = &p->shapes[value];
    nori_tensor *t = nori_call_output(call, i);
    int64_t dims[XP_RANK];
    for (int d = 0; d < shape->rank; d++) {
        dims[d] = (int64_t)shape->d[d];
    }
    if (!t) {
        NORI__TRY(nori_call_alloc(call, i, (nori_type)p->part->out[i]->type.elem, shape->rank, dims,
                                  &t));
    }
    if (t->count != (int64_t)shape->count) {
        return nori__fail(nori_call_error(call), NORI_ERROR_INTERNAL, "%s has %lld elements, not %zu",
                          p->part->out[i]->name, (long long)t->count, shape->count);
    }
    const xp_buffer *b = nori__xp_buffer(p, buffer);
    xp_move m = {.width = b->width};
    nori__xp_move_layout(&m, shape, b->form, 0);
    nori__xp_move_run(&m, nori__xp_data(p, buffer), t->data, call);
    return NORI_OK;
}

nori_status nori__xp_run(void *self, void *compiled, nori_call *call)
{
    xp_part *p = compiled;
    (void)self;
    if (!same_shapes(p, call)) {
        NORI__TRY(set_up_for(p, call));
    }
    for (size_t i = 0; i < p->steps.count; i++) {
        xp_step *s = p->steps.items[i];
        if (s->idle) {
            continue;
        }
        if (s->run) {
            NORI__TRY(s->run(p, s, call));
        } else {
            XP_TRY(XNN(run_operator)(s->op, nori__xp_pool(p)), s->node, nori_call_error(call));
        }
    }
    for (uint32_t i = 0; i < p->part->n_out; i++) {
        NORI__TRY(give_output(p, i, call));
    }
    return NORI_OK;
}
