/* ocl_layout.c: a part for concrete shapes: a buffer for every value, shared by those that do not
 * live at the same time, and the list of kernels with their arguments set. A run only enqueues. */
#include "providers/opencl/opencl.h"

/* A buffer while laying out. */
typedef struct buffer {
    ocl_mem *mem;
    size_t bytes;
    uint32_t users; /* values that are seen in it; 0: free for others */
    bool fixed;     /* a constant's: never free */
} buffer;

struct ocl_lower {
    ocl_self *self;
    ocl_part *p;
    ocl_layout *layout;
    nori__arena arena;   /* until the layout is made */
    const nori_tensor *const *fed; /* by input of the part */
    ocl_shape *shapes;   /* by value */
    buffer **at;         /* by value */
    nori__vec buffers;
    buffer *scratch[NORI_MAX_RANK];  /* of the node at hand */
    uint32_t n_scratch;
    ocl_kernel *kernel;  /* being set up */
    const char *kernel_name;
    uint32_t argument, local_at;
    bool bad;
    nori_error *err;
};

nori_error *nori__ocl_error(ocl_lower *l)
{
    return l->err;
}

bool nori__ocl_bad(const ocl_lower *l)
{
    return l->bad;
}

void nori__ocl_fail(ocl_lower *l, nori_status status)
{
    l->bad = true;
    if (l->err->status == NORI_OK) {
        nori__fail(l->err, status, "OpenCL: a part cannot be laid out: %s",
                   nori_status_text(status));
    }
}

static void no_memory(ocl_lower *l)
{
    nori__no_memory(l->err);
    nori__ocl_fail(l, NORI_ERROR_MEMORY);
}

/* Keeps what the layout must release; false: out of memory, and released. */
static ocl_mem *keep(ocl_lower *l, ocl_mem *mem)
{
    if (!mem) {
        nori__ocl_fail(l, NORI_ERROR_MEMORY);
        return NULL;
    }
    if (!nori__vec_push(&l->layout->mems, mem)) {
        l->self->api.clReleaseMemObject(mem);
        no_memory(l);
        return NULL;
    }
    return mem;
}

/* ---- buffers ---- */

static buffer *take_buffer(ocl_lower *l, int64_t count)
{
    size_t bytes = 0;
    buffer *best = NULL;
    if (!nori__mul_size((size_t)count, l->self->half ? 2 : 4, &bytes)) {
        no_memory(l);
        return NULL;
    }
    for (size_t i = 0; i < l->buffers.count; i++) {
        buffer *b = l->buffers.items[i];
        if (b->users == 0 && b->bytes >= bytes && (!best || b->bytes < best->bytes)) {
            best = b;
        }
    }
    if (!best) {
        best = nori__arena_alloc(&l->arena, sizeof(*best));
        ocl_mem *mem = best ? keep(l, nori__ocl_buffer(l->self, bytes, l->err)) : NULL;
        if (!mem || !nori__vec_push(&l->buffers, best)) {
            no_memory(l);
            return NULL;
        }
        *best = (buffer){.mem = mem, .bytes = bytes};
    }
    best->users = 1;
    return best;
}

static void leave_buffer(buffer *b)
{
    if (b && !b->fixed && b->users > 0) {
        b->users--;
    }
}

static buffer *constant_buffer(ocl_lower *l, uint32_t v, const nori_tensor *t)
{
    ocl_mem **mem = &l->p->constants[v];
    if (!*mem) {
        float *floats = nori__ocl_take_floats(t, (size_t)t->count, l->err);
        if (floats) {
            *mem = nori__ocl_stored(l->self, floats, (size_t)t->count, l->err);
            nori__ocl_give_floats(floats, (size_t)t->count);
        }
    }
    buffer *b = *mem ? nori__arena_alloc(&l->arena, sizeof(*b)) : NULL;
    if (!b) {
        no_memory(l);
        return NULL;
    }
    *b = (buffer){.mem = *mem, .fixed = true};
    return b;
}

