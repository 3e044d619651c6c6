/* gpu_layout.c: a part for concrete shapes: a buffer for every value, shared by those that do not
 * live at the same time, and the list of kernels with their arguments set. A run only enqueues. */
#include "providers/gpu/gpu_lower.h"

nori_error *nori__gpu_error(gpu_lower *l)
{
    return l->err;
}

const char *nori__gpu_title(const gpu_lower *l)
{
    return l->self->driver->title;
}

bool nori__gpu_bad(const gpu_lower *l)
{
    return l->bad;
}

void nori__gpu_fail(gpu_lower *l, nori_status status)
{
    l->bad = true;
    if (l->err->status == NORI_OK) {
        nori__fail(l->err, status, "%s: a part cannot be laid out: %s",
                   l->self->driver->title, nori_status_text(status));
    }
}

void nori__gpu_no_memory(gpu_lower *l)
{
    nori__no_memory(l->err);
    nori__gpu_fail(l, NORI_ERROR_MEMORY);
}

/* Keeps what the layout must release; false: out of memory, and released. */
static gpu_mem *keep(gpu_lower *l, gpu_mem *mem)
{
    if (!mem) {
        nori__gpu_fail(l, NORI_ERROR_MEMORY);
        return NULL;
    }
    if (!nori__vec_push(&l->layout->mems, mem)) {
        nori__gpu_release(l->self, mem);
        nori__gpu_no_memory(l);
        return NULL;
    }
    return mem;
}

/* ---- buffers ---- */

static gpu_held *take_buffer(gpu_lower *l, int64_t count)
{
    size_t bytes = 0;
    gpu_held *best = NULL;
    if (!nori__mul_size((size_t)count, l->self->half ? 2 : 4, &bytes)) {
        nori__gpu_no_memory(l);
        return NULL;
    }
    for (size_t i = 0; i < l->buffers.count; i++) {
        gpu_held *b = l->buffers.items[i];
        if (b->users == 0 && b->bytes >= bytes && (!best || b->bytes < best->bytes)) {
            best = b;
        }
    }
    if (!best) {
        best = nori__arena_alloc(&l->arena, sizeof(*best));
        gpu_mem *mem = best ? keep(l, nori__gpu_buffer(l->self, bytes, l->err)) : NULL;
        if (!mem || !nori__vec_push(&l->buffers, best)) {
            nori__gpu_no_memory(l);
            return NULL;
        }
        *best = (gpu_held){.mem = mem, .bytes = bytes};
    }
    best->users = 1;
    return best;
}

static void leave_buffer(gpu_held *b)
{
    if (b && !b->fixed && b->users > 0) {
        b->users--;
    }
}

static gpu_held *constant_buffer(gpu_lower *l, uint32_t v, const nori_tensor *t)
{
    gpu_mem **mem = &l->p->constants[v];
    if (!*mem) {
        float *floats = nori__gpu_take_floats(t, (size_t)t->count, l->err);
        if (floats) {
            *mem = nori__gpu_stored(l->self, floats, (size_t)t->count, l->err);
            nori__gpu_give_floats(floats, (size_t)t->count);
        }
    }
    gpu_held *b = *mem ? nori__arena_alloc(&l->arena, sizeof(*b)) : NULL;
    if (!b) {
        nori__gpu_no_memory(l);
        return NULL;
    }
    *b = (gpu_held){.mem = *mem, .fixed = true};
    return b;
}

static gpu_held *buffer_of(gpu_lower *l, uint32_t v)
{
    const nori_tensor *t = v != UINT32_MAX ? nori__value_const(l->p->part->values[v]) : NULL;
    if (l->bad || v == UINT32_MAX) {
        nori__gpu_fail(l, NORI_ERROR_INTERNAL);
        return NULL;
    }
    if (!l->at[v] && t) {
        l->at[v] = constant_buffer(l, v, t);
    }
    if (!l->at[v]) {
        nori__gpu_fail(l, NORI_ERROR_INTERNAL);
    }
    return l->at[v];
}

gpu_mem *nori__gpu_in(gpu_lower *l, const gpu_node *n, uint32_t i)
{
    gpu_held *b = buffer_of(l, n->in[i]);
    return b ? b->mem : NULL;
}

gpu_mem *nori__gpu_out(gpu_lower *l, const gpu_node *n, uint32_t i)
{
    uint32_t v = n->out[i];
    if (l->bad || v == UINT32_MAX) {
        return NULL;
    }
    l->at[v] = l->at[v] ? l->at[v] : take_buffer(l, l->shapes[v].count);
    return l->at[v] ? l->at[v]->mem : NULL;
}

void nori__gpu_alias(gpu_lower *l, const gpu_node *n)
{
    gpu_held *b = buffer_of(l, n->in[0]);
    if (b) {
        b->users++;
        l->at[n->out[0]] = b;
    }
}

gpu_mem *nori__gpu_scratch(gpu_lower *l, int64_t count)
{
    if (l->bad || l->n_scratch == NORI__COUNT(l->scratch)) {
        nori__gpu_fail(l, NORI_ERROR_INTERNAL);
        return NULL;
    }
    gpu_held *b = take_buffer(l, count);
    if (b) {
        l->scratch[l->n_scratch++] = b;
    }
    return b ? b->mem : NULL;
}

