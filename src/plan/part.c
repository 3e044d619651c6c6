/* part.c: parts of a graph: what providers see of them, and the node that stands for them. */
#include "plan/part.h"

/* ---- views (nori/provider.h) ---- */

size_t nori_part_node_count(const nori_part *part)
{
    return part->n_nodes;
}

const nori_node *nori_part_node(const nori_part *part, size_t index)
{
    return index < part->n_nodes ? part->nodes[index] : NULL;
}

size_t nori_part_input_count(const nori_part *part)
{
    return part->n_in;
}

const nori_value *nori_part_input(const nori_part *part, size_t index)
{
    return index < part->n_in ? part->in[index] : NULL;
}

size_t nori_part_output_count(const nori_part *part)
{
    return part->n_out;
}

const nori_value *nori_part_output(const nori_part *part, size_t index)
{
    return index < part->n_out ? part->out[index] : NULL;
}

int nori_part_is_model(const nori_part *part)
{
    return part->model != NULL;
}

const char *nori_part_file(const nori_part *part)
{
    return part->file;
}

int nori_part_fixed_dim(const nori_part *part, size_t index, const char **name, int64_t *value)
{
    if (index >= part->dim_count) {
        return 0;
    }
    *name = part->dim_names[index];
    *value = part->dim_values[index];
    return 1;
}

/* Writes a subset; its opsets are such that every node means what it means here. */
static nori_status write_subset(nori_part *part, nori_error *err)
{
    nori__pb_model *model = NULL;
    nori__arena arena;
    nori__subset set = {.nodes = part->nodes, .n_nodes = part->n_nodes, .in = part->in,
                        .n_in = part->n_in, .out = part->out, .n_out = part->n_out};
    nori__arena_init(&arena, part->a);
    nori_status status = nori__part_opsets(part, &arena, &set, err);
    if (status == NORI_OK) {
        status = nori__subset_to_pb(part->ir, &set, &arena, &model, err);
    }
    if (status == NORI_OK) {
        status = nori__pb_write_model(model, &part->onnx, err);
    }
    nori__arena_free(&arena);
    return status;
}

nori_status nori_part_onnx(nori_part *part, const void **bytes, size_t *size, nori_error *err)
{
    if (part->onnx.size == 0) {
        NORI__TRY(part->model ? nori__pb_write_model(part->model, &part->onnx, err)
                              : write_subset(part, err));
    }
    *bytes = part->onnx.data;
    *size = part->onnx.size;
    return NORI_OK;
}

/* ---- making ---- */

static nori_part *new_part(nori__arena *arena, const nori_allocator *a, nori__ir *ir)
{
    nori_part *p = nori__arena_alloc(arena, sizeof(*p));
    if (p) {
        p->a = a;
        p->arena = arena;
        p->ir = ir;
        nori__text_init(&p->onnx, a);
        pthread_mutex_init(&p->turn, NULL);
    }
    return p;
}

nori_status nori__part_of_model(nori__arena *arena, const nori_allocator *a, nori__ir *ir,
                                nori_part **part, nori_error *err)
{
    const nori__graph *g = ir->main;
    nori_part *p = *part = new_part(arena, a, ir);
    if (!p) {
        return nori__no_memory(err);
    }
    p->model = ir->pb;
    p->nodes = nori__arena_array(arena, (size_t)g->node_count + 1, sizeof(*p->nodes));
    p->in = nori__arena_array(arena, (size_t)g->input_count + 1, sizeof(*p->in));
    p->out = nori__arena_array(arena, (size_t)g->output_count + 1, sizeof(*p->out));
    bool *seen = nori__arena_array(arena, (size_t)ir->value_count + 1, sizeof(*seen));
    if (!p->nodes || !p->in || !p->out || !seen) {
        return nori__no_memory(err);
    }
    for (nori__node *n = g->first; n; n = n->next) {
        p->nodes[p->n_nodes++] = n;
    }
    for (uint32_t i = 0; i < g->input_count; i++) {
        p->in[p->n_in++] = g->inputs[i];
    }
    /* An output that is an input or a constant is not computed; one listed twice is, once. */
    for (uint32_t i = 0; i < g->output_count; i++) {
        nori__value *v = g->outputs[i];
        if (v->producer && !seen[v->id]) {
            p->out[p->n_out++] = v;
        }
        seen[v->id] = true;
    }
    return NORI_OK;
}

/* ---- of some nodes ---- */