static buffer *buffer_of(ocl_lower *l, uint32_t v)
{
    const nori_tensor *t = v != UINT32_MAX ? nori__value_const(l->p->part->values[v]) : NULL;
    if (l->bad || v == UINT32_MAX) {
        nori__ocl_fail(l, NORI_ERROR_INTERNAL);
        return NULL;
    }
    if (!l->at[v] && t) {
        l->at[v] = constant_buffer(l, v, t);
    }
    if (!l->at[v]) {
        nori__ocl_fail(l, NORI_ERROR_INTERNAL);
    }
    return l->at[v];
}

ocl_mem *nori__ocl_in(ocl_lower *l, const ocl_node *n, uint32_t i)
{
    buffer *b = buffer_of(l, n->in[i]);
    return b ? b->mem : NULL;
}

ocl_mem *nori__ocl_out(ocl_lower *l, const ocl_node *n, uint32_t i)
{
    uint32_t v = n->out[i];
    if (l->bad || v == UINT32_MAX) {
        return NULL;
    }
    l->at[v] = l->at[v] ? l->at[v] : take_buffer(l, l->shapes[v].count);
    return l->at[v] ? l->at[v]->mem : NULL;
}

void nori__ocl_alias(ocl_lower *l, const ocl_node *n)
{
    buffer *b = buffer_of(l, n->in[0]);
    if (b) {
        b->users++;
        l->at[n->out[0]] = b;
    }
}

ocl_mem *nori__ocl_scratch(ocl_lower *l, int64_t count)
{
    if (l->bad || l->n_scratch == NORI__COUNT(l->scratch)) {
        nori__ocl_fail(l, NORI_ERROR_INTERNAL);
        return NULL;
    }
    buffer *b = take_buffer(l, count);
    if (b) {
        l->scratch[l->n_scratch++] = b;
    }
    return b ? b->mem : NULL;
}

ocl_mem *nori__ocl_table(ocl_lower *l, const int32_t *v, size_t count)
{
    return l->bad ? NULL : keep(l, nori__ocl_ints(l->self, v, count, l->err));
}

ocl_mem *nori__ocl_weights(ocl_lower *l, const float *v, size_t count)
{
    return l->bad ? NULL : keep(l, nori__ocl_floats(l->self, v, count, l->err));
}

ocl_mem *nori__ocl_zero(ocl_lower *l)
{
    return l->self->zero;
}

void *nori__ocl_host_room(ocl_lower *l, size_t count, size_t size)
{
    void *room = l->bad ? NULL : nori__arena_array(&l->arena, count + 1, size);
    if (!room && !l->bad) {
        no_memory(l);
    }
    return room;
}

/* ---- shapes and content ---- */

const ocl_shape *nori__ocl_in_shape(ocl_lower *l, const ocl_node *n, uint32_t i)
{
    return &l->shapes[n->in[i]];
}

const ocl_shape *nori__ocl_out_shape(ocl_lower *l, const ocl_node *n, uint32_t i)
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

const nori_tensor *nori__ocl_content(ocl_lower *l, const ocl_node *n, uint32_t i)
{
    if (!nori__ocl_has(n->node, i)) {
        return NULL;
    }
    const nori__value *v = n->node->inputs[i];
    const nori_tensor *t = nori__value_const(v);
    uint32_t k = input_number(l->p->part, v);
    t = t ? t : k < l->p->part->n_in ? l->fed[k] : NULL;
    if (!t) {
        nori__ocl_fail(l, NORI_ERROR_INTERNAL);
    }
    return t;
}

ocl_mem *nori__ocl_indices(ocl_lower *l, const ocl_node *n, uint32_t i, int64_t size)
{
    const nori__value *v = n->node->inputs[i];
    const nori_tensor *t = nori__value_const(v);
    int64_t count = nori__ocl_in_shape(l, n, i)->count;
    int32_t *room = nori__ocl_host_room(l, (size_t)count, sizeof(*room));
    if (!room) {
        return NULL;
    }
    for (int64_t k = 0; t && k < count; k++) {
        int64_t at = nori__tensor_get_i64(t, k);
        if (at < -size || at >= size) {
            nori__fail(l->err, NORI_ERROR_MODEL,
                       "index %lld at place %lld, expected within an axis of %lld", (long long)at,
                       (long long)k, (long long)size);
            nori__ocl_fail(l, NORI_ERROR_MODEL);
            return NULL;
        }
        room[k] = (int32_t)(at < 0 ? at + size : at);
    }
    if (t) {
        return nori__ocl_table(l, room, (size_t)count);
    }
    ocl_mem *mem =
        keep(l, nori__ocl_buffer(l->self, (size_t)count * sizeof(int32_t), l->err));
    ocl_feed *feed = nori__arena_alloc(&l->layout->arena, sizeof(*feed));
    if (!mem || !feed || !nori__vec_push(&l->layout->feeds, feed)) {
        no_memory(l);
        return NULL;
    }
    *feed = (ocl_feed){input_number(l->p->part, v), mem, size, n->node};
    return mem;
}