gpu_mem *nori__gpu_table(gpu_lower *l, const int32_t *v, size_t count)
{
    return l->bad ? NULL : keep(l, nori__gpu_ints(l->self, v, count, l->err));
}

gpu_mem *nori__gpu_weights(gpu_lower *l, const float *v, size_t count)
{
    return l->bad ? NULL : keep(l, nori__gpu_floats(l->self, v, count, l->err));
}

gpu_mem *nori__gpu_zero(gpu_lower *l)
{
    return l->self->zero;
}

void *nori__gpu_host_room(gpu_lower *l, size_t count, size_t size)
{
    void *room = l->bad ? NULL : nori__arena_array(&l->arena, count + 1, size);
    if (!room && !l->bad) {
        nori__gpu_no_memory(l);
    }
    return room;
}

/* ---- shapes and content ---- */

const gpu_shape *nori__gpu_in_shape(gpu_lower *l, const gpu_node *n, uint32_t i)
{
    return &l->shapes[n->in[i]];
}

const gpu_shape *nori__gpu_out_shape(gpu_lower *l, const gpu_node *n, uint32_t i)
{
    return &l->shapes[n->out[i]];
}

static uint32_t input_number(const nori_part *part, const nori__value *v)
{
    uint32_t k = 0;
    while (k < part->n_in && part->in[k] != v) {
        k++;
    }
    return k;
}

const nori_tensor *nori__gpu_content(gpu_lower *l, const gpu_node *n, uint32_t i)
{
    if (!nori__gpu_has(n->node, i)) {
        return NULL;
    }
    const nori__value *v = n->node->inputs[i];
    const nori_tensor *t = nori__value_const(v);
    uint32_t k = input_number(l->p->part, v);
    t = t ? t : k < l->p->part->n_in ? l->fed[k] : NULL;
    if (!t) {
        nori__gpu_fail(l, NORI_ERROR_INTERNAL);
    }
    return t;
}

gpu_mem *nori__gpu_indices(gpu_lower *l, const gpu_node *n, uint32_t i, int64_t size)
{
    const nori__value *v = n->node->inputs[i];
    const nori_tensor *t = nori__value_const(v);
    int64_t count = nori__gpu_in_shape(l, n, i)->count;
    int32_t *room = nori__gpu_host_room(l, (size_t)count, sizeof(*room));
    if (!room) {
        return NULL;
    }
    for (int64_t k = 0; t && k < count; k++) {
        int64_t at = nori__tensor_get_i64(t, k);
        if (at < -size || at >= size) {
            nori__fail(l->err, NORI_ERROR_MODEL,
                       "index %lld at place %lld, expected within an axis of %lld", (long long)at,
                       (long long)k, (long long)size);
            nori__gpu_fail(l, NORI_ERROR_MODEL);
            return NULL;
        }
        room[k] = (int32_t)(at < 0 ? at + size : at);
    }
    if (t) {
        return nori__gpu_table(l, room, (size_t)count);
    }
    gpu_mem *mem =
        keep(l, nori__gpu_buffer(l->self, (size_t)count * sizeof(int32_t), l->err));
    gpu_feed *feed = nori__arena_alloc(&l->layout->arena, sizeof(*feed));
    if (!mem || !feed || !nori__vec_push(&l->layout->feeds, feed)) {
        nori__gpu_no_memory(l);
        return NULL;
    }
    *feed = (gpu_feed){input_number(l->p->part, v), mem, size, n->node};
    return mem;
}

/* ---- the whole ---- */

static nori_status infer(gpu_lower *l)
{
    const nori_part *part = l->p->part;
    size_t bytes = 0;
    nori__shape *shapes = NULL;
    nori__shape *in = nori__arena_array(&l->arena, (size_t)part->n_in + 1, sizeof(*in));
    l->shapes = nori__arena_array(&l->arena, (size_t)part->n_values + 1, sizeof(*l->shapes));
    nori_status status = in && l->shapes ? NORI_OK : nori__no_memory(l->err);
    for (uint32_t i = 0; i < part->n_in && status == NORI_OK; i++) {
        in[i].rank = -1;
        in[i].data_count = -1;
        if (l->fed[i]) {
            nori__shape_of_tensor(&in[i], l->fed[i], l->p->host_only[i]);
        }
    }
    if (status == NORI_OK) {
        status = nori__part_shapes(part, in, NULL, &shapes, &bytes, l->err);
    }
    for (uint32_t v = 0; v < part->n_values && status == NORI_OK; v++) {
        gpu_shape *s = &l->shapes[v];
        s->rank = shapes[v].rank;
        bool known = s->rank >= 0;
        for (int d = 0; d < s->rank; d++) {
            s->dims[d] = shapes[v].dims[d].value;
            known = known && s->dims[d] >= 0;
        }
        if (known && (!nori__dims_count(s->rank, s->dims, &s->count) || s->count > INT32_MAX)) {
            status = nori__fail(l->err, NORI_ERROR_LIMIT,
                                "%s: value %s has more elements than 32-bit indices reach",
                                l->self->driver->title, part->values[v]->name);
        }
        s->rank = known ? s->rank : -1;
    }
    nori__release(part->a, shapes, bytes);
    return status;
}