typedef struct gathering {
    nori_part *part;
    uint32_t *number; /* by value id: number + 1; 0: not seen */
    nori__vec values; /* by number */
    nori__vec in;
    bool ok;
} gathering;

static uint32_t number_of(gathering *g, nori__value *v)
{
    if (!g->number[v->id]) {
        g->ok = g->ok && nori__vec_push(&g->values, v);
        g->number[v->id] = (uint32_t)g->values.count;
    }
    return g->number[v->id] - 1;
}

static bool note_read(void *user, nori__value *v)
{
    gathering *g = user;
    bool fresh = !g->number[v->id];
    number_of(g, v);
    if (fresh && !nori__value_as_is(v)) {
        g->ok = g->ok && nori__vec_push(&g->in, v); /* made in the part: number given before */
    }
    return g->ok;
}

/* Numbers of a node's inputs and outputs; everything it reads is noted. */
static void gather_node(gathering *g, uint32_t at)
{
    nori_part *p = g->part;
    nori__node *n = p->nodes[at];
    size_t count = (size_t)n->input_count + n->output_count;
    uint32_t *list = nori__arena_array(p->arena, count + 1, sizeof(*list));
    g->ok = g->ok && list && nori__node_reads(n, note_read, g);
    for (size_t i = 0; i < count && g->ok; i++) {
        nori__value *v = i < n->input_count ? n->inputs[i] : n->outputs[i - n->input_count];
        list[i] = v ? number_of(g, v) : UINT32_MAX;
    }
    p->node_values[at] = list;
}

/* How often the part reads a value that it makes: less than all uses means others read it too. */
static bool count_read(void *user, nori__value *v)
{
    uint32_t **left = user;
    if ((*left)[v->id] > 0) {
        (*left)[v->id]--;
    }
    return true;
}

static nori_status take_lists(gathering *g, nori_error *err)
{
    nori_part *p = g->part;
    uint32_t *left = g->number; /* taken over: numbers are no longer needed */
    size_t n = g->values.count, n_in = g->in.count;
    p->values = nori__arena_array(p->arena, n + 1, sizeof(*p->values));
    p->in = nori__arena_array(p->arena, n_in + 1, sizeof(*p->in));
    p->out = nori__arena_array(p->arena, n + 1, sizeof(*p->out));
    p->out_values = nori__arena_array(p->arena, n + 1, sizeof(*p->out_values));
    if (!p->values || !p->in || !p->out || !p->out_values) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        p->values[i] = g->values.items[i];
        left[p->values[i]->id] = 0;
    }
    for (size_t i = 0; i < n_in; i++) {
        p->in[i] = g->in.items[i];
    }
    p->n_values = (uint32_t)n;
    p->n_in = (uint32_t)n_in;
    for (uint32_t k = 0; k < p->n_nodes; k++) {
        const nori__node *node = p->nodes[k];
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (node->outputs[i]) {
                left[node->outputs[i]->id] = node->outputs[i]->uses;
            }
        }
    }
    for (uint32_t k = 0; k < p->n_nodes; k++) {
        nori__node_reads(p->nodes[k], count_read, &left);
    }
    for (uint32_t k = 0; k < p->n_nodes; k++) {
        const nori__node *node = p->nodes[k];
        for (uint32_t i = 0; i < node->output_count; i++) {
            nori__value *v = node->outputs[i];
            if (v && left[v->id] > 0) {
                p->out_values[p->n_out] = p->node_values[k][node->input_count + i];
                p->out[p->n_out++] = v;
            }
        }
    }
    return NORI_OK;
}

nori_status nori__part_of_nodes(nori__arena *arena, const nori_allocator *a, nori__ir *ir,
                                nori__node *const *nodes, uint32_t count, uint32_t *scratch,
                                nori_part **part, nori_error *err)
{
    nori_part *p = *part = new_part(arena, a, ir);
    if (!p) {
        return nori__no_memory(err);
    }
    p->nodes = nori__arena_array(arena, (size_t)count + 1, sizeof(*p->nodes));
    p->node_values = nori__arena_array(arena, (size_t)count + 1, sizeof(*p->node_values));
    if (!p->nodes || !p->node_values) {
        return nori__no_memory(err);
    }
    memcpy(p->nodes, nodes, count * sizeof(*nodes));
    p->n_nodes = count;
    gathering g = {.part = p, .number = scratch, .ok = true};
    nori__vec_init(&g.values, a);
    nori__vec_init(&g.in, a);
    for (uint32_t i = 0; i < count && g.ok; i++) {
        gather_node(&g, i);
    }
    nori_status status = g.ok ? take_lists(&g, err) : nori__no_memory(err);
    for (size_t i = 0; i < g.values.count; i++) {
        scratch[((const nori__value *)g.values.items[i])->id] = 0;
    }
    nori__vec_free(&g.values);
    nori__vec_free(&g.in);
    return status;
}