/* ---- kernels ---- */

static void argument(ocl_lower *l, size_t size, const void *v)
{
    if (!l->bad && nori__ocl_check(l->self,
                                   l->self->api.clSetKernelArg(l->kernel, l->argument, size, v),
                                   l->kernel_name, NORI_ERROR_INTERNAL, l->err) != NORI_OK) {
        nori__ocl_fail(l, NORI_ERROR_INTERNAL);
    }
    l->argument++;
}

void nori__ocl_kernel(ocl_lower *l, ocl_source source, const char *name)
{
    int32_t code = 0;
    if (l->bad) {
        return;
    }
    l->argument = 0;
    l->local_at = UINT32_MAX;
    l->kernel_name = name;
    if (nori__ocl_program(l->self, source, l->err) != NORI_OK) {
        nori__ocl_fail(l, NORI_ERROR_UNAVAILABLE);
        return;
    }
    l->kernel = l->self->api.clCreateKernel(l->self->programs[source], name, &code);
    if (!l->kernel) {
        nori__ocl_check(l->self, code ? code : -46, name, NORI_ERROR_INTERNAL, l->err);
        nori__ocl_fail(l, NORI_ERROR_INTERNAL);
    }
}

void nori__ocl_mem(ocl_lower *l, ocl_mem *mem)
{
    argument(l, sizeof(mem), &mem);
}

void nori__ocl_int(ocl_lower *l, int64_t v)
{
    int32_t narrow = (int32_t)v;
    argument(l, sizeof(narrow), &narrow);
}

void nori__ocl_float(ocl_lower *l, float v)
{
    argument(l, sizeof(v), &v);
}

void nori__ocl_int2(ocl_lower *l, int64_t a, int64_t b)
{
    argument(l, 8, (const int32_t[]){(int32_t)a, (int32_t)b});
}

void nori__ocl_int4(ocl_lower *l, int64_t a, int64_t b, int64_t c, int64_t d)
{
    argument(l, 16, (const int32_t[]){(int32_t)a, (int32_t)b, (int32_t)c, (int32_t)d});
}

void nori__ocl_int8(ocl_lower *l, const int64_t v[8])
{
    int32_t narrow[8];
    for (int i = 0; i < 8; i++) {
        narrow[i] = (int32_t)v[i];
    }
    argument(l, sizeof(narrow), narrow);
}

void nori__ocl_local(ocl_lower *l)
{
    l->local_at = l->argument++;
}

/* The most work-items of one group that this kernel takes on this device. */
static size_t group_limit(ocl_lower *l)
{
    size_t most = 0;
    if (l->self->api.clGetKernelWorkGroupInfo(l->kernel, l->self->device, OCL_KERNEL_GROUP_SIZE,
                                              sizeof(most), &most, NULL) != 0 ||
        most == 0) {
        most = 1;
    }
    return most < l->self->group_size ? most : l->self->group_size;
}

static size_t power_below(size_t want, size_t limit)
{
    size_t n = 1;
    while (n < want && n * 2 <= limit) {
        n *= 2;
    }
    return n;
}

static void drop_kernel(ocl_lower *l)
{
    if (l->kernel) {
        l->self->api.clReleaseKernel(l->kernel);
        l->kernel = NULL;
    }
}

static void launch(ocl_lower *l, const size_t global[3], const size_t local[3])
{
    ocl_launch *launch = nori__arena_alloc(&l->layout->arena, sizeof(*launch));
    if (!launch || !nori__vec_push(&l->layout->launches, launch)) {
        no_memory(l);
        drop_kernel(l);
        return;
    }
    launch->kernel = l->kernel;
    l->kernel = NULL;
    for (int d = 0; d < 3; d++) {
        launch->local[d] = local[d];
        launch->global[d] = (global[d] + local[d] - 1) / local[d] * local[d];
    }
}