static nori_status check_shapes(gpu_lower *l, const gpu_node *n)
{
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
        if (n->in[i] != UINT32_MAX && l->shapes[n->in[i]].rank < 0) {
            return nori__fail(l->err, NORI_ERROR_DATA,
                              "%s: the shape of %s cannot be told from what the inputs hold",
                              l->self->driver->title, l->p->part->values[n->in[i]]->name);
        }
    }
    return NORI_OK;
}

/* Buffers of the inputs, which a run fills first. */
static void place_inputs(gpu_lower *l)
{
    const nori_part *part = l->p->part;
    for (uint32_t i = 0, v = 0; i < part->n_in && v < part->n_values && !l->bad; v++) {
        if (part->values[v] != part->in[i]) {
            continue;
        }
        if (l->fed[i] && part->in[i]->type.elem == NORI_FLOAT) {
            gpu_feed *feed = nori__arena_alloc(&l->layout->arena, sizeof(*feed));
            gpu_held *b = take_buffer(l, l->shapes[v].count);
            if (!feed || !b || !nori__vec_push(&l->layout->feeds, feed)) {
                nori__gpu_no_memory(l);
                return;
            }
            *feed = (gpu_feed){.input = i, .mem = b->mem};
            l->at[v] = b;
        }
        i++;
    }
}

static nori_status lower_nodes(gpu_lower *l)
{
    gpu_part *p = l->p;
    place_inputs(l);
    for (uint32_t k = 0; k < p->n_nodes && !l->bad; k++) {
        const gpu_node *n = &p->nodes[k];
        nori_status status = check_shapes(l, n);
        if (status == NORI_OK) {
            n->op->lower(l, n);
            nori__gpu_drop_kernel(l);
        } else {
            l->bad = true;
        }
        if (l->bad) {
            char path[256];
            nori__node_path(n->node, path, sizeof(path));
            nori__where(l->err, "%s", path);
        }
        for (uint32_t i = 0; i < l->n_scratch; i++) {
            leave_buffer(l->scratch[i]);
        }
        l->n_scratch = 0;
        for (uint32_t i = 0; i < n->n_in; i++) {
            if (n->in[i] != UINT32_MAX && p->last_use[n->in[i]] == k) {
                leave_buffer(l->at[n->in[i]]);
                l->at[n->in[i]] = NULL;
            }
        }
    }
    return l->bad ? l->err->status : NORI_OK;
}

/* What the layout is for, and what comes out. */
static nori_status note_ends(gpu_lower *l)
{
    const nori_part *part = l->p->part;
    gpu_layout *y = l->layout;
    for (uint32_t i = 0; i < part->n_out; i++) {
        uint32_t v = part->out_values[i];
        if (!l->at[v] || l->shapes[v].rank < 0) {
            return nori__fail(l->err, NORI_ERROR_INTERNAL, "%s: output %s was not made",
                              l->self->driver->title, part->values[v]->name);
        }
        y->out[i] = l->shapes[v];
        y->out_mem[i] = l->at[v]->mem;
    }
    for (uint32_t i = 0; i < part->n_in; i++) {
        const nori_tensor *t = l->fed[i];
        y->in[i].rank = t ? t->rank : -1;
        if (t) {
            nori__tensor_dims(t, y->in[i].dims);
        }
        if (t && l->p->host_only[i]) {
            NORI__TRY(nori__tensor_copy(&nori__malloc, t, &y->content[i], l->err));
        }
    }
    return NORI_OK;
}

nori_status nori__gpu_lay_out(gpu_self *self, gpu_part *p, const nori_tensor *const *in,
                              gpu_layout **layout, nori_error *err)
{
    nori_error own = {0};
    gpu_layout *y = nori__gpu_layout_new(p->part);
    *layout = NULL;
    if (!y) {
        return nori__no_memory(err);
    }
    gpu_lower l = {.self = self, .p = p, .layout = y, .fed = in, .err = &own};
    nori__arena_init(&l.arena, &nori__malloc);
    nori__vec_init(&l.buffers, &nori__malloc);
    l.at = nori__arena_array(&l.arena, (size_t)p->part->n_values + 1, sizeof(*l.at));
    nori_status status = l.at && y->in && y->content && y->out && y->out_mem
                             ? NORI_OK
                             : nori__no_memory(&own);
    status = status == NORI_OK ? infer(&l) : status;
    status = status == NORI_OK ? lower_nodes(&l) : status;
    status = status == NORI_OK ? note_ends(&l) : status;
    nori__vec_free(&l.buffers);
    nori__arena_free(&l.arena);
    if (status != NORI_OK) {
        nori__gpu_layout_free(self, y);
        nori__fail(err, status, "%s", own.message);
        nori__hint(err, "%s", own.hint);
        nori__where(err, "%s", own.where);
        return status;
    }
    *layout = y;
    return NORI_OK;
}