void nori__part_free(nori_part *part)
{
    if (part->compiled && part->provider->free_part) {
        part->provider->free_part(part->self, part->compiled);
    }
    part->compiled = NULL;
    nori__text_free(&part->onnx);
    nori__map_close(&part->cached);
    pthread_mutex_destroy(&part->turn);
}

/* ---- the node in its place ---- */

/* A whole model is not looked into: what it makes is said by the provider when it runs. */
static const nori__op model_part = {
    .id = NORI__OP_COUNT,
    .name = "Part",
    .family = "part",
    .flags = NORI__OP_DYNAMIC,
    .infer = nori__infer_none,
};

static const nori__op node_part = {
    .id = NORI__OP_COUNT,
    .name = "Part",
    .family = "part",
    .flags = NORI__OP_LATE_ALLOC,
    .infer = nori__part_infer,
};

nori_status nori__part_place(nori_part *part, nori_error *err)
{
    nori__graph *g = part->ir->main;
    for (uint32_t i = 0; i < part->n_nodes; i++) {
        nori__node_remove(part->nodes[i]);
    }
    nori__node *node = nori__node_new(g, NULL, "nori", "Part", part->in, part->n_in, part->out,
                                      part->n_out);
    if (!node) {
        return nori__no_memory(err);
    }
    node->op = part->model ? &model_part : &node_part;
    node->version = 1;
    node->part = part;
    node->name = nori__arena_printf(&g->ir->arena, "%s, %u node%s", part->label, part->n_nodes,
                                    part->n_nodes == 1 ? "" : "s");
    return node->name ? NORI_OK : nori__no_memory(err);
}

/* ---- running ---- */

/* A provider may take a named dimension in a range only. */
static nori_status check_ranges(const nori_part *part, nori_call *call)
{
    for (size_t r = 0; r < part->info->range_count; r++) {
        const nori_dim_range *range = &part->info->ranges[r];
        for (uint32_t i = 0; i < part->n_in; i++) {
            const nori__type *type = &part->in[i]->type;
            const nori_tensor *t = nori_call_input(call, i);
            for (int d = 0; t && d < type->rank && d < t->rank; d++) {
                const char *name = type->dims[d].name;
                int64_t size = t->dims[d];
                if (type->dims[d].value < 0 && name && nori__same(name, range->name) &&
                    (size < range->low || size > range->high)) {
                    nori_status s = nori__fail(call->err, NORI_ERROR_DATA,
                                               "%s takes %s from %lld to %lld, found %lld",
                                               part->label, name, (long long)range->low,
                                               (long long)range->high, (long long)size);
                    nori__hint(call->err, "run such inputs with a session on another provider");
                    return s;
                }
            }
        }
    }
    return NORI_OK;
}

static nori_status run_part(const void *state, nori_call *call)
{
    nori_part *part = (nori_part *)(uintptr_t)state; /* only the lock changes */
    NORI__TRY(check_ranges(part, call));
    if (part->info->serial) {
        pthread_mutex_lock(&part->turn);
    }
    nori_status status = part->provider->run(part->self, part->compiled, call);
    if (part->info->serial) {
        pthread_mutex_unlock(&part->turn);
    }
    return status;
}

/* A provider that is one run at a time has its turn from start to finish. */
nori_status nori__part_start(nori_part *part, nori_call *call, void **started)
{
    NORI__TRY(check_ranges(part, call));
    if (part->info->serial) {
        pthread_mutex_lock(&part->turn);
    }
    nori_status status = part->provider->start(part->self, part->compiled, call, started);
    if (part->info->serial && status != NORI_OK) {
        pthread_mutex_unlock(&part->turn);
    }
    return status;
}

nori_status nori__part_finish(nori_part *part, void *started, nori_call *call)
{
    nori_status status = part->provider->finish(part->self, part->compiled, started, call);
    if (part->info->serial) {
        pthread_mutex_unlock(&part->turn);
    }
    return status;
}

const nori_kernel nori__part_kernel = {
    .size = sizeof(nori_kernel),
    .run = run_part,
};