/* Drivers for CPUs compile a kernel again for every group size, so they get one; GPUs get groups
 * that fit what there is to do. */
void nori__ocl_items(ocl_lower *l, int64_t x, int64_t y, int64_t z)
{
    if (l->bad || x <= 0 || y <= 0 || z <= 0) { /* nothing to do for an empty tensor */
        drop_kernel(l);
        return;
    }
    const ocl_self *self = l->self;
    size_t limit = group_limit(l), most = limit < 64 ? limit : 64, local[3] = {1, 1, 1};
    bool line = y == 1 && z == 1;
    size_t width = line ? 64 : self->is_cpu ? 8 : (size_t)x < 16 ? (size_t)x : 16;
    local[0] = power_below(width, most < self->item_sizes[0] ? most : self->item_sizes[0]);
    if (!line && !self->is_cpu) {
        size_t rest = most / local[0];
        local[1] = power_below((size_t)y, rest < self->item_sizes[1] ? rest : self->item_sizes[1]);
    }
    launch(l, (const size_t[]){(size_t)x, (size_t)y, (size_t)z}, local);
}

void nori__ocl_rows(ocl_lower *l, int64_t rows, int64_t n)
{
    if (l->bad || rows <= 0) {
        drop_kernel(l);
        return;
    }
    size_t limit = group_limit(l), room = (size_t)(l->self->local_memory / sizeof(float));
    limit = limit < room || room == 0 ? limit : room;
    limit = limit < l->self->item_sizes[0] ? limit : l->self->item_sizes[0];
    size_t want = l->self->is_cpu || n < 64 ? 64 : n < 1024 ? (size_t)n / 4 : 256;
    size_t items = power_below(want, limit);
    uint32_t at = l->local_at;
    if (at != UINT32_MAX) {
        l->argument = at;
        argument(l, items * sizeof(float), NULL);
    }
    if (l->bad) {
        drop_kernel(l);
        return;
    }
    launch(l, (const size_t[]){(size_t)rows * items, 1, 1}, (const size_t[]){items, 1, 1});
}

/* ---- the whole ---- */

static nori_status infer(ocl_lower *l)
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
        ocl_shape *s = &l->shapes[v];
        s->rank = shapes[v].rank;
        bool known = s->rank >= 0;
        for (int d = 0; d < s->rank; d++) {
            s->dims[d] = shapes[v].dims[d].value;
            known = known && s->dims[d] >= 0;
        }
        if (known && (!nori__dims_count(s->rank, s->dims, &s->count) || s->count > INT32_MAX)) {
            status = nori__fail(l->err, NORI_ERROR_LIMIT,
                                "OpenCL: value %s has more elements than 32-bit indices reach",
                                part->values[v]->name);
        }
        s->rank = known ? s->rank : -1;
    }
    nori__release(part->a, shapes, bytes);
    return status;
}

static nori_status check_shapes(ocl_lower *l, const ocl_node *n)
{
    for (uint32_t i = 0; i < n->node->input_count + n->node->output_count; i++) {
        if (n->in[i] != UINT32_MAX && l->shapes[n->in[i]].rank < 0) {
            return nori__fail(l->err, NORI_ERROR_DATA,
                              "OpenCL: the shape of %s cannot be told from what the inputs hold",
                              l->p->part->values[n->in[i]]->name);
        }
    }
    return NORI_OK;
}

/* Buffers of the inputs, which a run fills first. */
static void place_inputs(ocl_lower *l)
{
    const nori_part *part = l->p->part;
    for (uint32_t i = 0, v = 0; i < part->n_in && v < part->n_values && !l->bad; v++) {
        if (part->values[v] != part->in[i]) {
            continue;
        }
        if (l->fed[i] && part->in[i]->type.elem == NORI_FLOAT) {
            ocl_feed *feed = nori__arena_alloc(&l->layout->arena, sizeof(*feed));
            buffer *b = take_buffer(l, l->shapes[v].count);
            if (!feed || !b || !nori__vec_push(&l->layout->feeds, feed)) {
                no_memory(l);
                return;
            }
            *feed = (ocl_feed){.input = i, .mem = b->mem};
            l->at[v] = b;
        }
        i++;
    }
}

