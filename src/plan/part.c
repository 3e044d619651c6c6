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

nori_status nori_part_onnx(nori_part *part, const void **bytes, size_t *size, nori_error *err)
{
    if (part->onnx.size == 0) {
        nori__text_init(&part->onnx, part->a);
        NORI__TRY(nori__pb_write_model(part->model, &part->onnx, err));
    }
    *bytes = part->onnx.data;
    *size = part->onnx.size;
    return NORI_OK;
}

/* ---- making ---- */

static nori_part *new_part(nori__arena *arena, const nori_allocator *a, const nori__ir *ir)
{
    nori_part *p = nori__arena_alloc(arena, sizeof(*p));
    if (p) {
        p->a = a;
        p->ir = ir;
        nori__text_init(&p->onnx, a);
        pthread_mutex_init(&p->turn, NULL);
    }
    return p;
}

nori_status nori__part_of_model(nori__arena *arena, const nori_allocator *a, const nori__ir *ir,
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

void nori__part_free(nori_part *part)
{
    if (part->compiled && part->provider->free_part) {
        part->provider->free_part(part->self, part->compiled);
    }
    part->compiled = NULL;
    nori__text_free(&part->onnx);
    pthread_mutex_destroy(&part->turn);
}

/* ---- the node in its place ---- */

/* What a part makes is said by the provider when it runs. */
static const nori__op late_part = {
    .id = NORI__OP_COUNT,
    .name = "Part",
    .family = "part",
    .flags = NORI__OP_DYNAMIC,
    .infer = nori__infer_none,
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
    node->op = &late_part;
    node->version = 1;
    node->part = part;
    node->name = nori__arena_printf(&g->ir->arena, "%s, %u node%s", part->label, part->n_nodes,
                                    part->n_nodes == 1 ? "" : "s");
    return node->name ? NORI_OK : nori__no_memory(err);
}

static nori_status run_part(const void *state, nori_call *call)
{
    nori_part *part = (nori_part *)(uintptr_t)state; /* only the lock changes */
    if (part->serial) {
        pthread_mutex_lock(&part->turn);
    }
    nori_status status = part->provider->run(part->self, part->compiled, call);
    if (part->serial) {
        pthread_mutex_unlock(&part->turn);
    }
    return status;
}

const nori_kernel nori__part_kernel = {
    .size = sizeof(nori_kernel),
    .run = run_part,
};