static nori_status lower_nodes(ocl_lower *l)
{
    ocl_part *p = l->p;
    place_inputs(l);
    for (uint32_t k = 0; k < p->n_nodes && !l->bad; k++) {
        const ocl_node *n = &p->nodes[k];
        nori_status status = check_shapes(l, n);
        if (status == NORI_OK) {
            n->op->lower(l, n);
            drop_kernel(l);
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
        for (uint32_t i = 0; i < n->node->input_count; i++) {
            if (n->in[i] != UINT32_MAX && p->last_use[n->in[i]] == k) {
                leave_buffer(l->at[n->in[i]]);
                l->at[n->in[i]] = NULL;
            }
        }
    }
    return l->bad ? l->err->status : NORI_OK;
}

/* What the layout is for, and what comes out. */
static nori_status note_ends(ocl_lower *l)
{
    const nori_part *part = l->p->part;
    ocl_layout *y = l->layout;
    for (uint32_t i = 0; i < part->n_out; i++) {
        uint32_t v = part->out_values[i];
        if (!l->at[v] || l->shapes[v].rank < 0) {
            return nori__fail(l->err, NORI_ERROR_INTERNAL, "OpenCL: output %s was not made",
                              part->values[v]->name);
        }
        y->out[i] = l->shapes[v];
        y->out_mem[i] = l->at[v]->mem;
    }
    for (uint32_t i = 0; i < part->n_in; i++) {
        const nori_tensor *t = l->fed[i];
        y->in[i].rank = t ? t->rank : -1;
        if (t) {
            memcpy(y->in[i].dims, t->dims, sizeof(t->dims));
        }
        if (t && l->p->host_only[i]) {
            NORI__TRY(nori__tensor_copy(&nori__malloc, t, &y->content[i], l->err));
        }
    }
    return NORI_OK;
}

static ocl_layout *new_layout(const nori_part *part)
{
    ocl_layout *y = nori__alloc_zero(&nori__malloc, sizeof(*y));
    if (!y) {
        return NULL;
    }
    y->n_in = part->n_in;
    nori__arena_init(&y->arena, &nori__malloc);
    nori__vec_init(&y->mems, &nori__malloc);
    nori__vec_init(&y->feeds, &nori__malloc);
    nori__vec_init(&y->launches, &nori__malloc);
    y->in = nori__arena_array(&y->arena, (size_t)part->n_in + 1, sizeof(*y->in));
    y->content = nori__arena_array(&y->arena, (size_t)part->n_in + 1, sizeof(*y->content));
    y->out = nori__arena_array(&y->arena, (size_t)part->n_out + 1, sizeof(*y->out));
    y->out_mem = nori__arena_array(&y->arena, (size_t)part->n_out + 1, sizeof(*y->out_mem));
    return y;
}

nori_status nori__ocl_lay_out(ocl_self *self, ocl_part *p, const nori_tensor *const *in,
                              ocl_layout **layout, nori_error *err)
{
    nori_error own = {0};
    ocl_layout *y = new_layout(p->part);
    *layout = NULL;
    if (!y) {
        return nori__no_memory(err);
    }
    ocl_lower l = {.self = self, .p = p, .layout = y, .fed = in, .err = &own};
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
        nori__ocl_layout_free(self, y);
        nori__fail(err, status, "%s", own.message);
        nori__hint(err, "%s", own.hint);
        nori__where(err, "%s", own.where);
        return status;
    }
    *layout = y;
    return NORI_OK;
}

void nori__ocl_layout_free(ocl_self *self, ocl_layout *y)
{
    if (!y) {
        return;
    }
    for (size_t i = 0; i < y->launches.count; i++) {
        self->api.clReleaseKernel(((const ocl_launch *)y->launches.items[i])->kernel);
    }
    for (size_t i = 0; i < y->mems.count; i++) {
        self->api.clReleaseMemObject(y->mems.items[i]);
    }
    for (uint32_t i = 0; y->content && i < y->n_in; i++) {
        nori_tensor_free(y->content[i]);
    }
    nori__vec_free(&y->launches);
    nori__vec_free(&y->mems);
    nori__vec_free(&y->feeds);
    nori__arena_free(&y->arena);
    nori__release(&nori__malloc, y, sizeof(*y));
}
